"""Clips of whole numbers as quantizers: the last step of a requantization that is exported as arithmetic.

NEMO, Quantlab, DORY, and exporters of FakeQuantize write Mul, Add, Div, Floor (or Round, or a Cast to integers), Clip.
After the rounding all numbers are whole. Therefore a Clip between two whole bounds is a quantizer of scale 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen import ir
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.ir.evaluate import decoding
from hlsgen.ir.ops import QUANTIZERS, Activation, Add, Cast, IntQuant, Max, Min, Mul, QuantizeLinear
from hlsgen.numerics.fixed import IntType, Rounding

_ROUNDINGS = frozenset(("Ceil", "Floor", "Round", "Sign"))
_MOVES = (ir.Concat, ir.Repeat, ir.Reshape, ir.Slice, ir.Transpose)
#: Largest absolute value of codes; float32 represents all smaller integers.
_MAX_CODE = 1 << 24
#: Largest number of consecutive bounds that become one quantizer.
_MAX_BOUNDS = 8


def quantized_clips(steps: Sequence[ir.Step], data: int, dtype: str, ops: ShapedOps) -> ShapedOps:
    """The operations of a node, with a quantizer in place of a Clip of whole numbers; other operations are unchanged.

    `data`: the value that they are applied to, of dtype `dtype`.
    """
    if not ops or not isinstance(ops[-1][0], Max | Min) or np.dtype(dtype).name not in ("float32", "float64", "int64"):
        return ops
    bounds = [op for op, _ in ops]
    value = data
    while value and len(bounds) < _MAX_BOUNDS and isinstance(steps[value - 1].op, Max | Min):
        bounds.insert(0, steps[value - 1].op)
        value = steps[value - 1].inputs[0]
    limits = _limits(bounds)
    if limits is None or not is_whole(steps, value):
        return ops
    return [*ops[:-1], *_quantizer(limits, dtype, ops[-1][1])]


def is_whole(steps: Sequence[ir.Step], value: int) -> bool:
    """True if the steps guarantee that a value of the model consists of whole numbers."""
    visited: set[int] = set()
    pending = [value]
    while pending:
        number = pending.pop()
        if number in visited:
            continue
        visited.add(number)
        if number == 0:
            return False
        step = steps[number - 1]
        if _rounds(step.op):
            continue
        if not _keeps_whole(step.op):
            return False
        pending.extend(step.inputs)
    return True


def _rounds(op: ir.Op) -> bool:
    """True for operations whose result is always whole."""
    match op:
        case Activation(kind):
            return kind in _ROUNDINGS
        case IntQuant(scale, zero, _, _):
            return bool((scale == 1).all() and (zero == np.round(zero)).all())
        case Cast(dtype):
            return np.dtype(dtype).kind in "iub"
    return isinstance(op, QUANTIZERS) and isinstance(decoding(op), ir.IntegerEncoding)


def _keeps_whole(op: ir.Op) -> bool:
    """True for operations whose result is whole for whole operands."""
    match op:
        case Add(value) | Mul(value) | Max(value) | Min(value):
            return bool((value == np.round(value)).all())
        case ir.Binary(kind):
            return kind is not ir.BinaryKind.DIV
        case ir.Pool():
            return op.kind is ir.Reduction.MAX
        case Cast():
            return True
    return isinstance(op, _MOVES)


def _limits(bounds: Sequence[ir.Op]) -> IntType | None:
    """The codes between whole bounds that are equal for all elements, or None if a bound is missing or different."""
    low, high = -np.inf, np.inf
    for op in bounds:
        assert isinstance(op, Max | Min)
        numbers = np.unique(op.value.astype(np.float64))
        if len(numbers) != 1 or numbers[0] != np.round(numbers[0]):
            return None
        end = np.maximum if isinstance(op, Max) else np.minimum
        low, high = float(end(low, numbers[0])), float(end(high, numbers[0]))
    return IntType(int(low), int(high)) if -_MAX_CODE <= low <= high <= _MAX_CODE else None


def _quantizer(limits: IntType, dtype: str, shape: ir.Shape) -> ShapedOps:
    rank = len(shape)
    if dtype == "int64":
        zero = np.zeros((1,) * rank, np.int64)
        return [(QuantizeLinear(np.ones((1,) * rank, np.float64), zero, limits, dtype), shape)]
    ones = np.ones((1,) * rank, np.float32)
    quantizer = IntQuant(ones, np.zeros_like(ones), limits, Rounding.ROUND)
    return [(quantizer, shape), *([(Cast(dtype), shape)] if dtype != "float32" else [])]
