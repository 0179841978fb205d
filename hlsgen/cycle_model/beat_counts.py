"""Depths of FIFOs that exclude every deadlock, by counting beats: no frame is simulated.

Moves of other beats never disable a possible move. Hence one order in which a frame passes is enough: then it passes in
any other order, with any pauses of the ports. The order here is by demand: a node is requested to emit one beat after
the other, and consumes the beats that it needs. After a fork, all branches join in one node. The number of beats that
the fork must emit for the first k beats of the join follows from the needs of all nodes between, as in
`timing_models.fewest_beats`.
Beats that one branch receives because another branch needs them are stored in FIFOs.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from hlsgen.cycle_model.wiring import OUTPUT
from hlsgen.dataflow.ends import consumed_stream, divided, leaves
from hlsgen.dataflow.flow import RouteFlow, flow_of, needed_beats
from hlsgen.dataflow.units import Fifo, Fork, Node
from hlsgen.numerics.fixed import Array

#: No node: the place after all output ports.
END = -1


def needs_of(node: Node) -> list[Array]:
    """For each input, int64 (result beats + 1,): entry k is the number of beats needed for the first k result beats."""
    needs, flow = needed_beats(node), flow_of(node)
    if isinstance(flow, RouteFlow) and flow.order[0] < 0:
        # The first beat of a period waits for an input beat even if the unit generates it.
        needs[0][:: len(flow.order)] += 1
        needs[0] = np.maximum.accumulate(needs[0])
    return [np.concatenate([[0], need]) for need in needs]


def safe_depths(nodes: Sequence[Node]) -> dict[str, int]:
    """Depths of FIFOs with which no pauses of the ports can lead to a deadlock, for FIFOs that need any depth.

    The nodes are in the order of the streams, and no stream returns. Window memories have at least the minimum depth,
    and there is a FIFO on each path from a fork to the next join (see `with_wait_fifos`).
    """
    joins, depths = _joins(nodes), dict[str, int]()
    for fork, join in ((n, joins[n]) for n, node in enumerate(nodes) if isinstance(node.unit, Fork)):
        independent = _are_independent(nodes, fork, join)
        fifos, fork_wires = _fifos(nodes, fork, join, independent), {*nodes[fork].inputs, *nodes[fork].outputs}
        demand = _demand(nodes, fork, join, fork_wires.union(*(nodes[fifo].outputs for fifo in fifos)))
        fork_demand = demand[nodes[fork].inputs[0]][1:]
        for fifo in fifos:
            node, arrivals = nodes[fifo], _demand(nodes, fork, fifo, fork_wires)
            arrived = np.searchsorted(arrivals[nodes[fork].inputs[0]], fork_demand, "right") - 1
            emitted = demand[node.outputs[0]]
            if independent:
                # While a beat of the join is made, independent branches consume the requested beats as they arrive.
                # They store only beats that the fork emits because another branch needs them.
                (wire,) = arrivals.keys() & {*nodes[fork].outputs}
                buffered = (arrived - emitted[1:])[fork_demand > demand[wire][1:]] + 1
            else:
                # Only the beats consumed for earlier beats are certain; the previous frame ends with its last beat.
                buffered = arrived - np.concatenate([[emitted[-1] - node.result.beats], emitted[1:-1]])
            depths[node.name] = max(depths.get(node.name, 0), int(buffered.max(initial=0)))
    return depths


def with_wait_fifos(nodes: Sequence[Node], depth: int) -> list[Node]:
    """The nodes with a FIFO before every join, and before each of several output ports, if there is none yet."""
    producers = {wire: node for node in nodes for wire in node.outputs}
    has_several_outputs = len(divided(nodes)[2]) > 1
    result: list[Node] = []
    for node in nodes:
        inputs = list(node.inputs)
        if len(inputs) > 1 or (has_several_outputs and leaves(node)):
            for n, (wire, stream) in enumerate(zip(node.inputs, node.sources, strict=True)):
                if not _has_fifo(producers, wire):
                    inputs[n] = f"{wire}_wait"
                    result.append(Node(inputs[n], Fifo(depth), (wire,), (stream,), (inputs[n],), stream))
        result.append(replace(node, inputs=tuple(inputs)))
    return result


def _has_fifo(producers: dict[str, Node], wire: str) -> bool:
    """True if there is a FIFO before a stream, after the last fork or join."""
    while wire in producers and len(producers[wire].inputs) == 1 and len(producers[wire].outputs) == 1:
        if isinstance(producers[wire].unit, Fifo):
            return True
        (wire,) = producers[wire].inputs
    return False


def _fifos(nodes: Sequence[Node], fork: int, join: int, independent: bool) -> list[int]:
    """FIFOs for beats that a fork emits because other branches need them: the last ones, or all if not
    `independent`."""
    last = len(nodes) - 1 if join == END else join
    fifos = [n for n in sorted(_between(nodes, nodes[fork].outputs, last)) if isinstance(nodes[n].unit, Fifo)]
    if not independent:
        return fifos
    producers = {wire: n for n, node in enumerate(nodes) for wire in node.outputs}
    last_fifos = []
    for wire in nodes[join].inputs:
        n = producers[wire]
        while n not in fifos and len(nodes[n].inputs) == 1:
            n = producers[nodes[n].inputs[0]]
        last_fifos.append(n)
    return last_fifos


def _are_independent(nodes: Sequence[Node], fork: int, join: int) -> bool:
    """True if the branches between a fork and its join share no node, and have no other inputs."""
    if join == END:
        return False
    all_between = _between(nodes, nodes[fork].outputs, join)
    branches = [_between(nodes, [wire], join) - {join} for wire in nodes[fork].outputs]
    inside = {wire for n in all_between for wire in nodes[n].outputs} | {*nodes[fork].outputs}
    return sum(map(len, branches)) == len(all_between) - 1 and all(
        inside.issuperset(nodes[n].inputs) for n in all_between
    )


def _joins(nodes: Sequence[Node]) -> list[int]:
    """For each node, the first node that all its beats reach in the end."""
    consumers = {wire: n for n, node in enumerate(nodes) for wire in node.inputs}
    joins = [END] * len(nodes)
    for n in range(len(nodes) - 1, -1, -1):
        heads = [consumers.get(wire, END) for wire in nodes[n].outputs]
        while len(set(heads)) > 1 and END not in heads:
            first = min(heads)
            heads = [joins[head] if head == first else head for head in heads]
        joins[n] = END if not heads or END in heads else heads[0]
    return joins


def _demand(nodes: Sequence[Node], fork: int, join: int, retained: Set[str]) -> dict[str, Array]:
    """For each of the `retained` streams from a fork on, the number of beats needed for the first beats of its join.

    The numbers of other streams are dropped as soon as their producer is counted: large networks have many.
    """
    demand: dict[str, Array] = {}
    last = join if join != END else len(nodes) - 1
    if join == END:
        output_ports = divided(nodes)[2]
        steps = max(node.result.beats for node in output_ports)
        for node in output_ports:
            demand[OUTPUT + node.name] = -(-np.arange(steps + 1) * node.result.beats // steps)
    for n in range(last, fork - 1, -1):
        node = nodes[n]
        wires = [OUTPUT + node.name] if leaves(node) else node.outputs
        demands = [demand[wire] for wire in wires if wire in demand]
        if n == join or demands:
            for wire, need in zip(node.inputs or (consumed_stream(node),), needs_of(node), strict=True):
                demand[wire] = need if n == join else need[np.maximum.reduce(demands)]
        for wire in {*wires} - retained:
            demand.pop(wire, None)
    return demand


def _between(nodes: Sequence[Node], wires: Sequence[str], last: int) -> set[int]:
    """The nodes up to `last` that consume these streams, directly or not."""
    reached, members = set(wires), set()
    for n in range(last + 1):
        if reached.intersection(nodes[n].inputs):
            members.add(n)
            reached.update(nodes[n].outputs)
    return members
