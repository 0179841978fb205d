"""LUTs of a row of hg_mac, counted by the structure of its dot-product modules: one LUT for each bit of each sum."""

from __future__ import annotations

from hlsgen.dataflow.units import Product

#: Share of a product's LUTs that remains with one or two words of weights, and its growth per further address bit. A
#: weight of few words is a function of a bit or two, often the same one as another weight.
FEW_WORDS, ADDRESS_BIT = 0.6, 0.16

#: LUTs for each counted LUT of a module of counters.
COUNTER = 1.03


def dot_form(product: Product) -> str:
    """The form in which hg_mac computes products: hg_popcount or hg_dot_pairs."""
    return "popcount" if product is Product.AGREEMENTS else "pairs"


def few_words_share(words: int, form: str) -> float:
    """Share of the LUTs of products that remains with this many words of weights."""
    return 1.0 if form != "pairs" else min(1.0, FEW_WORDS + ADDRESS_BIT * max(0, (words - 1).bit_length() - 1))


def dot_luts(simd: int, x_bits: int, w_bits: int, product: Product, rows_sharing_codes: int = 1) -> float:
    """LUTs of a dot product of `simd` codes and weights; the register after each sum costs nothing.

    `rows_sharing_codes`: rows that consume the same codes and share the sums of two of them.
    """
    if product is Product.AGREEMENTS:
        # Two LUTs for three agreements, and one for each other agreement, which is a carry of an adder.
        counted_in_threes = _in_terms(simd)
        return (
            2 * (counted_in_threes // 3)
            + counted_in_threes % 3
            + simd
            - counted_in_threes
            + adder_tree_luts(-(-simd // 4), 1)
        )
    pairs, pairs_per_chain = -(-simd // 2), 2 if simd > 2 else 1
    if w_bits == 1:
        # Each pair is a + b or a - b, with a bit for the sign below.
        steps = pairs * (x_bits + 3.5)
        return (
            steps
            + adder_tree_luts(-(-pairs // pairs_per_chain), x_bits + 1 + pairs_per_chain)
            + 2 * pairs * (x_bits + 1) / rows_sharing_codes
        )
    # Pairs are added to the bits above the finished ones, from the lowest bit of the weights upwards.
    step_widths = [
        x_bits + 1,
        *[x_bits + 2] * min(2, w_bits * pairs_per_chain - 1),
        *[x_bits + 1 + pairs_per_chain] * (w_bits * pairs_per_chain - 3),
    ]
    groups = -(-pairs // pairs_per_chain)
    odd_pairs = pairs % pairs_per_chain
    steps = groups * sum(step_widths) - (sum(step_widths[1::2]) if odd_pairs else 0)
    delays = simd * (w_bits - 1) / (3 - pairs_per_chain)
    return (
        steps
        + delays
        + adder_tree_luts(groups, x_bits + w_bits + pairs_per_chain)
        + pairs * (x_bits + 1) / rows_sharing_codes
    )


def shared_registers(simd: int, x_bits: int, w_bits: int, product: Product) -> float:
    """Registers that rows share.

    They hold sums of pairs of codes until these are added, or the codes that are counted once more.
    """
    if product is Product.AGREEMENTS:
        return float(_in_terms(simd))
    if w_bits == 1:
        return -(-simd // 2) * 2.0 * (x_bits + 1)
    turns = w_bits if simd > 2 else -(-w_bits // 2)
    return -(-simd // 2) * (3.0 * x_bits + 1) * turns


def _in_terms(simd: int) -> int:
    """Agreements that hg_popcount counts three at a time."""
    return min(simd, 3 * -(-simd // 4))


def adder_tree_luts(terms: int, bits: int) -> int:
    """LUTs of a tree of adders, one bit wider on each level."""
    total = 0
    while terms > 1:
        bits += 1
        total += terms // 2 * bits
        terms = -(-terms // 2)
    return total
