"""Latency of each unit and the cycles that a frame keeps it busy; `flow` puts them together."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.dataflow.units import (
    TREE_LEVELS,
    BesideStage,
    ConcatStage,
    ConvStage,
    FifoStage,
    FloatStage,
    ForkStage,
    GatherStage,
    JoinStage,
    KeyStage,
    MatrixStage,
    PadStage,
    PickStage,
    PoolStage,
    Port,
    ReduceStage,
    RescaleStage,
    SliceStage,
    Stage,
    TapsStage,
    TreeStage,
    UnfoldStage,
    WidthStage,
    WinnerStage,
    Work,
)
from hlsgen.rescale.realize.float_ops import Arithmetic, Compare, RoundToFloat, ToCode, ToFloat

FLOAT_LATENCY = {"ADD": 7, "MUL": 6, "DIV": 19, "MAX": 2, "MIN": 2}


def latency(unit: Work) -> int:
    """Cycles from the beat that completes an output beat to that output beat.

    Of units with a window and of hg_gather: from the cycle in which the last word of it is read.
    """
    match unit:
        case Port() | KeyStage() | WidthStage() | FifoStage() | GatherStage() | BesideStage():
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
            return 2 + _dot_latency(unit) + 1
        case ConvStage():
            return 4 if unit.depthwise else 3 + _dot_latency(unit)
        case TapsStage():
            return 2 + _dot_latency(unit)
        case TreeStage():
            return max(1, (unit.taps - 1).bit_length())
        case PoolStage():
            return 3
        case WinnerStage() | JoinStage() | ReduceStage() | UnfoldStage():
            return 2
        case ForkStage() | ConcatStage() | PickStage() | SliceStage() | PadStage():
            return 0
        case _:
            assert_never(unit)


def _dot_latency(unit: MatrixStage | ConvStage | TapsStage) -> int:
    """Registers of hg_dot or hg_popcount."""
    terms = -(-unit.simd // (6 if unit.mode == 2 else 4))
    return 1 + (terms - 1).bit_length() // TREE_LEVELS


def busy(stage: Stage) -> int:
    """Cycles that a frame occupies the stage, at least."""
    unit = stage.unit
    beats = max(*(source.beats for source in stage.sources), stage.result.beats)
    match unit:
        case MatrixStage():
            return max(beats, -(-unit.vectors // unit.windows) * unit.row_folds * unit.col_folds)
        case ConvStage() | PoolStage():
            height, width = unit.window.size(unit.height, unit.width)
            return max(beats, height * width * unit.period)
        case _:
            return beats
