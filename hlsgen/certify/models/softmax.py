"""Model of hg_softmax: its tables hold the correctly rounded powers of e for every distance that two codes can have.

The module adds, divides and multiplies these as its contract says, which is what the layer says. So a proof of the
tables is one of the layer. Powers are compared with bounds of exp that are computed here, in integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen.certify.models.routing import fits, only, whole
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.stream_contents import Elements, StreamContents, readable, vectors
from hlsgen.ir import SoftmaxRows
from hlsgen.numerics.fixed import Array

_PARAMETERS = "LANES BEATS IN_W IN_SIGNED LAST W FRACTION IN_ORDER FILE"
#: Bits of the widest sum that the module rounds.
_WIDEST = 256
#: Bits behind the binary point of bounds; terms of the series; the largest argument that is of use.
_BITS, _TERMS, _FAR = 400, 60, 256


def softmax(
    cell: Cell, stream: StreamContents, layer: SoftmaxRows, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream behind the unit: every element in the place of its code. Raises HG055."""
    only(cell, _PARAMETERS)
    count, type_ = layer.source.shape[-1], layer.source.type
    lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
    fits(cell, stream, lanes, cell.number("IN_W", 1))
    readable(cell.name, stream, type_, cell.number("IN_W"), cell.number("IN_SIGNED"))
    whole(cell, stream, beats, "a row has")
    _, columns = vectors(layer.name, order, count)
    if lanes * beats != count or not stream.filled.all():
        raise broken(layer.name, f"{cell.name} has {lanes} x {beats} elements in turn, a row {count}.")
    if cell.number("IN_ORDER") != int(layer.in_order):
        raise broken(layer.name, f"IN_ORDER of {cell.name} is {cell.number('IN_ORDER')}, the layer's sum is another.")
    if layer.in_order and (lanes > 1 or (np.diff(columns) < 0).any()):
        raise broken(layer.name, f"{cell.name} does not get the elements of a row one by one, from first to last.")
    return stream.computed(elements.numbers[value][order], layer.result.type)


def check_tables(cell: Cell, layer: SoftmaxRows, memories: Memories) -> None:
    """Both words of every distance are those of the layer. Raises HG055."""
    name, last, width, fraction = layer.name, cell.number("LAST"), cell.number("W", 1), cell.number("FRACTION")
    reach = layer.source.type.hi - layer.source.type.lo
    count = layer.source.shape[-1]
    if last >= 1 << layer.source.type.bits:
        raise broken(name, f"LAST of {cell.name} is {last}, which no distance of {layer.source.type} reaches.")
    if layer.in_order and width != 32:
        raise broken(name, f"W of {cell.name} is {width}; float32 has 32 bits.")
    if not layer.in_order and width + (count - 1).bit_length() > _WIDEST:
        raise broken(name, f"sums of {count} powers of {width} bits are wider than {_WIDEST} bits.")
    powers = memories.words(f"{cell.file}_power.mem", last + 1, width)
    numerators = memories.words(f"{cell.file}_numerator.mem", last + 1, 32)
    found = [_float(word) if layer.in_order else Fraction(word, 1 << fraction) for word in powers]
    scaled = [_float(word) for word in numerators]
    for distance in range(reach + 1):
        at = min(distance, last)
        power, numerator = _wanted(layer, distance)
        if found[at] != power:
            raise broken(
                name, f"{cell.name}: the power at distance {distance} is {_shown(found[at])}, not {_shown(power)}."
            )
        if scaled[at] != numerator:
            text = f"{_shown(scaled[at])}, not {_shown(numerator)}"
            raise broken(name, f"{cell.name}: the numerator at distance {distance} is {text}.")
    if not layer.in_order:
        _check_powers(layer, reach)


def _wanted(layer: SoftmaxRows, distance: int) -> tuple[Fraction, Fraction]:
    """What the layer says; it is held against exp as well."""
    if distance >= len(layer.powers):
        return Fraction(0), Fraction(0)
    return Fraction(float(layer.powers[distance])), Fraction(float(layer.numerators[distance]))


def _check_powers(layer: SoftmaxRows, reach: int) -> None:
    """Each power is the float32 that is nearest to exp(-step * distance)."""
    assert layer.step is not None
    for distance in range(reach + 1):
        power, _ = _wanted(layer, distance)
        low, high = bounds(layer.step * distance)
        below, above = _middles(power)
        if not below < low <= high < above:
            text = f"{_shown(power)} is not the nearest float32 to exp of {float(-layer.step * distance)}"
            raise broken(layer.name, f"the power at distance {distance}: {text}.")


def bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of exp(-x), x 0 or more: the alternating series of a small part of x, squared as often as it takes."""
    if x == 0:
        return Fraction(1), Fraction(1)
    if x > _FAR:
        return Fraction(0), Fraction(1, 1 << _FAR)
    halvings = int(2 * x).bit_length()
    small = x / (1 << halvings)  # below 1/2
    low, high = 0, 1 << _BITS
    start = (small.numerator << _BITS) // small.denominator
    low, high = _series(start + 1, upward=False), _series(start, upward=True)
    for _ in range(halvings):
        low, high = low * low >> _BITS, -(-high * high >> _BITS)
    return Fraction(low, 1 << _BITS), Fraction(high, 1 << _BITS)


def _series(x: int, *, upward: bool) -> int:
    """A bound of exp(-x) in fixed point: terms are cut off, which a unit for each of them makes up for."""
    total, term = 0, 1 << _BITS
    for n in range(_TERMS):
        total += -term if n % 2 else term
        term = (term * x >> _BITS) // (n + 1)
    return total + (_TERMS * _TERMS if upward else -_TERMS * _TERMS)


def _float(word: int) -> Fraction:
    """A float32 that is not negative and finite."""
    exponent, mantissa = word >> 23, word & 0x7FFFFF
    if exponent >= 255:
        return Fraction(-1)  # equal to no power
    whole_, power = (mantissa, -149) if exponent == 0 else (mantissa | 0x800000, exponent - 150)
    return Fraction(whole_) * Fraction(2) ** power


def _middles(value: Fraction) -> tuple[Fraction, Fraction]:
    """The middles of a float32 of 1 or less and its neighbours; below 0 is none."""
    word = int(np.float32(float(value)).view(np.uint32))
    above = (_float(word + 1) + value) / 2
    return ((_float(word - 1) + value) / 2 if word else Fraction(-1)), above


def _shown(value: Fraction) -> str:
    return f"{float(value):.9g}"
