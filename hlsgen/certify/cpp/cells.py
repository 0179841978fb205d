"""Reads processes that multiply, pool or move elements as instances of the modules with the same contract."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from hlsgen.certify.cpp.codes import CODES, check_tables
from hlsgen.certify.cpp.floats import FLOATS
from hlsgen.certify.cpp.lookups import LOOKUPS
from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.rows import ROWS
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.cpp.tokens import Beats
from hlsgen.certify.netlist_reader import ParameterValue, SizedConstant, broken

_GEOMETRY = ("HEIGHT", "WIDTH", "KH", "KW", "SH", "SW", "DH", "DW", "PT", "PL", "OUT_H", "OUT_W")


def meaning_of(call: Call, tables: Tables) -> Meaning:
    """The instance that a call means. Raises HG055 if the function or its arguments are unknown."""
    read = KNOWN.get(call.function)
    if read is None:
        raise broken(call.name, f"calls {call.function}, which has no model.")
    return read(call, tables)


# --------------------------------------------------------------------------- weights


def _weight_parameters(call: Call, tables: Tables, *shape: int) -> dict[str, ParameterValue]:
    """Parameters of a unit with weights of this shape."""
    check_tables(call, "weights")
    tables.array(call, "weights", *shape)
    weights, text = tables.constants[call.tables[0]], call.arguments["PRODUCT"]
    if text in ("hg::bipolar", "hg::agreements"):
        mode, bits, signed = 1 if text == "hg::bipolar" else 2, 1, False
    elif text == "hg::multiply":
        mode, bits, signed = 0, weights.bits, True
    else:
        raise broken(call.name, f"its product is {text}.")
    if (weights.bits, weights.signed) != (bits, signed):
        raise broken(call.name, f"{weights.name} has weights of {weights.bits} bits, {text} others.")
    in_beats, out_beats = call.inputs[0], call.outputs[0]
    return {
        "X_W": in_beats.bits,
        "X_SIGNED": int(in_beats.signed),
        "W_W": bits,
        "MODE": mode,
        "ACC_W": out_beats.bits,
        "FILE": call.tables[0],
    }


def _check_lanes(call: Call, in_lanes: int, out_lanes: int) -> None:
    if (call.inputs[0].lanes, call.outputs[0].lanes) != (in_lanes, out_lanes):
        raise broken(
            call.name,
            f"its beats have {call.inputs[0].lanes} and {call.outputs[0].lanes} lanes, not {in_lanes}, {out_lanes}.",
        )


def _mvu(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT PE SIMD ROW_FOLDS COL_FOLDS VECTORS")
    pe, simd, rows, columns = (call.number(n, 1) for n in ("PE", "SIMD", "ROW_FOLDS", "COL_FOLDS"))
    _check_lanes(call, simd, pe)
    weights = _weight_parameters(call, tables, rows * columns, pe, simd)
    beats = (call.number("VECTORS", 1) * columns,)
    return instance(call, "hg_mvu", beats, SIMD=simd, PE=pe, COL_FOLDS=columns, ROW_FOLDS=rows, EVERY=1, **weights)


def _dynamic_mvu(call: Call, tables: Tables) -> Meaning:
    del tables
    names = ("FA", "OA", "FB", "OB")
    call.only(f"FACTOR PE SIMD FOLDS ROWS_FIRST {' '.join(names)} SUMS")
    check_tables(call, "")
    pe, simd, folds = (call.number(n, 1) for n in ("PE", "SIMD", "FOLDS"))
    rows_first = {"true": 1, "false": 0}.get(call.arguments["ROWS_FIRST"])
    (a, b), out_beats = call.inputs, call.outputs[0]
    factors = {name: call.number(name, -(1 << 40)) for name in names}
    match = re.fullmatch(r"ap_int<(\d{1,2})>", call.arguments["FACTOR"])
    bits = int(match[1]) if match else 1
    if any(not -(1 << (bits - 1)) <= v < 1 << (bits - 1) for v in factors.values()):
        raise broken(call.name, f"FACTOR is {call.arguments['FACTOR']}, for {factors}.")
    shifts = [factors[name].bit_length() - 1 for name in ("FA", "FB")]
    if rows_first is None or [1 << max(s, 0) for s in shifts] != [factors["FA"], factors["FB"]]:
        raise broken(call.name, f"its factors are {factors}, or ROWS_FIRST is no truth value.")
    if (a.lanes, b.lanes, out_beats.lanes) != (simd, pe * simd, pe):
        raise broken(call.name, f"its streams have {a.lanes}, {b.lanes} and {out_beats.lanes} lanes.")
    beats = call.number("SUMS", 1) * folds
    # Integers in C++ are as wide as their values.
    return instance(
        call,
        "hg_dynmvu",
        (beats, beats),
        SIMD=simd,
        PE=pe,
        FOLDS=folds,
        ROWS_FIRST=rows_first,
        A_W=a.bits,
        B_W=b.bits,
        A_SHIFT=shifts[0],
        A_OFFSET=factors["OA"],
        X_W=64,
        X_SIGNED=1,
        B_SHIFT=shifts[1],
        B_OFFSET=factors["OB"],
        W_W=64,
        ACC_W=out_beats.bits,
        EVERY=1,
        **_signs(call),
    )


def _mvu_windows(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT WINDOWS TAPS PE SIMD BEATS")
    windows, taps, pe, simd = (call.number(n, 1) for n in ("WINDOWS", "TAPS", "PE", "SIMD"))
    _check_lanes(call, windows * simd, windows * pe)
    weights = _weight_parameters(call, tables, 1, pe, simd)
    window_parameters: dict[str, ParameterValue] = {"WINDOWS": windows, "TAPS": taps} if windows > 1 else {}
    beats = (call.number("BEATS", 1),)
    return instance(
        call, "hg_mvu", beats, SIMD=simd, PE=pe, COL_FOLDS=1, ROW_FOLDS=1, EVERY=1, **weights, **window_parameters
    )


def _grouped(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT TAPS ROWS COLUMNS FOLDS WINDOWS")
    taps, rows, columns, folds = (call.number(n, 1) for n in ("TAPS", "ROWS", "COLUMNS", "FOLDS"))
    pe = call.outputs[0].lanes
    if pe % rows:
        raise broken(call.name, f"{pe} sums cannot be divided into groups of {rows}.")
    _check_lanes(call, pe // rows * taps * columns, pe)
    weights = _weight_parameters(call, tables, folds, pe, taps * columns)
    group_parameters: dict[str, ParameterValue] = {n: v for n, v in (("ROWS", rows), ("COLUMNS", columns)) if v > 1}
    beats = (call.number("WINDOWS", 1) * folds,)
    return instance(call, "hg_dwmvu", beats, PE=pe, TAPS=taps, FOLDS=folds, EVERY=1, **weights, **group_parameters)


# --------------------------------------------------------------------------- windows


def _window(call: Call) -> dict[str, int]:
    pattern = ",".join(rf"(\d{{1,9}})/\*{name}\*/" for name in _GEOMETRY)
    match = re.fullmatch(rf"hg::window<{pattern}>", call.arguments["WINDOW"])
    if match is None:
        raise broken(call.name, f"its window is {call.arguments['WINDOW']}.")
    return dict(zip(_GEOMETRY, map(int, match.groups()), strict=True))


def _pad(call: Call) -> SizedConstant:
    """The code of the border of an image, in the bits of an input element."""
    in_beats, pad = call.inputs[0], call.number("PAD", -(1 << 62))
    if not -(1 << (in_beats.bits - 1)) * in_beats.signed <= pad < 1 << (in_beats.bits - in_beats.signed):
        raise broken(call.name, f"PAD is {pad}, no code of its input.")
    return sized(in_beats.bits, pad)


def _conv(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT WINDOW GROUPS FOLDS REPEAT DEPTH PAD")
    window = _window(call)
    groups, folds, repeat, depth = (call.number(n, 1) for n in ("GROUPS", "FOLDS", "REPEAT", "DEPTH"))
    simd, pe = call.inputs[0].lanes, call.outputs[0].lanes
    weights = _weight_parameters(call, tables, groups * repeat * window["KH"] * window["KW"] * folds, pe, simd)
    beats = (window["HEIGHT"] * window["WIDTH"] * groups * folds,)
    return instance(
        call,
        "hg_conv",
        beats,
        SIMD=simd,
        PE=pe,
        **window,
        GROUPS=groups,
        FOLDS=folds,
        REPEAT=repeat,
        DEPTH=depth,
        PAD=_pad(call),
        EVERY=1,
        **weights,
    )


def _depthwise(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT WINDOW GROUPS DEPTH PAD")
    window, groups, pe = _window(call), call.number("GROUPS", 1), call.outputs[0].lanes
    _check_lanes(call, pe, pe)
    weights = _weight_parameters(call, tables, groups * window["KH"] * window["KW"], pe)
    beats = (window["HEIGHT"] * window["WIDTH"] * groups,)
    return instance(
        call,
        "hg_dwconv",
        beats,
        PE=pe,
        **window,
        GROUPS=groups,
        REPEAT=1,
        DEPTH=call.number("DEPTH", 1),
        PAD=_pad(call),
        **weights,
    )


def _sliding(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("WINDOW FOLDS ROWS COLUMNS PAD PIXELS WINDOWS")
    check_tables(call, "")
    window = _window(call)
    folds, rows, columns, pixels, windows = (
        call.number(n, 1) for n in ("FOLDS", "ROWS", "COLUMNS", "PIXELS", "WINDOWS")
    )
    in_beats = call.inputs[0]
    if in_beats.lanes % pixels:
        raise broken(call.name, f"{in_beats.lanes} lanes are no {pixels} pixels.")
    lanes = in_beats.lanes // pixels
    _check_lanes(call, in_beats.lanes, window["KH"] * window["KW"] * windows * lanes)
    _check_same_type(call, [in_beats], call.outputs[0])
    beats = (window["HEIGHT"] * -(-window["WIDTH"] // pixels) * folds,)
    return instance(
        call,
        "hg_unfold",
        beats,
        UNIT=in_beats.bits,
        LANES=lanes,
        **window,
        FOLDS=folds,
        ROWS=rows,
        COLUMNS=columns,
        PAD=_pad(call),
        PIXELS=pixels,
        WINDOWS=windows,
    )


def _reduction(call: Call) -> dict[str, ParameterValue]:
    text = call.arguments["REDUCE"]
    if text not in ("hg::maximum", "hg::total"):
        raise broken(call.name, f"it reduces by {text}.")
    check_tables(call, "")
    in_beats, out_beats = call.inputs[0], call.outputs[0]
    if in_beats.signed != out_beats.signed:
        raise broken(call.name, "its results have another sign than its elements.")
    return {
        "X_W": in_beats.bits,
        "X_SIGNED": int(in_beats.signed),
        "SUM": int(text == "hg::total"),
        "ACC_W": out_beats.bits,
        "LANES": out_beats.lanes,
    }


def _pool(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("REDUCE WINDOW GROUPS DEPTH PAD")
    window, groups = _window(call), call.number("GROUPS", 1)
    _check_lanes(call, call.outputs[0].lanes, call.outputs[0].lanes)
    beats = (window["HEIGHT"] * window["WIDTH"] * groups,)
    return instance(
        call,
        "hg_pool",
        beats,
        **window,
        GROUPS=groups,
        DEPTH=call.number("DEPTH", 1),
        PAD=_pad(call),
        **_reduction(call),
    )


def _reduce(call: Call, tables: Tables) -> Meaning:
    del tables
    names = ("HEIGHT", "WIDTH", "KH", "KW", "OUT_H", "OUT_W", "FOLDS")
    call.only(f"REDUCE {' '.join(names)}")
    _check_lanes(call, call.outputs[0].lanes, call.outputs[0].lanes)
    values = {name: call.number(name, 1) for name in names}
    beats = (values["HEIGHT"] * values["WIDTH"] * values["FOLDS"],)
    return instance(call, "hg_reduce", beats, **values, **_reduction(call))


def _pool_tree(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("REDUCE TAPS BEATS")
    taps = call.number("TAPS", 1)
    _check_lanes(call, call.outputs[0].lanes * taps, call.outputs[0].lanes)
    return instance(call, "hg_pool_tree", (call.number("BEATS", 1),), TAPS=taps, **_reduction(call))


# --------------------------------------------------------------------------- moves


def _check_same_type(call: Call, in_beats: list[Beats], out_beats: Beats) -> None:
    """Elements that only move keep their type. Raises HG055."""
    if any((t.bits, t.signed) != (out_beats.bits, out_beats.signed) for t in in_beats):
        raise broken(call.name, "its inputs and its output have different types of elements.")
    check_tables(call, "")


def _regroup(call: Call, tables: Tables) -> Meaning:
    """hg::widen, hg::narrow and hg::gearbox."""
    del tables
    in_beats, out_beats, gearbox = call.inputs[0], call.outputs[0], call.function == "hg::gearbox"
    call.only("STEP GROUP_IN GROUP_OUT GROUPS_OUT" if gearbox else "GROUP GROUPS")
    _check_same_type(call, [in_beats], out_beats)
    in_group, out_group = (call.number(n, 1) for n in (("GROUP_IN", "GROUP_OUT") if gearbox else ("GROUP", "GROUP")))
    elements = out_group * call.number("GROUPS_OUT" if gearbox else "GROUPS", 1)
    step = call.number("STEP", 1) if gearbox else 1
    whole_beats = in_group % in_beats.lanes == 0 and out_group % out_beats.lanes == 0
    pairs = {"hg::widen": (out_beats.lanes, in_beats.lanes), "hg::narrow": (in_beats.lanes, out_beats.lanes)}
    a, b = pairs.get(call.function, (0, 1))
    step_divides = math.gcd(in_beats.lanes, out_beats.lanes) % step == 0
    if (
        elements % in_group
        or a % b
        or not step_divides
        or (gearbox and in_group != out_group and not (whole_beats or (in_group % step, out_group % step) == (0, 0)))
    ):
        raise broken(
            call.name,
            f"{call.function} does not turn {in_beats.lanes} lanes in groups of {in_group} to {out_beats.lanes} of "
            f"{out_group}.",
        )
    beats = (elements // in_group * -(-in_group // in_beats.lanes),)
    return instance(
        call,
        "hg_width",
        beats,
        UNIT=in_beats.bits,
        IN=in_beats.lanes,
        OUT=out_beats.lanes,
        IN_GROUP=in_group,
        OUT_GROUP=out_group,
    )


def _fork(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS")
    in_beats = call.inputs[0]
    check_tables(call, "")
    if set(call.outputs) != {in_beats}:
        raise broken(call.name, "its output has other beats than its input.")
    return instance(
        call, "hg_fork", (call.number("BEATS", 1),), WIDTH=in_beats.bits * in_beats.lanes, COUNT=len(call.outputs)
    )


def _list(call: Call, name: str) -> list[int]:
    match = re.fullmatch(r"hg::list<(\d{1,9}(?:,\d{1,9})*)>", call.arguments[name])
    if match is None:
        raise broken(call.name, f"{name} is {call.arguments[name][:60]}.")
    return [int(value) for value in match[1].split(",")]


def _packed(values: list[int]) -> SizedConstant:
    return SizedConstant(32 * len(values), sum(value << (32 * n) for n, value in enumerate(values)))


def _pick(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("PLACES BEATS")
    in_beats, out_beats, places = call.inputs[0], call.outputs[0], _list(call, "PLACES")
    _check_same_type(call, [in_beats], out_beats)
    _check_lanes(call, in_beats.lanes, len(places))
    return instance(
        call,
        "hg_pick",
        (call.number("BEATS", 1),),
        UNIT=in_beats.bits,
        IN=in_beats.lanes,
        OUT=out_beats.lanes,
        MAP=_packed(places),
    )


def _take(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("ROWS COLUMNS FOLDS BEATS")
    in_beats = call.inputs[0]
    check_tables(call, "")
    if call.outputs != (in_beats,):
        raise broken(call.name, "its output has other beats than its input.")
    parameters: dict[str, ParameterValue] = {"WIDTH": in_beats.bits * in_beats.lanes}
    for name, size, axis in (("ROWS", "HEIGHT", "Y"), ("COLUMNS", "COLUMNS", "X"), ("FOLDS", "FOLDS", "C")):
        match = re.fullmatch(r"hg::range<(\d{1,9}),(\d{1,9}),(\d{1,9}),(\d{1,9})>", call.arguments[name])
        if match is None:
            raise broken(call.name, f"{name} is {call.arguments[name][:60]}.")
        parameters |= dict(zip((size, f"{axis}0", f"{axis}1", f"{axis}S"), map(int, match.groups()), strict=True))
    return instance(call, "hg_take", (call.number("BEATS", 1),), **parameters)


def _border(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("HEIGHT WIDTH WORDS TOP LEFT BOTTOM RIGHT VALUE")
    in_beats, value = call.inputs[0], call.number("VALUE", -(1 << 62))
    _check_same_type(call, [in_beats], call.outputs[0])
    _check_lanes(call, in_beats.lanes, in_beats.lanes)
    if not -(1 << (in_beats.bits - 1)) * in_beats.signed <= value < 1 << (in_beats.bits - in_beats.signed):
        raise broken(call.name, f"VALUE is {value}, no code of its stream.")
    height, width, words = (call.number(n, 1) for n in ("HEIGHT", "WIDTH", "WORDS"))
    sides = {n: call.number(n) for n in ("TOP", "LEFT", "BOTTOM", "RIGHT")}
    return instance(
        call,
        "hg_pad",
        (height * width * words,),
        UNIT=in_beats.bits,
        LANES=in_beats.lanes,
        HEIGHT=height,
        COLUMNS=width,
        FOLDS=words,
        **sides,
        VALUE=sized(in_beats.bits, value),
    )


def _gather(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BLOCK BLOCKS EXTENTS STRIDES")
    in_beats, extents, strides = call.inputs[0], _list(call, "EXTENTS"), _list(call, "STRIDES")
    check_tables(call, "")
    if call.outputs != (in_beats,) or len(extents) != len(strides):
        raise broken(call.name, "its output has other beats than its input, or its loops have no strides.")
    block = call.number("BLOCK", 1)
    return instance(
        call,
        "hg_gather",
        (block * call.number("BLOCKS", 1),),
        WIDTH=in_beats.bits * in_beats.lanes,
        BLOCK=block,
        DIMS=len(extents),
        EXTENTS=_packed(extents),
        STRIDES=_packed(strides),
    )


def _signs(call: Call) -> dict[str, ParameterValue]:
    """Bits and signs of two streams."""
    a, b = call.inputs
    return {"A_SIGNED": int(a.signed), "B_SIGNED": int(b.signed)}


def _concat(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS_A BEATS_B TURNS")
    (a, b), out_beats = call.inputs, call.outputs[0]
    check_tables(call, "")
    _check_lanes(call, out_beats.lanes, out_beats.lanes)
    turns, beats = call.number("TURNS", 1), [call.number(f"BEATS_{side}", 1) for side in "AB"]
    return instance(
        call,
        "hg_concat",
        (beats[0] * turns, beats[1] * turns),
        UNIT_A=a.bits,
        UNIT_B=b.bits,
        UNIT_OUT=out_beats.bits,
        LANES=out_beats.lanes,
        BEATS_A=beats[0],
        BEATS_B=beats[1],
        **_signs(call),
    )


def _channel_concat(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("LANES_A LANES_B PIXELS BEATS")
    (a, b), out_beats, beats = call.inputs, call.outputs[0], call.number("BEATS", 1)
    check_tables(call, "")
    lanes, pixels = [call.number(f"LANES_{side}", 1) for side in "AB"], call.number("PIXELS", 1)
    return instance(
        call,
        "hg_beside",
        (beats, beats),
        UNIT_A=a.bits,
        UNIT_B=b.bits,
        UNIT_OUT=out_beats.bits,
        LANES_A=lanes[0],
        LANES_B=lanes[1],
        PIXELS=pixels,
        **_signs(call),
    )


def _join(mode: int) -> Callable[[Call, Tables], Meaning]:
    """hg::join_sum, hg::join_product and hg::join_pair, by MODE of hg_join."""

    def read(call: Call, tables: Tables) -> Meaning:
        del tables
        names = (("FA", "FB"), ("ZA", "ZB"), ())[mode]
        call.only(" ".join(("FACTOR", *names, "BEATS") if names else ("BEATS",)))
        (a, b), out_beats, beats = call.inputs, call.outputs[0], call.number("BEATS", 1)
        check_tables(call, "")
        values: dict[str, int] = {name: call.number(name, -(1 << 40)) for name in names}
        if names:
            match = re.fullmatch(r"ap_int<(\d{1,2})>", call.arguments["FACTOR"])
            bits = int(match[1]) if match else 1
            if any(not -(1 << (bits - 1)) <= v < 1 << (bits - 1) for v in values.values()):
                raise broken(call.name, f"FACTOR is {call.arguments['FACTOR']}, for {values}.")
        if not a.lanes == b.lanes == out_beats.lanes:
            raise broken(call.name, f"its streams have {a.lanes}, {b.lanes} and {out_beats.lanes} lanes.")
        return instance(
            call,
            "hg_join",
            (beats, beats),
            LANES=out_beats.lanes,
            A_W=a.bits,
            B_W=b.bits,
            OUT_W=out_beats.bits,
            MODE=mode,
            **_signs(call),
            **values,
        )

    return read


def _argmax(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS VECTORS")
    in_beats, beats = call.inputs[0], call.number("BEATS", 1)
    check_tables(call, "")
    _check_lanes(call, in_beats.lanes, 1)
    return instance(
        call,
        "hg_argmax",
        (beats * call.number("VECTORS", 1),),
        LANES=in_beats.lanes,
        BEATS=beats,
        IN_W=in_beats.bits,
        IN_SIGNED=int(in_beats.signed),
        INDEX_W=call.outputs[0].bits,
    )


KNOWN: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::mvu": _mvu,
    "hg::mvu_beside": _mvu_windows,
    "hg::dynamic_mvu": _dynamic_mvu,
    "hg::grouped": _grouped,
    "hg::conv": _conv,
    "hg::depthwise": _depthwise,
    "hg::sliding": _sliding,
    "hg::pool": _pool,
    "hg::reduce": _reduce,
    "hg::pool_tree": _pool_tree,
    "hg::widen": _regroup,
    "hg::narrow": _regroup,
    "hg::gearbox": _regroup,
    "hg::fork": _fork,
    "hg::pick": _pick,
    "hg::take": _take,
    "hg::pad": _border,
    "hg::gather": _gather,
    "hg::concat": _concat,
    "hg::beside": _channel_concat,
    "hg::join_sum": _join(0),
    "hg::join_product": _join(1),
    "hg::join_pair": _join(2),
    "hg::argmax": _argmax,
    **CODES,
    **LOOKUPS,
    **FLOATS,
    **ROWS,
}
