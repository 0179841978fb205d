"""Proves state between frames, by induction over the frames.

Base: the first frame of a sequence finds the initial values, which hg_state holds as a parameter or in a file. Step:
hg_state gets the elements of the pair's output, in the order of the input in the next frame. Each code of the output is
a code of the input. Hence each frame finds the state of the frame before it, or the initial state. All proofs of layers
hold for every code of the input.

The bit of each frame that enters passes hg_frame_start, and only modules that keep beats unchanged.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.routing import check_parameters
from hlsgen.certify.netlist_reader import Cell, Memories, SizedConstant, broken, split
from hlsgen.certify.stream_contents import ANYTHING, Elements, StreamContents, check_codes
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.numerics.fixed import Array

#: The modules of a state, and of the bits of frames.
MEMORY, START = "hg_state", "hg_frame_start"
#: The number of the bit of a frame: no element has it.
_BEGIN = -3


class FrameStates:
    """The memories in the order of the top level: memory n holds state n of the graph."""

    def __init__(self, graph: Graph, layout: StreamOrder, elements: Elements, memories: Memories) -> None:
        self.graph, self.layout, self.elements, self.memories = graph, layout, elements, memories
        self.proven: list[tuple[Cell, str]] = []  # each memory, and the stream that returns to it
        self.lanes: list[int] = []

    def start(self, cell: Cell, stream: StreamContents, words: int) -> StreamContents:
        """Contents of the output of hg_frame_start: for each frame the bit that starts a sequence.

        `stream`: the beats of the first input port. `words`: bus words of a frame there. Raises HG055.
        """
        check_parameters(cell, "WIDTH BEATS WORDS")
        number = self.graph.streamed_inputs[0][0]
        self.elements.expect(cell.name, stream, number, self.layout.orders[number])
        expected = {"WIDTH": stream.width, "BEATS": stream.beats, "WORDS": words}
        if cell.parameters != expected:
            raise broken(cell.name, f"parameters are {cell.parameters}, a frame of this core needs {expected}.")
        return StreamContents(np.full((1, 1), _BEGIN), 1, 0, 1)

    def next_state(self, cell: Cell, begins: StreamContents, returning: str) -> StreamContents:
        """The state that a frame finds. `returning`: the stream that comes back to the memory. Raises HG055."""
        check_parameters(cell, "WIDTH BEATS", "INITIAL TABLE FILE")
        n, places = len(self.proven), self.graph.streamed_inputs[-len(self.graph.states) :]
        if n >= len(self.graph.states):
            raise broken(cell.name, f"the model has {len(self.graph.states)} states.")
        if begins.elements.tolist() != [[_BEGIN]]:
            raise broken(cell.name, "its first stream is not the bit of each frame.")
        number, _, value = places[n]
        lanes, remaining_bits = divmod(cell.number("WIDTH", 1), value.type.bits)
        beats = -(-value.size // lanes) if lanes else 0
        if remaining_bits or cell.number("BEATS", 1) != beats:
            raise broken(cell.name, f"it does not hold {value.size} elements of {value.type}.")
        order = self.layout.orders[number]
        contents = np.full(beats * lanes, ANYTHING)
        contents[: value.size] = self.elements.numbers[number][order]
        codes = np.zeros(beats * lanes, np.int64)
        codes[: value.size] = self.graph.states[n].initial[order] & ((1 << value.type.bits) - 1)
        self._initial(cell, codes.reshape(beats, lanes), value.type.bits)
        self.proven.append((cell, returning))
        self.lanes.append(lanes)
        return StreamContents(contents.reshape(beats, lanes), value.type.bits, value.type.lo, value.type.hi)

    def _initial(self, cell: Cell, codes: Array, bits: int) -> None:
        """Check that the memory has these initial codes, (beats, lanes) without signs. Raises HG055."""
        width = codes.shape[1] * bits
        if "TABLE" in cell.parameters:
            if cell.parameters["TABLE"] != 1 or "INITIAL" in cell.parameters:
                raise broken(cell.name, "it has no initial state in its file.")
            words = self.memories.words(cell.file, len(codes), width)
        else:
            initial = cell.parameters.get("INITIAL")
            if "FILE" in cell.parameters or not isinstance(initial, SizedConstant) or initial.width != width:
                raise broken(cell.name, f"INITIAL is {initial}, no constant of {width} bits.")
            words = [initial.value] * len(codes)
        differing = np.argwhere(split(words, codes.shape[1], bits) != codes)
        if len(differing):
            beat, lane = differing[0].tolist()
            raise broken(cell.name, f"beat {beat}, lane {lane} of its initial state is not the code of the model.")

    def end(self) -> list[tuple[Cell, str]]:
        """Each memory and the stream that returns to it. Raises HG055 if a state has none."""
        if len(self.proven) != len(self.graph.states):
            raise broken("the top level", f"has {len(self.proven)} memories for {len(self.graph.states)} states.")
        return self.proven

    def check_returned(self, cell: Cell, stream: StreamContents) -> None:
        """Check that this stream of the memory carries the state for the next frame. Raises HG055."""
        n = next(n for n, (memory, _) in enumerate(self.proven) if memory is cell)
        number, _, value = self.graph.streamed_inputs[-len(self.graph.states) :][n]
        output, _, left_value = self.graph.streamed_outputs[-len(self.graph.states) :][n]
        state, returned = value.type, left_value.type
        same_codes = (state.bits, state.signed, value.size) == (returned.bits, returned.signed, left_value.size)
        if not same_codes or returned.lo < state.lo or returned.hi > state.hi:
            raise broken(cell.name, "the output of the state has codes that its input has not.")
        check_codes(cell.name, stream, value.type, stream.bits, None)
        self.elements.expect(cell.name, stream, output, self.graph.states[n].moved[self.layout.orders[number]])
        filled = stream.filled.ravel()
        if stream.lanes != self.lanes[n] or not filled[: value.size].all() or filled[value.size :].any():
            raise broken(cell.name, "the elements of the state return in other lanes.")
