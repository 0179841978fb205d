"""Binds the realizations of quantizers to functions of the C++ library."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding import lookups, multiplied, shifts
from hlsgen.hls.process import Process
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import (
    Comparators,
    Correct,
    FloatScale,
    LaneShift,
    PairAdd,
    PairScale,
    Rank,
    Scale,
    Shift,
    Single,
    Table,
    Thresholds,
)


def bind_realization(
    realization: Single, table: Array, source: Stream, result: Stream, fraction: int | None = None
) -> Process:
    """The function call of a realization. `table` int64 (folds, lanes): the channel set of each lane in each beat.

    `fraction`: codes of the result mean code / 2^fraction. It is None if they have no such meaning.
    """
    match realization:
        case Thresholds():
            return lookups.thresholds(realization, table, source)
        case Comparators():
            return lookups.compare(realization, table, source)
        case Table():
            return lookups.table(realization, table, source)
        case Rank():
            return lookups.rank(realization, table, source)
        case Correct():
            return lookups.correct(realization, table, source)
        case Shift():
            return shifts.shift(realization, table, source, result, fraction or 0)
        case LaneShift():
            return shifts.lane_shift(realization, table, source)
        case Scale():
            return multiplied.scale(realization, table, source)
        case FloatScale():
            return multiplied.float_scale(realization, table, source)
        case PairAdd():
            return multiplied.pair_add(realization, source)
        case PairScale():
            return multiplied.pair_scale(realization, source)
        case _:
            assert_never(realization)
