"""Realization `lane-table`: for each channel, a lookup table over the bits of the input that matter, in its own lane.

code = values[((x + offset) >> shift) mod 2^bits]. Bits of x + offset below `shift`, and those above the index, do not
matter. The offset puts all steps of a function with rounding on multiples of 2^shift. The index then has fewer
bits, but the sum costs LUTs, so both forms are priced.

Example: a function of floor(x / 8) mod 16 needs a table of 16 entries, though x has 12 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType

#: Most inputs of a channel, and of all channels together: each of them is evaluated.
_MAX_INPUTS, _MAX_POINTS = 1 << 16, 1 << 24
#: Inputs of one vectorized evaluation, over all channels.
_CHUNK = 1 << 20
#: Most bits of an index, and most bits of all tables together.
_MAX_INDEX, _MAX_TABLE_BITS = 10, 1 << 17
#: Inputs of a LUT of Xilinx 7 series.
_LUT_INPUTS = 6
#: Share of a LUT for each bit of a sum: channels with the same input and offset share one adder.
_SUM_BIT = 0.7
#: Bits of an index up to which its sum and its table fit one stage of two adders.
_SHORT_INDEX = 8


@dataclass(frozen=True, eq=False)
class LaneTable:
    """Parameters of module hg_lane_table, int64 (sets,) each.

    `values`: for each set the codes of all indices, int64 (2^bits,). `every`: adders in series between registers.
    """

    offset: Array
    shift: Array
    bits: Array
    values: tuple[Array, ...]
    every: int = 2

    @property
    def adds(self) -> bool:
        """True if there is a register between the sum and the table."""
        return bool(self.offset.any()) and (self.every == 1 or int(self.bits.max()) > _SHORT_INDEX)

    @property
    def latency(self) -> int:
        return 1 + self.adds

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        index = ((codes + self.offset) >> self.shift) & ((1 << self.bits) - 1)
        columns = [values[index[..., s]] for s, values in enumerate(self.values)]
        return np.stack(columns, axis=-1)

    def take(self, sets: Array) -> LaneTable:
        """The same for some sets."""
        values = tuple(self.values[s] for s in sets.tolist())
        return replace(self, offset=self.offset[sets], shift=self.shift[sets], bits=self.bits[sets], values=values)


def find(f: StepFunction) -> LaneTable | str:
    """A table of each channel that equals f on lo..hi, from all codes; else the reason, as text."""
    if f.is_float:
        return "its input is float32"
    counts = f.hi - f.lo + 1
    if int(counts.max()) > _MAX_INPUTS or int(counts.max()) * f.sets > _MAX_POINTS:
        return f"{int(counts.max())} inputs of {f.sets} channels are too many to list"
    lanes = []
    total = 0
    for s, codes in enumerate(_all_codes(f)):
        lane = smallest_table(codes, int(f.lo[s]))
        if lane is None:
            return f"channel set {s} depends on more than {_MAX_INDEX} bits of its input"
        total += len(lane[2]) * f.output_type.bits
        if total > _MAX_TABLE_BITS:
            return f"its tables have more than {_MAX_TABLE_BITS} bits"
        lanes.append(lane)
    offset, shift, values = zip(*lanes, strict=True)
    bits = [len(v).bit_length() - 1 for v in values]
    return LaneTable(np.array(offset, np.int64), np.array(shift, np.int64), np.array(bits, np.int64), values)


def _all_codes(f: StepFunction) -> list[Array]:
    """The codes of f for lo..hi of each set."""
    counts = f.hi - f.lo + 1
    longest = int(counts.max())
    at_once = max(1, _CHUNK // longest)
    listed: list[Array] = []
    for start in range(0, f.sets, at_once):
        columns = np.arange(start, min(start + at_once, f.sets))
        part = f.take(columns, f.lo[columns], f.hi[columns])
        codes = part.evaluate(np.minimum(part.lo + np.arange(longest)[:, None], part.hi))
        listed += [np.ascontiguousarray(codes[: int(counts[s]), k]) for k, s in enumerate(columns.tolist())]
    return listed


def smallest_table(codes: Array, lo: int) -> tuple[int, int, Array] | None:
    """(offset, shift, values) of the cheapest table for the codes of lo, lo + 1, ..., or None if it is large."""
    steps = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    if not len(steps):
        return 0, 0, codes[:1].copy()
    first = lo + int(steps[0])
    spacing = int(np.gcd.reduce(np.diff(steps))) if len(steps) > 1 else 1 << (len(codes) - 1).bit_length()
    aligned = (spacing & -spacing).bit_length() - 1
    natural = min((first & -first).bit_length() - 1 if first else aligned, aligned)
    forms = [(0, natural)]
    if natural < aligned:
        forms.append((-first % (1 << aligned), aligned))
    best: tuple[float, tuple[int, int, Array]] | None = None
    for offset, shift in forms:
        values = _values(codes, lo + offset, shift)
        if values is not None:
            luts = lane_luts(offset, shift, values)
            if best is None or luts < best[0]:
                best = luts, (offset, shift, values)
    return None if best is None else best[1]


def _values(codes: Array, lo: int, shift: int) -> Array | None:
    """The shortest table of codes of the sums lo, lo + 1, ... without their `shift` low bits, or None if it is large.

    Entries that no sum selects have the code of the nearest index that is selected.
    """
    index = np.arange(lo, lo + len(codes)) >> shift
    starts = np.flatnonzero(np.append(True, index[1:] != index[:-1]))
    index, codes = index[starts], codes[starts]
    for bits in range(1, _MAX_INDEX + 1):
        size = 1 << bits
        place = index & (size - 1)
        values = np.zeros(size, np.int64)
        values[place] = codes
        if (values[place] == codes).all():
            used = np.unique(place)
            entry = np.arange(size)
            after = np.minimum(np.searchsorted(used, entry), len(used) - 1)
            previous = np.maximum(after - 1, 0)
            is_after = np.abs(used[after] - entry) <= np.abs(entry - used[previous])
            nearest = np.where(is_after, used[after], used[previous])
            return np.asarray(values[nearest])
    return None


def lane_luts(offset: int, shift: int, values: Array, inputs: int = _LUT_INPUTS) -> float:
    """LUTs, of `inputs` inputs, of a lane: the sum above the zeros of its offset, and the table."""
    zeros = (offset & -offset).bit_length() - 1 if offset else 0
    width = shift + len(values).bit_length() - 1
    return (_SUM_BIT * (width - zeros) if offset else 0.0) + table_luts(values, inputs)


def table_luts(values: Array, inputs: int) -> float:
    """LUTs of a table: a LUT for each function of `inputs` variables that its bits consist of, and multiplexers."""
    low = int(values.min())
    bits = IntType(min(low, 0), max(int(values.max()), 1)).bits
    counted: dict[bytes, float] = {}
    return sum(_function_luts((values >> b & 1).astype(np.uint8), inputs, counted) for b in range(bits))


def _function_luts(function: Array, inputs: int, counted: dict[bytes, float]) -> float:
    """LUTs of a truth table uint8 (2^n,) that are not in `counted` yet."""
    function = function ^ function[0]
    n = len(function).bit_length() - 1
    for variable in reversed(range(n)):
        halves = function.reshape(-1, 2, 1 << variable)
        if (halves[:, 0] == halves[:, 1]).all():
            function = halves[:, 0].reshape(-1)
    key = function.tobytes()
    if len(function) <= 2 or key in counted:
        return 0.0
    n = len(function).bit_length() - 1
    counted[key] = 1.0
    if n <= inputs:
        return 1.0
    parts = function.reshape(2 if n == inputs + 1 else 4, -1)
    return (0.5 if len(parts) == 2 else 1.0) + sum(_function_luts(part, inputs, counted) for part in parts)


def cost(realization: LaneTable, table: Array, inputs: int = _LUT_INPUTS) -> tuple[float, int, int]:
    """(LUT of `inputs` inputs, DSP blocks, bits of block RAM) of all lanes."""
    numbers, lanes = np.unique(table[0], return_counts=True)
    prices = [
        lane_luts(int(realization.offset[s]), int(realization.shift[s]), realization.values[s], inputs)
        for s in numbers.tolist()
    ]
    return float(np.dot(prices, lanes)), 0, 0
