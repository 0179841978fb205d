"""QLinearSoftmax, onnxruntime's Softmax of 8-bit codes, as a model for the host.

Between layers hardware computes it instead (`softmax_in_hardware`).

A lookup table of float32 contains the exponentials e^((code - largest) * scale), times a power of e that keeps their
sums finite. The sum is computed in order, in float32. The result is
code = round(fl(fl(exponential * floor(1 / output scale)) / sum)) + zero point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hlsgen.diagnostics import fail
from hlsgen.frontend.dialect_integer import dequantizer_of, quantizer_of
from hlsgen.frontend.dialect_qlinear import padded
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.ir import HostOp, Op, Shape
from hlsgen.ir.ops import Cast, Dequantize, QuantizeLinear
from hlsgen.numerics.fixed import Array

NAME = "QLinearSoftmax"
#: From this opset on Softmax is over one axis; before it, over all axes from the attribute axis on.
SINGLE_AXIS_OPSET = 13


def qlinear_softmax(node: NodeContext) -> Imported:
    """QLinearSoftmax: x, its scale, zero point; scale, zero point of the result. Raises HG013, HG020, HG022 - HG026."""
    name, shape, dtype, attrs = node.name, node.shape, node.dtype, node.attrs
    inputs = padded(node.constants)
    data = dequantizer_of(name, shape, inputs[:3], {}, dtype)
    last = quantizer_of(name, shape, [None, *inputs[3:5]], {})
    if dtype not in ("int8", "uint8") or last.dtype != dtype or not _per_tensor(data.scale, last.scale):
        text = f"{NAME} of {dtype} data to {last.dtype}, or with other scales than float32 per tensor."
        raise fail("HG026", name, text, "Supported: int8 or uint8 for both, with one float32 scale per tensor.")
    ops = _ops(shape, data, last, attrs, attrs.get("opset", SINGLE_AXIS_OPSET))
    if ops is None:
        text = f"attribute axis is {attrs.get('axis')} for data of shape {list(shape)}."
        raise fail("HG013", name, text, f"Supported: {-len(shape)} to {len(shape) - 1}.")
    return Imported(([(op, shape) for op in ops],))


def _per_tensor(*scales: Array) -> bool:
    return all(scale.size == 1 and scale.dtype == np.float32 for scale in scales)


def _ops(shape: Shape, data: Dequantize, last: QuantizeLinear, attrs: dict[str, Any], opset: int) -> list[Op] | None:
    """The operations of a QLinearSoftmax of this opset, or None if the attribute axis is no axis of the data."""
    axis = attrs.get("axis", -1 if opset >= SINGLE_AXIS_OPSET else 1)
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    if opset < SINGLE_AXIS_OPSET:
        flat: Shape = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        model = _model(flat, 1, data, last)
    else:
        flat, model = shape, _model(shape, axis, data, last)
    model.graph.node.insert(0, helper.make_node("Reshape", ["x", "flat"], ["codes"]))
    model.graph.node.append(helper.make_node("Reshape", ["share", "shape"], ["y"]))
    for name, values in (("flat", flat), ("shape", shape)):
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    scalar_shape = (1,) * len(shape)
    zero = last.zero_point.reshape(scalar_shape)
    quantizer = QuantizeLinear(np.ones(scalar_shape, np.float32), zero, last.type, last.dtype, last.mode)
    return [Cast("float32"), HostOp(NAME, model.SerializeToString(deterministic=True)), quantizer]


def _table(scale: Array, length: int) -> Array:
    """e^((i - 255) * scale) for 256 codes i, times the largest factor for which `length` of them have a finite sum."""
    log_limit = np.float32(math.log(np.finfo(np.float32).max / np.float32(length)))  # float32, as in onnxruntime
    shift = max(0.0, float(log_limit) - 5) / float(scale)
    return np.exp((np.arange(256.0) - 255 + shift) * float(scale)).astype(np.float32)


def _model(shape: Shape, axis: int, data: Dequantize, last: QuantizeLinear) -> onnx.ModelProto:
    """The host's model from "codes" to "share", both float32."""
    constants = {
        "axis": np.array(axis),
        "axes": np.array([axis]),
        "top": np.array(255),
        "end": np.array([shape[axis] - 1]),
        "table": _table(data.scale.reshape(()), shape[axis]),
        "factor": np.floor(np.float32(1) / last.scale.reshape(())).astype(np.float32),
    }
    nodes = [
        helper.make_node("Cast", ["codes"], ["whole"], to=TensorProto.INT64),
        helper.make_node("ReduceMax", ["whole", "axes"], ["largest"]),
        helper.make_node("Sub", ["whole", "largest"], ["below"]),
        helper.make_node("Add", ["below", "top"], ["index"]),
        helper.make_node("Gather", ["table", "index"], ["power"]),
        helper.make_node("CumSum", ["power", "axis"], ["sums"]),
        helper.make_node("Gather", ["sums", "end"], ["sum"], axis=axis),
        helper.make_node("Mul", ["power", "factor"], ["scaled"]),
        helper.make_node("Div", ["scaled", "sum"], ["share"]),
    ]
    graph = helper.make_graph(
        nodes,
        NAME,
        [helper.make_tensor_value_info("codes", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
