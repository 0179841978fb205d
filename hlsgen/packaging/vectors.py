"""Bus words for the test benches of packages: inputs, expected outputs, and masks of the valid output bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.network import CorePort, Network
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.testbench.sample_vectors import sample_codes, sample_vectors
from hlsgen.testbench.stream_codec import pack, to_bus, to_text


@dataclass(frozen=True)
class BenchVectors:
    """Test vectors: number of frames, and files with hexadecimal words by the ends of their names.

    files: input.hex, expected.hex, and mask.hex for one output frame; one of each for every port.
    """

    frames: int
    files: dict[str, str]


def bench_vectors(network: Network) -> BenchVectors:
    """Test vectors of the sample frames of a build."""
    codes = sample_codes(network)
    masks = {f"mask{port.label}.hex": to_text(_mask(port)) for port in network.outputs}
    return BenchVectors(len(codes[0]), sample_vectors(network, *codes) | masks)


def _mask(port: CorePort) -> Array:
    """Mask of the valid bits in the words of a frame: lanes without an element are undefined."""
    result = port.stream
    counted = (1 << result.type.bits) - 1
    stream = type(result)(IntType(0, counted), result.lanes, result.beats, result.group)
    ones = np.full((1, port.value.size), counted, np.int64)
    beats = pack(ones, port.order, stream)
    used = np.unpackbits(beats, axis=1, bitorder="little")
    lanes = np.ones_like(used)
    lanes[:, : result.bits] = used[:, : result.bits]
    empty = to_bus(np.packbits(1 - lanes, axis=1, bitorder="little"), port.layout)
    return ~empty
