"""The independent checker of certificate.json: proves that the files of a build compute what its model says.

It reads the model, the options in the manifest, and the emitted files. Of the compiler it uses only what says what
the model means: frontend, passes, stream orders, and the evaluation of the model's operations. The rest is its own:
the parser of the top level, an integer model of every module of the library, and the argument where functions are
monotone. So an error in rescaling, folding or printing cannot hide here; one in the frontend or the passes can, and
`interpreter` looks for that. docs/certificate.md says what is proven and how.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlsgen.certify import schema
from hlsgen.certify.checker import KINDS, Checker, hardware_layers
from hlsgen.certify.connectivity import network
from hlsgen.certify.netlist_reader import Cell, Memories, broken, parse
from hlsgen.certify.quantizers import Summary
from hlsgen.diagnostics import Collector, Diagnostic, fail
from hlsgen.frontend import import_model, parse_datatype
from hlsgen.ir import Graph, sources_of
from hlsgen.ir.stream_order import StreamOrder, lay_out
from hlsgen.library import library_text
from hlsgen.passes import InputMode, lower

__all__ = ["Certified", "Summary", "certify"]


@dataclass
class Certified:
    """The result: what was proven of each layer, and the problems. The certificate holds if there are none."""

    layers: list[Summary] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems


def certify(directory: Path) -> Certified:
    """Checks a build directory. What does not hold is in `problems` of the result.

    Raises HG050 if the directory is no build, and what the frontend or the passes say of a wrong model.
    """
    manifest = _json(directory / "manifest.json")
    model = directory / "model.onnx"
    if manifest is None or not isinstance(manifest.get("options"), dict) or not model.is_file():
        hint = "Give a directory that `hlsgen build` has written."
        raise fail("HG050", str(directory), "has no readable manifest.json and model.onnx.", hint)
    collector, result = Collector(), Certified()
    with collector.catching():
        graph, layout = _model(model, manifest["options"])
        _check(directory, manifest["options"], graph, layout, collector, result)
    result.problems = [d for d in collector.items if d.severity == "error"]
    return result


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _model(path: Path, options: dict[str, Any]) -> tuple[Graph, StreamOrder]:
    """The Graph that the model means with the manifest's options, and the orders of its streams."""
    problems = Collector()
    model = import_model(path, problems, options.get("add") == "fixed-point")
    if model is None:
        problems.finish()
    assert model is not None
    graph = lower(model, _mode(options.get("input")), problems)
    problems.finish()
    return graph, lay_out(graph)


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
    directory: Path, options: dict[str, Any], graph: Graph, layout: StreamOrder, collector: Collector, result: Certified
) -> None:
    certificate = _json(directory / "certificate.json")
    if certificate is None:
        raise broken("certificate.json", "cannot be read.")
    schema.check(certificate)
    layers = hardware_layers(graph)
    entries: list[dict[str, Any]] = certificate["layers"]
    with collector.catching():
        _hashes(directory, certificate, collector)
    name = str(options.get("top", "top"))
    top_file = directory / "rtl" / f"{name}.v"
    try:
        text = top_file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise broken(f"rtl/{name}.v", "cannot be read.") from None
    switches = options.get("reset_active_low") is True, options.get("loadable") is True
    found = network(parse(text, f"rtl/{name}.v"), name, *switches)
    _listed(entries, graph, layers, found.cells)
    memories = Memories(directory / "rtl")
    checker = Checker(graph, layout, found, memories, entries)
    checker.start()
    for i, entry in zip(layers, entries, strict=True):
        proof = checker.layer(i, entry)
        with collector.catching():
            result.layers.append(proof())
    checker.end()
    _memories(certificate, entries, memories)


def _hashes(directory: Path, certificate: dict[str, Any], collector: Collector) -> None:
    """The files are those that the certificate names: every hash, every library module, and the list in files.f."""
    listed: dict[str, str] = certificate["rtl"]
    found = {f"rtl/{path.relative_to(directory / 'rtl').as_posix()}": path for path in (directory / "rtl").rglob("*")}
    found = {name: path for name, path in found.items() if not path.is_dir()}
    for name in sorted(set(found) ^ set(listed)):
        where = "is not in certificate.json" if name in found else "is missing"
        collector.error("HG055", name, f"{where}.")
    data = directory / "model.onnx"
    for name, path in sorted(found.items()):
        if name in listed and _sha256(path) != listed[name]:
            collector.error("HG055", name, "has another hash than in certificate.json.")
        if name.startswith("rtl/hg_") and name.endswith(".v"):
            with collector.catching():
                _library(path, name)
    if certificate["model"] != {"file": "model.onnx", "sha256": _sha256(data)}:
        collector.error("HG055", "model.onnx", "has another hash than in certificate.json.")
    sources = sorted(name for name in found if name.endswith(".v"))
    try:
        listing = sorted((directory / "files.f").read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        listing = []
    if listing != sources:
        collector.error(
            "HG055", "files.f", f"does not list the Verilog files of rtl/: {sorted(set(sources) ^ set(listing))}."
        )


def _library(path: Path, name: str) -> None:
    """The module is the installed one, byte for byte. So the checker's model of the module applies to it."""
    try:
        same = path.read_bytes() == library_text("rtl", path.name).encode()
    except (OSError, ValueError):
        same = False
    if not same:
        raise broken(name, "is not the module of this version of hlsgen.")


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _listed(entries: list[dict[str, Any]], graph: Graph, layers: list[int], cells: dict[str, Cell]) -> None:
    """The certificate lists the layers and types of the model, and the instances of the top level."""
    wanted = [(graph.layers[i].name, KINDS[type(graph.layers[i])]) for i in layers]
    said = [(entry["layer"], entry["kind"]) for entry in entries]
    if said != wanted:
        raise broken("certificate.json", f"lists the layers {said[:9]}, the model has {wanted[:9]}.")
    for i, entry in zip(layers, entries, strict=True):
        layer = graph.layers[i]
        for key, said_, types in (
            ("inputs", entry["inputs"], [source.type for source in sources_of(layer)]),
            ("output", [entry["output"]], [layer.result.type]),
        ):
            right = [{"bits": t.bits, "signed": t.signed, "lo": t.lo, "hi": t.hi} for t in types]
            if said_ != right:
                raise broken(layer.name, f"certificate.json: {key} is {said_}, in the model {right}.")
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
                    cell.name, f"certificate.json: parameter {parameter} is {x['parameters'].get(parameter)}, in the "
                    f"top level {own.get(parameter)}.",
                )  # fmt: skip


def _memories(certificate: dict[str, Any], entries: list[dict[str, Any]], memories: Memories) -> None:
    """Every memory file is read by an instance, and by the one that the certificate names."""
    files = {name for name in certificate["rtl"] if name.endswith(".mem")}
    if files != memories.used:
        odd = sorted(files ^ memories.used)
        raise broken(odd[0], "is read by no instance." if odd[0] in files else "is not in certificate.json.")
    for x in (x for entry in entries for x in entry["instances"]):
        stem = str(x["parameters"].get("FILE", ""))
        own = sorted(n[4:] for n in memories.used if stem and (n[4:] == stem or n[4:].startswith(f"{stem}_")))
        if x["memories"] != own:
            raise broken(x["instance"], f"certificate.json lists the memories {x['memories'][:4]}, it reads {own[:4]}.")
