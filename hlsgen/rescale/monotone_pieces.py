"""Cuts the inputs of a chain into pieces on which it is proven monotone, from what is known of each operation.

A composition of monotone functions is monotone. So only the operations that turn, jump or wrap matter: a piece is cut
where the value in front of such an operation passes the point at which it does. Up to that operation the piece is
monotone, so bisection finds the place.

Example: |x - 3| for codes x in 0..9. The value in front of Abs is x - 3, which is monotone, and Abs turns at 0. So the
pieces are 0..2 and 3..9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from hlsgen.ir import FloatKey, IntegerEncoding
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, minifloat_argument, minifloat_exponent
from hlsgen.ir.op_facts import Interval, decoding_direction, turning, wrapping_sum
from hlsgen.ir.ops import Elementwise, FloatQuant
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType

#: A function with more pieces than this is given up.
MAX_PIECES = 64
#: An integer sum that wraps more often than this is given up.
_MAX_WRAPS = 256

#: A condition on codes (n, sets), such as "the value is at least 0". It changes at most once in a monotone piece.
Side = Callable[[Array], Array]


def edges(f: StepFunction) -> Array | None:
    """The edges of pieces, int64 (pieces + 1, sets), ascending: f is monotone on edge[i] <= x < edge[i + 1].

    None if an operation is not known well enough, or there are more than MAX_PIECES pieces. A piece may be empty.
    Rounding and float operations with a finite constant are monotone. Pieces are cut where an activation turns, a
    value becomes NaN (0 times infinity), or an integer wraps. So a piece is NaN everywhere or nowhere.
    """
    found = np.stack([f.lo, f.hi + 1])
    if isinstance(f.source, FloatKey):
        inner = np.array([KEY_NEG_INF, KEY_POS_INF + 1])[:, None]
        found = _without_empty(np.concatenate([found[:1], np.clip(inner, f.lo, f.hi + 1), found[1:]]))
    parts: list[Callable[[Array], Iterator[Side] | None]] = []
    if isinstance(f.source, IntegerEncoding):
        type_ = IntType(int(f.lo.min()), int(f.hi.max()))
        if not decoding_direction(f.source, type_).monotone.all():
            parts.append(partial(_wraps, lambda codes: codes, f.source.offset, np.dtype(f.source.dtype)))
    parts += [partial(_sides, op, partial(f.before, position)) for position, op in enumerate((*f.ops, f.quantizer))]
    for part in parts:
        sides = part(found)
        if sides is None:
            return None
        for side in sides:
            found = _insert(f, found, side)
            if len(found) > MAX_PIECES + 1:
                return None
    return found


def _sides(op: Elementwise, values: Side, found: Array) -> Iterator[Side] | None:
    """The conditions at whose changes one operation on `values` cuts the pieces; None if these are not known."""
    x = _reached(values, found)
    turns = turning(op, x)
    if turns.known.all():
        return _crossings(values, turns.points)
    if isinstance(op, FloatQuant):
        return _binades(op, values)
    total = wrapping_sum(op, x.dtype)
    return None if total is None else _wraps(values, *total, found)


def _reached(values: Side, found: Array) -> Interval:
    """The range of the values in each set. In a monotone piece, all values lie between those at its ends."""
    ends = values(_ends(found))
    if ends.dtype.kind != "f":
        return Interval(ends.min(axis=0), ends.max(axis=0))
    infinity = ends.dtype.type(np.inf)
    low, high = (np.where(np.isnan(ends), limit, ends) for limit in (-infinity, infinity))
    return Interval(low.min(axis=0), high.max(axis=0))


def _ends(found: Array) -> Array:
    """The first and the last input of every piece. An empty piece gives an input of another one."""
    used = found[1:] > found[:-1]
    return np.concatenate([np.where(used, end, found[0]) for end in (found[:-1], found[1:] - 1)])


def _crossings(values: Side, turns: tuple[Array, ...]) -> Iterator[Side]:
    """The conditions that `values` are at or above each of the points `turns`."""

    def above(turn: Array, codes: Array) -> Array:
        return np.asarray(values(codes) >= turn)

    return (partial(above, turn) for turn in turns)


def _insert(f: StepFunction, found: Array, side: Side) -> Array:
    """The edges with a new one, found by bisection, in every piece where `side` changes."""
    low, high = found[:-1].copy(), found[1:].copy()
    start = side(np.minimum(low, f.hi))
    while (low < high).any():
        middle = np.minimum(low + ((high - low) >> 1), f.hi)
        same = side(middle) == start
        active = low < high
        high = np.where(active & ~same, middle, high)
        low = np.where(active & same, middle + 1, low)
    merged = np.empty((2 * len(found) - 1, found.shape[1]), np.int64)
    merged[::2], merged[1::2] = found, low
    return _without_empty(merged)


def _without_empty(found: Array) -> Array:
    """The edges without pieces that are empty in all sets."""
    used = (np.diff(found, axis=0) > 0).any(axis=1)
    return np.concatenate([found[:1], found[1:][used]])


def _wraps(values: Side, value: Array, dtype: np.dtype[np.integer], found: Array) -> Iterator[Side] | None:
    """The conditions that values + value has wrapped n times in that type; None if too often, or in 64 bits."""
    info = np.iinfo(dtype)
    if info.bits > 32:
        return None

    def number(codes: Array) -> Array:
        """How often the sum has wrapped."""
        return np.asarray((values(codes).astype(np.int64) + value.astype(np.int64) - int(info.min)) >> info.bits)

    def reached(crossing: int, codes: Array) -> Array:
        return number(codes) >= crossing

    both = number(_ends(found))
    first, last = int(both.min()), int(both.max())
    return (
        (partial(reached, crossing) for crossing in range(first + 1, last + 1)) if last - first < _MAX_WRAPS else None
    )


def _binades(op: FloatQuant, values: Side) -> Iterator[Side] | None:
    """The conditions that change where a minifloat changes its sign or its step, as only there it can fall.

    None without mantissa bits: then it can fall inside of every binade.
    """
    if not op.mantissa:
        return None
    top = max(int(np.frexp(op.largest)[1]) - op.minimum_exponent, 1) + 1

    def binade(codes: Array) -> Array:
        """1 for subnormal numbers and the lowest binade, 2, 3, ...; negative on the other side."""
        with np.errstate(all="ignore"):
            y = minifloat_argument(op, values(codes))
        exponent = np.minimum(minifloat_exponent(op, y) - op.minimum_exponent + 1, top)
        return np.asarray(np.where(y >= 0, exponent, -exponent))

    def reached(number: int, codes: Array) -> Array:
        return np.asarray(binade(codes) >= number)

    return (partial(reached, number) for number in range(1 - top, top + 1))
