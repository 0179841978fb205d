"""Small models around one normalization, in every form in which files have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = Any

#: The forms of a normalization over the last axis that `norm_net` writes.
FORMS = (
    "LayerNormalization",
    "RMSNormalization",
    "layer div",
    "layer reciprocal",
    "layer one over",
    "layer twice",
    "layer power",
    "rms one over",
    "rms reciprocal",
    "rms div",
    "rms square by mul",
)


def norm_net(
    form: str,
    length: int = 16,
    bits: int = 4,
    rows: int = 3,
    epsilon: float = 1e-5,
    seed: int = 0,
    scale: float | None = None,
    out_bits: int | None = None,
    gamma: bool = True,
    opset: int | None = None,
) -> onnx.ModelProto:
    """QuantizeLinear (clipped to `bits`), the normalization with random gamma and beta, QuantizeLinear."""
    rng = np.random.default_rng(seed)
    top, out_top = 1 << (bits - 1), 1 << ((out_bits or bits) - 1)
    opset = opset or (23 if form == "RMSNormalization" else 17)
    kind = "rms" if form.lower().startswith("rms") else "layer"
    constants: dict[str, Array] = {
        "scale": np.float32(rng.uniform(2, 5) / top if scale is None else scale),
        "zero": np.int8(0),
        "out_scale": np.float32(3.3 / out_top),
        "low": np.int8(-top),
        "high": np.int8(top - 1),
        "out_low": np.int8(-out_top),
        "out_high": np.int8(out_top - 1),
        "gamma": (rng.normal(1, 0.25, length) if gamma else np.ones(length)).astype(np.float32),
        "beta": (rng.normal(0, 0.2, length) if gamma else np.zeros(length)).astype(np.float32),
        "epsilon": np.float32(epsilon),
        "one": np.float32(1),
        "two": np.float32(2),
        "half": np.float32(-0.5),
        "axes": np.array([-1], np.int64),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("Clip", ["q", "low", "high"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "scale", "zero"], ["d"]),
        *_normalization(form, kind, epsilon, opset),
        helper.make_node("QuantizeLinear", ["n", "out_scale", "zero"], ["p"]),
        helper.make_node("Clip", ["p", "out_low", "out_high"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "out_scale", "zero"], ["y"]),
    ]
    used = {name for node in nodes for name in node.input}
    tensors = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items() if name in used]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, rows, length]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "norm", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def _normalization(form: str, kind: str, epsilon: float, opset: int) -> list[onnx.NodeProto]:
    """From "d" to "n"."""
    if form == "LayerNormalization":
        return [helper.make_node(form, ["d", "gamma", "beta"], ["n"], axis=-1, epsilon=epsilon)]
    if form == "RMSNormalization":
        return [helper.make_node(form, ["d", "gamma"], ["n"], axis=-1, epsilon=epsilon)]
    way = form.split(" ", 1)[1]
    nodes = []

    def node(op_type: str, inputs: str, output: str) -> str:
        nodes.append(helper.make_node(op_type, inputs.split(), [output]))
        return output

    def mean(given: str, output: str) -> str:
        if opset >= 18:
            return node("ReduceMean", f"{given} axes", output)
        nodes.append(helper.make_node("ReduceMean", [given], [output], axes=[-1]))
        return output

    centered = squared = "d"
    if kind == "layer":
        mean("d", "mean")
        centered = node("Sub", "d mean", "centered")
        squared = node("Sub", "d mean", "again") if way == "twice" else centered
    square = (
        node("Mul", f"{squared} {squared}", "square") if "square" in way else node("Pow", f"{squared} two", "square")
    )
    variance = node("Add", f"{mean(square, 'variance')} epsilon", "stable")
    if way == "power":
        node("Pow", f"{variance} half", "inverse")
    else:
        node("Sqrt", variance, "root")
    if way == "reciprocal":
        node("Reciprocal", "root", "inverse")
    elif way in ("one over", "square by mul"):
        node("Div", "one root", "inverse")
    if way in ("div", "twice"):
        node("Div", f"{centered} root", "normal")
    else:
        node("Mul", f"{centered} inverse", "normal")
    node("Mul", "normal gamma", "n" if kind == "rms" else "scaled")
    if kind == "layer":
        node("Add", "scaled beta", "n")
    return nodes


def samples(model: onnx.ModelProto, count: int, seed: int = 1) -> Array:
    """Rows about 0 and far from it, wide and narrow, and some that are all alike."""
    rng = np.random.default_rng(seed)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    reach = float(constants["scale"]) * float(constants["high"])
    size = (count, *shape[1:-1], 1)
    middle, width = rng.uniform(-0.6, 0.6, size), rng.choice([0.02, 0.2, 0.5], size)
    x = rng.normal(middle * reach, width * reach, (count, *shape[1:]))
    x[0] = x[0, ..., :1]
    return x.astype(np.float32)
