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
from hlsgen.rescale import FloatScale, Scale

#: Words, or bits, of weights that are tables where block memories are too slow: a bit of 128 words is a function that
#: a slice or two hold, and 8192 bits are some 600 LUT4.
TABLE_WORDS, TABLE_BITS = 128, 8192


@dataclass(frozen=True)
class Pipelining:
    """`every`: adders one behind the other between registers. `tables`: memories of weights that are not too large become
    tables, if no kind of memory was asked for."""

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
            words = weight_words(unit)
            small = words <= TABLE_WORDS or words * unit.lanes * weight_bits(unit) <= TABLE_BITS
            return replace(unit, every=depth.every, tables=depth.tables and small)
        case AdderMatVec() | DynamicMatVec() | NormMoments():
            return replace(unit, every=depth.every)
        case RescaleUnit(found=Scale() | FloatScale() as found):
            return replace(unit, found=replace(found, every=depth.every))
        case _:
            return unit
