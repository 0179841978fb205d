"""Softmax in hardware between quantizers or layers; before or after all of them it stays on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import attributes
from hlsgen.frontend.op_results import starts_hardware
from hlsgen.frontend.product_shares import quantize_shares
from hlsgen.frontend.qdq_softmax import NAME, SINGLE_AXIS_OPSET
from hlsgen.ir import ArgMax, HostOp, Op, QLinearSoftmax, Reshape, Shape, Softmax, Step, Transpose
from hlsgen.ir.constant_choice import constant_choice
from hlsgen.ir.evaluate import code_type, constants, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Add, Cast, Constant, Dequantize, Div, Mul, Where
from hlsgen.ir.rewrite import StepRewriter, consumers_of
from hlsgen.numerics.fixed import Array

#: Operations that the host can compute after the last layer.
_ON_HOST = (*FLOATS, *QUANTIZERS, Reshape, Transpose, ArgMax, HostOp)

#: Bounds of a Softmax in hardware after the last layer: bits of its scores, elements of a row.
_MAX_SCORE_BITS, _MAX_ROW = 8, 4096


def move_softmax_to_hardware(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with Softmax or QLinearSoftmax steps for such host operations between layers of hardware.

    Shares that a product consumes without a quantizer become multiples of 2^-24. Raises HG027.
    """
    _check_infinity(steps)
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        ops: list[tuple[Op, Shape]] = [(step.op, step.shape)]
        inputs = step.inputs
        if isinstance(step.op, HostOp) and step.op.op_type in ("Softmax", NAME) and _is_hardware(steps, i):
            ops = _steps(step.op, step.shape)
            producer = steps[inputs[0] - 1]
            if step.op.op_type == NAME and isinstance(producer.op, Cast):
                inputs = producer.inputs
        values = tuple(rewriter.numbers[j] for j in inputs)
        for op, shape in ops:
            values = (rewriter.add(step.name, op, shape, values),)
        rewriter.numbers[i + 1] = values[0]
    return quantize_shares(rewriter.steps)


def _check_infinity(steps: Sequence[Step]) -> None:
    """Refuse minus infinity as a constant, except before a Softmax. Raises HG027."""
    for i, step in enumerate(steps):
        if _is_infinite(step.op) and not all(_to_softmax(steps, user) for user in consumers_of(steps, i + 1)):
            raise fail(
                "HG027",
                step.name,
                "a constant has the value -inf.",
                "Every constant must be finite, except masks of a Softmax.",
            )


def _is_infinite(op: Op) -> bool:
    if isinstance(op, Where):
        return any(_is_infinite(part) for chain in op.ways for part in chain)
    return isinstance(op, Add | Constant) and op.value.dtype.kind == "f" and bool(np.isneginf(op.value).any())


def _to_softmax(steps: Sequence[Step], i: int) -> bool:
    """True if step i is a Softmax, or a factor or a move whose users all lead to one."""
    op = steps[i].op
    if isinstance(op, HostOp):
        return op.op_type == "Softmax"
    if not isinstance(op, Mul | Div | Reshape | Transpose | Cast):
        return False
    return all(_to_softmax(steps, user) for user in consumers_of(steps, i + 1))


def _is_hardware(steps: Sequence[Step], i: int) -> bool:
    """True if hardware computes Softmax step i.

    Hardware must be upstream. Downstream there must be layers, or quantizers without host operations if hardware
    supports the row and the scores are codes.
    """
    upstream, downstream = set(steps[i].inputs), {i + 1}
    after_hardware = False
    for j in reversed(range(i)):
        if j + 1 in upstream:
            after_hardware = after_hardware or starts_hardware(steps[j].op)
            upstream.update(steps[j].inputs)
    for j in range(i + 1, len(steps)):
        if downstream.intersection(steps[j].inputs):
            downstream.add(j + 1)
    following = [steps[j - 1].op for j in downstream if j > i + 1]
    before_layers = any(not isinstance(op, _ON_HOST) for op in following)
    before_quantizers = any(isinstance(op, QUANTIZERS) for op in following)
    before_quantizers = before_quantizers and not any(isinstance(op, HostOp) for op in following)
    at_end = before_quantizers and _is_supported(steps[i]) and _are_codes(steps, steps[i].inputs[0])
    return after_hardware and (before_layers or at_end)


def _is_supported(step: Step) -> bool:
    """True if hardware supports the row's length, and the largest exponential times the factor is finite."""
    assert isinstance(step.op, HostOp)
    op, shape = next((op, shape) for op, shape in _steps(step.op, step.shape) if not isinstance(op, Reshape))
    if isinstance(op, QLinearSoftmax):
        with np.errstate(over="ignore"):
            return bool(np.isfinite(op.powers[0] * op.factor)) and shape[op.axis] <= _MAX_ROW
    return isinstance(op, Softmax) and shape[op.axis] <= _MAX_ROW


def _are_codes(steps: Sequence[Step], value: int) -> bool:
    """True for codes of at most eight bits with one scale, also after scalar factors, masks and moves."""
    while value:
        step = steps[value - 1]
        if isinstance(step.op, QUANTIZERS):
            has_one_scale = all(c.size == 1 for c in constants(decoding(step.op)).values())
            return code_type(step.op).bits <= _MAX_SCORE_BITS and has_one_scale
        is_factor = isinstance(step.op, Mul | Div) and step.op.value.size == 1
        is_mask = isinstance(step.op, Add) or (isinstance(step.op, Where) and constant_choice(step.op) is not None)
        is_dequantized = isinstance(step.op, Dequantize) and step.op.scale.size == 1
        if not (is_factor or is_mask or is_dequantized or isinstance(step.op, Reshape | Transpose | Cast)):
            return False
        value = step.inputs[0]
    return False


def _steps(op: HostOp, shape: Shape) -> list[tuple[Op, Shape]]:
    """The hardware operations for a Softmax of the host."""
    model = onnx.load_from_string(op.model)
    if op.op_type == NAME:
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        flat = tuple(int(n) for n in constants["flat"])
        return _flattened(_qlinear(constants), flat, shape)
    opset = model.opset_import[0].version
    axis = attributes(model.graph.node[0]).get("axis", -1 if opset >= SINGLE_AXIS_OPSET else 1) % len(shape)
    if opset >= SINGLE_AXIS_OPSET:
        return [(Softmax(axis), shape)]
    return _flattened(Softmax(1), (math.prod(shape[:axis]), math.prod(shape[axis:])), shape)


def _flattened(op: Op, flat: Shape, shape: Shape) -> list[tuple[Op, Shape]]:
    """The operation on data reshaped to `flat`, and back."""
    return [(op, shape)] if flat == shape else [(Reshape(), flat), (op, flat), (Reshape(), shape)]


def _qlinear(constants: dict[str, Array]) -> QLinearSoftmax:
    """The operation with the constants of the host's model, whose lookup table begins with the lowest code."""
    return QLinearSoftmax(int(constants["axis"]), constants["table"][::-1].copy(), np.float32(constants["factor"]))
