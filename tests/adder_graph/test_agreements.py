"""Counters of agreements compute the matrix, every sum fits its bits, and registers match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.adder_graph import AgreementGraph, agreement_tables, agreements
from hlsgen.adder_graph.agreements import ROW, Bit, find_counters

#: Rows and columns: with and without triples, with one and two columns in no triple.
SHAPES = [(1, 1), (1, 2), (2, 5), (3, 40), (16, 9), (16, 31), (20, 32), (64, 63), (8, 200), (13, 3)]


def signals(graph: AgreementGraph, x: NDArray[Any]) -> NDArray[Any]:
    """Columns, parities and majorities of vectors (count, columns), computed here."""
    t = graph.triples
    a, b, c = (x[:, n * t : (n + 1) * t] for n in range(3))
    majorities = [a + b + c > 1, (1 - a) + b + c > 1, a + (1 - b) + c > 1, a + b + (1 - c) > 1]
    return np.concatenate([x, (a + b + c) % 2, *majorities], axis=1).astype(np.int64)


def sums(graph: AgreementGraph, x: NDArray[Any]) -> NDArray[Any]:
    """Sums of all rows (count, rows). Checks every counter."""
    columns, counters = signals(graph, x), graph.counters
    results = []
    for row in graph.rows:
        values = {Bit(ROW, n): columns[:, s] ^ inverted for n, (s, inverted) in enumerate(row)}
        for n, counter in enumerate(counters.counters):
            total = sum(values.pop(bit) for bit in counter.counted) + (
                values.pop(counter.carry) if counter.carry else 0
            )
            total = total + sum(values.pop(bit) << i for i, bit in enumerate(counter.plain) if bit)
            assert (total >> counter.width == 0).all()
            values |= {Bit(n, i): total >> i & 1 for i in range(counter.width)}
        results.append(sum(values.pop(bit) << n for n, end in enumerate(counters.ends) for bit in end))
        assert not values
    return np.stack(results, axis=1)


def rows_of(shape: tuple[int, int], seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng([*shape, seed])
    return rng.integers(0, 2, shape) if seed < 2 else (rng.random(shape) < 0.15 * (seed - 1)).astype(np.int64)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_a_graph_is_its_matrix(shape: tuple[int, int], seed: int) -> None:
    weight = rows_of(shape, seed)
    x = np.concatenate([np.random.default_rng(seed).integers(0, 2, (40, shape[1])), weight, 1 - weight])
    graph = agreements(weight)
    assert (sums(graph, x) == (x[:, None] == weight).sum(axis=2)).all()
    assert graph.bits <= agreement_tables(*shape) + graph.columns + 2 * graph.triples  # each signal inverted once
    for row in graph.rows:  # bits in the number or the carry of a counter are uninverted if possible
        for part in (row[: graph.counters.ones], row[graph.counters.ones :]):
            assert [literal.inverted for literal in part] == sorted(literal.inverted for literal in part)


@pytest.mark.parametrize("columns", range(1, 14))
def test_every_input_vector(columns: int) -> None:
    x = np.arange(1 << columns)[:, None] >> np.arange(columns) & 1
    weight = rows_of((14, columns))
    assert (sums(agreements(weight), x) == (x[:, None] == weight).sum(axis=2)).all()


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_are_registered_until_they_are_used(shape: tuple[int, int], levels: int) -> None:
    graph = agreements(rows_of(shape))
    counters, registered = graph.counters, graph.counters.registered(levels)
    depths: dict[int, int] = {ROW: 0}
    for n, counter in enumerate(counters.counters):
        depths[n] = 1 + max(depths[bit.source] for bit in counter.inputs)
        assert depths[n] <= counter.level
        cycle = counters.ready_cycle(n, levels)
        assert cycle == (counter.level - 1) // levels
        for bit in counter.inputs:
            ready = counters.ready_cycle(bit.source, levels)
            assert all(bit in registered[k] for k in range(ready + 1, cycle + 1))
    for bit in (bit for end in counters.ends for bit in end):
        assert all(bit in registered[k] for k in range(counters.ready_cycle(bit.source, levels) + 1, len(registered)))
    assert len(registered) == max(1, -(-counters.levels // levels))
    assert graph.latency(levels) == len(registered) + (graph.triples > 0)
    assert counters.levels == max([c.level for c in counters.counters], default=0) + any(
        len(e) > 1 for e in counters.ends
    )


def test_luts_of_large_matrices() -> None:
    """As measured with Yosys, about half a LUT per weight."""
    assert agreement_tables(64, 784) < 0.48 * 64 * 784
    assert agreement_tables(64, 64) < 0.5 * 64 * 64
    assert agreements(rows_of((3, 90))).triples == 0
    counters = find_counters(262, 261, 10)
    counter_luts = sum(len(counter.plain) for counter in counters.counters)
    assert counter_luts <= counters.tables <= counter_luts + 10


def test_the_same_matrix_gives_the_same_graph() -> None:
    first, second = (agreements(rows_of((20, 50))) for _ in range(2))
    assert (first.rows, first.counters) == (second.rows, second.counters)
