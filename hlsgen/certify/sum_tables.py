"""Reads tables of sums of weights back: the weights of a row, of which every entry has to be the sum.

Entries with one code are the weights themselves. Each other one has to be what they add up to, and entries that no word or
code leads to are 0. So whatever the bits of the codes are, the entries of each place add up to the sum of the weights
of the codes that have a 1 there; and the sum of that over all places, each shifted, is that of the products.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.numerics.fixed import Array

#: Parameters of a unit that has tables: what they hold, and whether a register is behind them.
_SIZES = "FIRST T_W S_W"
PARAMETERS = f"{_SIZES} CUT"
#: Bits of an entry, codes of a table, and bits of the number of a word at most.
_MOST_BITS, _MOST_INPUTS = 40, 12


def has_tables(cell: Cell) -> bool:
    return "FIRST" in cell.parameters


def read(memories: Memories, cell: Cell, words: int, rows: int, columns: int) -> Array:
    """int64 (words, rows * columns): the weights of each word. Raises HG055."""
    first, bits, total = (cell.number(name, 1) for name in _SIZES.split())
    address = (words - 1).bit_length()
    others = any(name in cell.parameters for name in ("LOADABLE", "DSP", "WINDOWS"))
    if others or cell.number("MODE") > 1 or cell.parameters.get("CUT", 0) not in (0, 1):
        raise broken(cell.name, f"{cell.module} has tables of sums, and parameters that they cannot be with.")
    if cell.number("X_SIGNED") and cell.number("X_W", 1) == 1:
        raise broken(cell.name, "codes of one bit with a sign have no tables of sums.")
    if first < 2 or not address or first + address > _MOST_INPUTS or not bits <= total <= _MOST_BITS:
        sizes = f"FIRST {first}, T_W {bits}, S_W {total}"
        raise broken(cell.name, f"tables of sums with {sizes} and {words} words are none that {cell.module} has.")
    found = np.stack([_row(memories, cell, row, words, columns, (first, bits, address)) for row in range(rows)], 1)
    width = cell.number("W_W", 1)
    ends = (-1, 1) if cell.number("MODE") else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    if found.min() < ends[0] or found.max() > ends[1]:
        raise broken(cell.name, f"weights of {found.min()}..{found.max()} do not fit W_W, which is {width}.")
    low, high = np.minimum(found, 0).sum(axis=2), np.maximum(found, 0).sum(axis=2)
    if low.min() < -(1 << (total - 1)) or high.max() >= 1 << (total - 1):
        raise broken(cell.name, f"sums of {low.min()}..{high.max()} do not fit S_W, which is {total}.")
    return found.reshape(words, -1)


def _row(memories: Memories, cell: Cell, row: int, words: int, columns: int, sizes: tuple[int, int, int]) -> Array:
    """(words, columns): the weights of one row."""
    first, bits, address = sizes
    name, depth = f"{cell.file}_{row:04d}.mem", 1 << (first + address)
    starts = _starts(columns, first)
    lines = memories.words(name, len(starts) * bits, depth)
    planes = np.array([[line >> n & 1 for n in range(depth)] for line in lines], np.int64)
    values = two_complement((planes.reshape(len(starts), bits, depth) << np.arange(bits)[:, None]).sum(axis=1), bits)
    weights = np.zeros((words, columns), np.int64)
    for number, (start, most) in enumerate(starts):
        end = min(start + most, columns)
        table = values[number, : 1 << (most + address)].reshape(1 << most, 1 << address).T
        own = table[:words, 1 << np.arange(end - start)]
        chosen = np.arange(1 << most) >> np.arange(end - start)[:, None] & 1
        wanted = np.zeros_like(table)
        wanted[:words, : 1 << (end - start)] = own @ chosen[:, : 1 << (end - start)]
        wrong = np.argwhere(table != wanted)
        if len(wrong) or values[number, 1 << (most + address) :].any():
            word, entry = wrong[0].tolist() if len(wrong) else (words, 0)
            raise broken(
                cell.name,
                f"rtl/{name}, table {number} of row {row}, columns {start} to {end - 1}: entry {entry} of word "
                f"{word} is no sum of the weights of these columns.",
            )
        weights[:, start:end] = own
    return weights


def _starts(columns: int, first: int) -> list[tuple[int, int]]:
    """(first column, columns that there is room for) of each table: of four, the first one has room for one more."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < columns:
        most = first if len(found) % 4 == 0 else first - 1
        found.append((at, most))
        at += most
    return found
