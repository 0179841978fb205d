"""Model file -> all files of a build, in memory; the same for the same model and options."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from hlsgen.elaborate import Design, elaborate
from hlsgen.emit import project, verilog
from hlsgen.errors import Collector, Diagnostic, fail
from hlsgen.frontend import import_model, parse_datatype, self_contained
from hlsgen.ir import Graph
from hlsgen.passes import InputMode, lower
from hlsgen.render import identifier
from hlsgen.schedule import Schedule, Targets, plan

Progress = Callable[[int, int, str], None]


def tool_version() -> str:
    """Version of the installed package."""
    try:
        return version("hlsgen")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True)
class Options:
    """What a build can be told; all that its manifest needs to be made again."""

    target: str = "verilog"
    input: str | None = None
    lanes: int | None = None
    target_cycles: int | None = None
    folding: dict[str, dict[str, int]] = field(default_factory=dict)
    reset_active_low: bool = False
    top: str = "top"
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Build:
    """A compiled model: schedule, design, and text or bytes of every file."""

    schedule: Schedule
    design: Design
    files: dict[str, bytes]
    warnings: list[Diagnostic]

    @property
    def graph(self) -> Graph:
        return self.schedule.graph


def compile_model(path: Path, options: Options, progress: Progress | None = None) -> Build:
    """The whole way from a file to a build. Raises HlsgenError with every problem found."""
    problems = Collector()
    mode = None
    with problems.catching():
        _check_options(options)
        mode = parse_input(options.input)
    model = import_model(path, problems)
    if model is None:
        problems.finish()
    assert model is not None
    with problems.catching():
        graph = lower(model, mode, problems)
    problems.finish()
    targets = Targets(options.target_cycles, options.lanes, options.folding)
    schedule = plan(graph, targets, progress)
    data = self_contained(path)
    options = replace(options, name=_title(options.name or path.stem))
    about = {"file": "model.onnx", "sha256": hashlib.sha256(data).hexdigest()}
    design = elaborate(schedule, identifier(options.top), options.reset_active_low, options.name or "")
    texts = verilog.emit(design, schedule)
    texts |= project.emit(design, schedule, asdict(options), about, tool_version())
    files = {name: text.encode() for name, text in texts.items()}
    files["model.onnx"] = data
    return Build(schedule, design, dict(sorted(files.items())), problems.warnings)


def _title(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "/*\\" else " " for c in name)[:80]


def _check_options(options: Options) -> None:
    problems = Collector()
    if options.target != "verilog":
        problems.error("HG040", "--target", f"{options.target!r} is not supported.", "Supported: verilog.")
    if options.lanes is not None and not 1 <= options.lanes <= 999:
        problems.error("HG040", "--lanes", f"{options.lanes}.", "Supported: 1 to 999.")
    if options.target_cycles is not None and options.target_cycles < 1:
        problems.error("HG040", "--target-cycles", f"{options.target_cycles}.", "At least 1.")
    problems.finish()


def parse_input(text: str | None) -> InputMode | None:
    """--input: codes, float32, fixed:W,I, ufixed:W,I, or a QONNX datatype name."""
    if text is None:
        return None
    plain = text.strip().lower()
    if plain in ("codes", "float32"):
        return InputMode(plain)
    found = parse_datatype(plain)
    if found is None:
        raise fail(
            "HG040", "--input", f"{text!r} is not an input type.",
            "Supported: codes, float32, fixed:W,I, ufixed:W,I (W of 1 to 32 bits, I of them integer), INT8 and the like.",
        )  # fmt: skip
    return InputMode("fixed", *found)


def read_folding(path: Path) -> dict[str, dict[str, int]]:
    """The layers of a folding file. Raises HG041."""
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise fail("HG041", str(path), f"cannot be read: {str(error).splitlines()[0]}.") from None
    layers = data.get("layers") if isinstance(data, dict) else None
    valid = isinstance(layers, dict) and all(
        isinstance(name, str) and isinstance(entry, dict) and set(entry) <= {"pe", "simd"} and len(entry) == 2
        for name, entry in layers.items()
    )
    if not valid:
        raise fail("HG041", str(path), "is no folding file.", "Form: layers: {NAME: {pe: N, simd: N}}.")
    assert isinstance(layers, dict)
    return layers


def write_build(build: Build, directory: Path) -> None:
    """Writes all files at once: into a temporary directory that then takes the place.

    An existing directory is replaced only if it is empty or a build itself. Raises HG050, HG001.
    """
    if directory.exists() and not is_replaceable(directory):
        raise fail(
            "HG050", str(directory), "exists and is not a build of hlsgen; it is left as it is.",
            "Choose another -o, or remove it.",
        )  # fmt: skip
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    except OSError as error:
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}.") from None
    try:
        for name, data in build.files.items():
            file = temporary / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        temporary.chmod(0o755)
        if directory.exists():
            shutil.rmtree(directory)
        os.replace(temporary, directory)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}.") from None


def is_replaceable(directory: Path) -> bool:
    """Whether it is an empty directory or one with a manifest of ours."""
    if not directory.is_dir() or directory.is_symlink():
        return False
    if not any(directory.iterdir()):
        return True
    try:
        return "hlsgen" in json.loads((directory / "manifest.json").read_text())
    except (OSError, ValueError):
        return False


def reopen(directory: Path, progress: Progress | None = None) -> Build:
    """Compiles the model of a build again, with the options of its manifest. Raises HG050."""
    hint = "Give a directory that `hlsgen build` has written."
    try:
        manifest = json.loads((directory / "manifest.json").read_text())
        options = Options(**manifest["options"])
    except (OSError, ValueError, KeyError, TypeError):
        raise fail("HG050", str(directory), "has no readable manifest.json.", hint) from None
    path = directory / "model.onnx"
    if not path.is_file():
        raise fail("HG050", str(directory), "has no model.onnx.", hint)
    return compile_model(path, options, progress)


def changed_files(build: Build, directory: Path) -> list[str]:
    """Files of a build directory that are not what the model gives, or are missing or left over."""
    changed = []
    for name, data in build.files.items():
        file = directory / name
        if not file.is_file() or file.read_bytes() != data:
            changed.append(name)
    for folder in ("rtl", "tb"):
        for file in sorted((directory / folder).glob("*.*")):
            if file.is_file() and f"{folder}/{file.name}" not in build.files and file.suffix in (".v", ".mem"):
                changed.append(f"{folder}/{file.name}")
    return changed
