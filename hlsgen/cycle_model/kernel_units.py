"""Interprets the flow of each node as a unit of the kernel, as `timing_models` does as a process."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from typing_extensions import assert_never

from hlsgen.cycle_model.kernel import KernelUnit, Kind
from hlsgen.cycle_model.line_buffers import window_runs
from hlsgen.cycle_model.processes import ENDLESS
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
    WordWindows,
    flow_of,
)
from hlsgen.dataflow.units import Node, Unit
from hlsgen.numerics.fixed import Array


def exact_unit(node: Node, latency: Callable[[Unit], int], *, unlimited: bool) -> KernelUnit:
    """A node to the cycle. `unlimited`: memories whose depth is chosen have unlimited room."""
    flow, unit = flow_of(node), node.unit
    match flow:
        case PipelineFlow():
            kind = Kind.PIPELINE if len(node.sources) == 1 else Kind.JOIN
            return KernelUnit(kind, (flow.delay + latency(unit), 1), (flow.emits,))
        case JoinFlow():
            return KernelUnit(Kind.JOIN, (latency(unit), flow.beats_per_second), ((True,),))
        case QueueFlow():
            depth = ENDLESS if unlimited and flow.sized else flow.depth
            return KernelUnit(Kind.FIFO, (depth, latency(unit) if flow.delayed else 1))
        case BufferFlow():
            depth = ENDLESS if unlimited and flow.sized else flow.depth
            first = flow.step - 1 + latency(unit)
            numbers = flow.windows.words, depth, flow.period, flow.lag, first, flow.step, flow.sized
            return KernelUnit(Kind.WINDOWS, numbers, _windows(flow.windows))
        case ReplayFlow():
            return KernelUnit(Kind.MATRIX, (flow.length, flow.repeat, latency(unit) - 2))
        case RegroupFlow():
            return KernelUnit(Kind.WIDTH, (), (flow.enters, flow.leaves, flow.rooms))
        case RouteFlow():
            return KernelUnit(Kind.ROUTE, (), (flow.order,))
        case KeepFlow():
            return KernelUnit(Kind.KEEP, (), (flow.keeps,))
        case ForkFlow():
            return KernelUnit(Kind.FORK)
        case StateFlow():
            raise AssertionError("the kernel has no states between frames")
        case _:
            assert_never(flow)


def least_unit(node: Node, latency: Callable[[Unit], int]) -> KernelUnit:
    """A node that holds as few beats as it ever does. `latency`: of units that have the same form in both models."""
    flow = flow_of(node)
    match flow:
        case PipelineFlow():
            return KernelUnit(Kind.SINGLE, (), (flow.emits,))
        case JoinFlow():
            return KernelUnit(Kind.ROWS, (flow.beats_per_second,))
        case QueueFlow(delayed=True):
            return KernelUnit(Kind.SINGLE, (), ((True,),))
        case BufferFlow():
            return KernelUnit(Kind.BLOCKS, (flow.windows.words, flow.depth, flow.beats), _windows(flow.windows))
        case ReplayFlow(repeat=1):
            return KernelUnit(Kind.SUMS, (flow.length,))
        case ReplayFlow():
            length = flow.length
            return KernelUnit(Kind.BLOCKS, (length, 2 * length, flow.repeat), ((length - 1,), (0,)))
        case QueueFlow() | RegroupFlow() | RouteFlow() | KeepFlow() | ForkFlow() | StateFlow():
            return exact_unit(node, latency, unlimited=False)
        case _:
            assert_never(flow)


@lru_cache(maxsize=1024)
def _windows(windows: WordWindows) -> tuple[Array, Array]:
    """`needs` and `keeps` of a Buffer, int64 (windows,)."""
    needs, keeps = window_runs(windows)
    return needs.array(), keeps.array()
