"""Reads processes on rows as instances: Softmax, normalizations, functions of rows of integers."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, lane_parameters
from hlsgen.certify.cpp.facts import Fact, Parameters, Reader, Unit, constants, flags, numbers, streams
from hlsgen.certify.cpp.meaning import sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import broken
from hlsgen.numerics.fixed import Array

#: Bits of a significand, and of a part of a wide constant.
_SIGNIFICAND, _PART = 24, 32
#: Bits of an exponential of rows_fixed_share.
_EXPONENTIAL = 31
#: Maximum bits of a word of a table.
_WORD = 62
#: Wider numbers are rejected.
_MAX_BITS = 4096
#: Mask word of an excluded element.
_MASKED_OUT = 2
#: Beats of a frame.
_FRAME = ("BEATS ROWS",)


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


def _float_shares(call: Call, tables: Tables) -> Parameters:
    """The elements of a Softmax, whose results are float32."""
    del tables
    _, x, parameters = lane_parameters(call)
    if parameters["OUT_W"] != 32 or call.outputs[0].signed:
        raise broken(call.name, f"{call.function} outputs float32, not {call.outputs[0].bits} bits.")
    last = call.number("LAST")
    if last > x.hi - x.lo + call.function.endswith("_masked"):
        raise broken(call.name, f"LAST is {last}, more than the largest distance of its elements.")
    return {**{name: parameters[name] for name in ("LANES", "IN_W", "IN_SIGNED")}, "LAST": last}


def _powers(call: Call, tables: Tables) -> Parameters:
    """The power of each distance, which sums add, and its numerator."""
    powers, numerators = (tables.array(call, end, call.number("LAST") + 1) for end in ("powers", "numerators"))
    if not min(powers.min(), numerators.min()) >= 0:
        raise broken(call.name, "a number of its tables is negative.")
    fraction, width, words = 0, 32, _words(powers).reshape(-1, 1)
    in_order = call.arguments["SUM"] == "hg::sum_in_order"
    if not in_order:
        fraction = _fraction(call)
        width, words = fraction + 1, _fixed(call, powers, fraction)
    stem = f"{call.name}.softmax"
    tables.put(f"{stem}_power.mem", [(words, width)])
    tables.put(f"{stem}_numerator.mem", [(_words(numerators).reshape(-1, 1), 32)])
    return {"W": width, "FRACTION": fraction, "IN_ORDER": int(in_order), "LOW": 0, "M_W": 1, "FILE": stem}


def _products(call: Call, tables: Tables) -> Parameters:
    """Powers as products of two numbers: one for the upper bits of a distance, one for the lower ones."""
    last, low, bits = call.number("LAST"), call.number("LOW", 1), call.number("M_BITS", 1)
    if low >= call.inputs[0].bits or bits > _WORD:
        raise broken(call.name, f"LOW is {low}, or M_BITS {bits}.")
    fraction, stem, highs = _fraction(call), f"{call.name}.softmax", (last >> low) + 1
    mantissas, shifts = (tables.array(call, end, highs).reshape(-1, 1) for end in ("mantissas", "shifts"))
    lows = tables.array(call, "lows", 1 << low).reshape(-1, 1)
    for values, max_bits in ((mantissas, bits), (shifts, 8), (lows, bits + 1)):
        if values.min() < 0 or int(values.max()) >> max_bits:
            raise broken(call.name, f"a table has numbers of {values.min()}..{values.max()}, of {max_bits} bits.")
    tables.put(f"{stem}_high.mem", [(mantissas, bits), (shifts, 8)])
    tables.put(f"{stem}_low.mem", [(lows, bits + 1)])
    return {"W": fraction + 1, "FRACTION": fraction, "IN_ORDER": 0, "LOW": low, "M_W": bits, "FILE": stem}


def _masks(call: Call, tables: Tables) -> Parameters:
    """The mask as a memory.

    An excluded element gets the code GONE. It is at least LAST below all codes, and below the 0 of added lanes. It is
    therefore never the largest of a row, and its distance is the largest that is counted.
    """
    _, x, _ = lane_parameters(call)
    bits, excluded_code = _bits(call, "CODE", "ap_int"), call.number("GONE", -(1 << _WORD))
    if excluded_code > min(x.lo, 0) - call.number("LAST", 1):
        raise broken(call.name, f"GONE is {excluded_code}, which is not LAST below all codes of {x}.")
    if not -(1 << (bits - 1)) <= excluded_code or x.hi >= 1 << (bits - 1):
        raise broken(call.name, f"CODE is {call.arguments['CODE']}, which does not hold {excluded_code}, or not {x}.")
    masks = tables.array(call, "masks", -1, call.inputs[0].lanes)
    if masks.min() < 0 or masks.max() > _MASKED_OUT:
        raise broken(call.name, f"its mask has words of {masks.min()}..{masks.max()}.")
    tables.put(f"{call.name}.softmax_mask.mem", [(masks, 2)])
    return {"MASKS": len(masks)}


def _softmax(arguments: str, arrays: str, powers: Fact, *, masked: bool = False) -> Unit:
    """A Softmax, with or without a mask."""
    return Unit(
        "hg_softmax",
        f"{arguments}{' CODE GONE' if masked else ''} BEATS ROWS",
        _FRAME,
        (_float_shares, numbers("BEATS"), powers, *([_masks] if masked else []), constants(TINY=1)),
        f"{arrays}{' masks' if masked else ''}",
    )


def _fraction(call: Call) -> int:
    """Fraction bits of exact sums of a row, and of powers of at most 1. Raises HG055."""
    count = call.inputs[0].lanes * call.number("BEATS", 1)
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


# --------------------------------------------------------------------------- normalization


def _integers(call: Call, tables: Tables) -> Parameters:
    """The parameters that turn codes into integers."""
    bits = _bits(call, "Q", "ap_int")
    offset = call.number("OFFSET", -(1 << (bits - 1)))
    if offset >= 1 << (bits - 1):
        raise broken(call.name, f"Q is {call.arguments['Q']}, OFFSET is {offset}.")
    codes = streams(lanes="LANES=s", bits="X_W=s", signs="X_SIGNED=s")
    return {**codes(call, tables), "SHIFT": call.number("SHIFT"), "OFFSET": sized(bits, offset), "Q_W": bits}


def _one_lane(*widths: str) -> Fact:
    """Check the last streams, which have one number a row. widths: arguments whose sum is the bits of a stream."""

    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        actual = [(beats.bits, beats.signed, beats.lanes) for beats in (*call.inputs, *call.outputs)][-len(widths) :]
        expected = [sum(int(n) if n.isdecimal() else call.number(n, 1) for n in names.split()) for names in widths]
        if actual != [(bits, False, 1) for bits in expected]:
            raise broken(call.name, f"its beats of a row are {actual}, not one number of {expected} bits.")
        return {}

    return fact


def _root_constants(call: Call, tables: Tables) -> Parameters:
    call.number("AT_ONCE", 1)
    bits = call.number("W_BITS", 1)
    if bits > _MAX_BITS:
        raise broken(call.name, f"W has {bits} bits; at most {_MAX_BITS} are proven.")
    parts = tables.array(call, "constants", 3, -1)
    values = [sum(int(part) << (_PART * n) for n, part in enumerate(row)) for row in parts]
    if parts.min() < 0 or parts.max() >> _PART or max(values) >> bits:
        raise broken(call.name, f"its constants have more than {bits} bits, or their parts more than {_PART}.")
    return dict(zip(("FACTOR", "ADDEND", "START"), (sized(bits, value) for value in values), strict=True))


def _scaled(call: Call, tables: Tables) -> Parameters:
    """Check the streams of hg::norm_scale."""
    del tables
    (codes, rows), out_beats = call.inputs, call.outputs[0]
    expected = call.number("E_BITS", 1) + _SIGNIFICAND + call.number("S_BITS", 1)
    if (rows.bits, rows.signed, rows.lanes) != (expected, False, 1):
        raise broken(call.name, f"its beats of a row have {rows.lanes} numbers of {rows.bits} bits.")
    if (out_beats.bits, out_beats.signed, out_beats.lanes) != (32, False, codes.lanes):
        raise broken(call.name, f"{call.function} outputs float32 in {codes.lanes} lanes.")
    return {}


# --------------------------------------------------------------------------- rows of integers


def _elements(call: Call, tables: Tables) -> Parameters:
    del tables
    return lane_parameters(call)[2]


def _unsigned(call: Call, tables: Tables) -> Parameters:
    """The elements and shares of a row. Raises HG055 if they are signed."""
    parameters = _elements(call, tables)
    if call.inputs[0].signed or call.outputs[0].signed:
        raise broken(call.name, "its elements or its shares are signed.")
    return {name: parameters[name] for name in ("LANES", "IN_W", "OUT_W")}


def _output_sign(signed: bool) -> Fact:
    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        if call.outputs[0].signed != signed:
            raise broken(call.name, f"its results are {'un' * signed}signed.")
        return {}

    return fact


def _widths(kind: str, names: str) -> Fact:
    """Bits of arguments that are types; `PARAMETER=ARGUMENT`."""
    pairs = [pair.split("=") for pair in names.split()]
    return lambda call, tables: {parameter: _bits(call, name, kind) for parameter, name in pairs}


def _entries(call: Call, tables: Tables, suffix: str) -> Array:
    """An array with a nonnegative number for each element. Raises HG055."""
    values = tables.array(call, suffix, 1 << call.inputs[0].bits)
    if values.min() < 0:
        raise broken(call.name, f"some of its {suffix} are negative.")
    return values.reshape(-1, 1)


def _share_tables(call: Call, tables: Tables) -> Parameters:
    stem, widths = f"{call.name}.share", []
    for n, end in enumerate(("weights", "numbers")):
        values = _entries(call, tables, end)
        widths.append(max(1, int(values.max()).bit_length()))
        tables.put(f"{stem}_{n:04d}.mem", [(values, widths[-1])])
    return {"WEIGHT_W": widths[0], "NUMBER_W": widths[1], "FILE": stem}


def _exponentials(call: Call, tables: Tables) -> Parameters:
    values = _entries(call, tables, "exponentials")
    if values.max() >> _EXPONENTIAL:
        raise broken(call.name, f"its exponentials are up to {values.max()}, not of {_EXPONENTIAL} bits.")
    return {"FILE": tables.put(f"{call.name}.exponentials", [(values, _EXPONENTIAL)])}


def _affine(call: Call, tables: Tables) -> Parameters:
    """Weights and biases of the elements of a row. A mean has the type of an element."""
    shape = call.number("BEATS", 1), call.inputs[0].lanes
    weights, biases = (tables.array(call, end, *shape) for end in ("weights", "biases"))
    bits = bits_of(weights), bits_of(biases)
    file = tables.put(f"{call.name}.places", [(weights, bits[0]), (biases, bits[1])])
    return {"MEAN_W": call.inputs[0].bits, "WEIGHT_W": bits[0], "BIAS_W": bits[1], "FILE": file}


_SUMMED = ("SUM LAST", "powers numerators", _powers)
_MULTIPLIED = ("SUM LAST LOW M_BITS", "mantissas shifts lows", _products)

#: Name of a function -> how a call of it is read as an instance.
ROWS: dict[str, Reader] = {
    "hg::softmax": _softmax(*_SUMMED),
    "hg::softmax_masked": _softmax(*_SUMMED, masked=True),
    "hg::softmax_products": _softmax(*_MULTIPLIED),
    "hg::softmax_products_masked": _softmax(*_MULTIPLIED, masked=True),
    "hg::norm_moments": Unit(
        "hg_norm_moments",
        "Q SHIFT OFFSET CENTERED S_BITS M_BITS BEATS ROWS",
        _FRAME,
        (
            _integers,
            _one_lane("S_BITS M_BITS"),
            numbers("BEATS S_W=S_BITS M_W=M_BITS"),
            flags("CENTERED"),
            constants(EVERY=1),
        ),
    ),
    "hg::norm_root": Unit(
        "hg_norm_root",
        "M_BITS S_BITS E_BITS W_BITS STEPS AT_ONCE ROWS",
        ("ROWS",),
        (
            numbers("M_W=M_BITS S_W=S_BITS E_W=E_BITS W_W=W_BITS STEPS"),
            _one_lane("M_BITS S_BITS", f"E_BITS {_SIGNIFICAND} S_BITS"),
            _root_constants,
            constants(WAYS=1, GAP=1),
        ),
        "constants",
    ),
    "hg::norm_scale": Unit(
        "hg_norm_scale",
        "Q SHIFT OFFSET S_BITS E_BITS A_BITS BIAS BEATS ROWS",
        ("BEATS ROWS", "ROWS"),
        (_scaled, _integers, numbers("BEATS S_W=S_BITS E_W=E_BITS A_W=A_BITS"), numbers("BIAS", 0)),
    ),
    "hg::rows_max": Unit("hg_rows_max", "BEATS ROWS", _FRAME, (_elements, _output_sign(False), numbers("BEATS"))),
    "hg::rows_share": Unit(
        "hg_rows_share",
        "SUM BEATS ROWS",
        _FRAME,
        (_unsigned, numbers("BEATS"), _widths("ap_uint", "SUM_W=SUM"), _share_tables),
        "weights numbers",
    ),
    "hg::rows_fixed_share": Unit(
        "hg_rows_fixed_share",
        "SUM BEATS ROWS",
        _FRAME,
        (_unsigned, numbers("BEATS"), _widths("ap_uint", "SUM_W=SUM"), _exponentials),
        "exponentials",
    ),
    # A quotient has the type of the dividend.
    "hg::rows_norm": Unit(
        "hg_rows_norm",
        "SUM SQUARES ROOT NUMBER CENTERED SHIFT WRAPS BEATS ROWS",
        _FRAME,
        (
            _elements,
            _output_sign(True),
            numbers("BEATS"),
            numbers("SHIFT", 0),
            flags("CENTERED WRAPS"),
            _widths("ap_int", "SUM_W=SUM ACC_W=NUMBER BITS=NUMBER"),
            _widths("ap_uint", "SQ_W=SQUARES ROOT_W=ROOT"),
            _affine,
        ),
        "weights biases",
    ),
}
