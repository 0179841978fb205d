"""Graphs of adders compute the matrix, every node stays within its interval, and registers match."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.adder_graph import AdderGraph, Pipeline, count_digits, digits, find, pipeline, schedule, sharing, width
from hlsgen.adder_graph.graph import NOTHING, Adder, Nodes, Output, carry_place, inverted_bits

#: Picoseconds between registers by number of levels; for one level, a single adder.
LIMITS = {1: 0, 2: 5500, 3: 8250}
#: Lowest and highest code.
RANGES = [(-128, 127), (0, 255), (0, 1), (-1, 0), (-3, 9), (0, 0)]


def matrix(seed: int) -> NDArray[Any]:
    """Matrices of all sizes and widths: with zeros, with only negative weights, of one bit, with rows of 0."""
    rng = np.random.default_rng(seed)
    rows, columns, bits = int(rng.integers(1, 12)), int(rng.integers(1, 12)), int(rng.choice([1, 2, 4, 8, 16, 30]))
    weight: NDArray[Any] = rng.integers(-(1 << (bits - 1)), (1 << (bits - 1)) + 1, (rows, columns))
    if seed % 3 == 0:
        weight[rng.random(weight.shape) < 0.6] = 0
    if seed % 4 == 1:
        weight = -np.abs(weight)
    if seed % 5 == 2:
        weight = rng.choice([-1, 1], (rows, columns))
    return weight


def values(graph: AdderGraph, x: NDArray[Any]) -> list[NDArray[Any]]:
    """Values of all nodes, computed here."""
    nodes = list(x.T)
    for a, i, b, j, minus, extra, c, k in graph.adders:
        minuend = (nodes[a] << i if a != NOTHING else 0 * nodes[b]) + (nodes[c] << k if c != NOTHING else 0)
        nodes.append((minuend - (nodes[b] << j) if minus else minuend + (nodes[b] << j)) + extra)
    return nodes


def operands(adder: Adder) -> list[int]:
    return [node for node in (adder.a, adder.b, adder.c) if node != NOTHING]


def codes(weight: NDArray[Any], low: int, high: int, rng: np.random.Generator) -> NDArray[Any]:
    """Input vectors: random ones, single columns, and the extremes of each row."""
    columns = weight.shape[1]
    ends = [np.where((weight > 0) == up, high, low) for up in (False, True)]
    single = [code * np.eye(columns, dtype=np.int64) for code in (low, high)]
    return np.concatenate([rng.integers(low, high + 1, (20, columns)), *ends, *single])


@pytest.mark.parametrize("seed", range(60))
def test_a_graph_is_its_matrix(seed: int) -> None:
    weight, (low, high) = matrix(seed), RANGES[seed % len(RANGES)]
    graph = find(weight, [(low, high)] * weight.shape[1])
    x = codes(weight, low, high, np.random.default_rng(seed))
    nodes = values(graph, x)
    rows = [0 * x[:, 0] if n == NOTHING else ~nodes[n] if no else nodes[n] << s for n, s, no in graph.outputs]
    assert (np.stack(rows, axis=1) == x @ weight.T).all()
    assert len(graph.intervals) == len(nodes)
    for node, (low_value, high_value) in zip(nodes, graph.intervals, strict=True):
        assert low_value <= node.min()
        assert node.max() <= high_value
    for n, adder in enumerate(graph.adders, len(graph.inputs)):
        assert max(adder.a, adder.b, adder.c) < n
        assert min(adder.i, adder.j) == 0
        assert graph.depths[n] == 1 + max(graph.depths[node] for node in operands(adder))


@pytest.mark.parametrize("bits", [33, 58])
def test_weights_of_many_bits(bits: int) -> None:
    """Terms of a pair are up to 58 places apart."""
    rng = np.random.default_rng(bits)
    weight, x = rng.integers(-(2**bits), 2**bits, (6, 6)), rng.integers(0, 4, (10, 6))
    assert (find(weight, [(0, 3)] * 6).evaluate(x) == x @ weight.T).all()


def test_columns_have_their_own_ranges() -> None:
    graph = find(np.array([[1, -2]]), [(0, 3), (-1, 1)])
    assert graph.intervals[graph.outputs[0].node] == (-2, 5)


@pytest.mark.cases(6)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("consumer_ps", [None, 1200])
def test_operands_are_ready_when_they_are_used(seed: int, levels: int, consumer_ps: int | None) -> None:
    """In time for the clock, unless an adder is alone in its stage; all outputs in one cycle."""
    weight = matrix(seed)
    graph = find(weight, [(-8, 7)] * weight.shape[1])
    staged, first = schedule(graph, levels, consumer_ps), len(graph.inputs)
    outputs = {node for node, _, _ in graph.outputs if node != NOTHING}
    limit = LIMITS[levels]
    for n, adder in enumerate(graph.adders, first):
        for node in operands(adder):
            assert 0 <= staged.computed[node] <= staged.computed[n] <= staged.needed[node]
        if any(node >= first and staged.computed[node] == staged.computed[n] for node in operands(adder)):
            assert max(arrivals(staged, n)) <= limit
        if staged.needed[n] >= 0:
            assert staged.computed[n] <= staged.latency - (consumer_ps is None)
        if n in outputs and consumer_ps is not None and staged.computed[n] == staged.latency > 1:
            assert max(arrivals(staged, n)) + consumer_ps <= limit
    deepest = max((graph.depths[node] for node in outputs), default=0)
    assert staged.latency <= max(1, deepest)
    assert levels > 1 or staged.latency == max(1, deepest)
    assert all(staged.needed[node] == staged.latency for node in outputs)
    bits = [
        width(*ends) * max(0, b - a) for ends, a, b in zip(graph.intervals, staged.computed, staged.needed, strict=True)
    ]
    assert staged.registers == sum(bits)


@cache
def arrivals(staged: Pipeline, n: int) -> list[int]:
    """Arrival times of the bits of a node in picoseconds; a bit waits for all bits from which a carry can come."""
    graph, bits = staged.graph, width(*staged.graph.intervals[n])
    if n < len(graph.inputs):
        return [500] * bits
    adder = graph.adders[n - len(graph.inputs)]
    start, tables = carry_place(adder, graph.intervals), list[int]()
    for k in range(bits):
        times = [500]
        for node, shift in ((adder.a, adder.i), (adder.b, adder.j), (adder.c, adder.k)):
            if node != NOTHING and staged.computed[node] == staged.computed[n] and k >= shift:
                operand_times = arrivals(staged, node)
                times.append(operand_times[k - shift] if k - shift < len(operand_times) else operand_times[-1])
        three = 1250 + 620 * (k == start)
        tables.append(max(times) + ((three if adder.c != NOTHING else 1120) if k >= start else 0))
    carried = [[tables[m] + 600 + 30 * (k - m - 1) for m in range(start, k)] for k in range(bits)]
    return [max([tables[k] + 230 * (k >= start), *carried[k]]) for k in range(bits)]


@pytest.mark.parametrize(
    "limit, consumer_ps, producer_ps, cycles",
    [
        (4348, None, 0, 3),
        (4350, None, 0, 2),
        (6508, None, 0, 2),
        (6510, None, 0, 1),
        (4258, 1200, 0, 3),
        (4260, 1200, 0, 2),
        (7128, None, 620, 2),
        (7130, None, 620, 1),
    ],
)
def test_stages_have_the_adders_that_meet_the_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, consumer_ps: int | None, producer_ps: int, cycles: int
) -> None:
    """Sixteen bits: sums of two, three and three terms are ready after 2220, 4350 and 6510 ps, the last 3060 ps after
    registers."""
    graph = find(np.ones((1, 16), np.int64), [(0, 1)] * 16)
    monkeypatch.setattr(pipeline, "_PICOSECONDS", limit // 2)
    assert schedule.__wrapped__(graph, 2, consumer_ps, producer_ps).latency == cycles


def test_stages_are_as_short_as_their_number_allows() -> None:
    """Shorter stages would need more of them."""
    weight = np.random.default_rng(3).integers(-31, 32, (8, 24))
    shortest = schedule(find(weight, [(-128, 127)] * 24), 2)
    cycles = [
        pipeline._stages_of(shortest.graph, limit, None, 0)[0] for limit in (5500, shortest.limit, shortest.limit - 100)
    ]
    assert cycles[0] == cycles[1] == shortest.latency < cycles[2]
    assert shortest.limit < 5500


@pytest.mark.cases(8)
@pytest.mark.parametrize("limit", range(2300, 7600, 130))
def test_no_node_is_late_before_it_can_be_early(limit: int) -> None:
    """The latest cycle of a node is not before its earliest cycle."""
    weight = np.random.default_rng(3).integers(-31, 32, (8, 24))
    stages = pipeline._Stages(find(weight, [(-128, 127)] * 24), limit, None)
    computed, ready = stages.early()
    latency = max(stages.out((computed, ready), node) for node, _, _ in stages.graph.outputs)
    assert all(a <= b for a, b in zip(computed, stages.late(latency), strict=True))


def test_sums_of_three_terms_come_after_sums_of_two() -> None:
    """The third of four levels has sums of two terms if that suffices: for 54 terms, not for 55."""
    for terms, three in ((28, False), (54, False), (55, True), (81, True)):
        graph = find(np.ones((1, terms), np.int64), [(0, 3)] * terms)
        depths = [graph.depths[n] for n, adder in enumerate(graph.adders, terms) if adder.c != NOTHING]
        assert max(graph.depths) == 4
        assert (3 in depths) == three


def test_intervals_account_for_shared_codes() -> None:
    """7 a - 8 b + c from a - c and b - a: without the shared codes it would have one more bit."""
    nodes = Nodes([(0, 255)] * 3)
    first, second = nodes.add(Adder(2, 0, 0, 0, True)), nodes.add(Adder(0, 0, 1, 0, True))
    total = nodes.add(Adder(first, 0, second, 3, False))
    assert nodes.intervals[total] == (-2040, 2040)


@pytest.mark.parametrize("seed", range(12))
def test_wires_differ_from_sums_in_the_inverted_bits(seed: int) -> None:
    """The wires of all rows hold the sums, shifted up by half of their range, except for the inverted bits."""
    weight, rng = matrix(seed), np.random.default_rng(seed)
    graph = find(weight, [(-8, 7)] * weight.shape[1])
    x, bits = rng.integers(-8, 8, (40, weight.shape[1])), 48
    plain = replace(graph, outputs=tuple(Output(node, 0) for node, _, _ in graph.outputs)).evaluate(x)
    for row, (node, shift, _) in enumerate(graph.outputs):
        wires = np.zeros(len(x), np.int64)
        if node != NOTHING:
            ends = graph.intervals[node]
            sum_width, low = width(*ends), plain[:, row] % (1 << (width(*ends) - (ends[0] < 0)))
            top = (plain[:, row] >= 0).astype(np.int64)
            wires = low << shift
            for place in range(shift + sum_width - 1, bits if ends[0] < 0 else 0):
                wires += top << place
        flips = inverted_bits(graph, bits) >> (row * bits) & ((1 << bits) - 1)
        assert (wires ^ flips == (x @ weight.T)[:, row] % (1 << bits)).all()


def test_digits() -> None:
    """No form has fewer digits, compared with all forms of up to three digits at all relevant shifts."""
    terms = [sign << shift for shift in range(9) for sign in (-1, 1)]
    for value in range(-200, 201):
        nonzero = digits(value)
        assert sum(sign << shift for shift, sign in nonzero) == value
        assert len({shift for shift, _ in nonzero}) == len(nonzero)
        assert count_digits(np.array([value])) == len(nonzero)
        for fewer in range(min(len(nonzero), 3)):
            assert all(sum(chosen_terms) != value for chosen_terms in product(terms, repeat=fewer))
    assert digits(3) == [(0, 1), (1, 1)]
    assert digits(-7) == [(0, 1), (3, -1)]


def test_shared_sums_are_computed_once() -> None:
    """Eight rows of one sum, at several shifts and with both signs."""
    row = np.array([1, 1, -1, 2, 0, 4])
    graph = find(np.stack([row << shift for shift in range(4)] + [-row] * 4), [(0, 15)] * 6)
    assert len(graph.adders) == 4 + 1
    dense = np.random.default_rng(1).integers(-7, 8, (32, 32))
    assert len(find(dense, [(-8, 7)] * 32).adders) < 0.65 * (count_digits(dense) - 32)


@pytest.mark.sweep
def test_the_same_matrix_gives_the_same_graph() -> None:
    weight = np.random.default_rng(2).integers(-31, 32, (16, 24))
    first, second = (find(weight, [(0, 15)] * 24) for _ in range(2))
    assert (first.adders, first.outputs) == (second.adders, second.outputs)


def test_columns_are_processed_in_groups_if_there_are_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = np.random.default_rng(3).integers(-7, 8, (20, 40))
    x = np.random.default_rng(4).integers(-8, 8, (30, 40))
    monkeypatch.setattr(sharing, "_MOST_PAIRS", 3000)
    graph = find(weight, [(-8, 7)] * 40)
    assert (graph.evaluate(x) == x @ weight.T).all()


@pytest.mark.parametrize("seed", range(40))
def test_no_sum_is_narrower_than_its_terms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(-3, 4, (8, 9))
    ends = [(-int(low), int(high)) for low, high in rng.integers(0, 3, (9, 2))]
    graph = find(weight, ends)
    for n, adder in enumerate(graph.adders, len(graph.inputs)):
        for node, shift in ((adder.a, adder.i), (adder.b, adder.j), (adder.c, adder.k)):
            if node != NOTHING:
                assert shift + width(*graph.intervals[node]) <= width(*graph.intervals[n])


@pytest.mark.parametrize("terms, three", [(2, 0), (3, 1), (4, 0), (6, 1), (8, 3), (9, 4), (10, 1), (27, 13)])
def test_sums_of_three_terms_only_if_sums_of_two_are_too_deep(terms: int, three: int) -> None:
    """Sums of two fill the room of the smallest depth: in two levels, 9 terms leave no room, 4 terms enough."""
    graph = find(np.ones((1, terms), np.int64), [(0, 3)] * terms)
    assert sum(adder.c != NOTHING for adder in graph.adders) == three
    assert 3 ** max(graph.depths) >= terms > 3 ** (max(graph.depths) - 1)
    deeper = find(np.ones((1, terms), np.int64), [(0, 3)] * terms, 1)
    assert sum(adder.c != NOTHING for adder in deeper.adders) < max(three, 1)
    assert max(deeper.depths) <= max(graph.depths) + 1


def test_deep_sums_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sharing them would make the trees deeper and save hardly any LUT."""
    weight = np.random.default_rng(5).integers(-7, 8, (6, 24))
    graph = find(weight, [(0, 255)] * 24)
    monkeypatch.setattr(sharing, "_DEEPEST", 99)
    shared = find(weight, [(0, 255)] * 24)
    assert max(graph.depths) < max(shared.depths)
    assert graph.bits < 1.01 * shared.bits


def test_a_row_of_many_terms() -> None:
    """More terms than are compared at a time still get the smallest depth."""
    weight = np.random.default_rng(5).choice([-1, 1], (1, 100))
    graph = find(weight, [(0, 3)] * 100)
    x = np.random.default_rng(6).integers(0, 4, (9, 100))
    assert (graph.evaluate(x) == x @ weight.T).all()
    assert max(graph.depths) == 5


@pytest.mark.parametrize("seed", range(30))
def test_adders_add_only_constants_of_their_carries(seed: int) -> None:
    """A difference has its carry, or lacks 1 at its lowest bit; a sum has no constant, or 1: no other constants."""
    weight = matrix(seed)
    graph = find(weight, [RANGES[seed % 4]] * weight.shape[1])
    for a, i, _, j, minus, extra, c, k in graph.adders:
        carry_bit = sorted([i, j] if c == NOTHING else [i, j, k])[1]
        assert extra in ((0, -1, -1 << carry_bit) if minus else (0, 1, 1 << carry_bit))
        assert a != NOTHING or extra in (0, -1)
    assert all(shift == 0 for node, shift, inverted in graph.outputs if inverted)


@pytest.mark.parametrize("seed", range(4))
def test_few_carries(seed: int) -> None:
    """Few of many differences have a carry, and no row has an extra adder that inverts its sign."""
    weight = np.random.default_rng(seed).integers(-7, 8, (24, 32))
    graph = find(weight, [(-8, 7)] * 32)
    minus = sum(adder.minus for adder in graph.adders)
    carries = sum(adder.extra > 0 or (adder.minus and adder.extra == 0) for adder in graph.adders)
    assert minus > len(graph.adders) / 3
    assert carries < minus / 3
    assert sum(adder.a == NOTHING for adder in graph.adders) <= 2


def test_a_single_difference_keeps_its_carry() -> None:
    """Nothing else could add the missing 1; the negated row is inverted instead."""
    for row, carries in (([1, -1], 1), ([-2, 2], 1)):
        graph = find(np.array([row]), [(0, 7)] * 2)
        assert [adder.extra for adder in graph.adders] == [0] * carries
    graph = find(np.array([[-1, 0], [1, 0]]), [(0, 7)] * 2)
    assert [(adder.a, adder.minus, adder.extra) for adder in graph.adders] == [(NOTHING, True, 0)]
