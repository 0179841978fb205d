"""Units that multiply and add: weights in memories, in adders, or from a second stream."""

from __future__ import annotations

import math
from dataclasses import replace

from typing_extensions import assert_never

from hlsgen.adder_graph import AgreementGraph, register_bits, schedule
from hlsgen.dataflow import units
from hlsgen.dataflow.weight_words import packed
from hlsgen.dataflow.weighted_units import DspProducts, weight_bits, weight_words
from hlsgen.verilog.adder_luts import adder_luts
from hlsgen.verilog.adder_text import module_text
from hlsgen.verilog.binding.memory_files import Binding, Parameter, words
from hlsgen.verilog.count_luts import count_luts
from hlsgen.verilog.count_text import count_module_text
from hlsgen.verilog.dot_sizes import dot_form, shared_registers
from hlsgen.verilog.matrix_parts import CONTROL, Matrix, block_form, matrix_parts, multipliers
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.shared_blocks import chains
from hlsgen.verilog.sum_tables import table_files, unit_sizes
from hlsgen.verilog.units.parameters import above_one, code_bits, window_parameters
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, without_style
from hlsgen.verilog.weight_packing import MODES, weight_style


def _kind(unit: units.WeightedUnit) -> str:
    match unit.product:
        case units.Product.INTEGER:
            return f"{weight_bits(unit)}-bit weights"
        case units.Product.BIPOLAR:
            return "bipolar weights"
        case units.Product.AGREEMENTS:
            return "bipolar weights, popcount"
        case _:
            assert_never(unit.product)


def _weights(node: units.Node, unit: units.WeightedUnit, style: int) -> dict[str, Parameter]:
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


def _memory(node: units.Node, unit: units.WeightedUnit) -> dict[str, str]:
    return {f"{node.name}.mem": words(packed(unit), weight_bits(unit))}


def _bind_matrix(node: units.Node, unit: units.MatVec, style: int) -> Binding:
    summary = f"{unit.row_folds * unit.pe} x {unit.col_folds * unit.simd}, {_kind(unit)}"
    if unit.sums is not None:
        return _bind_sums(node, unit, unit.sums.cut, summary)
    parameters: dict[str, Parameter] = {**_folds(unit), **_weights(node, unit, style), "EVERY": unit.adders_per_stage}
    if unit.windows > 1:
        parameters |= above_one(WINDOWS=unit.windows, TAPS=unit.taps)
    return Binding("hg_mvu", parameters, summary, _memory(node, unit))


def _bind_sums(node: units.Node, unit: units.MatVec, cut: bool, summary: str) -> Binding:
    """A matrix unit with distributed arithmetic tables instead of a memory of weights and products."""
    sizes, x = unit_sizes(unit), node.source.type
    parameters: dict[str, Parameter] = {
        **_folds(unit),
        "X_W": x.bits,
        "X_SIGNED": int(x.signed),
        "FIRST": sizes.first,
        "T_W": sizes.entry,
        "S_W": sizes.sum,
        "ACC_W": node.result.type.bits,
        "EVERY": unit.adders_per_stage,
        **({"CUT": 1} if cut else {}),
        "FILE": node.name,
    }
    files = table_files(unit, node.name)
    return Binding("hg_mvu_words", parameters, f"{summary}, distributed arithmetic tables", files)


def _folds(unit: units.MatVec) -> dict[str, Parameter]:
    return {"SIMD": unit.simd, "PE": unit.pe, "COL_FOLDS": unit.col_folds, "ROW_FOLDS": unit.row_folds}


def _bind_convolution(node: units.Node, unit: units.ConvUnit, style: int) -> Binding:
    bits, kernel = node.source.type.bits, unit.window.kernel
    summary = f"{kernel[0]} x {kernel[1]} kernel, {_kind(unit)}"
    place = window_parameters(unit.window, unit.height, unit.width)
    operands: dict[str, Parameter] = {"DEPTH": unit.depth, "X_W": bits, "PAD": code_bits(unit.pad, bits)}
    operands |= _weights(node, unit, style)
    if unit.depthwise:
        operands |= {} if unit.adders_per_stage == 2 else {"EVERY": unit.adders_per_stage}
        parameters = {"PE": unit.pe, **place, "GROUPS": unit.groups, "REPEAT": unit.repeat, **operands}
        return Binding("hg_dwconv", parameters, f"depthwise, {summary}", _memory(node, unit))
    folds: dict[str, Parameter] = {"GROUPS": unit.groups, "FOLDS": unit.folds, "REPEAT": unit.repeat}
    parameters = {"SIMD": unit.simd, "PE": unit.pe, **place, **folds, **operands, "EVERY": unit.adders_per_stage}
    return Binding("hg_conv", parameters, summary, _memory(node, unit))


def _bind_groups(node: units.Node, unit: units.GroupedMatVec, style: int) -> Binding:
    folds: dict[str, Parameter] = {"PE": unit.pe, "TAPS": unit.taps, "FOLDS": unit.folds}
    sizes = above_one(ROWS=unit.rows, COLUMNS=unit.columns)
    parameters = folds | _weights(node, unit, style) | {"EVERY": unit.adders_per_stage} | sizes
    grouping = "depthwise" if unit.rows == unit.columns == 1 else f"groups of {unit.rows} x {unit.columns}"
    return Binding("hg_dwmvu", parameters, f"{grouping}, {unit.taps} taps, {_kind(unit)}", _memory(node, unit))


def _bind_product(node: units.Node, unit: units.DynamicMatVec) -> Binding:
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


def _bind_adders(node: units.Node, unit: units.AdderMatVec) -> Binding:
    graph, bits = unit.graph, (node.source.type.bits, node.result.type.bits)
    if isinstance(graph, AgreementGraph):
        summary = f"{len(graph.rows)} x {graph.columns}, {len(graph.counters.counters)} counters a row"
        return Binding(
            "counts",
            {},
            summary,
            text=lambda name: count_module_text(name, graph, math.ceil(unit.adders_per_stage), bits[1]),
        )
    summary = f"{len(graph.outputs)} x {len(graph.inputs)}, {len(graph.adders)} adders"
    pipeline = schedule(graph, unit.adders_per_stage, unit.consumer_ps, unit.producer_ps)
    kind = {"joined": unit.joined, "bare": unit.omits_inverters}
    return Binding("adders", {}, summary, text=lambda name: module_text(name, pipeline, *bits, **kind))


#: Bits of a factor of integers in hg_mac, which extends a factor of one bit, 0 or -1.
LEAST_BITS = 2


def _matrix_latency(unit: units.MatVec) -> int:
    return 2 + _stages(unit, unit.simd, unit.pe) + 1


def _convolution_latency(unit: units.ConvUnit) -> int:
    simd, rows = (1, 1) if unit.depthwise else (unit.simd, unit.pe)
    return 2 + _stages(unit, simd, rows) + 1


def _groups_latency(unit: units.GroupedMatVec) -> int:
    return 1 + _stages(unit, unit.simd, 1) + 1


def _product_latency(unit: units.DynamicMatVec) -> int:
    return _product_stages(unit.simd, max(LEAST_BITS, unit.word.bits), unit.adders_per_stage, unit.dsp, unit.pe) + 1


def _adders_latency(unit: units.AdderMatVec) -> int:
    if isinstance(unit.graph, AgreementGraph):
        return unit.graph.latency(math.ceil(unit.adders_per_stage))
    return schedule(unit.graph, unit.adders_per_stage, unit.consumer_ps, unit.producer_ps).latency


def _stages(unit: units.MatVec | units.ConvUnit | units.GroupedMatVec, simd: int, rows: int) -> int:
    """STAGES of hg_totals: registers before the accumulators. `rows`: the rows that consume the same codes."""
    if isinstance(unit, units.MatVec) and unit.sums is not None:
        first, tree, merge = unit.sums.first, -(-simd // (4 * unit.sums.first - 3)), unit.sums.x_bits
        return (
            unit.sums.cut
            + (2 if simd < 2 * first else 3 if unit.sums.cut or unit.adders_per_stage > 1 else 4)
            + sum(-(-_levels(terms) // unit.adders_per_stage) for terms in (tree, merge))
        )
    if unit.product is units.Product.AGREEMENTS:
        alone = isinstance(unit, units.GroupedMatVec) or (isinstance(unit, units.MatVec) and unit.col_folds == 1)
        return 2 + -(-_levels(-(-(simd + alone) // 4)) // unit.adders_per_stage)
    least_bits = 1 if unit.product is units.Product.BIPOLAR else LEAST_BITS
    return _product_stages(simd, max(least_bits, weight_bits(unit)), unit.adders_per_stage, unit.dsp, rows)


def _product_stages(simd: int, bits: int, adders_per_stage: int, products: DspProducts | None, rows: int) -> int:
    """The same for products with weights of `bits`; `adders_per_stage` as in Pipelining.

    The products are in chains of DSP blocks, or in the longer one of two forms.
    """
    if products is not None:
        x = products.x
        block_chains = chains(simd, x.bits, x.signed, bits, rows, products.factor_bits)
        if block_chains:
            return 1 + block_chains.latency(adders_per_stage)
    pairs_per_stage = 1 if adders_per_stage == 1 else 2
    plain = 1 + -(-min(simd, 4) // pairs_per_stage) + -(-_levels((bits + 1) // 2) // adders_per_stage)
    pairs = 2 + -(-bits * (2 if simd > 2 else 1) // pairs_per_stage)
    return max(plain, pairs) + -(-_levels(-(-simd // 4)) // adders_per_stage)


def _levels(terms: int) -> int:
    """Levels of a tree of adders."""
    return (terms - 1).bit_length()


def _dimensions(node: units.Node, unit: units.WeightedUnit) -> Matrix:
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
        adders_per_stage=unit.adders_per_stage,
    )
    match unit:
        case units.MatVec():
            return replace(
                matrix,
                windows=unit.windows,
                rows_sharing_codes=unit.pe,
                row_folds=unit.row_folds,
                col_folds=unit.col_folds,
                tables=None if unit.sums is None else unit_sizes(unit),
            )
        case units.ConvUnit():
            own_block = unit.depthwise and unit.dsp is not None
            return replace(matrix, rows_sharing_codes=1 if own_block else unit.pe, depth=unit.depth)
        case _:
            return matrix


def _weighted_parts(node: units.Node, unit: units.WeightedUnit, options: CostOptions) -> Parts:
    dsp = 0 if unit.dsp is None else options.dsp
    style = weight_style(unit, options.style)
    return matrix_parts(_dimensions(node, unit), dsp=dsp, style=style, family=options.family)


def _adders_parts(node: units.Node, unit: units.AdderMatVec, options: CostOptions) -> Parts:
    graph, family, result = unit.graph, options.family, node.result
    if isinstance(graph, AgreementGraph):
        levels = math.ceil(unit.adders_per_stage)
        luts = {"enable": 1.0} | count_luts(graph, levels, result.type.bits, family)
        registers = {"counts": float(graph.registers(levels)), "control": 8.0, "out": float(result.bits)}
        return Parts("AdderMatVec", luts, registers)
    pipeline = schedule(graph, unit.adders_per_stage, unit.consumer_ps, unit.producer_ps)
    read_bits = register_bits(pipeline, unit.unread or (0,) * len(graph.outputs))
    luts = {"enable": float(not unit.joined)}
    luts |= adder_luts(pipeline, node.source.type.bits, family, bare=unit.omits_inverters)
    return Parts("AdderMatVec", luts, {"registers": float(read_bits), "control": float(pipeline.latency)})


def _product_parts(node: units.Node, unit: units.DynamicMatVec, options: CostOptions) -> Parts:
    """Rows of products of two streams with their sums; both operands are held in registers."""
    dsp, family = 0 if unit.dsp is None else options.dsp, options.family
    x, word, (first_stream, second_stream) = unit.operands[0], unit.word, node.sources
    products = multipliers(x, word.bits, units.Product.INTEGER, unit.pe, unit.simd, dsp, family, unit.pe)
    form = block_form(x, word.bits, unit.pe, unit.simd, dsp) if products.dsp else dot_form(units.Product.INTEGER)
    sums = float(unit.pe * node.result.type.bits)
    zeros = [stream.bits for stream, offset in zip((first_stream, second_stream), unit.offsets, strict=True) if offset]
    parts = Parts("MatVec", dsp=products.dsp)
    parts.lut = {form: products.lut, "sums": sums, "control": CONTROL, "zeros": float(sum(zeros))}
    codes = float(x.bits * first_stream.lanes + word.bits * second_stream.lanes)
    parts.ff = {form: products.ff or products.lut, "sums": sums, "control": 20.0, "codes": codes}
    if form == "pairs":
        parts.ff["shared"] = shared_registers(unit.simd, x.bits, word.bits, units.Product.INTEGER)
    return parts


MATRIX = UnitSpec(_bind_matrix, _matrix_latency, _weighted_parts, ready_hops=None)
CONVOLUTION = UnitSpec(_bind_convolution, _convolution_latency, _weighted_parts, ready_hops=None)
GROUPS = UnitSpec(_bind_groups, _groups_latency, _weighted_parts, ready_hops=1)
PRODUCT = UnitSpec(without_style(_bind_product), _product_latency, _product_parts, ready_hops=1)
ADDERS = UnitSpec(without_style(_bind_adders), _adders_latency, _adders_parts, ready_hops=1)
