"""Omits the carry into the lowest bit of differences, which costs a LUT: a - b - 1 is a + ~b.

A node is then a linear form and a constant. In every row the constants must add up to 0. Hence a few of the adders that
only this row needs get a carry: sums that had none, or differences that get theirs back.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.adder_graph.graph import NOTHING, Adder, AdderGraph, Nodes, Output, carry_place

#: For each bit of a row, adders that can add a 1 at this bit, and adders that can subtract one.
_Offers = dict[int, tuple[list[int], list[int]]]


def without_carries(graph: AdderGraph) -> AdderGraph:
    """The graph with as few carries as are found. Its outputs are rows; inverted outputs were to be negative.

    Rows for which no choice is found get exact differences at shared nodes, and then everywhere.
    """
    uses, exact, retried = _uses(graph), set[int](), set[int]()
    while True:
        trial, wrong = _choose_carries(graph, uses, exact)
        if not wrong:
            return trial
        for row in wrong:
            offers = {} if row in retried else _offers(graph, graph.outputs[row], uses, set())
            unshared = {len(graph.inputs) + n for sides in offers.values() for nodes in sides for n in nodes}
            exact |= _below(graph, [row]) - unshared
        graph, uses = _negated(graph, uses, [row for row in wrong if row in retried])
        retried.update(wrong)


def _negated(graph: AdderGraph, uses: list[int], rows: Sequence[int]) -> tuple[AdderGraph, list[int]]:
    """The graph with an adder in place of each inverter of these rows."""
    nodes, outputs = Nodes(graph.inputs), list(graph.outputs)
    for adder in graph.adders:
        nodes.add(adder)
    for row in rows:
        if outputs[row].inverted:
            node = nodes.add(Adder(NOTHING, 0, outputs[row].node, 0, True))
            outputs[row] = Output(node, outputs[row].shift)
    return nodes.graph(outputs), uses + [2] * (len(nodes.intervals) - len(uses))


def _choose_carries(graph: AdderGraph, uses: list[int], exact: set[int]) -> tuple[AdderGraph, list[int]]:
    """The graph without carries except at the nodes `exact`, and the rows whose value is then wrong."""
    first, ends = len(graph.inputs), graph.intervals
    places = [carry_place(adder, ends) for adder in graph.adders]
    extra = [-1 << place if x.minus else 0 for x, place in zip(graph.adders, places, strict=True)]
    for node in exact:
        extra[node - first] = 0
    rows = [(_offers(graph, x, uses, exact), row, x) for row, x in enumerate(graph.outputs) if x.node != NOTHING]
    settled, wrong = dict[int, int](), set[int]()
    for offers, row, output in sorted(rows, key=lambda x: sum(len(plus) + len(less) for plus, less in x[0].values())):
        below = sorted(_below(graph, [row]))
        constant = settled.get(output.node, 0) + _constants(graph, extra, below, settled).get(output.node, 0)
        chosen = _chosen(-constant - output.inverted, offers)
        if chosen is None:
            chosen = _chosen(
                -constant - output.inverted, _offers(graph, output, [0] * len(uses), exact | settled.keys())
            )
        if chosen is None:
            wrong.add(row)
        for n in chosen or ():
            extra[n] += 1 << places[n]
        settled |= _constants(graph, extra, below, settled)
    nodes = Nodes(graph.inputs)
    for adder, carry in zip(graph.adders, extra, strict=True):
        nodes.add(adder._replace(extra=carry))
    result = nodes.graph(graph.outputs)
    moved = {
        first + n
        for n, (x, place) in enumerate(zip(result.adders, places, strict=True))
        if x.extra and carry_place(x, result.intervals) != place
    }
    wrong |= {row for _, row, _ in rows if moved and moved & _below(graph, [row])}
    return result, sorted(wrong)


def _constants(graph: AdderGraph, extra: list[int], nodes: list[int], known_values: dict[int, int]) -> dict[int, int]:
    """Values of these adders, in order, if all codes are 0, except the nodes in `known_values`."""
    first, values = len(graph.inputs), dict[int, int]()

    def constant(node: int) -> int:
        return known_values[node] if node in known_values else values.get(node, 0)

    for node in nodes:
        if node not in known_values:
            adder = graph.adders[node - first]
            subtracted = constant(adder.b) << (adder.j + 1) if adder.minus else 0
            values[node] = sum(constant(n) << shift for n, shift in adder.terms) - subtracted + extra[node - first]
    return values


def _uses(graph: AdderGraph) -> list[int]:
    """How often each node is used."""
    uses = [0] * len(graph.intervals)
    operands = [node for adder in graph.adders for node, _ in adder.terms]
    for node in (*operands, *(output.node for output in graph.outputs)):
        if node != NOTHING:
            uses[node] += 1
    return uses


def _below(graph: AdderGraph, rows: Sequence[int]) -> set[int]:
    """All adders of these rows."""
    first, adders = len(graph.inputs), set[int]()
    pending = [graph.outputs[row].node for row in rows]
    while pending:
        node = pending.pop()
        if node >= first and node not in adders:
            adders.add(node)
            pending += [term for term, _ in graph.adders[node - first].terms]
    return adders


def _offers(graph: AdderGraph, output: Output, uses: list[int], excluded: set[int]) -> _Offers:
    """Constants that adders can add to a row's output, for adders used once in this row only, and not `excluded`."""
    first, offers_of_node = len(graph.inputs), dict[int, list[tuple[int, bool]]]()
    pending = [(output.node, 0, False)]
    while pending:
        node, shift, negative = pending.pop()
        if node < first or uses[node] > 1:
            continue
        adder = graph.adders[node - first]
        if adder.a != NOTHING:
            pending += [
                (term, shift + term_shift, negative) for term, term_shift in ((adder.a, adder.i), (adder.c, adder.k))
            ]
            offers_of_node.setdefault(node, []).append((shift + carry_place(adder, graph.intervals), negative))
        pending.append((adder.b, shift + adder.j, negative != adder.minus))
    offers = _Offers()
    for node, offered in offers_of_node.items():
        if len(offered) == 1 and node not in excluded:
            offers.setdefault(offered[0][0], ([], []))[offered[0][1]].append(node - first)
    return offers


def _chosen(total: int, offers: _Offers) -> list[int] | None:
    """The fewest adders whose constants add up to `total`, or None if there are none."""
    states: dict[int, tuple[int, ...]] = {total: ()}
    for place in range(max(offers, default=-1) + 1):
        plus, less = offers.get(place, ((), ()))
        next_states: dict[int, tuple[int, ...]] = {}
        for remainder, chosen in states.items():
            for count in range(-len(less), len(plus) + 1):
                if (remainder - count) % 2 == 0:
                    extended = (*chosen, *(plus[:count] if count > 0 else less[:-count]))
                    carried = (remainder - count) // 2
                    if carried not in next_states or len(extended) < len(next_states[carried]):
                        next_states[carried] = extended
        states = next_states
    return list(states[0]) if 0 in states else None
