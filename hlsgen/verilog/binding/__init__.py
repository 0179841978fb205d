"""Binds units, and the realizations of step functions, to modules of the Verilog library: one file each."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import (
    Comparators,
    Correct,
    FloatScale,
    LaneShift,
    LaneTable,
    Lines,
    PairAdd,
    PairScale,
    Rank,
    Scale,
    Shift,
    Single,
    Table,
    Thresholds,
)
from hlsgen.verilog.binding import (
    compare,
    correct,
    float_scale,
    lane_shift,
    lane_table,
    lines,
    pair,
    rank,
    scale,
    shift,
    thresholds,
)
from hlsgen.verilog.binding import table as table_
from hlsgen.verilog.binding.memory_files import Binding


def bind(realization: Single, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` (folds, lanes): the parameter set that each lane uses in each beat."""
    match realization:
        case Shift():
            return shift.bind(realization, table, source, result, name)
        case LaneShift():
            return lane_shift.bind(realization, table, source, result)
        case LaneTable():
            return lane_table.bind(realization, table, source, result)
        case Thresholds():
            return thresholds.bind(realization, table, source, result, name)
        case Comparators():
            return compare.bind(realization, table, source, result, name)
        case Rank():
            return rank.bind(realization, table, source, result, name)
        case Table():
            return table_.bind(realization, table, source, result, name)
        case Lines():
            return lines.bind(realization, table, source, result, name)
        case Scale():
            return scale.bind(realization, table, source, result, name)
        case FloatScale():
            return float_scale.bind(realization, table, source, result, name)
        case Correct():
            return correct.bind(realization, table, source, result, name)
        case PairAdd() | PairScale():
            return pair.bind(realization, table, source, result, name)
        case _:
            assert_never(realization)
