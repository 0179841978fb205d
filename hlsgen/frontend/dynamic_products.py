"""Matrix products of floats that onnxruntime quantizes at run time (MatMulNBits).

It does so for quantized weights if neither the floats nor the result are quantized. The scales of the floats depend on
the frame, so that no hardware with fixed scales has these integers. Source: DQMatMulNodeGroupSelector of onnxruntime
1.31, and its optimized graphs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend.constant_folding import label
from hlsgen.frontend.node_graph import DEQUANTIZE, QUANTIZE, NodeGraph, attribute
from hlsgen.frontend.onnx_graph import name_all
from hlsgen.frontend.onnxruntime_graph import inferred_shapes
from hlsgen.frontend.onnxruntime_groups import fuse_groups, is_complete
from hlsgen.frontend.runtimes import GROUPING

_WEIGHTS = frozenset(["int4", "uint4", "int8", "uint8"])
#: Lengths of blocks of weights with one scale.
_BLOCKS = (16, 32, 64, 128, 256)
#: Shapes by tensor; an axis without a number is None.
Shapes = dict[str, tuple[int | None, ...]]
#: Attributes of a Gemm that is a product and a bias.
_GEMM = {"transA": 0, "transB": 0, "alpha": 1.0, "beta": 1.0}


def runtime_without_them(model: onnx.ModelProto, opset: int, runtime: str, choice: str, problems: Collector) -> str:
    """The runtime of a file: "onnx" instead of a default that quantizes floats at run time, with a warning (HG090).

    Reports HG010 for each such product if the user chose the runtime.
    """
    names = dynamic_products(model, opset, runtime)
    for name in names:
        text = f"{runtime} quantizes the input of this product at run time (MatMulNBits), with a scale for each frame."
        if choice == "auto":
            hint = "To have the integers of onnxruntime, quantize its input or its result with QuantizeLinear."
            problems.warn("HG090", name, f"{text} The build has the integers of --runtime onnx.", hint)
        else:
            hint = "Quantize its input or its result with QuantizeLinear, or build with --runtime onnx."
            problems.error("HG010", name, text, hint)
    return "onnx" if names and choice == "auto" else runtime


def dynamic_products(model: onnx.ModelProto, opset: int, runtime: str) -> list[str]:
    """Names of the products of a file that the runtime computes with MatMulNBits."""
    if runtime not in GROUPING or not all(is_complete(node) for node in model.graph.node):
        return []  # the importer reports an incomplete node
    if not any(_products(NodeGraph(model.graph))):
        return []
    grouped = onnx.ModelProto()
    grouped.CopyFrom(model)
    name_all(grouped.graph)
    fuse_groups(grouped.graph, opset, runtime)
    graph, shapes = NodeGraph(grouped.graph), inferred_shapes(model.graph, opset)
    return [label(node) for node in _products(graph) if _is_dynamic(graph, node, shapes)]


def _products(graph: NodeGraph) -> Iterator[onnx.NodeProto]:
    """The products of floats and quantized weights."""
    for node in graph.nodes.values():
        if node.op_type in ("MatMul", "Gemm") and not node.domain and len(node.input) > 1:
            first, weight = (graph.producer.get(name) for name in node.input[:2])
            is_float = first is None or first.op_type != DEQUANTIZE
            if is_float and weight is not None and _is_packed(graph, node, weight):
                yield node


def _is_packed(graph: NodeGraph, node: onnx.NodeProto, weight: onnx.NodeProto) -> bool:
    """True for the DequantizeLinear of constant weights whose scales MatMulNBits can have."""
    if weight.op_type != DEQUANTIZE or graph.only_consumer(weight.output[0]) is not node:
        return False
    constants = [graph.constant(name) for name in weight.input if name]
    if any(array is None for array in constants):
        return False
    codes, scale = (np.asarray(array) for array in constants[:2])
    if codes.ndim != 2 or codes.dtype.name not in _WEIGHTS or scale.dtype != np.float32:
        return False
    if node.op_type == "Gemm":
        factors = [attribute(node, name, default) for name, default in _GEMM.items()]
        if factors != list(_GEMM.values()):
            return False
    axis, block = int(str(attribute(weight, "axis", 1))) % 2, attribute(weight, "block_size", 0)
    if block:
        return axis == 0 and block in _BLOCKS
    return scale.size == 1 or axis == 1


def _is_dynamic(graph: NodeGraph, node: onnx.NodeProto, shapes: Shapes) -> bool:
    """True if neither the kind of bias nor a quantizer after the product keeps it in float32."""
    data, columns = shapes.get(node.input[0]), _shape(graph, node.input[1], shapes)[-1:]
    after = graph.only_consumer(node.output[0])
    if node.op_type == "Gemm" and any(node.input[2:]) and _shape(graph, node.input[2], shapes) != columns:
        return False
    if node.op_type == "MatMul" and data is not None and after is not None and after.op_type == "Add":
        (term,) = (_shape(graph, name, shapes) for name in after.input if name != node.output[0])
        if len(data) == 2 and 0 < len(term) <= 2 and term != columns:
            return False  # a Gemm whose third operand is no vector
        if term == columns:  # a Gemm; of more axes than two between two Reshape
            after = graph.only_consumer(after.output[0])
            if len(data) != 2:
                return after is None or after.op_type != QUANTIZE
    if after is not None and after.op_type in ("Relu", "Clip"):
        after = graph.only_consumer(after.output[0])
    return after is None or after.op_type != QUANTIZE


def _shape(graph: NodeGraph, name: str, shapes: Shapes) -> tuple[int | None, ...]:
    """The shape of a tensor, () if it is unknown."""
    constant = graph.constant(name)
    return shapes.get(name, ()) if constant is None else constant.shape
