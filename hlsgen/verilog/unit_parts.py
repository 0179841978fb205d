"""Parts of units: the LUTs and registers expected from their structure, on LUTs of six inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from typing_extensions import assert_never

from hlsgen.adder_graph import AgreementGraph
from hlsgen.dataflow.ends import enters
from hlsgen.dataflow.network import bus_streams
from hlsgen.dataflow.norm_units import NormUnit, root_bits
from hlsgen.dataflow.row_sizes import NormSizes, ShareSizes
from hlsgen.dataflow.units import (
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
    regrouping_step,
)
from hlsgen.dataflow.weighted_units import weight_bits, weight_words
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice
from hlsgen.verilog.dot_sizes import COUNTER, dot_form, shared_registers
from hlsgen.verilog.matrix_parts import CONTROL, FACTOR_BITS, Matrix, block_form, matrix_parts, multipliers, walking
from hlsgen.verilog.memory_sizes import buffer, memory
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.quantizer_parts import is_quantizer, quantizer_parts
from hlsgen.verilog.sum_tables import unit_sizes
from hlsgen.verilog.weight_packing import weight_style


def regrouping(source: Stream, result: Stream) -> Parts:
    """Parts of hg_width."""
    step, _ = regrouping_step(source, result)
    if step == result.lanes:
        # A multiplexer of the parts of a beat.
        lut = {"control": 8.0, "data": result.bits * (1 + source.lanes // step / 3)}
        return Parts("narrow", lut, {"control": 4.0, "data": float(source.bits)})
    if step == source.lanes and result.group % result.lanes not in range(1, step + 1):
        alike = result.group % result.lanes == 0 or result.group < result.lanes
        # Elements are shifted in from one end or one of two, or each place has an enable of its own.
        places = result.lanes / step
        shift = 1.2 * math.log2(places) + (0.0 if alike else 2.0 * source.bits)
        lut = {"control": 8.0, "data": shift if alike or 2 * source.bits <= places else 1.2 * places}
        return Parts("widen", lut, {"control": 4.0, "data": float(result.bits)})
    # Each stored step can go to any place.
    lut = {"control": 8.0, "data": (source.bits + 2 * result.bits) * (1.5 + math.log2(result.lanes / step) / 2)}
    return Parts("gearbox", lut, {"control": 8.0, "data": float(source.bits + result.bits)})


def turning(slots: int) -> float:
    """LUTs that rotate this many rows of a line buffer, for each bit that leaves it."""
    return (slots > 1) * (1.0 if slots <= 4 else 3.7)


def _port(node: Node, port: Port, family: str) -> Parts:
    """A register, and a counter of beats; a port that cuts ready holds two beats. Bus words become beats after it."""
    first, bus = enters(node), port.bus
    stream = node.source if first else node.result
    count = (stream.beats if bus is None else bus.words).bit_length()
    bits = float(stream.bits if bus is None else bus.beat_bits * bus.slots if bus.parts == 1 else bus.width)
    if first:
        parts = Parts("input port", {"count": 2.0 * count}, {"count": 2.0 * count})
        if port.cuts_ready:
            parts.lut["control"], parts.ff["control"] = 8.0, 8.0
            parts.hold("buffer", buffer(2, int(bits), family, write_first=True))
        else:
            parts.ff["data"] = bits
    elif port.cuts_ready:
        parts = Parts("output port", {"control": 2.0, "count": 1.5 * count}, {"count": float(count), "data": bits + 2})
    else:
        lut = {"control": 10.0, "count": 1.5 * count, "data": 0.7 * bits}
        parts = Parts("output port", lut, {"control": 8.0, "count": float(count), "data": 2.0 * bits})
    if bus is not None and not bus.plain:
        outer, inner = bus_streams(bus)
        change = regrouping(outer, inner) if first else regrouping(inner, outer)
        parts.lut["bus"], parts.ff["bus"] = sum(change.lut.values()), sum(change.ff.values())
    return parts


def _products(node: Node, unit: DynamicMatVec, dsp: int, family: str) -> Parts:
    """Rows of products of two streams with their sums; both operands are held in registers."""
    x, word, (first_stream, second_stream) = unit.operands[0], unit.word, node.sources
    products = multipliers(x, word.bits, Product.INTEGER, unit.pe, unit.simd, dsp, family, unit.pe)
    form = block_form(x, word.bits, unit.pe, unit.simd, dsp) if products.dsp else dot_form(Product.INTEGER)
    sums = float(unit.pe * node.result.type.bits)
    zeros = [stream.bits for stream, offset in zip((first_stream, second_stream), unit.offsets, strict=True) if offset]
    parts = Parts("MatVec", dsp=products.dsp)
    parts.lut = {form: products.lut, "sums": sums, "control": CONTROL, "zeros": float(sum(zeros))}
    codes = float(x.bits * first_stream.lanes + word.bits * second_stream.lanes)
    parts.ff = {form: products.ff or products.lut, "sums": sums, "control": 20.0, "codes": codes}
    if form == "pairs":
        parts.ff["shared"] = shared_registers(unit.simd, x.bits, word.bits, Product.INTEGER)
    return parts


def _softmax(node: Node, unit: SoftmaxUnit, dsp: int, family: str) -> Parts:
    """A buffer of vectors, lookup tables and a product for each lane, one sum and one division for each vector."""
    lanes, bits, distance = unit.lanes, node.source.type.bits, max(1, unit.last.bit_length())
    power = 32 if unit.in_order else unit.fraction + 1
    parts = Parts(
        "SoftmaxUnit", {"control": 60.0, "codes": 3.0 * lanes * bits}, {"control": 60.0, "in": 3.0 * node.source.bits}
    )
    if unit.in_order:
        parts.lut |= {"sum": 450.0, "division": 1850.0}
        parts.ff |= {"sum": 32.0, "division": 900.0}
    else:
        stages = -(-12 // min(12, unit.beats))
        parts.lut |= {"sum": 140.0 + lanes * power, "division": 25 + (50.0 if unit.beats == 1 else 100.0) * stages}
        parts.ff |= {"sum": 100.0 + 1.7 * lanes * power, "division": 60.0 + 75.0 * stages}
        blocks = bool(dsp and not unit.tiny)
        parts.lut["products"] = lanes * (52.0 if blocks else 1580.0 if unit.tiny else 1170.0)
        parts.ff["products"] = lanes * (60.0 if blocks else 320.0 if unit.tiny else 170.0)
        parts.dsp = 2 * lanes * blocks * -(-24 // dsp) if blocks else 0
    tables, waiting = [(unit.last + 1, power), (unit.last + 1, 32)], distance
    if unit.factors is not None:
        bits, waiting = unit.factors.bits, 31
        tables = [(len(unit.factors.mantissas), bits + 8), (len(unit.factors.lows), bits + 1)]
        parts.lut["factors"], parts.ff["factors"] = lanes * (0.6 * bits * bits + 330), lanes * (18.0 * bits + 330)
        parts.lut["places"], parts.ff["places"] = lanes * power * 3.0, lanes * float(power)
    style = 2 if dsp and unit.last >= 64 and unit.factors is None and not unit.in_order else 0
    for words, width in tables:
        for _ in range(lanes):
            parts.hold("tables", memory(words, width, style, family))
        parts.ff["tables"] = parts.ff.get("tables", 0.0) + lanes * width * (1 if style else 2)
    if unit.mask is not None:
        parts.hold("tables", memory(unit.mask.size // lanes, 2 * lanes, style, family))
    parts.hold("buffer", buffer(2 * unit.beats, node.source.bits + lanes * (unit.mask is not None), family))
    parts.hold("waiting", buffer(unit.delay, lanes * waiting, family))
    return parts


def _matrix(node: Node, unit: WeightedUnit) -> Matrix:
    """The dimensions of a unit with weights."""
    x, bits, words = node.source.type, weight_bits(unit), weight_words(unit)
    matrix = Matrix(
        type(unit).__name__,
        x,
        bits,
        unit.product,
        words,
        unit.pe,
        unit.lanes // unit.pe,
        node.source.bits,
        node.result.type.bits,
    )
    match unit:
        case MatVec():
            return replace(
                matrix,
                windows=unit.windows,
                rows_sharing_codes=unit.pe,
                row_folds=unit.row_folds,
                col_folds=unit.col_folds,
                tables=None if unit.sums is None else unit_sizes(unit),
            )
        case ConvUnit():
            own_block = unit.depthwise and unit.dsp is not None
            return replace(matrix, rows_sharing_codes=1 if own_block else unit.pe, depth=unit.depth)
        case _:
            return matrix


def unit_parts(node: Node, *, dsp: int, style: int, family: str = "xc7") -> Parts:
    """Parts of a unit; a quantizer has no LUTs here, as its choice gives its cost."""
    unit, source, result = node.unit, node.source, node.result
    beats = {"control": 8.0, "in": float(source.bits), "out": float(result.bits)}
    match unit:
        case MatVec() | ConvUnit() | GroupedMatVec():
            block = 0 if unit.dsp is None else dsp
            return matrix_parts(_matrix(node, unit), dsp=block, style=weight_style(unit, style), family=family)
        case DynamicMatVec():
            return _products(node, unit, 0 if unit.dsp is None else dsp, family)
        case AdderMatVec(graph=AgreementGraph() as graph):
            registers = {
                "counts": float(graph.registers(unit.adders_per_stage)),
                "control": 8.0,
                "out": float(result.bits),
            }
            return Parts("AdderMatVec", {"counts": COUNTER * graph.bits, "control": 10.0}, registers)
        case AdderMatVec():
            return Parts("AdderMatVec", {"sums": 10.0 + unit.graph.bits}, {"sums": float(unit.graph.bits), **beats})
        case SlidingWindow():
            # One memory for each tap, with the pixels of its column bank or, if they are few, of the whole row.
            columns = unit.span.kernel[1]
            row_words = unit.columns * unit.folds
            copied = row_words <= (64 if columns > 2 else 32)
            words = row_words if copied else -(-unit.columns // columns) * unit.folds
            walk, turned = walking(unit.depth), result.bits * (turning(unit.rows) + (columns > 1 and not copied))
            parts = Parts("SlidingWindow", {"control": walk, "turned": turned}, {**beats, "control": walk})
            for _ in range(unit.rows * columns):
                parts.hold("buffer", buffer(words, source.bits, family, no_collision=True))
            return parts
        case ReduceTree():
            return Parts("ReduceTree", {"data": 1.5 * unit.taps * result.bits}, beats)
        case PoolUnit():
            walk = walking(unit.depth)
            parts = Parts("PoolUnit", {"control": walk, "data": 4.0 * result.bits}, {**beats, "control": walk})
            parts.hold("buffer", buffer(unit.depth, source.bits, family, no_collision=True))
            return parts
        case TiledPool():
            parts = Parts("TiledPool", {"control": 30.0, "data": 2.0 * result.bits}, {**beats, "control": 20.0})
            if unit.words > 1:
                parts.hold("buffer", buffer(unit.words, result.bits, family))
            return parts
        case Fifo(depth):
            parts = Parts("Fifo", {"control": 25.0}, {"control": 15.0, "out": float(result.bits)})
            # A large FIFO is read ahead, with a bypass for the word that is being written.
            large = depth >= 512 or (depth > 64 and depth * source.bits > 16384)
            parts.hold("buffer", buffer(depth, source.bits, family, write_first=not large))
            return parts
        case Slice():
            lut = float(result.bits * unit.full)
            return Parts("Slice", {"control": 3.0, "data": lut}, {"control": 2.0, "data": lut + result.bits})
        case Reorder(block):
            parts = Parts("Reorder", {"control": 60.0}, {"control": 40.0, "out": float(result.bits)})
            parts.hold("buffer", buffer(2 * block, source.bits, family))
            return parts
        case RowsUnit():
            return row_parts(node, unit, family)
        case SoftmaxUnit():
            return _softmax(node, unit, dsp, family)
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
            return regrouping(source, result)
        case Port() as port:
            return _port(node, port, family)
        case NormMoments() | NormRoot() | NormScale():
            return _normalizing(unit, source, dsp)
        case FloatKeyUnit() | FloatUnit() | JoinStreams() | ArgMaxUnit():
            return Parts(type(unit).__name__, {"data": float(source.bits + result.bits)}, beats)
        case _:
            assert_never(unit)


def row_parts(node: Node, unit: RowsUnit, family: str) -> Parts:
    """The memory of vectors, the sum or comparison on the way in, and a divider per lane on the way out."""
    lanes, source, result = node.source.lanes, node.source, node.result
    parts = Parts("RowsUnit", {"control": 40.0}, {"control": 40.0, "in": 2.0 * source.bits, "out": float(result.bits)})
    parts.hold("buffer", buffer(2 * unit.beats, source.bits, family))
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
                parts.hold("weights", memory(1 << unit.source.bits, sizes.weight, family=family))
                parts.hold("numbers", memory(1 << unit.source.bits, sizes.number, family=family))
        case IntegerNorm():
            norm_sizes = NormSizes.of(unit.function, unit.source, unit.count)
            products = unit.source.bits**2 / 2 + (unit.source.bits + 2) * norm_sizes.weight / 2
            products += norm_sizes.bias * norm_sizes.root / 2 if unit.function.bias.any() else 0.0
            parts.lut["products"] = lanes * products
            parts.lut["divide"] = 2.0 * lanes * norm_sizes.quotient * (norm_sizes.root + 1)
            parts.ff["divide"] = 1.0 * lanes * norm_sizes.quotient * (norm_sizes.root + norm_sizes.quotient)
            parts.lut["root"] = 3.0 * norm_sizes.root * norm_sizes.squares
            parts.ff["root"] = 2.0 * norm_sizes.root * norm_sizes.squares
            parts.hold("places", memory(unit.beats, lanes * (norm_sizes.weight + norm_sizes.bias), family=family))
        case _:
            assert_never(unit.function)
    return parts


def _normalizing(unit: NormUnit, source: Stream, dsp: int) -> Parts:
    """Parts of the normalizing units, counted from the structure of the modules."""
    match unit:
        case NormMoments(rows, _, moment):
            bits, sum_ = IntType(min(-1, rows.ends[0]), max(0, rows.ends[1])).bits, rows.sum_bits
            lut, ff = source.lanes * 1.15 * bits**2 + moment, float(source.lanes * bits**2 + 2 * moment + sum_)
            if not dsp and rows.centered:
                lut, ff = lut + 1.85 * sum_**2, ff + 2 * moment + sum_
            blocks = (-(-sum_ // 17)) ** 2 * rows.centered if dsp else 0
            return Parts("NormMoments", {"data": lut, "control": 10.0}, {"data": ff, "control": 7.0}, dsp=blocks)
        case NormRoot(constants, moment, sum_, ways):
            root_width, roots, blocks = root_bits(unit), unit.roots, 0
            lut, ff = (
                roots * (5.2 * (root_width + 28) + 45) + 2.0 * root_width,
                roots * (4.0 * root_width + 86) + 2.0 * root_width,
            )
            if unit.serial:
                lut, ff = lut + root_width, ff + 2.0 * root_width + moment
                if unit.digit > 1:
                    blocks = -(-constants.factor.bit_length() // 17) if dsp else 0
                    lut += 0.0 if dsp else unit.digit * 0.6 * root_width
            waiting = buffer(ways, constants.step_bits + 24 + sum_).lut if ways > 1 else 0.0
            lut_parts = {"data": lut, "waiting": waiting, "control": 40.0}
            return Parts("NormRoot", lut_parts, {"data": ff, "control": 60.0}, dsp=blocks)
        case NormScale(_, _, element, _):
            lut = source.lanes * (element * 6.0 + 60 + (0.0 if dsp else 50.0 * element))
            ff = source.lanes * (element * (3.2 if dsp else 6.2) + 56)
            blocks = source.lanes * -(-element // 17) * -(-24 // dsp) if dsp else 0
            return Parts("NormScale", {"data": lut, "control": 12.0}, {"data": ff, "control": 73.0}, dsp=blocks)
        case _:
            assert_never(unit)


def node_parts(
    node: Node, choices: Mapping[str, Choice], counted: set[str], *, dsp: int, style: int, family: str = "xc7"
) -> Parts:
    """Parts of a unit, or of a quantizer according to its choice.

    `counted`: layers whose whole price is already counted.
    """
    if not is_quantizer(node, choices):
        return unit_parts(node, dsp=dsp, style=style, family=family)
    first = node.layer not in counted
    counted.add(node.layer)
    return quantizer_parts(
        node, choices[node.layer], first, partial(memory, family=family), factor=FACTOR_BITS.get(family, 0)
    )
