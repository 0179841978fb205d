"""Sums of the terms that no other row shares: trees with few tables and of the least depth."""

from __future__ import annotations

from typing import NamedTuple

from hlsgen.adder_graph.graph import NOTHING, Adder, Nodes, Output, adder_bits, interval, width

#: Terms of which pairs are compared: the shallowest and narrowest, if there are more.
_MOST_TERMS = 40


class _Term(NamedTuple):
    """sign * (node << shift)."""

    node: int
    shift: int
    sign: int


def sum_of(terms: list[tuple[int, int, int]], nodes: Nodes) -> Output:
    """Where the sum of terms (node, shift, sign) is. Nodes that it needs are added.

    Of all pairs whose sum leaves the tree as shallow as it can be, the one of the fewest tables comes next.
    """
    depths, intervals = nodes.depths, nodes.intervals
    rest = [_Term(*term) for term in terms]
    prices: dict[tuple[_Term, _Term], tuple[int, int]] = {}
    if not rest:
        return Output(NOTHING, 0)
    room = 1 << (sum(1 << depths[term.node] for term in rest) - 1).bit_length()
    taken = sum(1 << depths[term.node] for term in rest)
    constant = sum(sign * nodes.lean[node] << shift for node, shift, sign in rest)
    while len(rest) > 1:
        best: tuple[tuple[int, int, int], int, int, int] | None = None
        if len(rest) > _MOST_TERMS:
            rest.sort(key=lambda term: (depths[term.node], width(*intervals[term.node]) + term.shift, term))
        for m, x in enumerate(rest[:_MOST_TERMS]):
            for n in range(m):
                y = rest[n]
                dx, dy = depths[x.node], depths[y.node]
                grown = taken + (2 << max(dx, dy)) - (1 << dx) - (1 << dy)
                if grown <= room:
                    price = prices.get((x, y))
                    if price is None:
                        price = prices[x, y] = _price(x, y, intervals)
                    rank = (*price, max(dx, dy))
                    if best is None or rank < best[0]:
                        best = rank, m, n, grown
        assert best is not None
        _, m, n, taken = best
        x, y = rest.pop(m), rest.pop(n)
        adder, sign = _joined(x, y)
        if adder.minus and adder.i == adder.j and constant * sign < 0:
            adder, sign = Adder(adder.b, 0, adder.a, 0, True), -sign
        if adder.minus:
            constant -= sign << min(x.shift, y.shift)
        rest.append(_Term(nodes.add(adder), min(x.shift, y.shift), sign))
    node, shift, sign = rest[0]
    if sign < 0 and shift:
        return Output(nodes.add(Adder(NOTHING, 0, node, 0, True)), shift)
    return Output(node, shift, sign < 0)


def _joined(x: _Term, y: _Term) -> tuple[Adder, int]:
    """The sum of two terms, and its sign: of a difference, the operand that is not shifted comes first."""
    low = min(x.shift, y.shift)
    if x.sign != y.sign and (y.shift < x.shift or (y.shift == x.shift and y.sign > 0)):
        x, y = y, x
    return Adder(x.node, x.shift - low, y.node, y.shift - low, x.sign != y.sign), x.sign


def _price(x: _Term, y: _Term, intervals: list[tuple[int, int]]) -> tuple[int, int]:
    """Tables with something for the width of the result, and that width."""
    adder = _joined(x, y)[0]
    a, b = intervals[adder.a], intervals[adder.b]
    ends = interval(adder, a, b)
    bits = width(*ends)
    return 2 * adder_bits(adder, a, b, ends) + bits, bits
