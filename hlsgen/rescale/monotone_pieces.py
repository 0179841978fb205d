"""Where a chain of operations is monotone: proven by what is known of each operation."""

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

#: Pieces of one function, before it is given up.
MAX_PIECES = 64
_MAX_WRAPS = 256

#: A condition on codes (n, sets) that changes at most once within a monotone piece.
Side = Callable[[Array], Array]


def edges(f: StepFunction) -> Array | None:
    """Ascending int64 (pieces + 1, sets): f is monotone on edge[i] <= x < edge[i + 1], or None.

    Rounding, and each float operation by a finite constant, is monotone, so their composition is. What
    can change direction or make a NaN (activations with turning points, products with 0 of infinity) or
    wrap (integers) splits a piece where the value in front of it crosses that point; the piece is
    monotone up to there, so the crossing is found by bisection. A piece is NaN everywhere or nowhere.
    Pieces may be empty.
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
    """Where to split because of one operation on `values`; None: it is not known."""
    x = _reached(values, found)
    turns = turning(op, x)
    if turns.known.all():
        return _crossings(values, turns.points)
    if isinstance(op, FloatQuant):
        return _binades(op, values)
    total = wrapping_sum(op, x.dtype)
    return None if total is None else _wraps(values, *total, found)


def _reached(values: Side, found: Array) -> Interval:
    """The values between the edges of each set. Those of a piece are between those at its ends."""
    ends = values(_ends(found))
    if ends.dtype.kind != "f":
        return Interval(ends.min(axis=0), ends.max(axis=0))
    infinity = ends.dtype.type(np.inf)
    low, high = (np.where(np.isnan(ends), limit, ends) for limit in (-infinity, infinity))
    return Interval(low.min(axis=0), high.max(axis=0))


def _ends(found: Array) -> Array:
    """The first and the last input of every piece; of an empty one, an input of another."""
    used = found[1:] > found[:-1]
    return np.concatenate([np.where(used, end, found[0]) for end in (found[:-1], found[1:] - 1)])


def _crossings(values: Side, turns: tuple[Array, ...]) -> Iterator[Side]:
    def above(turn: Array, codes: Array) -> Array:
        return np.asarray(values(codes) >= turn)

    return (partial(above, turn) for turn in turns)


def _insert(f: StepFunction, found: Array, side: Side) -> Array:
    """A new edge in every piece where `side` changes."""
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
    """Without pieces that are empty in all sets."""
    used = (np.diff(found, axis=0) > 0).any(axis=1)
    return np.concatenate([found[:1], found[1:][used]])


def _wraps(values: Side, value: Array, dtype: np.dtype[np.integer], found: Array) -> Iterator[Side] | None:
    """Where values + value wraps around in that integer type; None if it does so too often, or in 64 bits."""
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
    """Where the sign or the step of a minifloat changes, if that can make it fall.

    Without mantissa bits it can fall in every binade: not worth pieces.
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
