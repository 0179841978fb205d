"""Binds look-up realizations: comparisons with thresholds, lookup tables, their cascades, buckets and cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.per_lane import bit_range, lane_constants, lane_tables, rounds, signed_type
from hlsgen.hls.process import Process, Rom, process, rom
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import Comparators, Correct, Lines, Rank, Table, Thresholds
from hlsgen.rescale.realize.table import TableMode


def thresholds(search: Thresholds, table: Array, source: Stream) -> Process:
    """Call of a binary search."""
    return process(
        "thresholds",
        f"{len(search.table)} thresholds a channel",
        _threshold_roms(search, table),
        STEPS=len(search.table),
        FOLDS=len(table),
        ROUNDS=rounds(table, source),
        BASE=search.base,
    )


def compare(comparators: Comparators, table: Array, source: Stream) -> Process:
    """Call with one comparison per threshold."""
    return process(
        "compare",
        f"{len(comparators.table)} comparisons a channel",
        _threshold_roms(comparators, table),
        STEPS=len(comparators.table),
        FOLDS=len(table),
        ROUNDS=rounds(table, source),
        BASE=comparators.base,
    )


def _threshold_roms(realization: Thresholds | Comparators, table: Array) -> dict[str, Rom]:
    roms = {"thresholds": lane_tables(realization.table, table, "step", signed=True)}
    if realization.falling[table].any():
        roms["falling"] = lane_constants(realization.falling.astype(np.int64), table)
    return roms


def table(lookup: Table, sets: Array, source: Stream) -> Process:
    """Call of a lookup table in memory. `sets` int64 (folds, lanes)."""
    roms = {"entries": lane_tables(lookup.entries, sets, "index")}
    folds: dict[str, Any] = {"SIZE": len(lookup.entries), "FOLDS": len(sets), "ROUNDS": rounds(sets, source)}
    if lookup.mode != TableMode.DIRECT:
        roms["centre"] = lane_constants(lookup.center, sets, signed=True)
    size = f"{len(lookup.entries)} entries a channel"
    match lookup.mode:
        case TableMode.DIRECT:
            return process("table", f"lookup table, {size}", roms, **folds)
        case TableMode.WINDOW:
            return process("table_window", f"lookup table of a window, {size}", roms, header="table", **folds)
        case TableMode.HALF:
            return process(
                "table_half",
                f"lookup table of half a window, {size}",
                roms,
                header="table",
                **folds,
                EVEN=lookup.even,
                TOTAL=lookup.total,
            )


def lines(lines: Lines, table: Array, source: Stream) -> Process:
    """Call of lines between knots. `table` int64 (1, lanes): all lanes have the same function."""
    products = [x * lines.multiplier for x in bit_range(source.type)]
    bound = max(map(abs, products)) + (1 << lines.shift)
    top = (int(lines.values.max()) << lines.left_shift) + (int(lines.rises.max()) << lines.fraction)
    knots = np.broadcast_to(np.stack([lines.values, lines.rises], axis=1), (table.shape[1], len(lines.values), 2))
    return process(
        "lines",
        f"lines between {len(lines.values)} knots",
        {"knots": rom(np.ascontiguousarray(knots), "[lane][knot][value, rise]")},
        SCALED=signed_type(-bound, bound),
        SUM=signed_type(-top, top, lines.mirror - top, lines.mirror),
        MULTIPLIER=lines.multiplier,
        SHIFT=lines.shift,
        KNOTS=len(lines.values),
        FRACTION=lines.fraction,
        LEFT=lines.left_shift,
        RIGHT=lines.right_shift,
        MIRROR=lines.mirror,
        BEATS=source.beats,
    )


def rank(cascade: Rank, table: Array, source: Stream) -> Process:
    """Call of a cascade of lookup tables. `table` int64 (1, lanes)."""
    assert len(table) == 1, "rank has one function a lane"
    levels, size = len(cascade.chunks), max(map(len, cascade.tables))
    tables = np.zeros((levels, table.shape[1], size), np.int64)
    for level, entries in enumerate(cascade.tables):
        tables[level, :, : len(entries)] = entries[:, table[0]].T
    bits = np.array([(0, *cascade.states), cascade.chunks]).T
    return process(
        "rank",
        f"{levels} lookup tables a lane",
        {"bits": rom(bits, "[level][of the state, of x]"), "tables": rom(tables, "[level][lane][index]")},
        LEVELS=levels,
        LOW=cascade.low,
        BEATS=source.beats,
    )


def correct(correction: Correct, table: Array, source: Stream) -> Process:
    """Call with buckets, cells and one comparison. `table` int64 (folds, lanes): all sets of a lane share one shape."""
    lanes = table[0]
    fields = (
        correction.coarse,
        correction.fine,
        correction.bucket,
        correction.cell,
        correction.first,
        correction.last,
        correction.above,
    )
    shape = np.stack([*(field[lanes] for field in fields), np.zeros_like(lanes)], axis=1)
    roms = {
        "shape": rom(
            shape, "[lane][coarse, fine, bits of a bucket, of a cell, first, last, count beyond, 0]", signed=True
        ),
        "start": lane_tables(correction.start, table, "bucket", signed=True),
        "code": lane_tables(correction.code, table, "bucket", signed=True),
        "count": lane_tables(correction.count, table, "cell"),
        "level": lane_tables(correction.level, table, "cell"),
        "sure": lane_tables(correction.sure.astype(np.int64), table, "cell"),
        "rest": lane_tables(correction.low_bits, table, "code"),
    }
    return process(
        "correct",
        f"{len(correction.start)} buckets, {len(correction.level)} cells",
        roms,
        Y_BITS=int((correction.size + correction.cell).max()),
        FRACTION=correction.fraction,
        LOW=correction.low,
        FOLDS=len(table),
        ROUNDS=rounds(table, source),
    )
