"""Proves loops by induction over the steps: the feedback into a step is the result of the step before.

A Delay outputs the initial state in step 0. For the other steps, the feedback stream is assumed to carry the states
after the steps before. Under this assumption, all layers are proven like any other network. At the end the feedback
stream must carry these elements, in this order. The layers of a loop work on each step separately. The assumption for
step t therefore depends only on proofs for earlier steps, and both hold for all steps.
"""

from __future__ import annotations

from hlsgen import ir
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.stream_contents import StreamContents
from hlsgen.numerics.fixed import Array


def check(graph: ir.Graph) -> int:
    """The number of states. Raises HG055 if a layer of a loop does not work on each row separately."""
    delays = {n: layer for n, layer in enumerate(graph.layers, 1) if isinstance(layer, ir.Delay)}
    after_delay: set[int] = set()
    for n, layer in enumerate(graph.layers, 1):
        if n in delays or after_delay.intersection(layer.inputs):
            after_delay.add(n)
    before_delay = {layer.delayed for layer in delays.values()}
    for n in range(len(graph.layers), 0, -1):
        if n in before_delay:
            before_delay.update(graph.layers[n - 1].inputs)
    for n, layer in enumerate(graph.layers, 1):
        if n in after_delay & before_delay and n not in delays and not _by_row(layer):
            raise broken(layer.name, "it is in a loop, but does not work on each step separately.")
    for n, layer in delays.items():
        fed_back = graph.layers[layer.delayed - 1].result
        if layer.delayed <= n or fed_back.shape != layer.result.shape or fed_back.type != layer.result.type:
            raise broken(layer.name, "its feedback is no later tensor of its shape and type.")
    return len(delays)


def _by_row(layer: ir.Layer) -> bool:
    match layer:
        case ir.Map() | ir.BinaryMap() | ir.FloatBinary() | ir.PackBytes():
            return True
        case ir.Linear():
            return len(layer.source.shape) > 1
        case ir.View(op=op, source=source, result=result):
            return op.perm[0] == 0 if isinstance(op, ir.Transpose) else source.shape[0] == result.shape[0]
        case ir.Rearrange(op=ir.Slice(ranges), source=source):
            return ranges[0] == (0, source.shape[0], 1)
        case ir.Concatenation(axis=axis):
            return axis > 0
        case _:
            return False


class FeedbackStreams:
    """The streams that are consumed before they are sent, by name, with the assumption about each."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.assumed: dict[str, tuple[ir.Delay, int, int]] = {}  # the state, lanes, bits of an element

    def assume(self, name: str, layer: ir.Delay, numbers: Array, width: int) -> StreamContents:
        """A stream of `width` bits that carries the Delay's elements after step 0, in order. Raises HG055."""
        later_numbers, type_ = numbers[layer.source.size :], layer.result.type
        lanes, remaining_bits = divmod(width, type_.bits)
        if remaining_bits or layer.source.size % lanes or name in self.assumed:
            raise broken(layer.name, f"stream {name} of {width} bits cannot carry states of {type_}.")
        self.assumed[name] = layer, lanes, type_.bits
        return StreamContents(later_numbers.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)

    def check_sent(self, name: str, stream: StreamContents, numbers: list[Array]) -> bool:
        """True if a stream is one of these, after a check that it carries the assumed elements. Raises HG055."""
        if name not in self.assumed:
            return False
        layer, lanes, bits = self.assumed.pop(name)
        expected = numbers[layer.delayed][: -layer.source.size].reshape(-1, lanes)
        type_ = layer.result.type
        finished = not stream.units and not stream.operands and stream.bits == bits
        if not finished or stream.lo < type_.lo or stream.hi > type_.hi:
            raise broken(layer.name, f"feedback stream {name} carries other codes than {type_}.")
        if stream.elements.shape != expected.shape or (stream.elements != expected).any():
            raise broken(layer.name, f"feedback stream {name} does not carry the states of the steps before.")
        return True

    def end(self) -> None:
        """Check that every assumed stream was sent. Raises HG055."""
        for name, (layer, *_) in self.assumed.items():
            raise broken(layer.name, f"nothing sends feedback stream {name}.")
