"""Binds a Softmax to hg::softmax."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.units import Node, SoftmaxUnit
from hlsgen.hls.process import Process, numbers, process
from hlsgen.numerics.fixed import Array


def bind_softmax(node: Node, unit: SoftmaxUnit) -> Process:
    """Powers and numerators are float32 numbers, with a 0 behind the last one where a distance can reach it."""
    length = unit.lanes * unit.beats
    bits = unit.fraction + length.bit_length() if not unit.in_order else 0
    return process(
        "softmax", f"Softmax of rows of {length}, {unit.last + 1} powers",
        {
            "powers": numbers(_closed(unit.powers, unit), "[distance]"),
            "numerators": numbers(_closed(unit.numerators, unit), "[distance]"),
        },
        SUM="hg::sum_in_order" if unit.in_order else f"hg::exact_sum<{bits}, {unit.fraction}>", LAST=unit.last,
        BEATS=unit.beats, ROWS=node.source.beats // unit.beats,
    )  # fmt: skip


def _closed(values: Array, unit: SoftmaxUnit) -> Array:
    return np.append(values, np.zeros(int(unit.closed), np.float32))
