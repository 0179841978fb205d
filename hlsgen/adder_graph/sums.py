"""Sums of the terms that no other row shares: trees of sums of two and three terms with few LUTs.

A sum of three terms costs as many LUTs as two sums of two terms and is hardly slower than one. It is used if a tree
would otherwise be too deep. In a cycle it is better placed after another sum than before one, which would wait for its
lowest bit.
"""

from __future__ import annotations

import itertools
import operator
from typing import NamedTuple

from hlsgen.adder_graph.graph import NOTHING, Adder, Intervals, Nodes, Output, adder_bits, interval, width

#: Most terms whose pairs are compared: the shallowest and narrowest, if there are more.
_MOST_TERMS = 40
#: Number of pairs for which a third term is tried.
_MOST_PAIRS = 8


class _Term(NamedTuple):
    """sign * (node << shift)."""

    node: int
    shift: int
    sign: int


def depth_of(terms: list[tuple[int, int, int]], nodes: Nodes) -> int:
    """The smallest depth of a tree of terms (node, shift, sign)."""
    leaves, depth = sum(3 ** nodes.depths[node] for node, _, _ in terms), 0
    while 3**depth < leaves:
        depth += 1
    return depth


def sum_of(terms: list[tuple[int, int, int]], nodes: Nodes, depth: int) -> Output:
    """The output of the sum of terms (node, shift, sign). Adds the nodes that it needs, in a tree of at most `depth`.

    Each step sums the pair with the fewest LUTs among all pairs that leave room for the rest of the tree. If no pair
    does, it sums three terms.
    """
    depths, intervals = nodes.depths, nodes.intervals
    remaining = [_Term(*term) for term in terms]
    if not remaining:
        return Output(NOTHING, 0)
    prices: dict[tuple[_Term, ...], tuple[int, int]] = {}
    sizes = _sizes([depths[term.node] for term in remaining], depth)
    room = sizes[depth] - sum(sizes[depths[term.node]] for term in remaining)
    constant = sum(sign * nodes.lean[node] << shift for node, shift, sign in remaining)
    while len(remaining) > 1:
        if len(remaining) > _MOST_TERMS:
            remaining.sort(key=lambda term: (depths[term.node], width(*intervals[term.node]) + term.shift, term))
        chosen = _chosen(remaining[:_MOST_TERMS], depths, intervals, prices, room, sizes)
        room -= _growth(_depths(chosen, depths), sizes)
        for term in chosen:
            remaining.remove(term)
        adder, sign = _adder_of(*chosen)
        if adder.minus and adder.c == NOTHING and adder.i == adder.j and constant * sign < 0:
            adder, sign = Adder(adder.b, 0, adder.a, 0, True), -sign
        low = min(term.shift for term in chosen)
        if adder.minus:
            constant -= sign << low
        remaining.append(_Term(nodes.add(adder), low, sign))
    node, shift, sign = remaining[0]
    if sign < 0 and shift:
        return Output(nodes.add(Adder(NOTHING, 0, node, 0, True)), shift)
    return Output(node, shift, sign < 0)


def _sizes(depths: list[int], depth: int) -> list[int]:
    """Size of a term of each depth in a tree: the inputs below it, if all sums on a level have two, or three, terms.

    If cycles have two levels, the first level of each, from the third level on, has sums of two terms if the terms then
    fit.
    """
    levels = [3] * depth
    for level in range((depth - 2) | 1, 2, -2):
        tried = [*levels[: level - 1], 2, *levels[level:]]
        sizes = [1, *itertools.accumulate(tried, operator.mul)]
        if sum(sizes[term_depth] for term_depth in depths) <= sizes[depth]:
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

    def price(chosen: tuple[_Term, ...]) -> tuple[int, int]:
        cached = prices.get(chosen)
        if cached is None:
            cached = prices[chosen] = _price(chosen, intervals)
        return cached

    def rank(chosen: tuple[_Term, ...]) -> tuple[int, int, int]:
        return (*price(chosen), max(depths[term.node] for term in chosen))

    term_depths = [depths[term.node] for term in terms]
    # Whether a pair fits depends on its depths alone, which are few.
    fits = {(d, e): _growth((d, e), sizes) <= room for d in set(term_depths) for e in set(term_depths)}
    best_rank: tuple[int, int, int] | None = None
    best_pair: tuple[_Term, ...] = ()
    for m, (x, depth) in enumerate(zip(terms, term_depths, strict=True)):
        for y, other_depth in zip(terms[:m], term_depths, strict=False):
            if fits[depth, other_depth]:
                pair_rank = (*price((x, y)), depth if depth > other_depth else other_depth)
                if best_rank is None or pair_rank < best_rank:
                    best_rank, best_pair = pair_rank, (x, y)
    if best_pair:
        return best_pair
    pairs = [(x, y) for m, x in enumerate(terms) for y in terms[:m]]
    best = sorted(pairs, key=rank)[:_MOST_PAIRS]
    threes: list[tuple[_Term, ...]] = [(*pair, z) for pair in best for z in terms if z not in pair]
    # The three shallowest terms always fit.
    threes.append(tuple(sorted(terms, key=lambda term: depths[term.node])[:3]))
    return min((three for three in threes if 0 <= _growth(_depths(three, depths), sizes) <= room), key=rank)


def _depths(terms: tuple[_Term, ...], depths: list[int]) -> tuple[int, ...]:
    return tuple(depths[term.node] for term in terms)


def _growth(term_depths: tuple[int, ...], sizes: list[int]) -> int:
    """Room in a tree that is lost if terms of these depths are summed.

    The result is negative if the level of the sum has no sums of that many terms.
    """
    level = max(term_depths) + 1
    if level == len(sizes):
        return sizes[-1] + 1
    if len(term_depths) * sizes[level - 1] > sizes[level]:
        return -1
    return sizes[level] - sum(sizes[depth] for depth in term_depths)


def _adder_of(*terms: _Term) -> tuple[Adder, int]:
    """The adder of two or three terms, and its sign: the unshifted term is first, and at most one is subtracted."""
    low = min(term.shift for term in terms)
    total = sum(term.sign for term in terms)
    sign = (1 if total > 0 else -1) if total else max(term.sign for term in terms if term.shift == low)
    first, *remaining = sorted((term for term in terms if term.sign == sign), key=lambda term: term.shift)
    subtracted = [term for term in terms if term.sign != sign]
    second, *third = (*subtracted, *remaining)
    adder = Adder(first.node, first.shift - low, second.node, second.shift - low, bool(subtracted))
    return (adder._replace(c=third[0].node, k=third[0].shift - low) if third else adder), sign


def _price(terms: tuple[_Term, ...], intervals: Intervals) -> tuple[int, int]:
    """(LUTs with an addend for the width of the result, that width)."""
    adder = _adder_of(*terms)[0]
    ends = interval(adder, intervals)
    bits = width(*ends)
    return 2 * adder_bits(adder, intervals, ends) + bits, bits
