"""Binds units with weights to functions of the C++ library."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import ConvUnit, DynamicMatVec, GroupedMatVec, MatVec, Node, Product, WeightedUnit
from hlsgen.dataflow.weight_words import packed
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.hls.binding.windows import window_shape
from hlsgen.hls.process import Process, Rom, process
from hlsgen.numerics.fixed import IntType, int_type


def product(unit: WeightedUnit) -> tuple[str, IntType, str]:
    """The library's product functor, the stored type of the weights, and a text that describes them."""
    match unit.product:
        case Product.INTEGER:
            bits = weight_bits(unit)
            return "hg::multiply", int_type(bits, True), f"{bits}-bit weights"
        case Product.BIPOLAR:
            return "hg::bipolar", IntType(0, 1), "bipolar weights"
        case Product.AGREEMENTS:
            return "hg::agreements", IntType(0, 1), "bipolar weights, popcount"
        case _:
            assert_never(unit.product)


def _weights(unit: WeightedUnit, type_: IntType, *shape: int) -> dict[str, Rom]:
    """The array of weights, in the order of use."""
    table = packed(unit).reshape(-1, *shape)
    meaning = "[fold][row][column]" if len(shape) == 2 else "[fold][element]"
    return {"weights": Rom(np.ascontiguousarray(table), type_, meaning)}


def bind_matrix(node: Node, unit: MatVec) -> Process:
    """Call of a matrix times vectors, one or several per beat."""
    name, type_, weight_text = product(unit)
    summary = f"{len(unit.weight)} x {unit.weight.shape[1] * unit.weight.shape[2]}, {weight_text}"
    tables = _weights(unit, type_, unit.pe, unit.simd)
    if unit.windows > 1:
        return process(
            "mvu_beside",
            f"{summary}, {unit.windows} vectors a beat",
            tables,
            header="mvu",
            PRODUCT=name,
            WINDOWS=unit.windows,
            TAPS=unit.taps,
            PE=unit.pe,
            SIMD=unit.simd,
            BEATS=node.source.beats,
        )
    return process(
        "mvu",
        summary,
        tables,
        PRODUCT=name,
        PE=unit.pe,
        SIMD=unit.simd,
        ROW_FOLDS=unit.row_folds,
        COL_FOLDS=unit.col_folds,
        VECTORS=unit.vectors,
    )


def bind_product(node: Node, unit: DynamicMatVec) -> Process:
    """Call of dot products of two streams."""
    constants = (*unit.factors, *unit.offsets)
    return process(
        "dynamic_mvu",
        f"{unit.pe} sums of {unit.folds * unit.simd} products of two streams",
        FACTOR=IntType(min(-1, *constants), max(constants)),
        PE=unit.pe,
        SIMD=unit.simd,
        FOLDS=unit.folds,
        ROWS_FIRST=unit.rows_first,
        FA=unit.factors[0],
        OA=unit.offsets[0],
        FB=unit.factors[1],
        OB=unit.offsets[1],
        SUMS=node.result.beats,
    )


def bind_convolution(unit: ConvUnit) -> Process:
    """Call of a convolution, tap by tap."""
    name, type_, weight_text = product(unit)
    summary = f"{unit.window.kernel[0]} x {unit.window.kernel[1]} kernel, {weight_text}"
    sizes = {"GROUPS": unit.groups, "FOLDS": unit.folds, "REPEAT": unit.repeat, "DEPTH": unit.depth}
    shape = window_shape(unit.window, unit.height, unit.width, unit.pad, **sizes)
    if unit.depthwise:
        assert unit.repeat == unit.folds == 1
        return process(
            "depthwise",
            f"depthwise, {summary}",
            _weights(unit, type_, unit.pe),
            shape,
            header="conv",
            PRODUCT=name,
        )
    return process("conv", summary, _weights(unit, type_, unit.pe, unit.simd), shape, PRODUCT=name)


def bind_groups(node: Node, unit: GroupedMatVec) -> Process:
    """Call of sums over groups of elements, all taps at once."""
    name, type_, weight_text = product(unit)
    grouping = "depthwise" if unit.rows == unit.columns == 1 else f"groups of {unit.rows} x {unit.columns}"
    return process(
        "grouped",
        f"{grouping}, {unit.taps} taps, {weight_text}",
        _weights(unit, type_, unit.pe, unit.simd),
        PRODUCT=name,
        TAPS=unit.taps,
        ROWS=unit.rows,
        COLUMNS=unit.columns,
        FOLDS=unit.folds,
        WINDOWS=node.source.beats // unit.folds,
    )
