"""Constant weight matrices as integers with one scale per row."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, check_finite
from hlsgen.numerics.fixed import Array

#: Maximum width of integers derived from weights without a quantizer.
MAX_PLAIN_BITS = 16
_MAX_SHIFT = 24


def integer_weights(name: str, const: Const) -> tuple[Array, Array]:
    """(weight int64 (rows, columns), scale float32 (rows,)) with real = weight * scale, exactly.

    They come from a quantizer's codes, or from plain numbers that are short multiples of one power of two.
    Raises HG022, HG024, HG026, HG027, HG031, HG033 or HG034.
    """
    if const.codes is None or const.scale is None or const.zero_point is None:
        return _plain(name, const.array)
    check_finite(name, const.array)
    effective = const.codes - const.zero_point.astype(np.float64)
    shift = dyadic_shift(effective)
    if shift is None:
        raise fail(
            "HG024",
            name,
            "the weights' zero point is not a short binary fraction.",
            "Use an integer zero point.",
        )
    scale = const.scale.astype(np.float64)
    relevant = np.where(effective == 0, np.inf, scale)
    smallest = relevant.min(axis=1, keepdims=True)
    smallest = np.where(np.isinf(smallest), scale.min(axis=1, keepdims=True), smallest)
    ratio = np.where(effective == 0, 1, scale / smallest)
    if (ratio != np.round(ratio)).any() or ratio.max() > 1 << 16:
        raise fail(
            "HG034",
            name,
            "the weight scale differs along the summed axis.",
            "Scales may differ by output channel only (or by whole ratios).",
        )
    real = effective * 2.0**shift * ratio
    if np.abs(real).max() >= 2.0**52:
        raise fail(
            "HG033",
            name,
            f"a weight is {np.abs(real).max():.0f} times the common unit of its row; at most 2^52.",
            "Use narrower weights, a whole zero point, one scale per output channel.",
        )
    rows = (smallest[:, 0] * 2.0**-shift).astype(np.float32)
    if (rows == 0).any() or np.isinf(rows).any():
        text = f"the weight scale {smallest.min():g} is out of float32's range."
        raise fail("HG022", name, text, "Move a power of two from the weights to the scale.")
    return real.astype(np.int64), rows


def dyadic_shift(values: Array) -> int | None:
    """The smallest k from 0 to 24 for which all values * 2^k are integers; else None."""
    for shift in range(_MAX_SHIFT + 1):
        scaled = values * 2.0**shift
        if (scaled == np.round(scaled)).all():
            return shift
    return None


def _plain(name: str, array: Array) -> tuple[Array, Array]:
    if array.dtype.kind not in "fiub":
        raise fail("HG026", name, f"the weights are of type {array.dtype}, no numbers.", "Store them as float32.")
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise fail("HG027", name, "a weight is NaN or infinite.", "Every weight must be a finite number.")
    largest = float(np.abs(values).max(initial=0))
    shift = dyadic_shift(values) if largest < 1 << MAX_PLAIN_BITS else None
    if shift is None or int(largest * 2.0**shift).bit_length() + 1 > MAX_PLAIN_BITS:
        raise fail(
            "HG031",
            name,
            "the weights are neither quantized nor short integers.",
            "Put a quantizer (IntQuant, BipolarQuant, DequantizeLinear of integers) between the weights and the layer.",
        )
    return (values * 2.0**shift).astype(np.int64), np.full(len(values), 2.0**-shift, np.float32)
