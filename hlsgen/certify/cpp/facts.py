"""A row of the tables of library functions, and the facts that rows consist of.

A row reads a call as an instance of the module with the same contract. Each fact checks arguments, streams or arrays
of the call, and returns the parameters of the module that follow from them. All raise HG055.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hlsgen.certify.cpp.codes import check_tables
from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.cpp.tokens import Beats
from hlsgen.certify.netlist_reader import ParameterValue, SizedConstant, broken

Parameters = Mapping[str, ParameterValue]
Fact = Callable[[Call, Tables], Parameters]
#: Reads a call as an instance.
Reader = Callable[[Call, Tables], Meaning]

#: Arguments with the geometry of windows.
IMAGE = "HEIGHT WIDTH OUT_H OUT_W KH KW SH SW DH DW PT PL"


@dataclass(frozen=True)
class Unit:
    """A library function as a module.

    arguments: of the template, in order. beats: of each input stream, in a frame, as sizes. tables: suffixes of the
    arrays, in order.

    A size is a product: names of arguments, IN and OUT for the lanes of the streams. `A/B` is a quotient, rounded up.
    """

    module: str
    arguments: str
    beats: tuple[str, ...]
    facts: tuple[Fact, ...]
    tables: str = ""

    def __call__(self, call: Call, tables: Tables) -> Meaning:
        call.only(self.arguments)
        check_tables(call, self.tables)
        if len(call.inputs) != len(self.beats) or (len(call.outputs) != 1 and self.module != "hg_fork"):
            raise broken(call.name, f"has {len(call.inputs)} inputs and {len(call.outputs)} outputs.")
        parameters: dict[str, ParameterValue] = {}
        for fact in self.facts:
            parameters |= fact(call, tables)
        return instance(call, self.module, tuple(size(call, beats) for beats in self.beats), **parameters)


def size(call: Call, product: str) -> int:
    """A size of a call, as `Unit` describes sizes."""
    return math.prod(_factor(call, word) for word in product.split())


def _factor(call: Call, word: str) -> int:
    name, _, divisor = word.partition("/")
    if divisor:
        return -(-_factor(call, name) // _factor(call, divisor))
    if name in ("IN", "OUT"):
        return (call.inputs if name == "IN" else call.outputs)[0].lanes
    return call.number(name, 1)


def _pairs(text: str) -> list[tuple[str, str]]:
    """(parameter, source) of each word `PARAMETER=SOURCE`; a word alone is both."""
    return [(parameter, source or parameter) for parameter, _, source in (w.partition("=") for w in text.split())]


# --------------------------------------------------------------------------- arguments


def constants(**parameters: ParameterValue) -> Fact:
    """Parameters that are the same in each call."""
    return lambda call, tables: parameters


def numbers(names: str, minimum: int = 1) -> Fact:
    """Arguments that are integers, at least `minimum`; `PARAMETER=ARGUMENT` where the names differ."""
    return lambda call, tables: {parameter: call.number(name, minimum) for parameter, name in _pairs(names)}


def only_ones(names: str) -> Fact:
    """Arguments that must be 1."""

    def fact(call: Call, tables: Tables) -> Parameters:
        if any(call.number(name) != 1 for name in names.split()):
            raise broken(call.name, f"not all of {names} are 1.")
        return {}

    return fact


def flags(names: str) -> Fact:
    """Arguments that are true or false."""
    return lambda call, tables: {name: int(call.flag(name)) for name in names.split()}


def above_one(name: str, names: str) -> Fact:
    """Arguments that are parameters only if the first one is more than 1."""

    def fact(call: Call, tables: Tables) -> Parameters:
        parameters = numbers(names)(call, tables)
        return parameters if call.number(name, 1) > 1 else {}

    return fact


def code_of_input(name: str) -> Fact:
    """An argument that is a code of the input elements, in their bits."""

    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        in_beats, value = call.inputs[0], call.number(name, -(1 << 62))
        if not -(1 << (in_beats.bits - 1)) * in_beats.signed <= value < 1 << (in_beats.bits - in_beats.signed):
            raise broken(call.name, f"{name} is {value}, no code of its input.")
        return {name: sized(in_beats.bits, value)}

    return fact


def factors_of(call: Call, names: str) -> dict[str, int]:
    """Arguments that fit the type FACTOR."""
    values = {name: call.number(name, -(1 << 40)) for name in names.split()}
    match = re.fullmatch(r"ap_int<([1-9]\d?)>", call.arguments["FACTOR"])
    bits = int(match[1]) if match else 1
    if any(not -(1 << (bits - 1)) <= v < 1 << (bits - 1) for v in values.values()):
        raise broken(call.name, f"FACTOR is {call.arguments['FACTOR']}, for {values}.")
    return values


def list_of(call: Call, name: str) -> list[int]:
    """An argument that is a list."""
    match = re.fullmatch(r"hg::list<(\d{1,9}(?:,\d{1,9})*)>", call.arguments[name])
    if match is None:
        raise broken(call.name, f"{name} is {call.arguments[name][:60]}.")
    return [int(value) for value in match[1].split(",")]


def packed(values: list[int]) -> SizedConstant:
    """Numbers of 32 bits; the first is in the low bits."""
    return SizedConstant(32 * len(values), sum(value << (32 * n) for n, value in enumerate(values)))


def window(call: Call, tables: Tables) -> Parameters:
    """The geometry of a window, and the code outside of the image."""
    return {**numbers(IMAGE, 0)(call, tables), **code_of_input("PAD")(call, tables)}


# --------------------------------------------------------------------------- streams


def streams(*, bits: str = "", lanes: str = "", words: str = "", signs: str = "") -> Fact:
    """Properties of streams: s or a is the first input, b the second one, m the output; `PARAMETER=STREAM`.

    words: bits of a beat.
    """
    properties: tuple[tuple[str, Callable[[Beats], int]], ...] = (
        (bits, lambda beats: beats.bits),
        (lanes, lambda beats: beats.lanes),
        (words, lambda beats: beats.bits * beats.lanes),
        (signs, lambda beats: int(beats.signed)),
    )

    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        by_name = {"s": call.inputs[0], "a": call.inputs[0], "b": call.inputs[-1], "m": call.outputs[0]}
        return {p: read(by_name[stream]) for text, read in properties for p, stream in _pairs(text)}

    return fact


#: Signs of two operands.
SIGNS = streams(signs="A_SIGNED=a B_SIGNED=b")


def check_lanes(in_lanes: str, out_lanes: str) -> Fact:
    """Check the lanes of the first input and of the output, given as sizes."""

    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        actual = call.inputs[0].lanes, call.outputs[0].lanes
        expected = size(call, in_lanes), size(call, out_lanes)
        if actual != expected:
            raise broken(call.name, f"its beats have {actual[0]} and {actual[1]} lanes, not {expected}.")
        return {}

    return fact


def check_divides(name: str, product: str) -> Fact:
    """Check that an argument divides a size."""

    def fact(call: Call, tables: Tables) -> Parameters:
        del tables
        if size(call, product) % call.number(name, 1):
            raise broken(call.name, f"{product} is {size(call, product)}, no multiple of {name}.")
        return {}

    return fact


def same_lanes(call: Call, tables: Tables) -> Parameters:
    """Check that all streams have the same lanes."""
    del tables
    lanes = [beats.lanes for beats in (*call.inputs, *call.outputs)]
    if len(set(lanes)) > 1:
        raise broken(call.name, f"its streams have {lanes} lanes.")
    return {}


def same_type(call: Call, tables: Tables) -> Parameters:
    """Check that elements keep their type."""
    del tables
    if len({(beats.bits, beats.signed) for beats in (*call.inputs, *call.outputs)}) > 1:
        raise broken(call.name, "its inputs and its output have different types of elements.")
    return {}


def same_beats(call: Call, tables: Tables) -> Parameters:
    """Check that beats keep their type."""
    del tables
    if set(call.outputs) != {call.inputs[0]}:
        raise broken(call.name, "its output has other beats than its input.")
    return {}
