"""Rows of hg_mac that share multiplier blocks, counted as the module has them: one product has room for several."""

from __future__ import annotations

from hlsgen.dataflow.resources import Cost
from hlsgen.verilog.dot_sizes import sum_tables

#: Rows that share a block at most, and as a power of two the products that are summed before they are taken apart.
MOST_ROWS = 3
MOST_GUARD = 2


def sharing(x_bits: int, w_bits: int, rows: int, block: int) -> tuple[int, int]:
    """(rows that share a block, bits of guard) of `rows` that take the same codes; `block`: bits of a block's wider factor.

    Weights of one bit have two in hg_mac.
    """
    w_bits = max(2, w_bits)
    field = x_bits + w_bits
    room = block - w_bits - 1
    most = min(MOST_ROWS, 1 + room // field) if room > 0 else 1
    packs = -(-rows // most)
    together = -(-rows // packs)
    return together, min(MOST_GUARD, room // (together - 1) - field) if together > 1 else 0


def shared_rows(x_bits: int, w_bits: int, rows: int, simd: int, block: int) -> Cost | None:
    """What rows cost that share blocks; None if none do. Tables are those of a few layers synthesized for 7 series."""
    together, guard = sharing(x_bits, w_bits, rows, block)
    if together == 1:
        return None
    packs = -(-rows // together)
    sums = -(-simd // (1 << guard))
    width = x_bits + max(2, w_bits) + guard
    lut = 0.6 * rows * sum_tables(sums, width) + packs * sums * (together - 1) * width
    return Cost(lut=lut, dsp=packs * simd)
