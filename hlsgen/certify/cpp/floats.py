"""Reads processes that compute in float32 as instances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, check_tables, check_type_holds, folds_of, lane_parameters, mode_of
from hlsgen.certify.cpp.meaning import Meaning, instance
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import broken
from hlsgen.numerics.fixed import Array

_OPERATIONS = ("add", "mul", "div", "max", "min")
#: Operation -> OP of hg_f32_join.
_JOINS = {"add": 0, "mul": 1, "sub": 5}
_LARGEST = np.finfo(np.float32).max
#: An integer times a power of two with such an exponent is neither subnormal nor infinite.
_PLAIN = range(-126, 61)


def _words(numbers: Array) -> Array:
    """The bits of float32 numbers."""
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.int64)


def _float_input(call: Call) -> int:
    lanes, x, _ = lane_parameters(call)
    if (x.lo, x.hi) != (0, 0xFFFFFFFF):
        raise broken(call.name, f"{call.function} reads float32, not {x}.")
    return lanes


def _float_output(call: Call) -> None:
    out_beats = call.outputs[0]
    if (out_beats.bits, out_beats.signed) != (32, False):
        raise broken(call.name, f"{call.function} outputs 32 bits, not {out_beats.bits}.")


def _key(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS")
    check_tables(call, "")
    _float_output(call)
    return instance(call, "hg_float_key", (call.number("BEATS", 1),), LANES=_float_input(call))


def _unit(call: Call, tables: Tables) -> Meaning:
    call.only("OP FOLDS ROUNDS")
    check_tables(call, "constant")
    lanes, (folds, beats) = _float_input(call), folds_of(call)
    _float_output(call)
    op = call.arguments["OP"].removeprefix("hg::f32_")
    if op not in _OPERATIONS:
        raise broken(call.name, f"OP is {call.arguments['OP']}.")
    file = tables.put(f"{call.name}.constants", [(_words(tables.array(call, "constant", folds, lanes)), 32)])
    return instance(call, "hg_f32_unit", beats, OP=_OPERATIONS.index(op), LANES=lanes, FOLDS=folds, FILE=file)


def _round(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("MODE BEATS")
    check_tables(call, "")
    _float_output(call)
    beats = (call.number("BEATS", 1),)
    return instance(call, "hg_f32_round_unit", beats, MODE=mode_of(call), LANES=_float_input(call))


def _decode(call: Call, tables: Tables) -> Meaning:
    """f32_decode; and f32_convert, whose scale is a power of two, so that only the conversion rounds."""
    is_convert = call.function == "hg::f32_convert"
    call.only("SUM SHIFT FOLDS ROUNDS" if is_convert else "SUM SHIFT M_BITS FOLDS ROUNDS")
    check_tables(call, "offset scale" if is_convert else "offset mantissa exponent")
    lanes, x, parameters = lane_parameters(call)
    folds, beats = folds_of(call)
    _float_output(call)
    offset, shift = tables.array(call, "offset", folds, lanes), call.number("SHIFT")
    if shift > 62:
        raise broken(call.name, "it shifts by more bits than its model supports.")
    sums = [(v << shift) + int(b) for v in (x.lo, x.hi) for b in (offset.min(), offset.max())]
    check_type_holds(call, "SUM", *sums, *(-s for s in sums))
    if is_convert:
        parts, exponent = np.frexp(tables.array(call, "scale", folds, lanes))
        if (parts != 0.5).any() or not np.isin(exponent - 1, _PLAIN).all():
            raise broken(call.name, "its scales are no powers of two.")
        mantissa, exponent = np.ones((folds, lanes), np.int64), exponent.astype(np.int64) - 1
    else:
        mantissa, exponent = (tables.array(call, end, folds, lanes) for end in ("mantissa", "exponent"))
        if mantissa.min() < 0 or int(mantissa.max()) >> call.number("M_BITS", 1) or np.abs(exponent).max() >= 1 << 11:
            raise broken(call.name, "its mantissas or exponents exceed its model.")
    b_bits, m_bits = bits_of(offset), max(1, int(mantissa.max()).bit_length())
    file = tables.put(f"{call.name}.factors", [(offset, b_bits), (mantissa, m_bits), (exponent, 12)])
    return instance(
        call,
        "hg_f32_decode",
        beats,
        LANES=lanes,
        IN_W=parameters["IN_W"],
        IN_SIGNED=parameters["IN_SIGNED"],
        SHIFT=shift,
        B_W=b_bits,
        M_W=m_bits,
        FOLDS=folds,
        FILE=file,
    )


def _encode(call: Call, tables: Tables) -> Meaning:
    call.only("MODE FOLDS ROUNDS")
    check_tables(call, "low high")
    lanes, (folds, beats), out_beats = _float_input(call), folds_of(call), call.outputs[0]
    ends = []
    for end, infinity in (("low", -np.inf), ("high", np.inf)):
        bound = tables.array(call, end, folds, lanes)
        # The largest number saturates like infinity.
        ends.append((_words(np.where(bound == np.copysign(_LARGEST, infinity), np.float32(infinity), bound)), 32))
    file = tables.put(f"{call.name}.bounds", ends)
    return instance(
        call,
        "hg_f32_encode",
        beats,
        MODE=mode_of(call),
        OUT_W=out_beats.bits,
        OUT_SIGNED=int(out_beats.signed),
        LANES=lanes,
        FOLDS=folds,
        FILE=file,
    )


def _join(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("OP BEATS")
    check_tables(call, "")
    _float_output(call)
    lanes, beats = call.outputs[0].lanes, call.number("BEATS", 1)
    op = _JOINS.get(call.arguments["OP"].removeprefix("hg::f32_"))
    if op is None:
        raise broken(call.name, f"OP is {call.arguments['OP']}.")
    if any((x.bits, x.signed, x.lanes) != (32, False, lanes) for x in call.inputs):
        raise broken(call.name, f"{call.function} reads {lanes} lanes of float32.")
    return instance(call, "hg_f32_join", (beats, beats), OP=op, LANES=lanes)


def _sign(call: Call, tables: Tables) -> Meaning:
    call.only("BEATS")
    check_tables(call, "")
    lanes, out_beats = _float_input(call), call.outputs[0]
    file = tables.put(f"{call.name}.bounds", [(np.zeros((1, lanes), np.int64), 64)])
    return instance(
        call,
        "hg_f32_encode",
        (call.number("BEATS", 1),),
        MODE=7,
        OUT_W=out_beats.bits,
        OUT_SIGNED=int(out_beats.signed),
        LANES=lanes,
        FOLDS=1,
        FILE=file,
    )


#: Name of a function -> how a call of it is read as an instance.
FLOATS: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::float_key": _key,
    "hg::f32_unit": _unit,
    "hg::f32_round": _round,
    "hg::f32_convert": _decode,
    "hg::f32_decode": _decode,
    "hg::f32_join": _join,
    "hg::f32_encode": _encode,
    "hg::f32_sign": _sign,
}
