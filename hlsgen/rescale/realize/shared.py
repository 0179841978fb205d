"""Realizations `shared-table`, `shared-indexed`: one function for all sets, and an offset from a memory for each set.

Example: beats 0, 1 use set 0, beats 2, 3 set 1, of inputs 0..255. The memory holds the offsets 0, 0, 256, 256. The
function of the sum is set 0 on 0..255, and set 1 on 256..511. It is stored once, not once a beat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.rescale.realize import indexed, shift
from hlsgen.rescale.realize import table as table_
from hlsgen.rescale.realize.indexed import Indexed
from hlsgen.rescale.realize.shift import Shift
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.threshold_table import ThresholdTable

#: Sums of an input and its offset have at most this many bits.
_MAX_BITS = 48


@dataclass(frozen=True, eq=False)
class Shared:
    """`offset` adds the offset of its set to an input, and `function`, of one set, gives the code of the sum.

    `index`: the type of the sum.
    """

    offset: Shift
    index: IntType
    function: Table | Indexed

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        return self.function.apply(self.offset.apply(codes)[..., None])[..., 0]


def find_table(steps: ThresholdTable) -> Shared | str:
    """An offset and a lookup table of all codes, for two or more sets; else the reason, as text."""
    offset, index, joined = _joined(steps)
    return _proven(steps, offset, index, table_.find(joined)) if index.bits <= _MAX_BITS else _too_wide(index)


def find_indexed(steps: ThresholdTable) -> Shared | str:
    """An offset, a binary search and a lookup of codes, for two or more sets; else the reason, as text."""
    offset, index, joined = _joined(steps)
    return _proven(steps, offset, index, indexed.find(joined)) if index.bits <= _MAX_BITS else _too_wide(index)


def _too_wide(index: IntType) -> str:
    return f"inputs with the number of their set have {index.bits} bits; at most {_MAX_BITS}"


def _joined(steps: ThresholdTable) -> tuple[Shift, IntType, ThresholdTable]:
    """The offsets of the sets, the type of the sums, and the steps of the function of a sum, as one set.

    The offset of set s is s * 2^bits. All inputs of all sets lie within 2^bits, so no two sets have a sum in common.
    """
    span = int(steps.hi.max() - steps.lo.min())
    offsets = np.arange(steps.sets) << span.bit_length()
    starts, codes = [], []
    for s in range(steps.sets):
        start = np.unique(np.append(steps.lo[s], steps.table[steps.changed[:, s], s]))
        starts.append(start + offsets[s])
        codes.append(steps.values[np.searchsorted(steps.table[:, s], start, side="right"), s])
    thresholds, values = np.concatenate(starts)[1:], np.concatenate(codes)
    lo, hi = steps.lo[:1] + offsets[0], steps.hi[-1:] + offsets[-1]
    sums = IntType(int(lo[0]), int(hi[0]))
    low, high = (-(1 << sums.bits - 1), (1 << sums.bits - 1) - 1) if sums.signed else (0, (1 << sums.bits) - 1)
    offset = Shift(0, 0, Rounding.FLOOR, offsets, low, high)
    return offset, sums, ThresholdTable(steps.name, lo, hi, thresholds[:, None], values[:, None])


def _proven(steps: ThresholdTable, offset: Shift, index: IntType, function: Table | Indexed | str) -> Shared | str:
    """The realization with that function, or the reason why there is no function.

    The proof: it is constant between neighbouring steps, as the function is proven to be, and agrees at all corners.
    """
    if isinstance(function, str):
        return function
    realization, corners = Shared(offset, index, function), steps.corners()
    if (realization.apply(corners) != steps.apply(corners)).any():
        raise AssertionError(f"{steps.name}: the shared function differs from its sets")
    return realization


def cost(realization: Shared, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM) of the sum and the function together."""
    single_fold = np.zeros((1, table.shape[1]), np.int64)
    first = shift.cost(realization.offset, table, source, realization.index)
    function = realization.function
    price = indexed.cost if isinstance(function, Indexed) else table_.cost
    second = price(function, single_fold, realization.index, result)  # type: ignore[arg-type]
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
