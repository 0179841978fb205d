"""What units are made of: the tables and registers that their structure lets expect, on tables of six inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from typing_extensions import assert_never

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.norm_units import NormUnit, root_bits
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.row_sizes import NormSizes, ShareSizes
from hlsgen.dataflow.units import (
    INPUT,
    AdderMatVec,
    ArgMaxUnit,
    ConcatBeats,
    ConcatChannels,
    ConvUnit,
    Crop,
    DynamicMatVec,
    Fifo,
    FloatKeyUnit,
    FloatUnit,
    Fork,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    NormMoments,
    NormRoot,
    NormScale,
    PadBorder,
    PoolUnit,
    Port,
    Product,
    ReduceTree,
    Reorder,
    RescaleUnit,
    RowsUnit,
    SelectLanes,
    Slice,
    SlidingWindow,
    SoftmaxUnit,
    Stream,
    TiledPool,
    WeightedUnit,
    WidthConverter,
    bus_streams,
    regrouped,
)
from hlsgen.dataflow.weighted_units import weight_bits, weight_words, worth_a_block
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice
from hlsgen.verilog.dot_sizes import dot_form, dot_tables, sum_tables
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.quantizer_parts import is_quantizer, quantizer_parts

#: Bits of constants for which a block memory of 18 Kbit is taken, where the tools choose.
BLOCK_BITS = 8256
#: Words of weights beyond which Yosys, of two ways that it holds to be equal, takes the larger one for products.
DEEP = 36
#: What Yosys weighs a memory of four tables, 64 x 3 bits, and a block memory with.
PIECE, BLOCK = 8, 129
#: Tables that say when a matrix unit works.
CONTROL = 15.0


def memory(words: int, width: int, style: int = 0) -> Cost:
    """Cost of a memory of constants; style as in hg_weights."""
    # A bit is a function of the address, and of up to four words often that of another bit.
    tables = 0.0 if words <= 2 else min(width, 14.0) if words <= 4 else width * (1.0 if words <= 64 else words / 28)
    # 18 Kbit as 512 x 36, 1024 x 18, 2048 x 9, 4096 x 4, 8192 x 2, 16384 x 1.
    shapes = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    blocks = min(-(-words // depth) * -(-width // bits) for depth, bits in shapes)
    # A block of which a few bits are taken weighs little.
    full = max(1.0, min(-(-words // depth) * width / bits for depth, bits in shapes))
    if style == 1 or (style == 0 and words * width <= full * BLOCK_BITS):
        return Cost(lut=tables)
    return Cost(bram=blocks)


def buffer(words: int, width: int) -> Cost:
    """Cost of a memory that is written as well, such as a line buffer or a FIFO."""
    if words <= 32:
        return Cost(lut=4 * -(-width // 6))
    banks, blocks = -(-words // 64), memory(words, width, 2)
    pieces = banks * -(-width // 3)
    if pieces * PIECE > blocks.bram * BLOCK:
        return blocks
    return Cost(lut=4 * pieces + (width * -(-banks // 4) if banks > 1 else 0))


def _regrouping(source: Stream, result: Stream) -> Parts:
    """hg_width."""
    step, _ = regrouped(source, result)
    if step == result.lanes:
        # A multiplexer of the parts of a beat.
        lut = {"control": 8.0, "data": result.bits * (1 + source.lanes // step / 3)}
        return Parts("narrow", lut, {"control": 4.0, "data": float(source.bits)})
    if step == source.lanes and result.group % result.lanes not in range(1, step + 1):
        lut = {"control": 8.0, "data": 1.2 * result.lanes / step}
        return Parts("widen", lut, {"control": 4.0, "data": float(result.bits)})
    # Each step that is stored goes to any place.
    lut = {"control": 8.0, "data": (source.bits + 2 * result.bits) * (1.5 + math.log2(result.lanes / step) / 2)}
    return Parts("gearbox", lut, {"control": 8.0, "data": float(source.bits + result.bits)})


def _port(node: Node, bus: BusLayout | None) -> Parts:
    """A register, and a counter of beats; the port that sends holds two. Words of a bus become beats behind it."""
    first = node.inputs == (INPUT,)
    stream = node.source if first else node.result
    count = (stream.beats if bus is None else bus.words).bit_length()
    bits = float(stream.bits if bus is None else bus.beat_bits * bus.slots if bus.parts == 1 else bus.width)
    if first:
        parts = Parts("input port", {"count": 2.0 * count}, {"count": 2.0 * count, "data": bits})
    else:
        lut = {"control": 10.0, "count": 1.5 * count, "data": 0.7 * bits}
        parts = Parts("output port", lut, {"control": 8.0, "count": float(count), "data": 2.0 * bits})
    if bus is not None and not bus.plain:
        outer, inner = bus_streams(bus)
        change = _regrouping(outer, inner) if first else _regrouping(inner, outer)
        parts.lut["bus"], parts.ff["bus"] = sum(change.lut.values()), sum(change.ff.values())
    return parts


def _walk(depth: int) -> float:
    """Tables that walk through the windows of an image."""
    return 60 + 6 * math.log2(max(2, depth))


def multipliers(x: IntType, bits: int, product: Product, rows: int, simd: int, dsp: bool) -> Cost:
    """Cost of so many rows of products of codes and weights of `bits`, with their sums."""
    if product is Product.INTEGER and dsp and worth_a_block(x, bits, product):
        return Cost(lut=float(rows * sum_tables(simd, x.bits + bits)), dsp=rows * simd)
    return Cost(lut=rows * dot_tables(simd, x.bits, bits, product))


def _multiplying(node: Node, unit: WeightedUnit, rows: int, simd: int, dsp: bool, style: int) -> Parts:
    """Rows of products with their sums, and the weights; `rows` of all windows."""
    x, bits, words = node.source.type, weight_bits(unit), weight_words(unit)
    blocks = dsp and worth_a_block(x, bits, unit.product)
    form = "blocks" if blocks else dot_form(x.bits, bits, unit.product)
    products = multipliers(x, bits, unit.product, rows, simd, dsp)
    parts = Parts(type(unit).__name__, dsp=products.dsp)
    parts.lut = {form: products.lut, "sums": float(rows * node.result.type.bits), "control": CONTROL}
    parts.ff = {
        form: products.lut, "sums": float(rows * node.result.type.bits), "control": 20.0,
        "codes": float(node.source.bits), "weights": float(unit.lanes * bits if words > 1 else 0),
    }  # fmt: skip
    if DEEP < words <= 64:
        parts.lut["deep"] = products.lut
    parts.hold("weights", memory(words, unit.lanes * bits, style))
    return parts


def _products(node: Node, unit: DynamicMatVec, dsp: bool) -> Parts:
    """Rows of products of two streams with their sums; both operands are held in registers."""
    x, word, (left, right) = unit.operands[0], unit.word, node.sources
    products = multipliers(x, word.bits, Product.INTEGER, unit.pe, unit.simd, dsp)
    form = "blocks" if products.dsp else dot_form(x.bits, word.bits, Product.INTEGER)
    sums = float(unit.pe * node.result.type.bits)
    zeros = [stream.bits for stream, offset in zip((left, right), unit.offsets, strict=True) if offset]
    parts = Parts("MatVec", dsp=products.dsp)
    parts.lut = {form: products.lut, "sums": sums, "control": CONTROL, "zeros": float(sum(zeros))}
    codes = float(x.bits * left.lanes + word.bits * right.lanes)
    parts.ff = {form: products.lut, "sums": sums, "control": 20.0, "codes": codes}
    return parts


def _softmax(node: Node, unit: SoftmaxUnit) -> Parts:
    """Rows that wait, tables for each lane, one sum, one division a row, a multiplication for each lane."""
    lanes, bits, distance = unit.lanes, node.source.type.bits, max(1, unit.last.bit_length())
    power = 32 if unit.in_order else unit.fraction + 1
    parts = Parts(
        "SoftmaxUnit", {"control": 60.0, "codes": 3.0 * lanes * bits}, {"control": 60.0, "in": 3.0 * node.source.bits}
    )
    parts.lut |= {"sum": 450.0 if unit.in_order else 150.0 + 4.0 * power + lanes * power, "division": 900.0}
    parts.ff |= {"sum": 32.0 if unit.in_order else 2.0 * (lanes + 2) * power, "division": 1400.0}
    if not unit.in_order:
        parts.lut["products"], parts.ff["products"] = 900.0 * lanes, 330.0 * lanes
    for words, width in ((unit.last + 1, power), (unit.last + 1, 32)):
        for _ in range(lanes):
            parts.hold("tables", memory(words, width))
    parts.hold("buffer", buffer(2 * unit.beats, node.source.bits))
    parts.hold("waiting", buffer(unit.delay, lanes * distance))
    return parts


def unit_parts(node: Node, *, dsp: bool, style: int) -> Parts:
    """What a unit is made of; a quantizer has no tables here, its choice says what it costs."""
    unit, source, result = node.unit, node.source, node.result
    beats = {"control": 8.0, "in": float(source.bits), "out": float(result.bits)}
    match unit:
        case MatVec():
            parts = _multiplying(node, unit, unit.windows * unit.pe, unit.lanes // unit.pe, dsp, style)
            parts.lut["control"] = CONTROL
            parts.lut["counters"] = 2.0 * weight_words(unit).bit_length() + unit.row_folds.bit_length()
            # A vector of one beat is repeated from a register, others from a memory, of a few beats if they are used once.
            if unit.col_folds == 1 and unit.row_folds > 1:
                parts.ff["waits"] = 2.0 * source.bits
                return parts
            depth = 4 if unit.row_folds == 1 and unit.col_folds > 2 else 2 * unit.col_folds
            parts.lut["replay"] = 15.0 + 5 * depth.bit_length()
            parts.ff["replay"] = 10.0 + 5 * depth.bit_length()
            parts.hold("buffer", buffer(depth, source.bits))
            return parts
        case ConvUnit():
            parts = _multiplying(node, unit, unit.pe, unit.lanes // unit.pe, dsp, style)
            parts.lut["control"] = _walk(unit.depth)
            parts.ff["control"] = _walk(unit.depth)
            parts.hold("buffer", buffer(unit.depth, source.bits))
            return parts
        case DynamicMatVec():
            return _products(node, unit, dsp)
        case GroupedMatVec():
            return _multiplying(node, unit, unit.pe, unit.lanes // unit.pe, dsp, style)
        case AdderMatVec():
            return Parts("AdderMatVec", {"sums": 10.0 + unit.graph.bits}, {"sums": float(unit.graph.bits), **beats})
        case SlidingWindow():
            # One memory for each tap, with the pixels of its column bank or, if they are few, all of the row's.
            wide = unit.span.kernel[1]
            kept = unit.columns * unit.folds
            copied = kept <= (64 if wide > 2 else 32)
            words = kept if copied else -(-unit.columns // wide) * unit.folds
            walk, turned = _walk(unit.depth), result.bits * ((unit.rows > 1) + (wide > 1 and not copied))
            parts = Parts("SlidingWindow", {"control": walk, "turned": float(turned)}, {**beats, "control": walk})
            for _ in range(unit.rows * wide):
                parts.hold("buffer", buffer(words, source.bits))
            return parts
        case ReduceTree():
            return Parts("ReduceTree", {"data": 1.5 * unit.taps * result.bits}, beats)
        case PoolUnit():
            walk = _walk(unit.depth)
            parts = Parts("PoolUnit", {"control": walk, "data": 4.0 * result.bits}, {**beats, "control": walk})
            parts.hold("buffer", buffer(unit.depth, source.bits))
            return parts
        case TiledPool():
            parts = Parts("TiledPool", {"control": 30.0, "data": 2.0 * result.bits}, {**beats, "control": 20.0})
            if unit.words > 1:
                parts.hold("buffer", buffer(unit.words, result.bits))
            return parts
        case Fifo(depth):
            parts = Parts("Fifo", {"control": 25.0}, {"control": 15.0, "out": float(result.bits)})
            parts.hold("buffer", buffer(depth, source.bits))
            return parts
        case Slice():
            return Parts(
                "Slice", {"control": 3.0, "data": float(result.bits)}, {"control": 2.0, "data": 2.0 * result.bits}
            )
        case Reorder(block):
            parts = Parts("Reorder", {"control": 60.0}, {"control": 40.0, "out": float(result.bits)})
            parts.hold("buffer", buffer(2 * block, source.bits))
            return parts
        case RowsUnit():
            return row_parts(node, unit)
        case SoftmaxUnit():
            return _softmax(node, unit)
        case SelectLanes():
            return Parts("SelectLanes")
        case Fork(count):
            return Parts("Fork", {"control": 3.0 * count}, {"control": float(count)})
        case ConcatBeats() | ConcatChannels():
            return Parts("Concat", {"control": 20.0, "data": float(result.bits)}, beats)
        case Crop() | PadBorder():
            return Parts("Crop", {"control": 40.0, "data": float(result.bits)}, beats)
        case RescaleUnit():
            return Parts("RescaleUnit", {}, beats)
        case WidthConverter():
            return _regrouping(source, result)
        case Port(bus):
            return _port(node, bus)
        case NormMoments() | NormRoot() | NormScale():
            return _normalizing(unit, source, dsp)
        case FloatKeyUnit() | FloatUnit() | JoinStreams() | ArgMaxUnit():
            return Parts(type(unit).__name__, {"data": float(source.bits + result.bits)}, beats)
        case _:
            assert_never(unit)


def row_parts(node: Node, unit: RowsUnit) -> Parts:
    """The memory of rows, what is summed or compared on the way in, and a divider a lane on the way out."""
    lanes, source, result = node.source.lanes, node.source, node.result
    parts = Parts("RowsUnit", {"control": 40.0}, {"control": 40.0, "in": 2.0 * source.bits, "out": float(result.bits)})
    parts.hold("buffer", buffer(2 * unit.beats, source.bits))
    match unit.function:
        case BelowLargest():
            parts.lut["largest"] = 2.0 * source.bits + result.bits
        case Share():
            sizes = ShareSizes.of(unit.function, unit.source, unit.count)
            bits = result.type.bits
            parts.lut["divide"] = 2.0 * lanes * bits * (sizes.sum + 1)
            parts.ff["divide"] = 1.0 * lanes * bits * (sizes.sum + bits) + bits * sizes.sum
            parts.lut["sums"] = 1.2 * lanes * sizes.sum
            for _ in range(lanes):
                parts.hold("weights", memory(1 << unit.source.bits, sizes.weight))
                parts.hold("numbers", memory(1 << unit.source.bits, sizes.number))
        case IntegerNorm():
            own = NormSizes.of(unit.function, unit.source, unit.count)
            products = unit.source.bits**2 / 2 + (unit.source.bits + 2) * own.weight / 2
            products += own.bias * own.root / 2 if unit.function.bias.any() else 0.0
            parts.lut["products"] = lanes * products
            parts.lut["divide"] = 2.0 * lanes * own.quotient * (own.root + 1)
            parts.ff["divide"] = 1.0 * lanes * own.quotient * (own.root + own.quotient)
            parts.lut["root"] = 3.0 * own.root * own.squares
            parts.ff["root"] = 2.0 * own.root * own.squares
            parts.hold("places", memory(unit.beats, lanes * (own.weight + own.bias)))
        case _:
            assert_never(unit.function)
    return parts


def _normalizing(unit: NormUnit, source: Stream, dsp: bool) -> Parts:
    """Counted from the structure of the modules."""
    match unit:
        case NormMoments(rows, _, moment):
            bits = IntType(min(-1, rows.ends[0]), max(0, rows.ends[1])).bits
            lut = source.lanes * (bits * bits / 2 + 4 * bits) + 3.0 * moment + rows.sum_bits**2 / 2
            ff = source.lanes * 6.0 * bits + 3 * moment + 3 * rows.sum_bits
            return Parts("NormMoments", {"data": lut, "control": 10.0}, {"data": ff, "control": 12.0})
        case NormRoot(constants, moment, sum_, ways):
            wide = root_bits(unit)
            lut = ways * (4.0 * (wide + 28) + wide + moment)
            ff = ways * (2.0 * (wide + 28) + 2 * wide + moment + sum_ + 56 + constants.step_bits)
            out = ways * (constants.step_bits + 24 + sum_) / 2 if ways > 1 else 0.0
            return Parts("NormRoot", {"data": lut + out, "control": 20.0 * ways}, {"data": ff, "control": 12.0 * ways})
        case NormScale(_, _, element, _):
            blocks = -(-element // 17) * 2 if dsp else 0
            product = 0.0 if dsp else element * 13.0
            lut = source.lanes * (product + element * 8 + 60)
            ff = source.lanes * (5.0 * element + 2 * (element + 24) + 90)
            return Parts(
                "NormScale", {"data": lut, "control": 12.0}, {"data": ff, "control": 140.0}, dsp=source.lanes * blocks
            )
        case _:
            assert_never(unit)


def node_parts(node: Node, choices: Mapping[str, Choice], counted: set[str], *, dsp: bool, style: int) -> Parts:
    """Of a unit; of quantizers as their choices say. `counted`: layers of which a node had the price of the whole."""
    if not is_quantizer(node, choices):
        return unit_parts(node, dsp=dsp, style=style)
    first = node.layer not in counted
    counted.add(node.layer)
    return quantizer_parts(node, choices[node.layer], first, memory)
