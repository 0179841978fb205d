"""Proves that a function gives one code on an interval of inputs, by interval arithmetic.

It is used for functions without known monotone pieces. The bounds of the inputs pass through each operation. A
quantizer is monotone: if it gives the hardware's code for both bounds of its argument, every input of the interval has
that code. Bounds of a rounded operation hold, because rounding is monotone. Undecided intervals are halved. The inputs
of short intervals are left to be evaluated one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.certify.monotone_ops import ACTIVATIONS, NEAR, decode_known, quantizer_known
from hlsgen.ir import FloatKey, IntegerEncoding, ops
from hlsgen.ir.evaluate import apply, apply_binary, code_type, decode, quantize
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array

#: Intervals of at most this many inputs are evaluated; maximum number of intervals at one time.
_SHORT, _MAX_OPEN = 8, 1 << 20


class _Unknown(Exception):
    """No bounds are known for an operation."""


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Bounds of every interval. `sure`: they hold and are finite, and no value between them is NaN."""

    low: Array
    high: Array
    sure: Array

    @staticmethod
    def of(ends: list[Array], sure: Array) -> _Bounds:
        table = np.stack(ends)
        if table.dtype.kind == "f":
            sure = sure & np.isfinite(table).all(axis=0)
        return _Bounds(table.min(axis=0), table.max(axis=0), sure)


def undecided(f: StepFunction, low: Array, high: Array, code: Array) -> Array | None:
    """The inputs of the intervals low..high that are left to evaluate; the hardware gives `code` in each interval.

    f has one set. Returns None if f has an operation without bounds, or if there are too many intervals at one time.
    """
    if isinstance(f.source, FloatKey) or not decode_known(f.source):
        return None
    open_inputs: list[Array] = []
    while len(low):
        if len(low) > _MAX_OPEN:
            return None
        try:
            decided = _decided(f, low, high, code)
        except _Unknown:
            return None
        low, high, code = low[~decided], high[~decided], code[~decided]
        short = high - low < _SHORT
        open_inputs.append((low[short, None] + np.arange(_SHORT)).clip(max=high[short, None]).ravel())
        low, high, code = low[~short], high[~short], code[~short]
        middle = (low + high) >> 1
        low, high, code = np.append(low, middle + 1), np.append(middle, high), np.append(code, code)
    return np.unique(np.concatenate(open_inputs)) if open_inputs else low


def _decided(f: StepFunction, low: Array, high: Array, code: Array) -> Array:
    """True for each interval in which f is proven to be `code`. The constants of the only set of f broadcast."""
    ends = low[:, None], high[:, None]
    sure = np.ones_like(ends[0], np.bool_)
    if isinstance(f.source, IntegerEncoding):
        if np.dtype(f.source.dtype).kind not in "iu":
            raise _Unknown
        info = np.iinfo(f.source.dtype)
        sure = (ends[0] + f.source.offset >= info.min) & (ends[1] + f.source.offset <= info.max)
    x = _bounds_after_all(f.ops, _Bounds.of([decode(f.source, end) for end in ends], sure))
    _check(f.quantizer, x)
    equal = [quantize(f.quantizer, end) == code[:, None] for end in (x.low, x.high)]
    return np.asarray(x.sure & equal[0] & equal[1])[:, 0]


def _check(op: ops.Quantizer, x: _Bounds) -> None:
    if isinstance(op, ops.Requantize | ops.FloatQuant) or x.low.dtype.kind != "f" or not quantizer_known(op).all():
        raise _Unknown


def _bounds_after_all(operations: tuple[ops.Elementwise, ...], x: _Bounds) -> _Bounds:
    for op in operations:
        x = _bounds_after(op, x)
    return x


def _bounds_after(op: ops.Elementwise, x: _Bounds) -> _Bounds:
    kind = x.low.dtype.kind
    match op:
        case ops.BinaryOf(joint, (left_ops, right_ops)):
            return _pair(joint, _bounds_after_all(left_ops, x), _bounds_after_all(right_ops, x))
        case ops.Where((condition, yes, no)):
            return _either(_bounds_after_all(condition, x), _bounds_after_all(yes, x), _bounds_after_all(no, x))
        case ops.BinaryOf() | ops.Where():
            raise _Unknown
        case ops.Constant(value):
            fill = np.broadcast_to(value, x.low.shape)
            return _Bounds.of([fill, fill], np.ones_like(x.sure))
        case ops.Compare(ops.Relation.EQUAL, value) if kind == "f":
            outside = (value < x.low) | (value > x.high)
            return _Bounds.of([np.zeros_like(outside), ~outside], x.sure)
        case ops.Compare(ops.Relation.EQUAL) if kind != "b":
            raise _Unknown
        case ops.Activation("HardSwish") if kind == "f":
            sixth, half, zero, unity = (np.full(1, v, x.low.dtype) for v in (1 / 6, 0.5, 0, 1))
            return _pair(
                ops.BinaryKind.MUL,
                x,
                _bounds_after_all((ops.Mul(sixth), ops.Add(half), ops.Max(zero), ops.Min(unity)), x),
            )
        case ops.Activation(name, alpha, beta) if kind == "f" and np.isfinite([alpha, beta]).all():
            turns = ACTIVATIONS[name]
            if turns is None:
                raise _Unknown
            for at in turns.finite():
                x = _Bounds(x.low, x.high, x.sure & ((x.low > at + NEAR) | (x.high < at - NEAR)))
        case ops.Mul(value) | ops.Add(value) | ops.Max(value) | ops.Min(value) | ops.Div(value):
            zero_ = isinstance(op, ops.Div) and not value.all()
            if kind not in "fb" or not np.isfinite(value).all() or zero_:
                raise _Unknown
        case ops.Slope(value) if kind == "f" and np.isfinite(value).all():
            x = _Bounds(x.low, x.high, x.sure & ((x.low > 0) | (x.high < 0)))
        case ops.Compare() | ops.Dequantize():
            pass
        case ops.Cast(dtype):
            if np.dtype(dtype).kind != "f":
                raise _Unknown
        case _ if not isinstance(op, ops.QUANTIZERS):
            raise _Unknown
        case _:
            info = getattr(op, "dtype", "")
            _check(op, x)
            type_ = code_type(op)
            if info and not (np.iinfo(info).min <= type_.lo and type_.hi <= np.iinfo(info).max):
                raise _Unknown
    return _Bounds.of([apply(op, x.low), apply(op, x.high)], x.sure)


def _pair(joint: ops.BinaryKind, x: _Bounds, y: _Bounds) -> _Bounds:
    """Bounds of a binary operation, at corners: each one is monotone in each operand. A divisor must keep its sign."""
    if joint is ops.BinaryKind.DIV and not ((y.low > 0) | (y.high < 0)).all():
        raise _Unknown
    return _Bounds.of([apply_binary(joint, a, b) for a in (x.low, x.high) for b in (y.low, y.high)], x.sure & y.sure)


def _either(condition: _Bounds, yes: _Bounds, no: _Bounds) -> _Bounds:
    """Bounds over both values, or over one if the bounds of the condition are equal."""
    first, second = (np.where(condition.low, yes.low, no.low), np.where(condition.low, yes.high, no.high))
    third, fourth = (np.where(condition.high, yes.low, no.low), np.where(condition.high, yes.high, no.high))
    sure = np.where(condition.low, yes.sure, no.sure) & np.where(condition.high, yes.sure, no.sure)
    return _Bounds.of([first, second, third, fourth], condition.sure & sure)
