"""Tables of a row of hg_mac, counted as the modules of dot products are built: a table for each bit of each sum."""

from __future__ import annotations

from hlsgen.dataflow.units import Product

#: Share of the tables of products that is left of one or two words of weights, and what each further bit of the address adds: a weight of few
#: words is a function of a bit or two, often that of another weight.
FEW_WORDS, ADDRESS_BIT = 0.6, 0.16

#: Tables for one of a module of counters.
COUNTER = 1.03


def dot_form(product: Product) -> str:
    """How hg_mac forms products: hg_popcount or hg_dot_pairs."""
    return "popcount" if product is Product.AGREEMENTS else "pairs"


def few_words(words: int, form: str) -> float:
    """Share of the tables of products that is left of so many words of weights."""
    return 1.0 if form != "pairs" else min(1.0, FEW_WORDS + ADDRESS_BIT * max(0, (words - 1).bit_length() - 1))


def dot_tables(simd: int, x_bits: int, w_bits: int, product: Product, together: int = 1) -> float:
    """Tables of a dot product of `simd` codes and weights; the register behind each sum costs nothing.

    `together`: rows that take the same codes and share the sums of two of them.
    """
    if product is Product.AGREEMENTS:  # two tables for three, one for each of the others, which adders take as carries
        threes = _in_terms(simd)
        return 2 * (threes // 3) + threes % 3 + simd - threes + sum_tables(-(-simd // 4), 1)
    pairs, each = -(-simd // 2), 2 if simd > 2 else 1
    if w_bits == 1:  # a + b or a - b, with a bit for the sign below
        steps = pairs * (x_bits + 3.5)
        return steps + sum_tables(-(-pairs // each), x_bits + 1 + each) + 2 * pairs * (x_bits + 1) / together
    # Pairs are added to what is above the bits that are done, from the lowest bit of the weights upwards.
    wide = [x_bits + 1, *[x_bits + 2] * min(2, w_bits * each - 1), *[x_bits + 1 + each] * (w_bits * each - 3)]
    groups = -(-pairs // each)
    rest = pairs % each
    steps = groups * sum(wide) - (sum(wide[1::2]) if rest else 0)
    delays = simd * (w_bits - 1) / (3 - each)
    return steps + delays + sum_tables(groups, x_bits + w_bits + each) + pairs * (x_bits + 1) / together


def shared_registers(simd: int, x_bits: int, w_bits: int, product: Product) -> float:
    """Registers that rows share: of pairs of codes, for the cycles in which they are added, or of codes to count once more."""
    if product is Product.AGREEMENTS:
        return float(_in_terms(simd))
    if w_bits == 1:
        return -(-simd // 2) * 2.0 * (x_bits + 1)
    turns = w_bits if simd > 2 else -(-w_bits // 2)
    return -(-simd // 2) * (3.0 * x_bits + 1) * turns


def _in_terms(simd: int) -> int:
    """Agreements that hg_popcount counts three at a time."""
    return min(simd, 3 * -(-simd // 4))


def sum_tables(terms: int, bits: int) -> int:
    """A tree of adders, a bit wider on each level."""
    total = 0
    while terms > 1:
        bits += 1
        total += terms // 2 * bits
        terms = -(-terms // 2)
    return total
