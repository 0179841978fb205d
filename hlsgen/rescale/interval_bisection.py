"""Finds the steps of functions not known to be monotone, such as x * Sigmoid(x), by interval arithmetic.

An interval of inputs gives an interval of values after every operation. If the codes of both ends of the last interval
are equal, all inputs have that code. Otherwise the inputs are halved (branch and bound). A single input is evaluated
exactly, so the search always ends.

Example: code = round(x * x / 8) for x in -3..3. The inputs 1..3 give products in 1..9, quotients in 1/8..9/8 and codes
0..1, so they are halved. The inputs 1..2 give quotients in 1/8..1/2 and one code, 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import FloatKey, IntegerEncoding
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, apply, apply_binary, decode, quantize
from hlsgen.ir.op_facts import Interval, all_numbers, decoding_direction, distinguishes_zeros, range_of, turning
from hlsgen.ir.ops import Activation, Add, BinaryKind, BinaryOf, Compare, Elementwise, Max, Min, Mul, Relation, Where
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType

#: At most this many intervals at one time, and in total.
_MAX_OPEN, _MAX_ALL = 1 << 20, 1 << 22
#: Inputs of one evaluation.
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class _Range:
    """Bounds of the values of each interval of inputs, arrays (intervals,).

    If `valid`, all values lie in low..high and none is NaN. Otherwise the bounds say nothing.
    """

    low: Array
    high: Array
    valid: Array

    def limited_to(self, mask: Array) -> _Range:
        """The same bounds, invalid wherever `mask` is false."""
        return _Range(self.low, self.high, self.valid & mask)


def constant_intervals(f: StepFunction) -> tuple[Array, Array, Array] | str:
    """Intervals with one code each that together cover all inputs of all sets, in no order.

    Returns int64 (intervals,) each: the set, the first input, and the code. Returns text if an operation has no
    interval arithmetic here, or there are too many intervals.
    """
    if not _has_intervals(f):
        return "interval arithmetic does not cover one of its operations"
    ends = [(f.lo, f.hi)]
    if isinstance(f.source, FloatKey):
        # NaN, both infinities, and the numbers between them.
        cuts = [0, KEY_NEG_INF, KEY_NEG_INF + 1, KEY_POS_INF, KEY_POS_INF + 1]
        ends = [(np.maximum(f.lo, a), np.minimum(f.hi, b - 1)) for a, b in pairwise(cuts)]
    column = np.tile(np.arange(f.sets), len(ends))
    low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
    column, low, high = (part[low <= high] for part in (column, low, high))
    constant_parts: list[tuple[Array, Array, Array]] = []
    count = 0
    while len(column):
        count += len(column)
        if len(column) > _MAX_OPEN or count > _MAX_ALL:
            return f"it has too many steps, more than {_MAX_OPEN}"
        single_code, code = _codes(f, column, low, high)
        constant_parts.append((column[single_code], low[single_code], code[single_code]))
        column, low, high = column[~single_code], low[~single_code], high[~single_code]
        middle = low + ((high - low) >> 1)
        column = np.tile(column, 2)
        low, high = np.append(low, middle + 1), np.append(middle, high)
    sets_, starts, codes = (np.concatenate(part) for part in zip(*constant_parts, strict=True))
    return sets_, starts, codes


def _codes(f: StepFunction, column: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """bool (intervals,): whether the interval is proven to have one code; int64 (intervals,): that code."""
    proven, codes = [], []
    for at in range(0, len(column), _CHUNK):
        part = slice(at, at + _CHUNK)
        intervals = f.take(column[part], low[part], high[part])
        x = _Range(
            decode(intervals.source, intervals.lo),
            decode(intervals.source, intervals.hi),
            np.ones(len(intervals.lo), np.bool_),
        )
        if x.low.dtype.kind == "f":
            x = x.limited_to(~(np.isnan(x.low) | np.isnan(x.high)))
        x = _chain(intervals.ops, x)
        first, last = (quantize(intervals.quantizer, end) for end in (x.low, x.high))
        single = intervals.lo == intervals.hi
        if isinstance(f.source, FloatKey):
            single |= intervals.hi < KEY_NEG_INF
        proven.append((x.valid & (first == last)) | single)
        codes.append(np.where(single, intervals.evaluate(intervals.lo), first))
    return np.concatenate(proven), np.concatenate(codes)


def _has_intervals(f: StepFunction) -> bool:
    """True if all operations of f have interval arithmetic: operations on floats, and on integers that do not wrap."""
    type_ = IntType(int(f.lo.min()), int(f.hi.max()))
    if isinstance(f.source, IntegerEncoding) and not decoding_direction(f.source, type_).monotone.all():
        return False
    ends = decode(f.source, f.lo), decode(f.source, f.hi)
    return _all_have_intervals((*f.ops, f.quantizer), Interval(np.minimum(*ends), np.maximum(*ends)))


def _all_have_intervals(ops: tuple[Elementwise, ...], x: Interval) -> bool:
    """True if all operations of a chain have interval arithmetic: of floats on all numbers, of integers on `x`."""
    for op in ops:
        if x.dtype.kind not in "iu":
            x = all_numbers(x.dtype)
        after = apply(op, np.atleast_1d(x.low))
        match op:
            case Activation("HardSwish"):
                supported = x.dtype.kind == "f"
            case Compare():
                supported = True
            case BinaryOf(_, chains) | Where(chains):
                supported = all(_all_have_intervals(chain, x) for chain in chains) and after.dtype.kind in "fb"
            case _:
                supported = bool(turning(op, x).complete.all())
        if not supported:
            return False
        x = range_of(op, x) if after.dtype.kind in "iu" else all_numbers(after.dtype)
    return True


def _chain(ops: tuple[Elementwise, ...], x: _Range) -> _Range:
    """Bounds after a chain of operations."""
    for op in ops:
        x = _after(op, x)
    return x


def _after(op: Elementwise, x: _Range) -> _Range:
    """Bounds after one operation: the values at both ends if it is monotone, invalid if it may turn between them."""
    match op:
        case Activation("HardSwish"):
            sixth, half, zero, unit = (np.full(1, v, x.low.dtype) for v in (1 / 6, 0.5, 0, 1))
            return _after(BinaryOf(BinaryKind.MUL, ((), (Mul(sixth), Add(half), Max(zero), Min(unit)))), x)
        case Compare(Relation.EQUAL, value) if x.low.dtype != np.bool_:
            return _Range((x.low == value) & (x.high == value), (x.low <= value) & (value <= x.high), x.valid)
        case BinaryOf(kind, (left, right)):
            return _binary(kind, _chain(left, x), _chain(right, x))
        case Where((condition, yes, no)):
            return _select(_chain(condition, x), _chain(yes, x), _chain(no, x))
        case _:
            interval = Interval(x.low, x.high)
            turns = turning(op, interval)
            x = x.limited_to(turns.complete & ~turns.inside(interval))
            if distinguishes_zeros(op):
                x = x.limited_to((x.low > 0) | (x.high < 0))
            a, b = apply(op, x.low), apply(op, x.high)
            valid = x.valid if a.dtype.kind != "f" else x.valid & ~(np.isnan(a) | np.isnan(b))
            return _Range(np.minimum(a, b), np.maximum(a, b), valid)


def _binary(kind: BinaryKind, x: _Range, y: _Range) -> _Range:
    """Bounds of a sum, difference, product, quotient, maximum or minimum of two values."""
    valid = x.valid & y.valid
    if kind is BinaryKind.DIV:
        valid = valid & ((y.low > 0) | (y.high < 0))
    if kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV):
        for end in (x.low, x.high, y.low, y.high):
            valid = valid & np.isfinite(end)
    match kind:
        case BinaryKind.ADD | BinaryKind.MAX | BinaryKind.MIN:
            return _Range(apply_binary(kind, x.low, y.low), apply_binary(kind, x.high, y.high), valid)
        case BinaryKind.SUB:
            return _Range(apply_binary(kind, x.low, y.high), apply_binary(kind, x.high, y.low), valid)
        case BinaryKind.MUL | BinaryKind.DIV:
            corners = np.stack([apply_binary(kind, a, b) for a in (x.low, x.high) for b in (y.low, y.high)])
            return _Range(corners.min(axis=0), corners.max(axis=0), valid)
        case _:
            assert_never(kind)


def _select(condition: _Range, yes: _Range, no: _Range) -> _Range:
    """Bounds of a selection: the selected operand's if the condition is certain, else the hull of both operands."""
    always, never = condition.low, ~condition.high
    low = np.where(always, yes.low, np.where(never, no.low, np.minimum(yes.low, no.low)))
    high = np.where(always, yes.high, np.where(never, no.high, np.maximum(yes.high, no.high)))
    valid = np.where(always, yes.valid, np.where(never, no.valid, yes.valid & no.valid))
    return _Range(low, high, condition.valid & valid)
