"""Fixed-point exp, logistic, tanh and reciprocal of gemmlowp, on raw integers of 32 or 16 bits.

Source: fixedpoint.h of gemmlowp 16e8662. Qm has m integer bits, and bits - 1 - m fractional bits. Products are
`high_product`, sums wrap. Constants are of 32 bits; with 16 bits they are rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.rescaling import divide_by_power, high_product, shift_left, wrap

#: exp(-2^n) in Q0, for each n.
_POWERS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
#: exp(-1 / 8) and 1 / 3 in Q0; 48 / 17 and -32 / 17 in Q2.
_EIGHTH, _THIRD, _NEWTON_START, _NEWTON_SLOPE = 1895147668, 715827883, 1515870810, -1010580540


@dataclass(frozen=True)
class FixedPoint:
    """The functions on raw integers of `bits` bits, 32 or 16; arguments int64 arrays."""

    bits: int

    @property
    def largest(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def exp(self, a: Array, integer_bits: int) -> Array:
        """exp(a) in Q0, of a <= 0 in Q(integer_bits): exp_on_negative_values."""
        fraction_bits = self.bits - 1 - integer_bits
        quarter = 1 << (fraction_bits - 2)
        remainder = (a & (quarter - 1)) - quarter
        result = self._exp_of_quarter(shift_left(remainder, integer_bits, self.bits))
        rest_bits = remainder - a
        for exponent, factor in _POWERS:
            if integer_bits > exponent:
                bit = rest_bits & (1 << (fraction_bits + exponent))
                result = np.where(bit != 0, self._product(result, self._constant(factor)), result)
        return np.where(a == 0, self.largest, result)

    def _exp_of_quarter(self, a: Array) -> Array:
        """exp(a) of a from -1/4 to 0, all in Q0: a Taylor polynomial of four terms about -1/8."""
        x = self._wrap(a + (1 << (self.bits - 4)))
        x2 = self._product(x, x)
        x3, x4 = self._product(x2, x), self._product(x2, x2)
        cubic = self._product(self._wrap(divide_by_power(x4, 2) + x3), self._constant(_THIRD))
        tail = divide_by_power(self._wrap(cubic + x2), 1)
        eighth = self._constant(_EIGHTH)
        total = eighth + self._product(self._wrap(x + tail), eighth)
        return self._wrap(total) if self.bits == 32 else np.clip(total, -self.largest - 1, self.largest)

    def reciprocal(self, a: Array) -> Array:
        """1 / (1 + a) in Q0, of a within 0 and 1 in Q0: one_over_one_plus_x_for_x_in_0_1."""
        return shift_left(self._double_reciprocal(a), 1, self.bits)

    def logistic(self, a: Array, integer_bits: int) -> Array:
        """1 / (1 + exp(-a)) in Q0, of a in Q(integer_bits)."""
        positive = self.reciprocal(self.exp(self._minus_absolute(a), integer_bits))
        return np.where(a == 0, 1 << (self.bits - 2), np.where(a > 0, positive, self.largest - positive))

    def tanh(self, a: Array, integer_bits: int) -> Array:
        """tanh(a) in Q0, of a in Q(integer_bits)."""
        # 2 * a has the same raw number in a format of one more integer bit.
        exponential = self.exp(self._minus_absolute(a), integer_bits + 1)
        difference = self._wrap(self._double_reciprocal(exponential) - (1 << (self.bits - 3)))
        positive = shift_left(difference, 2, self.bits)
        return np.where(a == 0, 0, np.where(a > 0, positive, -positive))

    def _double_reciprocal(self, a: Array) -> Array:
        """2 / (1 + a) in Q2, of a within 0 and 1 in Q0: three steps of Newton's method on half of 1 + a."""
        half_sum = (a + self.largest + 1) >> 1
        x = self._wrap(self._constant(_NEWTON_START) + self._product(half_sum, self._constant(_NEWTON_SLOPE)))
        for _ in range(3):
            error = self._wrap((1 << (self.bits - 3)) - self._product(half_sum, x))
            x = self._wrap(x + shift_left(self._product(x, error), 2, self.bits))
        return x

    def _minus_absolute(self, a: Array) -> Array:
        return np.asarray(np.maximum(-np.abs(a), -self.largest - 1))

    def _constant(self, value: int) -> Array:
        constant = np.asarray(value, np.int64)
        return constant if self.bits == 32 else divide_by_power(constant, 16)

    def _product(self, a: Array, b: Array) -> Array:
        return high_product(a, b, self.bits)

    def _wrap(self, x: Array) -> Array:
        return wrap(x, self.bits)


INT32, INT16 = FixedPoint(32), FixedPoint(16)
