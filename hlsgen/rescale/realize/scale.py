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
    #: Multiplier blocks instead of rows of adders.
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
        """Whether it is floor((|x| * multiplier + addend) / 2^shift) with the sign of x.

        -floor(y / 2^n) is floor((-y + 2^n - 1) / 2^n): the addend with its low n bits inverted.
        """
        if self.centre is None or self.below is None or self.centre.any():
            return False
        return bool((self.below == self.addend ^ ((1 << self.shift) - 1)).all())

    def apply(self, codes: Array) -> Array:
        """What the hardware computes: codes (..., sets) -> codes."""
        addend = self.addend
        if self.centre is not None and self.below is not None:
            addend = np.where(codes < self.centre, self.below, addend)
        total = codes * self.multiplier + addend
        code = total >> self.shift
        if self.odd is not None and self.shift:
            rest = (total & ((1 << self.shift) - 1)) - (1 << (self.shift - 1))
            code = code + ((rest > 0) | ((rest == 0) & ((code & 1) != self.odd)))
        return np.asarray(np.clip(code, self.low, self.high))


def find(steps: ThresholdTable, dsp: bool = False) -> Scale | str:
    """A scale proven equal to the steps, or, as text, why none of the three kinds of rounding gives one.

    `dsp` builds it from DSP blocks.
    """
    reasons = []
    for attempt in (find_floor, find_symmetric, find_even):
        found = attempt(steps)
        if isinstance(found, Scale):
            return replace(found, dsp=dsp)
        reasons.append(found)
    return "; ".join(dict.fromkeys(reasons))


def find_floor(steps: ThresholdTable) -> Scale | str:
    """A scale with one addend that rounds down. It exists if and only if a line separates both kinds of points."""
    ready = _Bundle.of(steps)
    if isinstance(ready, str):
        return ready
    stairs = ready.stairs(ready.lo, ready.hi)
    chosen = multipliers(slopes(stairs))
    if isinstance(chosen, str):
        return chosen
    multiplier, shift = chosen
    if too_wide := ready.too_wide(multiplier, shift):
        return too_wide
    return ready.proven(multiplier, simplest(*stairs.offsets(multiplier, shift)), shift)


def find_symmetric(steps: ThresholdTable, middle: int | None = None) -> Scale | str:
    """A scale with two addends: one for x >= centre, one for x < centre. So it can round |x - centre| symmetrically.

    `middle` is the code at the centre: by default 0, or, if 0 is not between the codes, the middle code.
    """
    ready = _Bundle.of(steps)
    if isinstance(ready, str):
        return ready
    if middle is None:
        middle = 0 if ready.low < 0 <= ready.high else (ready.low + ready.high + 1) // 2
    if not ready.low <= middle <= ready.high:
        return f"no code {middle} to put a sign to"
    # The centre is amid the inputs with the code `middle`, or near 0 where one end of these is unknown.
    place = middle - ready.base
    from_ = ready.table[place - 1] if place > 0 else ready.lo
    to = ready.table[place] if place < len(ready.table) else ready.hi + 1
    known = (from_ > ready.lo) & (to <= ready.hi)
    centre = np.where(known, (from_ + to) >> 1, np.clip(0, from_, to))
    sides = (
        ready.stairs(np.maximum(ready.lo, centre), ready.hi),
        ready.stairs(ready.lo, np.minimum(ready.hi, centre - 1)),
    )
    chosen = multipliers(a.both(b) for a, b in zip(*map(slopes, sides), strict=True))
    if isinstance(chosen, str):
        return chosen
    multiplier, shift = chosen
    if too_wide := ready.too_wide(multiplier, shift):
        return too_wide
    windows = [side.offsets(multiplier, shift) for side in sides]
    if not centre.any() and not ready.falling.any():
        addend = mirrored(windows[0], windows[1], shift)
        if addend is not None:
            return ready.proven(multiplier, addend, shift, centre=centre, below=addend ^ ((1 << shift) - 1))
    both = simplest(*(np.stack(bounds) for bounds in zip(*windows, strict=True)))
    return ready.proven(multiplier, both[0], shift, centre=centre, below=both[1])


def find_even(steps: ThresholdTable) -> Scale | str:
    """A scale with one addend that rounds to nearest, ties to codes of one parity.

    It can do what rounding down cannot only where the line touches points on both sides, and ties go either way.
    Then the slope is exactly a bound. So multipliers on the bounds are tried, besides those between them.
    """
    ready = _Bundle.of(steps)
    if isinstance(ready, str):
        return ready
    stairs = ready.stairs(ready.lo, ready.hi)
    bounds = []
    for s, bound in enumerate(slopes(stairs)):
        bounds.append(bound)
        if bound.below is not None and bound.above > bound.below:
            return f"set {s} needs {bound}"
    narrow = bounds[0]
    for shift in range(1, MAX_SHIFT + 1):
        # A set with no multiplier mostly has none at the next shift either.
        empty = (bound for bound in (narrow, *bounds) if int.__gt__(*bound.multipliers(shift, closed=True)))
        none = next(empty, None)
        if none is not None:
            narrow = none
            continue
        ranges = np.array([bound.multipliers(shift, closed=True) for bound in bounds], object)
        if (ranges[:, 0] >= 1 << MAX_MULTIPLIER).any():
            break
        found = _nearest(ready, stairs, ranges, shift)
        if found is not None:
            return found
    return f"no {MAX_MULTIPLIER}-bit multiplier rounds to nearest in all sets"


def _nearest(ready: _Bundle, stairs: StaircasePoints, ranges: Array, shift: int) -> Scale | str | None:
    """A scale from a few multipliers and both parities, taking the first that has an addend in each set; or None."""
    limit = (1 << MAX_MULTIPLIER) - 1
    few = [ranges[:, 0], ranges[:, 1], (ranges[:, 0] + ranges[:, 1]) // 2]
    candidates = [np.minimum(m, limit).astype(np.int64) for m in few]
    best: tuple[Array, ...] | None = None
    for parities in ((0,), (1,), (0, 1)):
        done = np.zeros(len(ranges), np.bool_)
        best = tuple(np.zeros(len(ranges), np.int64) for _ in range(4))
        for parity in parities:
            for multiplier in candidates:
                if ready.too_wide(multiplier, shift):
                    continue
                least, most = stairs.offsets(multiplier, shift, odd=np.int64(parity))
                take = ~done & (least <= most)
                values = multiplier, least, most, np.full_like(least, parity)
                best = tuple(np.where(take, new, old) for new, old in zip(values, best, strict=True))
                done |= take
        if done.all():
            return ready.proven(best[0], simplest(best[1], best[2]), shift, odd=best[3])
    return None


@dataclass(frozen=True, eq=False)
class _Bundle:
    """The steps with every set rising: a set that falls is taken as a function of -x.

    `falling` bool (sets,) says which these are. `low`, `high`: least and greatest code that occurs in any set.
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
    def of(steps: ThresholdTable) -> _Bundle | str:
        """Text if a set does not rise or fall by single codes, or its arithmetic exceeds 64 bits."""
        base, count = int(steps.values.min()), np.arange(steps.steps + 1)[:, None]
        rises = (steps.values == base + count).all(axis=0)
        falls = (steps.values == base + count[::-1]).all(axis=0) & ~rises
        if not (rises | falls).all():
            return f"set {int(np.argmin(rises | falls))} is not a staircase of single steps"
        span = int((steps.hi - steps.lo).max()) + 2
        if span * (steps.steps + 2) >= 1 << MAX_PRODUCT:
            return f"{steps.steps} steps over {span} inputs are too many for exact integers of 64 bits"
        first, last = steps.first, steps.last
        return _Bundle(
            steps, falls, base, np.where(falls, 1 - steps.table[::-1], steps.table),
            np.where(falls, -steps.hi, steps.lo), np.where(falls, -steps.lo, steps.hi),
            int(np.minimum(first, last).min()), int(np.maximum(first, last).max()),
        )  # fmt: skip

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
        self, multiplier: Array, addend: Array, shift: int,
        odd: Array | None = None, centre: Array | None = None, below: Array | None = None,
    ) -> Scale | str:  # fmt: skip
        """The scale of the original steps, falling sets turned back, if it is proven equal to them; else the reason.

        The proof: it is monotone on either side of its centre, so the corners and both sides of the centre decide.
        """
        points = self.steps.corners()
        if centre is not None and below is not None:
            addend, below = np.where(self.falling, below, addend), np.where(self.falling, addend, below)
            centre = np.where(self.falling, 1 - centre, centre)
            beside = np.stack([centre - 1, centre])
            points = np.concatenate([points, np.clip(beside, self.steps.lo, self.steps.hi)])
        multiplier = np.where(self.falling, -multiplier, multiplier)
        found = Scale(multiplier, addend, shift, self.low, self.high, odd, centre, below)
        wrong = (found.apply(points) != self.steps.apply(points)).any(axis=0)
        if wrong.any():
            return f"set {int(wrong.argmax())} differs"
        return found


def cost(found: Scale, table: Array, source: IntType, result: IntType, dsp: bool) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block memory): the product, the sum, the rounding, the clamp."""
    folds, lanes = table.shape
    x_bits, bits = source.bits + (not source.signed), found.multiplier_bits
    constants = found.multiplier[table[0]] if folds == 1 else None
    lut, blocks = product.cost(x_bits, bits, lanes, constants, dsp)
    addends = [found.addend] if found.below is None or found.mirrored else [found.addend, found.below]
    zeros = 0 if found.mirrored else product.low_zeros(*addends)
    r_bits = max(int(np.abs(addend >> zeros).max()).bit_length() for addend in addends) + 1
    width = max(x_bits + bits, r_bits + zeros) + 1
    each = result.bits + (width - found.shift) / 4
    each += 0 if dsp and len(addends) == 1 and not found.mirrored else width - zeros
    each += 0 if found.odd is None else found.shift / 5 + width - found.shift
    each += 0 if len(addends) == 1 else source.bits / 2 + r_bits
    each += 0 if folds == 1 or dsp or found.stages == 1 else r_bits
    fields = bits + len(addends) * r_bits + (0 if len(addends) == 1 else source.bits + 1)
    logic, block = product.memory(folds, lanes, fields)
    return lut + lanes * each + logic, blocks, block
