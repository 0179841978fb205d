"""Rules of the layers that represent ports: one of several inputs, and several outputs."""

from __future__ import annotations

from hlsgen.ir.graph import StreamedInput, StreamedOutputs
from hlsgen.ir.verify.violations import Place
from hlsgen.numerics.fixed import IntType


def verify_input(place: Place, layer: StreamedInput) -> None:
    """Check that the input lies within the frame and that the frame's type holds its codes."""
    place.require(layer.inputs == (0,), "inputs", layer.inputs, "the input of the graph")
    source, result, end = layer.source, layer.result, layer.offset + layer.result.size
    place.require(layer.offset >= 0 and end <= source.size, "offset", layer.offset, f"within {source.size} elements")
    included = source.type.lo <= result.type.lo and result.type.hi <= source.type.hi
    place.require(included, "result.type", result.type, f"within {source.type}")


def verify_outputs(place: Place, layer: StreamedOutputs) -> None:
    """Check that the frame holds all outputs, in the narrowest type."""
    shape = (sum(source.size for source in layer.sources),)
    place.require(layer.result.shape == shape, "result.shape", layer.result.shape, shape)
    frame_type = IntType(min(s.type.lo for s in layer.sources), max(s.type.hi for s in layer.sources))
    place.require(layer.result.type == frame_type, "result.type", layer.result.type, frame_type)
    place.require(len(layer.ports) == len(layer.sources), "ports", layer.ports, "a port for each source")
