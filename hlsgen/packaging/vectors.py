"""Words of the bus for the test benches of packages: what goes in, what comes out, and which of its bits count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.testbench.sample_vectors import sample_codes
from hlsgen.testbench.stream_codec import pack, to_bus, to_text, to_wire


@dataclass(frozen=True)
class BenchVectors:
    """Texts of hexadecimal words, and how many there are in a frame. `mask`: of one frame of the output."""

    frames: int
    input: str
    expected: str
    mask: str
    input_words: int
    output_words: int


def bench_vectors(network: Network) -> BenchVectors:
    """The sample frames of a build."""
    graph, source, result = network.graph, network.input, network.output
    into, out = network.layouts
    inputs, outputs = sample_codes(network)
    sent = to_bus(pack(to_wire(inputs, graph.input.encoding), network.orders[0], source), into)
    expected = to_bus(pack(outputs, network.orders[-1], result), out)
    ones = np.full((1, *graph.output.shape), (1 << result.type.bits) - 1, np.int64)
    # Beside the beats all bits are 0, and compared; lanes behind the last element hold anything.
    beat = np.packbits(np.arange(-(-result.bits // 8) * 8) < result.bits, bitorder="little")
    counted = to_bus(pack(ones, network.orders[-1], result), out) | ~to_bus(np.tile(beat, (result.beats, 1)), out)
    return BenchVectors(len(inputs), to_text(sent), to_text(expected), to_text(counted), into.words, out.words)
