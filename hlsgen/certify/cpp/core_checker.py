"""Proves that the C++ of a build computes its model. The text is read back, and each process is proven."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from hlsgen.certify import loops, schema
from hlsgen.certify.checker import Checker, hardware_layers
from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.cpp.cells import meaning_of
from hlsgen.certify.cpp.constants import read_constants
from hlsgen.certify.cpp.core_text import CoreText, read_core
from hlsgen.certify.cpp.meaning import Meaning
from hlsgen.certify.cpp.process_text import FLAG, Call
from hlsgen.certify.cpp.states import frame_meanings, state_meanings
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.cpp.tokens import Beats
from hlsgen.certify.entries import check_entries, read_json
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.port_wiring import SINGLE, Labels, frame_on, port_options
from hlsgen.certify.quantizers import Summary
from hlsgen.certify.removed_elements import without_removed
from hlsgen.certify.rtl_files import check_model, sha256
from hlsgen.certify.stream_contents import StreamContents
from hlsgen.diagnostics import Collector
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import StreamOrder, lay_out
from hlsgen.library import headers_used, library_text, licence_line

_NAME = re.compile(r"(?!hg(?:_|$))[A-Za-z_]\w*", re.ASCII)
#: Files of a core in addition to the headers of the library.
_CORE_FILES = ("{top}.cpp", "{top}.hpp", "weights.hpp")


class CppChecker(Checker):
    """The same walk as in Verilog. Each process also consumes as many beats a frame as its arguments state."""

    meanings: dict[str, Meaning]

    def _consume(self, cell: Cell, names: list[str]) -> list[StreamContents]:
        streams = super()._consume(cell, names)
        beats = self.meanings[cell.name].beats
        # A memory consumes its second stream at the end of the walk.
        all_names = self.network.streams_in.get(cell.name, tuple(names))
        expected_beats = tuple(dict(zip(all_names, beats, strict=True))[name] for name in names)
        if tuple(stream.beats for stream in streams) != expected_beats:
            raise broken(
                cell.name, f"consumes {expected_beats} beats a frame; its streams have {[s.beats for s in streams]}."
            )
        return streams


def check_cpp(
    directory: Path,
    manifest: dict[str, Any],
    graph: Graph,
    collector: Collector,
    summaries: list[Summary],
    labels: Labels = SINGLE,
) -> None:
    """Prove the core in hls/ and append a summary of each proven layer. Raises HG055, or collects it."""
    folder, certificate = directory / "hls", read_json(directory / "hls" / "certificate.json")
    if certificate is None:
        raise broken("hls/certificate.json", "cannot be read as JSON: an object, without equal keys.")
    schema.check(certificate, "cpp")
    graph = without_removed(graph, certificate)
    layout = lay_out(graph)
    top, entries = manifest["options"].get("top"), certificate["layers"]
    if not isinstance(top, str) or not _NAME.fullmatch(top):
        raise broken("manifest.json", f"option top is {top!r}, no name of a function.")
    check_entries(entries, graph)
    states: list[dict[str, Any]] = certificate.get("states", [])
    if bool(states) != bool(graph.states):
        raise broken("hls/certificate.json", "has instances of states, and the model has none, or the other way round.")
    starts_by = port_options(manifest["options"]).starts_by
    checker, tables, core = open_core(folder, top, graph, layout, entries, labels, tuser=starts_by == "tuser")
    check_model(directory, "hls/certificate.json", certificate, graph.model.runtime, collector)
    with collector.catching():
        _check_files(directory, top, certificate, core, manifest.get("files"), collector)
    _check_listed([*entries, {"instances": states}], core)
    checker.start()
    checker.start_states([x["instance"] for x in states])
    for i, entry in zip(hardware_layers(graph), entries, strict=True):
        proof = checker.layer(i, entry)
        with collector.catching():
            summary = proof()
            process = checker.last_instance.get(summary.layer)
            summaries.append(replace(summary, module=core.calls[process].function) if process else summary)
    checker.end()
    if set(tables.constants) - tables.used and not collector.errors:
        collector.error("HG055", "hls/weights.hpp", f"{min(set(tables.constants) - tables.used)} is never used.")


def _check_files(
    directory: Path, top: str, certificate: dict[str, Any], core: CoreText, listed: Any, collector: Collector
) -> None:
    """Check that the files of the core are the ones that the certificate lists, and that headers are as installed.

    `listed`: the hashes of all files of the build in the manifest.
    """
    headers = headers_used({f"{name}.hpp" for name in (*core.headers, "ports")})
    expected = {f"hls/{name.format(top=top)}" for name in _CORE_FILES} | {f"hls/hg/{name}" for name in headers}
    if set(certificate["cpp"]) != expected:
        odd = sorted(set(certificate["cpp"]) ^ expected)
        raise broken("hls/certificate.json", f"lists other files than the core consists of: {odd[:4]}.")
    hashes = {**certificate["cpp"], "hls/certificate.json": sha256(directory / "hls" / "certificate.json")}
    if not isinstance(listed, dict) or any(listed.get(name) != value for name, value in hashes.items()):
        collector.error("HG055", "manifest.json", "lists other hashes of the core than hls/certificate.json.")
    present = {f"hls/hg/{path.name}" for path in (directory / "hls" / "hg").glob("*")}
    for name in sorted(present - expected):
        collector.error("HG055", name, "is included by nothing.", "Remove it: a compiler may find it first.")
    for name in sorted(expected):
        path = directory / name
        if path.is_symlink() or not path.is_file() or sha256(path) != certificate["cpp"][name]:
            collector.error("HG055", name, "has another hash than in hls/certificate.json, or is no plain file.")
        elif name.startswith("hls/hg/") and path.read_bytes() != _header(path.name):
            collector.error("HG055", name, "is not the header of this version of hlsgen.")


def _header(name: str) -> bytes:
    """A header of the library as a build holds it."""
    return (licence_line(name) + library_text("cpp/hg", name)).encode()


def _check_listed(entries: list[dict[str, Any]], core: CoreText) -> None:
    """Check that the certificate lists the processes, with their functions, arguments and tables. Raises HG055."""
    listed = [x for entry in entries for x in entry["instances"]]
    if sorted(x["instance"] for x in listed) != sorted(core.calls):
        raise broken("hls/certificate.json", "lists other processes than the core calls.")
    for x in listed:
        call = core.calls[x["instance"]]
        in_core = (call.function, call.arguments, list(call.tables))
        parameters = {name: str(value).replace(" ", "") for name, value in x["parameters"].items()}
        if (x["module"], parameters, x["memories"]) != in_core:
            raise broken(
                call.name, f"hls/certificate.json says {x['module']} {parameters}, the core {in_core[0]} {in_core[1]}."
            )


def open_core(
    folder: Path,
    top: str,
    graph: Graph,
    layout: StreamOrder,
    entries: list[dict[str, Any]],
    labels: Labels = SINGLE,
    *,
    tuser: bool = False,
) -> tuple[CppChecker, Tables, CoreText]:
    """The checker of the core in hls/, its constants and its text. `tuser`: sequences start by TUSER. Raises HG055."""
    core = read_core(folder, top, labels, tuser)
    constants = read_constants(folder / "weights.hpp", "hls/weights.hpp", f"{top.upper()}_WEIGHTS_HPP")
    tables = Tables(folder, constants)
    meanings = state_meanings(core, loops.check(graph)) | frame_meanings(core, tables)
    steps = {name: loop.steps for loop in core.loops for name in loop.links}
    for name in core.calls.keys() - meanings.keys():
        meaning = meaning_of(core.calls[name], tables)
        meanings[name] = replace(meaning, beats=tuple(beats * steps.get(name, 1) for beats in meaning.beats))
    into = [_input(call, tuser and n == 0) for n, call in enumerate(core.inputs)]
    out = [_output(call) for call in core.outputs]
    meanings |= {cell.name: Meaning(cell, (cell.number("BEATS", 1),)) for cell in out}
    netlist = Netlist(
        {name: meanings[name].cell for name in core.calls},
        {name: core.links[name][0] for name in core.calls},
        {name: core.links[name][1] for name in core.calls},
        {name: beats.bits * beats.lanes for name, beats in core.wires.items()},
        tuple((cell, core.links[cell.name][1][0]) for cell in into),
        tuple((cell, core.links[cell.name][0][0]) for cell in out),
    )
    frames = [frame_on(cell, None) for cell in into], [frame_on(cell, None) for cell in out]
    checker = CppChecker(graph, layout, netlist, tables, entries, top, frames, False)
    checker.meanings = meanings
    return checker, tables, core


def _input(call: Call, tuser: bool) -> Cell:
    """An input port as an instance. `tuser`: it also sends a bit for each frame."""
    if call.outputs[1:] != ((FLAG,) if tuser else ()):
        raise broken(call.name, "it sends other streams beside the beats of frames than the start of each.")
    function = "hg::port_in_starts" if tuser else "hg::port_in"
    return _port("hg_axis_in", function, call, call.inputs[0], call.outputs[0])


def _output(call: Call) -> Cell:
    """An output port as an instance."""
    return _port("hg_axis_out", "hg::port_out", call, call.outputs[0], call.inputs[0])


def _port(module: str, function: str, call: Call, word: Beats, beats: Beats) -> Cell:
    call.only("WORD BEATS")
    if (call.function, call.arguments["WORD"]) != (function, f"ap_uint<{word.bits}>") or call.tables:
        raise broken(call.name, f"calls {call.function} for words of {call.arguments['WORD']}.")
    parameters = {"WIDTH": beats.bits * beats.lanes, "TDATA_W": word.bits, "BEATS": call.number("BEATS", 1)}
    return Cell(module, call.name, dict(parameters), {})
