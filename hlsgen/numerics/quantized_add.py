"""Quantized elementwise add with multipliers and a shift: the integers of module hg_eltwise_add.

The convention of its scales is real = (q + zero_point) / scale: zero points are the negatives and
scales the reciprocals of ONNX's. Hence the output's zero point is subtracted. All products
keep their low 32 bits, even if that loses information; sums saturate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hlsgen.numerics.fixed import Array

#: The bounds of each parameter: int16, uint16, uint8, int8.
BOUNDS = {
    "zp0": (-(1 << 15), (1 << 15) - 1),
    "zp1": (-(1 << 15), (1 << 15) - 1),
    "zpo": (-(1 << 15), (1 << 15) - 1),
    "s0": (0, (1 << 16) - 1),
    "s1": (0, (1 << 16) - 1),
    "so": (0, (1 << 8) - 1),
    "shift": (-128, 127),
}
#: A ratio of scales that exceeds all ratios the parameters can express.
_HUGE = Fraction(1 << 60)


@dataclass(frozen=True)
class Parameters:
    """The constants of one quantized add; raises ValueError if one is out of its bounds."""

    zp0: int
    zp1: int
    zpo: int
    s0: int
    s1: int
    so: int
    shift: int

    def __post_init__(self) -> None:
        for name in BOUNDS:
            _bounded(name, getattr(self, name), *BOUNDS[name])

    def apply(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.int8]:
        """Add int8 codes a and b; the result is int8 codes."""
        return quantized_add(a, b, self.zp0, self.zp1, self.zpo, self.s0, self.s1, self.so, self.shift)


def quantized_add(
    a: ArrayLike,
    b: ArrayLike,
    zp0: ArrayLike,
    zp1: ArrayLike,
    zpo: ArrayLike,
    s0: ArrayLike,
    s1: ArrayLike,
    so: ArrayLike,
    shift: ArrayLike,
) -> NDArray[np.int8]:
    """The sum's int8 codes; all arguments are integers or integer arrays that broadcast.

    Raises ValueError if a or b is not an int8 number or a parameter is out of BOUNDS, TypeError if one
    is not an integer.
    """
    values = dict(zip(BOUNDS, (zp0, zp1, zpo, s0, s1, so, shift), strict=True))
    parameters = {name: _bounded(name, value, *BOUNDS[name]) for name, value in values.items()}
    first = _wrap32(_saturate(_bounded("a", a, -128, 127) + parameters["zp0"], 32) * parameters["s0"])
    second = _wrap32(_saturate(_bounded("b", b, -128, 127) + parameters["zp1"], 32) * parameters["s1"])
    total = _wrap32(_saturate(first + second, 32) * parameters["so"])
    # One of the two shifts is 0. A shift by 32 or more gives 0 for every 32-bit number, in both directions.
    right_shift, left_shift = np.clip(parameters["shift"], 0, 32), np.clip(-parameters["shift"], 0, 32)
    narrow = _saturate(_wrap32(_round_shift(total, right_shift) << left_shift), 16)
    return np.asarray(_saturate(_saturate(narrow - parameters["zpo"], 16), 8).astype(np.int8))


def _bounded(name: str, value: ArrayLike, low: int, high: int) -> Array:
    """`value` as int64. Raises ValueError outside low..high, TypeError for other types than integers."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} is of type {array.dtype}, not integer")
    if array.size and (array.min() < low or array.max() > high):
        raise ValueError(f"{name} is not within {low} and {high}")
    return array.astype(np.int64)


def _saturate(value: Array, bits: int) -> Array:
    return np.asarray(np.clip(value, -(1 << (bits - 1)), (1 << (bits - 1)) - 1))


def _wrap32(value: Array) -> Array:
    return np.asarray(((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31))


def _round_shift(value: Array, shift: Array) -> Array:
    """value / 2^shift, half to even; the shift may differ between elements."""
    floor = value >> shift
    fraction, half = value - (floor << shift), (np.int64(1) << shift) >> 1
    return np.asarray(floor + ((fraction > half) | ((fraction == half) & (half > 0) & (floor % 2 != 0))))


def derive(
    scale_a: float,
    zero_a: int,
    scale_b: float,
    zero_b: int,
    scale_c: float,
    zero_c: int,
    *,
    round_first: bool = False,
) -> Parameters:
    """The parameters that come closest to a float add of int8 codes.

    Scales and zero points are ONNX's, real = scale * (code - zero_point). The sum is
    c = sat8(round(y + zero_c)) with y = (scale_a * (a - zero_a) + scale_b * (b - zero_b)) / scale_c.
    Under the conditions below the integer add computes the same with s0 * so / 2^shift and
    s1 * so / 2^shift in place of the ratios scale_a / scale_c and scale_b / scale_c. Among all
    (s0, s1, so, shift) that satisfy them, the result minimizes the greatest difference of y over all
    pairs of codes, which `greatest_error` gives. Among equals it has the smallest multipliers.

    Conditions: no product wraps and no sum saturates before the output for any pair of codes. The
    difference is below half a code, so that codes differ by one at most.

    Half-way cases: the integer add rounds before it adds the zero point, as QuantizeLinear does
    (`round_first`). QLinearAdd adds before: with an odd zero_c every tie is rounded the other way.
    Ties occur and are exact if a ratio is a fraction of a power of two. Then an input's zero point is
    moved by an odd number of output codes and zero_c by the same, which gives QLinearAdd's ties.

    Raises ValueError for scales that are not positive and finite, zero points outside int8, and
    ratios that are too large or too far apart for these conditions.
    """
    ratio_a, ratio_b = _ratios(scale_a, scale_b, scale_c)
    zeros = [int(_bounded(name, zero, -128, 127)) for name, zero in zip("abc", (zero_a, zero_b, zero_c), strict=True)]
    float_ratio_a, float_ratio_b = (float(min(ratio, _HUGE)) for ratio in (ratio_a, ratio_b))
    so, shift, s0, s1 = _candidates(float_ratio_a, float_ratio_b)
    a, b = ([-128 - zero, 127 - zero] for zero in zeros[:2])
    fits, errors = np.ones(so.shape, bool), np.zeros(so.shape)
    scale = so * 2.0**-shift
    # All expressions are linear in the two codes, so their extremes are at the corners.
    for u, v in product(a, b):
        fits &= np.abs(u * s0 + v * s1) * so < 1 << (31 - np.maximum(-shift, 0))
        difference = (s0 * scale - float_ratio_a) * u + (s1 * scale - float_ratio_b) * v
        errors = np.maximum(errors, np.abs(difference))
    if not (fits & (errors < 0.5)).any():
        raise ValueError(f"no multipliers for scales of {scale_a} and {scale_b} over {scale_c} within half a code")
    best = np.lexsort((s0 + s1, so, np.where(fits, errors, np.inf)))[0]
    parameters = Parameters(
        zp0=-zeros[0],
        zp1=-zeros[1],
        zpo=-zeros[2],
        s0=int(s0[best]),
        s1=int(s1[best]),
        so=int(so[best]),
        shift=int(shift[best]),
    )
    return parameters if round_first or zero_c % 2 == 0 else _move_zero_point(parameters, ratio_a, ratio_b)


def greatest_error(parameters: Parameters, scale_a: float, scale_b: float, scale_c: float) -> Fraction:
    """The greatest difference of the sum before rounding, in output codes, over all pairs of codes.

    `parameters` is the result of `derive` for these scales; below 1/2 no code differs by more than one.
    """
    ratio_a, ratio_b = _ratios(scale_a, scale_b, scale_c)
    error_a = Fraction(parameters.s0 * parameters.so) / Fraction(2) ** parameters.shift - ratio_a
    error_b = Fraction(parameters.s1 * parameters.so) / Fraction(2) ** parameters.shift - ratio_b
    corners = product((parameters.zp0 - 128, parameters.zp0 + 127), (parameters.zp1 - 128, parameters.zp1 + 127))
    return max(abs(error_a * u + error_b * v) for u, v in corners)


def _ratios(scale_a: float, scale_b: float, scale_c: float) -> tuple[Fraction, Fraction]:
    for scale in (scale_a, scale_b, scale_c):
        if not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"the scale {scale} is not positive and finite")
    return Fraction(float(scale_a)) / Fraction(float(scale_c)), Fraction(float(scale_b)) / Fraction(float(scale_c))


def _candidates(ratio_a: float, ratio_b: float) -> tuple[Array, Array, Array, Array]:
    """(so, shift, s0, s1), flat: both neighbours of each exact multiplier that has at most 16 bits.

    An even so equals half of it with a shift less by one, so only odd values are tried.
    """
    so, shift, up_a, up_b = (
        axis.ravel() for axis in np.meshgrid(np.arange(1, 256, 2), np.arange(-31, 32), [0, 1], [0, 1])
    )
    scale = 2.0**shift / so
    exact_a, exact_b = ratio_a * scale, ratio_b * scale
    small = np.maximum(exact_a, exact_b) < (1 << 16) - 1
    s0, s1 = (
        np.floor(np.where(small, exact, 0)).astype(np.int64) + up for exact, up in ((exact_a, up_a), (exact_b, up_b))
    )
    return so[small], shift[small], s0[small], s1[small]


def _move_zero_point(parameters: Parameters, ratio_a: Fraction, ratio_b: Fraction) -> Parameters:
    """The same sum with an even zero point after the rounding, if an input can take an odd part of it."""
    for name, multiplier, ratio in (("zp0", parameters.s0, ratio_a), ("zp1", parameters.s1, ratio_b)):
        moved_codes = ratio.numerator
        if Fraction(multiplier * parameters.so) / Fraction(2) ** parameters.shift != ratio or ratio.denominator == 1:
            continue
        values = {
            **vars(parameters),
            name: getattr(parameters, name) + ratio.denominator,
            "zpo": parameters.zpo + moved_codes,
        }
        largest = max(
            abs((values["zp0"] + a) * parameters.s0 + (values["zp1"] + b) * parameters.s1)
            for a, b in product((-128, 127), (-128, 127))
        )
        # The 16 bits of the sum hold the moved zero point and every code beyond which it saturates.
        if largest * parameters.so < 1 << 31 and moved_codes < 1 << 14 and values[name] < 1 << 15:
            return Parameters(**values)
    return parameters
