"""Rows of hg_mac in multiplier blocks, counted as the modules have them: products side by side, and chains of blocks."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.dataflow.resources import Cost
from hlsgen.verilog.dot_sizes import sum_tables

#: Rows that share a block at most, and as a power of two the products that are summed before they are taken apart.
MOST_ROWS = 3
MOST_GUARD = 2
#: Bits of the wider factor from which on blocks add their product to the sum of another one, and blocks of a chain at most.
ADDING, MOST_BLOCKS = 25, 8


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


@dataclass(frozen=True)
class Chains:
    """The chains of a dot product: `count` of `length` blocks, or less the last one; `together`: rows that share a block."""

    count: int
    length: int
    together: int
    guard: int

    def latency(self, every: int) -> int:
        """Of hg_dot_chain."""
        return self.length + (1 if self.together == 1 else 3) - (-(self.count - 1).bit_length() // every)


def chains(simd: int, x_bits: int, signed: bool, w_bits: int, rows: int, block: int) -> Chains | None:
    """Those of `rows` that take the same codes; None if blocks do not add."""
    if block < ADDING:
        return None
    together, guard = sharing(x_bits, w_bits, rows, block)
    reach = MOST_BLOCKS if together == 1 else (8 << guard) - 1 if signed else 4 << guard
    length = -(-simd // -(-simd // min(MOST_BLOCKS, reach)))
    return Chains(-(-simd // length), length, together, guard)


def chained(simd: int, x_bits: int, signed: bool, w_bits: int, rows: int, block: int) -> Cost | None:
    """What `rows` that take the same codes cost in chains; None if blocks do not add.

    Rows that share blocks take tables for two bits of the sums of all but the first, and to take the sums of each chain
    apart. Codes and weights wait for their blocks in registers, of which a block has the last two.
    """
    own = chains(simd, x_bits, signed, w_bits, rows, block)
    if own is None:
        return None
    w_bits, packs, others = max(2, w_bits), -(-rows // own.together), own.together - 1
    field, sums = x_bits + w_bits + own.guard, x_bits + w_bits + 3
    apart = sum(k * field + sums + 1 for k in range(others))
    each = 2 * others + (w_bits + 1) * max(0, others - 1)
    tree = rows * sum_tables(own.count, sums)
    tables = packs * (each * simd + own.count * apart) + tree
    tables += x_bits * own.count * (own.length == MOST_BLOCKS)
    late, own_late = (own.count * n * (n - 1) // 2 for n in (own.length, own.length - 1))
    weights = rows * w_bits * (late + simd * others / own.together if others else own_late)
    fields = packs * 4 * others * simd + (rows * own.count * sums if others else 0)
    return Cost(lut=tables, dsp=packs * simd, ff=x_bits * own_late + weights + fields + tree / 2)


def shared_rows(x_bits: int, w_bits: int, rows: int, simd: int, block: int) -> Cost | None:
    """What rows cost that share blocks that do not add; None if none do. Tables are those of a few layers synthesized for 7 series."""
    together, guard = sharing(x_bits, w_bits, rows, block)
    if together == 1:
        return None
    packs = -(-rows // together)
    sums = -(-simd // (1 << guard))
    width = x_bits + max(2, w_bits) + guard
    lut = 0.6 * rows * sum_tables(sums, width) + packs * sums * (together - 1) * width
    return Cost(lut=lut, dsp=packs * simd)
