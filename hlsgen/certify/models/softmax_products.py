"""Proof that products of two words of the tables of hg_softmax are the correctly rounded powers of e, for all distances.

The words are held against bounds of exp, which says how far a product can be from the exact power. Where that is
nearer to the middle of two float32 numbers, the power of that one distance is bounded by itself.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.certify.models.exponential import bounds, middles, shown
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.ir import SoftmaxRows
from hlsgen.numerics.fixed import Array

#: Bits of a float32 mantissa; the place of the last bit of the smallest ones.
_MANTISSA, _LOWEST = 24, -149
#: Relative errors are in units of 2^-100. Words of b bits are off by 2^-b each; two of them, and what both make.
_ERROR, _BOTH = 100, 3
#: Largest shift that the module takes, least bits of its mantissas.
_SHIFT, _LEAST = 151, 16


def check_products(cell: Cell, layer: SoftmaxRows, memories: Memories) -> None:
    """Raises HG055."""
    assert layer.step is not None
    if not np.array_equal(layer.powers, layer.numerators):
        raise broken(layer.name, f"{cell.name} has one power for each distance, the layer two.")
    name, bits, low_bits, last = layer.name, cell.number("M_W", _LEAST), cell.number("LOW", 1), cell.number("LAST")
    if low_bits >= layer.source.type.bits or bits > _ERROR:
        raise broken(name, f"{cell.name}: LOW is {low_bits}, M_W {bits}.")
    block = 1 << low_bits
    high = memories.words(f"{cell.file}_high.mem", (last >> low_bits) + 1, bits + 8)
    low = memories.words(f"{cell.file}_low.mem", block, bits + 1)
    mantissas, shifts = [word & ((1 << bits) - 1) for word in high], [word >> bits for word in high]
    if not all((m == 0 or m >> (bits - 1) == 1) and s <= _SHIFT for m, s in zip(mantissas, shifts, strict=True)):
        raise broken(name, f"a word of {cell.file}_high.mem has no mantissa of {bits} bits, or a shift above {_SHIFT}.")
    if not all(1 << (bits - 1) < word <= 1 << bits for word in low):
        raise broken(name, f"a word of {cell.file}_low.mem is not above 1/2 and at most 1.")
    _check_places(cell, layer)
    reach = layer.source.type.hi - layer.source.type.lo
    if reach > last and last < len(layer.powers):
        raise broken(name, f"{cell.name}: the power of its last distance, {last}, is not 0, which larger ones have.")
    _check_words(cell, "high", [(m, bits - 1 + s) for m, s in zip(mantissas, shifts, strict=True)], layer.step * block)
    _check_words(cell, "low", [(word, bits) for word in low], layer.step)
    if last > reach and mantissas[-1]:
        raise broken(name, f"{cell.name}: the power at its last distance, which elements have that are gone, is not 0.")
    columns = np.array(low, object)
    wanted = np.append(layer.powers, np.zeros(max(0, last + 1 - len(layer.powers)), np.float32))
    for number, (mantissa, shift) in enumerate(zip(mantissas, shifts, strict=True)):
        first = number * block
        count = min(block, min(reach, last) + 1 - first)
        if count > 0:
            _check_block(cell, layer, mantissa * columns[:count], shift, wanted[first : first + count], first)


def _check_places(cell: Cell, layer: SoftmaxRows) -> None:
    """The fixed-point numbers of a sum have every bit of a power."""
    fraction, least = cell.number("FRACTION"), np.frexp(layer.powers[-1])[1] - _MANTISSA
    if cell.number("W") != fraction + 1 or not -max(least, _LOWEST) <= fraction <= -_LOWEST or fraction < _MANTISSA - 1:
        raise broken(layer.name, f"{cell.name}: {fraction} places of {cell.number('W')} bits do not hold every power.")


def _check_words(cell: Cell, tail: str, words: list[tuple[int, int]], step: Fraction) -> None:
    """Words w * 2^-p are nearest to exp(-step * number), but for zeros."""
    for number, (word, place) in enumerate(words):
        low, high = bounds(step * number)
        if word and not 2 * word - 1 <= low * (2 << place) <= high * (2 << place) <= 2 * word + 1:
            raise broken(cell.name, f"word {number} of {cell.file}_{tail}.mem is not nearest to its power of e.")


def _check_block(cell: Cell, layer: SoftmaxRows, products: Array, shift: int, wanted: Array, first: int) -> None:
    """Of one word for the high part: it is rounded to the powers of the layer, and these are the right ones."""
    assert layer.step is not None
    bits = cell.number("M_W")
    power = 1 - 2 * bits - shift
    found, near = _rounded(products, 2 * bits, power, _BOTH << (_ERROR - bits))
    different = np.flatnonzero(found != wanted)
    if different.size:
        place = int(different[0])
        raise broken(
            layer.name,
            f"{cell.name}: the power at distance {first + place} is {found[place]:.9g}, not {wanted[place]:.9g}.",
        )
    doubtful = np.flatnonzero(near).tolist() if products[0] else [0]  # powers behind the first one are smaller
    for place in doubtful:
        low, high = bounds(layer.step * (first + place))
        below, above = middles(Fraction(float(wanted[place])))
        if not below < low <= high < above:
            text = f"{shown(Fraction(float(wanted[place])))} is not the nearest float32"
            raise broken(layer.name, f"the power at distance {first + place}: {text}.")


def _rounded(products: Array, bits: int, power: int, error: int) -> tuple[Array, Array]:
    """products * 2^power as float32, ties to even; which are so near to a middle that the relative error reaches it."""
    most: Any = products >> (bits - 1)
    drop = np.maximum(most + (bits - 1 - _MANTISSA), _LOWEST - power)
    kept = products >> drop
    rest, half = products - (kept << drop), 1 << (drop - 1)
    kept = kept + ((rest > half) | ((rest == half) & (kept % 2 == 1)))
    values = np.ldexp(kept.astype(np.float64), (drop + power).astype(np.int64))
    return values, np.abs(rest - half) << _ERROR <= products * error
