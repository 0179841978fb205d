"""Model file -> all files of a build, in memory; the same for the same model and options."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from hlsgen import certificate
from hlsgen.budget import Budget
from hlsgen.cost import STYLES, network_cost
from hlsgen.elaborate import Design, elaborate
from hlsgen.emit import project, verilog
from hlsgen.errors import Collector, Diagnostic, fail
from hlsgen.folding import Targets
from hlsgen.frontend import import_model, parse_datatype, self_contained
from hlsgen.ir import Graph
from hlsgen.passes import InputMode, lower
from hlsgen.render import identifier
from hlsgen.schedule import Schedule, plan
from hlsgen.timing import busy

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
    prefer: str = "lut"
    realize: dict[str, str] = field(default_factory=dict)
    add: str = "exact"
    weights: str = "auto"
    max_lut: int | None = None
    max_dsp: int | None = None
    max_bram: int | None = None
    loadable: bool = False


@dataclass(frozen=True, eq=False)
class Build:
    """A compiled model: schedule, design, and text or bytes of every file."""

    options: Options
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
    with problems.catching():
        mode = parse_input(options.input)
    model = import_model(path, problems, options.add == "fixed-point")
    if model is None:
        problems.finish()
    assert model is not None
    with problems.catching():
        graph = lower(model, mode, problems)
    problems.finish()
    budget = Budget(options.max_lut, options.max_dsp, options.max_bram)
    targets = Targets(
        options.target_cycles, options.lanes, options.folding, options.prefer, options.realize, options.weights, budget
    )
    schedule = plan(graph, targets, progress)
    if options.target_cycles and schedule.interval > options.target_cycles:
        slowest = max(schedule.stages, key=lambda stage: (busy(stage), bool(stage.layer)))
        problems.warn(
            "HG090", "--target-cycles", f"{options.target_cycles} cycles cannot be met; taken: {schedule.interval}, "
            f"what {slowest.layer or slowest.name} needs.",
        )  # fmt: skip
    data = self_contained(path)
    options = replace(options, name=_title(options.name or path.stem))
    about = {"file": "model.onnx", "sha256": hashlib.sha256(data).hexdigest()}
    design = elaborate(
        schedule, identifier(options.top), options.reset_active_low, options.name or "", STYLES[options.weights],
        loadable=options.loadable,
    )  # fmt: skip
    if options.loadable and not design.loads:
        raise fail("HG040", "--loadable-weights", "the model has no layer with weights.", "Leave the option out.")
    if budget.given:
        cost = network_cost(
            schedule.stages, schedule.choices, dsp=options.prefer == "dsp", style=STYLES[options.weights]
        )
        if budget.excess(cost) > 1:
            problems.warn(
                "HG090", "--max-lut, --max-dsp, --max-bram",
                f"the smallest network found takes about {cost.lut:.0f} LUT, {cost.dsp} DSP, {cost.bram} BRAM.",
            )  # fmt: skip
    texts = verilog.emit(design, schedule)
    texts |= project.emit(design, schedule, asdict(options), about, tool_version())
    files = {name: text.encode() for name, text in texts.items()}
    files["model.onnx"] = data
    rtl = {name: content for name, content in files.items() if name.startswith("rtl/")}
    files["certificate.json"] = certificate.emit(design, schedule, about, rtl).encode()
    return Build(options, schedule, design, dict(sorted(files.items())), problems.warnings)


def _title(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "/*\\" else " " for c in name)[:80]


#: Words that no Verilog or SystemVerilog module can have as its name, and that tools stumble over.
_RESERVED = frozenset(
    """always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default
    defparam design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive
    endspecify endtable endtask event for force forever fork function generate genvar highz0 highz1 if ifnone
    incdir include initial inout input instance integer join large liblist library localparam macromodule
    medium module nand negedge nmos nor not notif0 notif1 or output parameter pmos posedge primitive pull0
    pull1 pulldown pullup rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1 scalared
    showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
    tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor
    xnor xor alias assert assume before bind bins bit break byte chandle checker class clocking const
    constraint context continue cover cross dist do endclass endinterface endpackage endprogram enum expect
    export extends extern final foreach global iff import inside int interface interleave local logic longint
    matches modport new null package packed priority program property protected pure rand randc ref restrict
    return sequence shortint shortreal solve static string strong struct super tagged this throughout timeunit
    type typedef union unique until var virtual void weak with within""".split()
)


def _check_options(options: Options) -> None:
    problems = Collector()
    if options.add not in ("exact", "fixed-point"):
        problems.error("HG040", "--add", f"{options.add!r}.", "Supported: exact, fixed-point.")
    if not re.fullmatch(r"[A-Za-z_]\w{0,63}", options.top, re.ASCII) or options.top in _RESERVED:
        problems.error(
            "HG040", "--top", f"{options.top!r} is no name for a Verilog module.",
            "Letters, digits and _, at most 64, and no keyword.",
        )  # fmt: skip
    elif options.top.startswith("hg_"):
        problems.error("HG040", "--top", f"{options.top!r}.", "Names with hg_ belong to the library.")
    if options.target != "verilog":
        problems.error("HG040", "--target", f"{options.target!r} is not supported.", "Supported: verilog.")
    if options.lanes is not None and not 1 <= options.lanes <= 9999:
        problems.error("HG040", "--lanes", f"{options.lanes}.", "Supported: 1 to 9999.")
    if not is_folding(options.folding):
        problems.error(
            "HG041", "folding", "does not map names of layers to whole numbers pe and simd.",
            'Form: {"NAME": {"pe": N, "simd": N}}.',
        )  # fmt: skip
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
    except Exception as error:  # PyYAML lets KeyError, AttributeError, RecursionError ... through
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise fail("HG041", str(path), f"cannot be read: {text}.", "Start from the folding.yaml of a build.") from None
    layers = data.get("layers") if isinstance(data, dict) else None
    if not is_folding(layers):
        raise fail("HG041", str(path), "is no folding file.", "Form: layers: {NAME: {pe: N, simd: N}}.")
    assert isinstance(layers, dict)
    return layers


def is_folding(layers: object) -> bool:
    """Whether it maps layer names to whole numbers pe and simd."""
    return isinstance(layers, dict) and all(
        isinstance(name, str) and isinstance(entry, dict) and set(entry) == {"pe", "simd"}
        and all(type(value) is int for value in entry.values())
        for name, entry in layers.items()
    )  # fmt: skip


def write_build(build: Build, directory: Path) -> None:
    """Writes all files at once: into a temporary directory that then takes the place.

    An existing directory is replaced only if it is empty or a build itself. Raises HG050, HG001.
    """
    check_output(directory)
    directory = Path(os.path.abspath(directory))
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
        _take_place(temporary, directory)
    except OSError as error:
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_place(temporary: Path, directory: Path) -> None:
    """Renames `temporary` to `directory`; what was there comes back if that fails."""
    if not directory.exists():
        os.replace(temporary, directory)
        return
    old = temporary.with_name(temporary.name + ".old")
    os.replace(directory, old)
    try:
        os.replace(temporary, directory)
    except BaseException:
        os.replace(old, directory)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_output(directory: Path) -> None:
    """Refuses what is there and is no build. Raises HG050, HG001."""
    try:
        os.lstat(directory)
        blocked = not is_replaceable(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise fail("HG001", str(directory), f"cannot be written: {getattr(error, 'strerror', error)}.") from None
    if blocked:
        raise fail(
            "HG050", str(directory), "exists and is not a build of hlsgen; it is left as it is.",
            "Choose another -o, or remove it.",
        )  # fmt: skip


def is_replaceable(directory: Path) -> bool:
    """Whether it is an empty directory or one with a manifest of ours."""
    if not directory.is_dir() or directory.is_symlink():
        return False
    if not any(directory.iterdir()):
        return True
    try:
        manifest = _read_manifest(directory)
    except (OSError, ValueError, RecursionError):
        return False
    return {"hlsgen", "model", "options"} <= set(manifest)


def _read_manifest(directory: Path) -> dict[str, Any]:
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    if not isinstance(manifest, dict):
        raise ValueError("no object")
    return manifest


def _is_options(values: dict[str, Any]) -> bool:
    """Whether every option of a manifest has its type."""
    kinds: dict[str, tuple[type, ...]] = {
        "target": (str,), "input": (str, type(None)), "lanes": (int, type(None)),
        "target_cycles": (int, type(None)), "folding": (dict,), "reset_active_low": (bool,), "top": (str,),
        "name": (str, type(None)), "prefer": (str,), "realize": (dict,), "add": (str,),
        "weights": (str,), "max_lut": (int, type(None)), "max_dsp": (int, type(None)), "max_bram": (int, type(None)),
        "loadable": (bool,),
    }  # fmt: skip
    return (
        set(values) <= set(kinds)
        and all(isinstance(text, str) for pair in values.get("realize", {}).items() for text in pair)
        and all(type(value) in kinds[name] for name, value in values.items())
        and is_folding(values.get("folding", {}))
    )


def reopen(directory: Path, progress: Progress | None = None) -> Build:
    """Compiles the model of a build again, with the options of its manifest. Raises HG050."""
    hint = "Give a directory that `hlsgen build` has written."
    try:
        options = _read_manifest(directory)["options"]
        if not isinstance(options, dict) or not _is_options(options):
            raise ValueError("options")
    except (OSError, ValueError, KeyError, RecursionError):
        raise fail("HG050", str(directory), "has no readable manifest.json.", hint) from None
    path = directory / "model.onnx"
    if not path.is_file():
        raise fail("HG050", str(directory), "has no model.onnx.", hint)
    return compile_model(path, Options(**options), progress)


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
