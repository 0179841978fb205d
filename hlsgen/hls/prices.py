"""Costs of realizations in C++: an HLS tool maps every multiplication to a DSP block, and readers expect ap_fixed."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import LIBRARY, FloatScale, LaneShift, Prices, Realization, Scale, Shift
from hlsgen.rescale.prices import Price


def _price(realization: Realization, table: Array, source: IntType, result: IntType, dsp: bool) -> Price:
    """Cost as in the Verilog library, except for multiplications and shifts. An exact shift is always preferred."""
    match realization:
        case Shift():
            return 0.5 * table.shape[1], 0, 0
        case LaneShift():
            return 0.6 * table.shape[1], 0, 0
        case Scale() | FloatScale():
            return LIBRARY.realization(realization, table, source, result, True)
        case _:
            return LIBRARY.realization(realization, table, source, result, dsp)


PRICES = Prices(_price, LIBRARY.join, LIBRARY.counts, frozenset({"lane-table", "neuron-table"}))
