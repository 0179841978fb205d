"""Realization `shift`: rescaling by a power of two, code = clamp(round((x * 2^left + offset) / 2^shift)).

Example: left = 0, shift = 2, offset = 1 and rounding down give floor((x + 1) / 4): the thresholds 3, 7, 11 and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.ir import IntegerEncoding
from hlsgen.ir.ops import QuantizeLinear
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType, Rounding, round_shift
from hlsgen.rescale.extract import bisect
from hlsgen.rescale.monotone_pieces import edges

#: A proof compares at most so many thresholds, of all sets together.
_MAX_POINTS = 1 << 26
#: Inputs of one vectorized evaluation, over all sets.
_CHUNK = 1 << 21
#: Inputs of each set that refute most wrong candidates before the proof.
_SAMPLES = 255
#: Shifts by more bits than these have a register between rounding and clamping.
_SHORT = 10


@dataclass(frozen=True, eq=False)
class Shift:
    """Parameters of module hg_shift. `offset` int64 (sets,); codes are clamped to low..high.

    `every`: adders one behind the other between registers.
    """

    left: int
    shift: int
    mode: Rounding
    offset: Array
    low: int
    high: int
    every: int = 2

    @property
    def adds(self) -> bool:
        """Whether there is an offset to add, with a register behind."""
        return bool(self.offset.any())

    @property
    def splits(self) -> bool:
        """Whether there is a register between rounding and clamping: the bits that decide on rounding are many."""
        return self.every == 1 or self.shift > _SHORT

    @property
    def latency(self) -> int:
        return 1 + self.adds + self.splits

    def apply(self, codes: Array) -> Array:
        """What the hardware computes: codes (..., sets) -> codes."""
        rounded = round_shift((codes << self.left) + self.offset, self.shift, self.mode)
        return np.clip(rounded, self.low, self.high)


def find(f: StepFunction) -> Shift | str:
    """A shift that is proven equal to f on lo..hi, or the reason, as text, why none was found.

    A few thresholds suggest candidates. The proof: two monotone functions are equal if and only if they agree at both
    ends and on both sides of every threshold of one of them.
    """
    if f.is_float or f.input_type.bits > 40:
        return "its input is float32 or wider than 40 bits"
    first, last = f.evaluate(f.lo), f.evaluate(f.hi)
    low, high = int(first.min()), int(last.max())
    if _is_code_itself(f):
        return Shift(0, 0, Rounding.FLOOR, np.zeros(f.sets, np.int64), low, high)
    if (first > last).any():
        return "a channel falls"
    if high - low < 2:
        return "it has fewer than three codes"
    if (high - low) * f.sets > _MAX_POINTS:
        return f"{high - low} thresholds of {f.sets} channels are too many to check"
    cuts = edges(f)
    if cuts is None or len(cuts) > 2:
        return "it is not monotone"
    for candidate in _candidates(f, first, last, low, high):
        if _equal(f, candidate, first, last):
            return candidate
    return "no power of two with any of the seven roundings meets every threshold"


def _is_code_itself(f: StepFunction) -> bool:
    """Whether nothing changes: whole numbers of 64 bits, no operations, a quantizer of scale 1 that holds them all."""
    end, meaning = f.quantizer, f.source
    if not isinstance(meaning, IntegerEncoding) or meaning.dtype != "int64" or meaning.offset.any() or f.ops:
        return False
    if not isinstance(end, QuantizeLinear) or end.zero_point.any() or (end.scale != 1).any():
        return False
    return end.type.lo <= int(f.lo.min()) and int(f.hi.max()) <= end.type.hi


def _candidates(f: StepFunction, first: Array, last: Array, low: int, high: int) -> list[Shift]:
    """Shifts that fit a few thresholds in the middle of the set with the most codes: guesses, not yet proven."""
    widest = int(np.argmax(last - first))
    start, stop = int(first[widest]) + 1, int(last[widest])
    middle = (start + stop) // 2
    probes = np.arange(max(start, middle - 8), min(stop, middle + 8) + 1)
    if len(probes) < 2:
        return []
    table = bisect(f, probes)
    column = table[:, widest]
    reach = (column[-1] - column[0]) / (len(probes) - 1)
    found = []
    if reach >= 1:
        shift = round(float(np.log2(reach)))
        # A code near the middle of each set; where there is no inner threshold, an arbitrary one.
        codes = np.clip((first + last + 1) // 2, first + 1, np.maximum(last, first + 1))
        position = bisect(f, codes[None])[0]
        for mode in Rounding:
            offset = _offset(mode, shift, codes, position)
            if offset is not None:
                found.append(Shift(0, shift, mode, offset, low, high))
    else:
        # Every input has a code of its own: code = x * 2^left + offset.
        left = round(-float(np.log2(max(reach, 2.0**-32))))
        offset = f.evaluate(f.lo) - (f.lo << left)
        inner = np.clip(np.zeros_like(f.lo), f.lo, f.hi)
        offset = np.where(first == low, f.evaluate(inner) - (inner << left), offset)
        found.append(Shift(left, 0, Rounding.FLOOR, offset, low, high))
    return found


def _offset(mode: Rounding, shift: int, codes: Array, position: Array) -> Array | None:
    """The offset of each set, int64 (sets,), for which this rounding puts the threshold of a code in its place.

    `codes`, `position` int64 (sets,). The proof decides. None: a number is too large.
    """
    if shift > 40:
        return None
    # Least y with round(y / 2^shift) >= code.
    half = (1 << shift) >> 1
    base = codes << shift
    least = {
        Rounding.ROUND: base - half + np.where(codes % 2 == 0, 0, 1 if half else 0),
        Rounding.CEIL: base - (1 << shift) + 1,
        Rounding.FLOOR: base,
        Rounding.UP: np.where(codes > 0, base - (1 << shift) + 1, base),
        Rounding.DOWN: np.where(codes > 0, base, base - (1 << shift) + 1),
        Rounding.HALF_UP: np.where(codes > 0, base - half, base - half + (1 if half else 0)),
        Rounding.HALF_DOWN: np.where(codes > 0, base - half + (1 if half else 0), base - half),
    }[mode]
    offset: Array = least - position
    return offset if int(np.abs(offset).max()) < 1 << 48 else None


def _equal(f: StepFunction, g: Shift, first: Array, last: Array) -> bool:
    """Whether f and g agree at both ends and around every threshold of g: the proof that they are equal."""
    if (g.apply(f.lo) != first).any() or (g.apply(f.hi) != last).any():
        return False
    # Most candidates differ nearly everywhere.
    some = f.lo + np.arange(_SAMPLES + 1)[:, None] * (f.hi - f.lo) // _SAMPLES
    if (g.apply(some) != f.evaluate(some)).any():
        return False
    rows = max(1, _CHUNK // f.sets)
    for start in range(g.low + 1, g.high + 1, rows):
        codes = np.arange(start, min(start + rows, g.high + 1))[:, None]
        # Least x with g(x) >= code, by bisection of g: integers only, so cheap.
        low = np.broadcast_to(f.lo, (len(codes), f.sets)).copy()
        high = np.broadcast_to(f.hi + 1, low.shape).copy()
        while (low < high).any():
            middle = (low + high) >> 1
            reached = (g.apply(middle) >= codes) | (middle > f.hi)
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + 1, high))
        at, below = np.minimum(low, f.hi), np.maximum(low - 1, f.lo)
        if (f.evaluate(at) != g.apply(at)).any() or (f.evaluate(below) != g.apply(below)).any():
            return False
    return True


def cost(found: Shift, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block memory): the sum with the offset, the rounding, the clamp.

    A clamp at one end only is the reset of the register of the code; at both ends it is in the tables of the rounding, or
    without one a table for each bit, too.
    """
    folds, lanes = table.shape
    width = source.bits + found.left + 1
    rounds = found.mode != Rounding.FLOOR and found.shift > 0
    rounding = found.shift / 5 + result.bits if rounds else 0.0
    # Offsets of whole multiples of more than all inputs: their low bits are 0, and the sum puts bits side by side.
    beside = found.shift == 0 and source.lo >= 0 and not (found.offset & ((1 << source.bits + found.left) - 1)).any()
    held = int(found.offset.max()).bit_length() - source.bits - found.left if beside else width
    memory = folds * lanes * held if found.adds else 0
    constant = width if found.adds and not beside else 0.0
    greatest = int(source.hi << found.left) + int(found.offset.max()) >> found.shift
    compared, both = (width - found.shift) / 5, greatest + (found.mode != Rounding.FLOOR) > found.high
    clamped = compared + both * (compared if rounds else result.bits)
    lut = lanes * (constant + rounding + clamped)
    return (lut, 0, memory) if memory >= 1 << 14 else (lut + memory / 64, 0, 0)
