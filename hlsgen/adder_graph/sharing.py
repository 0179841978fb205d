"""Finds the graph of a matrix: pairs of terms that occur often in the sums of the rows become nodes, one after the other.

Rows are sums of digits of weights times inputs. The pair that saves most is made once and put in the place of all
its occurrences, at any shift and with either sign; then it can be part of pairs itself. What is left of a row is
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

#: Most digits of a matrix of which a graph is made.
MOST_DIGITS = 100_000
#: Pairs of terms that are counted in all; if there are more, only those of columns in the same group are.
_MOST_PAIRS = 800_000
#: Adders one behind the other in a sum that rows share: trees of deeper ones have more levels than they save tables.
_DEEPEST = 3
#: A term is node << _SHIFT_BITS | shift; so are the nodes of a pair, with its distance and sign below.
_SHIFT_BITS, _NODE_BITS = 6, 24
_SHIFTS, _NODES, _MIDDLE = (1 << _SHIFT_BITS) - 1, (1 << _NODE_BITS) - 1, 1 << _SHIFT_BITS


def find(weight: Array, inputs: Sequence[tuple[int, int]], more: int = 0) -> AdderGraph:
    """The graph of weight int64 (rows, columns); `inputs`: (least, greatest) code of every column.

    more: levels of adders that it may have beyond the fewest.
    """
    table = [[digits(value) for value in row] for row in weight.tolist()]
    nodes = Nodes(inputs)
    state = _Sharing(len(weight), nodes)
    for columns in _groups(table, len(inputs)):
        state.share(table, columns)
    depth = max([depth_of(terms, nodes) for terms in state.done], default=0) + more
    outputs = [sum_of(terms, nodes, depth) for terms in state.done]
    return without_carries(nodes.graph(outputs))


def _groups(table: list[list[list[tuple[int, int]]]], columns: int) -> list[range]:
    """Columns that are looked at together: evenly many."""
    counts = [sum(map(len, row)) for row in table]
    pairs = sum(count * count for count in counts) // 2
    number = min(columns, max(1, -(-pairs // _MOST_PAIRS)))
    ends = [columns * n // number for n in range(number + 1)]
    return [range(a, b) for a, b in itertools.pairwise(ends)]


class _Sharing:
    """Rows of terms, of which pairs become nodes.

    rows     terms of the columns that are looked at, with their signs
    done     (node, shift, sign) of each term that is left, of every row
    at       rows in which a node is
    counts   occurrences of each pair
    """

    def __init__(self, rows: int, nodes: Nodes) -> None:
        self.nodes = nodes
        self.done: list[list[tuple[int, int, int]]] = [[] for _ in range(rows)]
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
                for other, other_sign in terms[:n]:
                    pair = _pair(term, sign, other, other_sign)
                    counts[pair] = counts.get(pair, 0) + 1
        self.heap = [(self._rank(pair), pair) for pair, count in counts.items() if count > 1]
        heapq.heapify(self.heap)
        while self.heap:
            rank, pair = heapq.heappop(self.heap)
            if counts[pair] < 2 or self._deep(pair):
                continue
            now = self._rank(pair)
            if now > rank:
                heapq.heappush(self.heap, (now, pair))
                continue
            places = self._places(pair)
            counts[pair] = len(places)
            if len(places) > 1:
                self._replace(pair, places)
        for row, done in zip(self.rows, self.done, strict=True):
            done += [(term >> _SHIFT_BITS, term & _SHIFTS, sign) for term, sign in row.items()]

    def _rank(self, pair: int) -> int:
        """The smaller, the sooner a pair becomes a node: by count, and by the bits of a sum that are not copied."""
        overlap = self.overlaps.get(pair)
        if overlap is None:
            first, second, distance, _ = _parts(pair)
            low, high = max(0, distance), max(0, -distance)
            tops = low + width(*self.nodes.intervals[second]), high + width(*self.nodes.intervals[first])
            overlap = self.overlaps[pair] = max(1, 8 * (min(tops) - max(low, high)))
        return -self.counts[pair] * overlap

    def _deep(self, pair: int) -> bool:
        first, second, _, _ = _parts(pair)
        return max(self.nodes.depths[first], self.nodes.depths[second]) >= _DEEPEST

    def _places(self, pair: int) -> list[tuple[int, int, int]]:
        """(row, term, term) of occurrences that have no terms in common."""
        first, second, distance, differ = _parts(pair)
        found = []
        for r in sorted(self.at[first] & self.at[second]):
            row, taken = self.rows[r], set[int]()
            for term, sign in row.items():
                other = (second << _SHIFT_BITS) + (term & _SHIFTS) + distance
                if term >> _SHIFT_BITS != first or (term & _SHIFTS) + distance < 0 or taken & {term, other}:
                    continue
                if other != term and other in row and (row[other] != sign) == differ:
                    found.append((r, term, other))
                    taken |= {term, other}
        return found

    def _replace(self, pair: int, places: list[tuple[int, int, int]]) -> None:
        """Makes the pair a node, in the place of the two terms everywhere."""
        first, second, distance, differ = _parts(pair)
        # The operand that is not shifted comes first: then its low bits are those of a difference.
        if differ and distance < 0:
            adder, flip = Adder(second, 0, first, -distance, True), -1
        else:
            adder, flip = Adder(first, max(0, -distance), second, max(0, distance), differ), 1
        node, counts, grown = self.nodes.add(adder), self.counts, set[int]()
        for r, term, other in places:
            row = self.rows[r]
            sign, old = row[term] * flip, ((term, row.pop(term)), (other, row.pop(other)))
            new = node << _SHIFT_BITS | min(term & _SHIFTS, other & _SHIFTS)
            counts[pair] -= 1
            for rest, rest_sign in row.items():
                for gone, gone_sign in old:
                    counts[_pair(gone, gone_sign, rest, rest_sign)] -= 1
                made = _pair(new, sign, rest, rest_sign)
                counts[made] = counts.get(made, 0) + 1
                grown.add(made)
            row[new] = sign
            self.at.setdefault(node, set()).add(r)
        for made in grown:
            if counts[made] > 1:
                heapq.heappush(self.heap, (self._rank(made), made))


def _pair(term: int, sign: int, other: int, other_sign: int) -> int:
    """Two terms as a number that is the same at any shift and with both signs turned round."""
    if (term >> _SHIFT_BITS, term) > (other >> _SHIFT_BITS, other):
        term, other = other, term
    distance = (other & _SHIFTS) - (term & _SHIFTS) + _MIDDLE
    nodes = (term >> _SHIFT_BITS) << _NODE_BITS | other >> _SHIFT_BITS
    return nodes << (_SHIFT_BITS + 2) | distance << 1 | (sign != other_sign)


def _parts(pair: int) -> tuple[int, int, int, bool]:
    """(first node, second node, how much further the second is shifted, whether signs differ)."""
    nodes = pair >> (_SHIFT_BITS + 2)
    distance = (pair >> 1 & ((1 << (_SHIFT_BITS + 1)) - 1)) - _MIDDLE
    return nodes >> _NODE_BITS, nodes & _NODES, distance, bool(pair & 1)
