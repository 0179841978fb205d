"""Random graphs of QDQ groups with any scale and zero point, whose oracle is onnxruntime itself.

onnxruntime fuses DequantizeLinear, operator, QuantizeLinear to integer kernels with their own order of operations, and
so does hlsgen. Every group here is one that both fuse, or in which nothing is rounded.
"""

from __future__ import annotations

import numpy as np
import onnx
import ort
from fuzz_phrases import FRAMES, Array, Sketch, Unfit
from fuzz_steps import moved, window

EIGHT = ("int8", "uint8")


class Groups(Sketch):
    """A sketch whose tensors are 8-bit codes of one type; `meaning` has the names of their scales and zero points."""

    def __init__(self, rng: np.random.Generator, x: Array, kind: str) -> None:
        super().__init__(rng, x, "qdq", False)
        self.codes = kind
        self.meaning: dict[str, tuple[str, str]] = {}

    def real(self, t: str) -> str:
        return self.add("DequantizeLinear", t, *self.meaning[t])

    def coded(self, t: str, like: str | None = None) -> str:
        """Quantized so that the data fill the codes, or as another tensor is."""
        if like is None:
            v = self.values[t]
            low, high = min(float(v.min()), 0.0), max(float(v.max()), 0.0)
            scale = np.float32(max(high - low, 1e-3) / 255 * self.rng.uniform(0.5, 1.5))
            info = np.iinfo(self.codes)
            zero = int(np.clip(np.round(info.min - low / scale), info.min, info.max))
            if self.chance(0.2):
                zero = self.whole(info.min, info.max)
            names = self.const(scale), self.const(zero, self.codes)
        else:
            names = self.meaning[like]
        codes = self.add("QuantizeLinear", t, *names)
        self.meaning[codes] = names
        return codes


def layer(s: Groups, t: str) -> str:
    """Conv, Gemm or MatMul of codes with an int32 bias, Relu at times."""
    shape, rows = s.shape(t), s.whole(1, 5)
    scale_x = s.constants[s.meaning[t][0]]
    is_conv = len(shape) in (3, 4)
    attributes = window(s, t) if is_conv else {}
    kernel = attributes.get("kernel_shape", [])
    assert isinstance(kernel, list)
    groups = s.pick(1, shape[1]) if is_conv else 1
    form = (rows * groups, shape[1] // groups, *kernel) if is_conv else (shape[-1], rows)
    kind = "int8" if s.codes == "int8" else s.pick(*EIGHT)
    signed = kind == "int8"
    per = s.chance(0.4)
    count = form[0 if is_conv else 1]
    scale = s.rng.uniform(0.002, 0.05, count if per else ()).astype(np.float32)
    zero = np.zeros_like(scale) if signed else np.full(np.shape(scale), 128 if per else s.whole(100, 150))
    data = s.rng.integers(-127, 128, form) if signed else s.rng.integers(0, 256, form)
    names = [s.const(data, kind), s.const(scale), s.const(zero, kind)]
    weight = s.fixed("DequantizeLinear", *names, axis=0 if is_conv else 1)
    inputs = [s.real(t), weight]
    if s.chance(0.6) and (is_conv or len(shape) == 2):
        product = (scale_x * scale).astype(np.float32)
        codes = s.rng.integers(-2000, 2000, count)
        zeros = s.const(np.zeros_like(product), "int32")
        bias = s.fixed(
            "DequantizeLinear",
            s.const(codes, "int32"),
            s.const(np.broadcast_to(product, np.shape(scale))),
            zeros,
            axis=0,
        )
        layer_output = (
            s.add("Conv", *inputs, bias, group=groups, **attributes) if is_conv else s.add("Gemm", *inputs, bias)
        )
    else:
        layer_output = s.add("Conv", *inputs, group=groups, **attributes) if is_conv else s.add("MatMul", *inputs)
    return s.coded(layer_output)


def joint(s: Groups, t: str) -> str:
    """Two tensors, or one and a constant."""
    op = s.pick("Add", "Mul")
    if s.chance(0.4):
        info = np.iinfo(s.codes)
        form = s.pick((), s.shape(t)[-1:], (1, s.shape(t)[1], *[1] * (len(s.shape(t)) - 2)))
        codes = s.const(s.rng.integers(info.min, info.max + 1, form), s.codes)
        scale, zero = s.const(s.rng.uniform(0.002, 0.1)), s.const(s.whole(info.min, info.max), s.codes)
        return s.coded(s.add(op, s.real(t), s.fixed("DequantizeLinear", codes, scale, zero)))
    if len(s.shape(t)) not in (3, 4):
        raise Unfit
    second_operand = s.pick(layer_of_same, pooled)(s, t)
    return s.coded(s.add(op, s.real(t), s.real(second_operand)))


def layer_of_same(s: Groups, t: str) -> str:
    channels = s.shape(t)[1]
    data = s.const(s.rng.integers(-127, 128, (channels, channels, *[1] * (len(s.shape(t)) - 2))), "int8")
    weight = s.fixed("DequantizeLinear", data, s.const(s.rng.uniform(0.002, 0.05)), s.const(0, "int8"))
    return s.coded(s.add("Conv", s.real(t), weight))


def pooled(s: Groups, t: str) -> str:
    """A maximum over the neighbours, of the same shape."""
    points = len(s.shape(t)) - 2
    pooled_tensor = s.add("MaxPool", s.real(t), kernel_shape=[3] * points, pads=[1] * 2 * points)
    return s.coded(pooled_tensor, t)


def free(s: Groups, t: str) -> str:
    """Operators that only move codes, between DequantizeLinear and QuantizeLinear with equal parameters."""
    real = s.real(t)
    if len(s.shape(t)) in (3, 4) and s.chance(0.5):
        return s.coded(s.add("MaxPool", real, **{k: v for k, v in window(s, t).items() if k != "dilations"}), t)
    moved_tensor = moved(s, real)
    if s.kind(moved_tensor) != "float32":
        raise Unfit
    return s.coded(moved_tensor, t)


def mean(s: Groups, t: str) -> str:
    if len(s.shape(t)) != 4:
        raise Unfit
    return s.coded(s.add("GlobalAveragePool", s.real(t)))


def activated(s: Groups, t: str) -> str:
    return s.coded(s.add("LeakyRelu", s.real(t), alpha=float(s.pick(0.1, 0.25))))


def random_groups(seed: int) -> Groups:
    """A graph of two to five groups, the same for the same seed."""
    rng = np.random.default_rng([seed, 77])
    rank = int(rng.choice([2, 3, 4], p=[0.3, 0.1, 0.6]))
    shape = (FRAMES // 4, int(rng.integers(1, 5)), *rng.integers(2, 7, rank - 2).tolist())
    kind = str(rng.choice(EIGHT))
    s = Groups(rng, rng.normal(size=shape).astype(np.float32), kind)
    t = s.coded("x")
    for _ in range(s.whole(1, 4)):
        first_node = len(s.nodes)
        try:
            t = s.pick(layer, layer, joint, joint, free, mean, activated)(s, t)
        except Unfit:
            del s.nodes[first_node:]
    s.real(t)
    return s


def executed(model: onnx.ModelProto, x: Array) -> Array:
    """The model's output by onnxruntime as it fuses it on ARM, one frame at a time."""
    session = ort.session(model, arm=True)
    name = model.graph.input[0].name
    return np.stack([session.run(None, {name: frame[None]})[0][0] for frame in x])
