"""Binds a Softmax to hg::softmax, or to hg::softmax_products."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.units import Node, SoftmaxUnit
from hlsgen.diagnostics import fail
from hlsgen.hls.process import Process, numbers, process, rom
from hlsgen.numerics.exponential_factors import PowerFactors
from hlsgen.numerics.fixed import Array


def bind_softmax(node: Node, unit: SoftmaxUnit) -> Process:
    """Powers and numerators are float32 numbers, with a 0 behind the last one where a distance can reach it."""
    if unit.mask is not None:
        raise fail(
            "HG040", node.layer, "the target hls has no masks of a Softmax yet.", "Build it with --target verilog."
        )
    length, rows = unit.lanes * unit.beats, node.source.beats // unit.beats
    about = f"Softmax of rows of {length}, {unit.last + 1} powers"
    if unit.in_order:
        sums = "hg::sum_in_order"
    else:
        sums = f"hg::exact_sum<{unit.fraction + length.bit_length()}, {unit.fraction}>"
    if unit.factors is not None:
        return _products(unit, unit.factors, sums, rows, about)
    tables = {
        "powers": numbers(_closed(unit.powers, unit), "[distance]"),
        "numerators": numbers(_closed(unit.numerators, unit), "[distance]"),
    }
    return process("softmax", about, tables, SUM=sums, LAST=unit.last, BEATS=unit.beats, ROWS=rows)


def _closed(values: Array, unit: SoftmaxUnit) -> Array:
    return np.append(values, np.zeros(int(unit.closed), np.float32))


def _products(unit: SoftmaxUnit, factors: PowerFactors, sums: str, rows: int, about: str) -> Process:
    tables = {
        "mantissas": rom(factors.mantissas, "[high bits]"),
        "shifts": rom(factors.shifts, "[high bits]"),
        "lows": rom(factors.lows, "[low bits]"),
    }
    return process(
        "softmax_products", f"{about}, products of two words", tables, header="softmax", SUM=sums, LAST=unit.last,
        LOW=factors.low_bits, M_BITS=factors.bits, BEATS=unit.beats, ROWS=rows,
    )  # fmt: skip
