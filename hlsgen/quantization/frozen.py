"""Dynamically quantized models with their scales frozen.

A DynamicQuantizeLinear takes the scale and the zero point of its codes from the minimum and the maximum of each input.
No fixed hardware does that. Here, the minimum and the maximum over a sample of inputs take their place, and the
operator becomes a QuantizeLinear with these constants.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hlsgen.diagnostics import fail
from hlsgen.quantization.comparison import open_session, run_session
from hlsgen.quantization.samples import Feed

#: Operators that quantize by their input, but not by outputs of their own that could be replaced.
_FUSED = ("DynamicQuantizeMatMul", "DynamicQuantizeLSTM")


def is_dynamic(model: onnx.ModelProto) -> bool:
    """True if an operator of the graph chooses scales by its input."""
    return any(node.op_type in ("DynamicQuantizeLinear", *_FUSED) for node in model.graph.node)


def freeze(model: onnx.ModelProto, feeds: list[Feed]) -> tuple[onnx.ModelProto, int]:
    """The model with constant scales in place of dynamic ones, and how many there are. Raises HG010.

    Scales and zero points follow ONNX's definition of the operator, for the smallest and the largest value of all
    feeds.
    """
    fused = next((node for node in model.graph.node if node.op_type in _FUSED), None)
    if fused is not None:
        raise fail(
            "HG010",
            fused.name or fused.op_type,
            f"{fused.op_type} keeps its scales to itself, and cannot be frozen.",
            "Quantize the float model instead: hlsgen quantize FLOAT.onnx.",
        )
    dynamic = [node for node in model.graph.node if node.op_type == "DynamicQuantizeLinear"]
    ranges = _ranges_of({node.input[0] for node in dynamic}, model, feeds)
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    nodes, constants = list[onnx.NodeProto](), list[TensorProto]()
    for node in frozen.graph.node:
        if node.op_type != "DynamicQuantizeLinear":
            nodes.append(node)
            continue
        scale, zero_point = scale_of(*ranges[node.input[0]])
        outputs = [*node.output, "", ""]
        codes = outputs[0]
        scale_name = outputs[1] or f"{codes}_scale"
        zero_point_name = outputs[2] or f"{codes}_zero_point"
        constants.append(numpy_helper.from_array(scale, scale_name))
        constants.append(numpy_helper.from_array(zero_point, zero_point_name))
        quantizer = helper.make_node("QuantizeLinear", [node.input[0], scale_name, zero_point_name], [codes], node.name)
        nodes.append(quantizer)
    del frozen.graph.node[:]
    frozen.graph.node.extend(nodes)
    frozen.graph.initializer.extend(constants)
    return frozen, len(dynamic)


def scale_of(lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    """Scale (float32) and zero point (uint8) of DynamicQuantizeLinear for values from `lowest` to `highest`.

    Source: the operator's definition in ONNX, opset 11; 1 and 0 where all values are 0.
    """
    lowest, highest = np.float32(min(lowest, 0.0)), np.float32(max(highest, 0.0))
    scale = np.float32(highest - lowest) / np.float32(255)
    if scale == 0:
        return np.float32(1.0).reshape(()), np.uint8(0).reshape(())
    zero_point = np.clip(np.rint(np.float32(0) - lowest / scale), 0, 255)
    return np.asarray(scale, np.float32), np.asarray(zero_point, np.uint8)


def _ranges_of(tensors: set[str], model: onnx.ModelProto, feeds: list[Feed]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each tensor over all feeds."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    inputs = {value.name for value in model.graph.input}
    del probe.graph.output[:]
    probe.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in sorted(tensors - inputs)
    )
    computed = sorted(tensors - inputs)
    session = open_session(probe) if computed else None
    ranges = dict.fromkeys(tensors, (0.0, 0.0))
    for feed in feeds:
        values = dict(feed)
        if session is not None:
            values |= zip(computed, run_session(session, computed, feed), strict=True)
        for name, (lowest, highest) in ranges.items():
            ranges[name] = min(lowest, float(values[name].min())), max(highest, float(values[name].max()))
    return ranges
