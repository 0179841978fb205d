"""Small models, right and wrong: a builder whose every call adds one node behind the last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_graph import QONNX as DOMAIN
from onnx_graph import OnnxGraph

Array = NDArray[Any]


class Net(OnnxGraph):
    """A straight model; `last` is the tensor that the next node takes."""

    def __init__(self, shape: Sequence[int | str | None] | None = (1, 4), elem_type: int = TensorProto.FLOAT) -> None:
        super().__init__()
        self.inputs = [helper.make_tensor_value_info("x", elem_type, shape)]
        self.outputs: list[str] | None = None
        self.opsets = {"": 13, DOMAIN: 1}

    def node(self, op: str, *inputs: Any, **options: Any) -> Net:
        """`op` with exactly these inputs; its first output becomes the last tensor."""
        self.last = self.add(op, inputs, **options) or self.last
        return self

    def quant(self, scale: Any = 0.5, zero: Any = 0.0, bits: Any = 4.0, **options: Any) -> Net:
        options.setdefault("domain", DOMAIN)
        return self.then("IntQuant", scale, zero, bits, **options)

    def linear(self, rows: int = 3, columns: int = 4, weight: Any = None, name: str = "fc", **quant: Any) -> Net:
        """MatMul with quantized weights (columns, rows)."""
        data = self.last
        grid = (np.arange(rows * columns).reshape(columns, rows) % 7 - 3) * 0.25
        self.node(
            "IntQuant",
            weight if weight is not None else grid.astype(np.float32),
            quant.get("scale", 0.25),
            quant.get("zero", 0.0),
            quant.get("bits", 4.0),
            name=f"{name}_weights",
            domain=DOMAIN,
        )
        return self.node("MatMul", data, self.last, name=name)

    def model(self) -> onnx.ModelProto:
        names = [self.last] if self.outputs is None else self.outputs
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
        return self.proto("net", self.inputs, outputs, self.opsets.items())


def quantizer(**options: Any) -> Net:
    """One IntQuant node, named q."""
    return Net().quant(**{"name": "q", **options})


def mlp() -> Net:
    """Quantizer, layer, Relu, quantizer, layer."""
    net = Net().quant(name="q0", signed=1).linear(3, 4, name="fc0").then("Relu", name="relu")
    return net.quant(scale=0.5, bits=3.0, signed=0, name="q1").linear(2, 3, name="fc1")


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def newer(model: onnx.ModelProto) -> onnx.ModelProto:
    """In an opset that has all operators, with all attributes of the quantizers, which qonnx wants."""
    defaults = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    for node in (n for n in model.graph.node if n.op_type == "IntQuant"):
        given = {a.name for a in node.attribute}
        node.attribute.extend(helper.make_attribute(key, value) for key, value in defaults.items() if key not in given)
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)])
    return model


def samples(count: int, columns: int = 6) -> Array:
    return np.random.default_rng(3).integers(-20, 20, (count, columns)).astype(np.float32) / 8
