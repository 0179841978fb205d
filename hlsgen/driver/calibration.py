"""Chooses the input type that represents a sample of a model's inputs exactly."""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.numerics.fixed import Array

#: Most bits of an input port, and most bits before or after the binary point.
_MOST_BITS, _MOST_FRACTION = 32, 64
#: Bits of the types that are proposed for values that no type holds exactly.
_PROPOSED = (8, 12, 16)


def input_type_of(sample: Array) -> str:
    """The smallest fixed-point type that holds every value of `sample`, as --input takes it: "ufixed:8,0".

    Its step is 1 or finer if 32 bits suffice for that. sample: numbers of any dtype and shape, in the units of the
    model's input. Raises HG054 if they are not finite. Raises HG061 if no type of 32 bits holds them exactly; the hint
    lists types that nearly fit, with their errors.
    """
    sample = np.asarray(sample)
    if sample.dtype.kind not in "fiub" or sample.dtype.itemsize > 8 or not sample.size:
        raise fail(
            "HG054", "--calibrate", f"array of type {sample.dtype} and shape {list(sample.shape)}; numbers are needed."
        )
    if not np.isfinite(sample).all():
        raise fail("HG054", "--calibrate", "the sample holds infinities or NaN.", "Leave them out.")
    distinct = np.unique(sample)  # in the dtype of the sample, which may be much smaller than float64
    values = distinct.astype(np.float64)
    lowest, highest = float(values[0]), float(values[-1])
    beyond_float64 = distinct.dtype.kind in "iu" and max(-int(distinct[0]), int(distinct[-1])) > 1 << 53
    exact = not beyond_float64 or all(
        int(value) == x for value, x in zip(values.tolist(), distinct.tolist(), strict=True)
    )
    fine = _fraction_bits(values)
    for fraction in (max(0, fine), max(-_MOST_FRACTION, fine)):
        bits = _bits(lowest, highest, fraction)
        if exact and bits <= _MOST_BITS and fraction <= _MOST_FRACTION:
            return _name(lowest, bits, fraction)
    proposals = []
    for bits in _PROPOSED:
        fractions = range(_MOST_FRACTION, -_MOST_FRACTION, -1)
        for fraction in [f for f in fractions if _bits(lowest, highest, f) <= bits][:1]:
            error = float(np.abs(np.ldexp(np.rint(np.ldexp(values, fraction)), -fraction) - values).max())
            error += 0 if exact else 2.0**10  # float64 rounds integers of 64 bits by up to this
            proposals.append(f"--input {_name(lowest, bits, fraction)} (values move by at most {_rounded_up(error)})")
    raise fail(
        "HG061",
        "--calibrate",
        f"values of {lowest:.6g} to {highest:.6g}, and no type of {_MOST_BITS} bits holds all of them exactly.",
        f"Choose: {', '.join(proposals)}; `run --round-input` then rounds its inputs."
        if proposals
        else "They are too large for every type: scale the inputs of the model.",
    )


def _fraction_bits(values: Array) -> int:
    """Fewest fraction bits that represent every value exactly; negative if all values are multiples of 2 or more."""
    mantissa, exponent = np.frexp(values[values != 0])
    odd_part = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.log2((odd_part & -odd_part).astype(np.float64)).astype(np.int64)
    return int((53 - zeros - exponent).max()) if len(odd_part) else 0


def _bits(lowest: float, highest: float, fraction: int) -> int:
    """Bits of the codes from lowest to highest, rounded to the nearest; includes a sign bit for negative values."""
    # No type holds more than 64 bits.
    low, high = (round(ldexp(x, fraction)) if frexp(x)[1] + fraction < 64 else 1 << 64 for x in (lowest, highest))
    if lowest < 0:
        return max((~low if low < 0 else low).bit_length(), (~high if high < 0 else high).bit_length()) + 1
    return max(high.bit_length(), 1)


def _rounded_up(distance: float) -> str:
    """A distance with two digits, rounded up."""
    text = f"{distance:.2g}"
    return text if float(text) >= distance else f"{distance * 1.05:.2g}"


def _name(lowest: float, bits: int, fraction: int) -> str:
    return f"{'fixed' if lowest < 0 else 'ufixed'}:{bits},{bits - fraction}"
