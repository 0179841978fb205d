"""The table of all library functions, with the rows of those that multiply, pool or move elements."""

from __future__ import annotations

import math
import re

from hlsgen.certify.cpp import facts
from hlsgen.certify.cpp.codes import CODES, check_tables
from hlsgen.certify.cpp.facts import SIGNS, Fact, Parameters, Reader, Unit, constants, numbers, streams
from hlsgen.certify.cpp.floats import FLOATS
from hlsgen.certify.cpp.lookups import LOOKUPS
from hlsgen.certify.cpp.meaning import Meaning, instance
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.rows import ROWS
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import ParameterValue, broken


def meaning_of(call: Call, tables: Tables) -> Meaning:
    """The instance that a call means. Raises HG055 if the function or its arguments are unknown."""
    read = KNOWN.get(call.function)
    if read is None:
        raise broken(call.name, f"calls {call.function}, which has no model.")
    return read(call, tables)


# --------------------------------------------------------------------------- products and reductions


def _weights(*shape: str) -> Fact:
    """Weights with this shape, given as sizes, and the operands of their products."""

    def fact(call: Call, tables: Tables) -> Parameters:
        tables.array(call, "weights", *(facts.size(call, extent) for extent in shape))
        weights, text = tables.constants[call.tables[0]], call.arguments["PRODUCT"]
        if text in ("hg::bipolar", "hg::agreements"):
            mode, bits, signed = 1 if text == "hg::bipolar" else 2, 1, False
        elif text == "hg::multiply":
            mode, bits, signed = 0, weights.bits, True
        else:
            raise broken(call.name, f"its product is {text}.")
        if (weights.bits, weights.signed) != (bits, signed):
            raise broken(call.name, f"{weights.name} has weights of {weights.bits} bits, {text} others.")
        operands = streams(bits="X_W=s ACC_W=m", signs="X_SIGNED=s")(call, tables)
        return {**operands, "W_W": bits, "MODE": mode, "FILE": call.tables[0]}

    return fact


def _codes_of_factors(call: Call, tables: Tables) -> Parameters:
    """How the codes of two tensors become factors. Integers in C++ are as wide as their values."""
    del tables
    factors, (a, b), out_beats = facts.factors_of(call, "FA OA FB OB"), call.inputs, call.outputs[0]
    shifts = [factors[name].bit_length() - 1 for name in ("FA", "FB")]
    if [1 << max(s, 0) for s in shifts] != [factors["FA"], factors["FB"]]:
        raise broken(call.name, f"its factors are {factors}.")
    pe, simd = call.number("PE", 1), call.number("SIMD", 1)
    if (a.lanes, b.lanes, out_beats.lanes) != (simd, pe * simd, pe):
        raise broken(call.name, f"its streams have {a.lanes}, {b.lanes} and {out_beats.lanes} lanes.")
    offsets = {"A_OFFSET": factors["OA"], "B_OFFSET": factors["OB"]}
    return {"A_SHIFT": shifts[0], "B_SHIFT": shifts[1], **offsets, "X_W": 64, "X_SIGNED": 1, "W_W": 64}


def _all_windows(call: Call, tables: Tables) -> Parameters:
    """Check that an image has as many adjacent windows as fit."""
    del tables
    for windows, size, kernel in (("OUT_H", "HEIGHT", "KH"), ("OUT_W", "WIDTH", "KW")):
        expected = call.number(size, 1) // call.number(kernel, 1)
        if call.number(windows, 1) != expected:
            raise broken(call.name, f"{windows} is {call.number(windows)}, but {expected} windows fit.")
    return {}


def _reduction(call: Call, tables: Tables) -> Parameters:
    text = call.arguments["REDUCE"]
    if text not in ("hg::maximum", "hg::total"):
        raise broken(call.name, f"it reduces by {text}.")
    if call.inputs[0].signed != call.outputs[0].signed:
        raise broken(call.name, "its results have another sign than its elements.")
    elements = streams(bits="X_W=s ACC_W=m", signs="X_SIGNED=s", lanes="LANES=m")
    return {**elements(call, tables), "SUM": int(text == "hg::total")}


_EVERY = constants(EVERY=1)
_SAME_LANES = facts.check_lanes("OUT", "OUT")

_PRODUCTS: dict[str, Reader] = {
    "hg::mvu": Unit(
        "hg_mvu",
        "PRODUCT PE SIMD ROW_FOLDS COL_FOLDS VECTORS",
        ("VECTORS COL_FOLDS",),
        (
            numbers("PE SIMD ROW_FOLDS COL_FOLDS"),
            facts.check_lanes("SIMD", "PE"),
            _weights("ROW_FOLDS COL_FOLDS", "PE", "SIMD"),
            _EVERY,
        ),
        "weights",
    ),
    "hg::mvu_beside": Unit(
        "hg_mvu",
        "PRODUCT WINDOWS TAPS PE SIMD BEATS",
        ("BEATS",),
        (
            numbers("PE SIMD"),
            facts.above_one("WINDOWS", "WINDOWS TAPS"),
            facts.check_lanes("WINDOWS SIMD", "WINDOWS PE"),
            _weights("", "PE", "SIMD"),
            constants(COL_FOLDS=1, ROW_FOLDS=1),
            _EVERY,
        ),
        "weights",
    ),
    "hg::dynamic_mvu": Unit(
        "hg_dynmvu",
        "FACTOR PE SIMD FOLDS ROWS_FIRST FA OA FB OB SUMS",
        ("SUMS FOLDS", "SUMS FOLDS"),
        (
            numbers("PE SIMD FOLDS"),
            facts.flags("ROWS_FIRST"),
            _codes_of_factors,
            streams(bits="A_W=a B_W=b ACC_W=m"),
            SIGNS,
            _EVERY,
        ),
    ),
    "hg::grouped": Unit(
        "hg_dwmvu",
        "PRODUCT TAPS ROWS COLUMNS FOLDS WINDOWS",
        ("WINDOWS FOLDS",),
        (
            numbers("TAPS FOLDS"),
            facts.above_one("ROWS", "ROWS"),
            facts.above_one("COLUMNS", "COLUMNS"),
            streams(lanes="PE=m"),
            facts.check_divides("ROWS", "OUT"),
            facts.check_lanes("OUT/ROWS TAPS COLUMNS", "OUT"),
            _weights("FOLDS", "OUT", "TAPS COLUMNS"),
            _EVERY,
        ),
        "weights",
    ),
    "hg::conv": Unit(
        "hg_conv",
        f"PRODUCT {facts.IMAGE} GROUPS FOLDS REPEAT DEPTH PAD",
        ("HEIGHT WIDTH GROUPS FOLDS",),
        (
            facts.window,
            numbers("GROUPS FOLDS REPEAT DEPTH"),
            streams(lanes="SIMD=s PE=m"),
            _weights("GROUPS REPEAT KH KW FOLDS", "OUT", "IN"),
            _EVERY,
        ),
        "weights",
    ),
    "hg::depthwise": Unit(
        "hg_dwconv",
        f"PRODUCT {facts.IMAGE} GROUPS FOLDS REPEAT DEPTH PAD",
        ("HEIGHT WIDTH GROUPS",),
        (
            facts.window,
            numbers("GROUPS DEPTH"),
            facts.only_ones("FOLDS REPEAT"),
            streams(lanes="PE=m"),
            _SAME_LANES,
            _weights("GROUPS KH KW", "OUT"),
            constants(REPEAT=1),
        ),
        "weights",
    ),
    "hg::pool": Unit(
        "hg_pool",
        f"REDUCE {facts.IMAGE} GROUPS DEPTH PAD",
        ("HEIGHT WIDTH GROUPS",),
        (facts.window, numbers("GROUPS DEPTH"), _SAME_LANES, _reduction),
    ),
    "hg::reduce": Unit(
        "hg_reduce",
        "REDUCE HEIGHT WIDTH KH KW OUT_H OUT_W FOLDS",
        ("HEIGHT WIDTH FOLDS",),
        (numbers("HEIGHT WIDTH KH KW FOLDS"), _all_windows, _SAME_LANES, _reduction),
    ),
    "hg::pool_tree": Unit(
        "hg_pool_tree",
        "REDUCE TAPS BEATS",
        ("BEATS",),
        (numbers("TAPS"), facts.check_lanes("OUT TAPS", "OUT"), _reduction),
    ),
}


# --------------------------------------------------------------------------- moves


def _regroup(call: Call, tables: Tables) -> Meaning:
    """hg::widen, hg::narrow and hg::gearbox."""
    in_beats, out_beats, gearbox = call.inputs[0], call.outputs[0], call.function == "hg::gearbox"
    call.only("STEP GROUP_IN GROUP_OUT GROUPS_OUT" if gearbox else "GROUP GROUPS")
    check_tables(call, "")
    facts.same_type(call, tables)
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
    widths = streams(bits="UNIT=s", lanes="IN=s OUT=m")(call, tables)
    return instance(call, "hg_width", beats, **widths, IN_GROUP=in_group, OUT_GROUP=out_group)


def _ranges(call: Call, tables: Tables) -> Parameters:
    """The ranges of rows, columns and words that hg_take keeps."""
    del tables
    parameters: dict[str, ParameterValue] = {}
    for name, extent, axis in (("ROWS", "HEIGHT", "Y"), ("COLUMNS", "COLUMNS", "X"), ("FOLDS", "FOLDS", "C")):
        match = re.fullmatch(r"hg::range<(\d{1,9}),(\d{1,9}),(\d{1,9}),(\d{1,9})>", call.arguments[name])
        if match is None:
            raise broken(call.name, f"{name} is {call.arguments[name][:60]}.")
        parameters |= dict(zip((extent, f"{axis}0", f"{axis}1", f"{axis}S"), map(int, match.groups()), strict=True))
    return parameters


def _places(call: Call, tables: Tables) -> Parameters:
    """The elements that hg_pick keeps, one in each lane of the output."""
    del tables
    places = facts.list_of(call, "PLACES")
    if call.outputs[0].lanes != len(places):
        raise broken(call.name, f"its output has {call.outputs[0].lanes} lanes, PLACES {len(places)}.")
    return {"MAP": facts.packed(places)}


def _walk(call: Call, tables: Tables) -> Parameters:
    """The nested loops in whose order hg_gather reads a block."""
    del tables
    extents, strides = facts.list_of(call, "EXTENTS"), facts.list_of(call, "STRIDES")
    if len(extents) != len(strides):
        raise broken(call.name, "its loops have no strides.")
    return {"DIMS": len(extents), "EXTENTS": facts.packed(extents), "STRIDES": facts.packed(strides)}


def _packed_bits(call: Call, tables: Tables) -> Parameters:
    """Check that an element of the result has the bits of both operands."""
    del tables
    (a, b), out = call.inputs, call.outputs[0]
    if out.bits != a.bits + b.bits:
        raise broken(call.name, f"its results have {out.bits} bits, its operands {a.bits} and {b.bits}.")
    return {}


def _join(module: str, names: str) -> Unit:
    """hg::join_sum or hg::join_product, with its constants of type FACTOR."""
    return Unit(
        module,
        f"FACTOR {names} BEATS",
        ("BEATS", "BEATS"),
        (
            facts.same_lanes,
            streams(bits="A_W=a B_W=b OUT_W=m", lanes="LANES=m"),
            SIGNS,
            lambda call, tables: facts.factors_of(call, names),
        ),
    )


_MOVES: dict[str, Reader] = {
    "hg::widen": _regroup,
    "hg::narrow": _regroup,
    "hg::gearbox": _regroup,
    "hg::sliding": Unit(
        "hg_unfold",
        f"{facts.IMAGE} FOLDS ROWS COLUMNS PIXELS WINDOWS PAD",
        ("HEIGHT WIDTH/PIXELS FOLDS",),
        (
            facts.window,
            numbers("FOLDS ROWS COLUMNS PIXELS WINDOWS"),
            facts.check_divides("PIXELS", "IN"),
            facts.check_lanes("IN", "KH KW WINDOWS IN/PIXELS"),
            facts.same_type,
            streams(bits="UNIT=s"),
            lambda call, tables: {"LANES": facts.size(call, "IN/PIXELS")},
        ),
    ),
    "hg::fork": Unit(
        "hg_fork",
        "BEATS",
        ("BEATS",),
        (facts.same_beats, streams(words="WIDTH=s"), lambda call, tables: {"COUNT": len(call.outputs)}),
    ),
    "hg::pick": Unit(
        "hg_pick",
        "PLACES BEATS",
        ("BEATS",),
        (facts.same_type, _places, streams(bits="UNIT=s", lanes="IN=s OUT=m")),
    ),
    "hg::take": Unit(
        "hg_take", "ROWS COLUMNS FOLDS BEATS", ("BEATS",), (facts.same_beats, _ranges, streams(words="WIDTH=s"))
    ),
    "hg::pad": Unit(
        "hg_pad",
        "HEIGHT WIDTH WORDS TOP LEFT BOTTOM RIGHT VALUE",
        ("HEIGHT WIDTH WORDS",),
        (
            facts.same_type,
            facts.same_lanes,
            streams(bits="UNIT=s", lanes="LANES=s"),
            numbers("HEIGHT COLUMNS=WIDTH FOLDS=WORDS"),
            numbers("TOP LEFT BOTTOM RIGHT", 0),
            facts.code_of_input("VALUE"),
        ),
    ),
    "hg::gather": Unit(
        "hg_gather",
        "BLOCK BLOCKS EXTENTS STRIDES",
        ("BLOCK BLOCKS",),
        (facts.same_beats, streams(words="WIDTH=s"), numbers("BLOCK"), _walk),
    ),
    "hg::concat": Unit(
        "hg_concat",
        "BEATS_A BEATS_B TURNS",
        ("BEATS_A TURNS", "BEATS_B TURNS"),
        (
            facts.same_lanes,
            streams(bits="UNIT_A=a UNIT_B=b UNIT_OUT=m", lanes="LANES=m"),
            SIGNS,
            numbers("BEATS_A BEATS_B"),
        ),
    ),
    "hg::beside": Unit(
        "hg_beside",
        "LANES_A LANES_B PIXELS BEATS",
        ("BEATS", "BEATS"),
        (streams(bits="UNIT_A=a UNIT_B=b UNIT_OUT=m"), SIGNS, numbers("LANES_A LANES_B PIXELS")),
    ),
    "hg::join_sum": _join("hg_join_sum", "FA FB"),
    "hg::join_product": _join("hg_join_product", "ZA ZB"),
    "hg::join_pair": Unit(
        "hg_join_pair",
        "BEATS",
        ("BEATS", "BEATS"),
        (facts.same_lanes, streams(bits="A_W=a B_W=b", lanes="LANES=m"), _packed_bits),
    ),
    "hg::argmax": Unit(
        "hg_argmax",
        "BEATS VECTORS",
        ("BEATS VECTORS",),
        (
            facts.check_lanes("IN", ""),
            streams(lanes="LANES=s", bits="IN_W=s INDEX_W=m", signs="IN_SIGNED=s"),
            numbers("BEATS"),
        ),
    ),
}

#: Name of a function -> how a call of it is read as an instance.
KNOWN: dict[str, Reader] = {**_PRODUCTS, **_MOVES, **CODES, **LOOKUPS, **FLOATS, **ROWS}
