"""Normalizations become units: a fork, moments, root, a FIFO beside both, and the scaling of the elements."""

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
    """As few lanes and roots under way as a frame in the target's cycles needs."""
    length, size = layer.source.shape[-1], layer.source.size
    count = size // length
    flow = b.take(i, 0, name)
    enough = next(d for d in divisors(length) if size // d <= b.target or d == length)
    flow = b.dense(flow, min(flow.stream.lanes, enough), length, f"{name}_width")
    centered = layer.kind is NormKind.LAYER
    rows = RowCodes(length, layer.source.type, layer.factor.bit_length() - 1, layer.offset, centered)
    lanes = flow.stream.lanes
    root = units_of(rows, layer.addend, lanes, 1)[1]
    pace = max(length // lanes, b.target // count)
    moments, root, scale = units_of(rows, layer.addend, lanes, -(-(root.cycles + 1) // pace))

    def words(bits: int) -> IntType:
        return IntType(0, (1 << bits) - 1)

    ways = b.forked(flow, 2, f"{name}_split")
    sums = stream_of(words(root.moment_bits + root.sum_bits), 1, count, 1)
    factors = replace(sums, type=words(root.constants.step_bits + SIGNIFICAND + root.sum_bits))
    row = b.append(f"{name}_moments", moments, [ways[0]], sums, layer.name)
    row = b.append(f"{name}_root", root, [row], factors, layer.name)
    codes = b.waiting(ways[1], f"{name}_wait")
    return b.append(name, scale, [codes, row], replace(flow.stream, type=FLOAT_WORD), layer.name, i)
