"""Cycles per frame of the processes of a C++ core, predicted from their loops.

A process runs one loop of a fixed number of iterations for each frame. An iteration starts every cycle, unless the
carried delay of the loop is longer than a cycle. These delays were estimated from LLVM IR for a Xilinx 7-series device
at 5 ns (tests/support/hls_schedule.py); no vendor's tool has measured them. A tool adds the depth of its pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.flow import needed_beats
from hlsgen.dataflow.norm_units import NormMoments, NormRoot
from hlsgen.dataflow.softmax_unit import SoftmaxUnit
from hlsgen.dataflow.units import MatVec, Node, RowsUnit, WidthConverter
from hlsgen.hls.read_order import read_order

#: Nanoseconds of a cycle for operators: 5 ns less 27 % of uncertainty.
_CYCLE = 5.0 * (1 - 0.27)
#: Estimated nanoseconds of a step of a root, and cycles of a float32 addition with a multiplexer after it.
_ROOT_STEP, _FLOAT_ADDITION = 15.0, 6
#: Widest codes whose largest one, and widest sums, that a loop finds in one cycle per iteration.
_CODE_BITS, _SUM_BITS = 20, 32


@dataclass(frozen=True)
class Rate:
    """`iterations` of a process per frame, one every `interval` cycles."""

    iterations: int
    interval: int = 1

    @property
    def cycles(self) -> int:
        return self.iterations * self.interval


def rate_of(node: Node) -> Rate:
    """The rate of the process of a node."""
    order = read_order(node)
    if order is not None:
        return Rate(order.iterations)
    beats = max(*(stream.beats for stream in node.sources), node.result.beats)
    match unit := node.unit:
        case MatVec():
            return Rate(max(beats, node.result.beats * unit.col_folds))
        case WidthConverter():
            (needed,) = needed_beats(node)
            return Rate(int(np.maximum(np.diff(needed, prepend=0), 1).sum()))
        case NormRoot():
            at_once = min(unit.constants.steps, unit.rows_in_flight)
            turns = math.ceil(unit.constants.steps / at_once)
            return Rate(node.result.beats * turns, math.ceil(at_once * _ROOT_STEP / _CYCLE))
        case NormMoments():
            return Rate(beats, 1 + (unit.moment_bits > _SUM_BITS))
        case SoftmaxUnit(in_order=True):
            return Rate(beats, unit.lanes * _FLOAT_ADDITION)
        case SoftmaxUnit():
            sum_bits = unit.fraction + (unit.lanes * unit.beats).bit_length()
            return Rate(beats, 1 + (node.source.type.bits > _CODE_BITS or sum_bits > _SUM_BITS))
        case RowsUnit():
            return Rate(beats, 1 + (node.source.type.bits > _CODE_BITS))
        case _:
            return Rate(beats)


@dataclass(frozen=True)
class Prediction:
    """Cycles between two frames of a core. `slowest`: the process that decides.

    `intervals`: cycles between two iterations, of the processes where they are more than one.
    """

    cycles: int
    slowest: str
    intervals: Mapping[str, int]

    @property
    def entry(self) -> dict[str, object]:
        """The entry of the manifest."""
        return {"interval": self.cycles, "slowest": self.slowest, "initiation_intervals": dict(self.intervals)}


def predict(processes: Sequence[tuple[str, Node]], loops: Sequence[tuple[str, int, Sequence[Node]]]) -> Prediction:
    """Prediction for named processes outside of loops, and for loops of a number of steps.

    The processes of a step run one after the other at worst, so that their cycles add up.
    """
    rates = {name: rate_of(node) for name, node in processes}
    cycles = {name: rate.cycles for name, rate in rates.items()}
    for name, steps, nodes in loops:
        cycles[name] = steps * sum(math.ceil(rate_of(node).cycles / steps) for node in nodes)
    slowest = max(cycles, key=lambda name: cycles[name])
    return Prediction(cycles[slowest], slowest, {name: r.interval for name, r in rates.items() if r.interval > 1})
