"""Quantized constants after operators that rescale, negate, mask or move their elements.

The result has codes if it still equals codes times a scale, up to roundings of float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.frontend.constant_folding import Const
from hlsgen.numerics.fixed import Array

#: Maximum relative difference between codes times scale and the numbers: some roundings of float32.
_ROUNDINGS = 2.0**-20
#: Largest whole number that counts as a code without a quantizer.
_MAX_WHOLE = 1 << 24


def grid_of(const: Const) -> tuple[Array, Array] | None:
    """(codes minus zero point, scale) of a constant, both of its shape, or None if its grid is unknown.

    Whole numbers without a quantizer, such as the results of Round and Clip, are codes with scale 1.
    """
    if const.codes is not None and const.scale is not None and const.zero_point is not None:
        return const.codes - const.zero_point.astype(np.float64), const.scale
    if const.array.dtype.kind not in "fiub":
        return None
    numbers = const.array.astype(np.float64)
    are_codes = bool((np.abs(numbers) <= _MAX_WHOLE).all()) and bool((numbers == np.round(numbers)).all())
    return (numbers, np.ones(numbers.shape, np.float32)) if are_codes else None


def on_grid(result: Array, codes: Array, scale: Array, kind: str = "") -> Const:
    """The constant `result`, with these codes if it equals codes * scale.

    A negative scale changes the sign of its codes. A code 0 may have any scale.
    """
    if codes.shape != result.shape or result.dtype.kind != "f":
        return Const(result)
    scale = np.broadcast_to(scale, result.shape)
    codes, scale = codes * np.sign(scale), np.where(scale == 0, 1, np.abs(scale)).astype(scale.dtype)
    real = codes * scale.astype(np.float64)
    with np.errstate(invalid="ignore"):
        is_equal = np.abs(real - result) <= _ROUNDINGS * np.abs(real)
    if not is_equal.all() or not np.isfinite(scale).all():
        return Const(result)
    return Const(result, codes, scale, np.zeros(result.shape, np.float32), kind)


def scaled(result: Array, operands: Sequence[Const], division: bool) -> Const:
    """The product or quotient of two constants, with the codes of the operand that it is a multiple of, if any."""
    orders = ((0, 1),) if division else ((0, 1), (1, 0))
    for quantized in (True, False):
        for first, second in orders:
            const, factor = operands[first], operands[second].array
            if (const.codes is not None) is not quantized or const.array.shape != result.shape:
                continue
            grid = grid_of(const)
            if grid is None or factor.dtype.kind != "f" or not (quantized or varies_along_one_axis(factor)):
                continue
            codes, scale = grid
            with np.errstate(all="ignore"):
                changed = scale / factor if division else scale * factor
            codes = np.where(changed == 0, 0, codes)
            product = on_grid(result, codes, changed.astype(scale.dtype))
            if product.codes is not None:
                return product
    return Const(result)


def varies_along_one_axis(array: Array) -> bool:
    """True for an array with one value, or one for each index of one axis, like a scale."""
    return len([size for size in array.shape if size > 1]) <= 1


def unchanged(result: Array, const: Const) -> Const:
    """The constant `result`, with the codes of `const` if it has the same values."""
    if const.codes is None or const.array.shape != result.shape or not (const.array == result).all():
        return Const(result)
    return Const(result, const.codes, const.scale, const.zero_point, const.kind)
