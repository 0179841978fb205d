"""Nodes of random QONNX networks on images: `Builder` adds them behind any tensor and tracks shapes and sizes of
numbers.

With `powers`, all scales are powers of two and sums stay below 2^24: float32 execution is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_graph import QONNX as GENERAL
from onnx_graph import OnnxGraph

LAST = "qonnx.custom_op.channels_last"
MODES = ["ROUND", "ROUND", "FLOOR", "CEIL", "UP", "DOWN", "HALF_UP", "HALF_DOWN"]
#: Bits of an exact sum.
SUM_BITS = 23
Array = NDArray[Any]


@dataclass(frozen=True)
class Tensor:
    """(n, channels, points...). `bits`: of the values in their common unit; `spread`: how large they are, about."""

    name: str
    shape: tuple[int, ...]
    bits: int
    spread: float

    @property
    def channels(self) -> int:
        return self.shape[1]

    @property
    def points(self) -> tuple[int, ...]:
        return self.shape[2:]


class Builder(OnnxGraph):
    """Every method adds nodes and gives the tensor behind them; what is not said is random."""

    def __init__(self, seed: int, powers: bool = True, max_bits: int = 5) -> None:
        super().__init__(np.float32, np.float32, labels=True)
        self.rng, self.powers, self.max_bits = np.random.default_rng(seed), powers, max_bits
        self.version = int(self.rng.integers(1, 3))
        self.annotations: list[onnx.TensorAnnotation] = []
        self.infos: list[onnx.ValueInfoProto] = []
        self.source: tuple[int | str, ...] = ()

    # ----------------------------------------------------------------- plumbing

    def node(self, op: str, *inputs: str, count: int = 1, **options: Any) -> str:
        """Name of the (first) result."""
        return self.add(op, inputs, [f"t{len(self.nodes)}" + (f"_{n}" if n else "") for n in range(count)], **options)

    def maybe(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def input(self, *shape: int, symbolic: bool | None = None) -> Tensor:
        symbolic = self.maybe(0.3) if symbolic is None else symbolic
        self.source = ("N", *shape[1:]) if symbolic else shape
        return Tensor("x", shape, 24, 4.0)

    def model(self, result: Tensor, elem_type: int = TensorProto.FLOAT) -> onnx.ModelProto:
        shape = (self.source[0], *result.shape[1:]) if self.source[0] == "N" else result.shape
        source = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.source)
        last = helper.make_tensor_value_info(result.name, elem_type, shape)
        model = self.proto("random", [source], [last], [("", 13), (GENERAL, self.version), (LAST, 1)])
        model.graph.quantization_annotation.extend(self.annotations)
        model.graph.value_info.extend(self.infos)
        return model

    def declared(self, name: str, *shape: int) -> str:
        """The tensor with its shape in the file, which qonnx needs in front of its own operators."""
        self.infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def along(self, x: Tensor, count: int | None = None) -> tuple[int, ...]:
        """Shape of a parameter with a value for each channel."""
        return (1, count or x.channels, *(1 for _ in x.points))

    # ----------------------------------------------------------------- quantizers

    def scale(self, about: float, shape: tuple[int, ...] = (), ratio: int = 0) -> Array:
        """Scales of about that size; powers of two differ by at most 2^ratio."""
        if self.powers:
            return np.asarray(2.0 ** (round(log2(about)) + self.rng.integers(0, ratio + 1, shape)))
        return np.asarray(about * self.rng.uniform(0.7, 1.4, shape))

    def quant(self, x: Tensor, bits: int | None = None, **attributes: Any) -> Tensor:
        """IntQuant or Quant, with a scale with which few values saturate."""
        bits = bits or self.between(2, self.max_bits)
        signed = attributes.setdefault("signed", self.between(0, 1))
        attributes.setdefault("narrow", self.between(0, 1) if bits > 1 else 0)
        attributes.setdefault("rounding_mode", self.pick(*MODES))
        levels = max(1.0, 2.0 ** (bits - signed) - 1)
        channel = attributes.pop("channel", self.maybe(0.15))
        about = x.spread * self.pick(0.5, 0.7, 1.0) / levels
        scale = self.scale(about, self.along(x) if channel else (), 2)
        zero = attributes.pop("zero", None)
        if zero is None:
            zero = self.pick(-2, -1, 1, 2, 0.5) if bits > 1 and self.maybe(0.15) else 0
        own = {"domain": GENERAL, **attributes}
        name = self.node(
            self.pick("IntQuant", "Quant"), x.name, self.const(scale), self.const(zero), self.const(bits), **own
        )
        wide = bits + 2 * channel + (2 if zero else 0)
        return Tensor(name, x.shape, wide, min(x.spread, float(scale.max()) * levels))

    def bipolar(self, x: Tensor) -> Tensor:
        scale = self.scale(x.spread)
        if self.maybe(0.3):
            name = self.node(
                "IntQuant",
                x.name,
                self.const(scale),
                self.const(0),
                self.const(1),
                domain=GENERAL,
                signed=1,
                narrow=0,
                rounding_mode="ROUND",
            )
        else:
            name = self.node("BipolarQuant", x.name, self.const(scale), domain=GENERAL)
        return Tensor(name, x.shape, 1, float(scale))

    def threshold(self, x: Tensor) -> Tensor:
        """MultiThreshold, as FINN writes it."""
        steps = self.pick(1, 3, 7, 15)
        table = np.sort(self.rng.normal(0, x.spread / 2, (self.pick(1, x.channels), steps)), axis=1)
        if self.powers:
            table = np.round(table * 16) / 16
        scale = float(self.scale(1.0)) if self.maybe(0.5) else 1.0
        bias = self.pick(0.0, 0.0, -scale * (steps // 2 + 1))
        layout = {2: "NC", 3: "NCW", 4: "NCHW"}[len(x.shape)]
        name = self.node(
            "MultiThreshold",
            x.name,
            self.const(table),
            domain=GENERAL,
            out_dtype="INT8",
            data_layout=layout,
            out_scale=scale,
            out_bias=bias,
        )
        return Tensor(name, x.shape, ceil(log2(steps + 1)) + 1, scale * (steps + 1) / 2)

    def activation(self, x: Tensor) -> Tensor:
        """A quantizer of any kind."""
        kind = self.rng.random()
        return self.bipolar(x) if kind < 0.12 else self.threshold(x) if kind < 0.25 else self.quant(x)

    def trunc(self, x: Tensor, scale: float, bits: int, out_bits: int) -> Tensor:
        """Trunc behind sums of codes of that scale."""
        mode = self.pick("FLOOR", "ROUND", "CEIL")
        inputs = [x.name, self.const(scale), self.const(0), self.const(bits)]
        if self.version == 1:
            inputs.append(self.const(out_bits))
            own: dict[str, Any] = {}
        else:
            inputs += [self.const(scale * 2.0 ** (bits - out_bits)), self.const(out_bits)]
            own = {"signed": 1, "narrow": 0}
        name = self.node("Trunc", *inputs, domain=GENERAL, rounding_mode=mode, **own)
        return replace(x, name=name, bits=out_bits)

    # ----------------------------------------------------------------- layers

    def weights(self, form: tuple[int, ...], outputs_axis: int, bits: int, kind: str = "") -> tuple[str, float]:
        """(quantized weights, how large they are)."""
        values = self.const(self.rng.normal(0, 1, form))
        if kind == "bipolar" or (not kind and self.maybe(0.12)):
            return self.node("BipolarQuant", values, self.const(self.scale(0.5)), domain=GENERAL), 0.5
        shape = tuple(n if i == outputs_axis else 1 for i, n in enumerate(form)) if self.maybe(0.5) else ()
        scale = self.scale(2.0 / 2 ** (bits - 1), shape, 2)
        zero = float(self.between(-1, 1)) if self.maybe(0.1) else 0.0
        name = self.node(
            self.pick("IntQuant", "Quant"),
            values,
            self.const(scale),
            self.const(zero),
            self.const(bits),
            domain=GENERAL,
            signed=1,
            narrow=self.between(0, 1),
            rounding_mode="ROUND",
        )
        return name, 1.0

    def weight_bits(self, x: Tensor, terms: int) -> int:
        """Bits of weights with which sums of so many products stay exact."""
        most = SUM_BITS - x.bits - ceil(log2(terms + 1)) - 2
        assert most >= 2, "the sums could be rounded"
        return self.between(2, min(most, self.max_bits + 1))

    def window(self, x: Tensor, most: int = 3, ceil_mode: bool = False, dilated: bool = True) -> dict[str, Any]:
        """kernel_shape, strides, pads or auto_pad, dilations that fit."""
        count = len(x.points)
        while True:
            kernel = self.rng.integers(1, most + 1, count).tolist()
            strides = [self.pick(1, 1, 2, 3) for _ in range(count)]
            dilations = [self.pick(1, 1, 1, 2) if dilated else 1 for _ in range(count)]
            pads = [0] * 2 * count
            style = self.pick("none", "same", "any", "auto")
            if style == "same":
                pads = [(k - 1) * d // 2 for k, d in zip(kernel, dilations, strict=True)] * 2
            elif style == "any":
                pads = [self.between(0, k - 1) for k in kernel * 2]
            own: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
            if style == "auto" and set(dilations) == {1}:
                own["auto_pad"] = self.pick("SAME_UPPER", "SAME_LOWER", "VALID")
                padded = own["auto_pad"] != "VALID"
                if padded and ceil_mode:  # with a larger stride pads are negative, and onnxruntime refuses such pools
                    own["strides"] = [min(stride, k) for stride, k in zip(strides, kernel, strict=True)]
            else:
                own |= {"dilations": dilations, "pads": pads}
                padded = False
            reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
            room = [n + pads[i] + pads[i + count] for i, n in enumerate(x.points)]
            if padded or all(a >= b for a, b in zip(room, reach, strict=True)):
                return own | ({"ceil_mode": 1} if ceil_mode and self.maybe(0.3) else {})

    def _points(self, x: Tensor, own: dict[str, Any]) -> tuple[int, ...]:
        found = []
        for i, size in enumerate(x.points):
            kernel, stride = own["kernel_shape"][i], own["strides"][i]
            if own.get("auto_pad", "").startswith("SAME"):
                found.append(-(-size // stride))
                continue
            pads, count = own.get("pads", [0] * 2 * len(x.points)), len(x.points)
            reach = (kernel - 1) * own.get("dilations", [1] * count)[i] + 1
            room = size + pads[i] + pads[i + count] - reach
            out = (-(-room // stride) if own.get("ceil_mode") else room // stride) + 1
            if own.get("ceil_mode") and (out - 1) * stride >= size + pads[i]:
                out -= 1
            found.append(out)
        return tuple(found)

    def bias(self, shape: tuple[int, ...], spread: float) -> str:
        """Exact in any unit that occurs."""
        values = np.round(self.rng.normal(0, spread, shape) * 16) / 16 if self.powers else self.rng.normal(0, 1, shape)
        return self.const(values)

    def conv(self, x: Tensor, outputs: int | None = None, groups: int = 1, kind: str = "", **own: Any) -> Tensor:
        outputs = outputs or groups * self.between(1, max(1, 8 // groups))
        own = own if "kernel_shape" in own else {**self.window(x), **own}
        own.setdefault("strides", [1] * len(x.points))
        terms = int(np.prod(own["kernel_shape"])) * x.channels // groups
        weight, size = self.weights(
            (outputs, x.channels // groups, *own["kernel_shape"]), 0, self.weight_bits(x, terms), kind
        )
        spread = x.spread * size * terms**0.5
        inputs = [x.name, weight] + ([self.bias((outputs,), spread / 4)] if self.maybe(0.4) else [])
        name = self.node("Conv", *inputs, group=groups, **own)
        return Tensor(name, (x.shape[0], outputs, *self._points(x, own)), SUM_BITS, spread)

    def dense(self, x: Tensor, outputs: int) -> Tensor:
        """MatMul or Gemm of (n, columns)."""
        columns = x.shape[1]
        weight, size = self.weights((columns, outputs), 1, self.weight_bits(x, columns))
        spread = x.spread * size * columns**0.5
        if self.maybe(0.5):
            name = self.node("MatMul", x.name, weight)
        else:
            name = self.node("Gemm", x.name, weight, self.bias((outputs,), spread / 4))
        return Tensor(name, (x.shape[0], outputs), SUM_BITS, spread)

    def norm(self, x: Tensor) -> Tensor:
        c = x.channels
        gamma = self.rng.uniform(0.3, 2, c) * self.rng.choice([1, 1, 1, -1], c)
        values = gamma, self.rng.normal(0, 1, c), self.rng.normal(0, x.spread / 4, c), self.rng.uniform(0.5, 4, c)
        name = self.node("BatchNormalization", x.name, *(self.const(v) for v in values))
        return replace(x, name=name, spread=x.spread * 1.2)

    def behind(self, x: Tensor, op: str, *constants: Any, **attributes: Any) -> Tensor:
        """An operation that keeps the shape."""
        return replace(x, name=self.node(op, x.name, *(self.const(c) for c in constants), **attributes))

    def shaped(self, x: Tensor, *shape: int) -> Tensor:
        """Reshape; the batch is 0 or -1 where the model may have any."""
        wanted = [self.pick(0, -1), *shape[1:]]
        return replace(x, name=self.node("Reshape", x.name, self.const(wanted, np.int64)), shape=shape)

    def turned(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        shape = tuple(x.shape[p] for p in perm)
        return replace(x, name=self.node("Transpose", x.name, perm=list(perm)), shape=shape)

    def max_pool(self, x: Tensor, **own: Any) -> Tensor:
        while True:
            found = own or self.window(x, ceil_mode=True)
            shape = self._points(x, found)
            if own or min(shape) > 0:
                return replace(x, name=self.node("MaxPool", x.name, **found), shape=(*x.shape[:2], *shape))

    def joined(self, op: str, *tensors: Tensor) -> Tensor:
        """Add, Sub, Mul of tensors of one shape."""
        name = self.node(op, *(t.name for t in tensors))
        spread = tensors[0].spread * tensors[1].spread if op == "Mul" else sum(t.spread for t in tensors)
        bits = sum(t.bits for t in tensors) if op == "Mul" else max(t.bits for t in tensors) + 3
        return replace(tensors[0], name=name, bits=bits, spread=spread)

    def concat(self, *tensors: Tensor, axis: int = 1) -> Tensor:
        shape = list(tensors[0].shape)
        shape[axis] = sum(t.shape[axis] for t in tensors)
        bits = max(t.bits for t in tensors) + (5 if len({t.spread for t in tensors}) > 1 else 0)
        spread = max(t.spread for t in tensors)
        return Tensor(self.node("Concat", *(t.name for t in tensors), axis=axis), tuple(shape), bits, spread)
