"""Kinds of weight memories: the best choice within the budget by brute force, and networks with a budget."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import hlsgen
from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.dataflow.weight_memories import chosen

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_mlp.onnx"


@pytest.mark.parametrize("seed", range(40))
def test_no_other_choice_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def any_of(min_lut: int, lut: int, bram: int) -> Cost:
        return Cost(lut=float(rng.integers(min_lut, lut)), bram=int(rng.integers(0, bram)))

    parts = [(unchanged := any_of(0, 50, 5), [unchanged, any_of(20, 200, 2), any_of(0, 20, 6)]) for _ in range(5)]
    total = sum((unchanged for unchanged, _ in parts), any_of(10, 100, 4))
    budget = Budget(*(None if rng.integers(3) == 0 else int(rng.integers(0, limit)) for limit in (500, 2, 20)))

    def cost(picks: tuple[int, ...]) -> Cost:
        fixed = (
            total.lut - sum(unchanged.lut for unchanged, _ in parts),
            total.bram - sum(unchanged.bram for unchanged, _ in parts),
        )
        return sum((kinds[n] for (_, kinds), n in zip(parts, picks, strict=True)), Cost(lut=fixed[0], bram=fixed[1]))

    def badness(total_cost: Cost) -> tuple[float, float]:
        return max(1.0, budget.excess(total_cost)), total_cost.lut

    best = min(badness(cost(picks)) for picks in itertools.product(range(3), repeat=5))
    total_cost, picks = chosen(total, parts, budget)
    assert total_cost == cost(tuple(picks))
    assert badness(total_cost) == pytest.approx(best)


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_rate_within_a_budget_of_block_rams(blocks: int) -> None:
    """The same cycles with fewer block RAMs, and as few LUTs as they allow."""
    free = hlsgen.check(MODEL, hlsgen.Options(target_cycles=1000))
    limited = hlsgen.check(MODEL, hlsgen.Options(target_cycles=1000, max_bram=blocks))
    costs = [hlsgen.driver.compile.network_cost(build) for build in (free, limited)]
    assert costs[0].bram > blocks
    assert costs[1].bram <= blocks
    assert costs[1].lut > costs[0].lut
    assert limited.timing == free.timing


@pytest.mark.sweep
def test_the_emitted_files_have_the_chosen_memories(tmp_path: Path) -> None:
    """One layer has its weights in a block RAM, another in LUTs, and `certify` reads that back."""
    hlsgen.build(MODEL, tmp_path / "core", hlsgen.Options(target_cycles=1000, max_bram=1))
    styles = re.findall(r"STYLE\((\d)\)", (tmp_path / "core" / "rtl" / "digits_mlp.v").read_text())
    assert {"2", "3"} <= set(styles)
    assert hlsgen.certify(tmp_path / "core").ok


@pytest.mark.slow
def test_the_fastest_network_within_a_budget() -> None:
    """Weights go to block RAM if LUTs are scarce, and to LUTs if block RAM is: each budget alone can be met."""
    for budget in ({"max_bram": 2}, {"max_lut": 1500}, {"max_lut": 4000, "max_bram": 2}):
        build = hlsgen.check(MODEL, hlsgen.Options(**budget))
        cost = hlsgen.driver.compile.network_cost(build)
        assert cost.bram <= budget.get("max_bram", cost.bram)
        assert cost.lut <= budget.get("max_lut", cost.lut)
