"""Latency of the library module that each unit becomes: its pipeline registers."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.adder_graph import AgreementGraph, schedule
from hlsgen.dataflow.row_sizes import NormSizes
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
    Unit,
    WidthConverter,
)
from hlsgen.dataflow.weighted_units import DspProducts, weight_bits
from hlsgen.ir import BinaryKind
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share, result_type
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatCompare, RoundToFloat, ToCode, ToFloat
from hlsgen.rescale.realize.thresholds import Thresholds
from hlsgen.verilog.shared_blocks import chains

FLOAT_LATENCY = {"ADD": 7, "MUL": 6, "DIV": 19, "MAX": 2, "MIN": 2}


def latency(unit: Unit) -> int:
    """Cycles from the beat that completes an output beat to that output beat.

    Units with a window, hg_gather and hg_softmax are counted from the cycle in which its last word is read.
    """
    match unit:
        case Port() | FloatKeyUnit() | WidthConverter() | Fifo() | Slice() | Reorder() | ConcatChannels():
            return 1
        case RescaleUnit():
            realization = unit.realization
            return (
                realization.latency(len(unit.table))
                if isinstance(realization, Thresholds)
                else realization.latency - unit.omits_register
            )
        case FloatUnit():
            match unit.unit:
                case Arithmetic(op):
                    return FLOAT_LATENCY[op]
                case RoundToFloat():
                    return 2
                case ToFloat():
                    return 8
                case ToCode():
                    return 6
                case FloatCompare():
                    raise AssertionError("a comparison is two units")
                case _:
                    assert_never(unit.unit)
        case MatVec():
            return 2 + _stages(unit, unit.simd, unit.pe) + 1
        case DynamicMatVec():
            return _products(unit.simd, unit.word.bits, unit.adders_per_stage, unit.dsp, unit.pe) + 1
        case AdderMatVec():
            if isinstance(unit.graph, AgreementGraph):
                return unit.graph.latency(unit.adders_per_stage)
            return schedule(unit.graph, unit.adders_per_stage, unit.consumer_ps, unit.producer_ps).latency
        case ConvUnit():
            simd, rows = (1, 1) if unit.depthwise else (unit.simd, unit.pe)
            return 2 + _stages(unit, simd, rows) + 1
        case GroupedMatVec():
            return 1 + _stages(unit, unit.simd, 1) + 1
        case ReduceTree():
            return max(1, (unit.taps - 1).bit_length())
        case PoolUnit():
            return 3
        case RowsUnit():
            return _rows(unit)
        case NormMoments(rows, beats):
            return 5 + _levels(rows.length // beats) // unit.adders_per_stage
        case NormRoot():
            return unit.cycles
        case NormScale():
            return 8
        case JoinStreams(floats=BinaryKind() as kind):
            return FLOAT_LATENCY["MUL" if kind is BinaryKind.MUL else "ADD"]
        case ArgMaxUnit() | JoinStreams() | TiledPool() | SlidingWindow():
            return 2
        case SoftmaxUnit():
            return (6 if unit.factors is None else 15) + unit.delay + unit.scaling
        case Fork() | ConcatBeats() | SelectLanes() | Crop() | PadBorder():
            return 0
        case _:
            assert_never(unit)


def _rows(unit: RowsUnit) -> int:
    """Cycles from the read of a beat of hg_rows_buffer."""
    match unit.function:
        case BelowLargest():
            return 2
        case Share():
            return 2 + result_type(unit.function, unit.source).bits
        case IntegerNorm():
            return 6 + NormSizes.of(unit.function, unit.source, unit.count).quotient
        case _:
            assert_never(unit.function)


def _stages(unit: MatVec | ConvUnit | GroupedMatVec, simd: int, rows: int) -> int:
    """Registers of hg_mac before its accumulators: STAGES there. `rows`: the rows that consume the same codes."""
    if isinstance(unit, MatVec) and unit.sums is not None:
        first, tree, merge = unit.sums.first, -(-simd // (4 * unit.sums.first - 3)), unit.sums.x_bits
        return (
            unit.sums.cut
            + (2 if simd < 2 * first else 3 if unit.sums.cut or unit.adders_per_stage > 1 else 4)
            + sum(-(-_levels(terms) // unit.adders_per_stage) for terms in (tree, merge))
        )
    if unit.product is Product.AGREEMENTS:
        alone = isinstance(unit, GroupedMatVec) or (isinstance(unit, MatVec) and unit.col_folds == 1)
        return 2 + -(-_levels(-(-(simd + alone) // 4)) // unit.adders_per_stage)
    return _products(simd, weight_bits(unit), unit.adders_per_stage, unit.dsp, rows)


def _products(simd: int, bits: int, adders_per_stage: int, products: DspProducts | None, rows: int) -> int:
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
