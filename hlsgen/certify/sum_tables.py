"""Reads distributed arithmetic tables back: the weights of a row, and that every entry is a sum of them.

Entries with one code are the weights. Every other entry must be the sum of its weights, and entries that no word or
code addresses must be 0. For any bits of the codes, the entries at each bit position then add up to the weights of the
codes with a 1 there. The sum over all positions, each shifted, is the sum of the products.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.numerics.fixed import Array

#: Sizes of DA tables, all parameters of a unit with them, and whether a register follows.
_SIZES = "FIRST T_W S_W"
PARAMETERS = f"SIMD PE COL_FOLDS ROW_FOLDS X_W X_SIGNED {_SIZES} ACC_W EVERY FILE"
OPTIONAL = "CUT"
#: Maximum bits of an entry; maximum address bits of a table: codes and word number.
_MAX_BITS, _MAX_INPUTS = 40, 12


def has_tables(cell: Cell) -> bool:
    return cell.module == "hg_mvu_words"


def read(memories: Memories, cell: Cell, words: int, rows: int, columns: int) -> Array:
    """int64 (words, rows * columns): the weights of each word. Raises HG055."""
    first, bits, total = (cell.number(name, 1) for name in _SIZES.split())
    address = (words - 1).bit_length()
    if cell.parameters.get("CUT", 0) not in (0, 1):
        raise broken(cell.name, f"CUT of {cell.module} is {cell.parameters['CUT']}, not 0 or 1.")
    if cell.number("X_SIGNED") and cell.number("X_W", 1) == 1:
        raise broken(cell.name, "signed codes of one bit have no tables of sums.")
    if first < 2 or not address or first + address > _MAX_INPUTS or not bits <= total <= _MAX_BITS:
        sizes = f"FIRST {first}, T_W {bits}, S_W {total}"
        raise broken(cell.name, f"tables of sums with {sizes} and {words} words are not supported by {cell.module}.")
    weights = np.stack([_row(memories, cell, row, words, columns, (first, bits, address)) for row in range(rows)], 1)
    low, high = np.minimum(weights, 0).sum(axis=2), np.maximum(weights, 0).sum(axis=2)
    if low.min() < -(1 << (total - 1)) or high.max() >= 1 << (total - 1):
        raise broken(cell.name, f"sums of {low.min()}..{high.max()} do not fit S_W, which is {total}.")
    return weights.reshape(words, -1)


def _row(memories: Memories, cell: Cell, row: int, words: int, columns: int, sizes: tuple[int, int, int]) -> Array:
    """(words, columns): the weights of one row."""
    first, bits, address = sizes
    name, depth = f"{cell.file}_{row:04d}.mem", 1 << (first + address)
    starts = _starts(columns, first)
    lines = memories.words(name, len(starts) * bits, depth)
    planes = np.array([[line >> n & 1 for n in range(depth)] for line in lines], np.int64)
    values = two_complement((planes.reshape(len(starts), bits, depth) << np.arange(bits)[:, None]).sum(axis=1), bits)
    weights = np.zeros((words, columns), np.int64)
    for number, (start, inputs) in enumerate(starts):
        end = min(start + inputs, columns)
        table = values[number, : 1 << (inputs + address)].reshape(1 << inputs, 1 << address).T
        word_weights = table[:words, 1 << np.arange(end - start)]
        chosen = np.arange(1 << inputs) >> np.arange(end - start)[:, None] & 1
        expected = np.zeros_like(table)
        expected[:words, : 1 << (end - start)] = word_weights @ chosen[:, : 1 << (end - start)]
        unequal = np.argwhere(table != expected)
        if len(unequal) or values[number, 1 << (inputs + address) :].any():
            word, entry = unequal[0].tolist() if len(unequal) else (words, 0)
            raise broken(
                cell.name,
                f"rtl/{name}, table {number} of row {row}, columns {start} to {end - 1}: entry {entry} of word "
                f"{word} is no sum of the weights of these columns.",
            )
        weights[:, start:end] = word_weights
    return weights


def _starts(columns: int, first: int) -> list[tuple[int, int]]:
    """(first column, number of columns) of each table. The first of every four tables has one more input."""
    starts: list[tuple[int, int]] = []
    column = 0
    while column < columns:
        inputs = first if len(starts) % 4 == 0 else first - 1
        starts.append((column, inputs))
        column += inputs
    return starts
