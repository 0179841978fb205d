"""Processes that multiply, pool or move elements, said as instances of the modules whose contract is the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from hlsgen.certify.cpp.codes import CODES, takes_tables
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
    """The instance that a call stands for. Raises HG055 if the function is unknown, or its arguments are."""
    known = KNOWN.get(call.function)
    if known is None:
        raise broken(call.name, f"calls {call.function}, of which there is no model.")
    return known(call, tables)


# --------------------------------------------------------------------------- weights


def _weights(call: Call, tables: Tables, *shape: int) -> dict[str, ParameterValue]:
    """Parameters of a unit with weights of this shape."""
    takes_tables(call, "weights")
    tables.array(call, "weights", *shape)
    table, text = tables.found[call.tables[0]], call.arguments["PRODUCT"]
    if text in ("hg::bipolar", "hg::agreements"):
        mode, bits, signed = 1 if text == "hg::bipolar" else 2, 1, False
    elif text == "hg::multiply":
        mode, bits, signed = 0, table.bits, True
    else:
        raise broken(call.name, f"its product is {text}.")
    if (table.bits, table.signed) != (bits, signed):
        raise broken(call.name, f"{table.name} has weights of {table.bits} bits, {text} others.")
    taken, sent = call.takes[0], call.gives[0]
    return {
        "X_W": taken.bits,
        "X_SIGNED": int(taken.signed),
        "W_W": bits,
        "MODE": mode,
        "ACC_W": sent.bits,
        "FILE": call.tables[0],
    }


def _lanes(call: Call, taken: int, sent: int) -> None:
    if (call.takes[0].lanes, call.gives[0].lanes) != (taken, sent):
        raise broken(
            call.name, f"its beats have {call.takes[0].lanes} and {call.gives[0].lanes} lanes, not {taken}, {sent}."
        )


def _mvu(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT PE SIMD ROW_FOLDS COL_FOLDS VECTORS")
    pe, simd, rows, columns = (call.number(n, 1) for n in ("PE", "SIMD", "ROW_FOLDS", "COL_FOLDS"))
    _lanes(call, simd, pe)
    found = _weights(call, tables, rows * columns, pe, simd)
    beats = (call.number("VECTORS", 1) * columns,)
    return instance(call, "hg_mvu", beats, SIMD=simd, PE=pe, COL_FOLDS=columns, ROW_FOLDS=rows, EVERY=1, **found)


def _dynamic_mvu(call: Call, tables: Tables) -> Meaning:
    del tables
    names = ("FA", "OA", "FB", "OB")
    call.only(f"FACTOR PE SIMD FOLDS ROWS_FIRST {' '.join(names)} SUMS")
    takes_tables(call, "")
    pe, simd, folds = (call.number(n, 1) for n in ("PE", "SIMD", "FOLDS"))
    first = {"true": 1, "false": 0}.get(call.arguments["ROWS_FIRST"])
    (a, b), sent = call.takes, call.gives[0]
    factors = {name: call.number(name, -(1 << 40)) for name in names}
    match = re.fullmatch(r"ap_int<(\d{1,2})>", call.arguments["FACTOR"])
    bits = int(match[1]) if match else 1
    if any(not -(1 << (bits - 1)) <= v < 1 << (bits - 1) for v in factors.values()):
        raise broken(call.name, f"FACTOR is {call.arguments['FACTOR']}, for {factors}.")
    shifts = [factors[name].bit_length() - 1 for name in ("FA", "FB")]
    if first is None or [1 << max(s, 0) for s in shifts] != [factors["FA"], factors["FB"]]:
        raise broken(call.name, f"its factors are {factors}, or ROWS_FIRST is no truth value.")
    if (a.lanes, b.lanes, sent.lanes) != (simd, pe * simd, pe):
        raise broken(call.name, f"its streams have {a.lanes}, {b.lanes} and {sent.lanes} lanes.")
    beats = call.number("SUMS", 1) * folds
    # Numbers of C++ are as wide as their values.
    return instance(
        call,
        "hg_dynmvu",
        (beats, beats),
        SIMD=simd,
        PE=pe,
        FOLDS=folds,
        ROWS_FIRST=first,
        A_W=a.bits,
        B_W=b.bits,
        A_SHIFT=shifts[0],
        A_OFFSET=factors["OA"],
        X_W=64,
        X_SIGNED=1,
        B_SHIFT=shifts[1],
        B_OFFSET=factors["OB"],
        W_W=64,
        ACC_W=sent.bits,
        EVERY=1,
        **_sides(call),
    )


def _mvu_beside(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT WINDOWS TAPS PE SIMD BEATS")
    windows, taps, pe, simd = (call.number(n, 1) for n in ("WINDOWS", "TAPS", "PE", "SIMD"))
    _lanes(call, windows * simd, windows * pe)
    found = _weights(call, tables, 1, pe, simd)
    several: dict[str, ParameterValue] = {"WINDOWS": windows, "TAPS": taps} if windows > 1 else {}
    beats = (call.number("BEATS", 1),)
    return instance(call, "hg_mvu", beats, SIMD=simd, PE=pe, COL_FOLDS=1, ROW_FOLDS=1, EVERY=1, **found, **several)


def _grouped(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT TAPS ROWS COLUMNS FOLDS WINDOWS")
    taps, rows, columns, folds = (call.number(n, 1) for n in ("TAPS", "ROWS", "COLUMNS", "FOLDS"))
    pe = call.gives[0].lanes
    if pe % rows:
        raise broken(call.name, f"{pe} sums are no whole groups of {rows}.")
    _lanes(call, pe // rows * taps * columns, pe)
    found = _weights(call, tables, folds, pe, taps * columns)
    several: dict[str, ParameterValue] = {n: v for n, v in (("ROWS", rows), ("COLUMNS", columns)) if v > 1}
    beats = (call.number("WINDOWS", 1) * folds,)
    return instance(call, "hg_dwmvu", beats, PE=pe, TAPS=taps, FOLDS=folds, EVERY=1, **found, **several)


# --------------------------------------------------------------------------- windows


def _window(call: Call) -> dict[str, int]:
    form = ",".join(rf"(\d{{1,9}})/\*{name}\*/" for name in _GEOMETRY)
    match = re.fullmatch(rf"hg::window<{form}>", call.arguments["WINDOW"])
    if match is None:
        raise broken(call.name, f"its window is {call.arguments['WINDOW']}.")
    return dict(zip(_GEOMETRY, map(int, match.groups()), strict=True))


def _pad(call: Call) -> SizedConstant:
    """The code outside of an image, in the bits of an input element."""
    taken, pad = call.takes[0], call.number("PAD", -(1 << 62))
    if not -(1 << (taken.bits - 1)) * taken.signed <= pad < 1 << (taken.bits - taken.signed):
        raise broken(call.name, f"PAD is {pad}, no code of its input.")
    return sized(taken.bits, pad)


def _conv(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT WINDOW GROUPS FOLDS REPEAT DEPTH PAD")
    place = _window(call)
    groups, folds, repeat, depth = (call.number(n, 1) for n in ("GROUPS", "FOLDS", "REPEAT", "DEPTH"))
    simd, pe = call.takes[0].lanes, call.gives[0].lanes
    found = _weights(call, tables, groups * repeat * place["KH"] * place["KW"] * folds, pe, simd)
    beats = (place["HEIGHT"] * place["WIDTH"] * groups * folds,)
    return instance(
        call,
        "hg_conv",
        beats,
        SIMD=simd,
        PE=pe,
        **place,
        GROUPS=groups,
        FOLDS=folds,
        REPEAT=repeat,
        DEPTH=depth,
        PAD=_pad(call),
        EVERY=1,
        **found,
    )


def _depthwise(call: Call, tables: Tables) -> Meaning:
    call.only("PRODUCT WINDOW GROUPS DEPTH PAD")
    place, groups, pe = _window(call), call.number("GROUPS", 1), call.gives[0].lanes
    _lanes(call, pe, pe)
    found = _weights(call, tables, groups * place["KH"] * place["KW"], pe)
    beats = (place["HEIGHT"] * place["WIDTH"] * groups,)
    return instance(
        call,
        "hg_dwconv",
        beats,
        PE=pe,
        **place,
        GROUPS=groups,
        REPEAT=1,
        DEPTH=call.number("DEPTH", 1),
        PAD=_pad(call),
        **found,
    )


def _sliding(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("WINDOW FOLDS ROWS COLUMNS PAD PIXELS WINDOWS")
    takes_tables(call, "")
    place = _window(call)
    folds, rows, columns, pixels, windows = (
        call.number(n, 1) for n in ("FOLDS", "ROWS", "COLUMNS", "PIXELS", "WINDOWS")
    )
    taken = call.takes[0]
    if taken.lanes % pixels:
        raise broken(call.name, f"{taken.lanes} lanes are no {pixels} pixels.")
    lanes = taken.lanes // pixels
    _lanes(call, taken.lanes, place["KH"] * place["KW"] * windows * lanes)
    _same(call, [taken], call.gives[0])
    beats = (place["HEIGHT"] * -(-place["WIDTH"] // pixels) * folds,)
    return instance(
        call,
        "hg_unfold",
        beats,
        UNIT=taken.bits,
        LANES=lanes,
        **place,
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
    takes_tables(call, "")
    taken, sent = call.takes[0], call.gives[0]
    if taken.signed != sent.signed:
        raise broken(call.name, "its results have another sign than its elements.")
    return {
        "X_W": taken.bits,
        "X_SIGNED": int(taken.signed),
        "SUM": int(text == "hg::total"),
        "ACC_W": sent.bits,
        "LANES": sent.lanes,
    }


def _pool(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("REDUCE WINDOW GROUPS DEPTH PAD")
    place, groups = _window(call), call.number("GROUPS", 1)
    _lanes(call, call.gives[0].lanes, call.gives[0].lanes)
    beats = (place["HEIGHT"] * place["WIDTH"] * groups,)
    return instance(
        call,
        "hg_pool",
        beats,
        **place,
        GROUPS=groups,
        DEPTH=call.number("DEPTH", 1),
        PAD=_pad(call),
        **_reduction(call),
    )


def _reduce(call: Call, tables: Tables) -> Meaning:
    del tables
    names = ("HEIGHT", "WIDTH", "KH", "KW", "OUT_H", "OUT_W", "FOLDS")
    call.only(f"REDUCE {' '.join(names)}")
    _lanes(call, call.gives[0].lanes, call.gives[0].lanes)
    values = {name: call.number(name, 1) for name in names}
    beats = (values["HEIGHT"] * values["WIDTH"] * values["FOLDS"],)
    return instance(call, "hg_reduce", beats, **values, **_reduction(call))


def _pool_tree(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("REDUCE TAPS BEATS")
    taps = call.number("TAPS", 1)
    _lanes(call, call.gives[0].lanes * taps, call.gives[0].lanes)
    return instance(call, "hg_pool_tree", (call.number("BEATS", 1),), TAPS=taps, **_reduction(call))


# --------------------------------------------------------------------------- moves


def _same(call: Call, taken: list[Beats], sent: Beats) -> None:
    """Elements that only move keep their type. Raises HG055."""
    if any((t.bits, t.signed) != (sent.bits, sent.signed) for t in taken):
        raise broken(call.name, "takes and sends elements of other types.")
    takes_tables(call, "")


def _regroup(call: Call, tables: Tables) -> Meaning:
    """widen, narrow, gearbox."""
    del tables
    taken, sent, gearbox = call.takes[0], call.gives[0], call.function == "hg::gearbox"
    call.only("STEP GROUP_IN GROUP_OUT GROUPS_OUT" if gearbox else "GROUP GROUPS")
    _same(call, [taken], sent)
    before, after = (call.number(n, 1) for n in (("GROUP_IN", "GROUP_OUT") if gearbox else ("GROUP", "GROUP")))
    elements = after * call.number("GROUPS_OUT" if gearbox else "GROUPS", 1)
    step = call.number("STEP", 1) if gearbox else 1
    whole = before % taken.lanes == 0 and after % sent.lanes == 0
    pairs = {"hg::widen": (sent.lanes, taken.lanes), "hg::narrow": (taken.lanes, sent.lanes)}
    a, b = pairs.get(call.function, (0, 1))
    steps = math.gcd(taken.lanes, sent.lanes) % step == 0
    if (
        elements % before
        or a % b
        or not steps
        or (gearbox and before != after and not (whole or (before % step, after % step) == (0, 0)))
    ):
        raise broken(
            call.name,
            f"{call.function} does not turn {taken.lanes} lanes in groups of {before} to {sent.lanes} of {after}.",
        )
    beats = (elements // before * -(-before // taken.lanes),)
    return instance(
        call, "hg_width", beats, UNIT=taken.bits, IN=taken.lanes, OUT=sent.lanes, IN_GROUP=before, OUT_GROUP=after
    )


def _fork(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS")
    taken = call.takes[0]
    takes_tables(call, "")
    if set(call.gives) != {taken}:
        raise broken(call.name, "sends other beats than it takes.")
    return instance(call, "hg_fork", (call.number("BEATS", 1),), WIDTH=taken.bits * taken.lanes, COUNT=len(call.gives))


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
    taken, sent, places = call.takes[0], call.gives[0], _list(call, "PLACES")
    _same(call, [taken], sent)
    _lanes(call, taken.lanes, len(places))
    return instance(
        call,
        "hg_pick",
        (call.number("BEATS", 1),),
        UNIT=taken.bits,
        IN=taken.lanes,
        OUT=sent.lanes,
        MAP=_packed(places),
    )


def _take(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("ROWS COLUMNS FOLDS BEATS")
    taken = call.takes[0]
    takes_tables(call, "")
    if call.gives != (taken,):
        raise broken(call.name, "sends other beats than it takes.")
    found: dict[str, ParameterValue] = {"WIDTH": taken.bits * taken.lanes}
    for name, size, axis in (("ROWS", "HEIGHT", "Y"), ("COLUMNS", "COLUMNS", "X"), ("FOLDS", "FOLDS", "C")):
        match = re.fullmatch(r"hg::range<(\d{1,9}),(\d{1,9}),(\d{1,9}),(\d{1,9})>", call.arguments[name])
        if match is None:
            raise broken(call.name, f"{name} is {call.arguments[name][:60]}.")
        found |= dict(zip((size, f"{axis}0", f"{axis}1", f"{axis}S"), map(int, match.groups()), strict=True))
    return instance(call, "hg_take", (call.number("BEATS", 1),), **found)


def _border(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("HEIGHT WIDTH WORDS TOP LEFT BOTTOM RIGHT VALUE")
    taken, value = call.takes[0], call.number("VALUE", -(1 << 62))
    _same(call, [taken], call.gives[0])
    _lanes(call, taken.lanes, taken.lanes)
    if not -(1 << (taken.bits - 1)) * taken.signed <= value < 1 << (taken.bits - taken.signed):
        raise broken(call.name, f"VALUE is {value}, no code of its stream.")
    height, width, words = (call.number(n, 1) for n in ("HEIGHT", "WIDTH", "WORDS"))
    sides = {n: call.number(n) for n in ("TOP", "LEFT", "BOTTOM", "RIGHT")}
    return instance(
        call,
        "hg_pad",
        (height * width * words,),
        UNIT=taken.bits,
        LANES=taken.lanes,
        HEIGHT=height,
        COLUMNS=width,
        FOLDS=words,
        **sides,
        VALUE=sized(taken.bits, value),
    )


def _gather(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BLOCK BLOCKS EXTENTS STRIDES")
    taken, extents, strides = call.takes[0], _list(call, "EXTENTS"), _list(call, "STRIDES")
    takes_tables(call, "")
    if call.gives != (taken,) or len(extents) != len(strides):
        raise broken(call.name, "sends other beats than it takes, or its loops have no strides.")
    block = call.number("BLOCK", 1)
    return instance(
        call,
        "hg_gather",
        (block * call.number("BLOCKS", 1),),
        WIDTH=taken.bits * taken.lanes,
        BLOCK=block,
        DIMS=len(extents),
        EXTENTS=_packed(extents),
        STRIDES=_packed(strides),
    )


def _sides(call: Call) -> dict[str, ParameterValue]:
    """Bits and signs of two streams."""
    a, b = call.takes
    return {"A_SIGNED": int(a.signed), "B_SIGNED": int(b.signed)}


def _concat(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS_A BEATS_B TURNS")
    (a, b), sent = call.takes, call.gives[0]
    takes_tables(call, "")
    _lanes(call, sent.lanes, sent.lanes)
    turns, beats = call.number("TURNS", 1), [call.number(f"BEATS_{side}", 1) for side in "AB"]
    return instance(
        call,
        "hg_concat",
        (beats[0] * turns, beats[1] * turns),
        UNIT_A=a.bits,
        UNIT_B=b.bits,
        UNIT_OUT=sent.bits,
        LANES=sent.lanes,
        BEATS_A=beats[0],
        BEATS_B=beats[1],
        **_sides(call),
    )


def _beside(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("LANES_A LANES_B PIXELS BEATS")
    (a, b), sent, beats = call.takes, call.gives[0], call.number("BEATS", 1)
    takes_tables(call, "")
    lanes, pixels = [call.number(f"LANES_{side}", 1) for side in "AB"], call.number("PIXELS", 1)
    return instance(
        call,
        "hg_beside",
        (beats, beats),
        UNIT_A=a.bits,
        UNIT_B=b.bits,
        UNIT_OUT=sent.bits,
        LANES_A=lanes[0],
        LANES_B=lanes[1],
        PIXELS=pixels,
        **_sides(call),
    )


def _join(mode: int) -> Callable[[Call, Tables], Meaning]:
    """join_sum, join_product, join_pair."""

    def made(call: Call, tables: Tables) -> Meaning:
        del tables
        names = (("FA", "FB"), ("ZA", "ZB"), ())[mode]
        call.only(" ".join(("FACTOR", *names, "BEATS") if names else ("BEATS",)))
        (a, b), sent, beats = call.takes, call.gives[0], call.number("BEATS", 1)
        takes_tables(call, "")
        values: dict[str, int] = {name: call.number(name, -(1 << 40)) for name in names}
        if names:
            match = re.fullmatch(r"ap_int<(\d{1,2})>", call.arguments["FACTOR"])
            bits = int(match[1]) if match else 1
            if any(not -(1 << (bits - 1)) <= v < 1 << (bits - 1) for v in values.values()):
                raise broken(call.name, f"FACTOR is {call.arguments['FACTOR']}, for {values}.")
        if not a.lanes == b.lanes == sent.lanes:
            raise broken(call.name, f"its streams have {a.lanes}, {b.lanes} and {sent.lanes} lanes.")
        return instance(
            call,
            "hg_join",
            (beats, beats),
            LANES=sent.lanes,
            A_W=a.bits,
            B_W=b.bits,
            OUT_W=sent.bits,
            MODE=mode,
            **_sides(call),
            **values,
        )

    return made


def _argmax(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS VECTORS")
    taken, beats = call.takes[0], call.number("BEATS", 1)
    takes_tables(call, "")
    _lanes(call, taken.lanes, 1)
    return instance(
        call,
        "hg_argmax",
        (beats * call.number("VECTORS", 1),),
        LANES=taken.lanes,
        BEATS=beats,
        IN_W=taken.bits,
        IN_SIGNED=int(taken.signed),
        INDEX_W=call.gives[0].bits,
    )


KNOWN: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::mvu": _mvu,
    "hg::mvu_beside": _mvu_beside,
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
    "hg::beside": _beside,
    "hg::join_sum": _join(0),
    "hg::join_product": _join(1),
    "hg::join_pair": _join(2),
    "hg::argmax": _argmax,
    **CODES,
    **LOOKUPS,
    **FLOATS,
    **ROWS,
}
