"""What realizations cost in C++: an HLS tool gives every multiplication a DSP block, and a reader expects ap_fixed."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import LIBRARY, FloatScale, Prices, Realization, Scale, Shift
from hlsgen.rescale.prices import Price


def _price(found: Realization, table: Array, source: IntType, result: IntType, dsp: bool) -> Price:
    """As of the Verilog library, but for what multiplies, and for shifts: where one is right, it is what is meant."""
    match found:
        case Shift():
            return 0.5 * table.shape[1], 0, 0
        case Scale() | FloatScale():
            return LIBRARY.realization(found, table, source, result, True)
        case _:
            return LIBRARY.realization(found, table, source, result, dsp)


PRICES = Prices(_price, LIBRARY.join, LIBRARY.counts)
