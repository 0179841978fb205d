"""Depths of FIFOs that exclude every deadlock, by counting beats: no frame is simulated.

Which beats can move next never becomes less by what moves elsewhere. So it is enough that one order is found in which a
frame comes through; then it comes through in any other, at any pace of the ports. The order here is that of demand: a
node is asked for one beat after the other, and takes what it needs for that. Behind a fork, all branches come together in
one node. How many beats the fork has to send for its first k beats follows from what every node between needs, the same
as in `units.least`. What one branch is sent for the sake of another one is stored in FIFOs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import Runs
from hlsgen.cycle_model.units import TimingModel, least
from hlsgen.cycle_model.wiring import OUTPUT
from hlsgen.dataflow.ends import consumed_stream, divided, enters, leaves
from hlsgen.dataflow.units import Fifo, Fork, Node
from hlsgen.numerics.fixed import Array

#: No node: what stands behind all output ports.
END = -1


class Needs:
    """How many beats of each input a node needs for so many output beats of a frame. Equal nodes are counted once."""

    def __init__(self, model: TimingModel | None = None) -> None:
        self.model = model or least()
        self.known: dict[Hashable, tuple[Array, ...]] = {}

    def of(self, node: Node) -> tuple[Array, ...]:
        """For each input, int64 (beats of the result + 1,): entry k is for the first k of them. Not to be changed."""
        beats = tuple(source.beats for source in node.sources), node.result.beats
        if isinstance(node.unit, Fork):
            return (np.arange(beats[1] + 1),)
        machine = self.model.machine(node, enters(node))
        key = machine.kind, beats
        if machine.kind is None or key not in self.known:
            # Beats of one input come one by one, far apart, those of the others at once. So the time at which an output
            # beat is due says which one was missing.
            apart = 4 * (sum(beats[0]) + beats[1]) * (1 + max(-(-beats[1] // min(beats[0])), 1))
            found = []
            for n in range(len(node.sources)):
                ins = [_offered(count, apart if m == n else 0) for m, count in enumerate(beats[0])]
                due = machine.run(ins, [Wire(node.name, False)]).due[0].array(beats[1])
                assert len(due) == beats[1], f"{node.name} stops in a frame"
                found.append(np.concatenate([[0], due // apart if apart else due]))
            self.known[key] = tuple(found)
        return self.known[key]


def _offered(count: int, step: int) -> Wire:
    wire = Wire("", False)
    wire.due = Runs()
    wire.due.append(step, step, count)
    return wire


def safe_depths(nodes: Sequence[Node], needs: Needs) -> dict[str, int]:
    """Depths of FIFOs with which no pauses of the ports can lead to a deadlock; of those of which more than none is needed.

    The nodes are in the order of the streams, none comes back, memories of windows have the least depth or more, and
    there is a FIFO on the way from each fork to the next join (see `with_waits`).
    """
    joins, found = _joins(nodes), dict[str, int]()
    for fork, join in ((n, joins[n]) for n, node in enumerate(nodes) if isinstance(node.unit, Fork)):
        asked, apart = _asked(nodes, fork, join, needs), _apart(nodes, fork, join)
        sent = asked[nodes[fork].inputs[0]][1:]
        for fifo in _fifos(nodes, fork, join, apart):
            node, way = nodes[fifo], _asked(nodes, fork, fifo, needs)
            arrived = np.searchsorted(way[nodes[fork].inputs[0]], sent, "right") - 1
            moved = asked[node.outputs[0]]
            if apart:
                # While a beat behind the join is made, branches on their own take what they are asked for as it comes,
                # and store only what is sent for the sake of other ones.
                (wire,) = way.keys() & {*nodes[fork].outputs}
                held = (arrived - moved[1:])[sent > asked[wire][1:]] + 1
            else:
                # Only what was taken for the beats before is certain; the frame before ends with its last beat.
                held = arrived - np.concatenate([[moved[-1] - node.result.beats], moved[1:-1]])
            found[node.name] = max(found.get(node.name, 0), int(held.max(initial=0)))
    return found


def with_waits(nodes: Sequence[Node], depth: int) -> list[Node]:
    """The nodes with a FIFO in front of every join, and of every output port of several, that has none."""
    made = {wire: node for node in nodes for wire in node.outputs}
    several = len(divided(nodes)[2]) > 1
    result: list[Node] = []
    for node in nodes:
        inputs = list(node.inputs)
        if len(inputs) > 1 or (several and leaves(node)):
            for n, (wire, stream) in enumerate(zip(node.inputs, node.sources, strict=True)):
                if not _waits(made, wire):
                    inputs[n] = f"{wire}_wait"
                    result.append(Node(inputs[n], Fifo(depth), (wire,), (stream,), (inputs[n],), stream))
        result.append(replace(node, inputs=tuple(inputs)))
    return result


def _waits(made: dict[str, Node], wire: str) -> bool:
    """Whether there is a FIFO in front of a stream, behind the last fork or join."""
    while wire in made and len(made[wire].inputs) == 1 and len(made[wire].outputs) == 1:
        if isinstance(made[wire].unit, Fifo):
            return True
        (wire,) = made[wire].inputs
    return False


def _fifos(nodes: Sequence[Node], fork: int, join: int, apart: bool) -> list[int]:
    """FIFOs in which that waits which a fork sends for the sake of other branches: the last ones, or all."""
    last = len(nodes) - 1 if join == END else join
    every = [n for n in sorted(_between(nodes, nodes[fork].outputs, last)) if isinstance(nodes[n].unit, Fifo)]
    if not apart:
        return every
    made = {wire: n for n, node in enumerate(nodes) for wire in node.outputs}
    found = []
    for wire in nodes[join].inputs:
        n = made[wire]
        while n not in every and len(nodes[n].inputs) == 1:
            n = made[nodes[n].inputs[0]]
        found.append(n)
    return found


def _apart(nodes: Sequence[Node], fork: int, join: int) -> bool:
    """Whether the branches between a fork and its join have nothing to do with each other, nor with other streams."""
    if join == END:
        return False
    whole = _between(nodes, nodes[fork].outputs, join)
    branches = [_between(nodes, [wire], join) - {join} for wire in nodes[fork].outputs]
    inside = {wire for n in whole for wire in nodes[n].outputs} | {*nodes[fork].outputs}
    return sum(map(len, branches)) == len(whole) - 1 and all(inside.issuperset(nodes[n].inputs) for n in whole)


def _joins(nodes: Sequence[Node]) -> list[int]:
    """For each node, the first one through which everything that it sends goes in the end."""
    takers = {wire: n for n, node in enumerate(nodes) for wire in node.inputs}
    joins = [END] * len(nodes)
    for n in range(len(nodes) - 1, -1, -1):
        ways = [takers.get(wire, END) for wire in nodes[n].outputs]
        while len(set(ways)) > 1 and END not in ways:
            first = min(ways)
            ways = [joins[way] if way == first else way for way in ways]
        joins[n] = END if not ways or END in ways else ways[0]
    return joins


def _asked(nodes: Sequence[Node], fork: int, join: int, needs: Needs) -> dict[str, Array]:
    """How many beats of each stream from a fork on are asked for by the first beats of its join."""
    asked: dict[str, Array] = {}
    last = join if join != END else len(nodes) - 1
    if join == END:
        ends = divided(nodes)[2]
        steps = max(node.result.beats for node in ends)
        for node in ends:
            asked[OUTPUT + node.name] = -(-np.arange(steps + 1) * node.result.beats // steps)
    for n in range(last, fork - 1, -1):
        node = nodes[n]
        wires = [OUTPUT + node.name] if leaves(node) else node.outputs
        ways = [asked[wire] for wire in wires if wire in asked]
        if n == join or ways:
            for wire, need in zip(node.inputs or (consumed_stream(node),), needs.of(node), strict=True):
                asked[wire] = need if n == join else need[np.maximum.reduce(ways)]
    return asked


def _between(nodes: Sequence[Node], wires: Sequence[str], last: int) -> set[int]:
    """The nodes up to `last` that take, directly or not, what is on these streams."""
    reached, found = set(wires), set()
    for n in range(last + 1):
        if reached.intersection(nodes[n].inputs):
            found.add(n)
            reached.update(nodes[n].outputs)
    return found
