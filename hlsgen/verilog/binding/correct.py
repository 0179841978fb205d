"""Binds the realization Correct to hg_correct, which looks up a bucket and corrects its code by one comparison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.correct import Correct
from hlsgen.verilog.binding.memory_files import Binding, Bits, words


def bind(realization: Correct, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    # All sets of a lane have the same parameters, only their tables differ.
    sets = table[0]
    bits = source.bits
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if source.signed else (0, (1 << bits) - 1)
    # Bounds that no input exceeds are the bounds of the type.
    first = np.where(realization.below[table].any(axis=0), realization.first[sets], low)
    last = np.where(realization.beyond[table].any(axis=0), realization.last[sets], high)
    shapes = realization.bucket | realization.cell << 8 | realization.coarse << 16 | realization.fine << 24
    return Binding(
        "hg_correct",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "FRACTION": realization.fraction,
            "REST": realization.rest_bits,
            "COUNT": realization.count_bits,
            "SHAPES": _packed(shapes[sets], 32),
            "FIRST": _packed(first, bits),
            "LAST": _packed(last, bits),
            "ABOVE": _packed(realization.above[sets], realization.count_bits),
            "OPEN": 0,
            "DEEP": int(realization.deep),
            "FILE": name,
        },
        f"{len(realization.start)} buckets, {len(realization.level)} cells, "
        f"{realization.rest_bits} low threshold bits per code",
        dict(_memories(realization, table, result, name)),
    )


def _memories(realization: Correct, table: Array, result: IntType, name: str) -> Iterator[tuple[str, str]]:
    codes = (1 << result.bits) - 1
    counts = realization.count | (realization.sure.astype(np.int64) << realization.count_bits)
    low_bits = np.zeros((codes + 1 if realization.rest_bits else 0, realization.low_bits.shape[1]), np.int64)
    if realization.rest_bits:
        # After the last threshold a cell may still compare: `Correct.apply` takes the last entry there, too.
        count = len(realization.low_bits)
        low_entries = realization.low_bits[np.minimum(np.arange(count + 1), count - 1)]
        low_bits[(realization.low + np.arange(count + 1)) & codes] = low_entries
    for lane in range(table.shape[1]):
        sets = table[:, lane]
        size, cell = int(realization.size[sets[0]]), int(realization.cell[sets[0]])
        # Words may have more than 63 bits.
        start = realization.start[:, sets] & ((1 << size + cell) - 1)
        bucket_words = ((realization.code[:, sets] & codes).astype(object) << (size + cell)) | start
        cell_words = (counts[:, sets].astype(object) << size) | realization.level[:, sets]
        files = (
            (bucket_words[: 1 << int(realization.bucket[sets[0]])], result.bits + size + cell),
            (cell_words[: 1 << cell], 1 + realization.count_bits + size),
            (low_bits[:, sets], realization.rest_bits),
        )
        for number, (entries, width) in enumerate(files):
            if width:
                column = entries.T.reshape(-1, 1)
                text = _columns(column, width) if len(table) == 1 else words(column, width)
                yield f"{name}_{lane:04d}_{number:02d}.mem", text


def _columns(entries: Array, width: int) -> str:
    """The entries bit by bit, one word for each bit of all entries: the form of tables that are logic."""
    return words(np.concatenate([(entries.T >> bit) & 1 for bit in range(width)]), 1)


def _packed(values: Array, bits: int) -> Bits:
    mask = (1 << bits) - 1
    return Bits(len(values) * bits, sum((value & mask) << (bits * k) for k, value in enumerate(values.tolist())))
