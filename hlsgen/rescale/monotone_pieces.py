"""Where a chain of operations is monotone: proven by what is known of each operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import FloatKey, IntegerEncoding
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, minifloat_argument, minifloat_exponent
from hlsgen.ir.ops import (
    Activation,
    Add,
    BinaryOf,
    Bipolar,
    Cast,
    Compare,
    Constant,
    Dequantize,
    Div,
    Elementwise,
    FixedAdd,
    FloatQuant,
    Fma,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    QuantizeLinear,
    Requantize,
    SignedBit,
    Slope,
    Trunc,
    Where,
)
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.activations import turning_points
from hlsgen.numerics.fixed import Array, Rounding

#: Pieces of one function, before it is given up.
MAX_PIECES = 64
_MAX_WRAPS = 256

#: Smallest finite number of all float types, and what is not reached by the others.
_LOWEST, _INF = float(np.finfo(np.float64).min), float("inf")
#: Minifloats of at most so many mantissa bits are monotone when rounded to nearest, see `_binades`.
_SAFE_MANTISSA = 16

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
    if isinstance(f.source, IntegerEncoding) and np.dtype(f.source.dtype).kind in "iu":
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
    dtype = values(found[0]).dtype
    match op:
        case Activation(kind, alpha, beta):
            turns = turning_points(kind, alpha, beta, dtype)
            return None if turns is None else _crossings(values, turns)
        case Mul(value):
            return _factor(values, value) if value.dtype.kind == "f" else None
        case Slope(value):
            return _slope(values, value) if np.isfinite(value).all() else None
        case Fma(factor, value):
            return _factor(values, factor) if np.isfinite(value).all() else None
        case Add(value):
            if value.dtype.kind != "f":
                return _wraps(values, value, value.dtype, found)
            return iter(()) if np.isfinite(value).all() else None
        case Div(value):
            return iter(()) if value.dtype.kind == "f" and np.isfinite(value).all() and value.all() else None
        case Cast(kind):
            if np.dtype(kind).kind == "f":
                return iter(())
            return None if dtype.kind == "f" else _wraps(values, np.zeros(1, np.int64), np.dtype(kind), found)
        case FloatQuant():
            return _binades(op, values)
        case Pair() | FixedAdd() | BinaryOf() | Where() | Compare():
            return None
        case Constant():
            return iter(())
        case Max() | Min() | Dequantize():
            return iter(())
        case IntQuant() | Bipolar() | SignedBit() | Trunc() | MultiThreshold() | QuantizeLinear() | Requantize():
            return iter(())
        case _:
            assert_never(op)


def _factor(values: Side, factor: Array) -> Iterator[Side] | None:
    if not np.isfinite(factor).all():
        return None
    return _crossings(values, (_LOWEST, _INF) if (factor == 0).any() else ())


def _slope(values: Side, value: Array) -> Iterator[Side]:
    """A slope of 0 makes NaN of an infinity; a negative one turns at 0."""
    turns = (*((_LOWEST,) if (value == 0).any() else ()), *((0.0,) if (value < 0).any() else ()))
    return _crossings(values, turns)


def _crossings(values: Side, turns: tuple[float, ...]) -> Iterator[Side]:
    def above(turn: float, codes: Array) -> Array:
        return np.asarray(values(codes) >= np.float64(turn))

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
    """Where values + value wraps around in that integer type; None if it does so too often, or may at all in 64 bits."""
    info = np.iinfo(dtype)
    if info.bits > 32:
        ends = values(np.where(found[1:] > found[:-1], found[1:] - 1, found[0])), values(found[:-1])
        widest = max(int(np.abs(x.astype(np.float64)).max()) for x in (*ends, value))
        return iter(()) if widest < 1 << 52 else None

    def number(codes: Array) -> Array:
        """How often the sum has wrapped."""
        return np.asarray((values(codes).astype(np.int64) + value.astype(np.int64) - int(info.min)) >> info.bits)

    def reached(crossing: int, codes: Array) -> Array:
        return number(codes) >= crossing

    used = found[1:] > found[:-1]
    both = np.concatenate([number(np.where(used, end, found[0])) for end in (found[:-1], found[1:] - 1)])
    first, last = int(both.min()), int(both.max())
    return (
        (partial(reached, crossing) for crossing in range(first + 1, last + 1)) if last - first < _MAX_WRAPS else None
    )


def _binades(op: FloatQuant, values: Side) -> Iterator[Side] | None:
    """Where the sign or the step of a minifloat changes, if that can make it fall.

    A number just below 2^k may have the step of the binade above, see `minifloat_exponent`: its
    distance to 2^k is then below 2^(k - 17), since the logarithm is k - d with d at most half a unit in
    the last place of |k| < 2^8 (2^11 in float64). Nearest rounding to 16 bits or fewer gives 2^k for it.
    Rounding away from zero is safe with any steps: a coarse grid is part of the fine one. Rounding
    towards zero gives 2^k - 2^(k - mantissa), without mantissa bits 0 in every binade: not worth pieces.
    """
    nearest = op.mode in (Rounding.ROUND, Rounding.HALF_UP, Rounding.HALF_DOWN) and op.mantissa <= _SAFE_MANTISSA
    if nearest or op.mode == Rounding.UP:
        return iter(())
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
