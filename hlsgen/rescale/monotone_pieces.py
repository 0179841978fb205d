"""Cuts the inputs of an operation chain into pieces on which the chain is proven monotone.

A composition of monotone functions is monotone. Therefore only the operations that turn, jump or wrap matter. The
inputs are cut where the value before such an operation passes its turning point, jump or wrap. Up to that operation the
piece is monotone, so bisection finds the cut.

Example: |x - 3| for codes x in 0..9. The value before Abs is x - 3, which is monotone, and Abs turns at 0. The pieces
are 0..2 and 3..9.
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

#: A function with more pieces than this is rejected.
MAX_PIECES = 64
#: An integer sum that wraps more often than this is rejected.
_MAX_WRAPS = 256

#: A condition on codes (n, sets), such as "the value is at least 0". It changes at most once in a monotone piece.
Side = Callable[[Array], Array]


def edges(f: StepFunction) -> Array | None:
    """The edges of pieces, int64 (pieces + 1, sets), ascending: f is monotone on edge[i] <= x < edge[i + 1].

    Returns None if an operation is not known well enough, or there are more than MAX_PIECES pieces. A piece may be
    empty. Rounding and float operations with a finite constant are monotone. Pieces are cut where an activation turns,
    a value becomes NaN (0 times infinity), or an integer wraps. Each piece is NaN everywhere or nowhere.
    """
    cuts = np.stack([f.lo, f.hi + 1])
    if isinstance(f.source, FloatKey):
        key_limits = np.array([KEY_NEG_INF, KEY_POS_INF + 1])[:, None]
        cuts = _without_empty(np.concatenate([cuts[:1], np.clip(key_limits, f.lo, f.hi + 1), cuts[1:]]))
    side_finders: list[Callable[[Array], Iterator[Side] | None]] = []
    if isinstance(f.source, IntegerEncoding):
        type_ = IntType(int(f.lo.min()), int(f.hi.max()))
        if not decoding_direction(f.source, type_).monotone.all():
            side_finders.append(partial(_wraps, lambda codes: codes, f.source.offset, np.dtype(f.source.dtype)))
    side_finders += [
        partial(_sides, op, partial(f.after_ops, position)) for position, op in enumerate((*f.ops, f.quantizer))
    ]
    for find_sides in side_finders:
        sides = find_sides(cuts)
        if sides is None:
            return None
        for side in sides:
            cuts = _insert(f, cuts, side)
            if len(cuts) > MAX_PIECES + 1:
                return None
    return cuts


def _sides(op: Elementwise, values: Side, cuts: Array) -> Iterator[Side] | None:
    """Conditions whose changes are the cuts that one operation on `values` needs, or None if they are not known."""
    x = _reached(values, cuts)
    turns = turning(op, x)
    if turns.complete.all():
        return _crossings(values, turns.points)
    if isinstance(op, FloatQuant):
        return _binades(op, values)
    wrapping_addend = wrapping_sum(op, x.dtype)
    return None if wrapping_addend is None else _wraps(values, *wrapping_addend, cuts)


def _reached(values: Side, cuts: Array) -> Interval:
    """The range of the values in each set: in a monotone piece, all values lie between the values at its ends."""
    ends = values(_ends(cuts))
    if ends.dtype.kind != "f":
        return Interval(ends.min(axis=0), ends.max(axis=0))
    infinity = ends.dtype.type(np.inf)
    low, high = (np.where(np.isnan(ends), limit, ends) for limit in (-infinity, infinity))
    return Interval(low.min(axis=0), high.max(axis=0))


def _ends(cuts: Array) -> Array:
    """The first and the last input of every piece. An empty piece gives an input of another one."""
    used = cuts[1:] > cuts[:-1]
    return np.concatenate([np.where(used, end, cuts[0]) for end in (cuts[:-1], cuts[1:] - 1)])


def _crossings(values: Side, turns: tuple[Array, ...]) -> Iterator[Side]:
    """Conditions that `values` are at or above each of the points `turns`."""

    def above(turn: Array, codes: Array) -> Array:
        return np.asarray(values(codes) >= turn)

    return (partial(above, turn) for turn in turns)


def _insert(f: StepFunction, cuts: Array, side: Side) -> Array:
    """`cuts` with a new edge, found by bisection, in every piece where `side` changes."""
    low, high = cuts[:-1].copy(), cuts[1:].copy()
    start = side(np.minimum(low, f.hi))
    while (low < high).any():
        middle = np.minimum(low + ((high - low) >> 1), f.hi)
        unchanged = side(middle) == start
        active = low < high
        high = np.where(active & ~unchanged, middle, high)
        low = np.where(active & unchanged, middle + 1, low)
    merged = np.empty((2 * len(cuts) - 1, cuts.shape[1]), np.int64)
    merged[::2], merged[1::2] = cuts, low
    return _without_empty(merged)


def _without_empty(cuts: Array) -> Array:
    """`cuts` without the pieces that are empty in all sets."""
    used = (np.diff(cuts, axis=0) > 0).any(axis=1)
    return np.concatenate([cuts[:1], cuts[1:][used]])


def _wraps(values: Side, addend: Array, dtype: np.dtype[np.integer], cuts: Array) -> Iterator[Side] | None:
    """Conditions that values + addend has wrapped n times in that type, or None if too often, or in 64 bits."""
    info = np.iinfo(dtype)
    if info.bits > 32:
        return None

    def wrap_count(codes: Array) -> Array:
        """How often the sum has wrapped."""
        return np.asarray((values(codes).astype(np.int64) + addend.astype(np.int64) - int(info.min)) >> info.bits)

    def reached(crossing: int, codes: Array) -> Array:
        return wrap_count(codes) >= crossing

    end_counts = wrap_count(_ends(cuts))
    first, last = int(end_counts.min()), int(end_counts.max())
    return (
        (partial(reached, crossing) for crossing in range(first + 1, last + 1)) if last - first < _MAX_WRAPS else None
    )


def _binades(op: FloatQuant, values: Side) -> Iterator[Side] | None:
    """Conditions that change where a minifloat changes its sign or its step, the only places where it can fall.

    Returns None without mantissa bits: then it can fall inside every binade.
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
