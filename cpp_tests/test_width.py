"""hg/width.hpp: elements keep their order at any ratio of lanes, and groups begin new beats."""

from __future__ import annotations

from math import lcm
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of, run_cases

from hlsgen.dataflow.units import Node, WidthConverter, stream_of
from hlsgen.numerics.fixed import Array, int_type


def regrouped(lanes: tuple[int, int], groups: tuple[int, int]) -> tuple[Case, Array]:
    """Case with two frames of several groups. Lanes after the last element are random at the input, 0 at the output."""
    rng = np.random.default_rng(sum(lanes))
    type_ = int_type(3, bool(lanes[0] % 2))
    count = 3 * lcm(*groups)
    elements = rng.integers(type_.lo, type_.hi + 1, 2 * count)
    source, result = (
        stream_of(type_, lane_count, count, group) for lane_count, group in zip(lanes, groups, strict=True)
    )
    x = rng.integers(type_.lo, type_.hi + 1, (2 * source.groups, source.group_beats * source.lanes))
    y = np.zeros((2 * result.groups, result.group_beats * result.lanes), np.int64)
    x[:, : source.group], y[:, : result.group] = (elements.reshape(-1, group) for group in groups)
    node = Node("w", WidthConverter(), ("a",), (source,), ("b",), result)
    return case_of(node, [x.reshape(-1, lanes[0])], 2), y.reshape(-1, lanes[1])


WHOLE = [(6, 4), (4, 6), (3, 3), (1, 7), (7, 1), (8, 2), (2, 8), (5, 3), (3, 5), (1, 1), (32, 12), (11, 2)]
GROUPS = [
    ((4, 4), (10, 10)),
    ((4, 8), (10, 10)),
    ((8, 4), (10, 10)),
    ((3, 12), (21, 21)),
    ((2, 6), (5, 5)),
    ((4, 8), (9, 9)),
    ((4, 8), (3, 3)),
    ((4, 6), (9, 9)),
    ((6, 4), (7, 7)),
    ((8, 1), (3, 3)),
    ((1, 8), (3, 3)),
    ((4, 4), (3, 27)),
    ((4, 4), (6, 12)),
    ((4, 5), (6, 30)),
    ((4, 4), (12, 3)),
    ((4, 6), (8, 24)),
    ((1, 4), (1, 9)),
]


def random_ratio(rng: np.random.Generator) -> tuple[tuple[int, int], tuple[int, int]]:
    """Random lanes and groups. One group is a multiple of the other; in a third of all cases they are equal."""
    lanes_in, lanes_out, group = (int(value) for value in rng.integers(1, (8, 8, 14)))
    multiple = group * int(rng.integers(2, 5))
    return (lanes_in, lanes_out), [(group, group), (group, multiple), (multiple, group)][int(rng.integers(0, 3))]


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_width(dialect: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    cases = [regrouped(lanes, (lcm(*lanes), lcm(*lanes))) for lanes in WHOLE]
    cases += [regrouped(*case) for case in GROUPS]
    cases += [regrouped(*random_ratio(rng)) for _ in range(12)]
    assert {case.call.function for case, _ in cases} == {"hg::widen", "hg::narrow", "hg::gearbox"}
    outputs = run_cases(tmp_path, [case for case, _ in cases], dialect)
    for (y,), (_, expected) in zip(outputs, cases, strict=True):
        assert np.array_equal(y, expected)
