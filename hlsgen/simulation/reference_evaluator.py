"""onnx's reference evaluator, corrected in two operators.

It lacks DequantizeLinear of the opsets before 19. Its LogSoftmax is the logarithm of a share, which is inexact or 0 if
the share is small. Here it is the operator's function in ONNX: x - max - log(sum of exp(x - max)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from hlsgen.frontend.domains import ONNX
from hlsgen.numerics.fixed import Array

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

#: First opset whose DequantizeLinear the evaluator implements; before it, the operator computes the same.
_FIRST_OPSET = 19


def reference_evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """The evaluator of a model. Raises RuntimeError for operators without implementation."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_23
    from onnx.reference.ops.op_log_softmax import LogSoftmax

    def log_softmax(node: Any, x: Array) -> tuple[Array]:
        below = x - x.max(axis=node.axis, keepdims=True)
        return (below - np.log(np.exp(below).sum(axis=node.axis, keepdims=True)),)

    opset = max((o.version for o in model.opset_import if o.domain in ONNX), default=_FIRST_OPSET)
    added: list[Any] = [type("LogSoftmax", (LogSoftmax,), {"op_domain": "", "_run": log_softmax})]
    if opset < _FIRST_OPSET:
        added.append(type("DequantizeLinear", (DequantizeLinear_23,), {"op_domain": ""}))
    return ReferenceEvaluator(model, new_ops=added)
