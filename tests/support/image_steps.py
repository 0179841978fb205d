"""Evaluates the steps that operators on images are imported as, and the operators themselves elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import ort
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper
from qonnx.core.modelwrapper import ModelWrapper
from qonnx.core.onnx_exec import execute_onnx

from hlsgen import ir
from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend.constant_folding import Const, Dynamic, attributes
from hlsgen.frontend.domains import CHANNELS_LAST
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.frontend.operator_rule import check_operands
from hlsgen.frontend.rules import rule_of
from hlsgen.ir.evaluate import apply

Array = Any
Steps = list[tuple[Any, tuple[int, ...]]]


def small(rng: np.random.Generator, shape: Any) -> Array:
    """Small whole numbers: all sums are exact in float32."""
    return rng.integers(-8, 8, shape).astype(np.float32)


def random_window(rng: np.random.Generator, points: int, transposed: bool = False) -> dict[str, Any]:
    """Strides, dilations and pads of a kernel, or auto_pad."""
    found: dict[str, Any] = {}
    if rng.random() < 0.8:
        found["strides"] = rng.integers(1, 4, points).tolist()
    mode = rng.choice(["NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"], p=[0.4, 0.2, 0.1, 0.15, 0.15])
    if mode:
        found["auto_pad"] = str(mode)
    if not mode.startswith("SAME") and rng.random() < 0.5:
        found["dilations"] = rng.integers(1, 4, points).tolist()
    if mode in ("", "NOTSET") and rng.random() < 0.7 and not transposed:
        found["pads"] = rng.integers(0, 4, 2 * points).tolist()
    return found


def windows(x: Array, place: ir.Window, value: float) -> Array:
    """(n, height, width, channels, kernel height, kernel width) of an image padded with `value`."""
    top, left, bottom, right = place.pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)
    (dy, dx), (sy, sx) = place.dilations, place.strides
    return sliding_window_view(padded, place.reach, axis=(1, 2))[:, ::sy, ::sx, :, ::dy, ::dx]


def convolved(x: Array, weight: Array, place: ir.Window, groups: int, pad: float) -> Array:
    channels = x.shape[-1]
    parts = windows(x, place, pad)
    outputs = len(weight)
    assert weight.shape[1:] == (*place.kernel, channels // groups)
    parts = parts.reshape(*parts.shape[:3], groups, channels // groups, *place.kernel)
    kernel = weight.reshape(groups, outputs // groups, *weight.shape[1:])
    return np.einsum("nyxgcij,goijc->nyxgo", parts, kernel).reshape(*parts.shape[:3], outputs)


def step(op: Any, x: Array, shape: tuple[int, ...]) -> Array:
    match op:
        case ir.Reshape():
            return x.reshape(shape)
        case ir.Transpose(perm):
            return x.transpose(perm)
        case ir.Conv(weight, scale, place, groups):
            real = weight * scale.astype(np.float64)[:, None, None, None]
            return convolved(x.astype(np.float64), real, place, groups, 0).astype(np.float32)
        case ir.ConvInteger(weight, zero, place, groups):
            assert zero.shape == (x.shape[-1],)
            return convolved(x.astype(np.int64) - zero, weight, place, groups, 0).astype(np.int32)
        case ir.Pool(ir.Reduction.MAX, place):
            return windows(x.astype(np.float64), place, -np.inf).max(axis=(4, 5)).astype(x.dtype)
        case ir.Pool(ir.Reduction.SUM, place):
            return windows(x.astype(np.float64), place, 0).sum(axis=(4, 5)).astype(x.dtype)
        case ir.Repeat(rows, columns):
            return x.repeat(rows, 1).repeat(columns, 2)
        case ir.Slice(ranges):
            assert len(ranges) == x.ndim
            return x[tuple(slice(*r) for r in ranges)]
        case ir.Pad((top, left, bottom, right), value):
            return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)
        case _:
            return apply(op, x)


def evaluated(steps: Steps, x: Array) -> Array:
    """The steps on a tensor; each gives the shape it claims, and those on images take and give 4 axes."""
    for op, shape in steps:
        if isinstance(op, ir.Conv | ir.ConvInteger | ir.Pool | ir.Repeat | ir.Pad):
            assert x.ndim == len(shape) == 4, op
        if isinstance(op, ir.Conv | ir.ConvInteger | ir.Pool):
            assert op.window.size(*x.shape[1:3]) == shape[1:3]
            assert min(op.window.pads) >= 0
        x = step(op, x, shape)
        assert x.shape == shape, op
    return x


def evaluated_chain(found: Imported, x: Array) -> Array:
    """The only output of a node of `x`, with the importing functions that follow (`Imported.then`)."""
    if found.join is not None:
        op, shape = found.join
        assert isinstance(op, ir.Concat)
        x = np.concatenate([evaluated(list(ops), x) for ops in found.operand_ops], op.axis)
        assert x.shape == shape
    x = evaluated(list(found.outputs[0]), x)
    for convert in found.then:
        data = Dynamic(x.shape, str(x.dtype), 0)
        x = evaluated_chain(convert(NodeContext(onnx.NodeProto(), "node", {}, (data,), ("y0",))), x)
    return x


def node_of(op_type: str, inputs: int, domain: str = "", outputs: int = 1, **attrs: Any) -> onnx.NodeProto:
    names = ["x", *(f"c{i}" for i in range(1, inputs))]
    made: onnx.NodeProto = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], domain=domain, **attrs)
    return made


def imported_node(
    node: onnx.NodeProto,
    shape: tuple[int, ...],
    dtype: str,
    constants: list[Any],
    opset: int = 13,
    position: int = 0,
    last: bool = False,
) -> Imported:
    """What a node of data of that shape and dtype becomes, by the table of operators.

    `constants` are the inputs from the second on: arrays, `Const`, or None where one is absent or the data.
    """
    given = [c if isinstance(c, Const) or c is None else Const(np.asarray(c)) for c in constants]
    inputs: list[Const | Dynamic | None] = [None, *given]
    inputs[position] = Dynamic(shape, dtype, 0)
    outputs = tuple(node.output)
    context = NodeContext(node, "node", attributes(node), tuple(inputs), outputs, opset, last=last)
    rule = rule_of(node.domain, node.op_type, "node")
    check_operands(context, rule.operands)
    return rule.convert(context)


def imported(
    node: onnx.NodeProto, x: Array, constants: list[Any], opset: int = 13, position: int = 0, last: bool = False
) -> Any:
    """The steps of a node of data like x, of each output for Split; constants as for `imported_node`."""
    for i, const in enumerate(constants, 1):
        if const is None and i != position:
            node.input[i] = ""
    found = imported_node(node, x.shape, str(x.dtype), constants, opset, position, last)
    return list(found.outputs) if node.op_type == "Split" else found.outputs[0]


def code_of(node: onnx.NodeProto, x: Array, constants: list[Any], opset: int = 13, position: int = 0) -> str:
    """The code of the diagnostic with which a node is refused; "" if it is not."""
    try:
        imported(node, x, constants, opset, position)
    except HlsgenError as error:
        return error.diagnostics[0].code
    return ""


def model_of(node: onnx.NodeProto, x: Array, constants: list[Any], opset: int, shapes: list[Any]) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    arrays = [c.array if isinstance(c, Const) else c for c in constants]
    initializers = [
        onnx.numpy_helper.from_array(np.asarray(a), f"c{i}") for i, a in enumerate(arrays, 1) if a is not None
    ]
    outputs = [
        helper.make_tensor_value_info(o, 1, s) if s is not None else helper.make_empty_tensor_value_info(o)
        for o, s in zip(node.output, shapes, strict=True)
    ]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, x.shape)], outputs, initializers)
    own = 13 if node.domain == CHANNELS_LAST else 1  # as many as the ONNX operator's there
    versions = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(node.domain, own)] if node.domain else [])
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=versions)
    model.ir_version = 10
    return model


def by_ort(node: onnx.NodeProto, x: Array, constants: list[Any], opset: int = 13) -> list[Array]:
    return ort.run(model_of(node, x, constants, opset, [None] * len(node.output)), {"x": x}, ort.OFF)


def by_qonnx(
    node: onnx.NodeProto, x: Array, constants: list[Any], shape: tuple[int, ...], datatype: Any = None
) -> Array:
    """The QONNX executor, for its operators; the shape of the result must be given."""
    wrapped = ModelWrapper(model_of(node, x, constants, 13, [shape]))
    if datatype is not None:
        wrapped.set_tensor_datatype("x", datatype)
    return execute_onnx(wrapped, {"x": x})["y0"]


def agrees(node: Any, x: Array, constants: list[Any], opset: int = 13) -> Any:
    """The steps give what onnxruntime gives; returns them."""
    steps = imported(node, x, constants, opset)
    expected = by_ort(node, x, constants, opset)
    results = [evaluated(s, x) for s in (steps if node.op_type == "Split" else [steps])]
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
        assert result.dtype == wanted.dtype
    return steps
