"""Binds the realizations of quantizers to functions of the C++ library."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen import rescale
from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding import lookups, multiplied, shifts
from hlsgen.hls.process import Process
from hlsgen.numerics.fixed import Array


def bind_realization(
    realization: rescale.Single, table: Array, source: Stream, result: Stream, fraction: int | None = None
) -> Process:
    """The function call of a realization. `table` int64 (folds, lanes): the channel set of each lane in each beat.

    `fraction`: codes of the result mean code / 2^fraction. It is None if they have no such meaning.
    """
    match realization:
        case rescale.Thresholds():
            return lookups.thresholds(realization, table, source)
        case rescale.Comparators():
            return lookups.compare(realization, table, source)
        case rescale.Table():
            return lookups.table(realization, table, source)
        case rescale.Lines():
            return lookups.lines(realization, table, source)
        case rescale.Rank():
            return lookups.rank(realization, table, source)
        case rescale.Correct():
            return lookups.correct(realization, table, source)
        case rescale.Shift():
            return shifts.shift(realization, table, source, result, fraction or 0)
        case rescale.LaneShift():
            return shifts.lane_shift(realization, table, source)
        case rescale.LaneTable():
            raise AssertionError("the prices of this target leave lane-table out")
        case rescale.Scale():
            return multiplied.scale(realization, table, source)
        case rescale.FloatScale():
            return multiplied.float_scale(realization, table, source)
        case rescale.PairAdd():
            return multiplied.pair_add(realization, source)
        case rescale.PairScale():
            return multiplied.pair_scale(realization, source)
        case _:
            assert_never(realization)
