"""The input type that holds a sample of a model's inputs."""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.numerics.fixed import Array

#: Bits that an input port may have, and bits in front of or behind the point.
_MOST_BITS, _MOST_FRACTION = 32, 64
#: Bits of the types that are proposed for values that fit none exactly.
_PROPOSED = (8, 12, 16)


def input_type_of(sample: Array) -> str:
    """The smallest fixed-point type that holds every value of `sample`, as --input takes it: "ufixed:8,0".

    sample: numbers of any dtype and shape, in the units of the model's input. Raises HG054 if they are no finite numbers,
    and HG061 with types that nearly fit, and how far off each is, if no type of 32 bits holds them exactly.
    """
    sample = np.asarray(sample)
    if sample.dtype.kind not in "fiub" or sample.dtype.itemsize > 8 or not sample.size:
        raise fail(
            "HG054", "--calibrate", f"array of type {sample.dtype} and shape {list(sample.shape)}; numbers are needed."
        )
    if not np.isfinite(sample).all():
        raise fail("HG054", "--calibrate", "the sample holds values that are no finite numbers.", "Leave them out.")
    values = np.unique(sample.astype(np.float64))
    lowest, highest = float(values[0]), float(values[-1])
    fraction = _fraction_bits(values)
    bits = _bits(lowest, highest, fraction)
    if bits <= _MOST_BITS and fraction <= _MOST_FRACTION:
        return _name(lowest, bits, fraction)
    proposals = []
    for bits in _PROPOSED:
        fractions = range(_MOST_FRACTION, -_MOST_FRACTION, -1)
        fraction = next((f for f in fractions if _bits(lowest, highest, f) <= bits), -_MOST_FRACTION)
        far = float(np.abs(np.ldexp(np.rint(np.ldexp(values, fraction)), -fraction) - values).max())
        proposals.append(f"--input {_name(lowest, bits, fraction)} (values move by at most {far:.2g})")
    raise fail(
        "HG061", "--calibrate",
        f"values of {lowest:.6g} to {highest:.6g}, and no type of {_MOST_BITS} bits holds all of them exactly.",
        f"Choose: {', '.join(proposals)}; `run --round-input` then rounds its inputs.",
    )  # fmt: skip


def _fraction_bits(values: Array) -> int:
    """The fewest bits behind the point with which every value is a whole number of steps; at least 0."""
    mantissa, exponent = np.frexp(values[values != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    return max(0, int((53 - zeros - exponent).max(initial=0)))


def _bits(lowest: float, highest: float, fraction: int) -> int:
    """Bits of the codes from lowest to highest, rounded to the nearest; with a sign if there are negative values."""
    # Beyond 64 bits no type holds them, however many there are.
    low, high = (round(ldexp(x, fraction)) if frexp(x)[1] + fraction < 64 else 1 << 64 for x in (lowest, highest))
    if lowest < 0:
        return max((~low if low < 0 else low).bit_length(), (~high if high < 0 else high).bit_length()) + 1
    return max(high.bit_length(), 1)


def _name(lowest: float, bits: int, fraction: int) -> str:
    return f"{'fixed' if lowest < 0 else 'ufixed'}:{bits},{bits - fraction}"
