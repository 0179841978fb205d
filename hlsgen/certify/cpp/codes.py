"""Reads processes that give each element a code as instances of the modules with the same contract.

The head of each header defines its function. A module of the Verilog library computes the same, and the
checker has a model of it. The arrays are combined into that module's memories. The types of C++ are proven to be wide
enough, for every number in the bits of the input.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import ParameterValue, broken
from hlsgen.numerics.fixed import Array, IntType

#: Roundings of rounding.hpp; the index is the MODE of a module.
_MODES = ("half_even", "up", "down", "away", "to_zero", "half_away", "half_to_zero")
#: Roundings of ap_fixed -> MODE of a module.
_FIXED_MODES = {"AP_RND_CONV": 0, "AP_TRN": 2, "AP_TRN_ZERO": 4, "AP_RND_INF": 5, "AP_RND_ZERO": 6}
#: Larger types are rejected.
_MAX_BITS = 62


def lane_parameters(call: Call) -> tuple[int, IntType, dict[str, ParameterValue]]:
    """Lanes, the range of numbers in the bits of an input element, and the parameters that every module has."""
    in_beats, out_beats = call.inputs[0], call.outputs[0]
    if len(call.inputs) != 1 or len(call.outputs) != 1 or in_beats.lanes != out_beats.lanes:
        raise broken(
            call.name, f"{call.function} has {in_beats.lanes} lanes at its input, {out_beats.lanes} at its output."
        )
    low, high = (
        (-(1 << (in_beats.bits - 1)), (1 << (in_beats.bits - 1)) - 1)
        if in_beats.signed
        else (0, (1 << in_beats.bits) - 1)
    )
    parameters: dict[str, ParameterValue] = {
        "LANES": in_beats.lanes,
        "IN_W": in_beats.bits,
        "IN_SIGNED": int(in_beats.signed),
        "OUT_W": out_beats.bits,
    }
    return in_beats.lanes, IntType(low, high), parameters


def folds_of(call: Call) -> tuple[int, tuple[int, ...]]:
    """FOLDS, and the beats of a frame."""
    folds = call.number("FOLDS", 1)
    return folds, (folds * call.number("ROUNDS", 1),)


def check_tables(call: Call, suffixes: str) -> None:
    """Check that the process has exactly these tables, in this order. Raises HG055."""
    if call.tables != tuple(f"{call.name}_{end}" for end in suffixes.split()):
        raise broken(call.name, f"{call.function} has the tables {call.tables}, not {suffixes}.")


def check_type_holds(call: Call, name: str, *values: int) -> None:
    """Check that the argument is an ap_int that holds all these numbers. Raises HG055."""
    match = re.fullmatch(r"ap_int<(\d{1,2})>", call.arguments.get(name, ""))
    bits = int(match[1]) if match else 0
    if not 1 <= bits <= _MAX_BITS or min(values) < -(1 << (bits - 1)) or max(values) >= 1 << (bits - 1):
        raise broken(call.name, f"{name} is {call.arguments.get(name)}, for numbers of {min(values)}..{max(values)}.")


def mode_of(call: Call) -> int:
    text = call.arguments.get("MODE", "").removeprefix("hg::round_")
    if text not in _MODES:
        raise broken(call.name, f"MODE is {call.arguments.get('MODE')}.")
    return _MODES.index(text)


def bounds_of(call: Call) -> dict[str, ParameterValue]:
    bits, minimum = call.outputs[0].bits, -(1 << 62)
    low, high = call.number("LOW", minimum), call.number("HIGH", minimum)
    if not -(1 << bits) <= low <= high < 1 << bits:
        raise broken(call.name, f"its bounds {low}..{high} do not fit its code.")
    return {"LOW": sized(bits + 1, low), "HIGH": sized(bits + 1, high)}


def bits_of(*values: Array) -> int:
    """Bits of the smallest two's complement type that holds all these numbers."""
    return IntType(min(-1, *(int(v.min()) for v in values)), max(0, *(int(v.max()) for v in values))).bits


def _sums(call: Call, x: IntType, factor: Array, *addends: Array) -> list[int]:
    """Extreme values of x * factor + addend."""
    del call
    return [
        a * f + b
        for a in (x.lo, x.hi)
        for f in (int(factor.min()), int(factor.max()))
        for b in (int(extreme(addend)) for addend in addends for extreme in (np.min, np.max))
    ]


def _thresholds(call: Call, tables: Tables) -> Meaning:
    """hg::thresholds and hg::compare: the code counts comparisons, in a sequence or all at once."""
    call.only("STEPS FOLDS ROUNDS BASE")
    lanes, x, parameters = lane_parameters(call)
    folds, beats = folds_of(call)
    falls = len(call.tables) == 2
    check_tables(call, "thresholds falling" if falls else "thresholds")
    steps = call.number("STEPS", 1)
    thresholds = tables.array(call, "thresholds", folds, lanes, steps)
    falling = tables.array(call, "falling", folds, lanes) if falls else np.zeros((folds, lanes), np.int64)
    order = np.diff(thresholds, axis=2) * np.where(falling == 1, -1, 1)[:, :, None]
    if (order < 0).any() or not np.isin(falling, (0, 1)).all():
        raise broken(call.name, "its thresholds are not in the order of the codes.")
    if not x.signed:
        thresholds = np.maximum(thresholds, 0)  # every x reaches these
    width = max(x.bits, bits_of(thresholds))
    fields = thresholds.reshape(folds, -1), np.repeat(falling, steps, axis=1)
    file = tables.put(f"{call.name}.steps", [(fields[0], width), (fields[1], 1)])
    return instance(
        call,
        "hg_compare",
        beats,
        **parameters,
        FOLDS=folds,
        STEPS=steps,
        T_W=width,
        OFFSET=sized(call.outputs[0].bits, call.number("BASE", -(1 << 40))),
        FALLING=1,
        FILE=file,
    )


def _shift(call: Call, tables: Tables) -> Meaning:
    call.only("SUM MODE LEFT SHIFT LOW HIGH FOLDS ROUNDS")
    lanes, x, parameters = lane_parameters(call)
    folds, beats = folds_of(call)
    check_tables(call, "offset")
    offset = tables.array(call, "offset", folds, lanes)
    left_shift, shift = call.number("LEFT"), call.number("SHIFT")
    if max(left_shift, shift) > _MAX_BITS:
        raise broken(call.name, "it shifts by more bits than its model supports.")
    sums = _sums(call, IntType(x.lo << left_shift, x.hi << left_shift), np.array([1]), offset)
    room = 1 << shift
    check_type_holds(
        call,
        "SUM",
        *sums,
        max(sums) + room,
        -room,
        room,
        call.number("LOW", -(1 << 62)),
        call.number("HIGH", -(1 << 62)),
    )
    return instance(
        call,
        "hg_shift",
        beats,
        **parameters,
        **_offsets(call, tables, offset),
        LEFT=left_shift,
        SHIFT=shift,
        MODE=mode_of(call),
        **bounds_of(call),
    )


def _lane_shift(call: Call, tables: Tables) -> Meaning:
    call.only("SUM BEATS")
    lanes, x, parameters = lane_parameters(call)
    check_tables(call, "form offset bound")
    form, offset, bound = (
        tables.array(call, *shape) for shape in (("form", lanes, 3), ("offset", lanes), ("bound", lanes, 2))
    )
    left_shift, shift, mode = form.T
    if int(form.min()) < 0 or int(form.max()) > _MAX_BITS or int(mode.max()) > 6:
        raise broken(call.name, "it shifts or rounds in a way that its model does not support.")
    ends = [
        int(x_end) * (1 << int(s)) + int(b) for x_end in (x.lo, x.hi) for s, b in zip(left_shift, offset, strict=True)
    ]
    room = 1 << int(shift.max())
    check_type_holds(call, "SUM", *ends, max(ends) + room, -room, room, int(bound.min()), int(bound.max()))
    bits = int(call.arguments["SUM"][len("ap_int<") : -1])
    code_bits = call.outputs[0].bits + 1
    if int(bound.min()) < -(1 << (code_bits - 1)) or int(bound.max()) >= 1 << (code_bits - 1):
        raise broken(call.name, "its bounds do not fit its code.")
    return instance(
        call,
        "hg_lane_shift",
        (call.number("BEATS", 1),),
        **parameters,
        SUM_W=bits,
        WIDTHS=_packed(np.full(lanes, bits), 8),
        LEFTS=_packed(left_shift, 8),
        SHIFTS=_packed(shift, 8),
        MODES=_packed(mode, 8),
        FLAGS=_packed(np.full(lanes, 6), 8),
        OFFSETS=_packed(offset, bits + 1),
        LOWS=_packed(bound[:, 0], code_bits),
        HIGHS=_packed(bound[:, 1], code_bits),
        ADD=0,
    )


def _packed(values: Array, bits: int) -> ParameterValue:
    """A constant with a number of each lane, the first in the low bits."""
    return sized(bits * len(values), sum((int(v) & ((1 << bits) - 1)) << (bits * n) for n, v in enumerate(values)))


def _offsets(call: Call, tables: Tables, offset: Array) -> dict[str, ParameterValue]:
    width = bits_of(offset)
    return {
        "FOLDS": len(offset),
        "B_W": width,
        "FILE": tables.put(f"{call.name}.offsets", [(offset, width)]),
        "ADD": 1,
        "SPLIT": 0,
    }


_SUM = re.compile(r"ap_fixed<(\d{1,2}),(-?\d{1,3})>")
_RESULT = re.compile(r"ap_(u?)fixed<(\d{1,2}),(-?\d{1,3}),(AP_\w+),(AP_SAT|AP_SAT_SYM)>")


def _quantize(call: Call, tables: Tables) -> Meaning:
    """An assignment of ap_fixed numbers: hg_shift with the same rounding and the bounds of the type."""
    no_offset = not call.tables
    call.only("SUM RESULT BEATS" if no_offset else "SUM RESULT FOLDS ROUNDS")
    lanes, x, parameters = lane_parameters(call)
    check_tables(call, "" if no_offset else "offset")
    folds, beats = (1, (call.number("BEATS", 1),)) if no_offset else folds_of(call)
    offset = np.zeros((1, lanes), np.int64) if no_offset else tables.array(call, "offset", folds, lanes)
    sum_type, result_type = _SUM.fullmatch(call.arguments["SUM"]), _RESULT.fullmatch(call.arguments["RESULT"])
    if sum_type is None or result_type is None or result_type[4] not in _FIXED_MODES:
        raise broken(call.name, f"assigns {call.arguments['SUM']} to {call.arguments['RESULT']}.")
    out_beats, bits = call.outputs[0], int(result_type[2])
    shift = int(sum_type[1]) - int(sum_type[2]) - (bits - int(result_type[3]))
    signed = not result_type[1]
    if (bits, signed) != (out_beats.bits, out_beats.signed) or shift < 0 or (not signed and result_type[5] != "AP_SAT"):
        raise broken(
            call.name,
            f"{call.arguments['RESULT']} is not the type of its output, or has more fraction bits than the sum.",
        )
    sums = _sums(call, x, np.array([1]), offset)
    sum_bits = int(sum_type[1])
    if not 1 <= sum_bits <= _MAX_BITS or min(sums) < -(1 << (sum_bits - 1)) or max(sums) >= 1 << (sum_bits - 1):
        raise broken(call.name, f"{call.arguments['SUM']} does not hold {min(sums)}..{max(sums)}.")
    high = (1 << (bits - signed)) - 1
    low = 0 if not signed else -high if result_type[5] == "AP_SAT_SYM" else -high - 1
    return instance(
        call,
        "hg_shift",
        beats,
        **parameters,
        **_offsets(call, tables, offset),
        LEFT=0,
        SHIFT=shift,
        MODE=_FIXED_MODES[result_type[4]],
        LOW=sized(bits + 1, low),
        HIGH=sized(bits + 1, high),
    )


def _scale(more_arrays: str) -> Callable[[Call, Tables], Meaning]:
    """The functions of scale.hpp, by their arrays after multiplier and addend."""

    def read(call: Call, tables: Tables) -> Meaning:
        call.only("SUM SHIFT LOW HIGH FOLDS ROUNDS")
        lanes, x, parameters = lane_parameters(call)
        folds, beats = folds_of(call)
        check_tables(call, f"multiplier addend {more_arrays}")
        arrays = {end: tables.array(call, end, folds, lanes) for end in ("multiplier", "addend", *more_arrays.split())}
        shift, mirrored = call.number("SHIFT"), call.function == "hg::scale_mirrored"
        if shift > _MAX_BITS:
            raise broken(call.name, "it shifts by more bits than its model supports.")
        sums = _sums(call, x, arrays["multiplier"], arrays["addend"], arrays.get("below", arrays["addend"]))
        if mirrored:
            sums += _sums(call, x, -arrays["multiplier"], arrays["addend"])
        room = 1 << shift
        bounds = call.number("LOW", -(1 << 62)), call.number("HIGH", -(1 << 62))
        signed_sums = [*sums, *(-s for s in sums)]
        check_type_holds(call, "SUM", *(s + d for s in signed_sums for d in (-room, room)), *bounds)
        if not np.isin(arrays.get("odd", 0), (0, 1)).all():
            raise broken(call.name, "a tie goes to the odd code or to the even one: 1 or 0.")
        m_bits, r_bits = (
            bits_of(arrays["multiplier"]),
            bits_of(*(arrays[e] for e in ("addend", "below") if e in arrays)),
        )
        if mirrored and ((arrays["addend"] < 0) | (arrays["addend"] >= room)).any():
            raise broken(call.name, "the addend of a mirrored function is less than a unit.")
        fields = [(arrays["multiplier"], m_bits), (arrays["addend"], r_bits)]
        mode, symmetric = 0, 1 if mirrored else 0
        if "odd" in arrays:
            mode, fields = 3, [*fields, (arrays["odd"], 1)]
        if "below" in arrays:
            if bits_of(arrays["centre"]) > x.bits + 1:
                raise broken(call.name, "its centre is no input.")
            symmetric, fields = 2, [*fields, (arrays["below"], r_bits), (arrays["centre"], x.bits + 1)]
        file = tables.put(f"{call.name}.factors", fields)
        return instance(
            call,
            "hg_scale",
            beats,
            **parameters,
            FOLDS=folds,
            M_W=m_bits,
            R_W=r_bits,
            R_LSB=0,
            SHIFT=shift,
            MODE=mode,
            SYMMETRIC=symmetric,
            STYLE=0,
            STAGES=1,
            CONSTANTS=sized(1, 0),
            **bounds_of(call),
            FILE=file,
        )

    return read


def _scale_f32(call: Call, tables: Tables) -> Meaning:
    call.only("SUM CODE U_BITS M_BITS MOST_LEFT SHIFT LOW HIGH FOLDS ROUNDS")
    lanes, x, parameters = lane_parameters(call)
    folds, beats = folds_of(call)
    names = ("mantissa", "left", "offset", "zero_point")
    check_tables(call, " ".join(names))
    mantissa, left_shift, offset, zero = (tables.array(call, end, folds, lanes) for end in names)
    bits, m_bits, max_left, shift = (call.number(n) for n in ("U_BITS", "M_BITS", "MOST_LEFT", "SHIFT"))
    if not 1 <= min(bits, m_bits) <= max(bits, m_bits) <= _MAX_BITS:
        raise broken(call.name, f"U_BITS and M_BITS are {bits} and {m_bits}, 1 to {_MAX_BITS} in its model.")
    if (
        min(mantissa.min(), left_shift.min()) < 0
        or int(mantissa.max()) >> m_bits
        or left_shift.max() > max_left
        or max(max_left, shift) > 60
    ):
        raise broken(call.name, "its mantissas or shifts exceed M_BITS or MOST_LEFT.")
    sums = _sums(call, x, np.array([1]), offset)
    check_type_holds(call, "SUM", *sums, *(-s for s in sums))
    max_code = 1 << max(1, bits + 1 + m_bits - shift)
    check_type_holds(call, "CODE", *(int(z) + d for z in (zero.min(), zero.max(), 0) for d in (-max_code, max_code)))
    widths = bits_of(offset), bits_of(zero)
    fields = [(mantissa, m_bits), (offset, widths[0]), (left_shift, max_left.bit_length()), (zero, widths[1])]
    return instance(
        call,
        "hg_scale_f32",
        beats,
        **parameters,
        FOLDS=folds,
        OFFSET_W=widths[0],
        LEFT=max_left,
        U_W=bits,
        M_W=m_bits,
        SHIFT=shift,
        Z_W=widths[1],
        STYLE=0,
        STAGES=1,
        CONSTANTS=sized(lanes * m_bits, 0),
        **bounds_of(call),
        FILE=tables.put(f"{call.name}.factors", [f for f in fields if f[1]]),
    )


#: Name of a function -> how a call of it is read as an instance.
CODES: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::thresholds": _thresholds,
    "hg::compare": _thresholds,
    "hg::shift": _shift,
    "hg::lane_shift": _lane_shift,
    "hg::quantize": _quantize,
    "hg::scale": _scale(""),
    "hg::scale_nearest": _scale("odd"),
    "hg::scale_sides": _scale("centre below"),
    "hg::scale_mirrored": _scale(""),
    "hg::scale_f32": _scale_f32,
}
