"""Proves that no pauses of the sources or the sinks can deadlock the network.

A pipeline with an enable has a register a stage. If beats arrive without a gap, each register holds one. If they arrive
with gaps, the pipeline may stall with only one beat in it, the offered beat. Hence a proof must not rely on registers
that may be empty.

In this model every unit holds the fewest beats that it can ever hold. A unit that can hold more never blocks another
one, and no unit decides anything by the data. Hence if a frame passes this network, frames pass with any pauses of the
ports.

Several input or output ports may pause independently, in any order and for any time. Moves of other beats never disable
a possible move, so the beats that can move in the end do not depend on the order. Every port has to be served in the
end, whether or not the others move. A host that waits for a whole frame at one port before it serves another port must
provide the buffers for that itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.simulate import Simulation, WorkBudget
from hlsgen.cycle_model.timing_models import busy, fewest_beats
from hlsgen.cycle_model.wiring import Blocked
from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.units import FrameMemory, Node


def find_deadlock(nodes: Sequence[Node], budget: WorkBudget | None = None) -> tuple[Blocked, ...]:
    """Nodes that could wait for each other in a circle; empty if no deadlock is possible.

    Raises BudgetExceeded at the budget.
    """
    bounds = budget.bounds() if budget else None
    network = Simulation(nodes, fewest_beats(), bounds=bounds, counts=budget is not None)
    feed_frame(network)
    if budget:
        budget.spend(network)
    return network.blocked()


def feed_frame(network: Simulation) -> None:
    """Runs a frame, or two with states between frames, through a network of units that hold as few beats as possible.

    Raises BudgetExceeded at its bounds."""
    nodes = network.nodes
    # Any input rate would do; with this one the fewest beats are buffered.
    beats = max(node.source.beats for node in divided(nodes)[0])
    # A first frame finds its states; a second one needs those that the first one left. All later ones are alike.
    frames = 2 if any(isinstance(node.unit, FrameMemory) for node in nodes) else 1
    network.feed(frames, beats * -(-max(busy(node) for node in nodes) // beats))
