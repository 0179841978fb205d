"""Interprets the flow of each node (`dataflow.flow`) as a process or a machine, to the cycle or as a lower bound.

No unit is named here, except for cycles that no flow states (`busy`). A new unit needs only a flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from typing_extensions import assert_never

from hlsgen.cycle_model import least_processes, processes, run_buffers, run_norms, run_processes
from hlsgen.cycle_model.kernel import KernelUnit
from hlsgen.cycle_model.kernel_units import exact_unit, least_unit
from hlsgen.cycle_model.line_buffers import Buffer, matrix, window_lists, window_runs, windows
from hlsgen.cycle_model.move_cache import MoveCache
from hlsgen.cycle_model.processes import ENDLESS, Process, Wire
from hlsgen.cycle_model.run_processes import Machine, Memory
from hlsgen.cycle_model.runs import Pattern, Runs
from hlsgen.dataflow.flow import (
    BufferFlow,
    ForkFlow,
    JoinFlow,
    KeepFlow,
    PipelineFlow,
    QueueFlow,
    RegroupFlow,
    ReplayFlow,
    RouteFlow,
    StateFlow,
    flow_of,
)
from hlsgen.dataflow.units import Node, NormRoot, Port, Unit

#: Cycles from the beat that completes an output beat to that output beat, in a target. For a buffer, the cycles since
#: the last word of the output beat is read.
Latency = Callable[[Unit], int]
#: The process of a node between its wires, and its memory if its depth is chosen.
Processes = Callable[[Node, Sequence[Wire], Sequence[Wire]], tuple[Process, Buffer | None]]


@dataclass(frozen=True)
class TimingModel:
    """A model of the units, beat by beat and in runs of beats.

    - `machine`, `unit`: compute the same times as `process`, in runs and in the kernel.
    - `unlimited`: FIFOs and window memories have unlimited room.
    - `enables`: units stall as their flows say; if False, only units with a window memory stall.
    - `holds`: the most input beats that are in a unit at a time. Its next actions follow from their times.
    - `cache`: results of machines, for all simulations of this model.
    """

    process: Processes
    machine: Callable[[Node], Machine]
    unit: Callable[[Node], KernelUnit]
    unlimited: bool = False
    enables: bool = True
    holds: Callable[[Node], int] = lambda node: _stored_beats(node, unlimited=False)
    cache: MoveCache = field(default_factory=MoveCache)


def busy(node: Node) -> int:
    """The fewest cycles for which a frame occupies the node."""
    beats = max(*(source.beats for source in node.sources), node.result.beats)
    match node.unit:
        case Port(bus) if bus is not None:
            return max(beats, bus.words)
        case NormRoot() as unit:
            return max(beats, beats * (unit.cycles + 1) // unit.rows_in_flight)
    match flow := flow_of(node):
        case ReplayFlow():
            return max(beats, node.source.beats * flow.repeat)
        case BufferFlow():
            return max(beats, node.result.beats * flow.step)
        case _:
            return beats


def exact(latency: Latency, *, unlimited: bool = False) -> TimingModel:
    """The model in which every beat moves in the cycle in which the RTL moves it."""

    def holds(node: Node) -> int:
        return _stored_beats(node, unlimited=unlimited) + latency(node.unit)

    return TimingModel(
        lambda node, ins, outs: _process(node, ins, outs, latency, unlimited=unlimited),
        lambda node: _machine(node, latency, unlimited=unlimited),
        lambda node: exact_unit(node, latency, unlimited=unlimited),
        unlimited,
        holds=holds,
    )


def _stored_beats(node: Node, *, unlimited: bool) -> int:
    """The most input beats that a unit stores besides its pipeline; 0 if its depth is chosen and unlimited."""
    match flow := flow_of(node):
        case BufferFlow() | QueueFlow() if flow.sized:
            return 0 if unlimited else flow.depth
        case BufferFlow():
            return flow.depth
        case ReplayFlow():
            return 2 * flow.length
        case PipelineFlow():
            return flow.delay
        case StateFlow():
            return flow.beats
        case _:
            return 0


def _process(
    node: Node, ins: Sequence[Wire], outs: Sequence[Wire], latency: Latency, *, unlimited: bool
) -> tuple[Process, Buffer | None]:
    """The process of the model that is exact to the cycle."""
    flow, unit, wire, result = flow_of(node), node.unit, ins[0], outs[0]
    match flow:
        case PipelineFlow() if len(ins) == 1:
            return processes.pipeline(wire, result, flow.delay + latency(unit), flow.emits), None
        case PipelineFlow():
            return processes.join(wire, ins[1], result, flow.delay + latency(unit), flow.emits), None
        case JoinFlow():
            join = processes.join(wire, ins[1], result, latency(unit), beats_per_second=flow.beats_per_second)
            return join, None
        case QueueFlow():
            depth = ENDLESS if unlimited and flow.sized else flow.depth
            return processes.fifo(wire, result, depth, latency(unit) if flow.delayed else 1), None
        case BufferFlow():
            depth = ENDLESS if unlimited and flow.sized else flow.depth
            buffer = Buffer(*window_lists(flow.windows), flow.windows.words, depth, flow.period, flow.lag)
            process = windows(wire, result, buffer, flow.step - 1 + latency(unit), flow.step)
            return process, buffer if flow.sized else None
        case ReplayFlow():
            return matrix(wire, result, flow.length, flow.repeat, latency(unit) - 2), None
        case RegroupFlow():
            return processes.width(wire, result, flow.enters, flow.leaves, flow.rooms), None
        case RouteFlow():
            return processes.route(ins, result, flow.order), None
        case KeepFlow():
            return processes.keep(wire, result, flow.keeps), None
        case ForkFlow():
            return processes.fork(wire, outs), None
        case StateFlow():
            return processes.state(wire, ins[1], result, flow.beats, flow.waiting), None
        case _:
            assert_never(flow)


def _machine(node: Node, latency: Latency, *, unlimited: bool) -> Machine:
    """The same as `_process`, for whole runs of beats."""
    flow, unit = flow_of(node), node.unit
    match flow:
        case PipelineFlow():
            return run_processes.pipeline(flow.delay + latency(unit), _pattern(flow))
        case JoinFlow():
            return run_norms.rows(latency(unit), flow.beats_per_second)
        case QueueFlow(delayed=True):
            return run_norms.root(flow.depth, latency(unit))
        case QueueFlow():
            return run_processes.fifo(ENDLESS if unlimited and flow.sized else flow.depth)
        case BufferFlow():
            depth = ENDLESS if unlimited and flow.sized else flow.depth
            memory = Memory(*window_runs(flow.windows), flow.windows.words, depth, flow.period)
            return run_buffers.windows(memory, flow.step - 1 + latency(unit), flow.step, flow.lag)
        case ReplayFlow():
            return run_buffers.matrix(flow.length, flow.repeat, latency(unit) - 2)
        case RegroupFlow():
            return run_processes.width(flow.enters, flow.leaves, flow.rooms)
        case RouteFlow():
            return run_processes.route(_pattern(flow), len(node.sources))
        case KeepFlow():
            return run_processes.keep(_pattern(flow))
        case ForkFlow():
            return run_processes.fork
        case StateFlow():
            raise AssertionError("networks with a loop are simulated beat by beat")
        case _:
            assert_never(flow)


@lru_cache(maxsize=1024)
def _pattern(flow: PipelineFlow | RouteFlow | KeepFlow) -> Pattern:
    """The period of a flow as runs."""
    match flow:
        case PipelineFlow():
            return Pattern(flow.emits)
        case RouteFlow():
            return Pattern(flow.order)
        case KeepFlow():
            return Pattern(flow.keeps)
        case _:
            assert_never(flow)


def fewest_beats() -> TimingModel:
    """The model in which every unit holds as few beats as it ever does. Its times show only the order of beats."""
    return TimingModel(
        lambda node, ins, outs: (_least_process(node, ins, outs), None),
        _least_machine,
        lambda node: least_unit(node, _no_latency),
        enables=False,
    )


def _least_process(node: Node, ins: Sequence[Wire], outs: Sequence[Wire]) -> Process:
    """The process of a unit that holds as few beats as it ever does."""
    flow, wire, result = flow_of(node), ins[0], outs[0]
    match flow:
        case PipelineFlow():
            return least_processes.single(ins, result, flow.emits)
        case JoinFlow():
            return least_processes.rows(wire, ins[1], result, flow.beats_per_second)
        case QueueFlow(delayed=True):
            return least_processes.single(ins, result, [True])
        case BufferFlow():
            needs, keeps = window_lists(flow.windows)
            return least_processes.blocks(wire, result, needs, keeps, flow.windows.words, flow.depth, flow.beats)
        case ReplayFlow(repeat=1):
            return least_processes.sums(wire, result, flow.length)
        case ReplayFlow():
            length = flow.length
            return least_processes.blocks(wire, result, [length - 1], [0], length, 2 * length, flow.repeat)
        case QueueFlow() | RegroupFlow() | RouteFlow() | KeepFlow() | ForkFlow() | StateFlow():
            return _process(node, ins, outs, _no_latency, unlimited=False)[0]
        case _:
            assert_never(flow)


def _least_machine(node: Node) -> Machine:
    """As `_least_process`, or with fewer stored beats: a frame that passes this machine passes the process."""
    flow = flow_of(node)
    match flow:
        case PipelineFlow():
            return run_processes.hold(_pattern(flow))
        case JoinFlow():
            return run_norms.rows(0, flow.beats_per_second)
        case QueueFlow(delayed=True):
            return run_processes.hold(Pattern([True]))
        case QueueFlow():
            return run_processes.fifo(flow.depth, 0)
        case BufferFlow():
            memory = Memory(*window_runs(flow.windows), flow.windows.words, flow.depth, flow.beats)
            return run_buffers.windows(memory, 0, 1)
        case ReplayFlow(repeat=1):
            return run_processes.hold(Pattern([False] * (flow.length - 1) + [True]))
        case ReplayFlow():
            length = flow.length
            memory = Memory(Runs.of([length - 1]), Runs.of([0]), length, 2 * length, flow.repeat)
            return run_buffers.windows(memory, 0, 1)
        case RegroupFlow() | RouteFlow() | KeepFlow() | ForkFlow() | StateFlow():
            return _machine(node, _no_latency, unlimited=False)
        case _:
            assert_never(flow)


def _no_latency(unit: Unit) -> int:
    raise AssertionError(f"{unit} has no pipeline")
