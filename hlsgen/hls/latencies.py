"""Cycles that an iteration of a C++ process takes from its first read to its last write.

They are generous bounds for the operators of each function. A process that empties its pipeline between frames needs
them once for each frame.
"""

from __future__ import annotations

from hlsgen import rescale
from hlsgen.dataflow.norm_units import NormMoments, NormRoot, NormScale
from hlsgen.dataflow.softmax_unit import SoftmaxUnit
from hlsgen.dataflow.units import (
    ConvUnit,
    DynamicMatVec,
    FloatUnit,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    PoolUnit,
    ReduceTree,
    RescaleUnit,
    RowsUnit,
)
from hlsgen.rescale.realize.float_ops import Arithmetic

#: Of processes that only move or compare elements.
_MOVE = 6
#: Of a sum or product of float32 numbers; of their other operations; of a division of integers; of a row of Softmax.
_FLOAT_SUM, _FLOAT, _DIVISION, _SOFTMAX = 14, 40, 90, 90
#: Cycles of a float32 addition in order, and of a step of a root.
_FLOAT_ADDITION, _ROOT_STEP = 6, 5


def latency_of(node: Node) -> int:
    """Cycles of an iteration of the process of a node."""
    bits = node.source.type.bits
    match unit := node.unit:
        case MatVec() | ConvUnit() | GroupedMatVec() | DynamicMatVec():
            return _MOVE + bits // 8 + _levels(unit.simd)
        case PoolUnit():
            return _MOVE
        case ReduceTree():
            return _MOVE + _levels(unit.taps)
        case RescaleUnit():
            return _MOVE + _of_realization(unit.realization)
        case FloatUnit(unit=Arithmetic(op="ADD" | "MUL")):
            return _FLOAT_SUM
        case FloatUnit():
            return _FLOAT
        case JoinStreams():
            return _MOVE if unit.floats is None else _FLOAT_SUM
        case NormRoot():
            return _FLOAT + _ROOT_STEP * min(unit.constants.steps, unit.rows_in_flight)
        case NormMoments() | NormScale():
            return _FLOAT
        case SoftmaxUnit():
            return _SOFTMAX + (_FLOAT_ADDITION * unit.lanes if unit.in_order else _levels(unit.lanes))
        case RowsUnit():
            return _DIVISION + _levels(node.source.lanes)
        case _:
            return _MOVE


def _levels(inputs: int) -> int:
    """Levels of a tree of two-input operators."""
    return (inputs - 1).bit_length()


def _of_realization(realization: rescale.Single) -> int:
    match realization:
        case rescale.Thresholds() | rescale.Comparators():
            return 3 * _levels(len(realization.table) + 1)
        case rescale.Rank():
            return 3 * len(realization.chunks)
        case rescale.FloatScale():
            return _FLOAT
        case rescale.Scale() | rescale.Correct() | rescale.Lines() | rescale.PairAdd() | rescale.PairScale():
            return 2 * _MOVE
        case _:
            return 0
