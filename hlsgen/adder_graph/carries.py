"""Leaves out the carry into the lowest bit of differences, which takes a table more: a - b - 1 is a + ~b.

A node then is a linear form and a constant. In every row the constants must add up to 0. So a few of the adders that
only this row needs get a carry: sums that had none, or differences that have theirs again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.adder_graph.graph import NOTHING, AdderGraph, Nodes, Output, carry_place

#: For each bit of a row, adders that can add a 1 there to it, and those that can take one away.
_Offers = dict[int, tuple[list[int], list[int]]]


def without_carries(graph: AdderGraph) -> AdderGraph:
    """The graph with as few carries as are found; its outputs are the same."""
    uses, exact = _uses(graph), set[int]()
    while True:
        found, wrong = _changed(graph, uses, exact)
        if not wrong:
            return found
        exact |= _below(graph, wrong)


def _changed(graph: AdderGraph, uses: list[int], exact: set[int]) -> tuple[AdderGraph, list[int]]:
    """The graph without carries but of nodes `exact`; and the rows that are another number so."""
    first, ends = len(graph.inputs), graph.intervals
    extra = [0] * len(graph.adders)
    for n, adder in enumerate(graph.adders):
        if adder.minus and first + n not in exact:
            extra[n] = -1 << carry_place(adder, ends)
    constants = graph.constants(extra)
    for output in graph.outputs:
        if output.node != NOTHING and constants[output.node]:
            for n in _chosen(-constants[output.node], _offers(graph, output, uses, exact)):
                extra[n] += 1 << carry_place(graph.adders[n], ends)
    nodes = Nodes(graph.inputs)
    for adder, more in zip(graph.adders, extra, strict=True):
        nodes.add(adder._replace(extra=more))
    found = AdderGraph(graph.inputs, tuple(nodes.adders), graph.outputs, tuple(nodes.intervals), graph.depths)
    constants = found.constants(extra)
    places = [carry_place(x, ends) == carry_place(x, found.intervals) for x in graph.adders]
    moved = {first + n for n, same in enumerate(places) if not same and extra[n]}
    wrong = [
        row
        for row, (node, _) in enumerate(graph.outputs)
        if node != NOTHING and (constants[node] or (moved and moved & _below(graph, [row])))
    ]
    return found, wrong


def _uses(graph: AdderGraph) -> list[int]:
    """How often each node is taken."""
    uses = [0] * len(graph.intervals)
    taken = [node for adder in graph.adders for node in (adder.a, adder.b)]
    for node in (*taken, *(node for node, _ in graph.outputs)):
        if node != NOTHING:
            uses[node] += 1
    return uses


def _below(graph: AdderGraph, rows: Sequence[int]) -> set[int]:
    """All adders that these rows are made of."""
    first, found = len(graph.inputs), set[int]()
    rest = [graph.outputs[row].node for row in rows]
    while rest:
        node = rest.pop()
        if node >= first and node not in found:
            found.add(node)
            rest += [graph.adders[node - first].a, graph.adders[node - first].b]
    return found


def _offers(graph: AdderGraph, output: Output, uses: list[int], exact: set[int]) -> _Offers:
    """What adders that this row alone needs can add to its node."""
    first, found = len(graph.inputs), _Offers()
    rest = [(output.node, 0, False)]
    while rest:
        node, shift, negative = rest.pop()
        if node < first or uses[node] > 1:
            continue
        adder = graph.adders[node - first]
        if adder.a != NOTHING:
            rest.append((adder.a, shift + adder.i, negative))
            if node not in exact:
                place = shift + carry_place(adder, graph.intervals)
                found.setdefault(place, ([], []))[negative].append(node - first)
        rest.append((adder.b, shift + adder.j, negative != adder.minus))
    return found


def _chosen(wanted: int, offers: _Offers) -> list[int]:
    """The fewest adders whose ones make `wanted`; none if there is no way."""
    states: dict[int, tuple[int, ...]] = {wanted: ()}
    for place in range(max(offers, default=-1) + 1):
        plus, less = offers.get(place, ((), ()))
        found: dict[int, tuple[int, ...]] = {}
        for rest, taken in states.items():
            for count in range(-len(less), len(plus) + 1):
                if (rest - count) % 2 == 0 and abs(count) <= 3:
                    now = (*taken, *(plus[:count] if count > 0 else less[:-count]))
                    after = (rest - count) // 2
                    if after not in found or len(now) < len(found[after]):
                        found[after] = now
        states = found
    return list(states.get(0, ()))
