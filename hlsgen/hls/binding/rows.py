"""Binds units on rows of integers to functions of rows.hpp."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import assert_never

from hlsgen.dataflow.row_sizes import NormSizes, ShareSizes, filled, fixed_point_sum
from hlsgen.dataflow.units import Node, RowsUnit
from hlsgen.hls.process import Process, process, rom
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare, IntegerNorm, Share


def bind_rows(node: Node, unit: RowsUnit) -> Process:
    """Call of a function of rows."""
    return replace(_process(node, unit, node.source.beats // unit.beats), network=True)


def _process(node: Node, unit: RowsUnit, rows: int) -> Process:
    match unit.function:
        case BelowLargest():
            return process("rows_max", f"below the largest of {unit.count}", header="rows", BEATS=unit.beats, ROWS=rows)
        case Share():
            return _share(unit, unit.function, rows)
        case FixedPointShare():
            return _fixed_share(unit, unit.function, rows)
        case IntegerNorm():
            return _norm(node, unit, unit.function, rows)
        case _:
            assert_never(unit.function)


def _share(unit: RowsUnit, share: Share, rows: int) -> Process:
    sizes = ShareSizes.of(share, unit.source, unit.count)
    tables = {
        name: rom(filled(table, unit.source), "[element]")
        for name, table in (("weights", share.weights), ("numbers", share.numbers))
    }
    return process(
        "rows_share",
        f"shares of {unit.count}",
        tables,
        header="rows",
        SUM=f"ap_uint<{sizes.sum}>",
        BEATS=unit.beats,
        ROWS=rows,
    )


def _fixed_share(unit: RowsUnit, share: FixedPointShare, rows: int) -> Process:
    return process(
        "rows_fixed_share",
        f"fixed-point shares of {unit.count}",
        {"exponentials": rom(filled(share.exponentials, unit.source), "[element]")},
        header="rows",
        SUM=f"ap_uint<{fixed_point_sum(unit.count)}>",
        BEATS=unit.beats,
        ROWS=rows,
    )


def _norm(node: Node, unit: RowsUnit, norm: IntegerNorm, rows: int) -> Process:
    sizes = NormSizes.of(norm, unit.source, unit.count)
    lanes = unit.beats, node.source.lanes
    kind = "layer" if norm.centred else "root-mean-square"
    tables = {
        name: rom(values.reshape(lanes), "[beat][lane]", signed=True)
        for name, values in (("weights", norm.weight), ("biases", norm.bias))
    }
    return process(
        "rows_norm",
        f"{kind} norm of {unit.count}",
        tables,
        header="rows",
        SUM=f"ap_int<{sizes.sum}>",
        SQUARES=f"ap_uint<{sizes.squares}>",
        ROOT=f"ap_uint<{sizes.root}>",
        NUMBER=f"ap_int<{sizes.number}>",
        CENTERED=norm.centred,
        SHIFT=norm.shift,
        WRAPS=norm.wraps,
        BEATS=unit.beats,
        ROWS=rows,
    )
