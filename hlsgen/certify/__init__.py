"""The independent checker of certificate.json: proves that the files of a build compute the model.

It reads the model, the manifest and the emitted files. From the compiler it uses only the parts that define the model:
frontend, passes, stream orders, and the evaluation of the model's operations.

The other parts are its own: the parser of the top level, models of all library modules, the proof of monotone pieces,
and a second reading of the file. An error in rescaling, folding or printing cannot hide here. Neither can a misread
number of a node that was read twice. An error in the passes can; `interpreter` looks for these. `statements` lists all
proven and all assumed facts. docs/certificate.md explains the proofs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hlsgen.certify import loops, rtl_files, schema, statements, target_files, top_text
from hlsgen.certify import manifest as manifest_
from hlsgen.certify.checker import Checker, hardware_layers
from hlsgen.certify.connectivity import network
from hlsgen.certify.cpp.core_checker import check_cpp
from hlsgen.certify.entries import check_entries, read_json
from hlsgen.certify.frame_states import MEMORY
from hlsgen.certify.latencies import latency_of_text
from hlsgen.certify.merged_layers import merged_graph
from hlsgen.certify.netlist_reader import Cell, Memories, broken, parse
from hlsgen.certify.plain_ports import fixed_latency
from hlsgen.certify.port_wiring import frame_on, labels_of, port_list, port_name, port_options
from hlsgen.certify.quantizers import Summary
from hlsgen.certify.removed_elements import without_removed
from hlsgen.certify.rtl_files import sha256
from hlsgen.certify.second_reading import SecondReading, compare
from hlsgen.certify.statements import Statement
from hlsgen.diagnostics import Collector, Diagnostic, fail
from hlsgen.frontend import grouped, import_model, parse_datatype, self_contained
from hlsgen.frontend.file_kind import model_file_of
from hlsgen.frontend.runtimes import CHOICES as RUNTIMES
from hlsgen.frontend.runtimes import GROUPING
from hlsgen.ir import Graph, Model
from hlsgen.ir.stream_order import lay_out
from hlsgen.passes import InputMode, lower, numeric_inputs
from hlsgen.passes.frame_states import NONE, states_last, with_states
from hlsgen.passes.shared_loop_bodies import builds_once, lower_once

__all__ = ["Certified", "Statement", "Summary", "certify"]

#: Most characters of a parameter in a message.
_SHOWN = 60


@dataclass
class Certified:
    """The result: the summary of each proven layer, and the problems. The certificate holds if there are no problems.

    proven   statements that hold for the entire build; none if there are problems
    assumed  statements on which they depend
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
    """Check a build directory. The result's `problems` list each condition that does not hold.

    model: the file that the build must have been made from. If it is None, the file in the build is assumed to be
    right.

    compare_others: returns the problems of files and manifest entries that are not proven here. It is called if
    everything else holds. If it is None, these are assumed to be right.

    Raises HG050 if the directory is no build, and errors of the frontend or the passes for a wrong model.
    """
    manifest = read_json(directory / "manifest.json")
    if manifest is None or not isinstance(manifest.get("options"), dict):
        hint = "Give a directory that `hlsgen build` has written."
        raise fail("HG050", str(directory), "has no readable manifest.json.", hint)
    model_file = model_file_of(directory)
    collector, result = Collector(), Certified()
    read_once: tuple[str, ...] = ()
    targets: list[str] = []
    with collector.catching():
        with collector.catching():
            outputs = manifest["options"].get("outputs")
            _check_model_file(model_file, model, outputs if isinstance(outputs, list) else [])
        graph, read_once = _model(model_file, manifest["options"], collector)
        targets = str(manifest["options"].get("target")).split(",")
        target_files.check(directory, targets, manifest.get("files"), collector)
        if "verilog" in targets:
            _check(directory, manifest, graph, collector, result)
        if "hls" in targets:
            labels = _port_suffixes(graph, manifest["options"].get("ports") == "separate")
            check_cpp(directory, manifest, graph, collector, result.layers, labels)
    if compare_others is not None and not collector.errors:
        with collector.catching():
            collector.items += compare_others()
    result.problems = [d for d in collector.items if d.severity == "error"]
    loadable, compared = manifest["options"].get("loadable") is True, compare_others is not None
    result.assumed = statements.assumed(
        model=model is not None, loadable=loadable, once=read_once, targets=targets, compared=compared
    )
    if result.ok:
        plain = manifest["options"].get("ports") == "plain"
        result.proven = statements.proven(model=model is not None, targets=targets, compared=compared, plain=plain)
    return result


def _check_model_file(model_file: Path, expected_file: Path | None, outputs: list[str]) -> None:
    """Check that the build's model file is complete, and equals the given file byte by byte. Raises HG055, HG001."""
    data = model_file.read_bytes()
    if self_contained(model_file) != data:
        raise broken(model_file.name, "has external data; a build stores all data in the file itself.")
    # A build stores external data inside the file, and only the built part of a model.
    if expected_file is not None and self_contained(expected_file, outputs) != data:
        raise broken(
            model_file.name,
            f"is not the model in {expected_file}.",
            "Build again from that file, or give the one that was built.",
        )


def _model(path: Path, options: dict[str, Any], collector: Collector) -> tuple[Graph, tuple[str, ...]]:
    """The Graph of the model with the manifest's options, and the nodes that were read only once."""
    problems = Collector()
    modes, separate = _modes(options.get("input")), options.get("ports") == "separate"
    texts = options.get("state")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise broken("manifest.json", f"option state is {texts!r}.")
    texts = [text for text in texts if text != NONE]
    fixed_point = options.get("add") == "fixed-point"
    chosen = options.get("runtime")
    runtime = chosen if chosen in RUNTIMES else "auto"  # another value is an error of the manifest
    softmax = "hardware" if options.get("softmax") == "hardware" else "host"
    model = import_model(
        path,
        problems,
        fixed_point,
        numeric_inputs(modes),
        pairs=not separate and not texts,
        runtime=runtime,
        softmax=softmax,
    )
    if model is None:
        problems.finish()
    assert model is not None
    second_reading = _read_again(path, model)
    for node, text in second_reading.problems:
        collector.error("HG055", node, f"read a second time: {text}")
    model, state_pairs = states_last(model, texts)
    has_ports = separate or bool(texts)
    if builds_once(str(options.get("recurrence")), model, options.get("loadable") is True):

        def shared(shared_problems: Collector) -> Model | None:
            model = import_model(
                path,
                shared_problems,
                fixed_point,
                numeric_inputs(modes),
                once=True,
                pairs=not has_ports,
                runtime=runtime,
                softmax=softmax,
            )
            return model and states_last(model, texts)[0]

        graph = lower_once(model, shared, modes, problems, has_ports)
    else:
        graph = lower(model, modes, problems, has_ports)
    graph = with_states(graph, state_pairs, not separate)
    problems.finish()
    if options.get("merge_layers") is True:
        graph = merged_graph(graph)
    return graph, second_reading.once


def _read_again(path: Path, model: Model) -> SecondReading:
    """The second reading of a file.

    Some nodes agree with the Model only after onnxruntime merged or fused them. These are compared as the frontend has
    rewritten them, and count as read once.
    """
    first = compare(path, model)
    if not first.problems or model.runtime not in GROUPING:
        return first
    proto, quantizers = grouped(path, model.runtime)
    ends = {quantizer: f"{node} (rescaled)" for node, quantizer in quantizers.items()}
    steps = tuple(replace(step, name=ends.get(step.name, step.name)) for step in model.steps)
    regrouped = compare(proto, replace(model, steps=steps))
    if regrouped.problems:
        return first
    return SecondReading((), (*first.once, *sorted({node for node, _ in first.problems})))


def _modes(types: object) -> dict[str, InputMode]:
    """The types of the inputs by name; "" means all others."""
    types_by_name = types if isinstance(types, dict) else {"": types}
    return {str(name): mode for name, text in types_by_name.items() if (mode := _mode(text)) is not None}


def _mode(text: object) -> InputMode | None:
    if text is None:
        return None
    plain = str(text).strip().lower()
    if plain in ("codes", "float32"):
        return InputMode(plain)
    datatype = parse_datatype(plain)
    if datatype is None:
        raise broken("manifest.json", f"option input is {text!r}.")
    return InputMode("fixed", *datatype)


def _check(
    directory: Path,
    manifest: dict[str, Any],
    graph: Graph,
    collector: Collector,
    result: Certified,
) -> None:
    options, certificate = manifest["options"], read_json(directory / "certificate.json")
    if certificate is None:
        raise broken("certificate.json", "cannot be read as JSON: an object, without equal keys.")
    schema.check(certificate, "rtl")
    graph = without_removed(graph, certificate)
    layers, layout = hardware_layers(graph), lay_out(graph)
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
    labels = _port_suffixes(graph, options.get("ports") == "separate")
    loop_states = loops.check(graph) + len(graph.states)
    netlist = network(top, name, pins, sha256(model_file_of(directory)), loop_states, labels)
    into, out = ([frame_on(cell, pins.bus) for cell, _ in ports] for ports in (netlist.inputs, netlist.outputs))
    widths = [[frame.pins for frame in frames] for frames in (into, out)]
    top_text.check_attributes(text, (port[2:] for port in port_list(pins, labels, widths)))
    check_entries(entries, graph)
    states: list[dict[str, Any]] = certificate.get("states", [])
    if bool(states) != bool(graph.states):
        raise broken("certificate.json", "has instances of states, and the model has none, or the other way round.")
    _check_listed([*entries, {"instances": states}], netlist.cells)
    memories = Memories(directory / "rtl")
    checker = Checker(graph, layout, netlist, memories, entries, name, (into, out), pins.keep)
    checker.start()
    checker.start_states([x["instance"] for x in states])
    for i, entry in zip(layers, entries, strict=True):
        proof = checker.layer(i, entry)
        with collector.catching():
            result.layers.append(proof())
    checker.end()
    latency = None
    if pins.plain:
        generated = {
            cell.name: latency_of_text(directory / "rtl", f"{name}_{cell.module}")
            for cell in top.cells.values()
            if cell.module in checker.generated_modules
        }
        latency = fixed_latency(netlist, generated, (into, out))
    _check_memories(certificate, [*entries, {"instances": states}], memories)
    modules = {cell.module for cell in top.cells.values()}
    rtl_files.check_sources(directory, name, modules, checker.generated_modules, memories.used, collector)
    if collector.errors:
        return  # The check of the manifest requires a right certificate and netlist.
    with collector.catching():
        state_entries = _state_entries(graph, states)
        named = _check_comments(text, manifest, checker, [*entries, *state_entries])
        hashes = rtl_files.certified_hashes(directory, certificate)
        manifest_.check(manifest, certificate, checker, named, hashes, collector, state_entries, latency)


def _state_entries(graph: Graph, instances: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The instances of states by the name of each state's input, then the others, as entries of layers."""
    inputs = graph.streamed_inputs[-len(graph.states) :] if graph.states else ()
    names = [graph.layers[number - 1].name for number, _, _ in inputs]
    entries: list[dict[str, Any]] = [{"layer": name, "instances": []} for name in names]
    place = 0
    for x in instances:
        entries += [{"layer": "", "instances": []}] if place == len(entries) else []
        entries[place]["instances"].append(x)
        place += x["module"] == MEMORY
    return entries


def _port_suffixes(graph: Graph, separate: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Suffixes of the names of the ports."""
    graph = graph.host_graph
    into = [graph.model.all_inputs[part.source].name for part in graph.inputs]
    out = [output.name for output in manifest_.output_parts(graph)]
    return labels_of(into, separate), labels_of(out, separate)


def _check_comments(
    text: top_text.TopText, manifest: dict[str, Any], checker: Checker, entries: list[dict[str, Any]]
) -> dict[str, str]:
    """Check the comments of the top level; cycles are the manifest's. Returns layer -> its last instance."""
    netlist, graph = checker.network, checker.graph
    kinds_and_ports = (
        ("input", netlist.inputs, graph.streamed_inputs),
        ("output", netlist.outputs, graph.streamed_outputs),
    )
    ends: tuple[list[str], list[str]] = ([], [])
    bus = []
    for (kind, ports, values), texts, frames in zip(kinds_and_ports, ends, checker.frames, strict=True):
        values = values[: len(values) - len(graph.states)]
        for (cell, _), (_, _, value), frame in zip(ports, values, frames, strict=True):
            port = port_name(cell)
            prefix = f"{port}: " if port not in ("s_axis", "m_axis", "in", "out") else ""
            texts.append(f"{prefix}{manifest_.stream_of(cell, value)}")
            if "SLOT" in cell.parameters:
                size = f"{frame.words} words a frame, a beat in {frame.slot // 8} bytes"
                bus.append(f"{frame.width} bits, {port if prefix else kind}: {size}")
    loads = sum("LOAD_UNIT" in cell.parameters for cell in netlist.cells.values())
    cycles = manifest.get("cycles")
    if not isinstance(cycles, dict) or not {"latency", "interval"} <= set(cycles):
        raise broken("manifest.json", f"cycles are {cycles!r}.")
    pins = port_options(manifest["options"])
    starts = (pins.starts_by, port_name(netlist.inputs[0][0]))
    head = top_text.head_of(manifest["options"].get("name"), ends, bus, loads, cycles, starts, plain=pins.plain)
    layer_of_instance = {x["instance"]: entry["layer"] for entry in entries for x in entry["instances"]}
    computing = top_text.check_comments(text, head, list(netlist.cells), layer_of_instance)
    instance_of_layer = {
        entry["layer"]: x["instance"] for entry in entries for x in entry["instances"] if x["instance"] in computing
    }
    return instance_of_layer | checker.last_instance


def _check_listed(entries: list[dict[str, Any]], cells: dict[str, Cell]) -> None:
    """Check that the certificate lists the instances of the top level with their parameters."""
    instances = [x for entry in entries for x in entry["instances"]]
    if sorted(x["instance"] for x in instances) != sorted(cells):
        raise broken("certificate.json", "lists other instances than the top level has between s_axis and m_axis.")
    for x in instances:
        cell = cells[x["instance"]]
        actual_parameters = {n: v if isinstance(v, int | str) else str(v) for n, v in cell.parameters.items()}
        if x["module"] != cell.module:
            raise broken(cell.name, f"certificate.json: the module is {x['module']}, in the top level {cell.module}.")
        for parameter in sorted(set(actual_parameters) | set(x["parameters"])):
            stated, actual = x["parameters"].get(parameter), actual_parameters.get(parameter)
            if stated != actual:
                stated_text, actual_text = _excerpts(str(stated), str(actual))
                raise broken(
                    cell.name,
                    f"certificate.json: parameter {parameter} is {stated_text}, in the top level {actual_text}.",
                )


def _excerpts(first: str, second: str) -> tuple[str, str]:
    """Both texts, or of long ones some characters around the first that differs."""
    if max(len(first), len(second)) <= _SHOWN:
        return first, second
    ends = (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    at = next(ends, min(len(first), len(second)))
    start = max(0, at - _SHOWN // 2)
    excerpts = (f"...{text[start : start + _SHOWN]}... (from character {start} on)" for text in (first, second))
    first_excerpt, second_excerpt = excerpts
    return first_excerpt, second_excerpt


def _check_memories(certificate: dict[str, Any], entries: list[dict[str, Any]], memories: Memories) -> None:
    """Check that every memory file is read by the instance that the certificate names."""
    files = {name for name in certificate["rtl"] if name.endswith(".mem")}
    if memories.used - files:
        raise broken(min(memories.used - files), "is not in certificate.json.")
    for x in (x for entry in entries for x in entry["instances"]):
        stem = str(x["parameters"].get("FILE", ""))
        read_files = sorted(n[4:] for n in memories.used if stem and (n[4:] == stem or n[4:].startswith(f"{stem}_")))
        if x["memories"] != read_files:
            raise broken(
                x["instance"], f"certificate.json lists the memories {x['memories'][:4]}, it reads {read_files[:4]}."
            )
