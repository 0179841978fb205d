"""Realization `float-scale`: one float32 product between integers, computed in integers with the same roundings.

code = clamp(zero_point + rne(fl32(fl32(x + offset) * scale))). fl32 rounds to float32, rne to the nearest integer, ties
to even. Rounding twice differs from rounding once only near ties, which the hardware treats separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize import multiplier_cost as product
from hlsgen.rescale.threshold_table import ThresholdTable

#: Significant bits of float32.
_KEEP = 24
#: Codes without zero point below 2^22 have ties that float32 can distinguish from their neighbours.
_TIE_BITS = 22
_MAX_LEFT = 31
_MAX_SHIFT = 80


@dataclass(frozen=True, eq=False)
class FloatScale:
    """Parameters of module hg_scale_f32; arrays int64 (sets,).

    The scale is mantissa * 2^(left - shift). |x + offset| * 2^left saturates at 2^bits - 1, which changes no code.
    """

    mantissa: Array
    left: Array
    shift: int
    offset: Array
    zero_point: Array
    bits: int
    low: int
    high: int
    #: DSP blocks instead of rows of adders.
    dsp: bool = False
    #: Rows of adders between registers.
    every: int = 2

    @property
    def mantissa_bits(self) -> int:
        return int(self.mantissa.max()).bit_length()

    @property
    def stages(self) -> int:
        """Pipeline registers of the product; one if it uses a single DSP block, two if several."""
        return (1 if self.bits < 18 else 2) if self.dsp else -(-(self.mantissa_bits + 1) // (2 * self.every))

    @property
    def latency(self) -> int:
        return self.stages + (9 if self.bits > _KEEP else 7)

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes.

        It rounds the product once, straight to an integer q or q + 1. Rounding to float32 first would turn products
        within d of q + 1/2 into ties. d is half a unit in the last place of float32 at q + 1/2. Ties go to the even
        neighbour, so these products do too.
        """
        exceeds_int64 = max(self.bits + max(_KEEP + 1, int(self.left.max())), self.shift) > 60
        total = (codes + self.offset).astype(object if exceeds_int64 else np.int64)
        top = (1 << self.bits) - 1
        # Clamp first, so that the shift does not overflow.
        size = np.minimum(np.minimum(abs(total), top) << self.left, top)
        product = _significant(size, self.bits) * self.mantissa
        code = product >> self.shift
        fraction, half = product & ((1 << self.shift) - 1), 1 << (self.shift - 1)
        small = np.minimum(code, 1 << _TIE_BITS).astype(np.int64)
        place = self.shift - 25 + np.frexp(small.astype(np.float64))[1]
        ties = (place >= 0) & (small < 1 << _TIE_BITS)
        d = np.where(ties, np.ones_like(product) << np.where(ties, place, 0).astype(product.dtype), 0)
        up = np.where(code & 1 == 1, fraction >= half - d, fraction > half + d)
        code = np.where(total < 0, -(code + up), code + up) + self.zero_point
        return np.asarray(np.clip(code, self.low, self.high).astype(np.int64))


def _significant(size: Array, bits: int) -> Array:
    """Integers of at most `bits` bits, rounded to 24 significant bits, ties to even: as the conversion to float32."""
    drop = np.zeros(size.shape, np.int64)
    for length in range(_KEEP, bits):
        drop += (size >> length != 0).astype(np.int64)
    drop = drop.astype(size.dtype)
    significant = size >> drop
    twice = (size - (significant << drop)) * 2
    unit = (significant - significant + 1) << drop
    up = (twice > unit) | ((twice == unit) & (significant & 1 == 1))
    return np.asarray((significant + up) << drop)


@dataclass(frozen=True, eq=False)
class MonotoneTarget:
    """The monotone function on lo..hi that a product must equal; arrays int64 (sets,).

    `first`, `last`: the codes at lo and hi. `bottom`: the input before the first change; `top`: the input of the last
    change; both are lo if nothing changes. `points()` gives inputs (n, sets) with their codes, in chunks. A monotone
    function that agrees at all of them is equal.
    """

    lo: Array
    hi: Array
    first: Array
    last: Array
    bottom: Array
    top: Array
    points: Callable[[], Iterable[tuple[Array, Array]]]

    @staticmethod
    def of(steps: ThresholdTable) -> MonotoneTarget:
        """The function of these steps, which must be monotone."""
        inside = (steps.table > steps.lo) & (steps.table <= steps.hi)
        has_changes = inside.any(axis=0)
        lowest = np.where(inside, steps.table, steps.hi + 1).min(axis=0, initial=int(steps.hi.max()) + 1) - 1
        highest = np.where(inside, steps.table, steps.lo).max(axis=0, initial=int(steps.lo.min()))

        def points() -> Iterable[tuple[Array, Array]]:
            corners = steps.corners()
            yield corners, steps.apply(corners)

        ends = np.where(has_changes, lowest, steps.lo), np.where(has_changes, highest, steps.lo)
        return MonotoneTarget(steps.lo, steps.hi, steps.first, steps.last, *ends, points)


def find(
    target: ThresholdTable | MonotoneTarget, scale: Array, offset: Array, zero_point: Array, dsp: bool = False
) -> FloatScale | str:
    """The product with these parameters, if it is proven equal to `target`; else the reason, as text.

    `scale` float32 (sets,); `offset`, `zero_point` int64 (sets,). `dsp` builds it from DSP blocks. The proof: every
    step of the product is monotone, and so is `target`, so agreement at the points of `target` decides.
    """
    target = MonotoneTarget.of(target) if isinstance(target, ThresholdTable) else target
    if scale.dtype != np.float32 or not (np.isfinite(scale) & (scale >= np.finfo(np.float32).tiny)).all():
        return "a scale that is no positive normal float32"
    fraction, exponent = np.frexp(scale)
    mantissa = (fraction * np.float32(1 << _KEEP)).astype(np.int64)
    zeros = np.array([digits_below(int(m)) for m in mantissa])
    # scale = mantissa / 2^places with an odd mantissa. Then all sets get the most places.
    mantissa, places = mantissa >> zeros, _KEEP - exponent.astype(np.int64) - zeros
    shift = max(1, int(places.max()))
    widest = int(mantissa.max()).bit_length()
    room = widest - np.array([int(m).bit_length() for m in mantissa])
    widen = np.minimum(room, shift - places)
    left_shift = shift - places - widen
    if shift > _MAX_SHIFT or int(left_shift.max()) > _MAX_LEFT:
        return f"a shift of {shift} places to the right or {int(left_shift.max())} to the left"
    first, last = target.first, target.last
    low, high = int(np.minimum(first, last).min()), int(np.maximum(first, last).max())
    if max(abs(low), abs(high)) + int(np.abs(zero_point).max()) >= 1 << _TIE_BITS:
        return f"codes of more than {_TIE_BITS} bits"
    bits = _reach(target, offset, left_shift)
    realization = FloatScale(mantissa << widen, left_shift, shift, offset, zero_point, bits, low, high, dsp)
    for x, codes in target.points():
        computed = realization.apply(x)
        wrong = (computed != codes).any(axis=0)
        if wrong.any():
            s = int(wrong.argmax())
            p = int((computed != codes)[:, s].argmax())
            product = f"rne(float32({x[p, s]} + {offset[s]}) * {scale[s]}) + {zero_point[s]}"
            return f"set {s}: {product} is {computed[p, s]}, not {codes[p, s]}"
    return realization


def digits_below(value: int) -> int:
    """Trailing zero bits of a positive number."""
    return (value & -value).bit_length() - 1


def _reach(target: MonotoneTarget, offset: Array, left_shift: Array) -> int:
    """Bits that hold |x + offset| << left for all inputs from `bottom` to `top`.

    The code is constant beyond these, so that all other inputs may saturate. A set without changes needs the bits of
    its input nearest to 0.
    """
    nearest = np.clip(0, target.lo + offset, target.hi + offset)
    ends = np.where(target.top > target.lo, np.stack([target.bottom, target.top]) + offset, nearest)
    sizes = np.abs(ends).max(axis=0)
    return max(1, max(int(size).bit_length() + int(t) for size, t in zip(sizes, left_shift, strict=True)))


def cost(realization: FloatScale, table: Array, source: IntType, result: IntType, dsp: bool) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): the sum and shift before the product, the product, the ties."""
    folds, lanes = table.shape
    u_bits, bits, left_bits = (
        realization.bits + 1 + (realization.bits > _KEEP),
        realization.mantissa_bits + 1,
        int(realization.left.max()),
    )
    constants = realization.mantissa[table[0]] if folds == 1 else None
    lut, dsp_blocks = product.cost(u_bits, bits, lanes, constants, dsp)
    width = source.bits + 1
    lane_lut = width * float(realization.offset.any()) + (width + left_bits) * left_bits.bit_length() / 2 + u_bits
    lane_lut += 2.7 * realization.bits if realization.bits > _KEEP else 0
    integer_bits = u_bits + bits - realization.shift
    lane_lut += 40 + 2 * integer_bits + result.bits + (8 if dsp else 20)
    zero_bits = int(np.abs(realization.zero_point).max()).bit_length() + 1
    lane_lut += 0 if folds == 1 else zero_bits if dsp else bits + zero_bits
    offset_bits = int(np.abs(realization.offset).max()).bit_length() + 1
    logic, block = product.memory(folds, lanes, bits + offset_bits + left_bits.bit_length() + zero_bits)
    return lut + lanes * lane_lut + logic, dsp_blocks, block
