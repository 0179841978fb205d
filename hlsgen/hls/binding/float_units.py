"""Binds units whose elements are float32 numbers to functions of float32.hpp."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import FloatUnit, Stream
from hlsgen.hls.binding.per_lane import bit_range, lane_constants, rounds, signed_type
from hlsgen.hls.binding.shifts import MODES
from hlsgen.hls.process import Process, Rom, float_rom, process
from hlsgen.numerics.fixed import Array, Rounding
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatCompare, RoundToFloat, ToCode, ToFloat
from hlsgen.rescale.realize.float_units import BIPOLAR_MODE

_OPERATIONS = {
    "ADD": "hg::f32_add",
    "MUL": "hg::f32_mul",
    "DIV": "hg::f32_div",
    "MAX": "hg::f32_max",
    "MIN": "hg::f32_min",
}
_LARGEST = np.finfo(np.float32).max
#: Range of exponents for which integers times 2^exponent are neither subnormal nor infinite float32 numbers.
_PLAIN_EXPONENTS = (-126, 60)


def bind_float_key(source: Stream) -> Process:
    """Call that converts float32 numbers to order-preserving keys."""
    return process("float_key", "float32 to integers in the same order", header="float32", BEATS=source.beats)


def bind_float_unit(unit: FloatUnit, source: Stream) -> Process:
    """Call of one float32 operation."""
    folds = {"FOLDS": len(unit.table), "ROUNDS": rounds(unit.table, source)}
    match unit.unit:
        case Arithmetic(op, value):
            roms = {"constant": _float_constants(value, unit.table)}
            return process("f32_unit", f"float32 {op}", roms, header="float32", OP=_OPERATIONS[op], **folds)
        case RoundToFloat(mode):
            return process("f32_round", f"float32 {mode.name}", header="float32", MODE=_mode(mode), BEATS=source.beats)
        case ToFloat():
            return _to_float(unit.unit, unit.table, source)
        case ToCode():
            return _to_code(unit.unit, unit.table, source)
        case FloatCompare():
            raise AssertionError("a comparison is two units")
        case _:
            assert_never(unit.unit)


def _to_float(unit: ToFloat, table: Array, source: Stream) -> Process:
    offset = unit.offset[table]
    sums = [(x << unit.shift) + int(b) for x in bit_range(source.type) for b in (offset.min(), offset.max())]
    sum_arguments = {"SUM": signed_type(*sums, *(-s for s in sums)), "SHIFT": unit.shift}
    folds = {"FOLDS": len(table), "ROUNDS": rounds(table, source)}
    roms = {"offset": lane_constants(unit.offset, table, signed=True)}
    mantissa, exponent = _reduced(unit.mantissa, unit.exponent)
    min_exponent, max_exponent = _PLAIN_EXPONENTS
    if (mantissa == 1).all() and min_exponent <= exponent.min() and exponent.max() <= max_exponent:
        roms["scale"] = _float_constants(np.ldexp(np.float32(1), exponent), table)
        return process("f32_convert", "integer to float32", roms, header="float32", **sum_arguments, **folds)
    roms |= {"mantissa": lane_constants(mantissa, table), "exponent": lane_constants(exponent, table, signed=True)}
    bits = int(mantissa.max()).bit_length()
    return process(
        "f32_decode", "integer to float32", roms, header="float32", **sum_arguments, M_BITS=max(1, bits), **folds
    )


def _reduced(mantissa: Array, exponent: Array) -> tuple[Array, Array]:
    """The same numbers with the smallest possible mantissas."""
    zeros = np.array([(m & -m).bit_length() - 1 if m else 0 for m in mantissa.tolist()], np.int64)
    return mantissa >> zeros, exponent + zeros


def _to_code(unit: ToCode, table: Array, source: Stream) -> Process:
    if unit.mode == BIPOLAR_MODE:
        return process("f32_sign", "sign of a float32", header="float32", BEATS=source.beats)
    # Values beyond the largest finite number saturate to the same code.
    low, high = (_float_constants(np.clip(bound, -_LARGEST, _LARGEST), table) for bound in (unit.low, unit.high))
    return process(
        "f32_encode",
        f"float32 to code, {Rounding(unit.mode).name}",
        {"low": low, "high": high},
        header="float32",
        MODE=_mode(Rounding(unit.mode)),
        FOLDS=len(table),
        ROUNDS=rounds(table, source),
    )


def _mode(mode: Rounding) -> str:
    return f"hg::{MODES[mode]}"


def _float_constants(values: Array, table: Array) -> Rom:
    return float_rom(values[table], "[fold][lane]")
