"""The rotating share: within its budget, the same for a commit, another one for others, and in the end everything."""

from __future__ import annotations

from pathlib import Path

import rotation

CASES = {f"test_{n}": [f"test_{n}[{k}]" for k in range(n % 4 + 1)] for n in range(40)}
COSTS = {f"test_{n}": 3.0 * n for n in range(40)}


def cost(chosen: list[str]) -> float:
    return sum(COSTS[case.split("[")[0]] for case in chosen)


def test_share() -> None:
    shares = [rotation.draw(CASES, COSTS, f"{seed:x}") for seed in range(300)]
    assert rotation.draw(dict(reversed(CASES.items())), COSTS, "0") == shares[0]
    assert all(len({*share}) == len(share) and cost(share) <= rotation.BUDGET for share in shares)
    assert min(cost(share) for share in shares) > rotation.BUDGET / 2
    fits = {test for test, seconds in COSTS.items() if seconds <= rotation.BUDGET}
    assert {case for share in shares for case in share} == {case for test in fits for case in CASES[test]}


def test_cheap_cases_run_together() -> None:
    """Up to STINT of one test."""
    chosen = rotation.draw({"a": [f"a[{n}]" for n in range(100)]}, {"a": 0.5}, "seed")
    assert len({*chosen}) == len(chosen) == 10


def test_costs_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "seconds.json"
    rotation.save({"a": 1.26, "b": 2.0}, path)
    rotation.save({"b": 3.0}, path)
    assert rotation.load(path) == {"a": 1.3, "b": 3.0}
