"""IntQuant whose scale, zero point or bit width differs from element to element, as qonnx computes each of them.

An element of 0 bits is pruned: its only code is the rounded bound of the formulas for 0 bits, which is mostly 0.
"""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, check_finite
from hlsgen.frontend.node_context import NodeContext
from hlsgen.frontend.quantizer_parameters import MAX_BITS, QuantizerParameters
from hlsgen.ir.evaluate import decode, decoding, quantize
from hlsgen.ir.ops import Elementwise, IntQuant, Max, Min
from hlsgen.numerics.fixed import Array, Rounding, int_type, round_float

#: Codes of these bits, and their bounds, are exact in float32.
_EXACT_BITS = 24


def code_bounds(widths: Array, signed: bool, narrow: bool, mode: Rounding) -> tuple[Array, Array]:
    """The lowest and the highest code of each bit width, int64 in the shape of `widths`."""
    low, high = np.zeros(widths.shape, np.int64), np.zeros(widths.shape, np.int64)
    for bits in np.unique(widths).tolist():
        here = widths == bits
        if bits:
            type_ = int_type(bits, signed, narrow)
            low[here], high[here] = type_.lo, type_.hi
        else:  # -2^(0 - 1), and half a code more where the range is narrow
            bound = (0.5 if narrow else -0.5) if signed else 0.0
            low[here] = high[here] = int(round_float(np.array([bound], np.float32), mode)[0])
    return low, high


def constant_codes(node: NodeContext, data: Const) -> Const | None:
    """A constant after IntQuant, or None if its bit width is one number. Raises HG020 to HG027."""
    widths = node.constant(3)
    if node.op_type not in ("IntQuant", "Quant") or widths is None:
        return None
    with QuantizerParameters(node.with_data(data.array.shape), ["scale", "zeropt", "bitwidth"]) as p:
        if p.array(2).size == 1 and max(_long_axes(p.array(0)), _long_axes(p.array(1))) <= 1:
            return None
        scale, zero, bits = p.scale(0, any_axes=True), p.zero_point(1, any_axes=True), p.widths(2)
        signed, narrow, mode = p.flag("signed", 1), p.flag("narrow", 0), p.mode("ROUND")
    check_finite(node.name, data.array)
    x = data.array.astype(np.float32)
    quantizer = IntQuant(scale, zero, int_type(MAX_BITS, signed), mode)
    low, high = (np.broadcast_to(end, x.shape) for end in code_bounds(bits, signed, narrow, mode))
    codes = np.clip(quantize(quantizer, x), low, high)
    if signed:
        codes = np.where(np.broadcast_to(bits, x.shape) == 1, np.where(x / scale + zero >= 0, 1, -1), codes)
    scales, zeros = np.broadcast_to(scale, x.shape), np.broadcast_to(zero, x.shape)
    return Const(decode(decoding(quantizer), codes), codes, scales, zeros)


def _long_axes(array: Array) -> int:
    return sum(size > 1 for size in array.shape)


def bounds_of_elements(
    node: NodeContext, quantizer: IntQuant, widths: Array, signed: bool, narrow: bool
) -> list[Elementwise]:
    """Min and Max of a tensor before its quantizer, which has the most bits of all elements. Raises HG021."""
    scale, zero = quantizer.scale.astype(np.float64), quantizer.zero_point.astype(np.float64)
    hint = "Quantize elements of other bit widths in nodes of their own, or give all of them the most bits."
    if signed and (widths == 1).any():
        raise fail("HG021", node.name, "bit widths differ, and one of them is 1 signed bit, which is bipolar.", hint)
    if (np.frexp(scale)[0] != 0.5).any() or (zero != np.round(zero)).any() or widths.max() > _EXACT_BITS:
        text = (
            "bit widths of a computed tensor differ, and its scales are no powers of two or its zero points not whole"
        )
        raise fail("HG021", node.name, f"{text}, or it has more than {_EXACT_BITS} bits.", hint)
    low, high = code_bounds(widths, signed, narrow, quantizer.mode)
    lowest, highest = ((end - zero) * scale for end in (low, high))
    return [Min(highest.astype(np.float32)), Max(lowest.astype(np.float32))]
