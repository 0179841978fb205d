"""Proves that no pauses of the sources or the sinks can bring the network into a deadlock.

A pipeline with an enable has a register a stage. If beats come without a gap, each register holds one. If they
come with gaps, the pipeline may stand still with only one beat in it, the one that it offers. So a proof must not
rely on registers that may be empty.

Here every unit holds as few beats as it ever does. A unit that can hold more never stops another one, and nothing
decides anything by the data. So if a frame comes through here, frames come through at any pace of the ports.

Of several input or output ports each may pause on its own, in any order and for any time: which beats can move next never
becomes less by what moves elsewhere, so what is possible in the end does not depend on the order. Every port has to be
served in the end, whatever the others do. Whoever waits for a whole frame at one port before he serves another one has to
have the buffers for that himself.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.simulate import Budget, Simulation
from hlsgen.cycle_model.units import busy, least
from hlsgen.cycle_model.wiring import Blocked
from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.units import Node


def find_deadlock(nodes: Sequence[Node], budget: Budget | None = None) -> tuple[Blocked, ...]:
    """Nodes that could wait for each other in a circle; empty if no deadlock is possible. Raises Ended at the budget."""
    network = Simulation(nodes, least(), bounds=budget.bounds() if budget else None)
    feed_frame(network)
    if budget:
        budget.spend(network)
    return network.blocked()


def feed_frame(network: Simulation) -> None:
    """Runs a frame through a network of units that hold as little as they ever do. Raises Ended at its bounds."""
    nodes = network.nodes
    # At any pace; at this one the fewest beats wait.
    beats = max(node.source.beats for node in divided(nodes)[0])
    network.feed(1, beats * -(-max(busy(node) for node in nodes) // beats))
