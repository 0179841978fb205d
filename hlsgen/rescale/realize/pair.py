"""Realization `pair`: the sum or product of two quantized operands of 8 bits whose codes come in one word."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlsgen.ir import IntegerEncoding
from hlsgen.ir.evaluate import operands
from hlsgen.ir.ops import Pair, PairOp
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType, Rounding, round_shift
from hlsgen.numerics.quantized_add import Parameters
from hlsgen.rescale.realize.table import Table, TableMode
from hlsgen.rescale.realize.table import cost as table_cost

#: Fraction bits of the multipliers, in the order in which they are tried.
_SHIFTS = range(1, 31)


@dataclass(frozen=True)
class PairAdd:
    """Parameters of module hg_pair_add: the quantized addition of `numerics.quantized_add`."""

    pair: Pair
    parameters: Parameters

    @property
    def latency(self) -> int:
        return 7

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes."""
        return np.asarray(self.parameters.apply(*operands(self.pair, codes)).astype(np.int64))


@dataclass(frozen=True)
class PairScale:
    """Parameters of module hg_pair_scale: code = clamp(round((total + offset) / 2^shift)).

    total is a * first + b * second, or, with `product`, (a - zero_a) * (b - zero_b) * first. It rounds to nearest with
    ties to even if `even`, else down.
    """

    pair: Pair
    product: bool
    first: int
    second: int
    offset: int
    shift: int
    even: bool

    @property
    def latency(self) -> int:
        return 5

    @property
    def mode(self) -> Rounding:
        return Rounding.ROUND if self.even else Rounding.FLOOR

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes."""
        a, b = operands(self.pair, codes)
        if self.product:
            za, zb, _ = self.pair.zeros
            total = (a - za) * (b - zb) * self.first
        else:
            total = a * self.first + b * self.second
        return np.clip(round_shift(total + self.offset, self.shift, self.mode), self.pair.type.lo, self.pair.type.hi)


def find(f: StepFunction) -> PairAdd | PairScale | Table | str:
    """The hardware of a `Pair`, proven on all 65536 pairs of operands; or, as text, that f is no such function.

    If no multipliers reproduce the float rounding near ties, it is a lookup table of all pairs.
    """
    if not isinstance(f.quantizer, Pair) or f.ops or not isinstance(f.source, IntegerEncoding):
        return "it is no function of two operands"
    pair = f.quantizer
    if pair.fixed is not None:
        return PairAdd(pair, pair.fixed)
    codes = np.arange(f.input_type.hi + 1)
    expected = f.evaluate(codes[:, None])[:, 0]
    for shift in _SHIFTS:
        even = _candidate(pair, shift)
        if (even.apply(codes) == expected).all():
            return even
        down = _rounded_down(even, codes, expected)
        if down is not None:
            return down
    return Table(TableMode.DIRECT, expected[:, None], np.zeros(1, np.int64))


def _rounded_down(even: PairScale, codes: Array, expected: Array) -> PairScale | None:
    """The same multipliers with rounding down and an offset that is right for every pair, or None."""
    exact = replace(even, offset=0, shift=0, pair=replace(even.pair, type=IntType(-(1 << 62), 1 << 62))).apply(codes)
    low, high, shift = even.pair.type.lo, even.pair.type.hi, even.shift
    lowest_offset = ((expected << shift) - exact)[expected > low].max(initial=-(1 << 50))
    highest_offset = (((expected + 1) << shift) - 1 - exact)[expected < high].min(initial=1 << 50)
    if lowest_offset > highest_offset:
        return None
    floored = replace(even, offset=int((lowest_offset + highest_offset) // 2), even=False)
    return floored if (floored.apply(codes) == expected).all() else None


def _candidate(pair: Pair, shift: int) -> PairScale:
    """The pair's own scales and zero points in fixed point with `shift` fraction bits; not proven yet."""
    sa, sb, sc = (np.float32(s) for s in pair.scales)
    za, zb, zc = pair.zeros
    if pair.kind == PairOp.MUL:
        factor = float(sa * sb / sc)
        return PairScale(pair, True, round(factor * 2**shift), 0, zc << shift, shift, True)
    ra, rb = float(sa / sc), float(sb / sc)
    offset = round((zc - ra * za - rb * zb) * 2**shift)
    return PairScale(pair, False, round(ra * 2**shift), round(rb * 2**shift), offset, shift, True)


def cost(
    realization: PairAdd | PairScale | Table, table: Array, source: IntType, result: IntType
) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM), of hardware without DSP blocks."""
    if isinstance(realization, Table):
        return table_cost(realization, table, source, result)
    if isinstance(realization, PairAdd):
        return 420.0 * table.shape[1], 0, 0
    bits = [abs(m).bit_length() for m in (realization.first, realization.second)]
    digits = sum(bin(abs(m) ^ (abs(m) * 3)).count("1") for m in (realization.first, realization.second))
    lut = digits * 12.0 + max(bits) + 2 * result.bits + (70 if realization.product else 0)
    return lut * table.shape[1], 0, 0
