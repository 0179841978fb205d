"""Binds the realizations of step functions to functions of the C++ library."""

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
    found: Single, table: Array, source: Stream, result: Stream, fraction: int | None = None
) -> Process:
    """The function call of a realization. `table` int64 (folds, lanes): the set that each lane uses in each beat.

    `fraction`: the numbers that the codes of the result stand for are code / 2^fraction; None if they are no such numbers.
    """
    match found:
        case Thresholds():
            return lookups.thresholds(found, table, source)
        case Comparators():
            return lookups.compare(found, table, source)
        case Table():
            return lookups.table(found, table, source)
        case Rank():
            return lookups.rank(found, table, source)
        case Correct():
            return lookups.correct(found, table, source)
        case Shift():
            return shifts.shift(found, table, source, result, fraction or 0)
        case Scale():
            return multiplied.scale(found, table, source)
        case FloatScale():
            return multiplied.float_scale(found, table, source)
        case PairAdd():
            return multiplied.pair_add(found, source)
        case PairScale():
            return multiplied.pair_scale(found, source)
        case _:
            assert_never(found)
