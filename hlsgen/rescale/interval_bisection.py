"""Finds the steps of functions that are not known to be monotone, such as x * Sigmoid(x), by interval arithmetic.

An interval of inputs gives an interval of values behind every operation. Where the codes of both ends of the last
interval are the same, all inputs have that code. Otherwise the inputs are halved (branch and bound). A single input
is evaluated exactly, so this ends, whatever the function does.

Example: code = round(x * x / 8) for x in -3..3. The inputs 1..3 give products in 1..9, quotients in 1/8..9/8
and codes 0..1, so they are halved. The inputs 1..2 give quotients in 1/8..1/2 and one code, 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import FloatKey, IntegerEncoding
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, apply, decode, join, quantize
from hlsgen.ir.op_facts import Interval, all_numbers, decoding_direction, tells_zeros_apart, turning
from hlsgen.ir.ops import Activation, Add, BinaryKind, BinaryOf, Compare, Elementwise, Max, Min, Mul, Relation, Where
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType

#: At most so many intervals at one time, and all together.
_MAX_OPEN, _MAX_ALL = 1 << 20, 1 << 22
#: Inputs of one evaluation.
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class _Range:
    """Bounds of the values of each interval of inputs, arrays (intervals,).

    Where `known`, all values lie in low..high and none is NaN. Elsewhere the bounds say nothing.
    """

    low: Array
    high: Array
    known: Array

    def where(self, known: Array) -> _Range:
        """The same bounds, no longer known where `known` is false."""
        return _Range(self.low, self.high, self.known & known)


def constant_intervals(f: StepFunction) -> tuple[Array, Array, Array] | str:
    """Intervals with one code each that together cover all inputs of all sets, in no order.

    Returns int64 (intervals,) each: the set, the first input, and the code. Text if an operation has no interval
    arithmetic here, or there are too many intervals.
    """
    if not _has_intervals(f):
        return "an operation of it has no intervals"
    ends = [(f.lo, f.hi)]
    if isinstance(f.source, FloatKey):
        # NaN, both infinities, and the numbers between them.
        cuts = [0, KEY_NEG_INF, KEY_NEG_INF + 1, KEY_POS_INF, KEY_POS_INF + 1]
        ends = [(np.maximum(f.lo, a), np.minimum(f.hi, b - 1)) for a, b in pairwise(cuts)]
    column = np.tile(np.arange(f.sets), len(ends))
    low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
    column, low, high = (part[low <= high] for part in (column, low, high))
    found: list[tuple[Array, Array, Array]] = []
    count = 0
    while len(column):
        count += len(column)
        if len(column) > _MAX_OPEN or count > _MAX_ALL:
            return f"it has too many steps, more than {_MAX_OPEN}"
        done, code = _codes(f, column, low, high)
        found.append((column[done], low[done], code[done]))
        column, low, high = column[~done], low[~done], high[~done]
        middle = low + ((high - low) >> 1)
        column = np.tile(column, 2)
        low, high = np.append(low, middle + 1), np.append(middle, high)
    sets_, starts, codes = (np.concatenate(part) for part in zip(*found, strict=True))
    return sets_, starts, codes


def _codes(f: StepFunction, column: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """bool (intervals,): whether the interval is proven to have one code; int64 (intervals,): that code."""
    done, codes = [], []
    for at in range(0, len(column), _CHUNK):
        part = slice(at, at + _CHUNK)
        one = f.take(column[part], low[part], high[part])
        x = _Range(decode(one.source, one.lo), decode(one.source, one.hi), np.ones(len(one.lo), np.bool_))
        if x.low.dtype.kind == "f":
            x = x.where(~(np.isnan(x.low) | np.isnan(x.high)))
        x = _chain(one.ops, x)
        first, last = (quantize(one.quantizer, end) for end in (x.low, x.high))
        single = one.lo == one.hi
        if isinstance(f.source, FloatKey):
            single |= one.hi < KEY_NEG_INF
        done.append((x.known & (first == last)) | single)
        codes.append(np.where(single, one.evaluate(one.lo), first))
    return np.concatenate(done), np.concatenate(codes)


def _has_intervals(f: StepFunction) -> bool:
    """Whether all operations of f have interval arithmetic: those on floats, and on integers that do not wrap."""
    type_ = IntType(int(f.lo.min()), int(f.hi.max()))
    if isinstance(f.source, IntegerEncoding) and not decoding_direction(f.source, type_).monotone.all():
        return False
    return _all_have_intervals((*f.ops, f.quantizer), decode(f.source, f.lo).dtype)


def _all_have_intervals(ops: tuple[Elementwise, ...], dtype: np.dtype[np.generic]) -> bool:
    """The same for a chain on values of that dtype."""
    x = np.zeros(1, dtype)
    for op in ops:
        after = apply(op, x)
        match op:
            case Activation("HardSwish"):
                own = x.dtype.kind == "f"
            case Compare():
                own = True
            case BinaryOf(_, chains) | Where(chains):
                own = all(_all_have_intervals(chain, x.dtype) for chain in chains) and after.dtype.kind in "fb"
            case _:
                own = bool(turning(op, all_numbers(x.dtype)).known.all())
        if not own:
            return False
        x = after[..., :1].ravel()
    return True


def _chain(ops: tuple[Elementwise, ...], x: _Range) -> _Range:
    """Bounds behind a chain of operations."""
    for op in ops:
        x = _after(op, x)
    return x


def _after(op: Elementwise, x: _Range) -> _Range:
    """Bounds behind one operation. A monotone one has its bounds at the ends; where it may turn, they are unknown."""
    match op:
        case Activation("HardSwish"):
            sixth, half, zero, one = (np.full(1, v, x.low.dtype) for v in (1 / 6, 0.5, 0, 1))
            return _after(BinaryOf(BinaryKind.MUL, ((), (Mul(sixth), Add(half), Max(zero), Min(one)))), x)
        case Compare(Relation.EQUAL, value) if x.low.dtype != np.bool_:
            return _Range((x.low == value) & (x.high == value), (x.low <= value) & (value <= x.high), x.known)
        case BinaryOf(kind, (left, right)):
            return _binary(kind, _chain(left, x), _chain(right, x))
        case Where((condition, yes, no)):
            return _where(_chain(condition, x), _chain(yes, x), _chain(no, x))
        case _:
            own = Interval(x.low, x.high)
            turns = turning(op, own)
            x = x.where(turns.known & ~turns.inside(own))
            if tells_zeros_apart(op):
                x = x.where((x.low > 0) | (x.high < 0))
            a, b = apply(op, x.low), apply(op, x.high)
            known = x.known if a.dtype.kind != "f" else x.known & ~(np.isnan(a) | np.isnan(b))
            return _Range(np.minimum(a, b), np.maximum(a, b), known)


def _binary(kind: BinaryKind, x: _Range, y: _Range) -> _Range:
    """Bounds of a sum, difference, product, quotient, maximum or minimum of two values."""
    known = x.known & y.known
    if kind is BinaryKind.DIV:
        known = known & ((y.low > 0) | (y.high < 0))
    if kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV):
        for end in (x.low, x.high, y.low, y.high):
            known = known & np.isfinite(end)
    match kind:
        case BinaryKind.ADD | BinaryKind.MAX | BinaryKind.MIN:
            return _Range(join(kind, x.low, y.low), join(kind, x.high, y.high), known)
        case BinaryKind.SUB:
            return _Range(join(kind, x.low, y.high), join(kind, x.high, y.low), known)
        case BinaryKind.MUL | BinaryKind.DIV:
            corners = np.stack([join(kind, a, b) for a in (x.low, x.high) for b in (y.low, y.high)])
            return _Range(corners.min(axis=0), corners.max(axis=0), known)
        case _:
            assert_never(kind)


def _where(condition: _Range, yes: _Range, no: _Range) -> _Range:
    """Bounds of a selection: of one operand where the condition is certain, else of both together."""
    always, never = condition.low, ~condition.high
    low = np.where(always, yes.low, np.where(never, no.low, np.minimum(yes.low, no.low)))
    high = np.where(always, yes.high, np.where(never, no.high, np.maximum(yes.high, no.high)))
    known = np.where(always, yes.known, np.where(never, no.known, yes.known & no.known))
    return _Range(low, high, condition.known & known)
