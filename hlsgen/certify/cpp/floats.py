"""Reads processes that compute in float32 as instances."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, check_type_holds, lane_parameters, mode_of
from hlsgen.certify.cpp.facts import Fact, Parameters, Reader, Unit, constants, numbers, same_lanes, streams
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import broken
from hlsgen.numerics.fixed import Array

#: Operation -> OP of hg_f32_unit, and of hg_f32_join.
_OPERATIONS = {"add": 0, "mul": 1, "div": 2, "max": 3, "min": 4}
_JOINS = {"add": 0, "mul": 1, "sub": 5}
_LARGEST = np.finfo(np.float32).max
#: An integer times a power of two with such an exponent is neither subnormal nor infinite.
_PLAIN = range(-126, 61)


def _words(numbers: Array) -> Array:
    """The bits of float32 numbers."""
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.int64)


def _float_input(call: Call, tables: Tables) -> Parameters:
    """Check that the input is float32; its lanes."""
    del tables
    lanes, x, _ = lane_parameters(call)
    if (x.lo, x.hi) != (0, 0xFFFFFFFF):
        raise broken(call.name, f"{call.function} reads float32, not {x}.")
    return {"LANES": lanes}


def _float_output(call: Call, tables: Tables) -> Parameters:
    """Check that the output is float32."""
    del tables
    out_beats = call.outputs[0]
    if (out_beats.bits, out_beats.signed) != (32, False):
        raise broken(call.name, f"{call.function} outputs 32 bits, not {out_beats.bits}.")
    return {}


def _float_streams(call: Call, tables: Tables) -> Parameters:
    """Check that all streams are float32."""
    if any((x.bits, x.signed) != (32, False) for x in call.inputs):
        raise broken(call.name, f"{call.function} reads float32.")
    return {**same_lanes(call, tables), **_float_output(call, tables), "LANES": call.outputs[0].lanes}


def _operation(codes: Mapping[str, int]) -> Fact:
    """OP, by the name of the operation."""

    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        op = codes.get(call.arguments["OP"].removeprefix("hg::f32_"))
        if op is None:
            raise broken(call.name, f"OP is {call.arguments['OP']}.")
        return {"OP": op}

    return fact


def _mode(call: Call, tables: Tables) -> Parameters:
    del tables
    return {"MODE": mode_of(call)}


def _constants(call: Call, tables: Tables) -> Parameters:
    words = _words(tables.array(call, "constant", call.number("FOLDS", 1), call.inputs[0].lanes))
    return {"FILE": tables.put(f"{call.name}.constants", [(words, 32)])}


def _integers(call: Call, tables: Tables) -> Parameters:
    """Integers with offsets: the input of hg_f32_decode."""
    lanes, x, parameters = lane_parameters(call)
    offset, shift = tables.array(call, "offset", call.number("FOLDS", 1), lanes), call.number("SHIFT")
    if shift > 62:
        raise broken(call.name, "it shifts by more bits than its model supports.")
    sums = [(v << shift) + int(b) for v in (x.lo, x.hi) for b in (offset.min(), offset.max())]
    check_type_holds(call, "SUM", *sums, *(-s for s in sums))
    shared = {name: parameters[name] for name in ("LANES", "IN_W", "IN_SIGNED")}
    return {**shared, "SHIFT": shift, "B_W": bits_of(offset)}


def _factors(call: Call, tables: Tables, mantissa: Array, exponent: Array) -> Parameters:
    offset = tables.array(call, "offset", *mantissa.shape)
    m_bits = max(1, int(mantissa.max()).bit_length())
    fields = [(offset, bits_of(offset)), (mantissa, m_bits), (exponent, 12)]
    return {"M_W": m_bits, "FILE": tables.put(f"{call.name}.factors", fields)}


def _mantissas(call: Call, tables: Tables) -> Parameters:
    shape = call.number("FOLDS", 1), call.inputs[0].lanes
    mantissa, exponent = (tables.array(call, end, *shape) for end in ("mantissa", "exponent"))
    if mantissa.min() < 0 or int(mantissa.max()) >> call.number("M_BITS", 1) or np.abs(exponent).max() >= 1 << 11:
        raise broken(call.name, "its mantissas or exponents exceed its model.")
    return _factors(call, tables, mantissa, exponent)


def _powers(call: Call, tables: Tables) -> Parameters:
    """Scales that are powers of two, so that only the conversion rounds."""
    shape = call.number("FOLDS", 1), call.inputs[0].lanes
    parts, exponent = np.frexp(tables.array(call, "scale", *shape))
    if (parts != 0.5).any() or not np.isin(exponent - 1, _PLAIN).all():
        raise broken(call.name, "its scales are no powers of two.")
    return _factors(call, tables, np.ones(shape, np.int64), exponent.astype(np.int64) - 1)


def _bounds(call: Call, tables: Tables) -> Parameters:
    ends = []
    for end, infinity in (("low", -np.inf), ("high", np.inf)):
        bound = tables.array(call, end, call.number("FOLDS", 1), call.inputs[0].lanes)
        # The largest number saturates like infinity.
        ends.append((_words(np.where(bound == np.copysign(_LARGEST, infinity), np.float32(infinity), bound)), 32))
    return {"FILE": tables.put(f"{call.name}.bounds", ends)}


def _no_bounds(call: Call, tables: Tables) -> Parameters:
    return {"FILE": tables.put(f"{call.name}.bounds", [(np.zeros((1, call.inputs[0].lanes), np.int64), 64)])}


_CODES = streams(bits="OUT_W=m", signs="OUT_SIGNED=m")
_FOLDED = ("FOLDS ROUNDS",)

#: Name of a function -> how a call of it is read as an instance.
FLOATS: dict[str, Reader] = {
    "hg::float_key": Unit("hg_float_key", "BEATS", ("BEATS",), (_float_input, _float_output)),
    "hg::f32_unit": Unit(
        "hg_f32_unit",
        "OP FOLDS ROUNDS",
        _FOLDED,
        (_float_input, _float_output, _operation(_OPERATIONS), numbers("FOLDS"), _constants),
        "constant",
    ),
    "hg::f32_round": Unit("hg_f32_round_unit", "MODE BEATS", ("BEATS",), (_float_input, _float_output, _mode)),
    "hg::f32_convert": Unit(
        "hg_f32_decode",
        "SUM SHIFT FOLDS ROUNDS",
        _FOLDED,
        (_float_output, numbers("FOLDS"), _integers, _powers),
        "offset scale",
    ),
    "hg::f32_decode": Unit(
        "hg_f32_decode",
        "SUM SHIFT M_BITS FOLDS ROUNDS",
        _FOLDED,
        (_float_output, numbers("FOLDS"), _integers, _mantissas),
        "offset mantissa exponent",
    ),
    "hg::f32_join": Unit("hg_f32_join", "OP BEATS", ("BEATS", "BEATS"), (_float_streams, _operation(_JOINS))),
    "hg::f32_encode": Unit(
        "hg_f32_encode",
        "MODE FOLDS ROUNDS",
        _FOLDED,
        (_float_input, _mode, _CODES, numbers("FOLDS"), _bounds),
        "low high",
    ),
    "hg::f32_sign": Unit(
        "hg_f32_encode", "BEATS", ("BEATS",), (_float_input, _CODES, constants(MODE=7, FOLDS=1), _no_bounds)
    ),
}
