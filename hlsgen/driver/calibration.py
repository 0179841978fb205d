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

    Its steps are 1 or finer where 32 bits suffice for that.
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
    whole = np.unique(sample)  # in its own type, which may be much smaller
    values = whole.astype(np.float64)
    lowest, highest = float(values[0]), float(values[-1])
    wide = whole.dtype.kind in "iu" and max(-int(whole[0]), int(whole[-1])) > 1 << 53
    exact = not wide or all(int(value) == x for value, x in zip(values.tolist(), whole.tolist(), strict=True))
    fine = _fraction_bits(values)
    for fraction in (max(0, fine), max(-_MOST_FRACTION, fine)):
        bits = _bits(lowest, highest, fraction)
        if exact and bits <= _MOST_BITS and fraction <= _MOST_FRACTION:
            return _name(lowest, bits, fraction)
    proposals = []
    for bits in _PROPOSED:
        fractions = range(_MOST_FRACTION, -_MOST_FRACTION, -1)
        for fraction in [f for f in fractions if _bits(lowest, highest, f) <= bits][:1]:
            far = float(np.abs(np.ldexp(np.rint(np.ldexp(values, fraction)), -fraction) - values).max())
            far += 0 if exact else 2.0**10  # what float64 has rounded off of 64 bits
            proposals.append(f"--input {_name(lowest, bits, fraction)} (values move by at most {_upwards(far)})")
    raise fail(
        "HG061", "--calibrate",
        f"values of {lowest:.6g} to {highest:.6g}, and no type of {_MOST_BITS} bits holds all of them exactly.",
        f"Choose: {', '.join(proposals)}; `run --round-input` then rounds its inputs." if proposals else
        "They are too large for any: scale the inputs of the model.",
    )  # fmt: skip


def _fraction_bits(values: Array) -> int:
    """The fewest bits behind the point with which every value is a whole number of steps; negative for large steps."""
    mantissa, exponent = np.frexp(values[values != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    return int((53 - zeros - exponent).max()) if len(whole) else 0


def _bits(lowest: float, highest: float, fraction: int) -> int:
    """Bits of the codes from lowest to highest, rounded to the nearest; with a sign if there are negative values."""
    # Beyond 64 bits no type holds them, however many there are.
    low, high = (round(ldexp(x, fraction)) if frexp(x)[1] + fraction < 64 else 1 << 64 for x in (lowest, highest))
    if lowest < 0:
        return max((~low if low < 0 else low).bit_length(), (~high if high < 0 else high).bit_length()) + 1
    return max(high.bit_length(), 1)


def _upwards(far: float) -> str:
    """A distance with two digits, not less than it is."""
    text = f"{far:.2g}"
    return text if float(text) >= far else f"{far * 1.05:.2g}"


def _name(lowest: float, bits: int, fraction: int) -> str:
    return f"{'fixed' if lowest < 0 else 'ufixed'}:{bits},{bits - fraction}"
