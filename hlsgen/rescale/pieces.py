"""Where a chain of operations is monotone: proven by what is known of each operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hlsgen.activations import turning_points
from hlsgen.fixed import Array
from hlsgen.ir import Activation, Add, Elementwise, FloatBits, Mul, Whole
from hlsgen.rescale.step import StepFunction
from hlsgen.semantics import KEY_NEG_INF, KEY_POS_INF

#: Pieces of one function, before it is given up.
MAX_PIECES = 64


def edges(f: StepFunction) -> Array | None:
    """Ascending int64 (pieces + 1, sets): f is monotone on edge[i] <= x < edge[i + 1], or None.

    Rounding, and each float operation by a constant, is monotone, so their composition is. What can
    change direction or make a NaN (activations with turning points, products with 0 of infinity) or
    wrap (integers) splits a piece where the value in front of it crosses that point; the piece is
    monotone up to there, so the crossing is found by bisection. Pieces may be empty.
    """
    found = np.stack([f.lo, f.hi + 1])
    if isinstance(f.source, FloatBits):
        inner = [KEY_NEG_INF, KEY_NEG_INF + 1, KEY_POS_INF]
        found = np.concatenate([found[:1], np.broadcast_to(np.array(inner)[:, None], (3, f.sets)), found[1:]])
    elif isinstance(f.source, Whole):
        found = _split_wraps(f, found, 0, f.source.offset)
    for position, op in enumerate(f.ops):
        turns = _turns(op)
        if turns is None:
            return None
        for turn in turns:
            found = _split(f, found, position, np.full(f.sets, turn))
        if isinstance(op, Add | Mul) and op.value.dtype.kind in "iu":
            if isinstance(op, Mul):
                return None
            found = _split_wraps(f, found, position, op.value)
        if len(found) > MAX_PIECES + 1:
            return None
    return found


def _turns(op: Elementwise) -> tuple[float, ...] | None:
    if isinstance(op, Activation):
        return turning_points(op.kind, op.alpha, op.beta)
    if isinstance(op, Mul) and op.value.dtype.kind == "f" and (op.value == 0).any():
        return (float(np.nextafter(op.value.dtype.type(-np.inf), op.value.dtype.type(0))), np.inf)
    return ()


def _split(f: StepFunction, found: Array, position: int, turn: Array) -> Array:
    """Splits every piece where the value in front of operation `position` passes `turn` (sets,)."""

    def side(codes: Array) -> Array:
        x = f.before(position, np.clip(codes, f.lo, f.hi))
        return x.astype(np.float64) >= turn if x.dtype.kind == "f" else x.astype(np.int64) >= turn

    return _insert(found, side)


def _insert(found: Array, side: Callable[[Array], Array]) -> Array:
    """A new edge in every piece where `side`, which changes at most once in it, changes."""
    low, high = found[:-1].copy(), found[1:].copy()
    start = side(low)
    while (low < high).any():
        middle = low + ((high - low) >> 1)
        same = side(middle) == start
        active = low < high
        high = np.where(active & ~same, middle, high)
        low = np.where(active & same, middle + 1, low)
    merged = np.empty((2 * len(found) - 1, found.shape[1]), np.int64)
    merged[::2], merged[1::2] = found, np.minimum(low, found[1:])
    used = (np.diff(merged, axis=0) > 0).any(axis=1)
    return np.concatenate([merged[:1], merged[1:][used]])


def _split_wraps(f: StepFunction, found: Array, position: int, value: Array) -> Array:
    """Splits where x + value leaves the integer type: `position` 0 of the decoding, else of an Add."""
    first = position == 0 and isinstance(f.source, Whole) and value is f.source.offset
    dtype = np.dtype(f.source.dtype) if first and isinstance(f.source, Whole) else value.dtype
    info = np.iinfo(dtype)

    def number(codes: Array) -> Array:
        """How often the sum wraps."""
        inside = np.clip(codes, f.lo, f.hi)
        x = inside if first else f.before(position, inside).astype(np.int64)
        return np.asarray((x + value.astype(np.int64) - int(info.min)) >> info.bits)

    def reached(crossing: int, codes: Array) -> Array:
        return number(codes) >= crossing

    ends = [number(found[:-1]), number(np.maximum(found[1:] - 1, f.lo))]
    for crossing in range(int(min(e.min() for e in ends)) + 1, int(max(e.max() for e in ends)) + 1):
        found = _insert(found, partial(reached, crossing))
    return found
