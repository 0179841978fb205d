"""Replaces float nodes that onnxruntime has fused by the standard nodes that define them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hlsgen.frontend.domains import MICROSOFT

#: Attributes of activations, in the order of `activation_params`.
_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}


def take_apart(graph: onnx.GraphProto) -> set[str]:
    """Replaces FusedConv, FusedGemm, FusedMatMul by their parts; returns the tensors that the parts produce.

    The last part produces the fused node's tensor.
    """
    nodes: list[onnx.NodeProto] = []
    tensors: set[str] = set()
    for node in graph.node:
        parts = _parts(node, graph) if node.domain == MICROSOFT else [node]
        nodes += parts
        if len(parts) > 1 or parts[0] is not node:
            tensors |= {o for part in parts for o in part.output}
    del graph.node[:]
    graph.node.extend(nodes)
    return tensors


def _parts(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The standard nodes of a fused node; other nodes unchanged."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    match node.op_type:
        case "FusedConv" | "FusedGemm":
            kind = attributes.pop("activation", b"").decode()
            parameters = attributes.pop("activation_params", [])
            added = node.input[3] if node.op_type == "FusedConv" and len(node.input) > 3 else ""
            part_attributes = {k: v for k, v in attributes.items() if not k.startswith("activation_")}
            parts = [helper.make_node(node.op_type[5:], node.input[:3], [""], **part_attributes)]
            if added:
                parts.append(helper.make_node("Add", ["", added], [""]))
            if kind == "Clip":
                bounds = [_constant(graph, f"{node.output[0]}/bound {n}", b) for n, b in enumerate(parameters)]
                parts.append(helper.make_node("Clip", ["", *bounds], [""]))
            elif kind:
                names = _PARAMETERS.get(kind, ())
                values = {k: v for k, v in attributes.items() if k in [f"activation_{name}" for name in names]}
                part_attributes = {k.removeprefix("activation_"): v for k, v in values.items()}
                parts.append(
                    helper.make_node(kind, [""], [""], **(part_attributes | dict(zip(names, parameters, strict=False))))
                )
        case "FusedMatMul" if not (attributes.get("transBatchA") or attributes.get("transBatchB")):
            return _product(node, attributes, graph)
        case _:
            return [node]
    return _chained(node, parts)


def _product(node: onnx.NodeProto, attributes: dict[str, float], graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """A MatMul times a factor. A node that transposes a matrix stays as it is: its rank is unknown."""
    alpha = np.float32(attributes.get("alpha", 1.0))
    if attributes.get("transA") or attributes.get("transB"):
        return [node]
    parts = [helper.make_node("MatMul", node.input, [""])]
    if alpha != 1:
        parts.append(helper.make_node("Mul", ["", _constant(graph, f"{node.output[0]}/alpha", alpha)], [""]))
    return _chained(node, parts)


def _chained(node: onnx.NodeProto, parts: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The parts with names, connected in order; "" as an input is the output of the previous part."""
    for number, part in enumerate(parts):
        name = f"{node.output[0]}/part {number}"
        part.name = node.name if len(parts) == 1 else f"{node.name} ({part.op_type})"
        part.output[0] = node.output[0] if number == len(parts) - 1 else name
        if number:
            part.input[0] = parts[number - 1].output[0]
    return parts


def _constant(graph: onnx.GraphProto, name: str, value: float) -> str:
    graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
    return name
