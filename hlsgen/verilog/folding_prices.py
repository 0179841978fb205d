"""Cost of layers for a folding, before units exist: to choose the folding, and to check that it fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from hlsgen.adder_graph import MOST_AGREEMENTS, MOST_DIGITS, agreement_tables, count_digits
from hlsgen.dataflow.resources import Budget, Cost, front
from hlsgen.dataflow.units import Product, Stream
from hlsgen.dataflow.weight_memories import chosen
from hlsgen.dataflow.weighted_units import product_of
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.ir import Convolution, Linear, MatrixProduct
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import LIBRARY
from hlsgen.verilog.dot_sizes import COUNTER
from hlsgen.verilog.matrix_parts import Matrix, matrix_parts, multipliers, walking
from hlsgen.verilog.memory_sizes import BLOCK_RAM_LUTS, KIND_STYLES, buffer, memory, weights_style
from hlsgen.verilog.resource_model import cost_of
from hlsgen.verilog.sum_tables import SumSizes, first_codes, sizes_of, table_row_luts, tables_pay
from hlsgen.verilog.units.routing import regrouping
from hlsgen.verilog.units.windows import turning

#: LUTs of a device family for one LUT of Xilinx 7 series, roughly, before anything is planned.
ROUGHLY = {"ecp5": 1.5, "gowin": 1.6, "ice40": 1.4}
#: Widest input beat of a layer, in bits, that costs nothing but its registers.
WIDE_BEAT = 1024
#: Price of a register in LUT. Devices have about as many of both, and more registers than a design uses.
REGISTER = 0.05
#: Price of a DSP block in LUT if DSP blocks are preferred.
PREFERRED = LIBRARY.counts["dsp"][0]
#: Adder bits for each nonzero digit of the weights, times the bits of the inputs plus two.
ADDER_BITS = 0.54
#: LUTs for each bit of a sum: in the quantizer after it, in one with two codes, or in the port.
QUANTIZER, BINARY, PORT = 3.0, 1.7, 1.0
#: The same for quantizers if each lane has one channel, whose parameters never change.
ONE_CHANNEL = 1.4


def folded_cost(
    works: Mapping[str, Workload],
    folding: Folding,
    *,
    dsp: Callable[[str], int],
    style: int,
    family: str = "xc7",
    constants: bool = False,
    budget: Budget | None = None,
) -> Cost:
    """Approximate cost of the multiplying layers for a folding, before anything is planned.

    `dsp`: bits of the wider factor of DSP blocks, for each layer, or 0. `constants`: weights outside DSP blocks may
    become part of the circuit. `budget`: weights may be in LUTs or in block RAM, as the budget requires
    (weight_memories). A quantizer with the bits of its code is counted after every result lane.
    """
    total = Cost()
    weight_memories: list[tuple[Cost, list[Cost]]] = []
    scale = ROUGHLY.get(family, 1.0)
    for name, work in works.items():
        block = dsp(name)
        pe, simd = folding[name]
        layer = work.layer
        if isinstance(layer, MatrixProduct):
            x, bits = layer.operand(0), _factor_bits(layer)
            words, width = 2 * -(-layer.sources[1].size // (pe * simd)), pe * simd * layer.sources[1].type.bits
            total += multipliers(x, bits, Product.INTEGER, pe, simd, block, family, pe)
            total += buffer(words, width, family)
            total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * x.bits)
            continue
        product, bits = _weights(layer)
        rows_sharing_codes = 1 if work.depthwise else pe // work.windows(pe)
        products = multipliers(layer.source.type, bits, product, pe, simd, block, family, rows_sharing_codes)
        words, width = -(-layer.weight.size // (pe * simd)), pe * simd * bits
        weight_cost = memory(words, width, weights_style(words, width, style), family)
        constant = None
        if constants and not block and work.single(pe, simd) and _adder_bits(work) < (products + weight_cost).lut:
            constant = _adder_bits(work)
        if constants and not block and (sizes := _tables_of(work, _matrix(work, pe, simd))) is not None:
            constant = pe * table_row_luts(simd, layer.source.type.bits, sizes)
        total += products + weight_cost if constant is None else Cost(lut=constant, ff=constant)
        if constant is None and words > 1:
            kinds = [memory(words, width, kind, family) for kind in KIND_STYLES.values()]
            weight_memories.append(
                (
                    replace(weight_cost, lut=weight_cost.lut * scale),
                    [replace(kind, lut=kind.lut * scale) for kind in kinds],
                )
            )
        total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * layer.source.type.bits)
        total += Cost(lut=_window(work, pe, simd))
    total = replace(total, lut=total.lut * scale)
    return total if budget is None or budget.excess(total) <= 1 else chosen(total, weight_memories, budget)[0]


def most_saving(costs: Mapping[str, tuple[Cost, Cost]], max_blocks: int) -> frozenset[str]:
    """The layers whose second cost, in DSP blocks, saves most LUT over the first, with at most `max_blocks` blocks."""
    choices = [
        [(0, _lut_equivalents(tables)), (blocks.dsp, _lut_equivalents(blocks))] for tables, blocks in costs.values()
    ]
    options = front([choice[: 1 + (choice[1][0] > 0)] for choice in choices])
    _, picks = options[max(blocks_used for blocks_used in options if blocks_used <= max_blocks)]
    return frozenset(name for name, in_blocks in zip(costs, picks, strict=True) if in_blocks)


def folding_price(work: Workload, pe: int, simd: int) -> float:
    """Approximate LUTs of a layer with this folding, to compare it with other foldings of the layer."""
    return block_price(work, pe, simd, 0)


def block_price(work: Workload, pe: int, simd: int, block: int) -> float:
    """`folding_price` with products in DSP blocks with `block` bits in the wider factor, if they are worth it."""
    layer = work.layer
    if isinstance(layer, MatrixProduct):
        x_bits, bits = layer.operand(0).bits, _factor_bits(layer)
        beat = simd * x_bits + pe * simd * layer.sources[1].type.bits
        products = multipliers(layer.operand(0), bits, Product.INTEGER, pe, simd, block, rows_sharing_codes=pe)
        tables = products.lut + PREFERRED * products.dsp + pe * layer.result.type.bits * 3
        return tables + beat / 4 + max(0, beat - WIDE_BEAT) * 2
    cost = cost_of(matrix_parts(_matrix(work, pe, simd), dsp=block, style=0, family="xc7"))
    return _lut_equivalents(cost) + PREFERRED * cost.dsp + _around(work, pe, simd, block)


def constant_price(work: Workload, pe: int, simd: int) -> float:
    """`folding_price` of a layer with weights that are part of the circuit; infinite if they cannot be."""
    return _adder_price(work) if work.single(pe, simd) else _table_price(work, pe, simd)


def _table_price(work: Workload, pe: int, simd: int) -> float:
    """Price with distributed arithmetic tables, as wide as needed for columns in the layer's order."""
    if isinstance(work.layer, MatrixProduct):
        return math.inf
    matrix = _matrix(work, pe, simd)
    sizes = _tables_of(work, matrix)
    if sizes is None:
        return math.inf
    parts = matrix_parts(replace(matrix, tables=sizes), dsp=0, style=0, family="xc7")
    return _lut_equivalents(cost_of(parts)) + _around(work, pe, simd)


def _tables_of(work: Workload, matrix: Matrix) -> SumSizes | None:
    """Sizes of the distributed arithmetic tables of a unit, or None if it has none."""
    layer = work.layer
    assert isinstance(layer, Linear | Convolution)
    firsts = first_codes(matrix.words, matrix.x, matrix.product)
    if not firsts or matrix.kind != "MatVec":
        return None
    sizes = _sizes(layer, matrix.simd, firsts[0], (matrix.words - 1).bit_length())
    pay = tables_pay(matrix.simd, matrix.x.bits, matrix.w_bits, matrix.product, matrix.words, sizes)
    return sizes if pay else None


@lru_cache(maxsize=1 << 10)
def _sizes(layer: Linear | Convolution, simd: int, first: int, address: int) -> SumSizes:
    rows = layer.weight.reshape(len(layer.weight), -1)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % simd)))
    return sizes_of(padded.reshape(-1, simd), first, address)


def _adder_price(work: Workload) -> float:
    """Price of a graph of adders or counters, all sums of a window in every beat.

    The graph is not built for it. Rows share so evenly that its bits follow from the digits of the weights. The error
    is within 15 % for random matrices of 128 to 4096 weights of 2 to 8 bits.
    """
    bits = _adder_bits(work)
    return (
        math.inf if bits == math.inf else (1 + REGISTER) * bits + _around(work, work.outputs, work.taps * work.columns)
    )


def _adder_bits(work: Workload) -> float:
    layer = work.layer
    if isinstance(layer, MatrixProduct) or work.groups > 1 or work.depthwise:
        return math.inf
    if _weights(layer)[0] is Product.AGREEMENTS:
        tables = agreement_tables(work.outputs, work.taps * work.columns)
        return COUNTER * tables if layer.weight.size <= MOST_AGREEMENTS else math.inf
    digits = _digits(layer)
    return ADDER_BITS * digits * (layer.source.type.bits + 2) if digits <= MOST_DIGITS else math.inf


@lru_cache(maxsize=1 << 10)
def _digits(layer: Linear | Convolution) -> int:
    return count_digits(layer.weight)


def _around(work: Workload, pe: int, simd: int, block: int = 0) -> float:
    """LUTs of the hardware that feeds the unit, and of its consumer, which may be in DSP blocks of `block` bits."""
    layer = work.layer
    assert not isinstance(layer, MatrixProduct)
    beat = work.columns_at_once(simd) * layer.source.type.bits
    return pe * consumer_price(work, pe, block) + max(0, beat - WIDE_BEAT) * 2 + _window(work, pe, simd)


def consumer_price(work: Workload, pe: int, block: int = 0) -> float:
    """Approximate LUTs of the quantizer or port after a layer, for each row at once. `block`: as in `_around`."""
    luts_per_bit = PORT if work.ends else BINARY if work.bits else QUANTIZER
    if not work.ends and not block and pe >= work.outputs:
        luts_per_bit = min(luts_per_bit, ONE_CHANNEL)
    return luts_per_bit * work.layer.result.type.bits


def _matrix(work: Workload, pe: int, simd: int) -> Matrix:
    """The dimensions of the unit that implements a layer."""
    layer, windows = work.layer, work.windows(pe)
    assert isinstance(layer, Linear | Convolution)
    product, w_bits = _weights(layer)
    x, sum_bits, pe_of_window = layer.source.type, layer.result.type.bits, pe // windows
    if isinstance(layer, Linear) or (work.at_once(pe, simd) and work.groups == 1 and not work.depthwise):
        rounds, folds = -(-work.rows // pe_of_window), -(-work.columns // work.columns_at_once(simd))
        return Matrix(
            "MatVec",
            x,
            w_bits,
            product,
            rounds * folds,
            pe_of_window,
            simd,
            windows * simd * x.bits,
            sum_bits,
            rows_sharing_codes=pe_of_window,
            windows=windows,
            row_folds=rounds,
            col_folds=folds,
        )
    beat_elements = work.elements(pe, simd)
    if work.at_once(pe, simd):
        words, columns = -(-work.outputs // pe_of_window), work.taps * work.columns
        return Matrix(
            "GroupedMatVec",
            x,
            w_bits,
            product,
            words,
            pe_of_window,
            columns,
            work.taps * beat_elements * x.bits,
            sum_bits,
        )
    rounds, folds = -(-work.rows // pe_of_window), -(-work.columns // simd)
    depth = layer.window.reach[0] * layer.source.shape[-2] * -(-layer.source.shape[-1] // beat_elements)
    return Matrix(
        "ConvUnit",
        x,
        w_bits,
        product,
        work.groups * rounds * work.taps * folds,
        pe_of_window,
        simd,
        beat_elements * x.bits,
        sum_bits,
        rows_sharing_codes=pe_of_window,
        depth=depth,
    )


@lru_cache(maxsize=1 << 10)
def _weights(layer: Linear | Convolution) -> tuple[Product, int]:
    """How a layer multiplies, and the bits of its weights."""
    product = product_of(layer)
    low, high = int(layer.weight.min()), int(layer.weight.max())
    return product, IntType(min(low, -1), high).bits if product is Product.INTEGER else 1


def _window(work: Workload, pe: int, simd: int) -> float:
    """LUTs of hg_unfold, which delivers all taps at once: a memory for each tap, and the rotation of rows."""
    layer = work.layer
    if not isinstance(layer, Convolution) or not work.at_once(pe, simd):
        return 0.0
    lanes, (rows, columns) = work.elements(pe, simd) * work.windows(pe), layer.window.kernel
    bank_words = layer.source.shape[-2] * -(-layer.source.shape[-1] // lanes)
    copied = bank_words <= (64 if columns > 2 else 32)
    bits = lanes * layer.source.type.bits
    memory_cost = buffer(bank_words if copied else -(-bank_words // columns), bits)
    # One row more than the window has: it is filled while the others are in use.
    slots = rows + (rows > 1)
    turned = work.taps * bits * (turning(slots) + (columns > 1 and not copied))
    return walking(bank_words * slots) + turned + slots * columns * _lut_equivalents(memory_cost)


def regrouping_price(source: Stream, result: Stream) -> float:
    """LUTs that convert the beats of one stream to another stream's; four registers count as a LUT."""
    return _lut_equivalents(cost_of(regrouping(source, result)))


def _lut_equivalents(cost: Cost) -> float:
    """All resources of a unit, in LUT."""
    return cost.lut + REGISTER * cost.ff + BLOCK_RAM_LUTS * cost.bram


def _factor_bits(layer: MatrixProduct) -> int:
    """Bits of the second operand of a product, as a signed number."""
    type_ = layer.operand(1)
    return IntType(min(-1, type_.lo), max(0, type_.hi)).bits
