"""Runs steps of the host, one by one, on frames."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from hlsgen.interpreter import host_pools, host_resize, host_softmax, host_tflite
from hlsgen.ir import ArgMax, HostOp, Reshape, Step, Transpose
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.numerics.fixed import Array

#: Operators that replace the reference evaluator's own.
OPERATORS = [
    *host_softmax.OPERATORS,
    *host_pools.OPERATORS,
    *host_resize.OPERATORS,
    *host_tflite.OPERATORS,
]


def run_step(step: Step, x: Array) -> Array:
    """Run one float step of the model's head or tail on (frames, *shape)."""
    op = step.op
    match op:
        case Reshape() | Transpose():
            return rearranged(op, x, step.shape)
        case ArgMax():
            return np.asarray(np.argmax(x, axis=-1).reshape(len(x), *step.shape))
        case HostOp():
            return np.stack([_run_host_op(op.model, frame) for frame in x])
        case _:
            assert isinstance(op, (*FLOATS, *QUANTIZERS)), "only elementwise operations are left to the host"
            return apply(op, x)  # type: ignore[arg-type]


def rearranged(op: Reshape | Transpose, x: Array, shape: tuple[int, ...]) -> Array:
    """Frames with another shape, or with permuted axes."""
    if isinstance(op, Transpose):
        return np.asarray(x.transpose([0, *(p + 1 for p in op.perm)]))
    return x.reshape(len(x), *shape)


@lru_cache(maxsize=8)
def _evaluator(model: bytes) -> ReferenceEvaluator:
    return ReferenceEvaluator(onnx.ModelProto.FromString(model), new_ops=OPERATORS)


def _run_host_op(model: bytes, x: Array) -> Array:
    evaluator = _evaluator(model)
    initializers = {i.name for i in evaluator.proto_.graph.initializer}
    name = next(i.name for i in evaluator.proto_.graph.input if i.name not in initializers)
    results: Any = evaluator.run(None, {name: x})
    return np.asarray(results[0])
