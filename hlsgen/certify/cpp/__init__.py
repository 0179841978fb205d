"""Proves that the C++ of a build computes what its model does: the text is read back, and each process is proven."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hlsgen.certify.checker import Checker
from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.cpp.cells import Process, cell_of
from hlsgen.certify.cpp.constants import Constants, read_constants
from hlsgen.certify.cpp.core_text import CoreText, read_core
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stream_contents import StreamContents
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import StreamOrder

#: Names of constants are no words of C++, or of the core.
_NAME = re.compile(r"(?!hg(?:_|$))[A-Za-z_]\w*", re.ASCII)


class CppChecker(Checker):
    """The same walk; and every process takes as many beats a frame as its arguments say."""

    processes: dict[str, Process]

    def _taken(self, cell: Cell, names: list[str]) -> list[StreamContents]:
        found = super()._taken(cell, names)
        wanted = self.processes[cell.name].beats
        if tuple(stream.beats for stream in found) != wanted:
            raise broken(cell.name, f"takes {wanted} beats a frame; there are {[s.beats for s in found]}.")
        return found


def open_core(
    folder: Path, top: str, graph: Graph, layout: StreamOrder, entries: list[dict[str, Any]]
) -> tuple[CppChecker, Tables, CoreText]:
    """The checker of the core in hls/, its constants, and its text. Raises HG055."""
    if not _NAME.fullmatch(top):
        raise broken("manifest.json", f"option top is {top!r}, no name of a function.")
    core = read_core(folder, top)
    constants = read_constants(folder / "weights.hpp", "hls/weights.hpp", f"{top.upper()}_WEIGHTS_HPP")
    processes = {name: cell_of(call, constants) for name, call in core.calls.items()}
    ends = _end(core, constants, "take_frame"), _end(core, constants, "send_frame")
    processes["send_frame"] = Process(ends[1], (ends[1].number("BEATS", 1),))
    netlist = Netlist(
        {name: processes[name].cell for name in core.calls},
        {name: core.links[name][0] for name in core.calls},
        {name: core.links[name][1] for name in core.calls},
        {name: beats.bits * beats.lanes for name, beats in core.wires.items()},
        *ends, core.links["take_frame"][1][0], core.links["send_frame"][0][0],
    )  # fmt: skip
    tables = Tables(folder, constants)
    checker = CppChecker(graph, layout, netlist, tables, entries, top)
    checker.processes = processes
    return checker, tables, core


def _end(core: CoreText, constants: dict[str, Constants], name: str) -> Cell:
    """A port as the instance that it stands for."""
    del constants
    first = name == "take_frame"
    call = core.input if first else core.output
    word, beats = (call.takes[0], call.gives[0]) if first else (call.gives[0], call.takes[0])
    call.only("WORD BEATS")
    wanted = "hg::port_in" if first else "hg::port_out", f"ap_uint<{word.bits}>"
    if (call.function, call.arguments["WORD"]) != wanted or call.tables:
        raise broken(name, f"calls {call.function} for words of {call.arguments['WORD']}.")
    parameters = {"WIDTH": beats.bits * beats.lanes, "TDATA_W": word.bits, "BEATS": call.number("BEATS", 1)}
    return Cell("hg_axis_in" if first else "hg_axis_out", name, dict(parameters), {})
