"""Words of the bus for the test benches of packages: what goes in, what comes out, and which of its bits count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.testbench.sample_vectors import sample_codes, sample_vectors
from hlsgen.testbench.stream_codec import pack, to_bus, to_text


@dataclass(frozen=True)
class BenchVectors:
    """Texts of hexadecimal words; `mask`: of one frame of the output."""

    frames: int
    input: str
    expected: str
    mask: str


def bench_vectors(network: Network) -> BenchVectors:
    """The sample frames of a build."""
    codes = sample_codes(network)
    texts = sample_vectors(network, *codes)
    return BenchVectors(len(codes[0]), texts["input.hex"], texts["expected.hex"], to_text(_mask(network)))


def _mask(network: Network) -> Array:
    """All bits of the output's words but those of lanes without an element, which hold anything."""
    (port,) = network.outputs
    result, layout = port.stream, port.layout
    counted = (1 << result.type.bits) - 1
    stream = type(result)(IntType(0, counted), result.lanes, result.beats, result.group)
    ones = np.full((1, *network.graph.output.shape), counted, np.int64)
    beats = pack(ones, port.order, stream)
    used = np.unpackbits(beats, axis=1, bitorder="little")
    lanes = np.ones_like(used)
    lanes[:, : result.bits] = used[:, : result.bits]
    empty = to_bus(np.packbits(1 - lanes, axis=1, bitorder="little"), layout)
    return ~empty
