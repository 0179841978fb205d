"""What units cost on FPGAs with tables of six inputs: fitted to Yosys' results for Xilinx 7 series.

Off by 10 % in the median, by half at most (benchmarks/estimates.py); good enough to choose between foldings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from typing_extensions import assert_never

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import (
    INPUT,
    AdderMatVec,
    ArgMaxUnit,
    ConcatBeats,
    ConcatChannels,
    ConvUnit,
    Crop,
    Fifo,
    FloatKeyUnit,
    FloatUnit,
    Fork,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    PadBorder,
    PoolUnit,
    Port,
    Product,
    ReduceTree,
    Reorder,
    RescaleUnit,
    SelectLanes,
    SlidingWindow,
    Stream,
    TiledPool,
    WidthConverter,
    bus_streams,
    regrouped,
)
from hlsgen.dataflow.weighted_units import product_of, weight_bits, weight_words, worth_a_block
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice
from hlsgen.verilog.dot_sizes import dot_tables

#: How weights are held, by option: STYLE of hg_weights.
STYLES = {"auto": 0, "lutram": 1, "bram": 2}
#: Widest input beat of a layer, in bits, that costs nothing but its registers.
WIDE_BEAT = 1024
#: Bits of constants for which a block memory of 18 Kbit is taken, where the tools choose.
BLOCK_BITS = 8200
#: Tables of an accumulator, to a bit of it; and what counts beats, words and frames in a matrix unit.
ACCUMULATOR, CONTROL = 1.2, 70


def memory(words: int, width: int, style: int = 0) -> Cost:
    """Cost of a memory of constants; style as in hg_weights."""
    # A bit is a function of the address, and of up to four words often that of another bit.
    tables = 0.0 if words <= 2 else min(width, 14.0) if words <= 4 else width * (1.0 if words <= 64 else words / 28)
    # 18 Kbit as 512 x 36, 1024 x 18, 2048 x 9, 4096 x 4, 8192 x 2, 16384 x 1.
    shapes = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    blocks = min(-(-words // depth) * -(-width // bits) for depth, bits in shapes)
    if style == 1 or (style == 0 and words * width <= blocks * BLOCK_BITS):
        return Cost(lut=tables)
    return Cost(bram=blocks)


def buffer(words: int, width: int) -> Cost:
    """Cost of a memory that is written as well, such as a line buffer or a FIFO."""
    if words <= 32:
        return Cost(lut=4 * -(-width // 6))
    if words * width <= 2048 and words <= 128:
        return Cost(lut=4 * -(-width // 3) * -(-words // 64))
    return memory(words, width, 2)


def _width(source: Stream, result: Stream) -> float:
    """Tables of hg_width."""
    step, _ = regrouped(source, result)
    if step == result.lanes:
        # A multiplexer of the parts of a beat.
        return 8 + result.bits * (1 + source.lanes // step / 3)
    if step == source.lanes and result.group % result.lanes not in range(1, step + 1):
        return 8 + 1.2 * result.lanes / step
    # Each step that is stored goes to any place.
    return (source.bits + 2 * result.bits) * (1.5 + math.log2(result.lanes / step) / 2)


def _window(depth: int) -> float:
    """Tables that walk through the windows of an image."""
    return 60 + 6 * math.log2(max(2, depth))


def multipliers(x: IntType, bits: int, product: Product, rows: int, simd: int, dsp: bool) -> Cost:
    """Cost of so many rows of products of codes and weights of `bits`, with their sums."""
    if product is Product.INTEGER and dsp and worth_a_block(x, bits, product):
        return Cost(lut=2.0 * rows * simd, dsp=rows * simd)
    return Cost(lut=rows * dot_tables(simd, x.bits, bits, product))


def node_cost(node: Node, *, dsp: bool, style: int) -> Cost:
    """Cost of one unit. A quantizer counts nothing here, its choice says what it costs."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case MatVec() | ConvUnit():
            bits, words = weight_bits(unit), weight_words(unit)
            windows = unit.windows if isinstance(unit, MatVec) else 1
            cost = multipliers(source.type, bits, unit.product, windows * unit.pe, unit.lanes // unit.pe, dsp)
            cost += Cost(lut=ACCUMULATOR * windows * unit.pe * result.type.bits)
            cost += memory(words, unit.lanes * bits, style)
            if isinstance(unit, ConvUnit):
                return cost + Cost(lut=_window(unit.depth)) + buffer(unit.depth, source.bits)
            # A vector of one beat is repeated from a register.
            again = unit.col_folds == 1 and unit.row_folds > 1
            return cost + Cost(lut=CONTROL) + (Cost() if again else buffer(2 * unit.col_folds, source.bits))
        case AdderMatVec():
            return Cost(lut=10.0 + unit.graph.bits)
        case SlidingWindow():
            # One memory for each tap, with the pixels of its column bank or, if they are few, all of the row's.
            wide = unit.span.kernel[1]
            kept = unit.columns * unit.folds
            copied = kept <= (64 if wide > 2 else 32)
            words = kept if copied else -(-unit.columns // wide) * unit.folds
            place = Cost(lut=_window(unit.depth) + result.bits * ((unit.rows > 1) + (wide > 1 and not copied)))
            return sum((buffer(words, source.bits) for _ in range(unit.rows * wide)), place)
        case GroupedMatVec():
            bits, words = weight_bits(unit), weight_words(unit)
            cost = multipliers(source.type, bits, unit.product, unit.pe, unit.lanes // unit.pe, dsp)
            return cost + Cost(lut=ACCUMULATOR * unit.pe * result.type.bits) + memory(words, unit.lanes * bits, style)
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
        case WidthConverter():
            return Cost(lut=_width(source, result))
        case Port(bus):
            # A register, and a counter of beats; the port that sends holds two beats. Words of a bus become beats behind it.
            first = node.inputs == (INPUT,)
            bits = result.bits if bus is None else bus.beat_bits * bus.slots if bus.parts == 1 else bus.width
            cost = Cost(lut=4.0 if first else 19 + 0.7 * bits)
            if bus is None or bus.plain:
                return cost
            outer, inner = bus_streams(bus)
            return cost + Cost(lut=_width(outer, inner) if first else _width(inner, outer))
        case FloatKeyUnit() | FloatUnit() | JoinStreams() | ArgMaxUnit():
            return Cost(lut=float(source.bits + result.bits))
        case _:
            assert_never(unit)


def network_cost(nodes: Iterable[Node], choices: Mapping[str, Choice], *, dsp: bool, style: int) -> Cost:
    """Cost of all units of a network."""
    total = Cost()
    for node in nodes:
        total += node_cost(node, dsp=dsp, style=style)
    for choice in choices.values():
        taken = next(t for t in choice.trials if t.name == choice.name)
        total += Cost(taken.lut or 0.0, taken.dsp, -(-taken.memory_bits // (18 * 1024)))
    return total


def folded_cost(works: Mapping[str, Workload], folding: Folding, *, dsp: bool, style: int) -> Cost:
    """What the multiplying layers of a folding cost, roughly, before anything is planned.

    Behind every result lane a quantizer of its code's bits is counted.
    """
    total = Cost()
    for name, work in works.items():
        pe, simd = folding[name]
        layer, product = work.layer, product_of(work.layer)
        low, high = int(layer.weight.min()), int(layer.weight.max())
        bits = IntType(min(low, -1), high).bits if product is Product.INTEGER else 1
        total += multipliers(layer.source.type, bits, product, pe, simd, dsp)
        total += memory(-(-layer.weight.size // (pe * simd)), pe * simd * bits, style)
        total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * layer.source.type.bits)
        total += Cost(lut=_rotation(work, pe, simd))
    return total


def folding_price(work: Workload, pe: int, simd: int) -> float:
    """Tables of a layer with this folding, roughly, in order to compare it with other foldings of the layer."""
    layer = work.layer
    x_bits, product = layer.source.type.bits, product_of(layer)
    low, high = int(layer.weight.min()), int(layer.weight.max())
    w_bits = IntType(low, high).bits if product is Product.INTEGER else 1
    beat = work.columns_at_once(simd) * x_bits
    tables = pe * dot_tables(simd, x_bits, w_bits, product)
    tables += pe * layer.result.type.bits * 3 + max(0, beat - WIDE_BEAT) * 2
    return tables + _rotation(work, pe, simd)


def _rotation(work: Workload, pe: int, simd: int) -> float:
    """Tables that put the taps of a window in their places in hg_unfold, 0 if they come one by one."""
    lanes = work.elements(pe, simd) * work.taps * work.windows(pe) if work.at_once(pe, simd) else 0
    return 2.0 * lanes * work.layer.source.type.bits
