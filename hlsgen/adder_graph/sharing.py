"""Finds the adder graph of a matrix: pairs of terms that occur often in the sums of the rows become nodes, one by one.

Rows are sums of digits of weights times inputs. The pair that saves most is computed once and replaces all its
occurrences, at any shift and with either sign; then it can be part of pairs itself. The remaining terms of a row are
summed in a tree (`sums`). Greedy choice of pairs by count and overlap: Aksoy et al., Hosangadi et al.; weighting by
bits: Sun et al., arXiv 2507.04535.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence

from hlsgen.adder_graph.carries import without_carries
from hlsgen.adder_graph.graph import Adder, AdderGraph, Nodes, width
from hlsgen.adder_graph.signed_digits import digits
from hlsgen.adder_graph.sums import depth_of, sum_of
from hlsgen.numerics.fixed import Array

#: Most digits of a matrix that becomes a graph.
MOST_DIGITS = 100_000
#: Most pairs of terms that are counted; if there are more, only pairs of columns in the same group are counted.
_MOST_PAIRS = 800_000
#: Most adders in series in a sum that rows share: the extra levels of deeper sums cost more than the saved LUTs.
_DEEPEST = 3
#: A term is node << _SHIFT_BITS | shift. A pair is two nodes in the high bits, then its distance and sign.
_SHIFT_BITS, _NODE_BITS = 6, 24
_SHIFTS, _NODES, _MIDDLE = (1 << _SHIFT_BITS) - 1, (1 << _NODE_BITS) - 1, 1 << _SHIFT_BITS


def find(weight: Array, inputs: Sequence[tuple[int, int]], extra_levels: int = 0) -> AdderGraph:
    """The graph of weight int64 (rows, columns); `inputs`: (lowest, highest) code of every column.

    `extra_levels`: levels of adders that it may have above the minimum.
    """
    return without_carries(find_exact(weight, inputs, extra_levels))


def find_exact(weight: Array, inputs: Sequence[tuple[int, int]], extra_levels: int = 0) -> AdderGraph:
    """The same with exact differences. An inverted output is minus its row, in place of its inverse."""
    table = [[digits(value) for value in row] for row in weight.tolist()]
    nodes = Nodes(inputs)
    state = _Sharing(len(weight), nodes)
    for columns in _groups(table, len(inputs)):
        state.share(table, columns)
    depth = max([depth_of(terms, nodes) for terms in state.remaining_terms], default=0) + extra_levels
    outputs = [sum_of(terms, nodes, depth) for terms in state.remaining_terms]
    return nodes.graph(outputs)


def _groups(table: list[list[list[tuple[int, int]]]], columns: int) -> list[range]:
    """Groups of columns of equal size that are processed together."""
    counts = [sum(map(len, row)) for row in table]
    pairs = sum(count * count for count in counts) // 2
    number = min(columns, max(1, -(-pairs // _MOST_PAIRS)))
    ends = [columns * n // number for n in range(number + 1)]
    return [range(a, b) for a, b in itertools.pairwise(ends)]


class _Sharing:
    """Rows of terms, of which pairs become nodes.

    - `rows`: terms of the current columns, with their signs.
    - `remaining_terms`: (node, shift, sign) of each remaining term of every row.
    - `at`: rows that contain a node.
    - `counts`: occurrences of each pair.
    """

    def __init__(self, rows: int, nodes: Nodes) -> None:
        self.nodes = nodes
        self.remaining_terms: list[list[tuple[int, int, int]]] = [[] for _ in range(rows)]
        self.rows: list[dict[int, int]] = []
        self.at: dict[int, set[int]] = {}
        self.counts: dict[int, int] = {}
        self.overlaps: dict[int, int] = {}
        self.heap: list[tuple[int, int]] = []

    def share(self, table: list[list[list[tuple[int, int]]]], columns: Iterable[int]) -> None:
        """Adds the terms of these columns to the rows, with nodes for pairs of them that occur twice or more."""
        self.rows = [{c << _SHIFT_BITS | shift: sign for c in columns for shift, sign in row[c]} for row in table]
        self.at, self.counts, self.overlaps = {}, {}, {}
        counts = self.counts
        for r, row in enumerate(self.rows):
            terms = list(row.items())
            for n, (term, sign) in enumerate(terms):
                self.at.setdefault(term >> _SHIFT_BITS, set()).add(r)
                for earlier, earlier_sign in terms[:n]:
                    pair = _pair(term, sign, earlier, earlier_sign)
                    counts[pair] = counts.get(pair, 0) + 1
        self.heap = [(self._rank(pair), pair) for pair, count in counts.items() if count > 1]
        heapq.heapify(self.heap)
        while self.heap:
            rank, pair = heapq.heappop(self.heap)
            if counts[pair] < 2 or self._deep(pair):
                continue
            new_rank = self._rank(pair)
            if new_rank > rank:
                heapq.heappush(self.heap, (new_rank, pair))
                continue
            places = self._places(pair)
            counts[pair] = len(places)
            if len(places) > 1:
                self._replace(pair, places)
        for row, remaining_terms in zip(self.rows, self.remaining_terms, strict=True):
            remaining_terms += [(term >> _SHIFT_BITS, term & _SHIFTS, sign) for term, sign in row.items()]

    def _rank(self, pair: int) -> int:
        """Rank of a pair, the lowest first: by count, and by the bits of its sum that are not copied."""
        overlap = self.overlaps.get(pair)
        if overlap is None:
            first, second, distance, _ = _parts(pair)
            low, high = max(0, distance), max(0, -distance)
            tops = low + width(*self.nodes.intervals[second]), high + width(*self.nodes.intervals[first])
            overlap = self.overlaps[pair] = max(1, 8 * (min(tops) - max(low, high)))
        return -self.counts[pair] * overlap

    def _deep(self, pair: int) -> bool:
        """True if the pair would be too deep a node."""
        first, second, _, _ = _parts(pair)
        return max(self.nodes.depths[first], self.nodes.depths[second]) >= _DEEPEST

    def _places(self, pair: int) -> list[tuple[int, int, int]]:
        """(row, term, term) of occurrences that have no terms in common."""
        first, second, distance, differ = _parts(pair)
        occurrences = []
        for r in sorted(self.at[first] & self.at[second]):
            row, used = self.rows[r], set[int]()
            for term, sign in row.items():
                partner = (second << _SHIFT_BITS) + (term & _SHIFTS) + distance
                if term >> _SHIFT_BITS != first or (term & _SHIFTS) + distance < 0 or used & {term, partner}:
                    continue
                if partner != term and partner in row and (row[partner] != sign) == differ:
                    occurrences.append((r, term, partner))
                    used |= {term, partner}
        return occurrences

    def _replace(self, pair: int, places: list[tuple[int, int, int]]) -> None:
        """Makes the pair a node that replaces the two terms everywhere."""
        first, second, distance, differ = _parts(pair)
        # The unshifted operand comes first: then its low bits are the low bits of a difference.
        if differ and distance < 0:
            adder, flip = Adder(second, 0, first, -distance, True), -1
        else:
            adder, flip = Adder(first, max(0, -distance), second, max(0, distance), differ), 1
        node, counts, grown = self.nodes.add(adder), self.counts, set[int]()
        for r, term, partner in places:
            row = self.rows[r]
            sign, old = row[term] * flip, ((term, row.pop(term)), (partner, row.pop(partner)))
            new = node << _SHIFT_BITS | min(term & _SHIFTS, partner & _SHIFTS)
            counts[pair] -= 1
            for term_left, sign_left in row.items():
                for removed, removed_sign in old:
                    counts[_pair(removed, removed_sign, term_left, sign_left)] -= 1
                new_pair = _pair(new, sign, term_left, sign_left)
                counts[new_pair] = counts.get(new_pair, 0) + 1
                grown.add(new_pair)
            row[new] = sign
            self.at.setdefault(node, set()).add(r)
        for new_pair in grown:
            if counts[new_pair] > 1:
                heapq.heappush(self.heap, (self._rank(new_pair), new_pair))


def _pair(term: int, sign: int, second: int, second_sign: int) -> int:
    """A key of two terms that is the same at any shift, and with both signs inverted."""
    if (term >> _SHIFT_BITS, term) > (second >> _SHIFT_BITS, second):
        term, second = second, term
    distance = (second & _SHIFTS) - (term & _SHIFTS) + _MIDDLE
    nodes = (term >> _SHIFT_BITS) << _NODE_BITS | second >> _SHIFT_BITS
    return nodes << (_SHIFT_BITS + 2) | distance << 1 | (sign != second_sign)


def _parts(pair: int) -> tuple[int, int, int, bool]:
    """(first node, second node, additional shift of the second, True if the signs differ)."""
    nodes = pair >> (_SHIFT_BITS + 2)
    distance = (pair >> 1 & ((1 << (_SHIFT_BITS + 1)) - 1)) - _MIDDLE
    return nodes >> _NODE_BITS, nodes & _NODES, distance, bool(pair & 1)
