"""Replacement of CastLike by Cast to the declared type of its second input."""

from __future__ import annotations

import onnx
from onnx import helper

from hlsgen.frontend.domains import ONNX


def as_casts(graph: onnx.GraphProto) -> None:
    """Replace, in place, every CastLike whose target type the graph declares."""
    type_by_tensor = {t.name: t.data_type for t in graph.initializer}
    for value in (*graph.value_info, *graph.input, *graph.output):
        type_by_tensor[value.name] = value.type.tensor_type.elem_type
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            type_by_tensor[node.output[0]] = node.attribute[0].t.data_type
        if node.op_type != "CastLike" or node.domain not in ONNX or len(node.input) < 2:
            continue
        if target_type := type_by_tensor.get(node.input[1]):
            del node.input[1:]
            node.op_type = "Cast"
            node.attribute.append(helper.make_attribute("to", target_type))
            type_by_tensor[node.output[0]] = target_type
