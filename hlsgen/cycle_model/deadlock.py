"""Whether units could wait for each other for ever, whatever pauses the outside makes.

A unit with an enable holds a beat in every register of its pipeline if they come without a gap, but only the one
that it offers if they do not: it stands still then, with gaps in it. What must never happen cannot rest on
registers that may be empty. Here every unit holds as little as it ever does; units hold no less while others do,
nothing decides anything by the data, so a frame that comes through here comes through at any pace of both ports.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.simulate import Blocked, Simulation
from hlsgen.cycle_model.units import least
from hlsgen.dataflow.units import Node


def find_deadlock(nodes: Sequence[Node]) -> tuple[Blocked, ...]:
    """Nodes that could wait for each other in a circle, empty if there are none."""
    network = Simulation(nodes, least())
    network.feed(1)
    return network.blocked()
