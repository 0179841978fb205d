"""What a build can be told: every option, declared once, and the checks of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hlsgen.dataflow.bus import WIDTHS
from hlsgen.dataflow.folding import DEFAULT_PARALLELISM, check_folding
from hlsgen.dataflow.pipelining import PLAIN, Pipelining
from hlsgen.dataflow.resources import Budget
from hlsgen.dataflow.workload import works_of
from hlsgen.devices import CLOCK_MHZ, Device, devices
from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.driver.backends import BACKENDS, backends_of
from hlsgen.driver.declaration import Spelling, at_least, check_types, check_values, conforms, declared, one_of, option
from hlsgen.driver.fit import SHARE, allowed
from hlsgen.frontend import parse_datatype
from hlsgen.frontend.runtimes import CHOICES as RUNTIMES
from hlsgen.ir import BinaryMap, Graph, Map
from hlsgen.passes import InputMode
from hlsgen.rescale import KINDS
from hlsgen.verilog.keywords import is_keyword

#: PE and SIMD of layers, by name.
Foldings = dict[str, dict[str, int]]


# --------------------------------------------------------------------------- legal values


def parse_input(text: str | None) -> InputMode | None:
    """--input: codes, float32, fixed:W,I, ufixed:W,I, or a QONNX datatype name. None: not given, or not legal."""
    plain = (text or "").strip().lower()
    if plain in ("codes", "float32"):
        return InputMode(plain)
    found = parse_datatype(plain) if plain else None
    return None if found is None else InputMode("fixed", *found)


def parse_inputs(types: str | Mapping[str, str] | None) -> dict[str, InputMode]:
    """--input: the mode of each input that has one, "" standing for all others. The types are legal."""
    by_name = types if isinstance(types, Mapping) else {"": types}
    return {name: mode for name, text in by_name.items() if (mode := parse_input(text)) is not None}


def _targets(names: str) -> Iterator[tuple[str, str]]:
    try:
        backends_of(names)
    except HlsgenError as error:
        yield from ((d.message, d.hint) for d in error.diagnostics)


def _input_type(types: str | dict[str, str]) -> Iterator[tuple[str, str]]:
    for text in types.values() if isinstance(types, dict) else [types]:
        if parse_input(text) is None:
            yield (
                f"{text!r} is not an input type.",
                "Supported: codes, float32, fixed:W,I, ufixed:W,I (W of 1 to 32 bits, I of them integer), INT8 and the like.",
            )


def _bus_width(text: str) -> Iterator[tuple[str, str]]:
    if text not in ("auto", *map(str, WIDTHS)):
        yield f"{text!r} is no width of a bus.", f"Supported: {', '.join(map(str, WIDTHS))}, auto."


def _device(name: str) -> Iterator[tuple[str, str]]:
    if name not in devices():
        yield f"{name!r} is not known.", f"Supported: {', '.join(devices())}."


def _clock(mhz: float) -> Iterator[tuple[str, str]]:
    if not 0 < mhz <= 1e5:
        yield f"{mhz:g}.", "Supported: a number greater than 0, in MHz."


def _module_name(name: str) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(r"[A-Za-z_]\w{0,63}", name, re.ASCII) or is_keyword(name):
        yield f"{name!r} is no name for a Verilog module.", "Letters, digits and _, at most 64, and no keyword."
    elif name == "hg" or name.startswith("hg_"):
        yield f"{name!r}.", "Names with hg_ belong to the library."


def default_top(stem: str, target: str) -> str:
    """The name of the top level of a model whose file has this name, without its suffix: the nearest legal one."""
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_")[:58] or "core"
    name = f"core_{name}" if name[0].isdigit() else name
    backends = backends_of(target).values()

    def taken(text: str) -> bool:
        port = re.fullmatch(r"clk|rst|rst_\w+|frame_error|[sm]_axi\w*|port_\w+", text)
        return port is not None or any(_module_name(text)) or any(backend.reserved(text) for backend in backends)

    names = [name, *([] if name.startswith("hg") else [f"{name}_core"]), f"core_{name}"]
    return next((text for text in names if not taken(text)), f"core_{name}_core")


def _port_name(name: str) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(r"[A-Za-z]\w{0,63}", name, re.ASCII) or is_keyword(name):
        yield f"{name!r} is no name for a Verilog port.", "Letters, digits and _, at most 64, and no keyword."


def _output_names(names: list[str]) -> Iterator[tuple[str, str]]:
    if len(set(names)) < len(names):
        yield "a tensor is named twice.", "Name each one once."


def _pe_and_simd(folding: Foldings) -> Iterator[tuple[str, str]]:
    if any(set(entry) != {"pe", "simd"} for entry in folding.values()):
        yield "does not map names of layers to whole numbers pe and simd.", 'Form: {"NAME": {"pe": N, "simd": N}}.'


def _realizations(wishes: dict[str, str]) -> Iterator[tuple[str, str]]:
    for kind in wishes.values():
        if kind not in KINDS:
            yield f"{kind!r} is no realization.", f"Supported: {', '.join(KINDS)}."


# --------------------------------------------------------------------------- what is written on the command line


def read_folding(path: Path | None) -> Foldings:
    """The layers of a folding file. Raises HG041."""
    if path is None:
        return {}
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except Exception as error:  # PyYAML lets KeyError, AttributeError, RecursionError ... through
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise fail("HG041", str(path), f"cannot be read: {text}.", "Start from the folding.yaml of a build.") from None
    layers: Any = data.get("layers") if isinstance(data, dict) else None
    if not conforms(layers, Foldings) or any(_pe_and_simd(layers)):
        raise fail("HG041", str(path), "is no folding file.", "Form: layers: {NAME: {pe: N, simd: N}}.")
    return dict(layers)


def _read_reset(polarity: str) -> bool:
    if polarity not in ("high", "low"):
        raise fail("HG040", "--reset", f"{polarity!r}.", "Supported: high, low.")
    return polarity == "low"


def _read_input(types: list[str] | None) -> str | dict[str, str] | None:
    """A type for all inputs, or types by the names of inputs, "" for all others."""
    found = {name: kind for name, _, kind in (text.rpartition("=") for text in types or [])}
    return found.get("") if set(found) <= {""} else found


def _read_outputs(texts: list[str] | None) -> list[str]:
    return [name for text in texts or [] for name in text.split(",") if name]


def _read_realize(wishes: list[str] | None) -> dict[str, str]:
    return {layer: kind for layer, _, kind in (text.rpartition("=") for text in wishes or [])}


# --------------------------------------------------------------------------- the options


@dataclass(frozen=True)
class Options:
    """What a build can be told; all that its manifest needs to be made again.

    Raises HG040 or HG041 if a value has another type than its field.
    """

    target: str = option(
        "verilog", "--target", "verilog, hls (C++ for HLS tools), or verilog,hls: both.", check=_targets
    )
    input: str | dict[str, str] | None = option(
        None,
        "--input",
        "What the input port carries: codes (the host quantizes), fixed:W,I or ufixed:W,I (W bits, I of them "
        "integer, as ap_fixed), float32, or a QONNX datatype such as INT8. Default: the type the model declares; "
        "else codes for networks, float32 for graphs of quantizers. Of a model with several inputs all of them, or that "
        "one; may be given several times.",
        metavar="[NAME=]TYPE",
        check=_input_type,
        spelling=Spelling(list[str] | None, None, _read_input),
    )
    lanes: int | None = option(
        None, "--lanes", "Elements a beat, for graphs of quantizers. Default 1.", check=at_least(1, 9999)
    )
    target_cycles: int | None = option(
        None,
        "--target-cycles",
        f"At most so many cycles a frame, with the least hardware. Default: about {DEFAULT_PARALLELISM} multiplications a cycle, "
        "at most a window a cycle.",
        check=at_least(1),
    )
    folding: Foldings = option(
        dict,
        "--folding",
        "YAML file with PE and SIMD of layers, as a build writes it.",
        check=_pe_and_simd,
        spelling=Spelling(Path | None, None, read_folding),
        code="HG041",
    )
    recurrence: str = option(
        "unrolled",
        "--recurrence",
        "Scan and QuantLSTMCell: unrolled, a copy of the cell for each step, or once, one cell whose states come back: less "
        "hardware, an interval of all steps one after the other.",
        check=one_of("unrolled", "once"),
    )
    reset_active_low: bool = option(
        False,
        "--reset",
        "Polarity of the reset port: high (rst) or low (rst_n).",
        spelling=Spelling(str, "high", _read_reset),
    )
    clock_name: str = option("clk", "--clock-name", "Name of the clock port.", check=_port_name)
    reset_name: str | None = option(
        None, "--reset-name", "Name of the reset port. Default: rst or rst_n, by --reset.", check=_port_name
    )
    bus_width: str | None = option(
        None,
        "--bus-width",
        "Bits of tdata at both ports: 8, 16, 32 ... 1024, or auto: the least of 32 to 512 that keeps the rate. "
        "Default: a beat of the core in whole bytes.",
        metavar="BITS",
        check=_bus_width,
    )
    ports: str = option(
        "packed",
        "--ports",
        "Ports of several inputs or outputs: packed (all in s_axis, all in m_axis) or separate (s_axis_NAME, m_axis_NAME).",
        metavar="KIND",
        check=one_of("packed", "separate"),
    )
    tkeep: bool = option(False, "--tkeep", "Ports with tkeep: the bytes of a word that count.")
    control: bool = option(
        False,
        "--control",
        "An AXI4-Lite port for control and status: version, model, frames, frame errors.",
    )
    top: str | None = option(
        None,
        "--top",
        "Name of the top module, in front of the names of all other modules and memory files too. Default: that of the "
        "model's file.",
        check=_module_name,
    )
    name: str | None = option(None, None, "Title in comments and reports. Default: the name of the model's file.")
    prefer: str = option(
        "lut",
        "--prefer",
        "What multiplications take: lut (no DSP blocks) or dsp.",
        check=one_of("lut", "dsp"),
    )
    realize: dict[str, str] = option(
        dict,
        "--realize",
        f"How quantizers are realized, all or that one: {', '.join(KINDS)}. May be given several times. "
        "Default: the cheapest that is proven equal.",
        metavar="[LAYER=]KIND",
        check=_realizations,
        spelling=Spelling(list[str] | None, None, _read_realize),
    )
    add: str = option(
        "exact",
        "--add",
        "QLinearAdd: exact to its float chain, or fixed-point (multipliers and a shift).",
        check=one_of("exact", "fixed-point"),
    )
    outputs: list[str] = option(
        list,
        "--outputs",
        "Builds the part of the graph that ends in this tensor. May be given several times, or names with commas between. "
        "Default: the outputs of the file.",
        metavar="TENSOR",
        check=_output_names,
        spelling=Spelling(list[str] | None, None, _read_outputs),
    )
    runtime: str = option(
        "auto",
        "--runtime",
        "Program whose integers the hardware has: qonnx; onnx (each node as it is defined); onnxruntime (its default session "
        "on x86-64, with the groups of QDQ nodes that it fuses); onnxruntime-arm (which fuses int8 groups too). "
        "auto: qonnx for QONNX files, onnxruntime for QDQ and QOperator files, else onnx.",
        check=one_of(*RUNTIMES),
    )
    weights: str = option(
        "auto",
        "--weights",
        "Where weights are held: auto (block RAM where tables cost more, else the synthesis tool chooses), lutram or bram.",
    )
    device: str | None = option(
        None,
        "--device",
        "FPGA, as `hlsgen devices` lists them: without a target rate the fastest network that fits in 80 % of it; "
        "whatever does not fit is refused. Estimates and rates are those of the device.",
        check=_device,
    )
    clock_mhz: float | None = option(
        None,
        "--clock-mhz",
        "Clock that is wanted, for --fps and for rates that are printed. Where designs with a register after every two adders "
        "do not reach it on --device (200 without one), units have one after every adder. Default: what designs reach there.",
        check=_clock,
    )
    max_lut: int | None = option(
        None, "--max-lut", "The fastest network of at most about so many LUT.", check=at_least(0)
    )
    max_dsp: int | None = option(
        None,
        "--max-dsp",
        "The fastest network of at most so many DSP blocks, which --prefer dsp takes. "
        "With a target rate: so many blocks, for the layers that save the most LUT with them.",
        check=at_least(0),
    )
    max_bram: int | None = option(
        None,
        "--max-bram",
        "The fastest network of at most so many block memories, of 18 Kbit or as --device has them. "
        "With a target rate: so many, for the weights that save the most LUT with them.",
        check=at_least(0),
    )
    loadable: bool = option(
        False, "--loadable-weights", "Weights can be written at run time, through an AXI4-Lite port."
    )

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def separate(self) -> bool:
        """Whether each of several inputs and outputs has a port of its own."""
        return self.ports == "separate"

    @property
    def chosen_device(self) -> Device | None:
        """The device that was named."""
        return None if self.device is None else devices()[self.device]

    @property
    def pipelining(self) -> Pipelining:
        """How deep units are pipelined for the clock that is wanted."""
        device = self.chosen_device
        if self.clock_mhz is None or self.clock_mhz <= (device.plain_mhz if device else CLOCK_MHZ):
            return PLAIN
        slow = device is not None and self.clock_mhz > device.family.bram_mhz
        return Pipelining(adders_per_stage=1, tables=slow and not self.loadable)

    @property
    def asked_budget(self) -> Budget:
        """What was asked for, in the kinds of the device if one is named."""
        return Budget(self.max_lut, self.max_dsp, self.max_bram)

    @property
    def searches(self) -> bool:
        """Whether the fastest network is wanted that a budget or a device allows."""
        asked = self.asked_budget.is_limited or (self.device is not None and not self.folding)
        return asked and self.target_cycles is None

    @property
    def budget(self) -> Budget:
        """What the search for the fastest network may spend, in the kinds of the estimate; nothing given: there is none.

        Of a network with a rate, the blocks that it may have, and the tables of its device.
        """
        if self.searches:
            return allowed(self.asked_budget, self.chosen_device, SHARE)
        if self.target_cycles is None:
            return Budget()
        return allowed(self.asked_budget, self.chosen_device, 1.0)

    @property
    def preferred(self) -> str:
        """What multiplications take: blocks if those are preferred and there may be any."""
        return "lut" if self.budget.dsp == 0 else self.prefer


def reset_port(options: Options) -> str:
    """The name of the reset port."""
    return options.reset_name or ("rst_n" if options.reset_active_low else "rst")


def from_manifest(values: object) -> Options | None:
    """The options that a manifest, which may be anything, holds; None if they are not of their types."""
    if not isinstance(values, Mapping) or not set(values) <= {one.name for one in declared(Options)}:
        return None
    try:
        return Options(**values)
    except HlsgenError:
        return None


def check_options(options: Options) -> None:
    """What can be said before there is a model. Raises every problem: HG040, HG041."""
    problems = Collector()
    check_values(options, problems)
    if options.clock_name == reset_port(options):
        problems.error("HG040", "--clock-name", f"{options.clock_name!r} is the reset.", "Choose another name.")
    asked = {} if any(_targets(options.target)) else backends_of(options.target)
    legal = [name for name in BACKENDS["verilog"].memories if all(name in one.memories for one in asked.values())]
    if options.weights not in legal:
        text = f"{options.weights!r} with --target {options.target}."
        problems.error("HG040", "--weights", text, f"Supported: {', '.join(legal)}.")
    if options.loadable and options.recurrence == "once":
        text = "not together with --recurrence once."
        problems.error("HG040", "--loadable-weights", text, "Build with --recurrence unrolled.")
    for name, backend in asked.items():
        if options.top is not None and backend.reserved(options.top):
            text = f"{options.top!r} means something else in the files of target {name}."
            problems.error("HG040", "--top", text, "Choose another name.")
        for one in declared(Options):
            if one.name in backend.unsupported and getattr(options, one.name) != one.default:
                text = f"target {name} does not have it: {backend.unsupported[one.name]}."
                problems.error("HG040", one.declaration.flag or one.name, text, "Leave the option out.")
    if options.separate and options.recurrence == "once":
        text = "cannot be with --recurrence once."
        problems.error("HG040", "--ports", f"'separate' {text}", "Leave one of both out.")
    if options.max_lut is not None and options.target_cycles is not None:
        problems.error("HG040", "--max-lut", "a budget of LUT and a target rate.", "Give one of them.")
    problems.finish()


def check_options_for(options: Options, graph: Graph) -> None:
    """Whether the graph has what the options speak of. Raises every problem: HG040, HG041."""
    problems = Collector()
    quantizers = [layer.name for layer in graph.layers if isinstance(layer, Map | BinaryMap)]
    known = "Quantizers: " + (", ".join(quantizers) or "none") + "."
    for name in options.realize:
        if name and name not in quantizers:
            problems.error("HG040", "--realize", f"no quantizer {name!r}.", known)
    multiplies = bool(works_of(graph))
    if options.lanes is not None and multiplies:
        problems.error("HG040", "--lanes", "applies to graphs without linear layers.", "Use --folding here.")
    if options.loadable and not multiplies:
        problems.error("HG040", "--loadable-weights", "the model has no layer with weights.", "Leave the option out.")
    check_folding(graph, options.folding, problems)
    problems.finish()
