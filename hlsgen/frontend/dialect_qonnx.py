"""Quantizers of QONNX: IntQuant (Quant), Trunc, BipolarQuant, MultiThreshold. FloatQuant has a file of its own.

Raise HG013, HG014, HG020 to HG027.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.quantizer_parameters import QuantizerParameters
from hlsgen.ir.ops import Bipolar, Cast, IntQuant, MultiThreshold, SignedBit, Trunc
from hlsgen.numerics.fixed import int_type

#: Most thresholds of a MultiThreshold.
MAX_STEPS = (1 << 16) - 1


def of_numbers(convert: Callable[[NodeContext], Imported]) -> Callable[[NodeContext], Imported]:
    """The importing function of a quantizer, also of integers that float32 has: as numpy divides them by float32 numbers."""

    def converted(node: NodeContext) -> Imported:
        kind = np.dtype(node.dtype)
        if kind.kind == "f":
            return convert(node)
        if kind.kind not in "iu" or kind.itemsize > 2:
            text = f"{node.op_type} of {kind} data."
            raise fail(
                "HG026", node.name, text, "Supported: floats, integers of at most 16 bits. Cast it to float32 first."
            )
        (steps,) = convert(node).outputs
        return Imported(([(Cast("float32"), node.shape), *steps],))

    return converted


def bipolar_quant(node: NodeContext) -> Imported:
    with QuantizerParameters(node, ["scale"]) as p:
        scale = p.scale(0)
    return elementwise(node, Bipolar(scale, np.ones((1,) * len(node.shape), np.float32)))


def int_quant(node: NodeContext) -> Imported:
    with QuantizerParameters(node, ["scale", "zeropt", "bitwidth"]) as p:
        scale, zero, bits = p.scale(0), p.zero_point(1), p.bits(2)
        signed, narrow = p.flag("signed", 1), p.flag("narrow", 0)
        mode = p.mode("ROUND")
    if bits == 1 and signed:
        return elementwise(node, SignedBit(scale, zero) if zero.any() else Bipolar(scale, scale))
    return elementwise(node, IntQuant(scale, zero, int_type(bits, signed, narrow), mode))


def trunc(node: NodeContext) -> Imported:
    """Version 1 has the inputs X, scale, zeropt and both bit widths; version 2 has out_scale in front of the last."""
    if node.version <= 1 and len(node.inputs) < 6:
        with QuantizerParameters(node, ["scale", "zeropt", "in_bitwidth", "out_bitwidth"]) as p:
            scale, zero = p.scale(0), p.zero_point(1)
            exponent = p.bits(2) - p.bits(3)
            mode = p.mode("FLOOR")
        kind = np.result_type(p.raw(2), p.raw(3))
        single = kind.kind == "f" and kind.itemsize <= 4
        divisor = np.asarray(2.0**exponent, np.float32 if single else np.float64)
        divisor = divisor.reshape((1,) * len(node.shape))
        return elementwise(node, Trunc(scale, zero, divisor, zero, scale, None, mode))
    names = ["scale", "zeropt", "in_bitwidth", "out_scale", "out_bitwidth"]
    with QuantizerParameters(node, names) as p:
        scale, zero, out_scale, bits = p.scale(0), p.zero_point(1), p.scale(3), p.bits(4)
        signed, narrow = p.flag("signed", 1), p.flag("narrow", 0)
        mode = p.mode("FLOOR")
    with np.errstate(all="ignore"):
        divisor = np.asarray(2 ** np.round(np.log2(out_scale / scale)))
    if not (np.isfinite(divisor) & (divisor > 0)).all():
        raise fail(
            "HG022", node.name, "out_scale / scale is out of range.", "Supported: a ratio that float32 can hold."
        )
    type_ = int_type(bits, signed, narrow)
    return elementwise(node, Trunc(scale, zero, divisor, np.asarray(zero / divisor), out_scale, type_, mode))


def multi_threshold(node: NodeContext) -> Imported:
    shape, attrs = node.shape, node.attrs
    layouts = {0: None, 1: None, 2: "NC", 3: "NWC", 4: "NCHW"}
    with QuantizerParameters(node, ["thresholds"]) as p:
        layout = str(attrs.get("data_layout") or layouts.get(len(shape)) or "")
        axis = layout.index("C") if "C" in layout else 1
        if "data_layout" in attrs and len(layout) != len(shape):
            p.error("HG013", f"data_layout is {layout!r} for data of shape {list(shape)}.", "One letter per axis.")
        scale, bias = p.number("out_scale", 1.0), p.number("out_bias", 0.0)
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
    return elementwise(node, MultiThreshold(thresholds, scale, bias))
