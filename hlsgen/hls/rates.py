"""Cycles per frame of the processes of a C++ core, predicted from their loops.

A process runs one loop of a fixed number of iterations for each frame. An iteration starts every cycle, unless the
carried delay of the loop is longer than a cycle. The process begins the next frame when its pipeline is empty. Delays
were estimated from LLVM IR for a Xilinx 7-series device at 5 ns (tests/support/hls_schedule.py); no vendor's tool has
measured them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.flow import needed_beats
from hlsgen.dataflow.norm_units import NormMoments, NormRoot, root_bits
from hlsgen.dataflow.softmax_unit import SoftmaxUnit
from hlsgen.dataflow.units import MatVec, Node, RowsUnit, WidthConverter
from hlsgen.hls.latencies import latency_of
from hlsgen.hls.multipliers import dsp_of
from hlsgen.hls.read_order import read_order

#: Nanoseconds of a cycle for operators: 5 ns less 27 % of uncertainty.
_CYCLE = 5.0 * (1 - 0.27)
#: Cycles of a float32 addition with a multiplexer after it.
_FLOAT_ADDITION = 6
#: Bits of the numbers of a root beyond those of its radicand, and nanoseconds of the multiplexer between two steps.
_ROOT_BITS, _MULTIPLEXER = 28, 0.7
#: Widest codes whose largest one, and widest sums, that a loop finds in one cycle per iteration.
_CODE_BITS, _SUM_BITS = 20, 32


#: Cycles from the end of a process to its next start.
_RESTART = 2


@dataclass(frozen=True)
class Rate:
    """Loop iterations of a process in each frame; one starts every `interval` cycles."""

    iterations: int
    interval: int = 1

    @property
    def cycles(self) -> int:
        return self.iterations * self.interval


def emptying_of(node: Node) -> int:
    """Cycles from the start of a process's last iteration until it begins the next frame."""
    return latency_of(node) + _RESTART


def rate_of(node: Node) -> Rate:
    """Iterations of the main loop that implements a node in C++, and the cycles between two of them."""
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
            delay = at_once * _root_step(root_bits(unit) + _ROOT_BITS) - _MULTIPLEXER
            return Rate(node.result.beats * turns, math.ceil(delay / _CYCLE))
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


def _root_step(bits: int) -> float:
    """Nanoseconds of a step of a root with numbers of `bits` bits: a sum, a comparison and two multiplexers.

    From 64 bits on, clang makes the selected difference a subtraction of a selected number, after the comparison. The
    lines are fitted to estimates of `hg::norm_root` with 38 to 168 bits.
    """
    if bits < 64:
        return 5.14 + 0.04 * bits
    return max(6.36 + 0.075 * bits, 1.4 + 0.114 * bits)


@dataclass(frozen=True)
class Prediction:
    """Cycles between two frames of a core. `slowest`: the process that decides.

    `emptying`: cycles of these in which the slowest process empties its pipeline. `intervals`: cycles between two
    iterations, of the processes where they are more than one. `dsp`: DSP blocks, at most.
    """

    cycles: int
    slowest: str
    emptying: int
    intervals: Mapping[str, int]
    dsp: int

    @property
    def entry(self) -> dict[str, object]:
        """This prediction as an entry of manifest.json."""
        return {
            "interval": self.cycles,
            "slowest": self.slowest,
            "emptying": self.emptying,
            "initiation_intervals": dict(self.intervals),
            "dsp": self.dsp,
        }


@dataclass(frozen=True, eq=False)
class LoopWork:
    """A loop of `steps` steps: the processes of a step, and the beats of its states, which are copied after it.

    `sources`: for each process, the positions of the earlier ones whose results it reads.
    """

    name: str
    steps: int
    nodes: Sequence[Node]
    sources: Sequence[Sequence[int]]
    state_beats: int


def predict(processes: Sequence[tuple[str, Node]], loops: Sequence[LoopWork]) -> Prediction:
    """Prediction for named processes outside of loops, and for loops.

    In a step, a process ends at worst all its cycles after the last one whose results it reads. Steps do not overlap.
    """
    rates = {name: rate_of(node) for name, node in processes}
    emptying = {name: emptying_of(node) for name, node in processes}
    cycles = {name: rate.cycles + emptying[name] for name, rate in rates.items()}
    for loop in loops:
        step, emptying_in_step = _longest_path(loop)
        emptying[loop.name] = loop.steps * (emptying_in_step + _RESTART)
        cycles[loop.name] = loop.steps * (step + loop.state_beats + _RESTART)
    slowest = max(cycles, key=lambda name: cycles[name])
    intervals = {name: rate.interval for name, rate in rates.items() if rate.interval > 1}
    nodes = [node for _, node in processes] + [node for loop in loops for node in loop.nodes]
    return Prediction(cycles[slowest], slowest, emptying[slowest], intervals, sum(map(dsp_of, nodes)))


def _longest_path(loop: LoopWork) -> tuple[int, int]:
    """Cycles of the longest path through the processes of a step, and the part in which pipelines empty."""
    ends: list[tuple[int, int]] = []
    for node, sources in zip(loop.nodes, loop.sources, strict=True):
        start, emptied = max((ends[n] for n in sources), default=(0, 0))
        empties = emptying_of(node)
        ends.append((start + math.ceil(rate_of(node).cycles / loop.steps) + empties, emptied + empties))
    return max(ends)
