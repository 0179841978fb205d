"""Realization `lane-shift`: a shift, a rounding, an offset and bounds for each channel, in a lane of its own.

code = clamp(round((x * 2^left + offset) / 2^shift)), as in `shift`. All numbers are constants of a lane: the shift is
wires, and a lane has only the bits of its own sums.

Example: channel 0 divides by 4 and clamps to 0..15, channel 1 divides by 32 and clamps to 0..7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType, Rounding, round_shift
from hlsgen.rescale.extract import bisect
from hlsgen.rescale.monotone_pieces import edges

#: A proof compares at most this many thresholds, over all sets.
_MAX_POINTS = 1 << 22
#: Inputs of one vectorized evaluation, over all sets.
_CHUNK = 1 << 19
#: A channel's slope is estimated from this many codes on both sides of the middle one.
_REACH = 8
#: Inputs of each set that reject most wrong candidates before the proof.
_SAMPLES = 127
#: Most bits of a sum.
_MAX_BITS = 48
#: The cheapest rounding first. `Rounding.FLOOR` is a cut.
_ORDER = (Rounding.FLOOR, *(mode for mode in Rounding if mode is not Rounding.FLOOR))


@dataclass(frozen=True, eq=False)
class LaneShift:
    """Parameters of module hg_lane_shift, int64 (sets,) each. `mode` holds numbers of `Rounding`.

    `low`, `high`: the codes are clamped to these. `lo`, `hi`: the inputs of a set; its sums fit the bits of `width`.
    `every`: adders in series between registers.
    """

    left_shift: Array
    shift: Array
    mode: Array
    offset: Array
    low: Array
    high: Array
    lo: Array
    hi: Array
    every: int = 2

    @property
    def adds(self) -> bool:
        """True if there is a register between the sum and the rounding."""
        return bool(self.offset.any()) and (self.every == 1 or bool((self.mode != Rounding.FLOOR).any()))

    @property
    def latency(self) -> int:
        return 1 + self.adds

    @property
    def ends(self) -> tuple[Array, Array]:
        """The lowest and the highest sum of each set."""
        return (self.lo << self.left_shift) + self.offset, (self.hi << self.left_shift) + self.offset

    @property
    def unsigned(self) -> Array:
        """bool (sets,): True if no sum is negative."""
        return np.asarray(self.ends[0] >= 0)

    @property
    def width(self) -> Array:
        """Bits of the sums of each set: unsigned where none is negative, else two's complement. At least shift + 1."""
        low, high = self.ends
        bits = [IntType(min(a, 0), max(b, 0)).bits for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        return np.asarray(np.maximum(np.array(bits, np.int64), self.shift + 1))

    @property
    def clamps(self) -> tuple[Array, Array]:
        """bool (sets,) each: True if some input gives less than `low`, more than `high`."""
        modes = self.mode.tolist()
        rounded = np.array(
            [
                [int(round_shift(np.array([total]), int(shift), Rounding(mode))[0]) for total in totals]
                for totals, shift, mode in zip(zip(*self.ends, strict=True), self.shift, modes, strict=True)
            ]
        ).reshape(-1, 2)
        return rounded[:, 0] < self.low, rounded[:, 1] > self.high

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        total = (codes << self.left_shift) + self.offset
        result = np.zeros_like(total)
        for mode in np.unique(self.mode).tolist():
            here = self.mode == mode
            for shift in np.unique(self.shift[here]).tolist():
                columns = np.flatnonzero(here & (self.shift == shift))
                result[..., columns] = round_shift(total[..., columns], shift, Rounding(mode))
        return np.clip(result, self.low, self.high)

    def take(self, sets: Array) -> LaneShift:
        """The same for some sets."""
        fields = ("left_shift", "shift", "mode", "offset", "low", "high", "lo", "hi")
        return replace(self, **{name: getattr(self, name)[sets] for name in fields})


def find(f: StepFunction) -> LaneShift | str:
    """A shift of each channel that is proven equal to f on lo..hi, or the reason, as text, why there is none.

    Two monotone functions are equal if and only if they agree at both ends and on both sides of every threshold of
    one of them.
    """
    if f.is_float or f.input_type.bits > 40:
        return "its input is float32 or wider than 40 bits"
    first, last = f.evaluate(f.lo), f.evaluate(f.hi)
    if (first > last).any():
        return "a channel falls"
    if int((last - first).max()) * f.sets > _MAX_POINTS:
        return f"{int((last - first).max())} thresholds of {f.sets} channels are too many to check"
    cuts = edges(f)
    if cuts is None or len(cuts) > 2:
        return "it is not monotone"
    guess, code, position = _guess(f, first, last)
    samples = f.lo + np.arange(_SAMPLES + 1)[:, None] * (f.hi - f.lo) // _SAMPLES
    codes = f.evaluate(samples)
    candidates = [
        (candidate, (candidate.apply(samples) == codes).all(axis=0))
        for candidate in (
            _with_mode(f, _wider(guess, bits), mode, code, position) for bits in (0, 1, -1) for mode in _ORDER
        )
    ]
    proven, pending = guess, ~np.logical_or.reduce([fits for _, fits in candidates])
    if not pending.any():
        pending[:] = True
        for candidate, fits in candidates:
            right = pending & fits
            if right.any():
                right &= _agrees(f, candidate, first, last)
                proven = _merged(proven, candidate, right)
                pending &= ~right
        if not pending.any():
            return proven
    return f"no power of two with any of the seven roundings reproduces set {np.flatnonzero(pending)[0]}"


def _guess(f: StepFunction, first: Array, last: Array) -> tuple[LaneShift, Array, Array]:
    """Shifts estimated from the distance of thresholds near each channel's middle code; that code, and its threshold.

    A constant channel gets shift 0. A channel of two codes gets a shift by all bits of its input's range.
    """
    count = last - first
    middle = np.clip((first + last + 1) // 2, first + 1, np.maximum(last, first + 1))
    start, stop = np.maximum(middle - _REACH, first + 1), np.minimum(middle + _REACH, np.maximum(last, first + 1))
    # A constant channel has no threshold; that of its only code is not used.
    low, position, high = bisect(f, np.stack([np.minimum(code, last) for code in (start, middle, stop)]))
    reach = np.maximum((high - low) / np.maximum(stop - start, 1), 1)
    around = np.stack([f.evaluate(np.clip(position + n, f.lo, f.hi)) for n in (-1, 0, 1)])
    step = np.diff(around, axis=0).max(axis=0)
    span = np.maximum(f.hi - position, position - f.lo) + 1
    shift = np.where(count == 1, _bits(span), np.round(np.log2(reach)).astype(np.int64))
    left_shift = np.where(count == 1, 0, _bits(step - 1))
    zero = np.zeros(f.sets, np.int64)
    right = np.where((count == 0) | (left_shift > 0), zero, np.minimum(shift, _MAX_BITS))
    return LaneShift(np.where(count == 0, 0, left_shift), right, zero, zero, first, last, f.lo, f.hi), middle, position


def _bits(values: Array) -> Array:
    """The number of bits of each value, 0 if it is not positive."""
    return np.array([max(int(value), 0).bit_length() for value in values], np.int64)


def _with_mode(f: StepFunction, guess: LaneShift, mode: Rounding, codes: Array, position: Array) -> LaneShift:
    """The guess with this rounding: the offset puts the threshold of the code of each channel in its place.

    A shift of 0 rounds nothing: then the code of an input next to the threshold gives the offset.
    """
    shift = guess.shift
    base, half = codes << shift, (np.int64(1) << shift) >> 1
    some = (half > 0).astype(np.int64)
    beyond = base - (np.int64(1) << shift) + 1
    lowest = {
        Rounding.ROUND: base - half + np.where(codes % 2 == 0, 0, some),
        Rounding.CEIL: beyond,
        Rounding.FLOOR: base,
        Rounding.UP: np.where(codes > 0, beyond, base),
        Rounding.DOWN: np.where(codes > 0, base, beyond),
        Rounding.HALF_UP: np.where(codes > 0, base - half, base - half + some),
        Rounding.HALF_DOWN: np.where(codes > 0, base - half + some, base - half),
    }[mode]
    neighbour = np.clip(position - (mode is not Rounding.FLOOR), f.lo, f.hi)
    offset = np.where(shift > 0, lowest - position, f.evaluate(neighbour) - (neighbour << guess.left_shift))
    offset = np.where(guess.low == guess.high, 0, offset)
    return replace(guess, mode=np.full(len(codes), int(mode)), offset=offset)


def _wider(guess: LaneShift, bits: int) -> LaneShift:
    """The guess with this number of bits added to its shifts to the right.

    Codes next to zero are wider or narrower than others, in roundings that turn there.
    """
    changes = (guess.shift > 0) | ((bits > 0) & (guess.left_shift == 0) & (guess.low < guess.high))
    return replace(guess, shift=np.where(changes, np.maximum(guess.shift + bits, 0), guess.shift))


def _merged(guess: LaneShift, candidate: LaneShift, right: Array) -> LaneShift:
    return replace(
        guess,
        shift=np.where(right, candidate.shift, guess.shift),
        mode=np.where(right, candidate.mode, guess.mode),
        offset=np.where(right, candidate.offset, guess.offset),
    )


def _agrees(f: StepFunction, g: LaneShift, first: Array, last: Array) -> Array:
    """bool (sets,): f and g agree at both ends and around every threshold of g. This proves that they are equal."""
    low_sum, high_sum = g.ends
    fits = (np.abs(low_sum) < 1 << _MAX_BITS) & (np.abs(high_sum) < 1 << _MAX_BITS)
    right: Array = fits & (g.apply(f.lo) == first) & (g.apply(f.hi) == last)
    count = int((last - first).max())
    rows = max(1, _CHUNK // f.sets)
    for start in range(1, count + 1, rows):
        if not right.any():
            break
        codes = np.minimum(first + np.arange(start, min(start + rows, count + 1))[:, None], last)
        # Least x with g(x) >= code, by bisection of g: integers only, so it is cheap.
        low = np.broadcast_to(f.lo, codes.shape).copy()
        high = np.broadcast_to(f.hi + 1, low.shape).copy()
        while (low < high).any():
            middle = (low + high) >> 1
            reached = (g.apply(middle) >= codes) | (middle > f.hi)
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + 1, high))
        for x in (np.minimum(low, f.hi), np.maximum(low - 1, f.lo)):
            right &= (f.evaluate(x) == g.apply(x)).all(axis=0)
    return right


def cost(realization: LaneShift, table: Array, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): the sum above the zeros of its offset, the rounding, the clamps.

    A clamp compares the bits above the code. The first one is the reset of the register of the code; the second takes a
    LUT for each bit of the code.
    """
    lanes = realization.take(table[0])
    low, high = lanes.clamps
    total = 0.0
    for width, shift, mode, offset, under, over, first, last in zip(
        lanes.width.tolist(),
        lanes.shift.tolist(),
        lanes.mode.tolist(),
        lanes.offset.tolist(),
        low.tolist(),
        high.tolist(),
        lanes.low.tolist(),
        lanes.high.tolist(),
        strict=True,
    ):
        if first == last:
            continue
        zeros = (offset & -offset).bit_length() - 1 if offset else width
        rounds = mode != Rounding.FLOOR and shift > 0
        code_bits = min(result.bits, IntType(min(first, 0), max(last, 1)).bits)
        total += max(0, width - zeros)
        total += rounds * (shift / 5 + code_bits)
        total += (under + over) * (width - shift) / 5 + (under and over) * code_bits
    return total, 0, 0
