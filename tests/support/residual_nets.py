"""Random networks of sums: residual blocks, U-Nets, images with a scale for each channel; scales that floats round."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from models import newer
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_graph import QONNX, OnnxGraph

Array = NDArray[Any]


class Branchy(OnnxGraph):
    """Quantizers and convolutions in one of two forms, "qonnx" and "qdq"; in the latter Clips narrow the codes.

    `draw_scale` gives the scale of a quantizer: always the same, powers of two times one, or short multiples of a unit.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(labels=True)
        self.rng = np.random.default_rng(seed)
        self.form = ["qonnx", "qdq"][seed % 2]
        self.bits, self.style = int(self.rng.integers(4, 9)), int(self.rng.integers(0, 3))
        self.base = np.float32(self.rng.uniform(0.05, 0.4))

    def draw_scale(self) -> np.float32:
        if self.style == 0:
            return self.base
        if self.style == 1:
            return np.float32(self.base * 2.0 ** int(self.rng.integers(-1, 2)))
        return np.float32(np.round(float(self.base) * 2**12) / 2**12 * int(self.rng.integers(1, 8)))

    def quant(self, x: str, scale: Any, signed: int = 1) -> str:
        """With a scale for each channel, of (1, channels, height, width)."""
        scale = np.asarray(scale, np.float32)
        if self.form == "qonnx":
            scale = scale.reshape(1, -1, 1, 1) if scale.ndim else scale
            options = {"domain": QONNX, "signed": signed, "narrow": 0, "rounding_mode": "ROUND"}
            return self.add("IntQuant", [x, scale, 0.0, float(self.bits)], **options)  # type: ignore[arg-type]
        kind = np.int8 if signed else np.uint8
        zero, name = self.const(np.zeros(scale.shape), kind), self.const(scale, np.float32)
        codes = self.add("QuantizeLinear", [x, name, zero], axis=1)
        if self.bits < 8:
            half = 1 << (self.bits - 1)
            ends = (-half, half - 1) if signed else (0, 2 * half - 1)
            codes = self.add("Clip", [codes, *(self.const(end, kind) for end in ends)])
        return self.add("DequantizeLinear", [codes, name, zero], axis=1)

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 3, group: int = 1) -> str:
        """Weights of 4 bits, with one scale or with one for each output; sometimes a bias."""
        codes = self.rng.integers(-7, 8, (outputs, inputs // group, kernel, kernel))
        scale = np.float32(self.rng.uniform(0.01, 0.3, outputs if self.rng.random() < 0.6 else 1))
        scale = scale if scale.size > 1 else scale.reshape(())
        if self.form == "qonnx":
            wide = scale.reshape(-1, 1, 1, 1) if scale.ndim else scale
            options = {"domain": QONNX, "signed": 1, "narrow": 1, "rounding_mode": "ROUND"}
            weight = self.add("IntQuant", [np.float32(codes) * wide, wide, 0.0, 4.0], **options)  # type: ignore[arg-type]
        else:
            parts = [self.const(codes, np.int8), scale, self.const(np.zeros(scale.shape), np.int8)]
            weight = self.add("DequantizeLinear", parts, axis=0)
        bias = [np.float32(self.rng.normal(0, 1, outputs))] if self.rng.random() < 0.3 else []
        return self.add("Conv", [x, weight, *bias], pads=[kernel // 2] * 4, kernel_shape=[kernel] * 2, group=group)

    def doubled(self, x: str, sizes: tuple[float, ...]) -> str:
        """Rows and columns repeated."""
        parts = [x, self.const(np.zeros(0), np.float32), self.const(np.float32(sizes))]
        options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.add("Resize", parts, **options)  # type: ignore[arg-type]

    def model(self, last: str, shape: list[int]) -> onnx.ModelProto:
        ins = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        outs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)]
        return newer(self.proto("branchy", ins, outs, [("", 18), (QONNX, 1)]))


def blocks(seed: int) -> onnx.ModelProto:
    """x = Relu(x + q(conv(x))), some times; then a quantizer of twice a scale, a layer, or an average."""
    g = Branchy(seed)
    x = g.quant("x", g.draw_scale())
    for _ in range(int(g.rng.integers(1, 4))):
        inner = g.quant(x, g.draw_scale(), int(g.rng.random() < 0.5)) if g.rng.random() < 0.4 else x
        x = g.add("Add", [x, g.quant(g.conv(inner, 3, 3, 1), g.draw_scale())])
        if g.rng.random() < 0.7:
            x = g.add("Relu", [x])
    kind = g.rng.integers(0, 3)
    x = x if kind == 0 else g.conv(x, 3, 2, 1) if kind == 1 else g.add("GlobalAveragePool", [x])
    return g.model(g.quant(x, g.draw_scale() * np.float32(2 if kind == 0 else 1)), [1, 3, 4, 4])


def u_net(seed: int) -> onnx.ModelProto:
    """Down and up again, with channels last in half of them; the skip is a sum, and goes into sums or a Concat."""
    g = Branchy(seed)
    last = g.rng.random() < 0.5

    def image(op: str, x: str) -> str:
        forth = g.add("Transpose", [x], perm=[0, 3, 1, 2]) if last else x
        made = g.conv(forth, 3, 3) if op == "Conv" else g.add(op, [forth], kernel_shape=[2, 2], strides=[2, 2])
        return g.add("Transpose", [made], perm=[0, 2, 3, 1]) if last else made

    x = g.quant("x", g.draw_scale())
    skip = g.add("Add", [g.quant(image("Conv", x), g.draw_scale()), x])
    skip = g.add("Relu", [skip]) if g.rng.random() < 0.5 else skip
    y = g.doubled(
        g.quant(image("Conv", image("MaxPool", skip)), g.draw_scale()), (1, 2, 2, 1) if last else (1, 1, 2, 2)
    )
    kind = g.rng.integers(0, 3)
    y = g.add("Concat", [y, skip], axis=1) if kind == 0 else g.add("Add", [y, skip])
    y = g.add("Add", [y, x]) if kind == 1 else y
    y = image("Conv", y) if kind else y
    return g.model(g.quant(y, g.draw_scale()) if g.rng.random() < 0.5 else y, [1, 4, 4, 3] if last else [1, 3, 4, 4])


def channels(seed: int) -> onnx.ModelProto:
    """A scale for each channel, through pools, borders, cuts and a Concat, into a convolution."""
    g = Branchy(seed)
    count, start = 4, g.rng.uniform(0.05, 0.4, 4)
    x = g.quant("x", start)
    for _ in range(int(g.rng.integers(1, 4))):
        match int(g.rng.integers(0, 6)):
            case 0 | 1:
                x = g.add("MaxPool", [x], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
            case 2:
                x = g.add("Pad", [x, g.const(np.array([0, 0, 1, 0, 0, 0, 0, 1]), np.int64)])
            case 3:
                x = g.doubled(x, (1, 1, 2, 1))
            case 4:
                x = g.add("Slice", [x, *(g.const(np.array([v]), np.int64) for v in (1, 4, 2))])
            case _:
                x = g.add("Concat", [x, x], axis=1)
                count *= 2
    outputs = count if g.form == "qdq" else int(g.rng.integers(2, 4))  # onnxruntime has no other form of the first
    return g.model(g.conv(x, count, outputs, group=count if outputs == count else 1), [1, 4, 5, 5])
