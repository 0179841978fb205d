"""Facts about single operations: which decodings and quantizers are monotone, and where activations turn.

These are the checker's own facts. The compiler's table of facts is not used, so a wrong entry there is detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount, ops
from hlsgen.numerics.fixed import Array

#: The distance from a turning point that contains the error of its number, and of rounded values around it.
NEAR = 1e-6


@dataclass(frozen=True)
class TurningPoints:
    """Arguments at which an activation of floats can change its direction, or begin to give NaN.

    Between these points, and on both sides, it is monotone. Special cases of alpha and beta are in `monotone`.

    isolated     arguments that are cut off on both sides, such as infinities: there may be a jump
    exact        exact turning points
    approximate  turning points known to within `NEAR`: all arguments so close to one are evaluated
    """

    isolated: tuple[float, ...] = ()
    exact: tuple[float, ...] = ()
    approximate: tuple[float, ...] = ()

    def finite(self) -> list[float]:
        """Every turning point except the infinities."""
        return [point for point in (*self.isolated, *self.exact, *self.approximate) if np.isfinite(point)]


_INFINITIES = (-np.inf, np.inf)
_ZERO = (-np.inf, 0.0, np.inf)

#: Every kind of activation. The value is None if nothing is known: all inputs are evaluated, so wide ones are not
#: certified.
ACTIVATIONS: dict[str, TurningPoints | None] = {
    **dict.fromkeys(["Exp", "Tanh", "Sigmoid", "Erf", "Softplus", "Ceil", "Floor", "Round", "Sign"], TurningPoints()),
    **dict.fromkeys(["HardSigmoid", "Softsign"], TurningPoints(isolated=_INFINITIES)),
    **dict.fromkeys(["Celu", "Elu", "Selu", "LeakyRelu"], TurningPoints(isolated=_INFINITIES, exact=(0.0,))),
    **dict.fromkeys(["Abs", "Sqrt", "Log", "Reciprocal", "Pow", "HardSwish"], TurningPoints(isolated=_ZERO)),
    "Gelu": TurningPoints(isolated=_INFINITIES, approximate=(-0.75179152469,)),
    "GeluTanh": TurningPoints(isolated=_INFINITIES, approximate=(-0.75246142207,)),
    "Mish": TurningPoints(isolated=_INFINITIES, approximate=(-1.19243121452,)),
}


def decode_known(meaning: Encoding) -> bool:
    """True if decoding is monotone in the code, for codes below 2^48."""
    match meaning:
        case Affine(scale, zero):
            return bool(np.isfinite(scale).all() and np.isfinite(zero).all())
        case ThresholdCount(scale_, bias):
            return bool(np.isfinite([np.float32(scale_), np.float32(bias)]).all())
        case Accumulator():
            return bool(np.isfinite(meaning.scale).all() and abs(meaning.offset).max() < 1 << 52)
        case Fixed() | FloatKey() | IntegerEncoding():
            return True
        case _:
            assert_never(meaning)


def quantizer_known(op: ops.Quantizer) -> Array:
    """(sets,) or one: True if the quantizer is monotone in a float or integer x."""

    def positive(value: Array) -> Array:
        return np.asarray(np.isfinite(value) & (value > 0))

    match op:
        case ops.MultiThreshold(thresholds):
            return np.asarray(~np.isnan(thresholds).any(axis=0))
        case ops.Bipolar():
            return np.asarray(np.isfinite(op.divisor) & (op.divisor != 0))
        case ops.Requantize():
            return np.asarray(True)
        case ops.Pair() | ops.FixedAdd() | ops.IntegerActivation() | ops.IntegerRatio():  # every input is evaluated
            return np.asarray(False)
        case ops.Trunc():
            return np.asarray(positive(op.scale) & np.isfinite(op.zero_point) & positive(op.divisor))
        case ops.IntQuant() | ops.SignedBit() | ops.QuantizeLinear():
            return np.asarray(positive(op.scale) & np.isfinite(op.zero_point))
        case ops.FloatQuant():
            return positive(op.scale)
        case _:
            assert_never(op)


def requantize_fits(convention: ops.Convention, constants: Sequence[Array], ends: tuple[Array, Array]) -> Array:
    """True for pieces in which no 64-bit number overflows at both ends, and so between them.

    constants: multiplier, addend and shift of each piece.
    """
    no_overflow = []
    for m, add, shift, *x in zip(*(v.tolist() for v in (*constants, *ends)), strict=True):
        if convention is ops.Convention.FLOAT64:
            # Conversion, product and rounding are each monotone; the largest product must be an int64.
            reach = max(map(abs, x)) + abs(add)
            no_overflow.append(shift >= 0 and abs(m) < 1 << 53 and reach < 1 << 62 and reach * abs(m) < 1 << shift + 61)
            continue
        if not 0 <= shift <= 62:
            no_overflow.append(False)
            continue
        reach = max(map(abs, x))
        if convention is ops.Convention.DOUBLE:
            no_overflow.append((reach + abs(add)) << max(31 - shift, 0) < 1 << 61 and abs(m) < 1 << 31)
        else:
            no_overflow.append(reach * abs(m) + abs(add) < 1 << 61)
    return np.array(no_overflow, np.bool_)
