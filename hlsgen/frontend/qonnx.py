"""The QONNX dialect: IntQuant (Quant), Trunc, BipolarQuant, MultiThreshold."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hlsgen.errors import Collector, Diagnostic, HlsgenError, fail
from hlsgen.fixed import Array, Rounding, int_type, parse_rounding
from hlsgen.frontend.tensors import Const
from hlsgen.ir import Bipolar, IntQuant, MultiThreshold, Quantizer, Shape, SignedBit, Trunc

DOMAINS = frozenset(
    [
        "",
        "qonnx.custom_op.general",
        "finn.custom_op.general",
        "finn",
        "onnx.brevitas",
        "qonnx",
        "finn.custom_op",
    ]
)
OPERATORS = frozenset(["IntQuant", "Quant", "Trunc", "BipolarQuant", "MultiThreshold"])

MAX_BITS = 32
#: Most thresholds of a MultiThreshold.
MAX_STEPS = (1 << 16) - 1

Inputs = list[Const | None]


def import_quantizer(
    op_type: str, name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], version: int
) -> Quantizer:
    """The quantizer of a node. `inputs` are those after the data input; `shape` is the data's."""
    match op_type:
        case "IntQuant" | "Quant":
            return _int_quant(name, shape, inputs, attrs)
        case "Trunc":
            return _trunc(name, shape, inputs, attrs, version)
        case "BipolarQuant":
            with Parameters(name, shape, inputs, ["scale"]) as p:
                scale = p.scale(0)
            return Bipolar(scale, np.ones((1,) * len(shape), np.float32))
        case _:
            return _multi_threshold(name, shape, inputs, attrs)


def _int_quant(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any]) -> Quantizer:
    with Parameters(name, shape, inputs, ["scale", "zeropt", "bitwidth"]) as p:
        scale, zero, bits = p.scale(0), p.zero_point(1), p.bits(2)
        signed, narrow = p.flag(attrs, "signed", 1), p.flag(attrs, "narrow", 0)
        mode = p.mode(attrs, "ROUND")
    if bits == 1 and signed:
        if not zero.any():
            return Bipolar(scale, scale)
        return SignedBit(scale, zero)
    if bits == 1 and narrow:
        raise fail("HG021", name, "1 bit, unsigned and narrow leaves a single code.", "Use narrow = 0.")
    return IntQuant(scale, zero, int_type(bits, signed, narrow), mode)


def _trunc(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], version: int) -> Quantizer:
    if version <= 1 and len(inputs) < 5:
        with Parameters(name, shape, inputs, ["scale", "zeropt", "in_bitwidth", "out_bitwidth"]) as p:
            scale, zero = p.scale(0), p.zero_point(1)
            exponent = p.bits(2) - p.bits(3)
            mode = p.mode(attrs, "FLOOR")
        kind = np.result_type(p.raw(2), p.raw(3))
        single = kind.kind == "f" and kind.itemsize <= 4
        divisor = np.asarray(2.0**exponent, np.float32 if single else np.float64)
        return Trunc(scale, zero, divisor.reshape((1,) * len(shape)), zero, scale, None, mode)
    names = ["scale", "zeropt", "in_bitwidth", "out_scale", "out_bitwidth"]
    with Parameters(name, shape, inputs, names) as p:
        scale, zero, out_scale, bits = p.scale(0), p.zero_point(1), p.scale(3), p.bits(4)
        signed, narrow = p.flag(attrs, "signed", 1), p.flag(attrs, "narrow", 0)
        mode = p.mode(attrs, "FLOOR")
    with np.errstate(all="ignore"):
        divisor = np.asarray(2 ** np.round(np.log2(out_scale / scale)))
    if not (np.isfinite(divisor) & (divisor > 0)).all():
        raise fail("HG022", name, "out_scale / scale is out of range.", "Supported: a ratio that float32 can hold.")
    return Trunc(scale, zero, divisor, np.asarray(zero / divisor), out_scale, int_type(bits, signed, narrow), mode)


def _multi_threshold(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any]) -> Quantizer:
    layouts = {0: None, 1: None, 2: "NC", 3: "NWC", 4: "NCHW"}
    with Parameters(name, shape, inputs, ["thresholds"]) as p:
        layout = str(attrs.get("data_layout") or layouts.get(len(shape)) or "")
        axis = layout.index("C") if "C" in layout else 1
        if "data_layout" in attrs and len(layout) != len(shape):
            p.error("HG013", f"data_layout is {layout!r} for data of shape {list(shape)}.", "One letter per axis.")
        scale, bias = p.number(attrs, "out_scale", 1.0), p.number(attrs, "out_bias", 0.0)
        if not (np.isfinite(scale) and np.isfinite(bias)) or scale == 0:
            p.error("HG022", f"out_scale {scale}, out_bias {bias}.", "Both must be finite, the scale not 0.")
        table = p.array(0)
        if table.ndim == 2 and table.shape[1] > MAX_STEPS:
            p.error("HG023", f"{table.shape[1]} thresholds.", f"Supported: at most {MAX_STEPS}.")
        if table.ndim != 2 or axis >= len(shape) or table.shape[0] not in (1, shape[axis]):
            p.error(
                "HG023", f"thresholds of shape {list(table.shape)} for data of shape {list(shape)}, layout {layout}.",
                "They must be (channels or 1, steps).",
            )  # fmt: skip
        if np.isnan(table).any():
            p.error("HG027", "a threshold is NaN.")
    form = [1] * len(shape)
    form[axis] = table.shape[0]
    thresholds = np.ascontiguousarray(table.T).reshape([table.shape[1], *form])
    return MultiThreshold(thresholds, scale, bias)


class Parameters:
    """Reads the constant inputs of a quantizer, collecting what is wrong with them.

    Used as a context: all problems are raised together at its end. Arrays come back with the
    data's rank, in their own dtype.
    """

    def __init__(self, node: str, shape: Shape, inputs: Inputs, names: list[str]) -> None:
        self.node, self.shape, self.inputs, self.names = node, shape, inputs, names
        self.problems = Collector()

    def __enter__(self) -> Parameters:
        if len(self.inputs) < len(self.names):
            missing = ", ".join(self.names[len(self.inputs) :])
            raise fail("HG014", self.node, f"input {missing} is missing.", f"Inputs: X, {', '.join(self.names)}.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> Literal[False]:
        if isinstance(error, HlsgenError):
            self.problems.items.extend(error.diagnostics)
        elif kind is not None:
            return False
        self.problems.finish()
        return False

    def error(self, code: str, message: str, hint: str = "") -> None:
        self.problems.items.append(Diagnostic(code, self.node, message, hint))

    def raw(self, i: int) -> Array:
        """The constant as it stands; a scalar keeps its dtype as a 0-d array."""
        const = self.inputs[i]
        if const is None:
            raise fail(
                "HG020", self.node, f"input {self.names[i]} is not a constant.",
                "It must be an initializer or computed from constants only.",
            )  # fmt: skip
        return const.array

    def array(self, i: int) -> Array:
        array = self.raw(i)
        if array.dtype.kind not in "fiu":
            raise fail(
                "HG026", self.node, f"input {self.names[i]} is of type {array.dtype}; numbers are needed.",
                "Store it as float32.",
            )  # fmt: skip
        if not array.size:
            raise fail(
                "HG023", self.node, f"input {self.names[i]} of shape {list(array.shape)} is empty.",
                "Supported: a scalar, or one value per channel.",
            )  # fmt: skip
        return array

    def channel(self, i: int) -> Array:
        """A scalar or per-channel parameter, brought to the data's rank."""
        array = self.array(i)
        while array.ndim > len(self.shape) and array.shape[0] == 1:
            array = array[0]
        array = array.reshape((1,) * (len(self.shape) - array.ndim) + array.shape)
        shape: tuple[int, ...] = array.shape
        wide = [axis for axis, size in enumerate(shape) if size > 1]
        fits = array.ndim == len(self.shape) and all(array.shape[a] == self.shape[a] for a in wide)
        if not fits or len(wide) > 1:
            self.error(
                "HG023",
                f"{self.names[i]} of shape {list(self.raw(i).shape)} for data of shape {list(self.shape)}.",
                "Supported: a scalar, or one value per channel (one axis longer than 1).",
            )
            return np.ones((1,) * len(self.shape), array.dtype)
        return array

    def scale(self, i: int) -> Array:
        scale = self.channel(i)
        real = scale.astype(np.float64)
        if not np.isfinite(real).all() or (real <= 0).any():
            bad = real.ravel()[~(np.isfinite(real) & (real > 0)).ravel()][0]
            self.error("HG022", f"{self.names[i]} is {bad}.", "A scale must be finite and greater than 0.")
            return np.ones_like(scale)
        return _simplest(scale, 1)

    def zero_point(self, i: int) -> Array:
        zero = self.channel(i)
        if not np.isfinite(zero.astype(np.float64)).all():
            self.error("HG024", f"{self.names[i]} is not finite.", "It must be a number, best a whole one.")
            return np.zeros_like(zero)
        return _simplest(zero, 0)

    def bits(self, i: int) -> int:
        array = self.array(i)
        if array.size != 1:
            self.error("HG021", f"{self.names[i]} of shape {list(array.shape)}.", "It must be a single number.")
            return 8
        value = float(array.reshape(()))
        if value != value or value != np.floor(value):
            self.error("HG021", f"{self.names[i]} is {value}.", "It must be a whole number of bits.")
        elif not 1 <= value <= MAX_BITS:
            self.error("HG021", f"{self.names[i]} is {value:g}.", f"Supported: 1 to {MAX_BITS}.")
        else:
            return int(value)
        return 8

    def flag(self, attrs: dict[str, Any], key: str, default: int) -> bool:
        value = attrs.get(key, default)
        if value not in (0, 1):
            self.error("HG013", f"attribute {key} is {value!r}.", "It must be 0 or 1.")
        return bool(value in (1, True))

    def number(self, attrs: dict[str, Any], key: str, default: float) -> float:
        value = attrs.get(key, default)
        if isinstance(value, (int, float)):
            return float(value)
        self.error("HG013", f"attribute {key} is {value!r}.", "It must be a number.")
        return default

    def mode(self, attrs: dict[str, Any], default: str) -> Rounding:
        name = str(attrs.get("rounding_mode", default))
        mode = parse_rounding(name)
        if mode is None:
            self.error(
                "HG025", f"rounding_mode is {name!r}.",
                "Supported: " + ", ".join([*Rounding.__members__, "HALF_EVEN"]) + ", in any case.",
            )  # fmt: skip
        return mode or Rounding.ROUND


def _simplest(array: Array, neutral: int) -> Array:
    """float32 where that changes nothing: for floats of up to 32 bits and the neutral integer."""
    if array.dtype in (np.float16, np.float32) or bool((array == neutral).all()):
        return array.astype(np.float32)
    return array if np.result_type(np.float32, array.dtype) == np.float64 else array.astype(np.float32)
