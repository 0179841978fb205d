"""Sizes of buffers of networks that are too large to simulate, from counts of beats and an even schedule.

It is proven that no pauses lead to a deadlock (`beat_counts`). The interval is a lower bound: the interval of the
slowest unit. The buffers are estimated to be large enough for it, and the latency is an estimate (`steady_schedule`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlsgen.cycle_model.beat_counts import safe_depths, with_wait_fifos
from hlsgen.cycle_model.fifo_shrinking import MIN_FIFO_DEPTH, with_depths
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.cycle_model.steady_schedule import soonest, steady, with_fifos
from hlsgen.cycle_model.timing_models import Latency, busy
from hlsgen.dataflow.units import Fifo, Node, WindowUnit


@dataclass(frozen=True, eq=False)
class Counted:
    """The nodes with their depths; `latency` is an estimate, `interval` the interval of the slowest unit."""

    nodes: list[Node]
    latency: int
    interval: int


def counted(nodes: Sequence[Node], latency: Latency) -> Counted:
    """Chooses the depths of all FIFOs and window memories of a network without loops; adds missing FIFOs.

    The depths in `nodes` are ignored.
    """
    interval = max(busy(node) for node in nodes)
    nodes = with_wait_fifos(nodes, MIN_FIFO_DEPTH)
    min_depths = {node.name: min_depth(node.unit) for node in nodes if isinstance(node.unit, WindowUnit)}
    min_depths |= {node.name: MIN_FIFO_DEPTH for node in nodes if isinstance(node.unit, Fifo)}
    nodes = with_depths(nodes, min_depths)
    schedule = steady(nodes, latency, interval)
    depths = dict(min_depths)
    for candidate_depths in (schedule.buffered, safe_depths(nodes)):
        depths |= {name: max(depths[name], depth) for name, depth in candidate_depths.items()}
    sized = with_fifos(with_depths(nodes, depths), schedule.missing)
    return Counted(sized, soonest(nodes, latency), interval)
