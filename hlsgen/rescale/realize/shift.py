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

#: A proof compares at most this many thresholds, over all sets.
_MAX_POINTS = 1 << 26
#: Inputs of one vectorized evaluation, over all sets.
_CHUNK = 1 << 21
#: Inputs of each set that reject most wrong candidates before the proof.
_SAMPLES = 255
#: Shifts by more bits than this have a register between rounding and clamping.
_SHORT = 10


@dataclass(frozen=True, eq=False)
class Shift:
    """Parameters of module hg_shift. `offset` int64 (sets,); codes are clamped to low..high.

    `every`: adders in series between registers.
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
        """True if there is an offset to add, followed by a register."""
        return bool(self.offset.any())

    @property
    def splits(self) -> bool:
        """True if there is a register between rounding and clamping, because many bits decide the rounding."""
        return self.every == 1 or self.shift > _SHORT

    @property
    def latency(self) -> int:
        return 1 + self.adds + self.splits

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
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
    return "no power of two with any of the seven roundings reproduces every threshold"


def _is_code_itself(f: StepFunction) -> bool:
    """True if the code is the input: int64 inputs, no operations, a quantizer of scale 1 that holds them all."""
    quantizer, source = f.quantizer, f.source
    if not isinstance(source, IntegerEncoding) or source.dtype != "int64" or source.offset.any() or f.ops:
        return False
    if not isinstance(quantizer, QuantizeLinear) or quantizer.zero_point.any() or (quantizer.scale != 1).any():
        return False
    return quantizer.type.lo <= int(f.lo.min()) and int(f.hi.max()) <= quantizer.type.hi


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
    candidates = []
    if reach >= 1:
        shift = round(float(np.log2(reach)))
        # A code near the middle of each set; an arbitrary one if there is no inner threshold.
        codes = np.clip((first + last + 1) // 2, first + 1, np.maximum(last, first + 1))
        position = bisect(f, codes[None])[0]
        for mode in Rounding:
            offset = _offset(mode, shift, codes, position)
            if offset is not None:
                candidates.append(Shift(0, shift, mode, offset, low, high))
    else:
        # Every input has a code of its own: code = x * 2^left + offset.
        left_shift = round(-float(np.log2(max(reach, 2.0**-32))))
        offset = f.evaluate(f.lo) - (f.lo << left_shift)
        inner = np.clip(np.zeros_like(f.lo), f.lo, f.hi)
        offset = np.where(first == low, f.evaluate(inner) - (inner << left_shift), offset)
        candidates.append(Shift(left_shift, 0, Rounding.FLOOR, offset, low, high))
    return candidates


def _offset(mode: Rounding, shift: int, codes: Array, position: Array) -> Array | None:
    """The offset of each set, int64 (sets,), with which this rounding puts the threshold of a code in its place.

    `codes`, `position` int64 (sets,). The proof decides. Returns None if a number is too large.
    """
    if shift > 40:
        return None
    # Least y with round(y / 2^shift) >= code.
    half = (1 << shift) >> 1
    base = codes << shift
    lowest = {
        Rounding.ROUND: base - half + np.where(codes % 2 == 0, 0, 1 if half else 0),
        Rounding.CEIL: base - (1 << shift) + 1,
        Rounding.FLOOR: base,
        Rounding.UP: np.where(codes > 0, base - (1 << shift) + 1, base),
        Rounding.DOWN: np.where(codes > 0, base, base - (1 << shift) + 1),
        Rounding.HALF_UP: np.where(codes > 0, base - half, base - half + (1 if half else 0)),
        Rounding.HALF_DOWN: np.where(codes > 0, base - half + (1 if half else 0), base - half),
    }[mode]
    offset: Array = lowest - position
    return offset if int(np.abs(offset).max()) < 1 << 48 else None


def _equal(f: StepFunction, g: Shift, first: Array, last: Array) -> bool:
    """True if f and g agree at both ends and around every threshold of g: the proof that they are equal."""
    if (g.apply(f.lo) != first).any() or (g.apply(f.hi) != last).any():
        return False
    # Most candidates differ nearly everywhere.
    samples = f.lo + np.arange(_SAMPLES + 1)[:, None] * (f.hi - f.lo) // _SAMPLES
    if (g.apply(samples) != f.evaluate(samples)).any():
        return False
    rows = max(1, _CHUNK // f.sets)
    for start in range(g.low + 1, g.high + 1, rows):
        codes = np.arange(start, min(start + rows, g.high + 1))[:, None]
        # Least x with g(x) >= code, by bisection of g: integers only, so it is cheap.
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


def cost(realization: Shift, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): the sum with the offset, the rounding, the clamp.

    A clamp at one end only is the reset of the register of the code. A clamp at both ends shares the LUTs of the
    rounding, or takes one LUT for each bit if there is no rounding.
    """
    folds, lanes = table.shape
    width = source.bits + realization.left + 1
    rounds = realization.mode != Rounding.FLOOR and realization.shift > 0
    rounding = realization.shift / 5 + result.bits if rounds else 0.0
    # Offsets may be multiples of a power of two above all inputs: their low bits are 0, and the sum is a concatenation.
    aligned = (
        realization.shift == 0
        and source.lo >= 0
        and not (realization.offset & ((1 << source.bits + realization.left) - 1)).any()
    )
    memory_bits = int(realization.offset.max()).bit_length() - source.bits - realization.left if aligned else width
    memory = folds * lanes * memory_bits if realization.adds else 0
    constant = width if realization.adds and not aligned else 0.0
    greatest = int(source.hi << realization.left) + int(realization.offset.max()) >> realization.shift
    compared, clamps_both_ends = (
        (width - realization.shift) / 5,
        greatest + (realization.mode != Rounding.FLOOR) > realization.high,
    )
    clamped = compared + clamps_both_ends * (compared if rounds else result.bits)
    lut = lanes * (constant + rounding + clamped)
    return (lut, 0, memory) if memory >= 1 << 14 else (lut + memory / 64, 0, 0)
