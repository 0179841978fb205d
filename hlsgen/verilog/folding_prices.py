"""What foldings of layers cost, before there are units: to choose one, and to see whether it fits."""

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
from hlsgen.verilog.memory_sizes import BLOCK_TABLES, KIND_STYLES, buffer, memory, weights_style
from hlsgen.verilog.resource_model import cost_of
from hlsgen.verilog.sum_tables import SumSizes, first_codes, sizes_of, tables_pay, word_tables
from hlsgen.verilog.unit_parts import regrouping, turning

#: Tables of a family for one of Xilinx 7 series, roughly, before anything is planned.
ROUGHLY = {"ecp5": 1.5, "gowin": 1.6, "ice40": 1.4}
#: Widest input beat of a layer, in bits, that costs nothing but its registers.
WIDE_BEAT = 1024
#: What a register costs in tables, about as devices have them: there are more than are used.
REGISTER = 0.05
#: What a multiplier block costs in tables where blocks are preferred.
PREFERRED = LIBRARY.counts["dsp"][0]
#: Bits of adders for each digit of the weights that are not 0, and each bit of the inputs and two more.
ADDER_BITS = 0.54
#: Tables for each bit of a sum: of the quantizer behind, of one with two codes, or of the port.
QUANTIZER, BINARY, PORT = 3.0, 1.7, 1.0


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
    """What the multiplying layers of a folding cost, roughly, before anything is planned.

    `dsp`: bits of the wider factor of multiplier blocks, for each layer, or 0. `constants`: weights that are in none may
    be part of the circuit. `budget`: weights may be in tables or in blocks, as it wants it (weight_memories). Behind every
    result lane a quantizer of its code's bits is counted.
    """
    total = Cost()
    free: list[tuple[Cost, list[Cost]]] = []
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
        together = 1 if work.depthwise else pe // work.windows(pe)
        products = multipliers(layer.source.type, bits, product, pe, simd, block, family, together)
        words, width = -(-layer.weight.size // (pe * simd)), pe * simd * bits
        held = memory(words, width, weights_style(words, width, style), family)
        constant = None
        if constants and not block and work.single(pe, simd) and _adder_bits(work) < (products + held).lut:
            constant = _adder_bits(work)
        if constants and not block and (sizes := _tables_of(work, _matrix(work, pe, simd))) is not None:
            constant = pe * word_tables(simd, layer.source.type.bits, sizes)
        total += products + held if constant is None else Cost(lut=constant, ff=constant)
        if constant is None and words > 1:
            kinds = [memory(words, width, kind, family) for kind in KIND_STYLES.values()]
            free.append((replace(held, lut=held.lut * scale), [replace(kind, lut=kind.lut * scale) for kind in kinds]))
        total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * layer.source.type.bits)
        total += Cost(lut=_window(work, pe, simd))
    total = replace(total, lut=total.lut * scale)
    return total if budget is None or budget.excess(total) <= 1 else chosen(total, free, budget)[0]


def most_saving(costs: Mapping[str, tuple[Cost, Cost]], most: int) -> frozenset[str]:
    """The layers of which the second cost, in multiplier blocks, saves most tables against the first, in at most so many."""
    kinds = [[(0, _tables(tables)), (blocks.dsp, _tables(blocks))] for tables, blocks in costs.values()]
    ways = front([either[: 1 + (either[1][0] > 0)] for either in kinds])
    _, picks = ways[max(taken for taken in ways if taken <= most)]
    return frozenset(name for name, in_blocks in zip(costs, picks, strict=True) if in_blocks)


def folding_price(work: Workload, pe: int, simd: int) -> float:
    """Tables of a layer with this folding, roughly, in order to compare it with other foldings of the layer."""
    return block_price(work, pe, simd, 0)


def block_price(work: Workload, pe: int, simd: int, block: int) -> float:
    """The same, with products in multiplier blocks with so many bits in the wider factor, where they are worth it."""
    layer = work.layer
    if isinstance(layer, MatrixProduct):
        left, bits = layer.operand(0).bits, _factor_bits(layer)
        beat = simd * left + pe * simd * layer.sources[1].type.bits
        products = multipliers(layer.operand(0), bits, Product.INTEGER, pe, simd, block, together=pe)
        tables = products.lut + PREFERRED * products.dsp + pe * layer.result.type.bits * 3
        return tables + beat / 4 + max(0, beat - WIDE_BEAT) * 2
    cost = cost_of(matrix_parts(_matrix(work, pe, simd), dsp=block, style=0, family="xc7"))
    return _tables(cost) + PREFERRED * cost.dsp + _around(work, pe, simd)


def constant_price(work: Workload, pe: int, simd: int) -> float:
    """What folding_price is of a layer with weights that are part of the circuit; infinite if they cannot be."""
    return _adder_price(work) if work.single(pe, simd) else _table_price(work, pe, simd)


def _table_price(work: Workload, pe: int, simd: int) -> float:
    """Of tables of sums, as wide as they are if columns come as the layer has them."""
    if isinstance(work.layer, MatrixProduct):
        return math.inf
    matrix = _matrix(work, pe, simd)
    sizes = _tables_of(work, matrix)
    if sizes is None:
        return math.inf
    parts = matrix_parts(replace(matrix, tables=sizes), dsp=0, style=0, family="xc7")
    return _tables(cost_of(parts)) + _around(work, pe, simd)


def _tables_of(work: Workload, matrix: Matrix) -> SumSizes | None:
    """Sizes of the tables that a unit has; None if it has none."""
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
    """Of a graph of adders or counters, all sums of a window in every beat.

    The graph is not made for it: rows share so evenly that its bits follow from the digits of the weights (within 15 %
    for random matrices of 128 to 4096 weights of 2 to 8 bits).
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


def _around(work: Workload, pe: int, simd: int) -> float:
    """What feeds the unit, and what takes its sums."""
    layer = work.layer
    assert not isinstance(layer, MatrixProduct)
    each = PORT if work.ends else BINARY if work.bits else QUANTIZER
    behind = each * pe * layer.result.type.bits
    beat = work.columns_at_once(simd) * layer.source.type.bits
    return behind + max(0, beat - WIDE_BEAT) * 2 + _window(work, pe, simd)


def _matrix(work: Workload, pe: int, simd: int) -> Matrix:
    """The numbers of the unit that a layer becomes."""
    layer, windows = work.layer, work.windows(pe)
    assert isinstance(layer, Linear | Convolution)
    product, w_bits = _weights(layer)
    x, sums, own = layer.source.type, layer.result.type.bits, pe // windows
    if isinstance(layer, Linear) or (work.at_once(pe, simd) and work.groups == 1 and not work.depthwise):
        rounds, folds = -(-work.rows // own), -(-work.columns // work.columns_at_once(simd))
        return Matrix(
            "MatVec",
            x,
            w_bits,
            product,
            rounds * folds,
            own,
            simd,
            windows * simd * x.bits,
            sums,
            together=own,
            windows=windows,
            row_folds=rounds,
            col_folds=folds,
        )
    taken = work.elements(pe, simd)
    if work.at_once(pe, simd):
        words, columns = -(-work.outputs // own), work.taps * work.columns
        return Matrix("GroupedMatVec", x, w_bits, product, words, own, columns, work.taps * taken * x.bits, sums)
    rounds, folds = -(-work.rows // own), -(-work.columns // simd)
    depth = layer.window.reach[0] * layer.source.shape[-2] * -(-layer.source.shape[-1] // taken)
    return Matrix(
        "ConvUnit",
        x,
        w_bits,
        product,
        work.groups * rounds * work.taps * folds,
        own,
        simd,
        taken * x.bits,
        sums,
        together=own,
        depth=depth,
    )


@lru_cache(maxsize=1 << 10)
def _weights(layer: Linear | Convolution) -> tuple[Product, int]:
    """How a layer multiplies, and the bits of its weights."""
    product = product_of(layer)
    low, high = int(layer.weight.min()), int(layer.weight.max())
    return product, IntType(min(low, -1), high).bits if product is Product.INTEGER else 1


def _window(work: Workload, pe: int, simd: int) -> float:
    """Tables of hg_unfold, where all taps come at once: a memory for each, and what turns them."""
    layer = work.layer
    if not isinstance(layer, Convolution) or not work.at_once(pe, simd):
        return 0.0
    lanes, (rows, wide) = work.elements(pe, simd) * work.windows(pe), layer.window.kernel
    kept = layer.source.shape[-2] * -(-layer.source.shape[-1] // lanes)
    copied = kept <= (64 if wide > 2 else 32)
    bits = lanes * layer.source.type.bits
    held = buffer(kept if copied else -(-kept // wide), bits)
    # One row more than the window has: it comes in while the last ones are in use.
    slots = rows + (rows > 1)
    turned = work.taps * bits * (turning(slots) + (wide > 1 and not copied))
    return walking(kept * slots) + turned + slots * wide * _tables(held)


def regrouping_price(source: Stream, result: Stream) -> float:
    """Tables that make the beats of one stream of those of another, and their registers as four of a table."""
    return _tables(cost_of(regrouping(source, result)))


def _tables(cost: Cost) -> float:
    """All that a unit takes, in tables."""
    return cost.lut + REGISTER * cost.ff + BLOCK_TABLES * cost.bram


def _factor_bits(layer: MatrixProduct) -> int:
    """Bits of the second operand of a product, as a signed number."""
    type_ = layer.operand(1)
    return IntType(min(-1, type_.lo), max(0, type_.hi)).bits
