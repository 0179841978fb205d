"""Words of the bus for the test benches of packages: what goes in, what comes out, and which of its bits count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.host.bus_layout import bus_layout, to_bus
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.testbench.sample_vectors import sample_codes
from hlsgen.testbench.stream_codec import pack, to_text, to_wire


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
    inputs, outputs = sample_codes(network)
    sent = to_bus(pack(to_wire(inputs, graph.input.encoding), network.orders[0], source), source)
    expected = to_bus(pack(outputs, network.orders[-1], result), result)
    type_ = IntType(0, (1 << result.type.bits) - 1)
    ones = np.full((1, *graph.output.shape), type_.hi, np.int64)
    mask = to_bus(pack(ones, network.orders[-1], result), result)
    counted = _unused_high_bits(mask, result.bits, bus_layout(result).slot_bytes)
    into, from_ = bus_layout(source), bus_layout(result)
    return BenchVectors(
        len(inputs), _words(sent, into.word_bytes), _words(expected, from_.word_bytes), _words(counted, from_.word_bytes),
        into.frame_bytes // into.word_bytes, from_.frame_bytes // from_.word_bytes,
    )  # fmt: skip


def _unused_high_bits(mask: Array, bits: int, slot: int) -> Array:
    """The mask with the bits above a beat set: they are 0, and compared."""
    above = np.unpackbits(mask, axis=1, bitorder="little")
    beats = above[:, : above.shape[1] // (8 * slot) * 8 * slot].reshape(len(mask), -1, 8 * slot)
    beats[:, :, bits:] = 1
    above[:, : beats.shape[1] * 8 * slot] = beats.reshape(len(mask), -1)
    return np.packbits(above, axis=1, bitorder="little")


def _words(frames: Array, word: int) -> str:
    return to_text(frames.reshape(-1, word))
