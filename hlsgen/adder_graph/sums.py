"""Sums of the terms that no other row shares: trees with few tables, of two and three terms at a time.

Three terms at once take the tables of two sums and hardly more time than one. So they are where a tree would be too deep,
and rather behind a sum than in front of one in the same cycle, which waits for their lowest bit.
"""

from __future__ import annotations

import itertools
import operator
from typing import NamedTuple

from hlsgen.adder_graph.graph import NOTHING, Adder, Intervals, Nodes, Output, adder_bits, interval, width

#: Terms of which pairs are compared: the shallowest and narrowest, if there are more.
_MOST_TERMS = 40
#: Pairs to which a third term is looked for.
_MOST_PAIRS = 8


class _Term(NamedTuple):
    """sign * (node << shift)."""

    node: int
    shift: int
    sign: int


def depth_of(terms: list[tuple[int, int, int]], nodes: Nodes) -> int:
    """The least depth of a tree of terms (node, shift, sign)."""
    taken, depth = sum(3 ** nodes.depths[node] for node, _, _ in terms), 0
    while 3**depth < taken:
        depth += 1
    return depth


def sum_of(terms: list[tuple[int, int, int]], nodes: Nodes, depth: int) -> Output:
    """Where the sum of terms (node, shift, sign) is. Nodes that it needs are added, in a tree of at most `depth`.

    Of all pairs that leave room for the rest of the tree the one of the fewest tables comes next, else three terms.
    """
    depths, intervals = nodes.depths, nodes.intervals
    rest = [_Term(*term) for term in terms]
    if not rest:
        return Output(NOTHING, 0)
    prices: dict[tuple[_Term, ...], tuple[int, int]] = {}
    sizes = _sizes([depths[term.node] for term in rest], depth)
    room = sizes[depth] - sum(sizes[depths[term.node]] for term in rest)
    constant = sum(sign * nodes.lean[node] << shift for node, shift, sign in rest)
    while len(rest) > 1:
        if len(rest) > _MOST_TERMS:
            rest.sort(key=lambda term: (depths[term.node], width(*intervals[term.node]) + term.shift, term))
        chosen = _chosen(rest[:_MOST_TERMS], depths, intervals, prices, room, sizes)
        room -= _growth(chosen, depths, sizes)
        for term in chosen:
            rest.remove(term)
        adder, sign = _joined(*chosen)
        if adder.minus and adder.c == NOTHING and adder.i == adder.j and constant * sign < 0:
            adder, sign = Adder(adder.b, 0, adder.a, 0, True), -sign
        low = min(term.shift for term in chosen)
        if adder.minus:
            constant -= sign << low
        rest.append(_Term(nodes.add(adder), low, sign))
    node, shift, sign = rest[0]
    if sign < 0 and shift:
        return Output(nodes.add(Adder(NOTHING, 0, node, 0, True)), shift)
    return Output(node, shift, sign < 0)


def _sizes(depths: list[int], depth: int) -> list[int]:
    """Room that a term of each depth takes in a tree: of the inputs below it, if all sums on a level are of two, or of three.

    With cycles of two levels the first one of each has sums of two, from the third level on, where the terms fit then.
    """
    levels = [3] * depth
    for level in range((depth - 2) | 1, 2, -2):
        tried = [*levels[: level - 1], 2, *levels[level:]]
        sizes = [1, *itertools.accumulate(tried, operator.mul)]
        if sum(sizes[own] for own in depths) <= sizes[depth]:
            levels = tried
    return [1, *itertools.accumulate(levels, operator.mul)]


def _chosen(
    terms: list[_Term],
    depths: list[int],
    intervals: Intervals,
    prices: dict[tuple[_Term, ...], tuple[int, int]],
    room: int,
    sizes: list[int],
) -> tuple[_Term, ...]:
    """The terms that are summed next."""

    def rank(chosen: tuple[_Term, ...]) -> tuple[int, int, int]:
        price = prices.get(chosen)
        if price is None:
            price = prices[chosen] = _price(chosen, intervals)
        return (*price, max(depths[term.node] for term in chosen))

    pairs = [(x, y) for m, x in enumerate(terms) for y in terms[:m]]
    fitting = [pair for pair in pairs if _growth(pair, depths, sizes) <= room]
    if fitting:
        return min(fitting, key=rank)
    best = sorted(pairs, key=rank)[:_MOST_PAIRS]
    threes: list[tuple[_Term, ...]] = [(*pair, z) for pair in best for z in terms if z not in pair]
    # Of the least deep terms three always fit.
    threes.append(tuple(sorted(terms, key=lambda term: depths[term.node])[:3]))
    return min((three for three in threes if 0 <= _growth(three, depths, sizes) <= room), key=rank)


def _growth(terms: tuple[_Term, ...], depths: list[int], sizes: list[int]) -> int:
    """Room in a tree that is lost if these terms are summed; less than nothing if its level has no sums of so many."""
    own = [depths[term.node] for term in terms]
    level = max(own) + 1
    if level == len(sizes):
        return sizes[-1] + 1
    if len(terms) * sizes[level - 1] > sizes[level]:
        return -1
    return sizes[level] - sum(sizes[depth] for depth in own)


def _joined(*terms: _Term) -> tuple[Adder, int]:
    """The sum of two or three terms, and its sign: the term that is not shifted comes first, or at most one is taken away."""
    low = min(term.shift for term in terms)
    total = sum(term.sign for term in terms)
    sign = (1 if total > 0 else -1) if total else max(term.sign for term in terms if term.shift == low)
    first, *more = sorted((term for term in terms if term.sign == sign), key=lambda term: term.shift)
    away = [term for term in terms if term.sign != sign]
    second, *third = (*away, *more)
    adder = Adder(first.node, first.shift - low, second.node, second.shift - low, bool(away))
    return (adder._replace(c=third[0].node, k=third[0].shift - low) if third else adder), sign


def _price(terms: tuple[_Term, ...], intervals: Intervals) -> tuple[int, int]:
    """Tables with something for the width of the result, and that width."""
    adder = _joined(*terms)[0]
    ends = interval(adder, intervals)
    bits = width(*ends)
    return 2 * adder_bits(adder, intervals, ends) + bits, bits
