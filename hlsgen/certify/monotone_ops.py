"""What the checker holds of single operations: which decodings and quantizers are monotone, where activations turn.

This is the checker's own argument. It takes nothing from the compiler's table of facts, so a wrong entry there is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.ops import (
    Bipolar,
    Convention,
    FixedAdd,
    FloatQuant,
    IntegerActivation,
    IntegerRatio,
    IntQuant,
    MultiThreshold,
    Pair,
    QuantizeLinear,
    Quantizer,
    Requantize,
    SignedBit,
    Trunc,
)
from hlsgen.numerics.fixed import Array

#: The distance from a turning point that contains the error of its number, and of rounded values around it.
NEAR = 1e-6


@dataclass(frozen=True)
class TurningPoints:
    """Arguments at which an activation of floats can change its direction, or begin to give NaN.

    Between them, and on both sides, it is monotone. Special cases of alpha and beta are in `monotone`.

    apart  arguments that are cut off on both sides, such as infinities: what is there may be a jump
    at     exact turning points
    near   turning points known to within `NEAR`: arguments so close to one are tried, all of them
    """

    apart: tuple[float, ...] = ()
    at: tuple[float, ...] = ()
    near: tuple[float, ...] = ()

    def finite(self) -> list[float]:
        """Every turning point but the infinities."""
        return [point for point in (*self.apart, *self.at, *self.near) if np.isfinite(point)]


_INFINITIES = (-np.inf, np.inf)
_ZERO = (-np.inf, 0.0, np.inf)

#: Every kind of activation; None where nothing is known: all inputs are tried, so wide ones are not certified.
ACTIVATIONS: dict[str, TurningPoints | None] = {
    **dict.fromkeys(["Exp", "Tanh", "Sigmoid", "Erf", "Softplus", "Ceil", "Floor", "Round", "Sign"], TurningPoints()),
    **dict.fromkeys(["HardSigmoid", "Softsign"], TurningPoints(apart=_INFINITIES)),
    **dict.fromkeys(["Celu", "Elu", "Selu", "LeakyRelu"], TurningPoints(apart=_INFINITIES, at=(0.0,))),
    **dict.fromkeys(["Abs", "Sqrt", "Log", "Reciprocal", "Pow", "HardSwish"], TurningPoints(apart=_ZERO)),
    "Gelu": TurningPoints(apart=_INFINITIES, near=(-0.75179152469,)),
    "GeluTanh": TurningPoints(apart=_INFINITIES, near=(-0.75246142207,)),
    "Mish": TurningPoints(apart=_INFINITIES, near=(-1.19243121452,)),
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


def quantizer_known(op: Quantizer) -> Array:
    """(sets,) or one: whether the quantizer is monotone in a float or integer x."""

    def positive(value: Array) -> Array:
        return np.asarray(np.isfinite(value) & (value > 0))

    match op:
        case MultiThreshold(thresholds):
            return np.asarray(~np.isnan(thresholds).any(axis=0))
        case Bipolar():
            return np.asarray(np.isfinite(op.divisor) & (op.divisor != 0))
        case Requantize():
            return np.asarray(True)
        case Pair() | FixedAdd() | IntegerActivation() | IntegerRatio():  # every input is tried
            return np.asarray(False)
        case Trunc():
            return np.asarray(positive(op.scale) & np.isfinite(op.zero_point) & positive(op.divisor))
        case IntQuant() | SignedBit() | QuantizeLinear():
            return np.asarray(positive(op.scale) & np.isfinite(op.zero_point))
        case FloatQuant():
            return positive(op.scale)
        case _:
            assert_never(op)


def requantize_fits(convention: Convention, constants: Sequence[Array], ends: tuple[Array, Array]) -> Array:
    """Of pieces with multiplier, addend and shift: whether no 64-bit number overflows at both ends, and so between."""
    fits = []
    for m, add, shift, *x in zip(*(v.tolist() for v in (*constants, *ends)), strict=True):
        if not 0 <= shift <= 62:
            fits.append(False)
            continue
        reach = max(map(abs, x))
        if convention is Convention.DOUBLE:
            fits.append((reach + abs(add)) << max(31 - shift, 0) < 1 << 61 and abs(m) < 1 << 31)
        else:
            fits.append(reach * abs(m) + abs(add) < 1 << 61)
    return np.array(fits, np.bool_)
