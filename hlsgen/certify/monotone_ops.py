"""The facts that the proofs rest on: which decodings and quantizers are monotone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.ops import Bipolar, Convention, FixedAdd, MultiThreshold, Pair, Quantizer, Requantize, Trunc
from hlsgen.numerics.fixed import Array


def decode_known(meaning: Encoding) -> bool:
    """Whether decoding is monotone in the code, for codes below 2^48."""
    match meaning:
        case Affine(scale, zero):
            return bool(np.isfinite(scale).all() and np.isfinite(zero).all())
        case ThresholdCount(scale_, bias):
            return bool(np.isfinite([np.float32(scale_), np.float32(bias)]).all())
        case Accumulator():
            return bool(np.isfinite(meaning.scale).all() and abs(meaning.offset).max() < 1 << 52)
        case Fixed() | FloatKey() | IntegerEncoding():
            return True


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
        case Pair() | FixedAdd():
            return np.asarray(False)
        case Trunc():
            return np.asarray(positive(op.scale) & np.isfinite(op.zero_point) & positive(op.divisor))
        case _:
            zero = getattr(op, "zero_point", np.zeros(1))
            return np.asarray(positive(op.scale) & np.isfinite(zero))


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
