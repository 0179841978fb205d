"""Leaves out the carry into the lowest bit of differences, which takes a table more: a - b - 1 is a + ~b.

A node then is a linear form and a constant. In every row the constants must add up to 0. So a few of the adders that
only this row needs get a carry: sums that had none, or differences that have theirs again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.adder_graph.graph import NOTHING, Adder, AdderGraph, Nodes, Output, carry_place

#: For each bit of a row, adders that can add a 1 there to it, and those that can take one away.
_Offers = dict[int, tuple[list[int], list[int]]]


def without_carries(graph: AdderGraph) -> AdderGraph:
    """The graph with as few carries as are found. Rows are its outputs; those that are inverted were to be negative."""
    uses, exact = _uses(graph), set[int]()
    while True:
        found, wrong = _changed(graph, uses, exact)
        if not wrong:
            return found
        exact |= _below(graph, wrong)
        graph, uses = _negated(graph, uses, wrong)


def _negated(graph: AdderGraph, uses: list[int], rows: Sequence[int]) -> tuple[AdderGraph, list[int]]:
    """The graph with an adder in the place of each inverter of these rows."""
    nodes, outputs = Nodes(graph.inputs), list(graph.outputs)
    for adder in graph.adders:
        nodes.add(adder)
    for row in rows:
        if outputs[row].inverted:
            node = nodes.add(Adder(NOTHING, 0, outputs[row].node, 0, True))
            outputs[row] = Output(node, outputs[row].shift)
    return nodes.graph(outputs), uses + [2] * (len(nodes.intervals) - len(uses))


def _changed(graph: AdderGraph, uses: list[int], exact: set[int]) -> tuple[AdderGraph, list[int]]:
    """The graph without carries but of nodes `exact`; and the rows that are another number so."""
    first, ends = len(graph.inputs), graph.intervals
    extra = [0] * len(graph.adders)
    for n, adder in enumerate(graph.adders):
        if adder.minus and first + n not in exact:
            extra[n] = -1 << carry_place(adder, ends)
    rows = [(_offers(graph, x, uses, exact), row, x) for row, x in enumerate(graph.outputs) if x.node != NOTHING]
    settled = set(exact)
    for own, row, output in sorted(rows, key=lambda x: sum(len(plus) + len(less) for plus, less in x[0].values())):
        wanted = -graph.constants(extra)[output.node] - output.inverted
        chosen = _chosen(wanted, own)
        if chosen is None:
            chosen = _chosen(wanted, _offers(graph, output, [0] * len(uses), settled)) or []
        for n in chosen:
            extra[n] += 1 << carry_place(graph.adders[n], ends)
        settled |= _below(graph, [row])
    nodes = Nodes(graph.inputs)
    for adder, more in zip(graph.adders, extra, strict=True):
        nodes.add(adder._replace(extra=more))
    found = nodes.graph(graph.outputs)
    constants = found.constants(extra)
    moved = {
        first + n
        for n, x in enumerate(graph.adders)
        if extra[n] and carry_place(x, ends) != carry_place(x, found.intervals)
    }
    wrong = [row for _, row, x in rows if constants[x.node] + x.inverted or (moved and moved & _below(graph, [row]))]
    return found, wrong


def _uses(graph: AdderGraph) -> list[int]:
    """How often each node is taken."""
    uses = [0] * len(graph.intervals)
    taken = [node for adder in graph.adders for node in (adder.a, adder.b)]
    for node in (*taken, *(output.node for output in graph.outputs)):
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


def _offers(graph: AdderGraph, output: Output, uses: list[int], taken: set[int]) -> _Offers:
    """What adders of a row that are used once, and that it has once, can add to its node; those `taken` cannot."""
    first, found = len(graph.inputs), dict[int, list[tuple[int, bool]]]()
    rest = [(output.node, 0, False)]
    while rest:
        node, shift, negative = rest.pop()
        if node < first or uses[node] > 1:
            continue
        adder = graph.adders[node - first]
        if adder.a != NOTHING:
            rest.append((adder.a, shift + adder.i, negative))
            found.setdefault(node, []).append((shift + carry_place(adder, graph.intervals), negative))
        rest.append((adder.b, shift + adder.j, negative != adder.minus))
    offers = _Offers()
    for node, ways in found.items():
        if len(ways) == 1 and node not in taken:
            offers.setdefault(ways[0][0], ([], []))[ways[0][1]].append(node - first)
    return offers


def _chosen(wanted: int, offers: _Offers) -> list[int] | None:
    """The fewest adders whose ones make `wanted`; None if there is no way."""
    states: dict[int, tuple[int, ...]] = {wanted: ()}
    for place in range(max(offers, default=-1) + 1):
        plus, less = offers.get(place, ((), ()))
        found: dict[int, tuple[int, ...]] = {}
        for rest, taken in states.items():
            for count in range(-len(less), len(plus) + 1):
                if (rest - count) % 2 == 0:
                    now = (*taken, *(plus[:count] if count > 0 else less[:-count]))
                    after = (rest - count) // 2
                    if after not in found or len(now) < len(found[after]):
                        found[after] = now
        states = found
    return list(states[0]) if 0 in states else None
