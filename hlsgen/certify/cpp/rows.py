"""Reads processes on rows as instances: Softmax, normalizations, functions of rows of integers."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, check_tables, lane_parameters
from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import ParameterValue, broken
from hlsgen.numerics.fixed import Array, IntType

#: Bits of a significand, and of a part of a wide constant.
_SIGNIFICAND, _PART = 24, 32
#: Bits of an exponential of rows_fixed_share.
_EXPONENTIAL = 31
#: Maximum bits of a word of a table.
_WORD = 62
#: Wider numbers are rejected.
_MAX_BITS = 4096
#: Mask word of an excluded element, and the additional arguments of a masked Softmax.
_MASKED_OUT, _MASK_ARGUMENTS = 2, "CODE GONE"


def _row_beats(call: Call) -> tuple[int, tuple[int, ...]]:
    """Beats of a row, and of a frame."""
    beats = call.number("BEATS", 1)
    return beats, (beats * call.number("ROWS", 1),)


def _bits(call: Call, name: str, kind: str) -> int:
    """The width of an argument that is a type."""
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
    call.only(f"SUM LAST {_MASK_ARGUMENTS * masked} BEATS ROWS")
    check_tables(call, "powers numerators" + " masks" * masked)
    lanes, x, parameters = lane_parameters(call)
    beats, frame = _row_beats(call)
    last = call.number("LAST")
    powers, numerators = (tables.array(call, end, last + 1) for end in ("powers", "numerators"))
    if parameters["OUT_W"] != 32 or call.outputs[0].signed:
        raise broken(call.name, f"{call.function} outputs float32, not {call.outputs[0].bits} bits.")
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
        IN_W=parameters["IN_W"],
        IN_SIGNED=parameters["IN_SIGNED"],
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
    """The mask as a memory. Raises HG055.

    An excluded element gets the code GONE. It is at least LAST below all codes, and below the 0 of added lanes. It is
    therefore never the largest of a row, and its distance is the largest that is counted.
    """
    if not masked:
        return {}
    bits, excluded_code = _bits(call, "CODE", "ap_int"), call.number("GONE", -(1 << _WORD))
    if excluded_code > min(x.lo, 0) - call.number("LAST", 1):
        raise broken(call.name, f"GONE is {excluded_code}, which is not LAST below all codes of {x}.")
    if not -(1 << (bits - 1)) <= excluded_code or x.hi >= 1 << (bits - 1):
        raise broken(call.name, f"CODE is {call.arguments['CODE']}, which does not hold {excluded_code}, or not {x}.")
    masks = tables.array(call, "masks", -1, call.inputs[0].lanes)
    if masks.min() < 0 or masks.max() > _MASKED_OUT:
        raise broken(call.name, f"its mask has words of {masks.min()}..{masks.max()}.")
    tables.put(f"{stem}_mask.mem", [(masks, 2)])
    return {"MASKS": len(masks)}


def _fraction(call: Call, count: int) -> int:
    """Fraction bits of exact sums, and of powers of at most 1. Raises HG055."""
    match = re.fullmatch(r"hg::exact_sum<([1-9]\d{0,2}),(\d{1,3})>", call.arguments["SUM"])
    if match is None:
        raise broken(call.name, f"SUM is {call.arguments['SUM']}.")
    bits, fraction = int(match[1]), int(match[2])
    if count << fraction >= 1 << bits:
        raise broken(call.name, f"a sum of {count} powers can have more than {bits} bits.")
    return fraction


def _fixed(call: Call, powers: Array, fraction: int) -> Array:
    """Powers as integers with this number of fraction bits. Raises HG055."""
    exact = [Fraction(power) * (1 << fraction) for power in powers.tolist()]
    if any(power.denominator != 1 or power > 1 << fraction for power in exact):
        raise broken(call.name, f"a power is more than 1, or has more than {fraction} fraction bits.")
    words = np.empty((len(exact), 1), object)
    words[:, 0] = [int(power) for power in exact]
    return words


def _softmax_products(call: Call, tables: Tables) -> Meaning:
    masked = call.function.endswith("_masked")
    call.only(f"SUM LAST LOW M_BITS {_MASK_ARGUMENTS * masked} BEATS ROWS")
    check_tables(call, "mantissas shifts lows" + " masks" * masked)
    lanes, x, parameters = lane_parameters(call)
    beats, frame = _row_beats(call)
    last, low, bits = call.number("LAST"), call.number("LOW", 1), call.number("M_BITS", 1)
    if (
        low >= x.bits
        or last > x.hi - x.lo + masked
        or bits > _WORD
        or parameters["OUT_W"] != 32
        or call.outputs[0].signed
    ):
        raise broken(call.name, f"LOW is {low}, LAST {last}, M_BITS {bits}, or its results are no float32.")
    fraction, stem, highs = _fraction(call, lanes * beats), f"{call.name}.softmax", (last >> low) + 1
    mantissas, shifts = (tables.array(call, end, highs).reshape(-1, 1) for end in ("mantissas", "shifts"))
    lows = tables.array(call, "lows", 1 << low).reshape(-1, 1)
    for values, max_bits in ((mantissas, bits), (shifts, 8), (lows, bits + 1)):
        if values.min() < 0 or int(values.max()) >> max_bits:
            raise broken(call.name, f"a table has numbers of {values.min()}..{values.max()}, of {max_bits} bits.")
    tables.put(f"{stem}_high.mem", [(mantissas, bits), (shifts, 8)])
    tables.put(f"{stem}_low.mem", [(lows, bits + 1)])
    return instance(
        call,
        "hg_softmax",
        frame,
        LANES=lanes,
        BEATS=beats,
        IN_W=parameters["IN_W"],
        IN_SIGNED=parameters["IN_SIGNED"],
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
    """The parameters that turn codes into integers."""
    in_beats, bits = call.inputs[0], _bits(call, "Q", "ap_int")
    offset = call.number("OFFSET", -(1 << (bits - 1)))
    if offset >= 1 << (bits - 1):
        raise broken(call.name, f"Q is {call.arguments['Q']}, OFFSET is {offset}.")
    return {
        "LANES": in_beats.lanes,
        "X_W": in_beats.bits,
        "X_SIGNED": int(in_beats.signed),
        "SHIFT": call.number("SHIFT"),
        "OFFSET": sized(bits, offset),
        "Q_W": bits,
    }


def _check_one_lane(call: Call, count: int, *widths: int) -> None:
    """Check the widths of the last `beats` streams, which have one number a row. Raises HG055."""
    streams = [(beats.bits, beats.signed, beats.lanes) for beats in (*call.inputs, *call.outputs)][-count:]
    if streams != [(bits, False, 1) for bits in widths]:
        raise broken(call.name, f"its beats of a row are {streams}, not one number of {widths} bits.")


def _moments(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("Q SHIFT OFFSET CENTERED S_BITS M_BITS BEATS ROWS")
    check_tables(call, "")
    beats, frame = _row_beats(call)
    sums, moments = call.number("S_BITS", 1), call.number("M_BITS", 1)
    _check_one_lane(call, 1, sums + moments)
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
    arguments = "M_BITS S_BITS E_BITS W_BITS STEPS AT_ONCE ROWS"
    call.only(arguments)
    check_tables(call, "constants")
    moments, sums, exponents, bits, steps, _, rows = (call.number(name, 1) for name in arguments.split())
    _check_one_lane(call, 2, moments + sums, exponents + _SIGNIFICAND + sums)
    if bits > _MAX_BITS:
        raise broken(call.name, f"W has {bits} bits; at most {_MAX_BITS} are proven.")
    parts = tables.array(call, "constants", 3, -1)
    values = [sum(int(part) << (_PART * n) for n, part in enumerate(row)) for row in parts]
    if parts.min() < 0 or parts.max() >> _PART or max(values) >> bits:
        raise broken(call.name, f"its constants have more than {bits} bits, or their parts more than {_PART}.")
    factor, addend, start = (sized(bits, value) for value in values)
    # C++ multiplies by any factor, so no shift replaces it.
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
    check_tables(call, "")
    beats, (frame,) = _row_beats(call)
    sums, exponents, sizes = (call.number(name, 1) for name in ("S_BITS", "E_BITS", "A_BITS"))
    (codes, rows), out_beats = call.inputs, call.outputs[0]
    if (rows.bits, rows.signed, rows.lanes) != (exponents + _SIGNIFICAND + sums, False, 1):
        raise broken(call.name, f"its beats of a row have {rows.lanes} numbers of {rows.bits} bits.")
    if (out_beats.bits, out_beats.signed, out_beats.lanes) != (32, False, codes.lanes):
        raise broken(call.name, f"{call.function} outputs float32 in {codes.lanes} lanes.")
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
    check_tables(call, "")
    _, _, parameters = lane_parameters(call)
    beats, frame = _row_beats(call)
    if call.outputs[0].signed:
        raise broken(call.name, "its differences are signed.")
    return instance(call, "hg_rows_max", frame, BEATS=beats, **parameters)


def _share(call: Call, tables: Tables) -> Meaning:
    call.only("SUM BEATS ROWS")
    check_tables(call, "weights numbers")
    lanes, x, _ = lane_parameters(call)
    beats, frame = _row_beats(call)
    in_beats, out_beats = call.inputs[0], call.outputs[0]
    if in_beats.signed or out_beats.signed:
        raise broken(call.name, "its elements or its shares are signed.")
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
        IN_W=in_beats.bits,
        WEIGHT_W=widths[0],
        NUMBER_W=widths[1],
        SUM_W=_bits(call, "SUM", "ap_uint"),
        OUT_W=out_beats.bits,
        FILE=stem,
    )


def _fixed_share(call: Call, tables: Tables) -> Meaning:
    call.only("SUM BEATS ROWS")
    check_tables(call, "exponentials")
    lanes, x, _ = lane_parameters(call)
    beats, frame = _row_beats(call)
    in_beats, out_beats = call.inputs[0], call.outputs[0]
    if in_beats.signed or out_beats.signed:
        raise broken(call.name, "its elements or its shares are signed.")
    values = tables.array(call, "exponentials", x.hi + 1)
    if values.min() < 0 or values.max() >> _EXPONENTIAL:
        raise broken(call.name, f"its exponentials are {values.min()}..{values.max()}, not of {_EXPONENTIAL} bits.")
    file = tables.put(f"{call.name}.exponentials", [(values.reshape(-1, 1), _EXPONENTIAL)])
    return instance(
        call,
        "hg_rows_fixed_share",
        frame,
        LANES=lanes,
        BEATS=beats,
        IN_W=in_beats.bits,
        SUM_W=_bits(call, "SUM", "ap_uint"),
        OUT_W=out_beats.bits,
        FILE=file,
    )


def _norm(call: Call, tables: Tables) -> Meaning:
    call.only("SUM SQUARES ROOT NUMBER CENTERED SHIFT WRAPS BEATS ROWS")
    check_tables(call, "weights biases")
    lanes, _, parameters = lane_parameters(call)
    beats, frame = _row_beats(call)
    if not call.outputs[0].signed:
        raise broken(call.name, "its results are unsigned.")
    weights, biases = (tables.array(call, end, beats, lanes) for end in ("weights", "biases"))
    bits = bits_of(weights), bits_of(biases)
    file = tables.put(f"{call.name}.places", [(weights, bits[0]), (biases, bits[1])])
    number = _bits(call, "NUMBER", "ap_int")
    # A mean has the type of an element, a quotient the type of the dividend.
    return instance(
        call,
        "hg_rows_norm",
        frame,
        BEATS=beats,
        **parameters,
        CENTERED=int(call.flag("CENTERED")),
        SUM_W=_bits(call, "SUM", "ap_int"),
        SQ_W=_bits(call, "SQUARES", "ap_uint"),
        MEAN_W=call.inputs[0].bits,
        ROOT_W=_bits(call, "ROOT", "ap_uint"),
        WEIGHT_W=bits[0],
        BIAS_W=bits[1],
        ACC_W=number,
        SHIFT=call.number("SHIFT"),
        BITS=number,
        WRAPS=int(call.flag("WRAPS")),
        FILE=file,
    )


#: Name of a function -> how a call of it is read as an instance.
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
    "hg::rows_fixed_share": _fixed_share,
    "hg::rows_norm": _norm,
}
