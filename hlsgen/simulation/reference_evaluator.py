"""onnx's reference evaluator, with DequantizeLinear of the opsets before 19, which it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from hlsgen.frontend.domains import ONNX

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

#: First opset whose DequantizeLinear the evaluator implements; before it, the operator computes the same.
_FIRST_OPSET = 19


def reference_evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """The evaluator of a model. Raises RuntimeError for operators without implementation."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_23

    opset = max((o.version for o in model.opset_import if o.domain in ONNX), default=_FIRST_OPSET)
    added = type("DequantizeLinear", (DequantizeLinear_23,), {"op_domain": ""})
    return ReferenceEvaluator(model, new_ops=[added] if opset < _FIRST_OPSET else None)
