"""Binds the realizations of step functions to functions of the C++ library."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import Stream
from hlsgen.hls.process import Process, process, rom
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


def bind_realization(found: Single, table: Array, source: Stream, result: Stream) -> Process:
    """The function call of a realization. `table` int64 (folds, lanes): the set that each lane uses in each beat."""
    match found:
        case Thresholds():
            return _thresholds(found, table, source, result)
        case Shift() | Comparators() | Rank() | Table() | Scale() | FloatScale() | Correct() | PairAdd() | PairScale():
            raise NotImplementedError(type(found).__name__)
        case _:
            assert_never(found)


def _rounds(table: Array, source: Stream) -> int:
    """How often a frame goes through all folds."""
    return source.beats // len(table)


def _thresholds(found: Thresholds, table: Array, source: Stream, result: Stream) -> Process:
    assert not found.falling.any()
    steps = np.ascontiguousarray(np.moveaxis(found.table[:, table], 0, -1))
    return process(
        "thresholds", f"{len(found.table)} thresholds a channel", {"thresholds": rom(steps, "[fold][lane][step]", signed=True)},
        STEPS=len(found.table), FOLDS=len(table), ROUNDS=_rounds(table, source), BASE=found.base,
    )  # fmt: skip
