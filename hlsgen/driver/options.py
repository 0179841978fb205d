"""What a build can be told: options, their checks, and the files they are read from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend import parse_datatype
from hlsgen.passes import InputMode


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


def check_options(options: Options) -> None:
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


def is_options(values: dict[str, Any]) -> bool:
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
