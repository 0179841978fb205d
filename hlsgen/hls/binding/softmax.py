"""Binds a Softmax to hg::softmax or hg::softmax_products, or to their masked variants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.dataflow.softmax_unit import SoftmaxUnit
from hlsgen.dataflow.units import Node
from hlsgen.hls.binding.per_lane import bit_range
from hlsgen.hls.process import Process, Rom, float_rom, process, rom
from hlsgen.numerics.exponential_factors import PowerFactors
from hlsgen.numerics.fixed import Array, IntType


def bind_softmax(node: Node, unit: SoftmaxUnit) -> Process:
    """Call of a Softmax. Its float32 powers and numerators end with a 0 where a distance can exceed the last one."""
    length, rows = unit.lanes * unit.beats, node.source.beats // unit.beats
    summary = f"Softmax of rows of {length}, {unit.last + 1} powers"
    if unit.in_order:
        sum_arithmetic = "hg::sum_in_order"
    else:
        sum_arithmetic = f"hg::exact_sum<{unit.fraction + length.bit_length()}, {unit.fraction}>"
    function, tables = (
        "softmax",
        {
            "powers": float_rom(_with_zero(unit.powers, unit), "[distance]"),
            "numerators": float_rom(_with_zero(unit.numerators, unit), "[distance]"),
        },
    )
    arguments: dict[str, object] = {"SUM": sum_arithmetic, "LAST": unit.last}
    if unit.factors is not None:
        function, tables, summary = "softmax_products", _factors(unit.factors), f"{summary}, products of two words"
        arguments |= {"LOW": unit.factors.low_bits, "M_BITS": unit.factors.bits}
    header = "softmax"
    if unit.mask is not None:
        function, header, summary = f"{function}_masked", "softmax_mask", f"{summary}, masked"
        masked_code, code = _code_of_masked(node.source.type, unit.last)
        arguments |= {"CODE": code, "GONE": masked_code}
        words = unit.mask.reshape(-1, unit.lanes).astype(np.int64)
        tables["masks"] = rom(words, "[word][lane]: 0 counts, 1 is even, 2 is masked out")
    call = process(function, summary, tables, header=header, **arguments, BEATS=unit.beats, ROWS=rows)
    return replace(call, network=True)


def _with_zero(values: Array, unit: SoftmaxUnit) -> Array:
    return np.append(values, np.zeros(int(unit.closed), np.float32))


def _factors(factors: PowerFactors) -> dict[str, Rom]:
    return {
        "mantissas": rom(factors.mantissas, "[high bits]"),
        "shifts": rom(factors.shifts, "[high bits]"),
        "lows": rom(factors.lows, "[low bits]"),
    }


def _code_of_masked(type_: IntType, last: int) -> tuple[int, IntType]:
    """Code of masked-out elements, `last` below all other codes and 0, and a type that holds all codes."""
    low, high = bit_range(type_)
    return low - last, IntType(low - last, high)
