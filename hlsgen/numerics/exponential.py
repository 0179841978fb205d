"""exp of exact numbers, rounded once to float32: what tables of a Softmax hold."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Decimal digits: exp of a fraction but 0 is never the middle of two float32 numbers, and never as near to one.
_DIGITS = 60
#: exp of less is below half of the smallest float32.
LOWEST = -105


def exp_float32(x: Fraction) -> float:
    """The float32 that is nearest to exp(x), x at most 0; 0 where that is below half of the smallest one."""
    if x < LOWEST:
        return 0.0
    with localcontext() as context:
        context.prec = _DIGITS
        exact = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
    near = np.float32(float(exact))
    around = [near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(2))]
    return float(min(around, key=lambda f: abs(Fraction(float(f)) - exact)))


def powers(step: Fraction, count: int) -> Array:
    """exp(-step * d) for d = 0, 1, ... up to the last one that is not 0, at most `count` of them; float32."""
    found = [1.0]
    while len(found) < count and (power := exp_float32(-step * len(found))):
        found.append(power)
    return np.array(found, np.float32)
