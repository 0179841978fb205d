"""Binds units whose elements are float32 numbers to functions of float32.hpp."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import FloatUnit, Stream
from hlsgen.hls.binding.per_lane import of_lanes, rounds, signed_type, whole_type
from hlsgen.hls.binding.shifts import MODES
from hlsgen.hls.process import Process, Rom, numbers, process
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
#: Integers times such powers of two are float32 numbers that are neither subnormal nor infinite.
_PLAIN_EXPONENTS = (-126, 60)


def bind_float_key(source: Stream) -> Process:
    """The order keys of numbers."""
    return process("float_key", "float32 to integers in the same order", header="float32", BEATS=source.beats)


def bind_float_unit(unit: FloatUnit, source: Stream) -> Process:
    """One operation on float32."""
    folds = {"FOLDS": len(unit.table), "ROUNDS": rounds(unit.table, source)}
    match unit.unit:
        case Arithmetic(op, value):
            roms = {"constant": _of_lanes(value, unit.table)}
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
    sums = [(x << unit.shift) + int(b) for x in whole_type(source.type) for b in (offset.min(), offset.max())]
    common = {"SUM": signed_type(*sums, *(-s for s in sums)), "SHIFT": unit.shift}
    folds = {"FOLDS": len(table), "ROUNDS": rounds(table, source)}
    roms = {"offset": of_lanes(unit.offset, table, signed=True)}
    mantissa, exponent = _reduced(unit.mantissa, unit.exponent)
    least, most = _PLAIN_EXPONENTS
    if (mantissa == 1).all() and least <= exponent.min() and exponent.max() <= most:
        roms["scale"] = _of_lanes(np.ldexp(np.float32(1), exponent), table)
        return process("f32_convert", "integer to float32", roms, header="float32", **common, **folds)
    roms |= {"mantissa": of_lanes(mantissa, table), "exponent": of_lanes(exponent, table, signed=True)}
    bits = int(mantissa.max()).bit_length()
    return process("f32_decode", "integer to float32", roms, header="float32", **common, M_BITS=max(1, bits), **folds)


def _reduced(mantissa: Array, exponent: Array) -> tuple[Array, Array]:
    """The same numbers with the smallest mantissas."""
    zeros = np.array([(m & -m).bit_length() - 1 if m else 0 for m in mantissa.tolist()], np.int64)
    return mantissa >> zeros, exponent + zeros


def _to_code(unit: ToCode, table: Array, source: Stream) -> Process:
    if unit.mode == BIPOLAR_MODE:
        return process("f32_sign", "sign of a float32", header="float32", BEATS=source.beats)
    # What is beyond the largest number saturates as that does.
    low, high = (_of_lanes(np.clip(bound, -_LARGEST, _LARGEST), table) for bound in (unit.low, unit.high))
    return process(
        "f32_encode", f"float32 to code, {Rounding(unit.mode).name}", {"low": low, "high": high}, header="float32",
        MODE=_mode(Rounding(unit.mode)), FOLDS=len(table), ROUNDS=rounds(table, source),
    )  # fmt: skip


def _mode(mode: Rounding) -> str:
    return f"hg::{MODES[mode]}"


def _of_lanes(values: Array, table: Array) -> Rom:
    return numbers(values[table], "[fold][lane]")
