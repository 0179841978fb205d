"""Realization `lines`: LOGISTIC and TANH of int16 codes, as TFLite's runtimes compute them: lines between 256 knots.

Example: LOGISTIC of codes with scale 2^-12. The input times 3 counts 24ths of 1/512. Its magnitude is the number of a
knot and 9 bits of a fraction. The value at the knot, and the fraction times the rise to the next knot, are a sum
that is rounded to 15 bits. A negative input gives 2^15 minus that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.piecewise import KNOTS, RESULT_BITS
from hlsgen.rescale.realize import multiplier_cost as product

#: Most bits of an input, so that every one can be compared; fewest bits of a code, as others have smaller hardware.
_MOST_INPUT_BITS, _FEWEST_CODE_BITS = 16, 12
#: Multipliers have 15 bits, the first one set; right shifts are less than `_SHIFTS`.
_LEAST_MULTIPLIER, _SHIFTS = 1 << 14, 32
#: The multiplier of scales that are powers of two.
_POWER_OF_TWO = 3 << 13


@dataclass(frozen=True, eq=False)
class Lines:
    """Parameters of module hg_lines.

    v = (x * multiplier + half) >> shift. |v| is the number of a knot, at most the last one, and `fraction` bits. Then
    h = ((values[knot] << left_shift) + fraction * rises[knot]) >> right_shift. The code is h, or mirror - h for v < 0.
    `values`, `rises` int64 (knots,). `dsp`: DSP blocks for the product. `every`: adders in series between registers.
    """

    multiplier: int
    shift: int
    fraction: int
    values: Array
    rises: Array
    left_shift: int
    right_shift: int
    mirror: int
    dsp: bool = False
    every: int = 2

    @property
    def bits(self) -> int:
        """Bits of the number of a knot."""
        return len(self.values).bit_length() - 1

    @property
    def multiplier_bits(self) -> int:
        return self.multiplier.bit_length() + 1

    @property
    def value_bits(self) -> int:
        return max(1, int(self.values.max()).bit_length())

    @property
    def rise_bits(self) -> int:
        return max(1, int(self.rises.max()).bit_length())

    @property
    def multiplier_stages(self) -> int:
        """Registers of the product of the input."""
        return -(-product.digits(self.multiplier) // self.every)

    @property
    def stages(self) -> int:
        """Registers of the product of fraction and rise."""
        return 1 if self.dsp else -(-product.rows(self.fraction + 1) // self.every)

    @property
    def latency(self) -> int:
        return self.multiplier_stages + (self.shift > 0) + self.stages + 5

    def scaled(self, codes: Array) -> Array:
        """The input of the lines for each code: code * multiplier / 2^shift, rounded to nearest, halves up."""
        return np.asarray((codes * self.multiplier + ((1 << self.shift) >> 1)) >> self.shift)

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes."""
        v = self.scaled(codes)
        magnitude = np.abs(v)
        knot = np.minimum(magnitude >> self.fraction, len(self.values) - 1)
        rise = (magnitude & ((1 << self.fraction) - 1)) * self.rises[knot]
        height = ((self.values[knot] << self.left_shift) + rise) >> self.right_shift
        return np.asarray(np.where(v < 0, self.mirror - height, height))


def logistic(multiplier: int, shift: int) -> Lines:
    """LOGISTIC of (x * multiplier + half) >> shift in 24ths of 1/512.

    The rounding adds 2^9 to the sum, which is 1 in the units of a knot. The last knot is 2^16 - 2 for all above it.
    """
    values = KNOTS + 1
    values[-1] = (1 << 16) - 1
    return Lines(multiplier, shift, 9, values, _rises(), 9, 10, 1 << RESULT_BITS)


def tanh(multiplier: int, shift: int) -> Lines:
    """TANH of (x * multiplier + half) >> shift in 24ths of 1/256: twice the logistic function, less 1.

    The rounding adds 2^7 to the sum, which is 1/2 in the units of a knot.
    """
    return Lines(multiplier, shift, 8, 2 * (KNOTS - (1 << RESULT_BITS)) + 1, _rises(), 7, 8, 0)


def _rises() -> Array:
    """The difference of each knot to the next one; 0 at the last."""
    return np.append(np.diff(KNOTS), 0)


def find(f: StepFunction, dsp: bool = False) -> Lines | str:
    """Lines that are proven equal to f, or the reason, as text, why there are none. The proof compares every input."""
    if f.is_float or f.sets != 1 or f.input_type.bits > _MOST_INPUT_BITS or f.output_type.bits < _FEWEST_CODE_BITS:
        return f"it is no single function of up to {_MOST_INPUT_BITS} bits with codes of {_FEWEST_CODE_BITS} or more"
    x = np.arange(int(f.lo[0]), int(f.hi[0]) + 1)
    codes = f.evaluate(x[:, None])[:, 0]
    for lines in (logistic, tanh):
        scaled = _with_scale(lines, x, codes)
        if scaled is not None:
            return replace(scaled, dsp=dsp)
    return f"it is neither LOGISTIC nor TANH of int16 codes, on lines between {len(KNOTS)} knots, of any scale"


def _with_scale(lines: Callable[[int, int], Lines], x: Array, codes: Array) -> Lines | None:
    """The lines whose scale gives these codes, or None.

    Bisection: each code is farther from the code of 0 if the scale is larger. The scales are `multiplier` / 2^`shift`
    in ascending order. Near the one found, a power of two is preferred.
    """
    if (lines(0, 0).apply(x[x == 0]) != codes[x == 0]).any():
        return None
    low, high = 0, _SHIFTS * _LEAST_MULTIPLIER
    while low < high:
        middle = (low + high) // 2
        multiplier, shift = _LEAST_MULTIPLIER + middle % _LEAST_MULTIPLIER, _SHIFTS - 1 - middle // _LEAST_MULTIPLIER
        candidate = lines(multiplier, shift)
        excess = (candidate.apply(x) - codes) * np.sign(x)
        if not excess.any():
            power = lines(_POWER_OF_TWO, shift)
            return _reduced(power if (power.apply(x) == codes).all() else candidate)
        if excess.max() > 0:
            if excess.min() < 0:
                return None
            high = middle
        else:
            low = middle + 1
    return None


def _reduced(lines: Lines) -> Lines:
    """The same lines, the multiplier and the shift without common bits."""
    zeros = min(lines.shift, (lines.multiplier & -lines.multiplier).bit_length() - 1)
    return replace(lines, multiplier=lines.multiplier >> zeros, shift=lines.shift - zeros)


def cost(realization: Lines, lanes: int, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): both products, the magnitude, the sum and its mirror; a memory a lane."""
    x_bits = source.bits + (not source.signed)
    scale, _ = product.cost(x_bits, realization.multiplier_bits, 1, np.array([realization.multiplier]), False)
    rise, blocks = product.cost(realization.rise_bits + 1, realization.fraction + 1, 1, None, realization.dsp)
    scaled_bits = x_bits + realization.multiplier_bits - realization.shift
    rounding = scaled_bits + realization.shift / 5 if realization.shift else 0.0
    logic = scale + rounding + scaled_bits + rise + realization.value_bits + 3 + result.bits
    return lanes * logic, lanes * blocks, lanes * memory_bits(realization)


def memory_bits(realization: Lines) -> int:
    """Bits of the memory of a lane."""
    return len(realization.values) * (realization.value_bits + realization.rise_bits)
