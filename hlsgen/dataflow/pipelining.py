"""How deep units are pipelined: registers between adders, and memories that are too slow for the clock as tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlsgen.dataflow.units import (
    AdderMatVec,
    ConvUnit,
    DynamicMatVec,
    GroupedMatVec,
    MatVec,
    NormMoments,
    RescaleUnit,
    Unit,
)
from hlsgen.dataflow.weighted_units import weight_bits, weight_words
from hlsgen.rescale import Correct, FloatScale, Scale, Shift, Thresholds

#: Bits of weights that are tables where block memories are too slow, at 16 bits a LUT4 or less; more of no more than so many
#: words, of which a bit is one function without logic in front.
TABLE_BITS, SHALLOW_WORDS, SHALLOW_BITS = 8192, 128, 32768


@dataclass(frozen=True)
class Pipelining:
    """`every`: adders one behind the other between registers. `tables`: memories of weights that are not too large become
    tables, others blocks, if no kind of memory was asked for."""

    every: int = 2
    tables: bool = False


#: What units have if no clock is asked for.
PLAIN = Pipelining()


def pipelined(unit: Unit, depth: Pipelining) -> Unit:
    """The unit with these registers; it computes the same."""
    if depth == PLAIN:
        return unit
    match unit:
        case MatVec() | ConvUnit() | GroupedMatVec():
            return replace(unit, every=depth.every, memory=_memory(unit) if depth.tables else "")
        case AdderMatVec() | DynamicMatVec() | NormMoments():
            return replace(unit, every=depth.every)
        case RescaleUnit(found=Correct() | Scale() | FloatScale() | Shift() | Thresholds() as found):
            return replace(unit, found=replace(found, every=depth.every))
        case _:
            return unit


def _memory(unit: MatVec | ConvUnit | GroupedMatVec) -> str:
    """Tables or blocks, and never logic in which functions of the address are mixed with what follows."""
    words = weight_words(unit)
    most = SHALLOW_BITS if words <= SHALLOW_WORDS else TABLE_BITS
    if words * unit.lanes * weight_bits(unit) <= most:
        return "tables"
    return "blocks" if words > 1 else ""
