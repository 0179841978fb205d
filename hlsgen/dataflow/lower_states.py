"""Lowers state between frames: a memory in place of an input and an output, and a beat for each frame that enters."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.network import layout_of
from hlsgen.dataflow.units import FrameMemory, FrameStart, Node, Stream, stream_of
from hlsgen.ir import StreamedInput, Value
from hlsgen.numerics.fixed import Array, IntType

#: One bit for each frame.
FLAG = Stream(IntType(0, 1), 1, 1, 1)


def open_states(b: NetworkBuilder, port: Node, lanes: list[tuple[int, int]]) -> None:
    """Appends the memories of all states; `close_states` adds the streams that return to them.

    `port`: the input port whose frames begin sequences. `lanes`: (lanes, group) of each state.
    """
    numbers = [number for number, _, _ in _places(b)]
    names = [b.layer_names[number - 1] for number in numbers]
    unit = FrameStart(port.result.beats, layout_of(port).words)
    flags = b.append(f"{names[0]}_beat", unit, [b.frame_stream()], FLAG)
    copies = (flags,) if len(names) == 1 else b.forked(flags, len(names), f"{flags.wire}_fork")
    for n, (number, name) in enumerate(zip(numbers, names, strict=True)):
        layer = b.graph.layers[number - 1]
        assert isinstance(layer, StreamedInput)
        stream = stream_of(layer.result.type, lanes[n][0], layer.result.size, lanes[n][1])
        initial = _beats(b.graph.states[n].initial[b.layout.orders[number]], stream)
        back, start = NamedStream(f"{name}_back", stream), b.buffered(copies[n], f"{name}_start")
        b.deliver(number, b.append(name, FrameMemory(initial), [start, back], stream, layer.name, number - 1))


def close_states(b: NetworkBuilder) -> None:
    """Appends the streams that return to the memories of all states."""
    last, first = len(b.graph.layers) - 1, len(b.graph.streamed_outputs) - len(b.graph.states)
    for n, (state, (number, _, _)) in enumerate(zip(b.graph.states, _places(b), strict=True)):
        memory = next(node for node in b.nodes if node.position == number - 1)
        name = memory.inputs[1]
        flow = b.input_stream(last, first + n, name)
        order, needed_order = b.layout.of_input(b.graph, last, first + n), state.moved[b.layout.orders[number]]
        if (order != needed_order).any():
            flow = b.reordered(flow, order, needed_order, f"{name}_order", memory.layer)
        flow = b.converted(flow, memory.result.lanes, memory.result.group, f"{name}_width")
        b.buffered(NamedStream(flow.wire, memory.result), name)


def _places(b: NetworkBuilder) -> tuple[tuple[int, int, Value], ...]:
    """(value number, offset in the input, value) of each state."""
    places = b.graph.streamed_inputs
    return places[len(places) - len(b.graph.states) :]


def _beats(codes: Array, stream: Stream) -> Array:
    """The codes in beats, int64 (beats, lanes); lanes after the last element of a group are 0."""
    padded: Array = np.zeros((stream.groups, stream.group_beats * stream.lanes), np.int64)
    padded[:, : stream.group] = codes.reshape(stream.groups, stream.group)
    return padded.reshape(stream.beats, stream.lanes)
