"""Processes that work on rows, as instances: Softmax, normalizations, functions of rows of integers."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, ends_of, takes_tables
from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import ParameterValue, broken
from hlsgen.numerics.fixed import Array, IntType

#: Bits of a significand, and of a part of a wide constant.
_SIGNIFICAND, _PART = 24, 32
#: Bits of a word of a table, at most.
_WORD = 62
#: Larger numbers of bits are not computed with.
_MOST = 4096
#: What a mask says of an element that is gone, and the arguments that a masked Softmax has besides.
_GONE, _MASKED = 2, "CODE GONE"


def _rows(call: Call) -> tuple[int, tuple[int, ...]]:
    """Beats of a row, and of a frame."""
    beats = call.number("BEATS", 1)
    return beats, (beats * call.number("ROWS", 1),)


def _bits(call: Call, name: str, kind: str) -> int:
    """Bits of an argument that is a type."""
    match = re.fullmatch(rf"{kind}<([1-9]\d{{0,3}})>", call.arguments.get(name, ""))
    if match is None:
        raise broken(call.name, f"{name} is {call.arguments.get(name)}, no {kind}.")
    return int(match[1])


def _words(numbers: Array) -> Array:
    """The bits of float32 numbers."""
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.int64)


# --------------------------------------------------------------------------- Softmax


def _softmax(call: Call, tables: Tables) -> Meaning:
    masked = call.function.endswith("_masked")
    call.only(f"SUM LAST {_MASKED * masked} BEATS ROWS")
    takes_tables(call, "powers numerators" + " masks" * masked)
    lanes, x, ends = ends_of(call)
    beats, frame = _rows(call)
    last = call.number("LAST")
    powers, numerators = (tables.array(call, end, last + 1) for end in ("powers", "numerators"))
    if ends["OUT_W"] != 32 or call.gives[0].signed:
        raise broken(call.name, f"{call.function} sends float32, not {call.gives[0].bits} bits.")
    if last > x.hi - x.lo + masked or not min(powers.min(), numerators.min()) >= 0:
        raise broken(call.name, f"LAST is {last}, or a number of its tables is negative.")
    fraction, width, words = 0, 32, _words(powers).reshape(-1, 1)
    in_order = call.arguments["SUM"] == "hg::sum_in_order"
    if not in_order:
        fraction = _fraction(call, lanes * beats)
        width, words = fraction + 1, _fixed(call, powers, fraction)
    stem = f"{call.name}.softmax"
    tables.put(f"{stem}_power.mem", [(words, width)])
    tables.put(f"{stem}_numerator.mem", [(_words(numerators).reshape(-1, 1), 32)])
    return instance(
        call,
        "hg_softmax",
        frame,
        LANES=lanes,
        BEATS=beats,
        IN_W=ends["IN_W"],
        IN_SIGNED=ends["IN_SIGNED"],
        LAST=last,
        W=width,
        FRACTION=fraction,
        IN_ORDER=int(in_order),
        LOW=0,
        M_W=1,
        TINY=1,
        FILE=stem,
        **_masks(call, tables, stem, x, masked),
    )


def _masks(call: Call, tables: Tables, stem: str, x: IntType, masked: bool) -> dict[str, ParameterValue]:
    """The mask as a memory. An element that is gone has a code so low that it is the largest of no row, and as far from
    the largest one as distances count: below all codes, and below the 0 that even elements have. Raises HG055."""
    if not masked:
        return {}
    bits, gone = _bits(call, "CODE", "ap_int"), call.number("GONE", -(1 << _WORD))
    if gone > min(x.lo, 0) - call.number("LAST", 1):
        raise broken(call.name, f"GONE is {gone}, which is not LAST below all codes of {x}.")
    if not -(1 << (bits - 1)) <= gone or x.hi >= 1 << (bits - 1):
        raise broken(call.name, f"CODE is {call.arguments['CODE']}, which does not hold {gone}, or not {x}.")
    masks = tables.array(call, "masks", -1, call.takes[0].lanes)
    if masks.min() < 0 or masks.max() > _GONE:
        raise broken(call.name, f"its mask has words of {masks.min()}..{masks.max()}.")
    tables.put(f"{stem}_mask.mem", [(masks, 2)])
    return {"MASKS": len(masks)}


def _fraction(call: Call, count: int) -> int:
    """Bits of exact sums, and of powers of at most 1, behind the binary point. Raises HG055."""
    match = re.fullmatch(r"hg::exact_sum<([1-9]\d{0,2}),(\d{1,3})>", call.arguments["SUM"])
    if match is None:
        raise broken(call.name, f"SUM is {call.arguments['SUM']}.")
    bits, fraction = int(match[1]), int(match[2])
    if count << fraction >= 1 << bits:
        raise broken(call.name, f"a sum of {count} powers can have more than {bits} bits.")
    return fraction


def _fixed(call: Call, powers: Array, fraction: int) -> Array:
    """Powers as integers, with so many bits behind the binary point. Raises HG055."""
    exact = [Fraction(power) * (1 << fraction) for power in powers.tolist()]
    if any(power.denominator != 1 or power > 1 << fraction for power in exact):
        raise broken(call.name, f"a power is more than 1, or has more than {fraction} bits behind its binary point.")
    words = np.empty((len(exact), 1), object)
    words[:, 0] = [int(power) for power in exact]
    return words


def _softmax_products(call: Call, tables: Tables) -> Meaning:
    masked = call.function.endswith("_masked")
    call.only(f"SUM LAST LOW M_BITS {_MASKED * masked} BEATS ROWS")
    takes_tables(call, "mantissas shifts lows" + " masks" * masked)
    lanes, x, ends = ends_of(call)
    beats, frame = _rows(call)
    last, low, bits = call.number("LAST"), call.number("LOW", 1), call.number("M_BITS", 1)
    if low >= x.bits or last > x.hi - x.lo + masked or bits > _WORD or ends["OUT_W"] != 32 or call.gives[0].signed:
        raise broken(call.name, f"LOW is {low}, LAST {last}, M_BITS {bits}, or its results are no float32.")
    fraction, stem, highs = _fraction(call, lanes * beats), f"{call.name}.softmax", (last >> low) + 1
    mantissas, shifts = (tables.array(call, end, highs).reshape(-1, 1) for end in ("mantissas", "shifts"))
    lows = tables.array(call, "lows", 1 << low).reshape(-1, 1)
    for values, most in ((mantissas, bits), (shifts, 8), (lows, bits + 1)):
        if values.min() < 0 or int(values.max()) >> most:
            raise broken(call.name, f"a table has numbers of {values.min()}..{values.max()}, of {most} bits.")
    tables.put(f"{stem}_high.mem", [(mantissas, bits), (shifts, 8)])
    tables.put(f"{stem}_low.mem", [(lows, bits + 1)])
    return instance(
        call,
        "hg_softmax",
        frame,
        LANES=lanes,
        BEATS=beats,
        IN_W=ends["IN_W"],
        IN_SIGNED=ends["IN_SIGNED"],
        LAST=last,
        W=fraction + 1,
        FRACTION=fraction,
        IN_ORDER=0,
        LOW=low,
        M_W=bits,
        TINY=1,
        FILE=stem,
        **_masks(call, tables, stem, x, masked),
    )


# --------------------------------------------------------------------------- normalization


def _integers(call: Call) -> dict[str, ParameterValue]:
    """How codes are read as integers."""
    taken, bits = call.takes[0], _bits(call, "Q", "ap_int")
    offset = call.number("OFFSET", -(1 << (bits - 1)))
    if offset >= 1 << (bits - 1):
        raise broken(call.name, f"Q is {call.arguments['Q']}, OFFSET is {offset}.")
    return {
        "LANES": taken.lanes,
        "X_W": taken.bits,
        "X_SIGNED": int(taken.signed),
        "SHIFT": call.number("SHIFT"),
        "OFFSET": sized(bits, offset),
        "Q_W": bits,
    }


def _one_lane(call: Call, beats: int, *widths: int) -> None:
    """Streams of one beat a row have beats of so many bits, those that are taken first. Raises HG055."""
    found = [(side.bits, side.signed, side.lanes) for side in (*call.takes, *call.gives)][-beats:]
    if found != [(bits, False, 1) for bits in widths]:
        raise broken(call.name, f"its beats of a row are {found}, not one number of {widths} bits.")


def _moments(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("Q SHIFT OFFSET CENTERED S_BITS M_BITS BEATS ROWS")
    takes_tables(call, "")
    beats, frame = _rows(call)
    sums, moments = call.number("S_BITS", 1), call.number("M_BITS", 1)
    _one_lane(call, 1, sums + moments)
    return instance(
        call,
        "hg_norm_moments",
        frame,
        **_integers(call),
        BEATS=beats,
        CENTERED=int(call.flag("CENTERED")),
        S_W=sums,
        M_W=moments,
        EVERY=1,
    )


def _root(call: Call, tables: Tables) -> Meaning:
    names = "M_BITS S_BITS E_BITS W_BITS STEPS AT_ONCE ROWS"
    call.only(names)
    takes_tables(call, "constants")
    moments, sums, exponents, bits, steps, _, rows = (call.number(name, 1) for name in names.split())
    _one_lane(call, 2, moments + sums, exponents + _SIGNIFICAND + sums)
    if bits > _MOST:
        raise broken(call.name, f"W has {bits} bits; at most {_MOST} are proven.")
    parts = tables.array(call, "constants", 3, -1)
    values = [sum(int(part) << (_PART * n) for n, part in enumerate(row)) for row in parts]
    if parts.min() < 0 or parts.max() >> _PART or max(values) >> bits:
        raise broken(call.name, f"its constants have more than {bits} bits, or their parts more than {_PART}.")
    factor, addend, start = (sized(bits, value) for value in values)
    # It multiplies with any factor.
    return instance(
        call,
        "hg_norm_root",
        (rows,),
        M_W=moments,
        S_W=sums,
        E_W=exponents,
        W_W=bits,
        STEPS=steps,
        SERIAL=1,
        SHIFT=0,
        FACTOR=factor,
        ADDEND=addend,
        START=start,
        WAYS=1,
        GAP=1,
    )


def _scale(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("Q SHIFT OFFSET S_BITS E_BITS A_BITS BIAS BEATS ROWS")
    takes_tables(call, "")
    beats, (frame,) = _rows(call)
    sums, exponents, sizes = (call.number(name, 1) for name in ("S_BITS", "E_BITS", "A_BITS"))
    (codes, rows), sent = call.takes, call.gives[0]
    if (rows.bits, rows.signed, rows.lanes) != (exponents + _SIGNIFICAND + sums, False, 1):
        raise broken(call.name, f"its beats of a row have {rows.lanes} numbers of {rows.bits} bits.")
    if (sent.bits, sent.signed, sent.lanes) != (32, False, codes.lanes):
        raise broken(call.name, f"{call.function} sends float32 in {codes.lanes} lanes.")
    return instance(
        call,
        "hg_norm_scale",
        (frame, frame // beats),
        **_integers(call),
        BEATS=beats,
        S_W=sums,
        E_W=exponents,
        A_W=sizes,
        BIAS=call.number("BIAS"),
    )


# --------------------------------------------------------------------------- rows of integers


def _max(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("BEATS ROWS")
    takes_tables(call, "")
    _, _, ends = ends_of(call)
    beats, frame = _rows(call)
    if call.gives[0].signed:
        raise broken(call.name, "its differences have a sign.")
    return instance(call, "hg_rows_max", frame, BEATS=beats, **ends)


def _share(call: Call, tables: Tables) -> Meaning:
    call.only("SUM BEATS ROWS")
    takes_tables(call, "weights numbers")
    lanes, x, _ = ends_of(call)
    beats, frame = _rows(call)
    taken, sent = call.takes[0], call.gives[0]
    if taken.signed or sent.signed:
        raise broken(call.name, "its elements or its shares have a sign.")
    stem, widths = f"{call.name}.share", []
    for n, end in enumerate(("weights", "numbers")):
        values = tables.array(call, end, x.hi + 1)
        if values.min() < 0:
            raise broken(call.name, f"some of its {end} are negative.")
        widths.append(max(1, int(values.max()).bit_length()))
        tables.put(f"{stem}_{n:04d}.mem", [(values.reshape(-1, 1), widths[-1])])
    return instance(
        call,
        "hg_rows_share",
        frame,
        LANES=lanes,
        BEATS=beats,
        IN_W=taken.bits,
        WEIGHT_W=widths[0],
        NUMBER_W=widths[1],
        SUM_W=_bits(call, "SUM", "ap_uint"),
        OUT_W=sent.bits,
        FILE=stem,
    )


def _norm(call: Call, tables: Tables) -> Meaning:
    call.only("SUM SQUARES ROOT NUMBER CENTERED SHIFT WRAPS BEATS ROWS")
    takes_tables(call, "weights biases")
    lanes, _, ends = ends_of(call)
    beats, frame = _rows(call)
    if not call.gives[0].signed:
        raise broken(call.name, "its results have no sign.")
    weights, biases = (tables.array(call, end, beats, lanes) for end in ("weights", "biases"))
    bits = bits_of(weights), bits_of(biases)
    file = tables.put(f"{call.name}.places", [(weights, bits[0]), (biases, bits[1])])
    number = _bits(call, "NUMBER", "ap_int")
    # A mean is an element's type, a quotient the type of what is divided.
    return instance(
        call,
        "hg_rows_norm",
        frame,
        BEATS=beats,
        **ends,
        CENTERED=int(call.flag("CENTERED")),
        SUM_W=_bits(call, "SUM", "ap_int"),
        SQ_W=_bits(call, "SQUARES", "ap_uint"),
        MEAN_W=call.takes[0].bits,
        ROOT_W=_bits(call, "ROOT", "ap_uint"),
        WEIGHT_W=bits[0],
        BIAS_W=bits[1],
        ACC_W=number,
        SHIFT=call.number("SHIFT"),
        BITS=number,
        WRAPS=int(call.flag("WRAPS")),
        FILE=file,
    )


#: Name of a function -> the instance that a call of it stands for.
ROWS: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::softmax": _softmax,
    "hg::softmax_masked": _softmax,
    "hg::softmax_products": _softmax_products,
    "hg::softmax_products_masked": _softmax_products,
    "hg::norm_moments": _moments,
    "hg::norm_root": _root,
    "hg::norm_scale": _scale,
    "hg::rows_max": _max,
    "hg::rows_share": _share,
    "hg::rows_norm": _norm,
}
