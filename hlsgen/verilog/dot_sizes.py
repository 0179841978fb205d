"""Tables of a row of hg_mac, counted as the modules of dot products are built: a table for each bit of each sum."""

from __future__ import annotations

from hlsgen.dataflow.units import Product

#: Tables for an agreement of two bits and its share of the count, in hg_popcount.
AGREEMENT = 1.53
#: Share of the tables of hg_dot_table that is left of products whose lowest bits are simple.
SMALL_PRODUCT = {4: 0.7, 5: 0.85}
#: Share of them that is left of one or two words of weights, and what each further bit of the address adds: a weight of few
#: words is a function of a bit or two, often that of another weight.
FEW_WORDS, ADDRESS_BIT = 0.6, 0.16


def dot_form(x_bits: int, w_bits: int, product: Product) -> str:
    """How hg_mac forms products: hg_popcount, hg_dot_table or hg_dot_booth."""
    if product is Product.AGREEMENTS:
        return "popcount"
    return "table" if w_bits > 1 and x_bits + w_bits <= (6 if w_bits > 2 else 5) else "booth"


def few_words(words: int, form: str) -> float:
    """Share of the tables of products that is left of so many words of weights."""
    return 1.0 if form != "table" else min(1.0, FEW_WORDS + ADDRESS_BIT * max(0, (words - 1).bit_length() - 1))


def dot_tables(simd: int, x_bits: int, w_bits: int, product: Product) -> float:
    """Tables of a dot product of `simd` codes and weights; the register behind each sum costs nothing."""
    form = dot_form(x_bits, w_bits, product)
    if form == "popcount":
        return AGREEMENT * simd
    if form == "table":
        width = x_bits + w_bits
        own = width * simd + _chains(simd, (0, width + 1, width + 2, width + 2)) + sum_tables(-(-simd // 4), width + 2)
        return SMALL_PRODUCT.get(width, 1.0) * own
    digits = (w_bits + 1) // 2
    total = 0.0
    for digit in range(digits):
        # A last digit that only one bit is left for is -1 to 1.
        width = x_bits + (1 if 2 * digit + 1 == w_bits else 2)
        total += _chains(simd, (width + 1, width + 2, width + 3, width + 3)) + sum_tables(-(-simd // 4), width + 2)
    # Two digits of which the upper one is two bits further left.
    width, left = x_bits + 4 + (-(-simd // 4) - 1).bit_length(), digits
    while left > 1:
        total += left // 2 * width
        left, width = -(-left // 2), width + 4
    return total


def _chains(terms: int, bits: tuple[int, int, int, int]) -> int:
    """Sums of four terms, each added to those before it."""
    return terms // 4 * sum(bits) + sum(bits[: terms % 4])


def sum_tables(terms: int, bits: int) -> int:
    """A tree of adders, a bit wider on each level."""
    total = 0
    while terms > 1:
        bits += 1
        total += terms // 2 * bits
        terms = -(-terms // 2)
    return total
