"""Proves that products of two words of the tables of hg_softmax are correctly rounded powers of e, for all distances.

The words are compared with bounds of exp. The bounds limit the distance between a product and the exact power. If the
middle of two float32 numbers is within that distance, the power is bounded separately.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.certify.models.exponential import bounds, middles, shown
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.ir import SoftmaxRows
from hlsgen.numerics.fixed import Array

#: Bits of a float32 mantissa; exponent of the last bit of the smallest numbers.
_MANTISSA, _LOWEST = 24, -149
#: Relative errors are in units of 2^-100. A word of b bits has an error of 2^-b; a product of two words has at most 3.
_ERROR, _PRODUCT_ERROR = 100, 3
#: Largest shift of the module, and minimum bits of its mantissas.
_MAX_SHIFT, _MIN_MANTISSA = 151, 16


def check_products(cell: Cell, layer: SoftmaxRows, memories: Memories) -> None:
    """Prove the products of a unit. Raises HG055."""
    assert layer.step is not None
    if not np.array_equal(layer.powers, layer.numerators):
        raise broken(layer.name, f"{cell.name} has one power for each distance, the layer two.")
    name, bits, low_bits, last = (
        layer.name,
        cell.number("M_W", _MIN_MANTISSA),
        cell.number("LOW", 1),
        cell.number("LAST"),
    )
    if low_bits >= layer.source.type.bits or bits > _ERROR:
        raise broken(name, f"{cell.name}: LOW is {low_bits}, M_W {bits}.")
    block = 1 << low_bits
    high = memories.words(f"{cell.file}_high.mem", (last >> low_bits) + 1, bits + 8)
    low = memories.words(f"{cell.file}_low.mem", block, bits + 1)
    mantissas, shifts = [word & ((1 << bits) - 1) for word in high], [word >> bits for word in high]
    if not all((m == 0 or m >> (bits - 1) == 1) and s <= _MAX_SHIFT for m, s in zip(mantissas, shifts, strict=True)):
        raise broken(
            name, f"a word of {cell.file}_high.mem has no mantissa of {bits} bits, or a shift above {_MAX_SHIFT}."
        )
    if not all(1 << (bits - 1) < word <= 1 << bits for word in low):
        raise broken(name, f"a word of {cell.file}_low.mem is not above 1/2 and at most 1.")
    _check_fraction(cell, layer)
    reach = layer.source.type.hi - layer.source.type.lo
    if reach > last and last < len(layer.powers):
        raise broken(
            name, f"{cell.name}: the power at its last distance, {last}, must be 0, because larger distances use it."
        )
    _check_words(cell, "high", [(m, bits - 1 + s) for m, s in zip(mantissas, shifts, strict=True)], layer.step * block)
    _check_words(cell, "low", [(word, bits) for word in low], layer.step)
    if last > reach and mantissas[-1]:
        raise broken(name, f"{cell.name}: the power at its last distance, which excluded elements use, is not 0.")
    columns = np.array(low, object)
    layer_powers = np.append(layer.powers, np.zeros(max(0, last + 1 - len(layer.powers)), np.float32))
    for number, (mantissa, shift) in enumerate(zip(mantissas, shifts, strict=True)):
        first = number * block
        count = min(block, min(reach, last) + 1 - first)
        if count > 0:
            _check_block(cell, layer, mantissa * columns[:count], shift, layer_powers[first : first + count], first)


def _check_fraction(cell: Cell, layer: SoftmaxRows) -> None:
    """Check that the fixed-point numbers of a sum hold every bit of a power."""
    fraction, lowest_exponent = cell.number("FRACTION"), np.frexp(layer.powers[-1])[1] - _MANTISSA
    if (
        cell.number("W") != fraction + 1
        or not -max(lowest_exponent, _LOWEST) <= fraction <= -_LOWEST
        or fraction < _MANTISSA - 1
    ):
        raise broken(
            layer.name, f"{cell.name}: {fraction} fraction bits of {cell.number('W')} bits do not hold every power."
        )


def _check_words(cell: Cell, tail: str, words: list[tuple[int, int]], step: Fraction) -> None:
    """Check that words w * 2^-p are nearest to exp(-step * number), except zeros."""
    for number, (word, place) in enumerate(words):
        low, high = bounds(step * number)
        if word and not 2 * word - 1 <= low * (2 << place) <= high * (2 << place) <= 2 * word + 1:
            raise broken(cell.name, f"word {number} of {cell.file}_{tail}.mem is not nearest to its power of e.")


def _check_block(cell: Cell, layer: SoftmaxRows, products: Array, shift: int, layer_powers: Array, first: int) -> None:
    """Check the products of one word for the high part: they round to the layer's powers, and these are right."""
    assert layer.step is not None
    bits = cell.number("M_W")
    power = 1 - 2 * bits - shift
    rounded, near_middle = _rounded(products, 2 * bits, power, _PRODUCT_ERROR << (_ERROR - bits))
    unequal = np.flatnonzero(rounded != layer_powers)
    if unequal.size:
        place = int(unequal[0])
        raise broken(
            layer.name,
            f"{cell.name}: the power at distance {first + place} is {rounded[place]:.9g}, not "
            f"{layer_powers[place]:.9g}.",
        )
    doubtful = np.flatnonzero(near_middle).tolist() if products[0] else [0]  # powers after the first one are smaller
    for place in doubtful:
        low, high = bounds(layer.step * (first + place))
        below, above = middles(Fraction(float(layer_powers[place])))
        if not below < low <= high < above:
            text = f"{shown(Fraction(float(layer_powers[place])))} is not the nearest float32"
            raise broken(layer.name, f"the power at distance {first + place}: {text}.")


def _rounded(products: Array, bits: int, power: int, error: int) -> tuple[Array, Array]:
    """products * 2^power as float32, ties to even; and whether the relative error reaches a middle of two numbers."""
    top_bit: Any = products >> (bits - 1)
    drop = np.maximum(top_bit + (bits - 1 - _MANTISSA), _LOWEST - power)
    mantissa = products >> drop
    remainder, half = products - (mantissa << drop), 1 << (drop - 1)
    mantissa = mantissa + ((remainder > half) | ((remainder == half) & (mantissa % 2 == 1)))
    values = np.ldexp(mantissa.astype(np.float64), (drop + power).astype(np.int64))
    return values, np.abs(remainder - half) << _ERROR <= products * error
