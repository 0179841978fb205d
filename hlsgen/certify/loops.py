"""Loops: what comes back to a step is what the step before has made, by induction over the steps.

What a Delay gives in step 0 is the initial state. Of its other steps it is assumed that the stream which comes back carries
the states behind the steps before. With that, all layers are proven as those of any network. At the end the stream is
found where it is sent, and must carry these elements, in this order. As layers between work on each step alone, what is
assumed of step t rests on what is proven of the steps before: so both hold of all steps.
"""

from __future__ import annotations

from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.stream_contents import StreamContents
from hlsgen.ir import (
    BinaryMap,
    Concatenation,
    Delay,
    FloatBinary,
    Graph,
    Layer,
    Linear,
    Map,
    PackBytes,
    Rearrange,
    Slice,
    Transpose,
    View,
)
from hlsgen.numerics.fixed import Array


def check(graph: Graph) -> int:
    """The number of states, after a look at the layers between them: each must work on rows alone. Raises HG055."""
    delays = {n: layer for n, layer in enumerate(graph.layers, 1) if isinstance(layer, Delay)}
    behind: set[int] = set()
    for n, layer in enumerate(graph.layers, 1):
        if n in delays or behind.intersection(layer.inputs):
            behind.add(n)
    before = {layer.delayed for layer in delays.values()}
    for n in range(len(graph.layers), 0, -1):
        if n in before:
            before.update(graph.layers[n - 1].inputs)
    for n, layer in enumerate(graph.layers, 1):
        if n in behind & before and n not in delays and not _by_row(layer):
            raise broken(layer.name, "it is in a loop, and does not work on each step alone.")
    for n, layer in delays.items():
        made = graph.layers[layer.delayed - 1].result
        if layer.delayed <= n or made.shape != layer.result.shape or made.type != layer.result.type:
            raise broken(layer.name, "what comes back is no later tensor of its shape and type.")
    return len(delays)


def _by_row(layer: Layer) -> bool:
    match layer:
        case Map() | BinaryMap() | FloatBinary() | PackBytes():
            return True
        case Linear():
            return len(layer.source.shape) > 1
        case View(op=op, source=source, result=result):
            return op.perm[0] == 0 if isinstance(op, Transpose) else source.shape[0] == result.shape[0]
        case Rearrange(op=Slice(ranges), source=source):
            return ranges[0] == (0, source.shape[0], 1)
        case Concatenation(axis=axis):
            return axis > 0
        case _:
            return False


class ComingBack:
    """The streams that are taken before they are sent, by name, with what is assumed of them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.assumed: dict[str, tuple[Delay, int, int]] = {}  # the state, lanes, bits of an element

    def assume(self, name: str, layer: Delay, numbers: Array, width: int) -> StreamContents:
        """A stream of so many bits that carries the Delay's elements behind those of step 0, in order. Raises HG055."""
        own, type_ = numbers[layer.source.size :], layer.result.type
        lanes, rest = divmod(width, type_.bits)
        if rest or layer.source.size % lanes or name in self.assumed:
            raise broken(layer.name, f"stream {name} of {width} bits cannot carry states of {type_}.")
        self.assumed[name] = layer, lanes, type_.bits
        return StreamContents(own.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)

    def sent(self, name: str, stream: StreamContents, numbers: list[Array]) -> bool:
        """True if a stream is one of these; then it carries what was assumed. Raises HG055."""
        if name not in self.assumed:
            return False
        layer, lanes, bits = self.assumed.pop(name)
        wanted = numbers[layer.delayed][: -layer.source.size].reshape(-1, lanes)
        type_ = layer.result.type
        plain = not stream.units and not stream.operands and stream.bits == bits
        if not plain or stream.lo < type_.lo or stream.hi > type_.hi:
            raise broken(layer.name, f"stream {name} that comes back carries other codes than {type_}.")
        if stream.elements.shape != wanted.shape or (stream.elements != wanted).any():
            raise broken(layer.name, f"stream {name} does not bring back the states of the steps before.")
        return True

    def end(self) -> None:
        """Raises HG055 if nothing sends one of them."""
        for name, (layer, *_) in self.assumed.items():
            raise broken(layer.name, f"nothing sends stream {name} that comes back.")
