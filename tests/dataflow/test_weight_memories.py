"""Kinds of memories for weights: none better within the budget, by trying all; and networks that are held to a budget."""

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
def test_none_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def any_of(least: int, lut: int, bram: int) -> Cost:
        return Cost(lut=float(rng.integers(least, lut)), bram=int(rng.integers(0, bram)))

    parts = [(own := any_of(0, 50, 5), [own, any_of(20, 200, 2), any_of(0, 20, 6)]) for _ in range(5)]
    total = sum((own for own, _ in parts), any_of(10, 100, 4))
    budget = Budget(*(None if rng.integers(3) == 0 else int(rng.integers(0, most)) for most in (500, 2, 20)))

    def cost(picks: tuple[int, ...]) -> Cost:
        fixed = total.lut - sum(own.lut for own, _ in parts), total.bram - sum(own.bram for own, _ in parts)
        return sum((kinds[n] for (_, kinds), n in zip(parts, picks, strict=True)), Cost(lut=fixed[0], bram=fixed[1]))

    def badness(found: Cost) -> tuple[float, float]:
        return max(1.0, budget.excess(found)), found.lut

    best = min(badness(cost(picks)) for picks in itertools.product(range(3), repeat=5))
    found, picks = chosen(total, parts, budget)
    assert found == cost(tuple(picks))
    assert badness(found) == pytest.approx(best)


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_rate_within_so_many_blocks(blocks: int) -> None:
    """The same cycles with fewer blocks, and as few tables as they allow."""
    free = hlsgen.check(MODEL, hlsgen.Options(target_cycles=1000))
    held = hlsgen.check(MODEL, hlsgen.Options(target_cycles=1000, max_bram=blocks))
    costs = [hlsgen.driver.compile.network_cost(build) for build in (free, held)]
    assert costs[0].bram > blocks
    assert costs[1].bram <= blocks
    assert costs[1].lut > costs[0].lut
    assert held.timing == free.timing


def test_the_files_have_them(tmp_path: Path) -> None:
    """One layer has its weights in a block, another in tables, and `certify` reads that back."""
    hlsgen.build(MODEL, tmp_path / "core", hlsgen.Options(target_cycles=1000, max_bram=1))
    styles = re.findall(r"STYLE\((\d)\)", (tmp_path / "core" / "rtl" / "digits_mlp.v").read_text())
    assert {"2", "3"} <= set(styles)
    assert hlsgen.certify(tmp_path / "core").ok


@pytest.mark.slow
def test_the_fastest_within_so_many_tables() -> None:
    """Weights go to blocks where tables are short, and to tables where blocks are: neither budget alone is refused."""
    for budget in ({"max_bram": 2}, {"max_lut": 1500}, {"max_lut": 4000, "max_bram": 2}):
        build = hlsgen.check(MODEL, hlsgen.Options(**budget))
        cost = hlsgen.driver.compile.network_cost(build)
        assert cost.bram <= budget.get("max_bram", cost.bram)
        assert cost.lut <= budget.get("max_lut", cost.lut)
