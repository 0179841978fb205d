"""Processes that give each element a code, said as instances of the modules whose contract is the same.

The head of each header says what its function computes. It is what a module of the Verilog library computes, of which
the checker has a model; the arrays are put together to that module's memories. What the types of C++ might cut is held
to be wide enough, for every number in the bits of the input.
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

#: Roundings of rounding.hpp, by the numbers that they have in modules.
_MODES = ("half_even", "up", "down", "away", "to_zero", "half_away", "half_to_zero")
#: Those of ap_fixed.
_FIXED_MODES = {"AP_RND_CONV": 0, "AP_TRN": 2, "AP_TRN_ZERO": 4, "AP_RND_INF": 5, "AP_RND_ZERO": 6}
#: Larger types are not computed with.
_MOST_BITS = 62


def ends_of(call: Call) -> tuple[int, IntType, dict[str, ParameterValue]]:
    """Lanes, all numbers in the bits of an input element, and the parameters that every module has."""
    taken, sent = call.takes[0], call.gives[0]
    if len(call.takes) != 1 or len(call.gives) != 1 or taken.lanes != sent.lanes:
        raise broken(call.name, f"{call.function} has {taken.lanes} lanes on one side, {sent.lanes} on the other.")
    low, high = (-(1 << (taken.bits - 1)), (1 << (taken.bits - 1)) - 1) if taken.signed else (0, (1 << taken.bits) - 1)
    ends: dict[str, ParameterValue] = {
        "LANES": taken.lanes,
        "IN_W": taken.bits,
        "IN_SIGNED": int(taken.signed),
        "OUT_W": sent.bits,
    }
    return taken.lanes, IntType(low, high), ends


def folds_of(call: Call) -> tuple[int, tuple[int, ...]]:
    """FOLDS, and the beats of a frame."""
    folds = call.number("FOLDS", 1)
    return folds, (folds * call.number("ROUNDS", 1),)


def takes_tables(call: Call, ends: str) -> None:
    """The process takes exactly these tables, in this order. Raises HG055."""
    if call.tables != tuple(f"{call.name}_{end}" for end in ends.split()):
        raise broken(call.name, f"{call.function} takes the tables {call.tables}, not {ends}.")


def holds(call: Call, name: str, *values: int) -> None:
    """The argument is an ap_int that holds all these numbers. Raises HG055."""
    match = re.fullmatch(r"ap_int<(\d{1,2})>", call.arguments.get(name, ""))
    bits = int(match[1]) if match else 0
    if not 1 <= bits <= _MOST_BITS or min(values) < -(1 << (bits - 1)) or max(values) >= 1 << (bits - 1):
        raise broken(call.name, f"{name} is {call.arguments.get(name)}, for numbers of {min(values)}..{max(values)}.")


def mode_of(call: Call) -> int:
    text = call.arguments.get("MODE", "").removeprefix("hg::round_")
    if text not in _MODES:
        raise broken(call.name, f"MODE is {call.arguments.get('MODE')}.")
    return _MODES.index(text)


def bounds_of(call: Call) -> dict[str, ParameterValue]:
    bits, least = call.gives[0].bits, -(1 << 62)
    low, high = call.number("LOW", least), call.number("HIGH", least)
    if not -(1 << bits) <= low <= high < 1 << bits:
        raise broken(call.name, f"its bounds {low}..{high} are more than its code has.")
    return {"LOW": sized(bits + 1, low), "HIGH": sized(bits + 1, high)}


def bits_of(*values: Array) -> int:
    """Bits of the two's complement that holds all these."""
    return IntType(min(-1, *(int(v.min()) for v in values)), max(0, *(int(v.max()) for v in values))).bits


def _sums(call: Call, x: IntType, factor: Array, *addends: Array) -> list[int]:
    """The least and greatest x * factor + addend."""
    del call
    return [
        a * f + b
        for a in (x.lo, x.hi)
        for f in (int(factor.min()), int(factor.max()))
        for b in (int(side(addend)) for addend in addends for side in (np.min, np.max))
    ]


def _steps(call: Call, tables: Tables) -> Meaning:
    """thresholds and compare: the code counts comparisons, one after the other or all at once."""
    call.only("STEPS FOLDS ROUNDS BASE")
    lanes, x, ends = ends_of(call)
    folds, beats = folds_of(call)
    falls = len(call.tables) == 2
    takes_tables(call, "thresholds falling" if falls else "thresholds")
    steps = call.number("STEPS", 1)
    table = tables.array(call, "thresholds", folds, lanes, steps)
    falling = tables.array(call, "falling", folds, lanes) if falls else np.zeros((folds, lanes), np.int64)
    order = np.diff(table, axis=2) * np.where(falling == 1, -1, 1)[:, :, None]
    if (order < 0).any() or not np.isin(falling, (0, 1)).all():
        raise broken(call.name, "its thresholds are not in the order of the codes.")
    if not x.signed:
        table = np.maximum(table, 0)  # every x reaches these
    width = max(x.bits, bits_of(table))
    fields = table.reshape(folds, -1), np.repeat(falling, steps, axis=1)
    file = tables.put(f"{call.name}.steps", [(fields[0], width), (fields[1], 1)])
    return instance(
        call,
        "hg_compare",
        beats,
        **ends,
        FOLDS=folds,
        STEPS=steps,
        T_W=width,
        OFFSET=sized(call.gives[0].bits, call.number("BASE", -(1 << 40))),
        FALLING=1,
        FILE=file,
    )


def _shift(call: Call, tables: Tables) -> Meaning:
    call.only("SUM MODE LEFT SHIFT LOW HIGH FOLDS ROUNDS")
    lanes, x, ends = ends_of(call)
    folds, beats = folds_of(call)
    takes_tables(call, "offset")
    offset = tables.array(call, "offset", folds, lanes)
    left, shift = call.number("LEFT"), call.number("SHIFT")
    if max(left, shift) > _MOST_BITS:
        raise broken(call.name, "it shifts more bits than its model.")
    sums = _sums(call, IntType(x.lo << left, x.hi << left), np.array([1]), offset)
    room = 1 << shift
    holds(
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
        **ends,
        **_offsets(call, tables, offset),
        LEFT=left,
        SHIFT=shift,
        MODE=mode_of(call),
        **bounds_of(call),
    )


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
    plain = not call.tables
    call.only("SUM RESULT BEATS" if plain else "SUM RESULT FOLDS ROUNDS")
    lanes, x, ends = ends_of(call)
    takes_tables(call, "" if plain else "offset")
    folds, beats = (1, (call.number("BEATS", 1),)) if plain else folds_of(call)
    offset = np.zeros((1, lanes), np.int64) if plain else tables.array(call, "offset", folds, lanes)
    of_sum, result = _SUM.fullmatch(call.arguments["SUM"]), _RESULT.fullmatch(call.arguments["RESULT"])
    if of_sum is None or result is None or result[4] not in _FIXED_MODES:
        raise broken(call.name, f"assigns {call.arguments['SUM']} to {call.arguments['RESULT']}.")
    sent, bits = call.gives[0], int(result[2])
    shift = int(of_sum[1]) - int(of_sum[2]) - (bits - int(result[3]))
    signed = not result[1]
    if (bits, signed) != (sent.bits, sent.signed) or shift < 0 or (not signed and result[5] != "AP_SAT"):
        raise broken(call.name, f"{call.arguments['RESULT']} is not what it sends, or has more bits behind the point.")
    sums = _sums(call, x, np.array([1]), offset)
    wide = int(of_sum[1])
    if not 1 <= wide <= _MOST_BITS or min(sums) < -(1 << (wide - 1)) or max(sums) >= 1 << (wide - 1):
        raise broken(call.name, f"{call.arguments['SUM']} does not hold {min(sums)}..{max(sums)}.")
    high = (1 << (bits - signed)) - 1
    low = 0 if not signed else -high if result[5] == "AP_SAT_SYM" else -high - 1
    return instance(
        call,
        "hg_shift",
        beats,
        **ends,
        **_offsets(call, tables, offset),
        LEFT=0,
        SHIFT=shift,
        MODE=_FIXED_MODES[result[4]],
        LOW=sized(bits + 1, low),
        HIGH=sized(bits + 1, high),
    )


def _scale(ends_: str) -> Callable[[Call, Tables], Meaning]:
    """The functions of scale.hpp, by what they take behind multiplier and addend."""

    def made(call: Call, tables: Tables) -> Meaning:
        call.only("SUM SHIFT LOW HIGH FOLDS ROUNDS")
        lanes, x, ends = ends_of(call)
        folds, beats = folds_of(call)
        takes_tables(call, f"multiplier addend {ends_}")
        own = {end: tables.array(call, end, folds, lanes) for end in ("multiplier", "addend", *ends_.split())}
        shift, mirrored = call.number("SHIFT"), call.function == "hg::scale_mirrored"
        if shift > _MOST_BITS:
            raise broken(call.name, "it shifts more bits than its model.")
        sums = _sums(call, x, own["multiplier"], own["addend"], own.get("below", own["addend"]))
        if mirrored:
            sums += _sums(call, x, -own["multiplier"], own["addend"])
        room = 1 << shift
        bounds = call.number("LOW", -(1 << 62)), call.number("HIGH", -(1 << 62))
        both = [*sums, *(-s for s in sums)]
        holds(call, "SUM", *(s + d for s in both for d in (-room, room)), *bounds)
        if not np.isin(own.get("odd", 0), (0, 1)).all():
            raise broken(call.name, "a tie goes to the odd code or to the even one: 1 or 0.")
        m_bits, r_bits = bits_of(own["multiplier"]), bits_of(*(own[e] for e in ("addend", "below") if e in own))
        if mirrored and ((own["addend"] < 0) | (own["addend"] >= room)).any():
            raise broken(call.name, "the addend of a mirrored function is less than a unit.")
        fields = [(own["multiplier"], m_bits), (own["addend"], r_bits)]
        mode, symmetric = 0, 1 if mirrored else 0
        if "odd" in own:
            mode, fields = 3, [*fields, (own["odd"], 1)]
        if "below" in own:
            if bits_of(own["centre"]) > x.bits + 1:
                raise broken(call.name, "its centre is no input.")
            symmetric, fields = 2, [*fields, (own["below"], r_bits), (own["centre"], x.bits + 1)]
        file = tables.put(f"{call.name}.factors", fields)
        return instance(
            call,
            "hg_scale",
            beats,
            **ends,
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

    return made


def _scale_f32(call: Call, tables: Tables) -> Meaning:
    call.only("SUM CODE U_BITS M_BITS MOST_LEFT SHIFT LOW HIGH FOLDS ROUNDS")
    lanes, x, ends = ends_of(call)
    folds, beats = folds_of(call)
    names = ("mantissa", "left", "offset", "zero_point")
    takes_tables(call, " ".join(names))
    mantissa, left, offset, zero = (tables.array(call, end, folds, lanes) for end in names)
    bits, m_bits, most, shift = (call.number(n) for n in ("U_BITS", "M_BITS", "MOST_LEFT", "SHIFT"))
    if not 1 <= min(bits, m_bits) <= max(bits, m_bits) <= _MOST_BITS:
        raise broken(call.name, f"U_BITS and M_BITS are {bits} and {m_bits}, 1 to {_MOST_BITS} in its model.")
    if (
        min(mantissa.min(), left.min()) < 0
        or int(mantissa.max()) >> m_bits
        or left.max() > most
        or max(most, shift) > 60
    ):
        raise broken(call.name, "its mantissas or shifts are more than M_BITS and MOST_LEFT.")
    sums = _sums(call, x, np.array([1]), offset)
    holds(call, "SUM", *sums, *(-s for s in sums))
    whole = 1 << max(1, bits + 1 + m_bits - shift)
    holds(call, "CODE", *(int(z) + d for z in (zero.min(), zero.max(), 0) for d in (-whole, whole)))
    widths = bits_of(offset), bits_of(zero)
    fields = [(mantissa, m_bits), (offset, widths[0]), (left, most.bit_length()), (zero, widths[1])]
    return instance(
        call,
        "hg_scale_f32",
        beats,
        **ends,
        FOLDS=folds,
        OFFSET_W=widths[0],
        LEFT=most,
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


#: Name of a function -> the instance that a call of it stands for.
CODES: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::thresholds": _steps,
    "hg::compare": _steps,
    "hg::shift": _shift,
    "hg::quantize": _quantize,
    "hg::scale": _scale(""),
    "hg::scale_nearest": _scale("odd"),
    "hg::scale_sides": _scale("centre below"),
    "hg::scale_mirrored": _scale(""),
    "hg::scale_f32": _scale_f32,
}
