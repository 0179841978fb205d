"""Integer operators of onnxruntime on constants alone, as in the first step of a loop that is unrolled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, Dynamic
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.ir import MatMulInteger, Op, Reshape, Shape, Transpose
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import Elementwise
from hlsgen.numerics.fixed import Array


def of_steps(convert: Callable[[NodeContext], Imported]) -> Callable[[NodeContext], list[Const]]:
    """The fold of an operator: what its steps, as `convert` imports it, make of its first input."""

    def fold(node: NodeContext) -> list[Const]:
        """Raises HG010 for steps that have no value here, and what `convert` raises."""
        data = node.constant(0)
        if data is None:
            raise _refused(node)
        known = Dynamic(data.array.shape, data.array.dtype.name, None)
        value = data.array
        for op, shape in convert(replace(node, inputs=(known, *node.inputs[1:]))).outputs[0]:
            value = _result(node, op, shape, value)
        return [Const(value)]

    return fold


def _result(node: NodeContext, op: Op, shape: Shape, value: Array) -> Array:
    match op:
        case MatMulInteger(weight, zero_point):
            return np.asarray((value.astype(np.int64) - zero_point) @ weight.T, np.int32)
        case Reshape():
            return np.asarray(value.reshape(shape))
        case Transpose(perm):
            return np.asarray(value.transpose(perm))
    if not isinstance(op, Elementwise):
        raise _refused(node)
    result = np.asarray(apply(op, value))
    return np.asarray(result, getattr(op, "dtype", result.dtype))


def _refused(node: NodeContext) -> Exception:
    text = f"operator {node.op_type} on constants is not supported."
    return fail("HG010", node.name, text, "Simplify the model with its exporter's constant folding.")
