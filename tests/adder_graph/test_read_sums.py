"""Bits of sums that synthesis keeps: the others do not reach any bit that is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.adder_graph import AdderGraph, Pipeline, find, register_bits, schedule, width
from hlsgen.adder_graph.graph import NOTHING
from hlsgen.adder_graph.read_sums import first_read_bits

Array = NDArray[Any]


def matrix(rng: np.random.Generator) -> Array:
    """A matrix of up to ten rows and columns, half of its weights 0."""
    rows, columns = rng.integers(1, 11, 2)
    return np.asarray(rng.integers(-9, 10, (rows, columns)) * (rng.random((rows, columns)) < 0.5))


def values(graph: AdderGraph, codes: Array, first_read: list[int] | None = None) -> list[Array]:
    """Values of all nodes, without the bits below `first_read` of each."""
    cut = [min(bits, 62) for bits in first_read or [0] * len(graph.intervals)]
    nodes = [column >> bits << bits for column, bits in zip(codes.T, cut, strict=False)]
    for (a, i, b, j, minus, extra, c, k), bits in zip(graph.adders, cut[len(nodes) :], strict=True):
        first = (nodes[a] << i if a != NOTHING else 0 * nodes[b]) + (nodes[c] << k if c != NOTHING else 0)
        nodes.append(first + (-1 if minus else 1) * (nodes[b] << j) + extra >> bits << bits)
    return nodes


def graph_of(seed: int) -> tuple[Pipeline, Array, Array]:
    """A pipeline, codes, and the number of low bits of each row that nothing reads."""
    rng = np.random.default_rng(seed)
    weight = matrix(rng)
    graph = find(weight, [(-8, 15)] * weight.shape[1])
    return schedule(graph, 2), rng.integers(-8, 16, (200, weight.shape[1])), rng.integers(0, 6, len(weight))


@pytest.mark.parametrize("seed", range(20))
def test_bits_that_nothing_reads_change_nothing(seed: int) -> None:
    """All nodes lose their unread bits; the bits of the outputs that are read stay."""
    pipeline, codes, unread = graph_of(seed)
    graph = pipeline.graph
    whole, nodes = values(graph, codes), values(graph, codes, first_read_bits(pipeline, unread.tolist()))
    for output, bits in zip(graph.outputs, unread.tolist(), strict=True):
        if output.node != NOTHING:
            assert ((nodes[output.node] << output.shift >> bits) == (whole[output.node] << output.shift >> bits)).all()


@pytest.mark.parametrize("seed", range(8))
def test_all_registers_count_if_all_bits_are_read(seed: int) -> None:
    pipeline, _, unread = graph_of(seed)
    assert register_bits(pipeline, [0] * len(unread)) == pipeline.registers
    assert register_bits(pipeline, unread.tolist()) <= pipeline.registers


def test_a_sum_of_which_three_bits_are_read_has_three_registers() -> None:
    """Two codes of five bits and their sum of six bits: the codes are not stored."""
    pipeline = schedule(find(np.array([[1, 1]]), [(0, 31), (0, 31)]), 2)
    assert width(*pipeline.graph.intervals[-1]) == 6
    assert register_bits(pipeline, [0]) == 6
    assert register_bits(pipeline, [3]) == 3
