"""Rows of hg_mac in DSP blocks, counted by the structure of the modules: packed products, and chains of blocks."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.dataflow.resources import Cost
from hlsgen.verilog.dot_sizes import adder_tree_luts

#: Rows that share a DSP block at most, and the log2 of the products that are summed before they are separated, at most.
MOST_ROWS = 3
MOST_GUARD = 2
#: Bits of the wider factor from which on DSP blocks add their product to another block's sum, and blocks of a chain at
#: most.
ADDING, MOST_BLOCKS = 25, 8


def sharing(x_bits: int, w_bits: int, rows: int, block: int) -> tuple[int, int]:
    """(rows that share a DSP block, guard bits) for `rows` rows that consume the same codes.

    `block`: bits of the block's wider factor. Weights of one bit have two in hg_mac.
    """
    w_bits = max(2, w_bits)
    field = x_bits + w_bits
    room = block - w_bits - 1
    max_rows = min(MOST_ROWS, 1 + room // field) if room > 0 else 1
    packs = -(-rows // max_rows)
    rows_per_block = -(-rows // packs)
    return rows_per_block, min(MOST_GUARD, room // (rows_per_block - 1) - field) if rows_per_block > 1 else 0


@dataclass(frozen=True)
class Chains:
    """The chains of a dot product: `count` chains of `length` blocks, the last one perhaps shorter.

    `rows_per_block`: rows that share a DSP block.
    """

    count: int
    length: int
    rows_per_block: int
    guard: int

    def latency(self, adders_per_stage: int) -> int:
        """Cycles of hg_dot_chain."""
        return (
            self.length + (1 if self.rows_per_block == 1 else 3) - (-(self.count - 1).bit_length() // adders_per_stage)
        )


def chains(simd: int, x_bits: int, signed: bool, w_bits: int, rows: int, block: int) -> Chains | None:
    """The chains of `rows` rows that consume the same codes, or None if DSP blocks do not add."""
    if block < ADDING:
        return None
    rows_per_block, guard = sharing(x_bits, w_bits, rows, block)
    max_length = MOST_BLOCKS if rows_per_block == 1 else (8 << guard) - 1 if signed else 4 << guard
    length = -(-simd // -(-simd // min(MOST_BLOCKS, max_length)))
    return Chains(-(-simd // length), length, rows_per_block, guard)


def chained(simd: int, x_bits: int, signed: bool, w_bits: int, rows: int, block: int) -> Cost | None:
    """Cost of `rows` rows in chains that consume the same codes, or None if DSP blocks do not add.

    Rows that share blocks need LUTs for two bits of the sums of all rows but the first, and to separate the sums of
    each chain. Codes and weights wait for their blocks in registers; a block has the last two of them.
    """
    layout = chains(simd, x_bits, signed, w_bits, rows, block)
    if layout is None:
        return None
    w_bits, packs, further_rows = max(2, w_bits), -(-rows // layout.rows_per_block), layout.rows_per_block - 1
    field, sums = x_bits + w_bits + layout.guard, x_bits + w_bits + 3
    separation_luts = sum(k * field + sums + 1 for k in range(further_rows))
    luts_per_product = 2 * further_rows + (w_bits + 1) * max(0, further_rows - 1)
    tree = rows * adder_tree_luts(layout.count, sums)
    tables = packs * (luts_per_product * simd + layout.count * separation_luts) + tree
    tables += x_bits * layout.count * (layout.length == MOST_BLOCKS)
    delays, block_delays = (layout.count * n * (n - 1) // 2 for n in (layout.length, layout.length - 1))
    weights = rows * w_bits * (delays + simd * further_rows / layout.rows_per_block if further_rows else block_delays)
    fields = packs * 4 * further_rows * simd + (rows * layout.count * sums if further_rows else 0)
    return Cost(lut=tables, dsp=packs * simd, ff=x_bits * block_delays + weights + fields + tree / 2)


def shared_rows(x_bits: int, w_bits: int, rows: int, simd: int, block: int) -> Cost | None:
    """Cost of rows that share DSP blocks that do not add, or None if no rows do.

    LUTs are fitted to a few layers synthesized for 7 series.
    """
    rows_per_block, guard = sharing(x_bits, w_bits, rows, block)
    if rows_per_block == 1:
        return None
    packs = -(-rows // rows_per_block)
    sums = -(-simd // (1 << guard))
    width = x_bits + max(2, w_bits) + guard
    lut = 0.6 * rows * adder_tree_luts(sums, width) + packs * sums * (rows_per_block - 1) * width
    return Cost(lut=lut, dsp=packs * simd)
