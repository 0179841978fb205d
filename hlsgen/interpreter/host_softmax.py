"""Softmax and its kin for onnx's reference evaluator, which does all of them over one axis, whatever the opset.

LogSoftmax is (x - max) - log(sum of exp(x - max)), as onnxruntime computes it: the logarithm of a share that is rounded to
0 would be -inf. Before opset 13 they are over all axes from `axis` on, taken as one, by default from axis 1 on. Pass `OPERATORS` to it as
`new_ops`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_hardmax, op_log_softmax, op_softmax

from hlsgen.numerics.fixed import Array

#: The opset from which on they are over one axis, by default the last.
_ONE_AXIS = 13


def _flattened(op: OpRun, own: type[Any], x: Array) -> tuple[Array]:
    """What `own` gives over the axis, or the axes, that the node and its opset say."""
    single = op.run_params["opsets"][""] >= _ONE_AXIS
    given = next((a.i for a in op.onnx_node.attribute if a.name == "axis"), -1 if single else 1)
    axis = given + x.ndim if given < 0 else given
    flat = x if single else x.reshape(math.prod(x.shape[:axis]), -1)
    op.axis = axis if single else 1  # type: ignore[attr-defined]
    return (own._run(op, flat)[0].reshape(x.shape),)


class Softmax(op_softmax.Softmax):
    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        return _flattened(self, op_softmax.Softmax, x)


class _LogShares(OpRun):
    """Logarithms of the shares along `axis`."""

    def _run(self, x: Array) -> tuple[Array]:
        axis = self.axis  # type: ignore[attr-defined]
        below = x - x.max(axis=axis, keepdims=True)
        return (below - np.log(np.exp(below).sum(axis=axis, keepdims=True)),)


class LogSoftmax(op_log_softmax.LogSoftmax):
    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        return _flattened(self, _LogShares, x)


class Hardmax(op_hardmax.Hardmax):
    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        return _flattened(self, op_hardmax.Hardmax, x)


OPERATORS: list[Any] = [Softmax, LogSoftmax, Hardmax]
