"""Binds every kind of unit to its library module and that module's parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.adder_graph import AgreementGraph, schedule
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
    TiledPool,
    WeightedUnit,
    WidthConverter,
)
from hlsgen.dataflow.weight_words import packed
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatCompare, RoundToFloat, ToCode, ToFloat
from hlsgen.verilog.adder_text import module_text
from hlsgen.verilog.binding import bind, rows
from hlsgen.verilog.binding.memory_files import Binding, Bits, Parameter, signed_bits, words
from hlsgen.verilog.binding.norm import bind_moments, bind_root, bind_scale
from hlsgen.verilog.binding.softmax import bind_softmax
from hlsgen.verilog.count_text import count_module_text
from hlsgen.verilog.sum_tables import table_files, unit_sizes
from hlsgen.verilog.weight_packing import MODES, weight_style

_FLOAT_OPS = {"ADD": 0, "MUL": 1, "DIV": 2, "MAX": 3, "MIN": 4}


def bind_node(node: Node, style: int = 0) -> Binding:
    """The module of a node. `style`: the kind of weight memories, see hg_weights."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case Port():
            raise AssertionError("ports are not bound")
        case FloatKeyUnit():
            return Binding("hg_float_key", {"LANES": source.lanes}, "float32 to order key")
        case WidthConverter():
            return _width(node)
        case RescaleUnit():
            return _quantizer(node, unit)
        case FloatUnit():
            return _float(node, unit)
        case MatVec():
            return _matrix(node, unit, style)
        case AdderMatVec():
            return _adders(node, unit)
        case DynamicMatVec():
            return _product(node, unit)
        case ConvUnit():
            return _convolution(node, unit, style)
        case PoolUnit():
            return _pool(node, unit)
        case TiledPool():
            return _tiled_pool(node, unit)
        case SlidingWindow():
            return _sliding_window(node, unit)
        case GroupedMatVec():
            return _groups(node, unit, style)
        case ReduceTree():
            return _reduce_tree(node, unit)
        case Fork(count):
            return Binding("hg_fork", {"WIDTH": source.bits, "COUNT": count}, f"fork to {count} consumers")
        case Fifo(depth):
            return Binding("hg_fifo", {"WIDTH": source.bits, "DEPTH": depth}, f"FIFO of {depth} beats")
        case Slice():
            return _register_slice(node, unit)
        case JoinStreams():
            return _join(node, unit)
        case ConcatBeats():
            return _concat(node, unit)
        case ConcatChannels():
            return _concat_channels(node, unit)
        case SelectLanes():
            return _select_lanes(node, unit)
        case Crop():
            return _crop(node, unit)
        case PadBorder():
            return _pad(node, unit)
        case Reorder():
            return _gather(node, unit)
        case RowsUnit():
            return rows.bind(node, unit)
        case NormMoments():
            return bind_moments(unit, source)
        case NormRoot():
            return bind_root(unit)
        case NormScale():
            return bind_scale(unit, source)
        case SoftmaxUnit():
            return bind_softmax(node, unit)
        case ArgMaxUnit():
            parameters: dict[str, Parameter] = {
                "LANES": source.lanes,
                "BEATS": unit.beats,
                "IN_W": source.type.bits,
                "IN_SIGNED": int(source.type.signed),
                "INDEX_W": result.type.bits,
            }
            return Binding("hg_argmax", parameters, "index of the maximum")
        case _:
            assert_never(unit)


def _code(value: int, bits: int) -> Bits:
    return Bits(bits, value & ((1 << bits) - 1))


def _quantizer(node: Node, unit: RescaleUnit) -> Binding:
    binding = bind(unit.realization, unit.table, node.source.type, node.result.type, node.name)
    parameters = dict(binding.parameters)
    if unit.omits_register:
        parameters["OPEN"] = 1
    if unit.inverted_bits:
        parameters["FLIP"] = Bits(node.source.bits, unit.inverted_bits)
    return replace(binding, parameters=parameters)


def _pool(node: Node, unit: PoolUnit) -> Binding:
    bits, kernel = node.source.type.bits, unit.window.kernel
    parameters: dict[str, Parameter] = {
        "LANES": node.source.lanes,
        **_window(unit.window, unit.height, unit.width),
        "GROUPS": unit.folds,
        "DEPTH": unit.depth,
        "X_W": bits,
        "PAD": _code(unit.pad, bits),
        "X_SIGNED": int(node.source.type.signed),
        "SUM": int(unit.kind is Reduction.SUM),
        "ACC_W": node.result.type.bits,
    }
    return Binding("hg_pool", parameters, f"{unit.kind.value} of {kernel[0]} x {kernel[1]}")


def _tiled_pool(node: Node, unit: TiledPool) -> Binding:
    parameters: dict[str, Parameter] = {
        "LANES": node.source.lanes,
        "X_W": node.source.type.bits,
        "X_SIGNED": int(node.source.type.signed),
        "SUM": int(unit.kind is Reduction.SUM),
        "ACC_W": node.result.type.bits,
        "HEIGHT": unit.height,
        "WIDTH": unit.width,
        "KH": unit.kernel[0],
        "KW": unit.kernel[1],
        "OUT_H": unit.size[0],
        "OUT_W": unit.size[1],
        "FOLDS": unit.folds,
    }
    summary = f"{unit.kind.value} of {unit.kernel[0]} x {unit.kernel[1]}, windows do not overlap"
    return Binding("hg_reduce", parameters, summary)


def _sliding_window(node: Node, unit: SlidingWindow) -> Binding:
    bits, kernel, dilations = node.source.type.bits, unit.window.kernel, unit.window.dilations
    place = _window(unit.window, unit.height, unit.width)
    del place["DH"], place["DW"]
    parameters: dict[str, Parameter] = {
        "UNIT": bits,
        "LANES": node.source.lanes // unit.pixels,
        **place,
        "FOLDS": unit.folds,
        "ROWS": unit.rows,
        "COLUMNS": unit.columns,
        "PAD": _code(unit.pad, bits),
        **_above_one(PIXELS=unit.pixels, WINDOWS=unit.windows, DH=dilations[0], DW=dilations[1]),
    }
    return Binding("hg_unfold", parameters, f"windows of {kernel[0]} x {kernel[1]}, all taps at once")


def _reduce_tree(node: Node, unit: ReduceTree) -> Binding:
    parameters: dict[str, Parameter] = {
        "LANES": node.result.lanes,
        "TAPS": unit.taps,
        "X_W": node.source.type.bits,
        "X_SIGNED": int(node.source.type.signed),
        "SUM": int(unit.kind is Reduction.SUM),
        "ACC_W": node.result.type.bits,
    }
    return Binding("hg_pool_tree", parameters, f"{unit.kind.value} of {unit.taps} taps")


def _register_slice(node: Node, unit: Slice) -> Binding:
    if unit.full:
        summary = "register slice of 2 beats, ready is registered"
        return Binding("hg_slice", {"WIDTH": node.source.bits}, summary)
    summary = "register slice of 1 beat, ready while it is empty"
    return Binding("hg_slice", {"WIDTH": node.source.bits, "FULL": 0}, summary)


def _concat_channels(node: Node, unit: ConcatChannels) -> Binding:
    a, b = (stream.type for stream in node.sources)
    parameters: dict[str, Parameter] = {
        "UNIT_A": a.bits,
        "A_SIGNED": int(a.signed),
        "UNIT_B": b.bits,
        "B_SIGNED": int(b.signed),
        "UNIT_OUT": node.result.type.bits,
        "LANES_A": unit.lanes[0],
        "LANES_B": unit.lanes[1],
        "PIXELS": unit.pixels,
    }
    return Binding("hg_beside", parameters, f"{unit.lanes[0]} and {unit.lanes[1]} elements side by side")


def _select_lanes(node: Node, unit: SelectLanes) -> Binding:
    lane_map = sum(lane << (32 * n) for n, lane in enumerate(unit.places))
    parameters: dict[str, Parameter] = {
        "UNIT": node.source.type.bits,
        "IN": node.source.lanes,
        "OUT": node.result.lanes,
        "MAP": Bits(32 * len(unit.places), lane_map),
    }
    return Binding("hg_pick", parameters, "selects elements of each beat")


def _crop(node: Node, unit: Crop) -> Binding:
    parameters: dict[str, Parameter] = {"WIDTH": node.source.bits}
    parameters |= zip(("HEIGHT", "COLUMNS", "FOLDS"), unit.sizes, strict=True)
    for axis, cut in zip("YXC", (unit.rows, unit.columns, unit.beats), strict=True):
        parameters |= {f"{axis}{suffix}": value for suffix, value in zip("01S", cut, strict=True)}
    return Binding("hg_take", parameters, "slice of the tensor")


def _pad(node: Node, unit: PadBorder) -> Binding:
    bits = node.source.type.bits
    parameters: dict[str, Parameter] = {
        "UNIT": bits,
        "LANES": node.source.lanes,
        "HEIGHT": unit.height,
        "COLUMNS": unit.width,
        "FOLDS": unit.folds,
        "TOP": unit.pads[0],
        "LEFT": unit.pads[1],
        "BOTTOM": unit.pads[2],
        "RIGHT": unit.pads[3],
        "VALUE": _code(unit.value, bits),
    }
    return Binding("hg_pad", parameters, "border of constant elements")


def _width(node: Node) -> Binding:
    source, result = node.source, node.result
    parameters: dict[str, Parameter] = {"UNIT": source.type.bits, "IN": source.lanes, "OUT": result.lanes}
    if source.group % source.lanes or result.group % result.lanes:
        parameters |= {"IN_GROUP": source.group, "OUT_GROUP": result.group}
    return Binding("hg_width", parameters, f"{source.lanes} to {result.lanes} elements a beat")


def _above_one(**counts: int) -> dict[str, Parameter]:
    """The parameters that are not 1: the module's default for them is 1."""
    return {name: count for name, count in counts.items() if count > 1}


def _window(window: Window, height: int, width: int) -> dict[str, Parameter]:
    rows, columns = window.size(height, width)
    names = ("HEIGHT", "WIDTH", "KH", "KW", "SH", "SW", "DH", "DW", "PT", "PL", "OUT_H", "OUT_W")
    values = (height, width, *window.kernel, *window.strides, *window.dilations, *window.pads[:2], rows, columns)
    return dict(zip(names, values, strict=True))


def _kind(unit: WeightedUnit) -> str:
    match unit.product:
        case Product.INTEGER:
            return f"{weight_bits(unit)}-bit weights"
        case Product.BIPOLAR:
            return "bipolar weights"
        case Product.AGREEMENTS:
            return "bipolar weights, popcount"
        case _:
            assert_never(unit.product)


def _weights(node: Node, unit: WeightedUnit, style: int) -> dict[str, Parameter]:
    """The parameters of a unit with weights that select the multiplication and the weight file."""
    return {
        "X_W": node.source.type.bits,
        "X_SIGNED": int(node.source.type.signed),
        "W_W": weight_bits(unit),
        "MODE": MODES[unit.product],
        "ACC_W": node.result.type.bits,
        "FILE": f"{node.name}.mem",
        "STYLE": weight_style(unit, style),
    }


def _memory(node: Node, unit: WeightedUnit) -> dict[str, str]:
    return {f"{node.name}.mem": words(packed(unit), weight_bits(unit))}


def _matrix(node: Node, unit: MatVec, style: int) -> Binding:
    parameters: dict[str, Parameter] = {
        "SIMD": unit.simd,
        "PE": unit.pe,
        "COL_FOLDS": unit.col_folds,
        "ROW_FOLDS": unit.row_folds,
    }
    parameters |= _weights(node, unit, style) | {"EVERY": unit.adders_per_stage}
    if unit.windows > 1:
        parameters |= _above_one(WINDOWS=unit.windows, TAPS=unit.taps)
    summary = f"{unit.row_folds * unit.pe} x {unit.col_folds * unit.simd}, {_kind(unit)}"
    if unit.sums is not None:
        sizes = unit_sizes(unit)
        parameters |= {"FILE": node.name, "STYLE": 0, "FIRST": sizes.first, "T_W": sizes.entry, "S_W": sizes.sum}
        parameters |= {"CUT": 1} if unit.sums.cut else {}
        return Binding("hg_mvu", parameters, f"{summary}, distributed arithmetic tables", table_files(unit, node.name))
    return Binding("hg_mvu", parameters, summary, _memory(node, unit))


def _product(node: Node, unit: DynamicMatVec) -> Binding:
    a, b = (stream.type for stream in node.sources)
    x, (shift_a, shift_b) = unit.operands[0], (factor.bit_length() - 1 for factor in unit.factors)
    return Binding(
        "hg_dynmvu",
        {
            "SIMD": unit.simd,
            "PE": unit.pe,
            "FOLDS": unit.folds,
            "ROWS_FIRST": int(unit.rows_first),
            "A_W": a.bits,
            "A_SIGNED": int(a.signed),
            "A_SHIFT": shift_a,
            "A_OFFSET": unit.offsets[0],
            "X_W": x.bits,
            "X_SIGNED": int(x.signed),
            "B_W": b.bits,
            "B_SIGNED": int(b.signed),
            "B_SHIFT": shift_b,
            "B_OFFSET": unit.offsets[1],
            "W_W": unit.word.bits,
            "ACC_W": node.result.type.bits,
            "EVERY": unit.adders_per_stage,
        },
        f"{unit.pe} sums of {unit.folds * unit.simd} products of two streams",
    )


def _adders(node: Node, unit: AdderMatVec) -> Binding:
    graph, bits = unit.graph, (node.source.type.bits, node.result.type.bits)
    if isinstance(graph, AgreementGraph):
        summary = f"{len(graph.rows)} x {graph.columns}, {len(graph.counters.counters)} counters a row"
        return Binding(
            "counts", {}, summary, text=lambda name: count_module_text(name, graph, unit.adders_per_stage, bits[1])
        )
    summary = f"{len(graph.outputs)} x {len(graph.inputs)}, {len(graph.adders)} adders"
    pipeline = schedule(graph, unit.adders_per_stage, unit.consumer_ps, unit.producer_ps)
    kind = {"joined": unit.joined, "bare": unit.omits_inverters}
    return Binding("adders", {}, summary, text=lambda name: module_text(name, pipeline, *bits, **kind))


def _convolution(node: Node, unit: ConvUnit, style: int) -> Binding:
    bits, kernel = node.source.type.bits, unit.window.kernel
    summary = f"{kernel[0]} x {kernel[1]} kernel, {_kind(unit)}"
    place = _window(unit.window, unit.height, unit.width)
    operands: dict[str, Parameter] = {"DEPTH": unit.depth, "X_W": bits, "PAD": _code(unit.pad, bits)}
    operands |= _weights(node, unit, style)
    if unit.depthwise:
        operands |= {} if unit.adders_per_stage == 2 else {"EVERY": unit.adders_per_stage}
        parameters = {"PE": unit.pe, **place, "GROUPS": unit.groups, "REPEAT": unit.repeat, **operands}
        return Binding("hg_dwconv", parameters, f"depthwise, {summary}", _memory(node, unit))
    folds: dict[str, Parameter] = {"GROUPS": unit.groups, "FOLDS": unit.folds, "REPEAT": unit.repeat}
    parameters = {"SIMD": unit.simd, "PE": unit.pe, **place, **folds, **operands, "EVERY": unit.adders_per_stage}
    return Binding("hg_conv", parameters, summary, _memory(node, unit))


def _groups(node: Node, unit: GroupedMatVec, style: int) -> Binding:
    folds: dict[str, Parameter] = {"PE": unit.pe, "TAPS": unit.taps, "FOLDS": unit.folds}
    sizes = _above_one(ROWS=unit.rows, COLUMNS=unit.columns)
    parameters = folds | _weights(node, unit, style) | {"EVERY": unit.adders_per_stage} | sizes
    grouping = "depthwise" if unit.rows == unit.columns == 1 else f"groups of {unit.rows} x {unit.columns}"
    return Binding("hg_dwmvu", parameters, f"{grouping}, {unit.taps} taps, {_kind(unit)}", _memory(node, unit))


def _join(node: Node, unit: JoinStreams) -> Binding:
    if unit.floats is not None:
        code = {BinaryKind.ADD: 0, BinaryKind.MUL: 1, BinaryKind.SUB: 5}[unit.floats]
        return Binding("hg_f32_join", {"OP": code, "LANES": node.result.lanes}, f"float32 {unit.floats.value}")
    a, b = (stream.type for stream in node.sources)
    parameters: dict[str, Parameter] = {
        "LANES": node.result.lanes,
        "A_W": a.bits,
        "A_SIGNED": int(a.signed),
        "B_W": b.bits,
        "B_SIGNED": int(b.signed),
        "OUT_W": node.result.type.bits,
    }
    if unit.packed:
        return Binding("hg_join", parameters | {"MODE": 2}, "both operands side by side")
    if unit.factors is None:
        zeros: dict[str, Parameter] = {"ZA": unit.zeros[0], "ZB": unit.zeros[1]}
        return Binding("hg_join", parameters | {"MODE": 1} | zeros, "product of both operands")
    factors: dict[str, Parameter] = {"FA": unit.factors[0], "FB": unit.factors[1]}
    return Binding("hg_join", parameters | {"MODE": 0} | factors, "weighted sum of both operands")


def _concat(node: Node, unit: ConcatBeats) -> Binding:
    a, b = (stream.type for stream in node.sources)
    return Binding(
        "hg_concat",
        {
            "UNIT_A": a.bits,
            "A_SIGNED": int(a.signed),
            "UNIT_B": b.bits,
            "B_SIGNED": int(b.signed),
            "UNIT_OUT": node.result.type.bits,
            "LANES": node.result.lanes,
            "BEATS_A": unit.beats[0],
            "BEATS_B": unit.beats[1],
        },
        f"{unit.beats[0]} and {unit.beats[1]} beats in turn",
    )


def _gather(node: Node, unit: Reorder) -> Binding:
    extents = sum(extent << (32 * d) for d, (extent, _) in enumerate(unit.loops))
    strides = sum(stride << (32 * d) for d, (_, stride) in enumerate(unit.loops))
    bits = 32 * len(unit.loops)
    return Binding(
        "hg_gather",
        {
            "WIDTH": node.source.bits,
            "BLOCK": unit.block,
            "DIMS": len(unit.loops),
            "EXTENTS": Bits(bits, extents),
            "STRIDES": Bits(bits, strides),
        },
        "reorders elements",
    )


def _float(node: Node, unit: FloatUnit) -> Binding:
    source, result, file = node.source, node.result, f"{node.name}.mem"
    common: dict[str, Parameter] = {"LANES": source.lanes, "FOLDS": len(unit.table), "FILE": file}
    match unit.unit:
        case Arithmetic(op, value):
            memory = words(_float_bits(value)[unit.table], 32)
            return Binding("hg_f32_unit", {"OP": _FLOAT_OPS[op], **common}, f"float32 {op}", {file: memory})
        case RoundToFloat(mode):
            parameters: dict[str, Parameter] = {"MODE": int(mode), "LANES": source.lanes}
            return Binding("hg_f32_round_unit", parameters, f"float32 {mode.name}")
        case ToFloat():
            inner = unit.unit
            b_bits = signed_bits(inner.offset)
            m_bits = max(1, int(inner.mantissa.max()).bit_length())
            word = (inner.exponent & 0xFFF).astype(object) << (m_bits + b_bits)
            word = word | (inner.mantissa.astype(object) << b_bits)
            word = word | (inner.offset & ((1 << b_bits) - 1)).astype(object)
            return Binding(
                "hg_f32_decode",
                {
                    "IN_W": source.type.bits,
                    "IN_SIGNED": int(source.type.signed),
                    "SHIFT": inner.shift,
                    "B_W": b_bits,
                    "M_W": m_bits,
                    **common,
                },
                "integer to float32",
                {file: words(word[unit.table], 12 + m_bits + b_bits)},
            )
        case ToCode():
            code = unit.unit
            word = (_float_bits(code.high).astype(object) << 32) | _float_bits(code.low).astype(object)
            return Binding(
                "hg_f32_encode",
                {
                    "MODE": code.mode,
                    "OUT_W": result.type.bits,
                    "OUT_SIGNED": int(result.type.signed),
                    **common,
                },
                "float32 to code",
                {file: words(word[unit.table], 64)},
            )
        case FloatCompare():
            raise AssertionError("a float comparison is two units")
        case _:
            assert_never(unit.unit)


def _float_bits(value: Array) -> Array:
    return np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.int64)
