"""Realization `scale`: rescaling by multiplication, code = clamp(round((x * multiplier + addend) / 2^shift)).

`scale_fit` finds the multipliers and addends with which a rounded line is the staircase. Three kinds of rounding are
tried: down with one addend, symmetric about a centre with two addends, and to nearest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize import multiplier_cost as product
from hlsgen.rescale.realize.scale_fit import (
    MAX_MULTIPLIER,
    MAX_PRODUCT,
    MAX_SHIFT,
    StaircasePoints,
    mirrored,
    multipliers,
    simplest,
    slopes,
)
from hlsgen.rescale.threshold_table import ThresholdTable


@dataclass(frozen=True, eq=False)
class Scale:
    """Parameters of module hg_scale; arrays int64 (sets,).

    It rounds down, or, if `odd` is given, to nearest with ties to the even code (0) or the odd one (1). If `centre` is
    given, `below` is the addend for x < centre. Codes are clamped to low..high.
    """

    multiplier: Array
    addend: Array
    shift: int
    low: int
    high: int
    odd: Array | None = None
    centre: Array | None = None
    below: Array | None = None
    #: DSP blocks instead of rows of adders.
    dsp: bool = False
    #: Rows of adders between registers.
    every: int = 2

    @property
    def multiplier_bits(self) -> int:
        return IntType(min(-1, int(self.multiplier.min())), int(self.multiplier.max())).bits

    @property
    def stages(self) -> int:
        """Pipeline registers of the product."""
        return 1 if self.dsp else -(-self.multiplier_bits // (2 * self.every))

    @property
    def latency(self) -> int:
        return self.stages + (3 if self.odd is None else 4)

    @property
    def mirrored(self) -> bool:
        """True if it is floor((|x| * multiplier + addend) / 2^shift) with the sign of x.

        -floor(y / 2^n) is floor((-y + 2^n - 1) / 2^n): the addend with its low n bits inverted.
        """
        if self.centre is None or self.below is None or self.centre.any():
            return False
        return bool((self.below == self.addend ^ ((1 << self.shift) - 1)).all())

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        addend = self.addend
        if self.centre is not None and self.below is not None:
            addend = np.where(codes < self.centre, self.below, addend)
        total = codes * self.multiplier + addend
        code = total >> self.shift
        if self.odd is not None and self.shift:
            above_tie = (total & ((1 << self.shift) - 1)) - (1 << (self.shift - 1))
            code = code + ((above_tie > 0) | ((above_tie == 0) & ((code & 1) != self.odd)))
        return np.asarray(np.clip(code, self.low, self.high))


def find(steps: ThresholdTable, dsp: bool = False) -> Scale | str:
    """A scale proven equal to the steps, or, as text, the reason why each of the three kinds of rounding fails.

    `dsp` builds it from DSP blocks.
    """
    reasons = []
    for attempt in (find_floor, find_symmetric, find_even):
        scale_or_reason = attempt(steps)
        if isinstance(scale_or_reason, Scale):
            return replace(scale_or_reason, dsp=dsp)
        reasons.append(scale_or_reason)
    return "; ".join(dict.fromkeys(reasons))


def find_floor(steps: ThresholdTable) -> Scale | str:
    """A scale with one addend that rounds down. It exists if and only if a line separates both kinds of points."""
    rising = _RisingSteps.of(steps)
    if isinstance(rising, str):
        return rising
    stairs = rising.stairs(rising.lo, rising.hi)
    chosen = multipliers(slopes(stairs))
    if isinstance(chosen, str):
        return chosen
    multiplier, shift = chosen
    if too_wide := rising.too_wide(multiplier, shift):
        return too_wide
    return rising.proven(multiplier, simplest(*stairs.offsets(multiplier, shift)), shift)


def find_symmetric(steps: ThresholdTable, middle: int | None = None) -> Scale | str:
    """A scale with two addends, one for x >= centre and one for x < centre, which can round |x - centre| symmetrically.

    `middle` is the code at the centre: by default 0, or, if 0 is not between the codes, the middle code.
    """
    rising = _RisingSteps.of(steps)
    if isinstance(rising, str):
        return rising
    if middle is None:
        middle = 0 if rising.low < 0 <= rising.high else (rising.low + rising.high + 1) // 2
    if not rising.low <= middle <= rising.high:
        return f"the code {middle} at the centre of symmetry does not occur"
    # The centre is in the middle of the inputs with the code `middle`, or near 0 if one end of these is unknown.
    place = middle - rising.base
    from_ = rising.table[place - 1] if place > 0 else rising.lo
    to = rising.table[place] if place < len(rising.table) else rising.hi + 1
    bounded = (from_ > rising.lo) & (to <= rising.hi)
    centre = np.where(bounded, (from_ + to) >> 1, np.clip(0, from_, to))
    sides = (
        rising.stairs(np.maximum(rising.lo, centre), rising.hi),
        rising.stairs(rising.lo, np.minimum(rising.hi, centre - 1)),
    )
    chosen = multipliers(a.intersect(b) for a, b in zip(*map(slopes, sides), strict=True))
    if isinstance(chosen, str):
        return chosen
    multiplier, shift = chosen
    if too_wide := rising.too_wide(multiplier, shift):
        return too_wide
    windows = [side.offsets(multiplier, shift) for side in sides]
    if not centre.any() and not rising.falling.any():
        addend = mirrored(windows[0], windows[1], shift)
        if addend is not None:
            return rising.proven(multiplier, addend, shift, centre=centre, below=addend ^ ((1 << shift) - 1))
    addends = simplest(*(np.stack(bounds) for bounds in zip(*windows, strict=True)))
    return rising.proven(multiplier, addends[0], shift, centre=centre, below=addends[1])


def find_even(steps: ThresholdTable) -> Scale | str:
    """A scale with one addend that rounds to nearest, ties to codes of one parity.

    It succeeds where rounding down fails only if the line touches points on both sides, and ties go either way. Then
    the slope is exactly a bound. So multipliers on the bounds are tried, besides those between them.
    """
    rising = _RisingSteps.of(steps)
    if isinstance(rising, str):
        return rising
    stairs = rising.stairs(rising.lo, rising.hi)
    bounds = []
    for s, bound in enumerate(slopes(stairs)):
        bounds.append(bound)
        if bound.below is not None and bound.above > bound.below:
            return f"set {s} needs {bound}"
    narrow = bounds[0]
    for shift in range(1, MAX_SHIFT + 1):
        # A set without a multiplier mostly has none at the next shift either.
        empty = (bound for bound in (narrow, *bounds) if int.__gt__(*bound.multipliers(shift, closed=True)))
        exhausted = next(empty, None)
        if exhausted is not None:
            narrow = exhausted
            continue
        ranges = np.array([bound.multipliers(shift, closed=True) for bound in bounds], object)
        if (ranges[:, 0] >= 1 << MAX_MULTIPLIER).any():
            break
        scale_or_reason = _nearest(rising, stairs, ranges, shift)
        if scale_or_reason is not None:
            return scale_or_reason
    return f"no {MAX_MULTIPLIER}-bit multiplier rounds to nearest in all sets"


def _nearest(rising: _RisingSteps, stairs: StaircasePoints, ranges: Array, shift: int) -> Scale | str | None:
    """A scale from a few multipliers and both parities, or None: the first that has an addend in each set."""
    limit = (1 << MAX_MULTIPLIER) - 1
    tried_multipliers = [ranges[:, 0], ranges[:, 1], (ranges[:, 0] + ranges[:, 1]) // 2]
    candidates = [np.minimum(m, limit).astype(np.int64) for m in tried_multipliers]
    best: tuple[Array, ...] | None = None
    for parities in ((0,), (1,), (0, 1)):
        solved = np.zeros(len(ranges), np.bool_)
        best = tuple(np.zeros(len(ranges), np.int64) for _ in range(4))
        for parity in parities:
            for multiplier in candidates:
                if rising.too_wide(multiplier, shift):
                    continue
                lowest, highest = stairs.offsets(multiplier, shift, odd=np.int64(parity))
                take = ~solved & (lowest <= highest)
                values = multiplier, lowest, highest, np.full_like(lowest, parity)
                best = tuple(np.where(take, new, old) for new, old in zip(values, best, strict=True))
                solved |= take
        if solved.all():
            return rising.proven(best[0], simplest(best[1], best[2]), shift, odd=best[3])
    return None


@dataclass(frozen=True, eq=False)
class _RisingSteps:
    """The steps with every set rising: a set that falls is represented as a function of -x.

    `falling` bool (sets,) says which sets fall. `low`, `high`: least and greatest code that occurs in any set.
    """

    steps: ThresholdTable
    falling: Array
    base: int
    table: Array
    lo: Array
    hi: Array
    low: int
    high: int

    @staticmethod
    def of(steps: ThresholdTable) -> _RisingSteps | str:
        """The rising steps; text if a set does not move by single codes, or its arithmetic exceeds 64 bits."""
        base, count = int(steps.values.min()), np.arange(steps.steps + 1)[:, None]
        rises = (steps.values == base + count).all(axis=0)
        falls = (steps.values == base + count[::-1]).all(axis=0) & ~rises
        if not (rises | falls).all():
            return f"set {int(np.argmin(rises | falls))} is not a staircase of single steps"
        span = int((steps.hi - steps.lo).max()) + 2
        if span * (steps.steps + 2) >= 1 << MAX_PRODUCT:
            return f"{steps.steps} steps over {span} inputs are too many for exact integers of 64 bits"
        first, last = steps.first, steps.last
        return _RisingSteps(
            steps=steps,
            falling=falls,
            base=base,
            table=np.where(falls, 1 - steps.table[::-1], steps.table),
            lo=np.where(falls, -steps.hi, steps.lo),
            hi=np.where(falls, -steps.lo, steps.hi),
            low=int(np.minimum(first, last).min()),
            high=int(np.maximum(first, last).max()),
        )

    def stairs(self, lo: Array, hi: Array) -> StaircasePoints:
        """The points that a line must pass on lo..hi."""
        return StaircasePoints.of(self.table, self.base, lo, hi, self.low, self.high)

    def too_wide(self, multiplier: Array, shift: int) -> str | None:
        """The reason if a product or a shifted code exceeds the bits of the hardware, else None."""
        reach = np.maximum(np.abs(self.lo), np.abs(self.hi)).astype(object) + 1
        code = max(abs(self.low), abs(self.high)) + 2
        if int((reach * multiplier).max()) >> MAX_PRODUCT or code << shift >> MAX_PRODUCT:
            return f"a product of more than {MAX_PRODUCT} bits"
        return None

    def proven(
        self,
        multiplier: Array,
        addend: Array,
        shift: int,
        odd: Array | None = None,
        centre: Array | None = None,
        below: Array | None = None,
    ) -> Scale | str:
        """The scale of the original steps, falling sets turned back, if it is proven equal to them; else the reason.

        The proof: it is monotone on either side of its centre, so the corners and both sides of the centre decide.
        """
        points = self.steps.corners()
        if centre is not None and below is not None:
            addend, below = np.where(self.falling, below, addend), np.where(self.falling, addend, below)
            centre = np.where(self.falling, 1 - centre, centre)
            around_centre = np.stack([centre - 1, centre])
            points = np.concatenate([points, np.clip(around_centre, self.steps.lo, self.steps.hi)])
        multiplier = np.where(self.falling, -multiplier, multiplier)
        realization = Scale(multiplier, addend, shift, self.low, self.high, odd, centre, below)
        wrong = (realization.apply(points) != self.steps.apply(points)).any(axis=0)
        if wrong.any():
            return f"set {int(wrong.argmax())} differs from the scale"
        return realization


def cost(realization: Scale, table: Array, source: IntType, result: IntType, dsp: bool) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): the product, the sum, the rounding, the clamp."""
    folds, lanes = table.shape
    x_bits, bits = source.bits + (not source.signed), realization.multiplier_bits
    constants = realization.multiplier[table[0]] if folds == 1 else None
    lut, dsp_blocks = product.cost(x_bits, bits, lanes, constants, dsp)
    addends = (
        [realization.addend]
        if realization.below is None or realization.mirrored
        else [realization.addend, realization.below]
    )
    zeros = 0 if realization.mirrored else product.low_zeros(*addends)
    r_bits = max(int(np.abs(addend >> zeros).max()).bit_length() for addend in addends) + 1
    width = max(x_bits + bits, r_bits + zeros) + 1
    lane_lut = result.bits + (width - realization.shift) / 4
    lane_lut += 0 if dsp and len(addends) == 1 and not realization.mirrored else width - zeros
    lane_lut += 0 if realization.odd is None else realization.shift / 5 + width - realization.shift
    lane_lut += 0 if len(addends) == 1 else source.bits / 2 + r_bits
    lane_lut += 0 if folds == 1 or dsp or realization.stages == 1 else r_bits
    fields = bits + len(addends) * r_bits + (0 if len(addends) == 1 else source.bits + 1)
    logic, block = product.memory(folds, lanes, fields)
    return lut + lanes * lane_lut + logic, dsp_blocks, block
