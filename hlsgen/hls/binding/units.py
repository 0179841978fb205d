"""Binds every kind of unit to its function of the C++ library and that function's arguments."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import (
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
    TiledPool,
    WeightedUnit,
    WidthConverter,
)
from hlsgen.dataflow.weight_words import packed
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.hls.binding.float_units import bind_float_key, bind_float_unit
from hlsgen.hls.binding.moves import bind_width
from hlsgen.hls.binding.realizations import bind_realization
from hlsgen.hls.process import Process, Rom, process
from hlsgen.numerics.fixed import IntType, int_type


def bind_node(node: Node, fraction: int | None = None) -> Process:
    """The function call of a node. `fraction`: bits behind the binary point of its result, see `binary_point`."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case Port() | Fifo():
            raise AssertionError("ports and FIFOs are no processes of the library")
        case WidthConverter():
            return bind_width(source, result)
        case RescaleUnit():
            return bind_realization(unit.found, unit.table, source, result, fraction)
        case MatVec():
            return _matrix(node, unit)
        case AdderMatVec():
            return _matrix(node, unit.matrix)
        case Fork(count):
            return process("fork", f"{count} takers", BEATS=source.beats)
        case FloatKeyUnit():
            return bind_float_key(source)
        case FloatUnit():
            return bind_float_unit(unit, source)
        case ConvUnit() | PoolUnit() | TiledPool() | SlidingWindow() | GroupedMatVec():
            raise NotImplementedError(type(unit).__name__)
        case ReduceTree() | JoinStreams() | ConcatBeats() | ConcatChannels() | SelectLanes() | Crop() | PadBorder():
            raise NotImplementedError(type(unit).__name__)
        case Reorder() | ArgMaxUnit():
            raise NotImplementedError(type(unit).__name__)
        case _:
            assert_never(unit)


def product(unit: WeightedUnit) -> tuple[str, IntType, str]:
    """The product of the library, the type of the weights as they are stored, and what a comment says of them."""
    match unit.product:
        case Product.INTEGER:
            bits = weight_bits(unit)
            return f"hg::multiply<ap_int<{bits}> >", int_type(bits, True), f"{bits}-bit weights"
        case Product.BIPOLAR:
            return "hg::bipolar", IntType(0, 1), "bipolar weights"
        case Product.AGREEMENTS:
            return "hg::agreements", IntType(0, 1), "bipolar weights, popcount"
        case _:
            assert_never(unit.product)


def weights(unit: WeightedUnit, type_: IntType, *shape: int) -> dict[str, Rom]:
    """The table of weights, in the order of use."""
    table = packed(unit).reshape(-1, *shape)
    return {"weights": Rom(np.ascontiguousarray(table), type_, "[fold][row][column]")}


def _matrix(node: Node, unit: MatVec) -> Process:
    name, type_, kind = product(unit)
    about = f"{len(unit.weight)} x {unit.weight.shape[1] * unit.weight.shape[2]}, {kind}"
    assert unit.windows == 1
    return process(
        "mvu", about, weights(unit, type_, unit.pe, unit.simd), PRODUCT=name, PE=unit.pe, SIMD=unit.simd,
        ROW_FOLDS=unit.row_folds, COL_FOLDS=unit.col_folds, VECTORS=unit.vectors,
    )  # fmt: skip
