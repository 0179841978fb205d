"""Distributed arithmetic tables of constant weights, for hg_mvu_words: contents, widths and cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hlsgen.dataflow.units import MatVec, Product
from hlsgen.dataflow.weight_words import packed
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.verilog.dot_sizes import dot_luts, few_words_share

#: Inputs of the first table of each four: one LUT of six inputs, or four or two of four inputs. Bits of a word number
#: at most.
INPUTS, SMALL_INPUTS, MOST_ADDRESS = (6,), (6, 5), 3
#: Families whose LUTs have four inputs. In one of these a table and an adder do not fit together. Products take more of
#: these than of LUTs with six inputs, by SMALL_PRODUCTS.
SMALL_LUTS, SMALL, SMALL_PRODUCTS = frozenset({"ecp5", "gowin", "ice40"}), 4, 2.0


@dataclass(frozen=True)
class SumSizes:
    """The parameters of hg_mvu_words: FIRST, T_W and S_W. address: bits of the word number."""

    first: int
    entry: int
    sum: int
    address: int

    @property
    def span(self) -> int:
        """Codes of four tables."""
        return 4 * self.first - 3


def first_codes(words: int, x: IntType, product: Product, *, small: bool = False) -> tuple[int, ...]:
    """Possible numbers of codes of the first table of each four; () if tables do not apply.

    `words`: number of weight words. small: LUTs have four inputs.
    """
    address = (words - 1).bit_length()
    fits = 1 <= address <= MOST_ADDRESS and x.bits > x.signed and product is not Product.AGREEMENTS
    inputs = SMALL_INPUTS if small else INPUTS
    return tuple(max_inputs - address for max_inputs in inputs if fits)


def pieces(simd: int, first: int) -> list[tuple[int, int]]:
    """(first code, number of codes) of each table."""
    tables: list[tuple[int, int]] = []
    at = 0
    while at < simd:
        size = min(first - (len(tables) % 4 > 0), simd - at)
        tables.append((at, size))
        at += size
    return tables


def weights_of(unit: MatVec) -> Array:
    """Weights as numbers, int64 (words, rows, columns), in the order of use."""
    table = packed(unit).reshape(-1, unit.pe, unit.simd)
    return table if unit.product is Product.INTEGER else 2 * table - 1


def sizes_of(weights: Array, first: int, address: int) -> SumSizes:
    """The sizes for weights (..., columns), the weights of a row in one cycle, with `address` bits of word number."""
    starts = [start for start, _ in pieces(weights.shape[-1], first)]
    ends = [part for sign in (np.minimum, np.maximum) for part in (sign(weights, 0),)]
    entries = [np.add.reduceat(part, starts, axis=-1) for part in ends]
    entry, total = (
        IntType(min(-1, int(low.min())), max(0, int(high.max()))).bits
        for low, high in (entries, [part.sum(axis=-1) for part in ends])
    )
    return SumSizes(first, entry, max(entry, total), address)


@lru_cache(maxsize=256)
def _cached(weights: bytes, shape: tuple[int, ...], first: int) -> SumSizes:
    return sizes_of(np.frombuffer(weights, np.int64).reshape(shape), first, (shape[0] - 1).bit_length())


def unit_sizes(unit: MatVec) -> SumSizes:
    """The sizes for a unit with tables."""
    assert unit.sums is not None
    weights = np.ascontiguousarray(weights_of(unit))
    return _cached(weights.tobytes(), weights.shape, unit.sums.first)


def table_files(unit: MatVec, stem: str) -> dict[str, str]:
    """Files of hg_mvu_words, one for each row of a cycle."""
    assert unit.sums is not None
    first, weights = unit.sums.first, weights_of(unit)
    bits, address = unit_sizes(unit).entry, (len(weights) - 1).bit_length()
    digits = (1 << (first + address)) // 4
    files = {}
    for row in range(unit.pe):
        lines = []
        for n, (start, size) in enumerate(pieces(unit.simd, first)):
            # Entries of words and codes that do not exist are 0.
            sums = np.zeros((1 << (first - (n % 4 > 0)), 1 << address), np.int64)
            code_bits = np.arange(1 << size)[:, None] >> np.arange(size) & 1
            sums[: 1 << size, : len(weights)] = code_bits @ weights[:, row, start : start + size].T
            planes = (sums.ravel() >> np.arange(bits)[:, None] & 1).astype(np.uint8)
            numbers = (int.from_bytes(np.packbits(plane, bitorder="little").tobytes(), "little") for plane in planes)
            lines += [f"{number:0{digits}x}\n" for number in numbers]
        files[f"{stem}_{row:04d}.mem"] = "".join(lines)
    return files


def table_row_luts(simd: int, x_bits: int, sizes: SumSizes, *, small: bool = False) -> float:
    """LUTs of hg_words_row: one LUT for each bit of a table, or for each bit of its sum.

    small: LUTs have four inputs. Then a table needs further LUTs, in addition to the LUTs of the sums.
    """
    tables, sum_bits = pieces(simd, sizes.first), sizes.sum
    widths = [min(sizes.entry + extra, sum_bits) for extra in (0, 1, 2, 2)]
    total = sum(widths[n % 4] for n in range(len(tables)))
    if small:
        luts = sum(1 << max(0, count + sizes.address - SMALL) for _, count in tables)
        total += sizes.entry * (luts - -(-len(tables) // 4))  # the first table of four is in no sum
    groups, bits = -(-len(tables) // 4), widths[3]
    while groups > 1:
        bits = min(bits + 1, sum_bits)
        total += groups // 2 * bits
        groups = -(-groups // 2)
    # Sums of places: the lowest bits of one operand bypass the adder.
    total *= x_bits
    count, level = x_bits, 0
    while count > 1:
        total += count // 2 * (sum_bits + (1 << level))
        count, level = -(-count // 2), level + 1
    return float(total)


def tables_pay(
    simd: int, x_bits: int, w_bits: int, product: Product, words: int, sizes: SumSizes, *, small: bool = False
) -> bool:
    """True if tables cost less than products with this many words, in any form.

    Weights of few words are simple functions.
    """
    products = (
        few_words_share(words, "pairs") * dot_luts(simd, x_bits, w_bits, product) * (SMALL_PRODUCTS if small else 1)
    )
    return table_row_luts(simd, x_bits, sizes, small=small) < products
