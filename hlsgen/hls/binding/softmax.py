"""Binds a Softmax to hg::softmax or hg::softmax_products, or to those with a mask in front."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.dataflow.softmax_unit import SoftmaxUnit
from hlsgen.dataflow.units import Node
from hlsgen.hls.binding.per_lane import whole_type
from hlsgen.hls.process import Process, Rom, numbers, process, rom
from hlsgen.numerics.exponential_factors import PowerFactors
from hlsgen.numerics.fixed import Array, IntType


def bind_softmax(node: Node, unit: SoftmaxUnit) -> Process:
    """Powers and numerators are float32 numbers, with a 0 behind the last one where a distance can reach it."""
    length, rows = unit.lanes * unit.beats, node.source.beats // unit.beats
    about = f"Softmax of rows of {length}, {unit.last + 1} powers"
    if unit.in_order:
        sums = "hg::sum_in_order"
    else:
        sums = f"hg::exact_sum<{unit.fraction + length.bit_length()}, {unit.fraction}>"
    function, tables = (
        "softmax",
        {
            "powers": numbers(_closed(unit.powers, unit), "[distance]"),
            "numerators": numbers(_closed(unit.numerators, unit), "[distance]"),
        },
    )
    arguments: dict[str, object] = {"SUM": sums, "LAST": unit.last}
    if unit.factors is not None:
        function, tables, about = "softmax_products", _factors(unit.factors), f"{about}, products of two words"
        arguments |= {"LOW": unit.factors.low_bits, "M_BITS": unit.factors.bits}
    header = "softmax"
    if unit.mask is not None:
        function, header, about = f"{function}_masked", "softmax_mask", f"{about}, masked"
        gone, code = _gone(node.source.type, unit.last)
        arguments |= {"CODE": code, "GONE": gone}
        words = unit.mask.reshape(-1, unit.lanes).astype(np.int64)
        tables["masks"] = rom(words, "[word][lane]: 0 counts, 1 is even, 2 is gone")
    made = process(function, about, tables, header=header, **arguments, BEATS=unit.beats, ROWS=rows)
    return replace(made, network=True)


def _closed(values: Array, unit: SoftmaxUnit) -> Array:
    return np.append(values, np.zeros(int(unit.closed), np.float32))


def _factors(factors: PowerFactors) -> dict[str, Rom]:
    return {
        "mantissas": rom(factors.mantissas, "[high bits]"),
        "shifts": rom(factors.shifts, "[high bits]"),
        "lows": rom(factors.lows, "[low bits]"),
    }


def _gone(type_: IntType, last: int) -> tuple[int, IntType]:
    """A code as far below all others and 0 as distances count, and the type that holds it and them."""
    low, high = whole_type(type_)
    return low - last, IntType(low - last, high)
