"""When every beat moves: latency of each unit, and the first frame's way through the pipeline.

Times are in clock cycles. The forward recurrences are exact because no unit loses a cycle when it
is released from back-pressure.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.fixed import Array
from hlsgen.rescale.floats import Arithmetic, Compare, RoundToFloat, ToCode, ToFloat
from hlsgen.stages import (
    FloatStage,
    KeyStage,
    MatrixStage,
    Port,
    RescaleStage,
    Stage,
    WidthStage,
    WinnerStage,
    Work,
)

FLOAT_LATENCY = {"ADD": 7, "MUL": 6, "DIV": 19, "MAX": 2, "MIN": 2}


def latency(unit: Work) -> int:
    """Cycles from the beat that completes an output beat to that output beat."""
    match unit:
        case Port() | KeyStage() | WidthStage():
            return 1
        case RescaleStage():
            return unit.found.latency
        case FloatStage():
            match unit.unit:
                case Arithmetic(op):
                    return FLOAT_LATENCY[op]
                case RoundToFloat():
                    return 2
                case ToFloat():
                    return 8
                case ToCode():
                    return 6
                case Compare():
                    raise AssertionError("a comparison is two stages")
                case _:
                    assert_never(unit.unit)
        case MatrixStage():
            return 2 + unit.dot_latency + 1
        case WinnerStage():
            return 2
        case _:
            assert_never(unit)


def beat_times(stages: list[Stage]) -> tuple[Array, int]:
    """(cycle in which each output beat of the first frame leaves, cycles between frames).

    The first input beat is taken in cycle 0, source and sink never wait.
    """
    times: Array = np.arange(stages[0].source.beats, dtype=np.int64)
    interval = stages[0].source.beats
    for stage in stages:
        times = _spaced(_ready(stage, times)) + (0 if isinstance(stage.unit, MatrixStage) else latency(stage.unit))
        interval = max(interval, len(times), busy(stage))
    return times, interval


def busy(stage: Stage) -> int:
    """Cycles that a frame occupies the stage."""
    unit = stage.unit
    if isinstance(unit, MatrixStage):
        return unit.vectors * unit.row_folds * unit.col_folds
    return max(stage.source.beats, stage.result.beats)


def _spaced(times: Array) -> Array:
    """At most one beat a cycle, in order."""
    steps = np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps


def _ready(stage: Stage, times: Array) -> Array:
    """When the input of each output beat is complete."""
    unit = stage.unit
    if isinstance(unit, WidthStage):
        needed = -(-np.arange(1, stage.result.beats + 1) * stage.result.lanes // stage.source.lanes) - 1
        return times[needed]
    if isinstance(unit, WinnerStage):
        return times[unit.beats - 1 :: unit.beats]
    if isinstance(unit, MatrixStage):
        # Reads of the vector buffer: the first pass waits for the beats, later ones do not.
        first = times.reshape(unit.vectors, 1, unit.col_folds) + 1
        reads = np.broadcast_to(first, (unit.vectors, unit.row_folds, unit.col_folds)).ravel()
        reads = _spaced(reads).reshape(-1, unit.col_folds)[:, -1]
        return reads + latency(unit) - 1
    return times
