"""Lowers normalizations to a fork, moments, root, a parallel FIFO, and the scaling of the elements."""

from __future__ import annotations

from dataclasses import replace

from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.norm_units import RowCodes, units_of
from hlsgen.dataflow.units import FLOAT_WORD, stream_of
from hlsgen.dataflow.workload import divisors
from hlsgen.ir import NormKind, NormRows
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.normalization import SIGNIFICAND


def normalization(b: NetworkBuilder, i: int, layer: NormRows, name: str) -> NamedStream:
    """Uses the fewest lanes and roots in flight that meet the target's cycles a frame."""
    length, size = layer.source.shape[-1], layer.source.size
    count = size // length
    flow = b.input_stream(i, 0, name)
    min_lanes = next(d for d in divisors(length) if size // d <= b.target or d == length)
    flow = b.dense(flow, min(flow.stream.lanes, min_lanes), length, f"{name}_width")
    centered = layer.kind is NormKind.LAYER
    rows = RowCodes(length, layer.source.type, layer.factor.bit_length() - 1, layer.offset, centered)
    lanes = flow.stream.lanes
    root = units_of(rows, layer.addend, lanes, 1)[1]
    interval = max(length // lanes, b.target // count)
    moments, root, scale = units_of(rows, layer.addend, lanes, -(-(root.cycles + 1) // interval))

    def words(bits: int) -> IntType:
        return IntType(0, (1 << bits) - 1)

    branches = b.forked(flow, 2, f"{name}_split")
    sums = stream_of(words(root.moment_bits + root.sum_bits), 1, count, 1)
    factors = replace(sums, type=words(root.constants.step_bits + SIGNIFICAND + root.sum_bits))
    row = b.append(f"{name}_moments", moments, [branches[0]], sums, layer.name)
    row = b.append(f"{name}_root", root, [row], factors, layer.name)
    codes = b.buffered(branches[1], f"{name}_wait")
    return b.append(name, scale, [codes, row], replace(flow.stream, type=FLOAT_WORD), layer.name, i)
