"""Binds the units that normalize rows to functions of norm.hpp."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.norm_units import NormMoments, NormRoot, NormScale, RowCodes, root_bits
from hlsgen.dataflow.units import Node
from hlsgen.hls.process import Process, Rom, process
from hlsgen.numerics.fixed import IntType

#: Bits of a part of a constant: constants may exceed the widest C type.
_PART = 32


def bind_moments(node: Node, unit: NormMoments) -> Process:
    """Call that computes sum and moment of each row."""
    summary = f"{'variance' if unit.rows.centered else 'mean square'} of {unit.rows.length} elements"
    return process(
        "norm_moments",
        summary,
        header="norm",
        **_integers(unit.rows),
        CENTERED=unit.rows.centered,
        S_BITS=unit.rows.sum_bits,
        M_BITS=unit.moment_bits,
        BEATS=unit.beats,
        ROWS=node.result.beats,
    )


def bind_root(node: Node, unit: NormRoot) -> Process:
    """Call of the root, with as many steps per cycle as Verilog processes rows at a time."""
    constants, bits = unit.constants, root_bits(unit)
    parts = -(-bits // _PART)
    values = [
        [number >> (_PART * part) & ((1 << _PART) - 1) for part in range(parts)]
        for number in (constants.factor, constants.addend, constants.start)
    ]
    rom_of_constants = Rom(np.array(values, np.int64), IntType(0, (1 << _PART) - 1), "[factor, addend, start][part]")
    return process(
        "norm_root",
        "1 / sqrt",
        {"constants": rom_of_constants},
        header="norm",
        M_BITS=unit.moment_bits,
        S_BITS=unit.sum_bits,
        E_BITS=constants.step_bits,
        W_BITS=bits,
        STEPS=constants.steps,
        AT_ONCE=min(constants.steps, unit.rows_in_flight),
        ROWS=node.result.beats,
    )


def bind_scale(unit: NormScale, rows: int) -> Process:
    """Call that multiplies elements by the reciprocal root of their row."""
    constants = unit.constants
    return process(
        "norm_scale",
        "elements times 1 / sqrt",
        header="norm",
        **_integers(unit.rows),
        S_BITS=unit.rows.sum_bits,
        E_BITS=constants.step_bits,
        A_BITS=unit.element_bits,
        BIAS=127 - constants.exponent,
        BEATS=unit.beats,
        ROWS=rows,
    )


def _integers(rows: RowCodes) -> dict[str, object]:
    lo, hi = rows.ends
    return {"Q": IntType(min(-1, lo), max(0, hi)), "SHIFT": rows.shift, "OFFSET": rows.offset}
