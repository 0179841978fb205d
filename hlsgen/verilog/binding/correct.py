"""Binds the realization Correct to hg_correct, which looks up a bucket and corrects its code by one comparison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.correct import Correct
from hlsgen.verilog.binding.memory_files import Binding, Bits, words


def bind(found: Correct, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the set of each lane in each beat."""
    # All sets of a lane have the same parameters, their tables differ.
    sets = table[0]
    bits = source.bits
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if source.signed else (0, (1 << bits) - 1)
    # Bounds that no input passes are those of the type.
    first = np.where(found.below[table].any(axis=0), found.first[sets], low)
    last = np.where(found.beyond[table].any(axis=0), found.last[sets], high)
    shapes = found.bucket | found.cell << 8 | found.coarse << 16 | found.fine << 24
    return Binding(
        "hg_correct",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "FRACTION": found.fraction,
            "REST": found.rest_bits,
            "COUNT": found.count_bits,
            "SHAPES": _packed(shapes[sets], 32),
            "FIRST": _packed(first, bits),
            "LAST": _packed(last, bits),
            "ABOVE": _packed(found.above[sets], found.count_bits),
            "OPEN": 0,
            "DEEP": int(found.deep),
            "FILE": name,
        },
        f"{len(found.start)} buckets, {len(found.level)} cells, {found.rest_bits} bits of a threshold by its code",
        dict(_memories(found, table, result, name)),
    )


def _memories(found: Correct, table: Array, result: IntType, name: str) -> Iterator[tuple[str, str]]:
    codes = (1 << result.bits) - 1
    counts = found.count | (found.sure.astype(np.int64) << found.count_bits)
    rest = np.zeros((codes + 1 if found.rest_bits else 0, found.low_bits.shape[1]), np.int64)
    if found.rest_bits:
        rest[(found.low + np.arange(len(found.low_bits))) & codes] = found.low_bits
    for lane in range(table.shape[1]):
        sets = table[:, lane]
        size, cell = int(found.size[sets[0]]), int(found.cell[sets[0]])
        # Words may have more than 63 bits.
        start = found.start[:, sets] & ((1 << size + cell) - 1)
        bucket = ((found.code[:, sets] & codes).astype(object) << (size + cell)) | start
        place = (counts[:, sets].astype(object) << size) | found.level[:, sets]
        files = (
            (bucket[: 1 << int(found.bucket[sets[0]])], result.bits + size + cell),
            (place[: 1 << cell], 1 + found.count_bits + size),
            (rest[:, sets], found.rest_bits),
        )
        for number, (entries, width) in enumerate(files):
            if width:
                column = entries.T.reshape(-1, 1)
                text = _columns(column, width) if len(table) == 1 else words(column, width)
                yield f"{name}_{lane:04d}_{number:02d}.mem", text


def _columns(entries: Array, width: int) -> str:
    """A word for each bit, of that bit of all entries: the form of tables that are logic."""
    return words(np.concatenate([(entries.T >> bit) & 1 for bit in range(width)]), 1)


def _packed(values: Array, bits: int) -> Bits:
    mask = (1 << bits) - 1
    return Bits(len(values) * bits, sum((value & mask) << (bits * k) for k, value in enumerate(values.tolist())))
