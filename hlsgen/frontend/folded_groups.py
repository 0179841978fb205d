"""onnxruntime's integer operators on constants only, as in the first step of an unrolled loop."""

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


def fold_by_steps(convert: Callable[[NodeContext], Imported]) -> Callable[[NodeContext], list[Const]]:
    """The constant evaluation of an operator: its steps, imported by `convert`, applied to its first input."""

    def fold(node: NodeContext) -> list[Const]:
        """Raises HG010 for steps that cannot be evaluated here, and the codes that `convert` raises."""
        data = node.constant(0)
        if data is None:
            raise _refused(node)
        as_computed = Dynamic(data.array.shape, data.array.dtype.name, None)
        array = data.array
        for op, shape in convert(replace(node, inputs=(as_computed, *node.inputs[1:]))).outputs[0]:
            array = _result(node, op, shape, array)
        return [Const(array)]

    return fold


def _result(node: NodeContext, op: Op, shape: Shape, array: Array) -> Array:
    match op:
        case MatMulInteger(weight, zero_point):
            return np.asarray((array.astype(np.int64) - zero_point) @ weight.T, np.int32)
        case Reshape():
            return np.asarray(array.reshape(shape))
        case Transpose(perm):
            return np.asarray(array.transpose(perm))
    if not isinstance(op, Elementwise):
        raise _refused(node)
    result = np.asarray(apply(op, array))
    return np.asarray(result, getattr(op, "dtype", result.dtype))


def _refused(node: NodeContext) -> Exception:
    text = f"operator {node.op_type} on constants is not supported."
    return fail("HG010", node.name, text, "Simplify the model with its exporter's constant folding.")
