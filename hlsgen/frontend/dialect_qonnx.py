"""The QONNX dialect: IntQuant (Quant), Trunc, BipolarQuant, MultiThreshold; FloatQuant in a file of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.dialect_qonnx_floatquant import float_quant
from hlsgen.frontend.quantizer_parameters import Inputs, Parameters
from hlsgen.ir import Shape
from hlsgen.ir.ops import Bipolar, IntQuant, MultiThreshold, Quantizer, SignedBit, Trunc
from hlsgen.numerics.fixed import int_type

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
OPERATORS = frozenset(["IntQuant", "Quant", "Trunc", "BipolarQuant", "MultiThreshold", "FloatQuant"])

#: Most thresholds of a MultiThreshold.
MAX_STEPS = (1 << 16) - 1


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
        case "FloatQuant":
            return float_quant(name, shape, inputs, attrs)
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
