"""Softmax, LogSoftmax and Hardmax for onnx's reference evaluator, which always uses one axis, in all opsets.

LogSoftmax is (x - max) - log(sum of exp(x - max)), as onnxruntime computes it: the logarithm of a probability that is
rounded to 0 would be -inf. Before opset 13 they are over all axes from `axis` on, merged into one, by default from
axis 1 on. Pass `OPERATORS` to the evaluator as `new_ops`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_hardmax, op_log_softmax, op_softmax

from hlsgen.numerics.fixed import Array

#: From this opset on they are over one axis, by default the last.
_ONE_AXIS = 13


def _run_over_axes(op: OpRun, operator: type[Any], x: Array) -> tuple[Array]:
    """The result of `operator` over the axis, or the axes, that the node and its opset specify."""
    single = op.run_params["opsets"][""] >= _ONE_AXIS
    axis_attribute = next((a.i for a in op.onnx_node.attribute if a.name == "axis"), -1 if single else 1)
    axis = axis_attribute + x.ndim if axis_attribute < 0 else axis_attribute
    flattened = x if single else x.reshape(math.prod(x.shape[:axis]), -1)
    op.axis = axis if single else 1  # type: ignore[attr-defined]
    return (operator._run(op, flattened)[0].reshape(x.shape),)


class Softmax(op_softmax.Softmax):
    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        return _run_over_axes(self, op_softmax.Softmax, x)


class _LogProbabilities(OpRun):
    """Logarithms of the probabilities along `axis`."""

    def _run(self, x: Array) -> tuple[Array]:
        axis = self.axis  # type: ignore[attr-defined]
        below = x - x.max(axis=axis, keepdims=True)
        return (below - np.log(np.exp(below).sum(axis=axis, keepdims=True)),)


class LogSoftmax(op_log_softmax.LogSoftmax):
    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        return _run_over_axes(self, _LogProbabilities, x)


class Hardmax(op_hardmax.Hardmax):
    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        return _run_over_axes(self, op_hardmax.Hardmax, x)


OPERATORS: list[Any] = [Softmax, LogSoftmax, Hardmax]
