"""What units cost on FPGAs with tables of six inputs: fitted to Yosys' results for Xilinx 7 series.

Good to about a third for whole networks; good enough to choose between foldings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from hlsgen.dataflow.folding import Folding, Workload, rotation
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import (
    ConcatBeats,
    ConcatChannels,
    ConvUnit,
    Crop,
    Fifo,
    Fork,
    GroupedMatVec,
    MatVec,
    Node,
    PadBorder,
    PoolUnit,
    ReduceTree,
    Reorder,
    RescaleUnit,
    SelectLanes,
    SlidingWindow,
    TiledPool,
)
from hlsgen.ir import Graph
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice

#: How weights are held, by option: STYLE of hg_weights.
STYLES = {"auto": 0, "lutram": 1, "bram": 2}
#: Tables that one block memory of 18 Kbit is worth, where the tools choose.
BLOCK_LUT = 150


def memory(words: int, width: int, style: int = 0) -> Cost:
    """A memory with one read port; style as in hg_weights."""
    # Yosys maps tables of constants in the midst of other logic at about a LUT for 14 bits.
    tables = 1.6 * width if words <= 64 else words * width / 14
    # 18 Kbit as 512 x 36, 1024 x 18, 2048 x 9, 4096 x 4, 8192 x 2, 16384 x 1.
    shapes = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    blocks = min(-(-words // depth) * -(-width // bits) for depth, bits in shapes)
    if style == 1 or (style == 0 and tables <= blocks * BLOCK_LUT):
        return Cost(lut=tables)
    return Cost(bram=blocks)


def buffer(words: int, width: int) -> Cost:
    """A memory that is written as well, of a line buffer or FIFO."""
    if words <= 32:
        return Cost(lut=4 * -(-width // 6))
    if words * width <= 2048 and words <= 128:
        return Cost(lut=4 * -(-width // 3) * -(-words // 64))
    return memory(words, width, 2)


def _window(depth: int) -> float:
    """Tables that walk through the windows of an image."""
    return 60 + 6 * math.log2(max(2, depth))


def multipliers(x: IntType, weight_bits: int, mode: int, count: int, dsp: bool) -> Cost:
    """So many products of codes and weights with their share of the adder tree; mode as in hg_dot."""
    if mode == 2:
        return Cost(lut=0.6 * count)
    if mode == 1:
        return Cost(lut=(x.bits + 2) * count)
    if dsp and weight_bits > 2 and x.bits > 2:
        return Cost(lut=2.0 * count, dsp=count)
    return Cost(lut=(0.6 * x.bits * weight_bits + x.bits + weight_bits) * count)


def node_cost(node: Node, *, dsp: bool, style: int) -> Cost:
    """One unit, without what a quantizer costs: that is known from its choice."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case MatVec() | ConvUnit():
            bits = 1 if unit.mode else weight_bits(int(unit.weight.min()), int(unit.weight.max()))
            depthwise = isinstance(unit, ConvUnit) and unit.depthwise
            lanes = unit.pe if depthwise else unit.pe * unit.simd
            words = unit.weight.size // lanes
            windows = unit.windows if isinstance(unit, MatVec) else 1
            cost = multipliers(source.type, bits, unit.mode, windows * lanes, dsp)
            cost += Cost(lut=windows * unit.pe * result.type.bits) + memory(words, lanes * bits, style)
            if isinstance(unit, ConvUnit):
                return cost + Cost(lut=_window(unit.depth)) + buffer(unit.depth, source.bits)
            return cost + Cost(lut=40) + buffer(2 * unit.col_folds, source.bits)
        case SlidingWindow():
            # One memory for each tap, with the pixels of its column bank or, if they are few, all of the row's.
            wide = unit.span.kernel[1]
            kept = unit.columns * unit.folds
            copied = kept <= (64 if wide > 2 else 32)
            words = kept if copied else -(-unit.columns // wide) * unit.folds
            place = Cost(lut=_window(unit.depth) + result.bits * ((unit.rows > 1) + (wide > 1 and not copied)))
            return sum((buffer(words, source.bits) for _ in range(unit.rows * wide)), place)
        case GroupedMatVec():
            bits = 1 if unit.mode else weight_bits(int(unit.weight.min()), int(unit.weight.max()))
            lanes = unit.pe * unit.simd
            cost = multipliers(source.type, bits, unit.mode, lanes, dsp) + Cost(lut=unit.pe * result.type.bits)
            return cost + memory(len(unit.weight), lanes * bits, style)
        case ReduceTree():
            return Cost(lut=1.5 * unit.taps * result.bits)
        case PoolUnit():
            return Cost(lut=_window(unit.depth) + 4 * result.bits) + buffer(unit.depth, source.bits)
        case TiledPool():
            memory_cost = buffer(unit.words, result.bits) if unit.words > 1 else Cost()
            return Cost(lut=30 + 2 * result.bits) + memory_cost
        case Fifo(depth):
            return Cost(lut=25) + buffer(depth, source.bits)
        case Reorder(block):
            return Cost(lut=60) + buffer(2 * block, source.bits)
        case SelectLanes():
            return Cost()
        case Fork(count):
            return Cost(lut=3.0 * count)
        case ConcatBeats() | ConcatChannels():
            return Cost(lut=20.0 + result.bits)
        case Crop() | PadBorder():
            return Cost(lut=40.0 + result.bits)
        case RescaleUnit():
            return Cost()
        case _:
            return Cost(lut=float(source.bits + result.bits))


def weight_bits(low: int, high: int) -> int:
    """Bits of the two's complement of weights in that interval."""
    return IntType(min(low, -1), high).bits


def network_cost(
    nodes: Iterable[Node], choices: Mapping[str, Choice], *, dsp: bool, style: int
) -> Cost:  # fmt: skip
    """All units."""
    total = Cost()
    for node in nodes:
        total += node_cost(node, dsp=dsp, style=style)
    for choice in choices.values():
        taken = next(t for t in choice.trials if t.name == choice.name)
        total += Cost(taken.lut or 0.0, taken.dsp, -(-taken.memory_bits // (18 * 1024)))
    return total


def folded_cost(graph: Graph, works: Mapping[str, Workload], folding: Folding, *, dsp: bool, style: int) -> Cost:
    """What the multiplying layers of a folding cost, roughly, before anything is planned.

    Behind every result lane a quantizer of its code's bits is counted.
    """
    total = Cost()
    for name, work in works.items():
        pe, simd = folding[name]
        layer = work.layer
        bipolar = bool((abs(layer.weight) == 1).all())
        mode = 2 if layer.binary else 1 if bipolar else 0
        bits = 1 if mode else weight_bits(int(layer.weight.min()), int(layer.weight.max()))
        total += multipliers(layer.source.type, bits, mode, pe * simd, dsp)
        total += memory(-(-layer.weight.size // (pe * simd)), pe * simd * bits, style)
        total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * layer.source.type.bits)
        total += Cost(lut=rotation(work, pe, simd))
    return total
