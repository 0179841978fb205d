"""Checks the files of rtl/ and files.f: exactly the files of the design, in one folder, as installed or emitted.

The top level determines these files: the modules of its instances, the library modules inside them, and the memories
that instances read. An additional file could change the meaning of the others for a tool.
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
from hlsgen.frontend.file_kind import model_entry, model_file_of
from hlsgen.frontend.runtimes import recorded
from hlsgen.library import library_modules, library_text, licence_line


def check_hashes(directory: Path, top: str, certificate: dict[str, Any], collector: Collector) -> None:
    """Check that rtl/ is a flat folder of the plain files that the certificate lists, with their hashes."""
    listed: dict[str, str] = certificate["rtl"]
    folder = directory / "rtl"
    if folder.is_symlink():
        raise broken("rtl", "is a link to another folder.")
    present = {f"rtl/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
    for name, path in sorted(present.items()):
        if path.is_symlink() or not path.is_file():
            collector.error("HG055", name, "is no plain file; rtl/ has no folders and no links.")
    for name in sorted(set(present) ^ set(listed)):
        problem = "is not in certificate.json" if name in present else "is missing"
        collector.error("HG055", name, f"{problem}.")
    for name, path in sorted(present.items()):
        if name in listed and sha256(path) != listed[name]:
            collector.error("HG055", name, "has another hash than in certificate.json.")
        module = name[4:-2].removeprefix(f"{top}_")
        if module in library_modules() and not _installed(path, module, top):
            collector.error("HG055", name, "is not the module of this version of hlsgen.")


def check_model(directory: Path, name: str, certificate: dict[str, Any], runtime: str, collector: Collector) -> None:
    """Check that the certificate (a file of this name) is for the build's model file and its runtime."""
    path = model_file_of(directory)
    expected = {**model_entry(path.read_bytes()), **recorded(runtime)}
    if certificate["model"] != expected:
        collector.error("HG055", path.name, f"has another hash, or another runtime, than in {name}.")


def check_sources(
    directory: Path, top: str, modules: Iterable[str], written: set[str], memories: set[str], collector: Collector
) -> None:
    """Check that rtl/ and files.f hold exactly the files of the design.

    `written`: modules that are not of the library. `memories`: the files that instances read, relative to the build.
    """
    present = {f"rtl/{path.name}" for path in (directory / "rtl").iterdir()}
    texts = (
        module_text(directory / "rtl", f"{top}_{module}") for module in written if f"rtl/{top}_{module}.v" in present
    )
    library = library_closure(
        set(modules) - written | {name for text in texts for name in _library_modules_named_in(text, top)}
    )
    sources = {f"rtl/{top}_{name}.v" for name in (*library, *written)} | {f"rtl/{top}.v"}
    for name in sorted(present - sources - memories):
        problem = "is read by no instance" if name.endswith(".mem") else "is not part of the design"
        collector.error("HG055", name, f"{problem}.", "Remove it: a tool that reads all of rtl/ would read it too.")
    for name in sorted((sources | memories) - present):
        collector.error("HG055", name, "is missing; the design needs it.")
    design_files = {name.removeprefix("rtl/") for name in sources | memories}
    for folder in (directory, directory / "tb"):
        for path in sorted(folder.glob("*")):
            if path.name in design_files:
                # Tools read memories by their bare names; one that is started here would find this file first.
                name = path.relative_to(directory).as_posix()
                collector.error(
                    "HG055", name, f"has the name of rtl/{path.name}; a tool may read it instead.", "Remove it."
                )
    try:
        text = (directory / "files.f").read_bytes()
    except OSError:
        text = b""
    lines = text.split(b"\n")
    if sorted(lines[:-1]) != sorted(name.encode() for name in sources) or lines[-1]:
        unexpected = sorted({line.decode(errors="replace") for line in lines if line} ^ sources)
        collector.error(
            "HG055", "files.f", f"is not the list of the design's Verilog files, one a line: {unexpected[:4]}."
        )


def certified_hashes(directory: Path, certificate: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of every certified file, by relative path. The files of rtl/ and the model are compared already."""
    other_files = {name: sha256(directory / name) for name in ("certificate.json", "files.f")}
    return {**certificate["rtl"], certificate["model"]["file"]: certificate["model"]["sha256"], **other_files}


def library_closure(modules: set[str]) -> set[str]:
    """These library modules and all library modules inside them. Raises HG055 for unknown modules."""
    all_modules, closure, worklist = library_modules(), set[str](), set(modules)
    while worklist:
        name = worklist.pop()
        if name not in all_modules:
            raise broken(name, "is no module of the library.")
        closure.add(name)
        code = re.sub(r"//[^\n]*", "", library_text("rtl", f"{name}.v"))
        worklist |= (set(re.findall(r"\bhg_\w+", code)) & all_modules) - closure
    return closure


def _library_modules_named_in(text: str, top: str) -> set[str]:
    """Library modules that are named in the text of a generated module."""
    return set(re.findall(rf"\b{re.escape(top)}_(hg_\w+)", text)) & library_modules()


def _installed(path: Path, module: str, top: str) -> bool:
    """True if the file is this library module, byte for byte, so that the checker's model applies.

    Only the names of modules have the name of the core as a prefix: every word that is a module's name.
    """
    all_modules = library_modules()
    words = re.split(r"(\w+)", library_text("rtl", f"{module}.v"), flags=re.ASCII)
    expected = licence_line(path.name) + "".join(f"{top}_{word}" if word in all_modules else word for word in words)
    try:
        return path.name == f"{top}_{module}.v" and path.read_bytes() == expected.encode()
    except (OSError, ValueError):
        return False


def sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits; "" if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()
