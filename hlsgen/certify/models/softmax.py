"""Model of hg_softmax: its tables hold the correctly rounded powers of e for every distance that two codes can have.

The module adds, divides and multiplies these as its contract states. The layer states the same operations, so a proof
of the tables proves the layer. The parameter TINY states that shares can be subnormal. Powers are compared with bounds
of exp that are computed in integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen.certify.models.exponential import bounds, float_of, middles, shown
from hlsgen.certify.models.routing import check_beat, check_parameters, groups_in_frame
from hlsgen.certify.models.softmax_products import check_products
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.stream_contents import Elements, StreamContents, check_codes, vector_order
from hlsgen.ir import SoftmaxRows
from hlsgen.ir.graph import MASK_REMOVED
from hlsgen.numerics.fixed import Array

_PARAMETERS = "LANES BEATS IN_W IN_SIGNED LAST W FRACTION IN_ORDER LOW M_W FILE"
_OPTIONAL = "MASKS TINY DSP"
#: Maximum width of a sum that the module rounds.
_WIDEST = 256


def softmax(
    cell: Cell, stream: StreamContents, layer: SoftmaxRows, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream after the unit: every element is in the place of its code. Raises HG055."""
    check_parameters(cell, _PARAMETERS, _OPTIONAL)
    count, type_ = layer.source.shape[-1], layer.source.type
    lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
    check_beat(cell, stream, lanes, cell.number("IN_W", 1))
    check_codes(cell.name, stream, type_, cell.number("IN_W"), cell.number("IN_SIGNED"))
    groups_in_frame(cell, stream, beats, "a row has")
    _, columns = vector_order(layer.name, order, count)
    if lanes * beats != count or not stream.filled.all():
        raise broken(layer.name, f"{cell.name} has {lanes} x {beats} elements in order, a row has {count}.")
    if cell.number("IN_ORDER") != int(layer.in_order):
        raise broken(
            layer.name, f"IN_ORDER of {cell.name} is {cell.number('IN_ORDER')}, the layer's sum has another order."
        )
    if layer.in_order and cell.number("LOW"):
        raise broken(layer.name, f"LOW of {cell.name} is {cell.number('LOW')}; powers in order are words of tables.")
    if layer.in_order and (lanes > 1 or (np.diff(columns) < 0).any()):
        raise broken(layer.name, f"{cell.name} does not get the elements of a row one by one, from first to last.")
    return stream.computed(elements.numbers[value][order], layer.result.type)


def check_mask(cell: Cell, layer: SoftmaxRows, order: Array, memories: Memories) -> None:
    """Check that the unit's mask equals the layer's mask for every element of a frame. Raises HG055."""
    count = cell.number("MASKS") if "MASKS" in cell.parameters else 0
    layer_mask = np.zeros(order.shape, np.uint8) if layer.mask is None else layer.mask.reshape(-1)[order]
    lanes = cell.number("LANES", 1)
    unit_mask = np.zeros(order.size, np.uint8)
    if count:
        if order.size % (count * lanes):
            raise broken(layer.name, f"{cell.name} has {count} words of a mask, which do not fill a frame.")
        words = memories.words(f"{cell.file}_mask.mem", count, 2 * lanes)
        words_of_mask = [(word >> (2 * lane)) & 3 for word in words for lane in range(lanes)]
        unit_mask = np.tile(np.array(words_of_mask, np.uint8), order.size // len(words_of_mask))
    if not np.array_equal(unit_mask, layer_mask.reshape(-1)):
        place = int(np.flatnonzero(unit_mask != layer_mask.reshape(-1))[0])
        raise broken(
            layer.name, f"{cell.name}: the mask has {unit_mask[place]} for element {order.reshape(-1)[place]}."
        )


def check_tables(cell: Cell, layer: SoftmaxRows, memories: Memories) -> None:
    """Check that both words of every distance are the layer's. Raises HG055."""
    name, last, width, fraction = layer.name, cell.number("LAST"), cell.number("W", 1), cell.number("FRACTION")
    reach = layer.source.type.hi - layer.source.type.lo
    count = layer.source.shape[-1]
    masks_elements = layer.mask is not None and bool((layer.mask == MASK_REMOVED).any())
    if masks_elements and last < len(layer.powers):
        raise broken(name, f"{cell.name}: its last distance, {last}, is also used by elements that are not excluded.")
    if last >= 1 << layer.source.type.bits and not masks_elements:
        raise broken(name, f"LAST of {cell.name} is {last}, which no distance of {layer.source.type} reaches.")
    if layer.in_order and width != 32:
        raise broken(name, f"W of {cell.name} is {width}; float32 has 32 bits.")
    if not layer.in_order and width + (count - 1).bit_length() > _WIDEST:
        raise broken(name, f"sums of {count} powers of {width} bits are wider than {_WIDEST} bits.")
    if not layer.in_order:
        _check_shares(cell, layer)
    if cell.number("LOW"):
        check_products(cell, layer, memories)
        return
    powers = memories.words(f"{cell.file}_power.mem", last + 1, width)
    numerators = memories.words(f"{cell.file}_numerator.mem", last + 1, 32)
    unit_powers = [float_of(word) if layer.in_order else Fraction(word, 1 << fraction) for word in powers]
    unit_numerators = [float_of(word) for word in numerators]
    if masks_elements and (unit_powers[last] or unit_numerators[last]):
        raise broken(name, f"{cell.name}: the power at its last distance, which excluded elements use, is not 0.")
    for distance in range(reach + 1):
        address = min(distance, last)
        power, numerator = _layer_words(layer, distance)
        if unit_powers[address] != power:
            raise broken(
                name,
                f"{cell.name}: the power at distance {distance} is {shown(unit_powers[address])}, not {shown(power)}.",
            )
        if unit_numerators[address] != numerator:
            text = f"{shown(unit_numerators[address])}, not {shown(numerator)}"
            raise broken(name, f"{cell.name}: the numerator at distance {distance} is {text}.")
    if not layer.in_order:
        _check_powers(layer, reach)


def _layer_words(layer: SoftmaxRows, distance: int) -> tuple[Fraction, Fraction]:
    """Power and numerator of the layer at a distance. They are compared with exp as well."""
    if distance >= len(layer.powers):
        return Fraction(0), Fraction(0)
    return Fraction(float(layer.powers[distance])), Fraction(float(layer.numerators[distance]))


def _check_powers(layer: SoftmaxRows, reach: int) -> None:
    """Check that each power is the float32 nearest to exp(-step * distance)."""
    assert layer.step is not None
    for distance in range(reach + 1):
        power, _ = _layer_words(layer, distance)
        low, high = bounds(layer.step * distance)
        below, above = middles(power)
        if not below < low <= high < above:
            text = f"{shown(power)} is not the nearest float32 to exp of {float(-layer.step * distance)}"
            raise broken(layer.name, f"the power at distance {distance}: {text}.")


def _check_shares(cell: Cell, layer: SoftmaxRows) -> None:
    """Check that TINY = 0 is only used if no share is below the smallest normal number.

    The smallest share is the share of the smallest power in a row whose other powers are the largest.
    """
    if "TINY" in cell.parameters and cell.number("TINY"):
        return
    powers = np.asarray(layer.powers, np.float64)
    smallest_power = Fraction(float(powers[powers > 0].min()))
    if smallest_power * Fraction(float(np.float32(1) / np.float32(layer.source.shape[-1]))) < Fraction(1, 1 << 126):
        raise broken(layer.name, f"{cell.name} has TINY = 0, and shares can be below 2^-126.")
