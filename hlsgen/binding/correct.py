"""Correct -> hg_correct."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.binding.words import Binding, Bits, words
from hlsgen.fixed import Array, IntType
from hlsgen.rescale.correct import Correct


def bind(found: Correct, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    # All sets of a lane have the same parameters, their tables differ.
    sets = table[0]
    bits = source.bits
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if source.signed else (0, (1 << bits) - 1)
    # Bounds that no input passes are those of the type.
    first = np.where(found.below, found.first, low)[sets]
    last = np.where(found.beyond, found.last, high)[sets]
    return Binding(
        "hg_correct",
        {
            "LANES": table.shape[1], "FOLDS": len(table), "IN_W": bits, "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits, "BUCKET": found.bucket, "CELL": found.cell, "FRACTION": found.fraction,
            "PLACE": found.place_bits, "REST": found.rest_bits, "COUNT": found.count_bits,
            "SHAPES": _packed((found.coarse + (found.fine << 8))[sets], 16),
            "FIRST": _packed(first, bits), "LAST": _packed(last, bits),
            "ABOVE": _packed(found.above[sets], found.count_bits), "FILE": name,
        },
        f"{1 << found.bucket} buckets of {1 << found.cell} cells, {found.rest_bits} bits by the code",
        dict(_memories(found, table, result, name)),
    )  # fmt: skip


def _memories(found: Correct, table: Array, result: IntType, name: str) -> Iterator[tuple[str, str]]:
    start_bits, place_bits, codes = found.place_bits + found.cell, found.place_bits, (1 << result.bits) - 1
    # Fields of more than 63 bits together.
    buckets = ((found.code & codes).astype(object) << start_bits) | (found.start & ((1 << start_bits) - 1))
    counts = found.count | (found.sure.astype(np.int64) << found.count_bits)
    cells = (counts.astype(object) << place_bits) | found.level
    rest = np.zeros((codes + 1, found.rest.shape[1]), np.int64)
    rest[(found.low + np.arange(len(found.rest))) & codes] = found.rest
    widths = (result.bits + start_bits, 1 + found.count_bits + place_bits, found.rest_bits)
    alone = len(table) == 1
    for lane in range(table.shape[1]):
        for number, (each, width) in enumerate(zip((buckets, cells, rest), widths, strict=True)):
            entries = each[:, table[:, lane]].T.reshape(-1, 1)
            if width:
                yield (
                    f"{name}_{lane:04d}_{number:02d}.mem",
                    _columns(entries, width) if alone else words(entries, width),
                )


def _columns(entries: Array, width: int) -> str:
    """A word for each bit, of that bit of all entries: the form of tables that are logic."""
    return words(np.concatenate([(entries.T >> bit) & 1 for bit in range(width)]), 1)


def _packed(values: Array, bits: int) -> Bits:
    mask = (1 << bits) - 1
    return Bits(len(values) * bits, sum((value & mask) << (bits * k) for k, value in enumerate(values.tolist())))
