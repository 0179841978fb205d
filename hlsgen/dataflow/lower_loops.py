"""Lowers states of loops: the initial state, then the states that return through a FIFO."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.units import ConcatBeats, Crop, Fifo, Node, stream_of
from hlsgen.dataflow.workload import divisors
from hlsgen.ir import Delay, Linear


def delay(b: NetworkBuilder, i: int, layer: Delay, name: str) -> NamedStream:
    """The states at the start of all steps. `close` later adds the producers of the returning stream."""
    size, lanes = layer.source.size, _lanes(b, layer)
    first = b.buffered(b.converted(b.input_stream(i, 0, name), lanes, size, f"{name}_width"), f"{name}_wait0")
    back = NamedStream(f"{name}_back", stream_of(layer.result.type, lanes, size * (layer.steps - 1), size))
    result = stream_of(layer.result.type, lanes, layer.result.size, size)
    beats = size // lanes
    flow = b.append(name, ConcatBeats((beats, beats * (layer.steps - 1))), [first, back], result, layer.name, i)
    b.unfed_loops[i] = back
    return flow


def close(b: NetworkBuilder, value: int) -> None:
    """Appends the feedback path of all states that this value holds, without the state after the last step."""
    for i, layer in enumerate(b.graph.layers[:value]):
        if isinstance(layer, Delay) and i in b.unfed_loops and b.root(layer.delayed) == value:
            back = b.unfed_loops.pop(i)
            flow, name = b.feedback_stream(i, layer), back.wire
            order = b.layout.orders[layer.delayed]
            if (np.diff(order) != 1).any():
                flow = b.reordered(flow, order, np.arange(len(order)), f"{name}_order", layer.name)
            flow = b.converted(flow, back.stream.lanes, back.stream.group, f"{name}_width")
            beats = back.stream.group_beats
            rows = Crop((layer.steps, 1, beats), (0, layer.steps - 1, 1), (0, 1, 1), (0, beats, 1))
            flow = b.append(f"{name}_rows", rows, [flow], back.stream)
            b.nodes.append(Node(name, Fifo(2), (flow.wire,), (flow.stream,), (name,), back.stream))


def _lanes(b: NetworkBuilder, layer: Delay) -> int:
    """The widest SIMD of the matrices with as many columns as the state, at most its size."""
    size = layer.source.size
    widest = [b.folding[x.name][1] for x in b.graph.layers if isinstance(x, Linear) and x.weight.shape[1] == size]
    return max(d for d in divisors(size) if d <= max(widest, default=1))
