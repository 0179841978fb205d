"""Quantizers of QONNX: IntQuant (Quant), Trunc, BipolarQuant, MultiThreshold. FloatQuant has its own module.

All raise HG013, HG014, HG020 to HG027.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.element_quantizers import bounds_of_elements
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.quantizer_parameters import QuantizerParameters
from hlsgen.ir.ops import Bipolar, Cast, IntQuant, MultiThreshold, SignedBit, Trunc
from hlsgen.numerics.fixed import int_type

#: Maximum number of thresholds of a MultiThreshold, per channel.
MAX_STEPS = (1 << 16) - 1


def accepting_integers(convert: Callable[[NodeContext], Imported]) -> Callable[[NodeContext], Imported]:
    """Extend the importing function of a quantizer to integers of at most 16 bits, cast to float32 as numpy does."""

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
    """BipolarQuant: the scale, or minus the scale for negative numbers."""
    with QuantizerParameters(node, ["scale"]) as p:
        scale = p.scale(0)
    return elementwise(node, Bipolar(scale, np.ones((1,) * len(node.shape), np.float32)))


def int_quant(node: NodeContext) -> Imported:
    """IntQuant; signed codes of one bit become Bipolar."""
    with QuantizerParameters(node, ["scale", "zeropt", "bitwidth"]) as p:
        scale, zero, widths = p.scale(0, any_axes=True), p.zero_point(1, any_axes=True), p.widths(2)
        signed, narrow = p.flag("signed", 1), p.flag("narrow", 0)
        mode = p.mode("ROUND")
    bits = max(int(widths.max()), 1)
    if widths.size > 1:
        quantizer = IntQuant(scale, zero, int_type(bits, signed), mode)
        return elementwise(node, *bounds_of_elements(node, quantizer, widths, signed, narrow), quantizer)
    if bits == 1 and signed:
        return elementwise(node, SignedBit(scale, zero) if zero.any() else Bipolar(scale, scale))
    return elementwise(node, IntQuant(scale, zero, int_type(bits, signed, narrow), mode))


def trunc(node: NodeContext) -> Imported:
    """Trunc: version 1 has the inputs X, scale, zeropt and both bit widths; version 2 has out_scale before the last."""
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
        text = "the ratio out_scale / scale is out of range."
        raise fail("HG022", node.name, text, "Supported: a ratio within the range of float32.")
    type_ = int_type(bits, signed, narrow)
    return elementwise(node, Trunc(scale, zero, divisor, np.asarray(zero / divisor), out_scale, type_, mode))


def multi_threshold(node: NodeContext) -> Imported:
    """MultiThreshold: out_bias plus out_scale times the number of thresholds that the element reaches."""
    shape, attrs = node.shape, node.attrs
    layouts = {0: None, 1: None, 2: "NC", 3: "NWC", 4: "NCHW"}
    with QuantizerParameters(node, ["thresholds"]) as p:
        layout = str(attrs.get("data_layout") or layouts.get(len(shape)) or "")
        axis = layout.index("C") if "C" in layout else 1
        if "data_layout" in attrs and len(layout) != len(shape):
            text = f"attribute data_layout is {layout!r} for data of shape {list(shape)}."
            p.error("HG013", text, "It must have one letter per axis.")
        scale, bias = p.number("out_scale", 1.0), p.number("out_bias", 0.0)
        if not (np.isfinite(scale) and np.isfinite(bias)) or scale == 0:
            text = f"attributes out_scale and out_bias are {scale} and {bias}."
            p.error("HG022", text, "Both must be finite, and out_scale not 0.")
        threshold_table = p.array(0)
        if threshold_table.ndim == 2 and threshold_table.shape[1] > MAX_STEPS:
            p.error("HG023", f"{threshold_table.shape[1]} thresholds per channel.", f"Supported: at most {MAX_STEPS}.")
        if threshold_table.ndim != 2 or axis >= len(shape) or threshold_table.shape[0] not in (1, shape[axis]):
            p.error(
                "HG023",
                f"thresholds of shape {list(threshold_table.shape)} for data of shape {list(shape)}, layout {layout}.",
                "They must be (channels or 1, steps).",
            )
        if np.isnan(threshold_table).any():
            p.error("HG027", "a threshold is NaN.", "Every threshold must be a number: train again, or repair it.")
    channels_shape = [1] * len(shape)
    channels_shape[axis] = threshold_table.shape[0]
    thresholds = np.ascontiguousarray(threshold_table.T).reshape([threshold_table.shape[1], *channels_shape])
    return elementwise(node, MultiThreshold(thresholds, scale, bias))
