"""What each function of the C++ library does, said as an instance of the module whose contract is the same.

Processes that compute codes have models of their own, in `functions`. Those that multiply or move elements do what a
module of the Verilog library does, with the same names of parameters: the checker's models of those are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hlsgen.certify.cpp.constants import Constants
from hlsgen.certify.cpp.core_text import Call
from hlsgen.certify.netlist_reader import Cell, ParameterValue, SizedConstant, broken


@dataclass(frozen=True)
class Process:
    """A process as an instance. `beats`: of each stream that it takes, in a frame; None: as many as there are."""

    cell: Cell
    beats: tuple[int, ...]


def cell_of(call: Call, tables: dict[str, Constants]) -> Process:
    """The instance that a call stands for. Raises HG055 if the function is unknown, or its arguments are."""
    known = _KNOWN.get(call.function)
    if known is None:
        raise broken(call.name, f"calls {call.function}, of which there is no model.")
    for name in call.tables:
        if name not in tables:
            raise broken(call.name, f"takes {name}, which weights.hpp does not have.")
    return known(call, tables)


def _cell(call: Call, module: str, beats: tuple[int, ...], **parameters: ParameterValue) -> Process:
    return Process(Cell(module, call.name, parameters, {}), beats)


def sized(bits: int, value: int) -> SizedConstant:
    return SizedConstant(bits, value & ((1 << bits) - 1))


def _product(call: Call, table: Constants) -> tuple[int, int]:
    """(MODE, bits of a weight) of the product."""
    text = call.arguments.get("PRODUCT", "")
    if text == "hg::bipolar":
        mode, bits, signed = 1, 1, False
    elif text == "hg::agreements":
        mode, bits, signed = 2, 1, False
    elif match := re.fullmatch(r"hg::multiply<ap_int<(\d{1,2})>>", text):
        mode, bits, signed = 0, int(match[1]), True
    else:
        raise broken(call.name, f"its product is {text}.")
    if (table.bits, table.signed) != (bits, signed):
        raise broken(call.name, f"{table.name} has weights of {table.bits} bits, {text} others.")
    return mode, bits


def _weights(call: Call, tables: dict[str, Constants], shape: tuple[int, ...]) -> dict[str, ParameterValue]:
    """Parameters of a unit with weights."""
    if call.tables != (f"{call.name}_weights",):
        raise broken(call.name, f"takes the tables {call.tables}.")
    table = tables[call.tables[0]]
    if table.values.shape != shape:
        raise broken(call.name, f"{table.name} is {table.values.shape}, not {shape}.")
    mode, bits = _product(call, table)
    taken, sent = call.takes[0], call.gives[0]
    return {
        "X_W": taken.bits, "X_SIGNED": int(taken.signed), "W_W": bits, "MODE": mode, "ACC_W": sent.bits,
        "FILE": call.tables[0],
    }  # fmt: skip


def _mvu(call: Call, tables: dict[str, Constants]) -> Process:
    call.only("PRODUCT PE SIMD ROW_FOLDS COL_FOLDS VECTORS")
    pe, simd, rows, columns = (call.number(n, 1) for n in ("PE", "SIMD", "ROW_FOLDS", "COL_FOLDS"))
    found = _weights(call, tables, (rows * columns, pe, simd))
    return _cell(
        call, "hg_mvu", (call.number("VECTORS", 1) * columns,), SIMD=simd, PE=pe, COL_FOLDS=columns, ROW_FOLDS=rows,
        EVERY=1, **found,
    )  # fmt: skip


def _function(names: str, ends: str) -> Callable[[Call, dict[str, Constants]], Process]:
    """A function of single elements, with its model in `functions`; FOLDS and ROUNDS among its arguments."""

    def made(call: Call, tables: dict[str, Constants]) -> Process:
        del tables
        call.only(names)
        taken, sent = call.takes[0], call.gives[0]
        if call.tables != tuple(f"{call.name}_{end}" for end in ends.split()) or taken.lanes != sent.lanes:
            raise broken(call.name, f"takes the tables {call.tables}, and has {taken.lanes} and {sent.lanes} lanes.")
        rest = {n: call.number(n, -(1 << 31)) for n in call.arguments if n not in ("FOLDS", "ROUNDS")}
        folds = call.number("FOLDS", 1)
        return _cell(
            call, call.function, (folds * call.number("ROUNDS", 1),), LANES=taken.lanes, FOLDS=folds,
            IN_W=taken.bits, IN_SIGNED=int(taken.signed), OUT_W=sent.bits, TABLES=" ".join(call.tables), **rest,
        )  # fmt: skip

    return made


def _width(call: Call, tables: dict[str, Constants]) -> Process:
    del tables
    call.only("GROUP_IN GROUP_OUT ELEMENTS")
    taken, sent = call.takes[0], call.gives[0]
    if (taken.bits, taken.signed) != (sent.bits, sent.signed):
        raise broken(call.name, "takes and sends elements of other types.")
    groups = call.number("GROUP_IN", 1), call.number("GROUP_OUT", 1)
    count, rest = divmod(call.number("ELEMENTS", 1), groups[0])
    if rest:
        raise broken(call.name, f"ELEMENTS is no multiple of GROUP_IN = {groups[0]}.")
    return _cell(
        call, "hg_width", (count * -(-groups[0] // taken.lanes),), UNIT=taken.bits, IN=taken.lanes, OUT=sent.lanes,
        IN_GROUP=groups[0], OUT_GROUP=groups[1],
    )  # fmt: skip


def _fork(call: Call, tables: dict[str, Constants]) -> Process:
    del tables
    call.only("BEATS")
    taken = call.takes[0]
    if set(call.gives) != {taken}:
        raise broken(call.name, "sends other beats than it takes.")
    beats = (call.number("BEATS", 1),)
    return _cell(call, "hg_fork", beats, WIDTH=taken.bits * taken.lanes, COUNT=len(call.gives))


_KNOWN: dict[str, Callable[[Call, dict[str, Constants]], Process]] = {
    "hg::mvu": _mvu,
    "hg::width": _width,
    "hg::fork": _fork,
    "hg::thresholds": _function("STEPS FOLDS ROUNDS BASE", "thresholds"),
}
