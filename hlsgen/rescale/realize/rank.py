"""Realization `rank`: a step function as a cascade of small lookup tables over the input's bits, lowest bits first.

The state after the low k bits is the number of thresholds whose low k bits they reach (equal low parts count once). The
next bits and this state give the next state: to compare longer numbers, only the result of comparing the lower bits is
needed. The last state gives the code.

Example: thresholds 3 (binary 011) and 6 (110). The low bits 1 and 0 of x compare with 3 and 2 only, so the state is 0
for 0 and 1, 1 for 2, and 2 for 3. If the top bit is 0, the states give the codes 0, 0, 1; if it is 1, they give 1, 2,
2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.threshold_table import ThresholdTable

#: Beyond these, the tables are larger than any other realization.
MAX_STATE_BITS = 10
MAX_TABLE_BITS = 1 << 16
#: A delay of this many cycles is a shift register in a LUT, a shorter one only flip-flops.
_SHIFT_REGISTER = 3


@dataclass(frozen=True, eq=False)
class Rank:
    """Parameters of module hg_rank. Level i maps the state and the next chunks[i] bits of x to the next state.

    The last level gives the code. Bits of x below `low` do not matter. `states`: bits of the state after every level
    but the last. tables[i] int64 (2^(state bits + chunks[i]), sets): the state is in the low bits of the address.
    """

    low: int
    chunks: tuple[int, ...]
    states: tuple[int, ...]
    tables: tuple[Array, ...]

    @property
    def latency(self) -> int:
        return len(self.chunks)

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        remaining_bits = codes >> self.low
        state: Array = np.zeros_like(codes)
        column = np.arange(self.tables[0].shape[1])
        for chunk, bits, table in zip(self.chunks, (0, *self.states), self.tables, strict=True):
            state = table[((remaining_bits & ((1 << chunk) - 1)) << bits) | state, column]
            remaining_bits = remaining_bits >> chunk
        return state


def changes(steps: ThresholdTable, s: int) -> tuple[Array, Array]:
    """The inputs at which set s changes, int64 (changes,), ascending, and its codes, int64 (changes + 1,)."""
    inner = np.unique(steps.inner(s))
    index = np.searchsorted(steps.table[:, s], np.concatenate([steps.lo[[s]], inner]), side="right")
    codes = steps.values[index, s]
    changed = codes[1:] != codes[:-1]
    return inner[changed], np.concatenate([codes[:1], codes[1:][changed]])


def find(steps: ThresholdTable) -> Rank | str:
    """The cascade of lookup tables, which exists for every step function; or, as text, why it is too large.

    The proof is by induction over the levels. Inputs whose low k bits lie between neighbouring low parts of thresholds
    are in one state. `_next` checks, at both ends of each such range and for every value of the next bits, that they
    get the same next state or code.
    """
    domain = IntType(int(steps.lo.min()), int(steps.hi.max()))
    bits = domain.bits
    # The offset binary image of x has the same bits, the sign inverted.
    image = 1 << (bits - 1) if domain.signed else 0
    sets = [changes(steps, s) for s in range(steps.sets)]
    threshold_count = max(len(thresholds) for thresholds, _ in sets)
    if threshold_count.bit_length() > MAX_STATE_BITS:
        return f"{threshold_count} thresholds need a state of more than {MAX_STATE_BITS} bits"
    starts = [[_starts(thresholds + image, k) for thresholds, _ in sets] for k in range(bits)]
    state_bits = [max((len(start) - 1).bit_length() for start in starts_by_set) for starts_by_set in starts]
    code_bits = IntType(int(steps.values.min()), int(steps.values.max())).bits
    low = max(k for k in range(bits) if state_bits[k] == 0)
    chunks = _chunks(low, [*state_bits, code_bits])
    edges = np.cumsum([low, *chunks]).tolist()
    states = tuple(state_bits[k] for k in edges[1:-1])
    widths = [chunk + state for chunk, state in zip(chunks, (0, *states), strict=True)]
    size = sum(result << width for result, width in zip((*states, code_bits), widths, strict=True))
    if size > MAX_TABLE_BITS:
        return f"its tables have {size} bits a channel, more than {MAX_TABLE_BITS}"
    tables = []
    for k, end, state, width in zip(edges, edges[1:], (0, *states), widths, strict=False):
        table = np.empty((1 << width, steps.sets), np.int64)
        for s, (thresholds, codes) in enumerate(sets):
            if end < bits:
                table[:, s] = _next(starts[k][s], starts[end][s][1:], k, end - k, state, 0)
            else:
                table[:, s] = codes[_next(starts[k][s], thresholds + image, k, end - k, state, image)]
        tables.append(table)
    cascade = Rank(low, chunks, states, tuple(tables))
    corners = steps.corners()
    if (cascade.apply(corners) != steps.apply(corners)).any():
        raise AssertionError(f"{steps.name}: the cascade differs from the function")
    return cascade


def _starts(thresholds: Array, k: int) -> Array:
    """The least value of the low k bits in each state: zero, and the low parts of the thresholds."""
    return np.unique(np.concatenate([[0], thresholds & ((1 << k) - 1)]))


def _next(starts: Array, targets: Array, k: int, chunk: int, bits: int, flip: int) -> Array:
    """The table of one level: the number of `targets` that the low k + chunk bits reach, by chunk and state.

    The state is the one of the low k bits. An assertion compares the least and the greatest value of each state. States
    that do not occur repeat the last one. `flip`: bits of the value to invert, for the sign.
    """
    ends = np.append(starts[1:], 1 << k) - 1
    high = (np.arange(1 << chunk)[:, None] << k) ^ flip
    counts = np.searchsorted(targets, high + starts, side="right")
    if (counts != np.searchsorted(targets, high + ends, side="right")).any():
        raise AssertionError("a state of the cascade holds inputs that differ")
    return np.asarray(counts[:, np.minimum(np.arange(1 << bits), len(starts) - 1)].reshape(-1))


def _chunks(low: int, state_bits: list[int]) -> tuple[int, ...]:
    """The number of bits of x that each level consumes, for the fewest LUTs.

    state_bits[k]: bits of the result after k bits of x.
    """
    top = len(state_bits) - 1

    @cache
    def best(k: int, level: int) -> tuple[float, tuple[int, ...]]:
        if k == top:
            return 0.0, ()
        choices = []
        for end in range(k + 1, min(top, k + max(8 - state_bits[k], 2)) + 1):
            level_luts = state_bits[end] * _luts(state_bits[k] + end - k) + (end - k) * (level >= _SHIFT_REGISTER)
            # Flip-flops break ties between equal numbers of LUTs.
            remaining_luts, chunks = best(end, level + 1)
            choices.append((level_luts + remaining_luts + 0.01 * (state_bits[end] + top - end), (end - k, *chunks)))
        return min(choices)

    return best(low, 0)[1]


def _luts(inputs: int) -> float:
    """Six-input LUTs of a table with one result bit; measured if that takes several LUTs."""
    if inputs <= 6:
        return float(inputs > 1)
    return (1.0 if inputs == 7 else 1.15) * (1 << (inputs - 6))


def cost(cascade: Rank, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): the lookup tables, and shift registers for the delayed bits of x."""
    delayed = sum(cascade.chunks[_SHIFT_REGISTER:])
    mask = (1 << result.bits) - 1
    sites = 1.0
    for s, lanes in zip(*np.unique(table, return_counts=True), strict=True):
        sites += lanes * (delayed + sum(_table_luts(column[:, s] & mask) for column in cascade.tables))
    return sites, 0, 0


def _table_luts(column: Array) -> float:
    """LUTs of one lookup table, counting for each result bit the address bits on which it depends."""
    width = len(column).bit_length() - 1
    total = 0.0
    for bit in range(int(column.max()).bit_length()):
        values = ((column >> bit) & 1).reshape((2,) * width)
        total += _luts(sum(bool((values != np.flip(values, axis)).any()) for axis in range(width)))
    return total
