"""The prices by which realizations are compared: a target sets its own, and the Verilog library's are defined here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from typing_extensions import assert_never

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary.join_plan import JoinPlan
from hlsgen.rescale.realize import (
    compare,
    correct,
    float_scale,
    float_units,
    indexed,
    lane_shift,
    lane_table,
    lines,
    pair,
    rank,
    scale,
    shared,
    shift,
    thresholds,
)
from hlsgen.rescale.realize import table as table_
from hlsgen.rescale.realize.compare import Comparators
from hlsgen.rescale.realize.correct import Correct
from hlsgen.rescale.realize.float_ops import FloatUnits
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.rescale.realize.indexed import Indexed
from hlsgen.rescale.realize.lane_shift import LaneShift
from hlsgen.rescale.realize.lane_table import LaneTable
from hlsgen.rescale.realize.lines import Lines
from hlsgen.rescale.realize.pair import PairAdd, PairScale
from hlsgen.rescale.realize.rank import Rank
from hlsgen.rescale.realize.scale import Scale
from hlsgen.rescale.realize.shared import Shared
from hlsgen.rescale.realize.shift import Shift
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.realize.thresholds import Thresholds

#: Realizations that are one module.
Single = (
    Shift
    | LaneShift
    | LaneTable
    | Thresholds
    | Comparators
    | Rank
    | Table
    | Lines
    | Scale
    | FloatScale
    | Correct
    | PairAdd
    | PairScale
)
Realization = Single | Indexed | Shared | FloatUnits

#: LUT, DSP blocks, bits of block RAM.
Price = tuple[float, int, int]


@dataclass(frozen=True)
class Prices:
    """The cost of hardware on a target.

    `realization(realization, table, source, result, dsp)` prices a realization in a stream. `table` int64 (folds,
    lanes) gives the sets of its lanes. `source` and `result` are the types of the input and output codes. `dsp` says
    whether DSP blocks are preferred. `join(plan, table, dsp)` prices the join of two streams before a realization.
    `counts` maps the preferences "lut" and "dsp" to the LUT that one DSP block and one block RAM of 18 Kbit count as.
    `missing`: realizations, by their names in `select.KINDS`, for which the target has no hardware.
    """

    realization: Callable[[Realization, Array, IntType, IntType, bool], Price]
    join: Callable[[JoinPlan, Array, bool], Price]
    counts: Mapping[str, tuple[float, float]]
    missing: frozenset[str] = frozenset()


def library_price(realization: Realization, table: Array, source: IntType, result: IntType, dsp: bool) -> Price:
    """The price of a module of the Verilog library, fitted to synthesis for 7 series. Arguments as in `Prices`."""
    match realization:
        case Shift():
            return shift.cost(realization, table, source, result)
        case LaneShift():
            return lane_shift.cost(realization, table, result)
        case LaneTable():
            return lane_table.cost(realization, table)
        case Scale():
            return scale.cost(realization, table, source, result, dsp)
        case FloatScale():
            return float_scale.cost(realization, table, source, result, dsp)
        case Correct():
            return correct.cost(realization, table, source, result)
        case Comparators():
            return compare.cost(realization, table, source, result)
        case Thresholds():
            return thresholds.cost(realization, table, source, result)
        case Rank():
            return rank.cost(realization, table, source, result)
        case Table():
            return table_.cost(realization, table, source, result)
        case Lines():
            return lines.cost(realization, table.shape[1], source, result)
        case Indexed():
            return indexed.cost(realization, table, source, result)
        case Shared():
            return shared.cost(realization, table, source, result)
        case PairAdd() | PairScale():
            return pair.cost(realization, table, source, result)
        case FloatUnits():
            return float_units.cost(realization, table)
        case _:
            assert_never(realization)


#: The prices of the Verilog library.
LIBRARY = Prices(library_price, JoinPlan.cost, {"lut": (200.0, 150.0), "dsp": (20.0, 100.0)})
