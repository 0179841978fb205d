"""Parts of units with weights: products, sums, the memory of weights, and the storage of codes that are used again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Product
from hlsgen.dataflow.weighted_units import worth_a_dsp_block
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.dot_sizes import adder_tree_luts, dot_form, dot_luts, few_words_share, shared_registers
from hlsgen.verilog.memory_sizes import buffer, memory, weights_style
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.shared_blocks import ADDING, chained, shared_rows
from hlsgen.verilog.sum_tables import SMALL_LUTS, SumSizes, table_row_luts

#: Bits of the factors of DSP blocks, for families whose blocks differ from Xilinx 7 series.
FACTOR_BITS = {"ecp5": 18, "gowin": 18, "ice40": 16}
#: Bits of the smallest product for which Yosys uses a DSP block, and of its factors.
LEAST_PRODUCT, LEAST_FACTOR = {"ice40": 11}, {"gowin": 4}
#: LUTs that control a matrix unit.
CONTROL = 15.0


@dataclass(frozen=True)
class Matrix:
    """The dimensions of a unit with weights, by the name of its kind.

    `words` of weights of `w_bits`, `pe` rows by `simd` columns a cycle, for each of the `windows`.
    `rows_sharing_codes`: rows that consume the same codes. `source_bits`: bits of an input beat; `result_bits`: bits of
    a sum. `depth`: words of a line buffer. `tables`: distributed arithmetic tables that replace products and weights.
    `adders_per_stage`: see `pipelining`.
    """

    kind: str
    x: IntType
    w_bits: int
    product: Product
    words: int
    pe: int
    simd: int
    source_bits: int
    result_bits: int
    rows_sharing_codes: int = 1
    windows: int = 1
    row_folds: int = 1
    col_folds: int = 1
    depth: int = 0
    tables: SumSizes | None = None
    adders_per_stage: int = 2


def matrix_parts(matrix: Matrix, *, dsp: int, style: int, family: str) -> Parts:
    """Parts of a unit with weights."""
    if matrix.tables is None:
        parts = _multiplying(matrix, dsp=dsp, style=style, family=family)
    else:
        parts = _summing(matrix, matrix.tables, family)
    if matrix.kind == "ConvUnit":
        parts.lut["control"] = parts.ff["control"] = walking(matrix.depth)
        parts.hold("buffer", buffer(matrix.depth, matrix.source_bits, family, no_collision=True))
    if matrix.kind != "MatVec":
        return parts
    parts.lut["counters"] = 2.0 * matrix.words.bit_length() + matrix.row_folds.bit_length()
    # A vector of one beat is repeated from a register. Others are repeated from a memory, which holds a few beats if
    # they are used once.
    if matrix.col_folds == 1 and matrix.row_folds > 1:
        parts.ff["waits"] = 2.0 * matrix.source_bits
        return parts
    depth = 4 if matrix.row_folds == 1 and matrix.col_folds > 2 else 2 * matrix.col_folds
    parts.lut["replay"] = 15.0 + 5 * depth.bit_length()
    parts.ff["replay"] = 10.0 + 5 * depth.bit_length()
    parts.hold("buffer", buffer(depth, matrix.source_bits, family, no_collision=True))
    return parts


def walking(depth: int) -> float:
    """LUTs that walk through the windows of an image."""
    return 60 + 6 * math.log2(max(2, depth))


def multipliers(
    x: IntType,
    bits: int,
    product: Product,
    rows: int,
    simd: int,
    dsp: int,
    family: str = "xc7",
    rows_sharing_codes: int = 1,
) -> Cost:
    """Cost of `rows` rows of products of codes and weights of `bits`, with their sums.

    `dsp`: bits of the wider factor of a DSP block, 0 for none. `rows_sharing_codes`: rows that consume the same codes.
    """
    if product is Product.INTEGER and dsp and worth_a_dsp_block(x, bits, product):
        chain = chained(simd, x.bits, x.signed, bits, rows_sharing_codes, dsp)
        if chain is not None:
            groups = rows / rows_sharing_codes
            return Cost(lut=chain.lut * groups, dsp=chain.dsp * rows // rows_sharing_codes, ff=chain.ff * groups)
        shared = shared_rows(x.bits, bits, rows_sharing_codes, simd, dsp)
        if shared is not None:
            return Cost(lut=shared.lut * rows / rows_sharing_codes, dsp=shared.dsp * rows // rows_sharing_codes)
        sums, x_bits = float(rows * adder_tree_luts(simd, x.bits + bits)), x.bits + (not x.signed)
        if x_bits + bits < LEAST_PRODUCT.get(family, 0) or min(x_bits, bits) < LEAST_FACTOR.get(family, 0):
            # The tools build a plain product from LUTs if they consider it too small for a DSP block.
            return Cost(lut=sums + rows * simd * 3.0 * x_bits * bits)
        # Two products of at most 9 x 9 bits share a block of Gowin.
        products_per_block = 2 if family == "gowin" and max(x_bits, bits) <= 9 else 1
        return Cost(lut=sums, dsp=-(-rows * simd // products_per_block))
    return Cost(lut=rows * dot_luts(simd, x.bits, bits, product, rows_sharing_codes))


def block_form(x: IntType, bits: int, rows_sharing_codes: int, simd: int, dsp: int) -> str:
    """The name of the part for products in DSP blocks, for `rows_sharing_codes` rows that consume the same codes."""
    if dsp >= ADDING:
        return "chains"
    return "blocks" if shared_rows(x.bits, bits, rows_sharing_codes, simd, dsp) is None else "shared"


def _multiplying(matrix: Matrix, *, dsp: int, style: int, family: str) -> Parts:
    """Products with their sums, and the weights."""
    x, bits, rows_sharing_codes, simd = matrix.x, matrix.w_bits, matrix.rows_sharing_codes, matrix.simd
    rows, weights = matrix.windows * matrix.pe, matrix.pe * simd * bits
    products = multipliers(x, bits, matrix.product, rows, simd, dsp, family, rows_sharing_codes)
    blocks_intended = dsp and worth_a_dsp_block(x, bits, matrix.product)
    form = (
        block_form(x, bits, rows_sharing_codes, simd, dsp)
        if products.dsp
        else "plain"
        if blocks_intended
        else dot_form(matrix.product)
    )
    parts, form_luts = Parts(matrix.kind, dsp=products.dsp), products.lut * few_words_share(matrix.words, form)
    parts.lut = {form: form_luts, "sums": float(rows * matrix.result_bits), "control": CONTROL}
    # With a register after each adder, products have so many more that their factors are others.
    deep = " deep" if matrix.adders_per_stage == 1 else ""
    parts.ff = {
        form + deep: products.ff or form_luts,
        "sums": float(rows * matrix.result_bits),
        "control": 20.0,
        "codes": float(matrix.source_bits),
        "weights": float(weights if matrix.words > 1 and form != "chains" else 0),
    }
    if form in ("blocks", "shared") and deep:
        parts.ff["products"] = float(rows * simd * (x.bits + bits))
    if form == "pairs" or (form == "popcount" and matrix.words > 1):
        parts.ff["shared" + deep] = rows / rows_sharing_codes * shared_registers(simd, x.bits, bits, matrix.product)
    parts.hold("weights", memory(matrix.words, weights, weights_style(matrix.words, weights, style), family))
    return parts


def _summing(matrix: Matrix, sizes: SumSizes, family: str) -> Parts:
    """Distributed arithmetic tables with their adders. All rows consume the same codes, half of them a cycle later."""
    shape = matrix.simd, matrix.x.bits, sizes
    table_luts = matrix.pe * table_row_luts(*shape, small=family in SMALL_LUTS)
    parts, sums = Parts(matrix.kind), float(matrix.pe * matrix.result_bits)
    parts.lut = {"words": table_luts, "sums": sums, "control": CONTROL}
    parts.ff = {
        "words": matrix.pe * table_row_luts(*shape),
        "sums": sums,
        "control": 20.0,
        "codes": 1.5 * matrix.source_bits,
    }
    return parts
