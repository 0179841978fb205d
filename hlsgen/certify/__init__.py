"""The independent checker of certificate.json: proves that the files of a build compute what its model says.

It reads the model, the manifest, and the emitted files. Of the compiler it uses only what says what the model means:
frontend, passes, stream orders, and the evaluation of the model's operations. The rest is its own: the parser of the top
level, an integer model of every module of the library, the argument where functions are monotone, and a second reading
of the model's numbers. So an error in rescaling, folding or printing cannot hide here, nor a misread number of a node that
was read twice; one in the passes can, and `interpreter` looks for that. `statements` says what is proven and what is
assumed, docs/certificate.md how.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hlsgen.certify import loops, rtl_files, schema, statements, target_files, top_text
from hlsgen.certify import manifest as manifest_
from hlsgen.certify.checker import Checker, hardware_layers
from hlsgen.certify.connectivity import network
from hlsgen.certify.cpp.core_checker import check_cpp
from hlsgen.certify.entries import check_entries, read_json
from hlsgen.certify.netlist_reader import Cell, Memories, broken, parse
from hlsgen.certify.port_wiring import frame_on, labels_of, listed, port_options
from hlsgen.certify.quantizers import Summary
from hlsgen.certify.rtl_files import sha256
from hlsgen.certify.second_reading import SecondReading, compare
from hlsgen.certify.statements import Statement
from hlsgen.diagnostics import Collector, Diagnostic, fail
from hlsgen.frontend import grouped, import_model, parse_datatype, self_contained
from hlsgen.frontend.runtimes import CHOICES as RUNTIMES
from hlsgen.frontend.runtimes import GROUPING
from hlsgen.ir import Graph, Model
from hlsgen.ir.stream_order import StreamOrder, lay_out
from hlsgen.passes import InputMode, lower, typed
from hlsgen.passes.built_once import lower_once

__all__ = ["Certified", "Statement", "Summary", "certify"]


@dataclass
class Certified:
    """The result: what was proven of each layer, and the problems. The certificate holds if there are none.

    proven   statements that hold of the whole build; none if there are problems
    assumed  what they rest on
    """

    layers: list[Summary] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    proven: list[Statement] = field(default_factory=list)
    assumed: list[Statement] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems


def certify(
    directory: Path, model: Path | None = None, compare_others: Callable[[], list[Diagnostic]] | None = None
) -> Certified:
    """Checks a build directory. What does not hold is in `problems` of the result.

    model: the file that the build must have been made from. Without it, that in the build is taken for the right one.
    compare_others: what is wrong with the files and manifest entries that are not proven here. It is called if all else
    holds. Without it these are assumed.
    Raises HG050 if the directory is no build, and what the frontend or the passes say of a wrong model.
    """
    manifest = read_json(directory / "manifest.json")
    own = directory / "model.onnx"
    if manifest is None or not isinstance(manifest.get("options"), dict) or not own.is_file():
        hint = "Give a directory that `hlsgen build` has written."
        raise fail("HG050", str(directory), "has no readable manifest.json and model.onnx.", hint)
    collector, result = Collector(), Certified()
    once: tuple[str, ...] = ()
    targets: list[str] = []
    with collector.catching():
        with collector.catching():
            outputs = manifest["options"].get("outputs")
            _same_model(own, model, outputs if isinstance(outputs, list) else [])
        graph, layout, once = _model(own, manifest["options"], collector)
        targets = str(manifest["options"].get("target")).split(",")
        target_files.check(directory, targets, manifest.get("files"), collector)
        if "verilog" in targets:
            _check(directory, manifest, graph, layout, collector, result)
        if "hls" in targets:
            labels = _labels(graph, manifest["options"].get("ports") == "separate")
            check_cpp(directory, manifest, graph, layout, collector, result.layers, labels)
    if compare_others is not None and not collector.errors:
        with collector.catching():
            collector.items += compare_others()
    result.problems = [d for d in collector.items if d.severity == "error"]
    loadable, compared = manifest["options"].get("loadable") is True, compare_others is not None
    result.assumed = statements.assumed(
        model=model is not None, loadable=loadable, once=once, targets=targets, compared=compared
    )
    if result.ok:
        result.proven = statements.proven(model=model is not None, targets=targets, compared=compared)
    return result


def _same_model(own: Path, given: Path | None, outputs: list[str]) -> None:
    """The build's model file holds all of the model, and is the given one, byte by byte. Raises HG055, HG001."""
    data = own.read_bytes()
    if self_contained(own) != data:
        raise broken("model.onnx", "has external data; that of a build is in the file itself.")
    # A model with external data is stored with the data inside, one of which a part is built as that part.
    if given is not None and self_contained(given, outputs) != data:
        raise broken(
            "model.onnx", f"is not the model in {given}.", "Build again from that file, or give the one that was built."
        )


def _model(path: Path, options: dict[str, Any], collector: Collector) -> tuple[Graph, StreamOrder, tuple[str, ...]]:
    """The Graph that the model means with the manifest's options, the orders of its streams, and nodes read only once."""
    problems = Collector()
    modes, separate = _modes(options.get("input")), options.get("ports") == "separate"
    fixed_point = options.get("add") == "fixed-point"
    chosen = options.get("runtime")
    runtime = chosen if chosen in RUNTIMES else "auto"  # another value is an error of the manifest
    model = import_model(path, problems, fixed_point, typed(modes), pairs=not separate, runtime=runtime)
    if model is None:
        problems.finish()
    assert model is not None
    second = _read_again(path, model)
    for node, text in second.problems:
        collector.error("HG055", node, f"read a second time: {text}")
    if options.get("recurrence") == "once":
        shared = partial(import_model, path, fixed_point=fixed_point, typed=typed(modes), once=True, runtime=runtime)
        graph = lower_once(model, shared, modes, problems)
    else:
        graph = lower(model, modes, problems, separate)
    problems.finish()
    return graph, lay_out(graph), second.once


def _read_again(path: Path, model: Model) -> SecondReading:
    """What a second program reads in the file. Nodes that say what the Model has only after onnxruntime merged or fused
    them are read once: it compares them as the frontend has rewritten them."""
    first = compare(path, model)
    if not first.problems or model.runtime not in GROUPING:
        return first
    proto, quantizers = grouped(path, model.runtime)
    ends = {quantizer: f"{node} (rescaled)" for node, quantizer in quantizers.items()}
    steps = tuple(replace(step, name=ends.get(step.name, step.name)) for step in model.steps)
    again = compare(proto, replace(model, steps=steps))
    if again.problems:
        return first
    return SecondReading((), (*first.once, *sorted({node for node, _ in first.problems})))


def _modes(types: object) -> dict[str, InputMode]:
    """The types of the inputs by name, "" for all others."""
    named = types if isinstance(types, dict) else {"": types}
    return {str(name): mode for name, text in named.items() if (mode := _mode(text)) is not None}


def _mode(text: object) -> InputMode | None:
    if text is None:
        return None
    plain = str(text).strip().lower()
    if plain in ("codes", "float32"):
        return InputMode(plain)
    found = parse_datatype(plain)
    if found is None:
        raise broken("manifest.json", f"option input is {text!r}.")
    return InputMode("fixed", *found)


def _check(
    directory: Path,
    manifest: dict[str, Any],
    graph: Graph,
    layout: StreamOrder,
    collector: Collector,
    result: Certified,
) -> None:
    options, certificate = manifest["options"], read_json(directory / "certificate.json")
    if certificate is None:
        raise broken("certificate.json", "cannot be read as JSON: an object, without equal keys.")
    schema.check(certificate, "rtl")
    layers = hardware_layers(graph)
    entries: list[dict[str, Any]] = certificate["layers"]
    name = options.get("top")
    if not isinstance(name, str) or not re.fullmatch(r"(?!hg(?:_|$))[A-Za-z_]\w*", name, re.ASCII):
        raise broken("manifest.json", f"option top is {name!r}, no name of a module.")
    with collector.catching():
        rtl_files.check_model(directory, "certificate.json", certificate, graph.model.runtime, collector)
        rtl_files.check_hashes(directory, name, certificate, collector)
    try:
        text = top_text.split((directory / "rtl" / f"{name}.v").read_bytes(), f"rtl/{name}.v")
    except OSError:
        raise broken(f"rtl/{name}.v", "cannot be read.") from None
    pins = port_options(options)
    top = parse(text.code, text.name)
    labels = _labels(graph, options.get("ports") == "separate")
    found = network(top, name, pins, sha256(directory / "model.onnx"), loops.check(graph), labels)
    into, out = ([frame_on(cell, pins.bus) for cell, _ in ports] for ports in (found.inputs, found.outputs))
    widths = [[frame.width for frame in frames] for frames in (into, out)]
    top_text.check_attributes(text, (port[2:] for port in listed(pins, labels, widths)))
    check_entries(entries, graph)
    _listed(entries, found.cells)
    memories = Memories(directory / "rtl")
    checker = Checker(graph, layout, found, memories, entries, name, (into, out), pins.keep)
    checker.start()
    for i, entry in zip(layers, entries, strict=True):
        proof = checker.layer(i, entry)
        with collector.catching():
            result.layers.append(proof())
    checker.end()
    _memories(certificate, entries, memories)
    modules = {cell.module for cell in top.cells.values()}
    rtl_files.check_sources(directory, name, modules, checker.written, memories.used, collector)
    if collector.errors:
        return  # The manifest is derived from a certificate and a netlist that are right.
    with collector.catching():
        named = _comments(text, manifest, checker, entries)
        hashes = rtl_files.certified_hashes(directory, certificate)
        manifest_.check(manifest, certificate, checker, named, hashes, collector)


def _labels(graph: Graph, separate: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What ends the names of the ports."""
    into = [graph.model.all_inputs[part.source].name for part in graph.inputs]
    out = [one.name for one in manifest_.output_parts(graph)]
    return labels_of(into, separate), labels_of(out, separate)


def _comments(
    text: top_text.TopText, manifest: dict[str, Any], checker: Checker, entries: list[dict[str, Any]]
) -> dict[str, str]:
    """What the comments of the top level say is so; cycles are those of the manifest. Layer -> its last instance."""
    found, graph = checker.network, checker.graph
    both = (("input", found.inputs, graph.streamed_inputs), ("output", found.outputs, graph.streamed_outputs))
    ends: tuple[list[str], list[str]] = ([], [])
    bus = []
    for (kind, ports, values), texts, frames in zip(both, ends, checker.frames, strict=True):
        for (cell, _), (_, _, value), frame in zip(ports, values, frames, strict=True):
            port = manifest_.name_of(cell)
            own = f"{port}: " if port not in ("s_axis", "m_axis") else ""
            texts.append(f"{own}{manifest_.stream_of(cell, value)}")
            if "SLOT" in cell.parameters:
                size = f"{frame.words} words a frame, a beat in {frame.slot // 8} bytes"
                bus.append(f"{frame.width} bits, {port if own else kind}: {size}")
    loads = sum("LOADABLE" in cell.parameters for cell in found.cells.values())
    cycles = manifest.get("cycles")
    if not isinstance(cycles, dict) or not {"latency", "interval"} <= set(cycles):
        raise broken("manifest.json", f"cycles are {cycles!r}.")
    head = top_text.head_of(manifest["options"].get("name"), ends, bus, loads, cycles)
    at = {x["instance"]: entry["layer"] for entry in entries for x in entry["instances"]}
    told = top_text.check_comments(text, head, list(found.cells), at)
    named = {entry["layer"]: x["instance"] for entry in entries for x in entry["instances"] if x["instance"] in told}
    return named | checker.last


def _listed(entries: list[dict[str, Any]], cells: dict[str, Cell]) -> None:
    """The certificate lists the instances of the top level with their parameters."""
    instances = [x for entry in entries for x in entry["instances"]]
    if sorted(x["instance"] for x in instances) != sorted(cells):
        raise broken("certificate.json", "lists other instances than there are between s_axis and m_axis.")
    for x in instances:
        cell = cells[x["instance"]]
        own = {n: v if isinstance(v, int | str) else str(v) for n, v in cell.parameters.items()}
        if x["module"] != cell.module:
            raise broken(cell.name, f"certificate.json: the module is {x['module']}, in the top level {cell.module}.")
        for parameter in sorted(set(own) | set(x["parameters"])):
            if own.get(parameter) != x["parameters"].get(parameter):
                raise broken(
                    cell.name,
                    f"certificate.json: parameter {parameter} is {x['parameters'].get(parameter)}, in the "
                    f"top level {own.get(parameter)}.",
                )


def _memories(certificate: dict[str, Any], entries: list[dict[str, Any]], memories: Memories) -> None:
    """Every memory file is read by the instance that the certificate names."""
    files = {name for name in certificate["rtl"] if name.endswith(".mem")}
    if memories.used - files:
        raise broken(min(memories.used - files), "is not in certificate.json.")
    for x in (x for entry in entries for x in entry["instances"]):
        stem = str(x["parameters"].get("FILE", ""))
        own = sorted(n[4:] for n in memories.used if stem and (n[4:] == stem or n[4:].startswith(f"{stem}_")))
        if x["memories"] != own:
            raise broken(x["instance"], f"certificate.json lists the memories {x['memories'][:4]}, it reads {own[:4]}.")
