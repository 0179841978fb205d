"""Constants per lane and fold, and the types that hold results computed with them."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.hls.process import Rom, rom
from hlsgen.numerics.fixed import Array, IntType

LANES = "[fold][lane]"


def rounds(table: Array, source: Stream) -> int:
    """Number of passes over all folds per frame. `table` (folds, lanes)."""
    return source.beats // len(table)


def lane_constants(values: Array, table: Array, *, signed: bool | None = None) -> Rom:
    """Constants [fold][lane] from one value per channel set, int64 (sets,). `table` (folds, lanes): set numbers."""
    return rom(np.ascontiguousarray(values[table]), LANES, signed=signed)


def lane_tables(values: Array, table: Array, last: str, *, signed: bool | None = None) -> Rom:
    """Arrays [fold][lane][entry] from entries of each channel set, int64 (entries, sets). `last`: name of that axis."""
    return rom(np.ascontiguousarray(np.moveaxis(values[:, table], 0, -1)), f"{LANES}[{last}]", signed=signed)


def bit_range(type_: IntType) -> tuple[int, int]:
    """Range of all bit patterns of a type. Lanes after a group's last element may hold any of them."""
    if type_.signed:
        return -(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1
    return 0, (1 << type_.bits) - 1


def signed_type(*bounds: int) -> str:
    """Text of the narrowest ap_int that holds all bounds."""
    return f"ap_int<{IntType(min(-1, *bounds), max(0, *bounds)).bits}>"
