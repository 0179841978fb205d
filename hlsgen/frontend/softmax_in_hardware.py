"""Softmax between quantizers or layers becomes hardware's; in front of all of them, or behind, it stays on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import numpy_helper

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import attributes
from hlsgen.frontend.op_results import starts_hardware
from hlsgen.frontend.product_shares import in_multiples
from hlsgen.frontend.qdq_softmax import NAME, ONE_AXIS
from hlsgen.ir import ArgMax, HostOp, Op, QLinearSoftmax, Reshape, Shape, Softmax, Step, Transpose
from hlsgen.ir.constant_choice import constant_choice
from hlsgen.ir.evaluate import code_type, constants, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Add, Cast, Constant, Dequantize, Div, Mul, Where
from hlsgen.numerics.fixed import Array

#: What the host can do behind the last layer.
_ON_HOST = (*FLOATS, *QUANTIZERS, Reshape, Transpose, ArgMax, HostOp)

#: Of a Softmax behind the last layer that becomes hardware: most bits of its scores, longest row.
_BITS, _ROW = 8, 4096


def in_hardware(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with a Softmax step, or a QLinearSoftmax, for every such host operation between layers of hardware.

    Shares that a product takes without a quantizer become multiples of 2^-24.
    """
    _check_infinity(steps)
    result: list[Step] = []
    numbers = {0: 0}
    for i, step in enumerate(steps):
        ops: list[tuple[Op, Shape]] = [(step.op, step.shape)]
        inputs = step.inputs
        if isinstance(step.op, HostOp) and step.op.op_type in ("Softmax", NAME) and _is_hardware(steps, i):
            ops = _steps(step.op, step.shape)
            before = steps[inputs[0] - 1]
            if step.op.op_type == NAME and isinstance(before.op, Cast):
                inputs = before.inputs
        values = tuple(numbers[j] for j in inputs)
        for op, shape in ops:
            result.append(replace(step, op=op, shape=shape, inputs=values))
            values = (len(result),)
        numbers[i + 1] = len(result)
    return in_multiples(result)


def _check_infinity(steps: Sequence[Step]) -> None:
    """Minus infinity is a constant only in front of a Softmax. Raises HG027."""
    for number, step in enumerate(steps, 1):
        if _is_infinite(step.op) and not all(_to_softmax(steps, n) for n in _users(steps, number)):
            raise fail(
                "HG027", step.name, "a constant has the value -inf.",
                "Every constant must be finite, but for masks of a Softmax.",
            )  # fmt: skip


def _is_infinite(op: Op) -> bool:
    if isinstance(op, Where):
        return any(_is_infinite(part) for way in op.ways for part in way)
    return isinstance(op, Add | Constant) and op.value.dtype.kind == "f" and bool(np.isneginf(op.value).any())


def _users(steps: Sequence[Step], number: int) -> list[int]:
    return [n for n, step in enumerate(steps, 1) if number in step.inputs]


def _to_softmax(steps: Sequence[Step], number: int) -> bool:
    """Whether a step is a Softmax, or a factor or a move in front of one."""
    op = steps[number - 1].op
    if isinstance(op, HostOp):
        return op.op_type == "Softmax"
    if not isinstance(op, Mul | Div | Reshape | Transpose | Cast):
        return False
    return all(_to_softmax(steps, n) for n in _users(steps, number))


def _is_hardware(steps: Sequence[Step], i: int) -> bool:
    """Whether hardware comes before step i, and layers behind it, or a quantizer if its scores are codes."""
    before, after = set(steps[i].inputs), {i + 1}
    starts = False
    for j in reversed(range(i)):
        if j + 1 in before:
            starts = starts or starts_hardware(steps[j].op)
            before.update(steps[j].inputs)
    for j in range(i + 1, len(steps)):
        if after.intersection(steps[j].inputs):
            after.add(j + 1)
    behind = [steps[j - 1].op for j in after if j > i + 1]
    layers = any(not isinstance(op, _ON_HOST) for op in behind)
    ends = any(isinstance(op, QUANTIZERS) for op in behind) and not any(isinstance(op, HostOp) for op in behind)
    return starts and (layers or (ends and _fits(steps[i]) and _are_codes(steps, steps[i].inputs[0])))


def _fits(step: Step) -> bool:
    """Whether hardware takes rows of that length, and powers that finite."""
    assert isinstance(step.op, HostOp)
    op, shape = next((op, shape) for op, shape in _steps(step.op, step.shape) if not isinstance(op, Reshape))
    if isinstance(op, QLinearSoftmax):
        with np.errstate(over="ignore"):
            return bool(np.isfinite(op.powers[0] * op.factor)) and shape[op.axis] <= _ROW
    return isinstance(op, Softmax) and shape[op.axis] <= _ROW


def _are_codes(steps: Sequence[Step], value: int) -> bool:
    """Whether a value is codes of few bits with one scale, times factors of the tensor."""
    while value:
        step = steps[value - 1]
        if isinstance(step.op, QUANTIZERS):
            return code_type(step.op).bits <= _BITS and all(c.size == 1 for c in constants(decoding(step.op)).values())
        factor = isinstance(step.op, Mul | Div) and step.op.value.size == 1
        mask = isinstance(step.op, Add) or (isinstance(step.op, Where) and constant_choice(step.op) is not None)
        dequantized = isinstance(step.op, Dequantize) and step.op.scale.size == 1
        if not (factor or mask or dequantized or isinstance(step.op, Reshape | Transpose | Cast)):
            return False
        value = step.inputs[0]
    return False


def _steps(op: HostOp, shape: Shape) -> list[tuple[Op, Shape]]:
    model = onnx.load_from_string(op.model)
    if op.op_type == NAME:
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        flat = tuple(int(n) for n in constants["flat"])
        return _flattened(_qlinear(constants), flat, shape)
    opset = model.opset_import[0].version
    axis = attributes(model.graph.node[0]).get("axis", -1 if opset >= ONE_AXIS else 1) % len(shape)
    if opset >= ONE_AXIS:
        return [(Softmax(axis), shape)]
    return _flattened(Softmax(1), (math.prod(shape[:axis]), math.prod(shape[axis:])), shape)


def _flattened(op: Op, flat: Shape, shape: Shape) -> list[tuple[Op, Shape]]:
    """The operation on rows of another shape."""
    return [(op, shape)] if flat == shape else [(Reshape(), flat), (op, flat), (Reshape(), shape)]


def _qlinear(constants: dict[str, Array]) -> QLinearSoftmax:
    """Of the constants of the host's model: its table begins with the lowest code."""
    return QLinearSoftmax(int(constants["axis"]), constants["table"][::-1].copy(), np.float32(constants["factor"]))
