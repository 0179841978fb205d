"""Holds the files of rtl/ and files.f: exactly those that the design needs, flat, as they are installed or emitted.

What the design needs follows from the top level: the modules of its instances, the modules of the library inside of
them, and the memories that instances read. A file more could change what a tool makes of the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.stage_frame import module_text
from hlsgen.diagnostics import Collector
from hlsgen.frontend.runtimes import recorded
from hlsgen.library import library_modules, library_text


def check_hashes(directory: Path, top: str, certificate: dict[str, Any], collector: Collector) -> None:
    """rtl/ is a flat folder of plain files, those that the certificate lists, with their hashes."""
    listed: dict[str, str] = certificate["rtl"]
    folder = directory / "rtl"
    if folder.is_symlink():
        raise broken("rtl", "is a link to another folder.")
    found = {f"rtl/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
    for name, path in sorted(found.items()):
        if path.is_symlink() or not path.is_file():
            collector.error("HG055", name, "is no plain file; rtl/ has no folders and no links.")
    for name in sorted(set(found) ^ set(listed)):
        where = "is not in certificate.json" if name in found else "is missing"
        collector.error("HG055", name, f"{where}.")
    for name, path in sorted(found.items()):
        if name in listed and sha256(path) != listed[name]:
            collector.error("HG055", name, "has another hash than in certificate.json.")
        module = name[4:-2].removeprefix(f"{top}_")
        if module in library_modules() and not _installed(path, module, top):
            collector.error("HG055", name, "is not the module of this version of hlsgen.")


def check_model(directory: Path, name: str, certificate: dict[str, Any], runtime: str, collector: Collector) -> None:
    """The certificate of this file name is of the build's model.onnx, and names the runtime whose integers it has."""
    known = {"file": "model.onnx", "sha256": sha256(directory / "model.onnx"), **recorded(runtime)}
    if certificate["model"] != known:
        collector.error("HG055", "model.onnx", f"has another hash, or another runtime, than in {name}.")


def check_sources(
    directory: Path, top: str, modules: Iterable[str], written: set[str], memories: set[str], collector: Collector
) -> None:
    """rtl/ and files.f hold what the design needs.

    `written`: those of the modules that are not of the library. `memories`: what instances read, relative to the build.
    """
    found = {f"rtl/{path.name}" for path in (directory / "rtl").iterdir()}
    texts = (module_text(directory / "rtl", f"{top}_{own}") for own in written if f"rtl/{top}_{own}.v" in found)
    library = library_closure(set(modules) - written | {name for text in texts for name in _named(text, top)})
    sources = {f"rtl/{top}_{name}.v" for name in (*library, *written)} | {f"rtl/{top}.v"}
    for name in sorted(found - sources - memories):
        what = "is read by no instance" if name.endswith(".mem") else "is not part of the design"
        collector.error("HG055", name, f"{what}.", "Remove it: a tool that reads all of rtl/ would read it too.")
    for name in sorted((sources | memories) - found):
        collector.error("HG055", name, "is missing; the design needs it.")
    own = {name.removeprefix("rtl/") for name in sources | memories}
    for folder in (directory, directory / "tb"):
        for path in sorted(folder.glob("*")):
            if path.name in own:
                # Memories are read by their bare names: a tool that is started here would find this one first.
                name = path.relative_to(directory).as_posix()
                collector.error(
                    "HG055", name, f"has the name of rtl/{path.name}; a tool may read it in its place.", "Remove it."
                )
    try:
        text = (directory / "files.f").read_bytes()
    except OSError:
        text = b""
    lines = text.split(b"\n")
    if sorted(lines[:-1]) != sorted(name.encode() for name in sources) or lines[-1]:
        odd = sorted({line.decode(errors="replace") for line in lines if line} ^ sources)
        collector.error("HG055", "files.f", f"is not the list of the design's Verilog files, one a line: {odd[:4]}.")


def certified_hashes(directory: Path, certificate: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of every file that is certified, by relative path. Those of rtl/ and the model's have been compared."""
    read = {name: sha256(directory / name) for name in ("certificate.json", "files.f")}
    return {**certificate["rtl"], "model.onnx": certificate["model"]["sha256"], **read}


def library_closure(modules: set[str]) -> set[str]:
    """These modules of the library, and all that are named inside of them."""
    known, found, rest = library_modules(), set[str](), set(modules)
    while rest:
        name = rest.pop()
        if name not in known:
            raise broken(name, "is no module of the library.")
        found.add(name)
        code = re.sub(r"//[^\n]*", "", library_text("rtl", f"{name}.v"))
        rest |= (set(re.findall(r"\bhg_\w+", code)) & known) - found
    return found


def _named(text: str, top: str) -> set[str]:
    """Modules of the library that are named in a module that is not of it."""
    return set(re.findall(rf"\b{re.escape(top)}_(hg_\w+)", text)) & library_modules()


def _installed(path: Path, module: str, top: str) -> bool:
    """True if it is this module of the library, byte for byte. So the checker's model of the module applies to it.

    The names of modules, and nothing else, have the name of the core in front: every word that is one of them.
    """
    known = library_modules()
    words = re.split(r"(\w+)", library_text("rtl", f"{module}.v"), flags=re.ASCII)
    wanted = "".join(f"{top}_{word}" if word in known else word for word in words)
    try:
        return path.name == f"{top}_{module}.v" and path.read_bytes() == wanted.encode()
    except (OSError, ValueError):
        return False


def sha256(path: Path) -> str:
    """Of a file, read piece by piece; empty if it cannot be read."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while piece := stream.read(1 << 20):
                found.update(piece)
    except OSError:
        return ""
    return found.hexdigest()
