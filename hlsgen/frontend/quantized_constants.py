"""Constants that a quantizer made, after operators that rescale, negate, mask or move their elements.

The result keeps its codes if it is still codes times a scale, up to the roundings of float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.frontend.constant_folding import Const
from hlsgen.numerics.fixed import Array

#: Largest relative difference between codes times scale and the number of the file: some roundings of float32.
_ROUNDINGS = 2.0**-20
#: Largest whole number that counts as a code where no quantizer made it.
_MAX_WHOLE = 1 << 24


def grid_of(const: Const) -> tuple[Array, Array] | None:
    """(codes less zero point, scale) of a constant, both of its shape; None if it is on no known grid.

    Whole numbers that no quantizer made, as behind Round and Clip, are codes of scale 1.
    """
    if const.codes is not None and const.scale is not None and const.zero_point is not None:
        return const.codes - const.zero_point.astype(np.float64), const.scale
    if const.array.dtype.kind not in "fiub":
        return None
    wide = const.array.astype(np.float64)
    whole = bool((np.abs(wide) <= _MAX_WHOLE).all()) and bool((wide == np.round(wide)).all())
    return (wide, np.ones(wide.shape, np.float32)) if whole else None


def on_grid(result: Array, codes: Array, scale: Array, kind: str = "") -> Const:
    """The constant `result`; with these codes if it is codes * scale.

    A scale below 0 changes the sign of its codes. The scale of a code 0 is free.
    """
    if codes.shape != result.shape or result.dtype.kind != "f":
        return Const(result)
    scale = np.broadcast_to(scale, result.shape)
    codes, scale = codes * np.sign(scale), np.where(scale == 0, 1, np.abs(scale)).astype(scale.dtype)
    real = codes * scale.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(real - result) <= _ROUNDINGS * np.abs(real)
    if not near.all() or not np.isfinite(scale).all():
        return Const(result)
    return Const(result, codes, scale, np.zeros(result.shape, np.float32), kind)


def scaled(result: Array, operands: Sequence[Const], division: bool) -> Const:
    """A product of two constants, or a quotient, with the codes of that operand whose codes it keeps."""
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
    """Whether an array has one value, or one for each index of one axis: as scales do."""
    return len([size for size in array.shape if size > 1]) <= 1


def unchanged(result: Array, const: Const) -> Const:
    """The constant `result`, with the codes of `const` if it has the same values."""
    if const.codes is None or const.array.shape != result.shape or not (const.array == result).all():
        return Const(result)
    return Const(result, const.codes, const.scale, const.zero_point, const.kind)
