"""Constants of every lane in every beat, and the types that hold what is computed with them."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.hls.process import Rom, rom
from hlsgen.numerics.fixed import Array, IntType

LANES = "[fold][lane]"


def rounds(table: Array, source: Stream) -> int:
    """How often a frame goes through all folds. `table` (folds, lanes)."""
    return source.beats // len(table)


def of_lanes(values: Array, table: Array, *, signed: bool | None = None) -> Rom:
    """One constant for each set, int64 (sets,), as [fold][lane]. `table` (folds, lanes)."""
    return rom(np.ascontiguousarray(values[table]), LANES, signed=signed)


def of_entries(values: Array, table: Array, last: str, *, signed: bool | None = None) -> Rom:
    """Entries of each set, int64 (entries, sets), as [fold][lane][entry]; `last` says what an entry belongs to."""
    return rom(np.ascontiguousarray(np.moveaxis(values[:, table], 0, -1)), f"{LANES}[{last}]", signed=signed)


def whole_type(type_: IntType) -> tuple[int, int]:
    """The least and the greatest number in the bits of a type: lanes behind a group's last element hold anything."""
    if type_.signed:
        return -(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1
    return 0, (1 << type_.bits) - 1


def signed_type(*bounds: int) -> str:
    """The ap_int that holds all these."""
    return f"ap_int<{IntType(min(-1, *bounds), max(0, *bounds)).bits}>"
