"""Weights as the memories of hg_mvu, hg_conv, hg_dwconv and hg_dwmvu hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hlsgen.dataflow.units import Product, WeightedUnit
from hlsgen.dataflow.weight_words import packed
from hlsgen.dataflow.weighted_units import weight_bits, weight_words
from hlsgen.numerics.fixed import Array
from hlsgen.verilog.binding.memory_files import words
from hlsgen.verilog.memory_sizes import KIND_STYLES, weights_style

#: Parameter MODE of the library.
MODES = {Product.INTEGER: 0, Product.BIPOLAR: 1, Product.AGREEMENTS: 2}


def weight_style(unit: WeightedUnit, style: int) -> int:
    """The kind of a unit's weight memory, as STYLE of hg_weights.

    It is `style` if that is given, else the kind that the clock or the budget needs, else the cheapest.
    """
    if style == 0 and unit.memory:
        return KIND_STYLES[unit.memory]
    return weights_style(weight_words(unit), unit.lanes * weight_bits(unit), style)


def load_pieces(unit: WeightedUnit, weight: Array) -> Iterator[int]:
    """New weights, given in the layer's order, as 32-bit pieces for the unit's memory, low pieces of a word first."""
    table = packed(replace(unit, weight=weight.reshape(unit.weight.shape)))
    bits = weight_bits(unit)
    for line in words(table, bits).split():
        word = int(line, 16)
        for n in range(-(-table.shape[1] * bits // 32)):
            yield word >> (32 * n) & 0xFFFFFFFF
