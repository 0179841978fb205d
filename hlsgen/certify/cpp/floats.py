"""Processes that compute in float32, as instances of the modules that do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, ends_of, folds_of, holds, mode_of, takes_tables
from hlsgen.certify.cpp.meaning import Meaning, instance
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import broken
from hlsgen.numerics.fixed import Array

_OPERATIONS = ("add", "mul", "div", "max", "min")
#: Operation -> OP of hg_f32_join.
_JOINS = {"add": 0, "mul": 1, "sub": 5}
_LARGEST = np.finfo(np.float32).max
#: Integers times such powers of two are neither subnormal nor infinite.
_PLAIN = range(-126, 61)


def _words(numbers: Array) -> Array:
    """The bits of float32 numbers."""
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.int64)


def _float_input(call: Call) -> int:
    lanes, x, _ = ends_of(call)
    if (x.lo, x.hi) != (0, 0xFFFFFFFF):
        raise broken(call.name, f"{call.function} takes float32, not {x}.")
    return lanes


def _float_output(call: Call) -> None:
    sent = call.gives[0]
    if (sent.bits, sent.signed) != (32, False):
        raise broken(call.name, f"{call.function} sends 32 bits, not {sent.bits}.")


def _key(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS")
    takes_tables(call, "")
    _float_output(call)
    return instance(call, "hg_float_key", (call.number("BEATS", 1),), LANES=_float_input(call))


def _unit(call: Call, tables: Tables) -> Meaning:
    call.only("OP FOLDS ROUNDS")
    takes_tables(call, "constant")
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
    takes_tables(call, "")
    _float_output(call)
    beats = (call.number("BEATS", 1),)
    return instance(call, "hg_f32_round_unit", beats, MODE=mode_of(call), LANES=_float_input(call))


def _decode(call: Call, tables: Tables) -> Meaning:
    """f32_decode; and f32_convert, whose scale is a power of two, so that only the conversion rounds."""
    plain = call.function == "hg::f32_convert"
    call.only("SUM SHIFT FOLDS ROUNDS" if plain else "SUM SHIFT M_BITS FOLDS ROUNDS")
    takes_tables(call, "offset scale" if plain else "offset mantissa exponent")
    lanes, x, ends = ends_of(call)
    folds, beats = folds_of(call)
    _float_output(call)
    offset, shift = tables.array(call, "offset", folds, lanes), call.number("SHIFT")
    if shift > 62:
        raise broken(call.name, "it shifts more bits than its model.")
    sums = [(v << shift) + int(b) for v in (x.lo, x.hi) for b in (offset.min(), offset.max())]
    holds(call, "SUM", *sums, *(-s for s in sums))
    if plain:
        parts, exponent = np.frexp(tables.array(call, "scale", folds, lanes))
        if (parts != 0.5).any() or not np.isin(exponent - 1, _PLAIN).all():
            raise broken(call.name, "its scales are no powers of two.")
        mantissa, exponent = np.ones((folds, lanes), np.int64), exponent.astype(np.int64) - 1
    else:
        mantissa, exponent = (tables.array(call, end, folds, lanes) for end in ("mantissa", "exponent"))
        if mantissa.min() < 0 or int(mantissa.max()) >> call.number("M_BITS", 1) or np.abs(exponent).max() >= 1 << 11:
            raise broken(call.name, "its mantissas or exponents are more than its model has.")
    b_bits, m_bits = bits_of(offset), max(1, int(mantissa.max()).bit_length())
    file = tables.put(f"{call.name}.factors", [(offset, b_bits), (mantissa, m_bits), (exponent, 12)])
    return instance(
        call,
        "hg_f32_decode",
        beats,
        LANES=lanes,
        IN_W=ends["IN_W"],
        IN_SIGNED=ends["IN_SIGNED"],
        SHIFT=shift,
        B_W=b_bits,
        M_W=m_bits,
        FOLDS=folds,
        FILE=file,
    )


def _encode(call: Call, tables: Tables) -> Meaning:
    call.only("MODE FOLDS ROUNDS")
    takes_tables(call, "low high")
    lanes, (folds, beats), sent = _float_input(call), folds_of(call), call.gives[0]
    ends = []
    for end, beyond in (("low", -np.inf), ("high", np.inf)):
        bound = tables.array(call, end, folds, lanes)
        # The largest number saturates as what is beyond it.
        ends.append((_words(np.where(bound == np.copysign(_LARGEST, beyond), np.float32(beyond), bound)), 32))
    file = tables.put(f"{call.name}.bounds", ends)
    return instance(
        call,
        "hg_f32_encode",
        beats,
        MODE=mode_of(call),
        OUT_W=sent.bits,
        OUT_SIGNED=int(sent.signed),
        LANES=lanes,
        FOLDS=folds,
        FILE=file,
    )


def _join(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("OP BEATS")
    takes_tables(call, "")
    _float_output(call)
    lanes, beats = call.gives[0].lanes, call.number("BEATS", 1)
    op = _JOINS.get(call.arguments["OP"].removeprefix("hg::f32_"))
    if op is None:
        raise broken(call.name, f"OP is {call.arguments['OP']}.")
    if any((x.bits, x.signed, x.lanes) != (32, False, lanes) for x in call.takes):
        raise broken(call.name, f"{call.function} takes {lanes} lanes of float32.")
    return instance(call, "hg_f32_join", (beats, beats), OP=op, LANES=lanes)


def _sign(call: Call, tables: Tables) -> Meaning:
    call.only("BEATS")
    takes_tables(call, "")
    lanes, sent = _float_input(call), call.gives[0]
    file = tables.put(f"{call.name}.bounds", [(np.zeros((1, lanes), np.int64), 64)])
    return instance(
        call,
        "hg_f32_encode",
        (call.number("BEATS", 1),),
        MODE=7,
        OUT_W=sent.bits,
        OUT_SIGNED=int(sent.signed),
        LANES=lanes,
        FOLDS=1,
        FILE=file,
    )


#: Name of a function -> the instance that a call of it stands for.
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
