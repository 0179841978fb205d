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
    """The graph with as few carries as are found. Rows are its outputs; those that are inverted were to be negative.

    Rows for which nothing is found get exact differences where they share them, and then nothing else.
    """
    uses, exact, again = _uses(graph), set[int](), set[int]()
    while True:
        found, wrong = _changed(graph, uses, exact)
        if not wrong:
            return found
        for row in wrong:
            own = {} if row in again else _offers(graph, graph.outputs[row], uses, set())
            alone = {len(graph.inputs) + n for sides in own.values() for nodes in sides for n in nodes}
            exact |= _below(graph, [row]) - alone
        graph, uses = _negated(graph, uses, [row for row in wrong if row in again])
        again.update(wrong)


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
    places = [carry_place(adder, ends) for adder in graph.adders]
    extra = [-1 << place if x.minus else 0 for x, place in zip(graph.adders, places, strict=True)]
    for node in exact:
        extra[node - first] = 0
    rows = [(_offers(graph, x, uses, exact), row, x) for row, x in enumerate(graph.outputs) if x.node != NOTHING]
    settled, wrong = dict[int, int](), set[int]()
    for own, row, output in sorted(rows, key=lambda x: sum(len(plus) + len(less) for plus, less in x[0].values())):
        below = sorted(_below(graph, [row]))
        now = settled.get(output.node, 0) + _constants(graph, extra, below, settled).get(output.node, 0)
        chosen = _chosen(-now - output.inverted, own)
        if chosen is None:
            chosen = _chosen(-now - output.inverted, _offers(graph, output, [0] * len(uses), exact | settled.keys()))
        if chosen is None:
            wrong.add(row)
        for n in chosen or ():
            extra[n] += 1 << places[n]
        settled |= _constants(graph, extra, below, settled)
    nodes = Nodes(graph.inputs)
    for adder, more in zip(graph.adders, extra, strict=True):
        nodes.add(adder._replace(extra=more))
    found = nodes.graph(graph.outputs)
    moved = {
        first + n
        for n, (x, place) in enumerate(zip(found.adders, places, strict=True))
        if x.extra and carry_place(x, found.intervals) != place
    }
    wrong |= {row for _, row, _ in rows if moved and moved & _below(graph, [row])}
    return found, sorted(wrong)


def _constants(graph: AdderGraph, extra: list[int], nodes: list[int], known: dict[int, int]) -> dict[int, int]:
    """What these nodes, in order, are if all codes are 0; those that are not `known` and are no inputs."""
    first, found = len(graph.inputs), dict[int, int]()

    def constant(node: int) -> int:
        return known[node] if node in known else found.get(node, 0)

    for node in nodes:
        if node not in known:
            adder = graph.adders[node - first]
            away = constant(adder.b) << (adder.j + 1) if adder.minus else 0
            found[node] = sum(constant(n) << shift for n, shift in adder.terms) - away + extra[node - first]
    return found


def _uses(graph: AdderGraph) -> list[int]:
    """How often each node is taken."""
    uses = [0] * len(graph.intervals)
    taken = [node for adder in graph.adders for node, _ in adder.terms]
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
            rest += [term for term, _ in graph.adders[node - first].terms]
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
            rest += [(term, shift + more, negative) for term, more in ((adder.a, adder.i), (adder.c, adder.k))]
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
