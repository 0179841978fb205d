"""Binds realizations that look codes up: comparisons with thresholds, tables, cascades of tables, buckets and cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.per_lane import of_entries, of_lanes, rounds
from hlsgen.hls.process import Process, Rom, process, rom
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import Comparators, Correct, Rank, Table, Thresholds
from hlsgen.rescale.realize.table import TableMode


def thresholds(found: Thresholds, table: Array, source: Stream) -> Process:
    """A binary search."""
    return process(
        "thresholds", f"{len(found.table)} thresholds a channel", _steps(found, table),
        STEPS=len(found.table), FOLDS=len(table), ROUNDS=rounds(table, source), BASE=found.base,
    )  # fmt: skip


def compare(found: Comparators, table: Array, source: Stream) -> Process:
    """A comparison for each threshold."""
    return process(
        "compare", f"{len(found.table)} comparisons a channel", _steps(found, table),
        STEPS=len(found.table), FOLDS=len(table), ROUNDS=rounds(table, source), BASE=found.base,
    )  # fmt: skip


def _steps(found: Thresholds | Comparators, table: Array) -> dict[str, Rom]:
    roms = {"thresholds": of_entries(found.table, table, "step", signed=True)}
    if found.falling[table].any():
        roms["falling"] = of_lanes(found.falling.astype(np.int64), table)
    return roms


def table(found: Table, sets: Array, source: Stream) -> Process:
    """A memory. `sets` int64 (folds, lanes)."""
    roms = {"entries": of_entries(found.entries, sets, "index")}
    folds: dict[str, Any] = {"SIZE": len(found.entries), "FOLDS": len(sets), "ROUNDS": rounds(sets, source)}
    if found.mode != TableMode.DIRECT:
        roms["centre"] = of_lanes(found.center, sets, signed=True)
    size = f"{len(found.entries)} entries a channel"
    match found.mode:
        case TableMode.DIRECT:
            return process("table", f"table, {size}", roms, **folds)
        case TableMode.WINDOW:
            return process("table_window", f"table of a window, {size}", roms, header="table", **folds)
        case TableMode.HALF:
            return process(
                "table_half", f"table of half a window, {size}", roms, header="table", **folds, EVEN=found.even,
                TOTAL=found.total,
            )  # fmt: skip


def rank(found: Rank, table: Array, source: Stream) -> Process:
    """A cascade of tables. `table` int64 (1, lanes)."""
    assert len(table) == 1, "rank has one function a lane"
    levels, size = len(found.chunks), max(map(len, found.tables))
    tables = np.zeros((levels, table.shape[1], size), np.int64)
    for level, entries in enumerate(found.tables):
        tables[level, :, : len(entries)] = entries[:, table[0]].T
    bits = np.array([(0, *found.states), found.chunks]).T
    return process(
        "rank", f"{levels} tables a lane",
        {"bits": rom(bits, "[level][of the state, of x]"), "tables": rom(tables, "[level][lane][index]")},
        LEVELS=levels, LOW=found.low, BEATS=source.beats,
    )  # fmt: skip


def correct(found: Correct, table: Array, source: Stream) -> Process:
    """Buckets and cells, and one comparison. `table` int64 (folds, lanes): the sets of a lane have one shape."""
    lanes = table[0]
    fields = (found.coarse, found.fine, found.bucket, found.cell, found.first, found.last, found.above)
    shape = np.stack([*(field[lanes] for field in fields), np.zeros_like(lanes)], axis=1)
    roms = {
        "shape": rom(
            shape, "[lane][coarse, fine, bits of a bucket, of a cell, first, last, count beyond, 0]", signed=True
        ),
        "start": of_entries(found.start, table, "bucket", signed=True),
        "code": of_entries(found.code, table, "bucket", signed=True),
        "count": of_entries(found.count, table, "cell"),
        "level": of_entries(found.level, table, "cell"),
        "sure": of_entries(found.sure.astype(np.int64), table, "cell"),
        "rest": of_entries(found.low_bits, table, "code"),
    }
    return process(
        "correct", f"{len(found.start)} buckets, {len(found.level)} cells", roms,
        Y_BITS=int((found.size + found.cell).max()), FRACTION=found.fraction, LOW=found.low, FOLDS=len(table),
        ROUNDS=rounds(table, source),
    )  # fmt: skip
