"""Sizes of buffers of networks that are too large to be simulated: by counts of beats and a schedule at one pace.

That no pauses lead to a deadlock is certain (`beat_counts`). The interval is what the slowest unit needs, which nothing
can be below; that the buffers are enough for it, and the latency, are estimates (`steady_pace`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlsgen.cycle_model.beat_counts import Needs, safe_depths, with_waits
from hlsgen.cycle_model.fifo_shrinking import LEAST_FIFO, with_depths
from hlsgen.cycle_model.line_buffers import least_depth
from hlsgen.cycle_model.steady_pace import soonest, steady, with_fifos
from hlsgen.cycle_model.units import Latency, busy
from hlsgen.dataflow.units import Fifo, Node, WindowUnit


@dataclass(frozen=True, eq=False)
class Counted:
    """The nodes with their depths; `latency` is an estimate, `interval` that of the slowest unit."""

    nodes: list[Node]
    latency: int
    interval: int


def counted(nodes: Sequence[Node], latency: Latency) -> Counted:
    """Chooses the depths of all FIFOs and memories of windows of a network without loops; adds FIFOs where some lack.

    The depths in `nodes` do not matter.
    """
    interval, needs = max(busy(node) for node in nodes), Needs()
    nodes = with_waits(nodes, LEAST_FIFO)
    least = {node.name: least_depth(node.unit) for node in nodes if isinstance(node.unit, WindowUnit)}
    least |= {node.name: LEAST_FIFO for node in nodes if isinstance(node.unit, Fifo)}
    nodes = with_depths(nodes, least)
    found = steady(nodes, needs, latency, interval)
    depths = dict(least)
    for more in (found.waits, safe_depths(nodes, needs)):
        depths |= {name: max(depths[name], depth) for name, depth in more.items()}
    sized = with_fifos(with_depths(nodes, depths), found.missing)
    return Counted(sized, soonest(nodes, needs, latency), interval)
