"""Pipeline depth of units: registers between adders, and memories too slow for the clock as LUTs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hlsgen.adder_graph import AdderGraph
from hlsgen.dataflow import units
from hlsgen.dataflow.weighted_units import weight_bits, weight_words
from hlsgen.rescale import Correct, FloatScale, LaneShift, LaneTable, Lines, Scale, Shift, Thresholds

#: Most bits of a weight memory in LUTs if block RAM is too slow, at 16 bits a LUT4 or less.
TABLE_BITS = 8192
#: A memory of at most this number of words may have more bits: each bit is one function without logic before it.
SHALLOW_WORDS, SHALLOW_BITS = 128, 32768


@dataclass(frozen=True)
class Pipelining:
    """Requirements of the clock on units.

    `adders_per_stage`: adders in series between registers. Adder graphs and programs have stages of a length in time,
    which may be a fraction; for other units it is rounded up. `tables`: weight memories whose kind the user did not
    request become LUTs if they are small, else block RAM.
    """

    adders_per_stage: float = 2
    tables: bool = False


#: The pipelining without a target clock.
PLAIN = Pipelining()


def pipelined(unit: units.Unit, depth: Pipelining) -> units.Unit:
    """The unit with this pipelining; its function does not change."""
    if depth == PLAIN:
        return unit
    whole_adders = math.ceil(depth.adders_per_stage)
    match unit:
        case units.MatVec() | units.ConvUnit() | units.GroupedMatVec():
            return replace(unit, adders_per_stage=whole_adders, memory=_memory(unit) if depth.tables else "")
        case units.AdderMatVec(graph=AdderGraph()) | units.ProgramUnit():
            return replace(unit, adders_per_stage=depth.adders_per_stage)
        case units.AdderMatVec() | units.DynamicMatVec() | units.NormMoments():
            return replace(unit, adders_per_stage=whole_adders)
        case units.RescaleUnit(
            realization=Correct()
            | Scale()
            | FloatScale()
            | Shift()
            | LaneShift()
            | LaneTable()
            | Lines()
            | Thresholds() as realization
        ):
            return replace(unit, realization=replace(realization, every=whole_adders))
        case _:
            return unit


def _memory(unit: units.MatVec | units.ConvUnit | units.GroupedMatVec) -> str:
    """LUTs or block RAM, never logic that mixes functions of the address with the next operation."""
    words = weight_words(unit)
    most_bits = SHALLOW_BITS if words <= SHALLOW_WORDS else TABLE_BITS
    if words * unit.lanes * weight_bits(unit) <= most_bits:
        return "tables"
    return "blocks" if words > 1 else ""
