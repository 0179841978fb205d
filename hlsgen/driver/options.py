"""The options of a build: each is declared once, with its checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hlsgen.dataflow.bus import WIDTHS
from hlsgen.dataflow.folding import DEFAULT_PARALLELISM, check_folding
from hlsgen.dataflow.keywords import is_keyword
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
from hlsgen.ir import BinaryMap, Graph, IntegerSource, Map
from hlsgen.passes import InputMode
from hlsgen.passes.frame_states import NONE, VARIABLES
from hlsgen.rescale import KINDS

#: Most numbers of an initial state.
MAX_INITIAL = 1 << 20
#: Kinds of ports.
PORTS = ("packed", "separate", "plain")
#: Options that change streams or their control, which plain ports have not.
_STREAMS_ONLY = ("bus_width", "tkeep", "control", "loadable", "state")
#: A number in the scale of --source.
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
#: PE and SIMD of layers, by name.
Foldings = dict[str, dict[str, int]]


# --------------------------------------------------------------------------- legal values


def parse_input(text: str | None) -> InputMode | None:
    """Parses --input: codes, float32, fixed:W,I, ufixed:W,I, or a QONNX datatype; None if not given or not legal."""
    lowered_text = (text or "").strip().lower()
    if lowered_text in ("codes", "float32"):
        return InputMode(lowered_text)
    parsed = parse_datatype(lowered_text) if lowered_text else None
    return None if parsed is None else InputMode("fixed", *parsed)


def parse_inputs(types: str | Mapping[str, str] | None) -> dict[str, InputMode]:
    """The mode of each input by name; "" means all other inputs. The types must be legal."""
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
                "Supported: codes, float32, fixed:W,I, ufixed:W,I (W of 1 to 32 bits, I of them integer), INT8 and "
                "other QONNX datatypes.",
            )


def parse_source(name: str, text: str) -> IntegerSource | None:
    """Parses --source of an input: uint8, int8, uint16 or int16, and :SCALE; returns None if it is not legal."""
    matched = re.fullmatch(rf"(u?int(?:8|16))(?::({_NUMBER})(?:/({_NUMBER}))?)?", text, re.ASCII)
    if not matched:
        return None
    numerator, denominator = (Fraction(number or 1) for number in matched.groups()[1:])
    return IntegerSource(name, matched[1], numerator / denominator) if numerator and denominator else None


def sources_of(sources: str | Mapping[str, str] | None, inputs: Sequence[str]) -> tuple[IntegerSource, ...]:
    """The integer sources of inputs; of names that are no input as well. The texts must be legal."""
    by_name = sources if isinstance(sources, Mapping) else {"": sources} if sources else {}
    names = dict.fromkeys([*(by_name and inputs), *(name for name in by_name if name)])
    texts = {name: by_name.get(name, by_name.get("", "")) for name in names}
    return tuple(parsed for name, text in texts.items() if (parsed := parse_source(name, text)))


def _source(sources: str | dict[str, str]) -> Iterator[tuple[str, str]]:
    for text in sources.values() if isinstance(sources, dict) else [sources]:
        if parse_source("", text) is None:
            yield (
                f"{text!r} is no integer source.",
                "Supported: uint8, int8, uint16, int16, and a scale greater than 0 after a colon, such as uint8:1/255.",
            )


def _bus_width(text: str) -> Iterator[tuple[str, str]]:
    if text not in ("auto", *map(str, WIDTHS)):
        yield f"{text!r} is not a bus width.", f"Supported: {', '.join(map(str, WIDTHS))}, auto."


def _device(name: str) -> Iterator[tuple[str, str]]:
    if name not in devices():
        yield f"{name!r} is not known.", f"Supported: {', '.join(devices())}."


def _clock(mhz: float) -> Iterator[tuple[str, str]]:
    if not 0 < mhz <= 1e5:
        yield f"{mhz:g}.", "Supported: a number greater than 0, in MHz."


def _module_name(name: str) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(r"[A-Za-z_]\w{0,63}", name, re.ASCII) or is_keyword(name):
        yield (
            f"{name!r} is not a legal name of a Verilog module.",
            "Use letters, digits and _, at most 64, and no keyword.",
        )
    elif name == "hg" or name.startswith("hg_"):
        yield f"{name!r}.", "Names with hg_ are reserved for the library."


def default_top(stem: str, target: str) -> str:
    """Name of the top level for a model file with this name (without suffix): the nearest legal name."""
    name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_")[:58] or "core"
    name = f"core_{name}" if name[0].isdigit() else name
    backends = backends_of(target).values()

    def is_reserved(text: str) -> bool:
        port = re.fullmatch(r"clk|rst|rst_\w+|frame_error|[sm]_axi\w*|port_\w+", text)
        return port is not None or any(_module_name(text)) or any(backend.reserved(text) for backend in backends)

    names = [name, *([] if name.startswith("hg") else [f"{name}_core"]), f"core_{name}"]
    return next((text for text in names if not is_reserved(text)), f"core_{name}_core")


def _port_name(name: str) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(r"[A-Za-z]\w{0,63}", name, re.ASCII) or is_keyword(name):
        yield (
            f"{name!r} is not a legal name of a Verilog port.",
            "Use letters, digits and _, at most 64, and no keyword.",
        )


def _output_names(names: list[str]) -> Iterator[tuple[str, str]]:
    if len(set(names)) < len(names):
        yield "a tensor is named twice.", "Name each tensor once."


def _pe_and_simd(folding: Foldings) -> Iterator[tuple[str, str]]:
    if any(set(entry) != {"pe", "simd"} for entry in folding.values()):
        yield "does not map names of layers to whole numbers pe and simd.", 'Form: {"NAME": {"pe": N, "simd": N}}.'


def _realizations(wishes: dict[str, str]) -> Iterator[tuple[str, str]]:
    for kind in wishes.values():
        if kind not in KINDS:
            yield f"{kind!r} is not an implementation of quantizers.", f"Supported: {', '.join(KINDS)}."


# --------------------------------------------------------------------------- spellings on the command line


def read_folding(path: Path | None) -> Foldings:
    """Reads the layers of a folding file. Raises HG041."""
    if path is None:
        return {}
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except Exception as error:  # PyYAML also raises KeyError, AttributeError, RecursionError ...
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise fail("HG041", str(path), f"cannot be read: {text}.", "Start from the folding.yaml of a build.") from None
    layers: Any = data.get("layers") if isinstance(data, dict) else None
    if not conforms(layers, Foldings) or any(_pe_and_simd(layers)):
        raise fail("HG041", str(path), "is not a folding file.", "Form: layers: {NAME: {pe: N, simd: N}}.")
    return dict(layers)


def _read_reset(polarity: str) -> bool:
    if polarity not in ("high", "low"):
        raise fail("HG040", "--reset", f"{polarity!r}.", "Supported: high, low.")
    return polarity == "low"


def _read_by_name(types: list[str] | None) -> str | dict[str, str] | None:
    """A type for all inputs, or types by the names of inputs; "" means all others."""
    types_by_name = {name: kind for name, _, kind in (text.rpartition("=") for text in types or [])}
    return types_by_name.get("") if set(types_by_name) <= {""} else types_by_name


def _read_outputs(texts: list[str] | None) -> list[str]:
    return [name for text in texts or [] for name in text.split(",") if name]


def _with_array(text: str) -> str:
    """A pair of --state with the numbers of its file .npy in place of the name. Raises HG043."""
    pair, _, name = text.rpartition(":")
    if not name.endswith(".npy"):
        return text
    try:
        with Path(name).open("rb") as stream:
            numbers = np.load(stream, allow_pickle=False)
        if numbers.size > MAX_INITIAL:
            raise ValueError(f"{numbers.size} numbers, of at most {MAX_INITIAL}")
        return f"{pair}:{json.dumps(numbers.astype(np.float64).tolist())}"
    except (OSError, ValueError, TypeError, EOFError) as error:
        raise fail("HG043", name, f"cannot be read: {error}.", "Name a file .npy with numbers.") from None


def _read_realize(wishes: list[str] | None) -> dict[str, str]:
    return {layer: kind for layer, _, kind in (text.rpartition("=") for text in wishes or [])}


# --------------------------------------------------------------------------- the options


@dataclass(frozen=True)
class Options:
    """The options of a build. A manifest holds them all, so that the build can be repeated.

    The command line has the same names. `fps`, `reset` ("high" or "low") and `loadable_weights` are arguments only:
    they set `target_cycles`, `reset_active_low` and `loadable`. Raises HG040 or HG041 for values of a wrong type.
    """

    target: str = option(
        "verilog",
        "--target",
        "verilog, hls (C++ for HLS tools), or verilog,hls: both.",
        check=_targets,
        choices=lambda: [*BACKENDS, "verilog,hls"],
    )
    input: str | dict[str, str] | None = option(
        None,
        "--input",
        "Type of the input port: codes (the host quantizes), fixed:W,I or ufixed:W,I (W bits, I of them integer, as in "
        "ap_fixed), float32, or a QONNX datatype such as INT8. Default: the type that the model declares, else codes "
        "for networks and float32 for graphs of quantizers. With NAME: for that input only; repeatable.",
        metavar="[NAME=]TYPE",
        check=_input_type,
        spelling=Spelling(list[str] | None, None, _read_by_name),
    )
    source: str | dict[str, str] | None = option(
        None,
        "--source",
        "The host has integers in place of an input's numbers: uint8, int8, uint16 or int16, times SCALE (1, 1/16, "
        "0.5). Host code makes codes of them without floats. With NAME: of that input only; repeatable.",
        metavar="[NAME=]TYPE[:SCALE]",
        check=_source,
        spelling=Spelling(list[str] | None, None, _read_by_name),
    )
    lanes: int | None = option(
        None, "--lanes", "Elements in each beat, for graphs of quantizers. Default 1.", check=at_least(1, 9999)
    )
    target_cycles: int | None = option(
        None,
        "--target-cycles",
        f"Interval of at most N cycles a frame, with the least hardware. Default: about {DEFAULT_PARALLELISM} "
        "multiplications a cycle, at most a window a cycle.",
        check=at_least(1),
    )
    latency_cycles: int | None = option(
        None,
        "--latency-cycles",
        "Most cycles from the first word of a frame in to its last word out, if there are no stalls. Stages get longer "
        "until the network keeps it, so the clock gets slower. Verilog only.",
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
        "auto",
        "--recurrence",
        "Hardware of loops: unrolled (a copy of the cell for each step) or once (one cell with state feedback: less "
        "hardware, but the steps of a frame run sequentially); auto: once for the LSTM of TFLite.",
        check=one_of("auto", "unrolled", "once"),
        choices=lambda: ("auto", "unrolled", "once"),
    )
    reset_active_low: bool = option(
        False,
        "--reset",
        "Polarity of the reset port: high (rst) or low (rst_n).",
        spelling=Spelling(str, "high", _read_reset),
        choices=lambda: ("high", "low"),
    )
    clock_name: str = option("clk", "--clock-name", "Name of the clock port.", check=_port_name)
    reset_name: str | None = option(
        None, "--reset-name", "Name of the reset port. Default: rst or rst_n, by --reset.", check=_port_name
    )
    bus_width: str | None = option(
        None,
        "--bus-width",
        "Bits of tdata at all ports: 8, 16, 32 ... 1024, or auto: the smallest of 32 to 512 that keeps the rate. "
        "Default: one beat of the core, in whole bytes.",
        metavar="BITS",
        check=_bus_width,
        choices=lambda: (*map(str, WIDTHS), "auto"),
    )
    ports: str = option(
        "packed",
        "--ports",
        "packed: all inputs in s_axis, all outputs in m_axis. separate: a port for each (s_axis_NAME, m_axis_NAME). "
        "plain: no handshake, a word in every cycle, out after a fixed latency (in_valid, in_data, out_valid, "
        "out_data). Verilog only.",
        metavar="KIND",
        check=one_of(*PORTS),
        choices=lambda: PORTS,
    )
    state: list[str] = option(
        list,
        "--state",
        "Keep a tensor in the core from frame to frame: input IN of a frame is output OUT of the frame before, and "
        "INIT (default 0, a real number or a file .npy) in the first frame of a sequence. Repeatable. "
        "variables (the default for TFLite files): all variables of the file; none: they are inputs and outputs.",
        metavar="IN=OUT[:INIT]",
        spelling=Spelling(list[str] | None, None, lambda texts: list(texts or [])),
    )
    state_start: str = option(
        "auto",
        "--state-start",
        "How a sequence starts, besides after reset: tuser (a bit at the first word of a frame), register (a bit "
        "of the control register), reset (in no other way). auto: register with --control, else tuser.",
        check=one_of("auto", "tuser", "register", "reset"),
        choices=lambda: ("auto", "tuser", "register", "reset"),
    )
    tkeep: bool = option(False, "--tkeep", "Add tkeep to the ports: it marks the valid bytes of a word.")
    control: bool = option(
        False,
        "--control",
        "Add an AXI4-Lite port for control and status: version, model, frames, frame errors.",
    )
    top: str | None = option(
        None,
        "--top",
        "Name of the top module, and prefix of the names of other modules and memory files. Default: the name of the "
        "model's file.",
        check=_module_name,
    )
    name: str | None = option(None, None, "Title in comments and reports. Default: the name of the model's file.")
    prefer: str = option(
        "lut",
        "--prefer",
        "Hardware of multiplications: lut (no DSP blocks) or dsp.",
        check=one_of("lut", "dsp"),
        choices=lambda: ("lut", "dsp"),
    )
    realize: dict[str, str] = option(
        dict,
        "--realize",
        f"Implementation of quantizers: {', '.join(KINDS)}. With LAYER: of that quantizer only; repeatable. "
        "Default: the cheapest implementation that is proven equal.",
        metavar="[LAYER=]KIND",
        check=_realizations,
        choices=lambda: KINDS,
        spelling=Spelling(list[str] | None, None, _read_realize),
    )
    add: str = option(
        "exact",
        "--add",
        "QLinearAdd: exact (equal to its float32 definition) or fixed-point (multipliers and a shift).",
        check=one_of("exact", "fixed-point"),
        choices=lambda: ("exact", "fixed-point"),
    )
    outputs: list[str] = option(
        list,
        "--outputs",
        "Build the part of the graph that ends in this tensor; repeatable, or names separated by commas. "
        "Default: the outputs of the file.",
        metavar="TENSOR",
        check=_output_names,
        spelling=Spelling(list[str] | None, None, _read_outputs),
    )
    runtime: str = option(
        "auto",
        "--runtime",
        "Runtime whose integers the hardware computes: qonnx; onnx (each node as defined); onnxruntime (its default "
        "session on x86-64, which fuses groups of QDQ nodes); onnxruntime-arm (which also fuses int8 groups). "
        "For TFLite files: tflm, litert-ref, litert; for ALIR files: alir. auto: tflm for TFLite files, qonnx for "
        "QONNX files, onnxruntime for QDQ and QOperator files, else onnx.",
        check=one_of(*RUNTIMES),
        choices=lambda: RUNTIMES,
    )
    softmax: str = option(
        "host",
        "--softmax",
        "SOFTMAX after the last layer of a TFLite file: host, or hardware (not with --runtime litert).",
        check=one_of("host", "hardware"),
        choices=lambda: ("host", "hardware"),
    )
    merge_layers: bool = option(
        False,
        "--merge-layers",
        "Build dense layers and quantizers in series as one program of operations, a frame a cycle: fewer cycles and "
        "mostly fewer LUT for sparse or narrow weights, but no module for each layer. Verilog only.",
    )
    weights: str = option(
        "auto",
        "--weights",
        "Memories of weights: auto (block RAM if LUT cost more, else the synthesis tool chooses), lutram or bram.",
        choices=lambda: BACKENDS["verilog"].memories,
    )
    device: str | None = option(
        None,
        "--device",
        "FPGA, as `hlsgen devices` lists them. Without a target rate, builds the fastest network that fits in 80 % of "
        "it. Networks that do not fit are refused. Estimates and rates are for this device.",
        check=_device,
        choices=devices,
    )
    clock_mhz: float | None = option(
        None,
        "--clock-mhz",
        "Target clock, for --fps and printed rates. Above the default clock of --device (200 without a device), units "
        "are pipelined after every adder instead of every second one.",
        check=_clock,
    )
    max_lut: int | None = option(
        None, "--max-lut", "Build the fastest network of at most about N LUT.", check=at_least(0)
    )
    max_dsp: int | None = option(
        None,
        "--max-dsp",
        "Build the fastest network of at most N DSP blocks, which --prefer dsp uses. "
        "With a target rate: N blocks, for the layers that save the most LUT with them.",
        check=at_least(0),
    )
    max_bram: int | None = option(
        None,
        "--max-bram",
        "Build the fastest network of at most N block RAMs, of 18 Kbit or of the size of --device. "
        "With a target rate: N block RAMs, for the weights that save the most LUT with them.",
        check=at_least(0),
    )
    loadable: bool = option(
        False, "--loadable-weights", "Make weights writable at run time, through an AXI4-Lite port."
    )

    fps: InitVar[float | None] = None
    reset: InitVar[str | None] = None
    loadable_weights: InitVar[bool | None] = None

    def __post_init__(self, fps: float | None, reset: str | None, loadable_weights: bool | None) -> None:
        problems = Collector()
        with problems.catching():
            check_types(self)
            object.__setattr__(self, "state", [_with_array(text) for text in self.state])
            if reset is not None:
                object.__setattr__(self, "reset_active_low", _read_reset(reset))
            if loadable_weights is not None:
                object.__setattr__(self, "loadable", loadable_weights)
            if fps is not None:
                object.__setattr__(self, "target_cycles", self._cycles_at(fps))
        problems.finish()

    def _cycles_at(self, fps: float) -> int:
        """Cycles a frame at a rate. Raises HG040."""
        if self.target_cycles is not None:
            raise fail("HG040", "--fps", "given together with --target-cycles.", "Give one of them.")
        if not 0 < fps <= 1e12:
            raise fail("HG040", "--fps", f"{fps}.", "Supported: a number greater than 0.")
        cycles = int(self.rate_mhz * 1e6 / fps)
        if cycles < 1:
            few = f"{fps:g} frames a second at {self.rate_mhz:g} MHz is less than a cycle a frame."
            raise fail("HG040", "--fps", few)
        return cycles

    @property
    def rate_mhz(self) -> float:
        """The clock for rates: the target clock, else the default clock of the device, else `CLOCK_MHZ`."""
        if self.clock_mhz is not None:
            return self.clock_mhz
        device = devices().get(self.device or "")
        return CLOCK_MHZ if device is None else device.clock_mhz

    @property
    def separate(self) -> bool:
        """True if each input and output has a port of its own."""
        return self.ports == "separate"

    @property
    def plain(self) -> bool:
        """True if the ports have no handshake."""
        return self.ports == "plain"

    @property
    def cycles(self) -> int | None:
        """The requested interval: plain ports need a frame in every cycle."""
        return 1 if self.plain else self.target_cycles

    @property
    def states(self) -> list[str]:
        """The pairs of --state."""
        return [text for text in self.state if text != NONE]

    @property
    def starts_by(self) -> str:
        """How a sequence of frames starts: "tuser", "register" or "reset"; "" without states."""
        if not self.states:
            return ""
        return self.state_start if self.state_start != "auto" else "register" if self.control else "tuser"

    @property
    def chosen_device(self) -> Device | None:
        """The device of --device."""
        return None if self.device is None else devices()[self.device]

    @property
    def pipelining(self) -> Pipelining:
        """Pipelining of units for the target clock."""
        device = self.chosen_device
        if self.clock_mhz is None or self.clock_mhz <= (device.plain_mhz if device else CLOCK_MHZ):
            return PLAIN
        slow = device is not None and self.clock_mhz > device.family.bram_mhz
        return Pipelining(adders_per_stage=1, tables=slow and not self.loadable)

    @property
    def asked_budget(self) -> Budget:
        """The requested budget, in resources of the device if there is one."""
        return Budget(self.max_lut, self.max_dsp, self.max_bram)

    @property
    def searches(self) -> bool:
        """True if the fastest network within a budget or a device is requested."""
        limited = self.asked_budget.is_limited or (self.device is not None and not self.folding)
        return limited and self.cycles is None

    @property
    def budget(self) -> Budget:
        """The budget of the network, in resources of the estimate; unlimited if nothing is requested.

        If a rate is given, it limits DSP blocks and block RAM, and LUT by the size of the device.
        """
        if self.searches:
            return allowed(self.asked_budget, self.chosen_device, SHARE)
        if self.cycles is None:
            return Budget()
        return allowed(self.asked_budget, self.chosen_device, 1.0)

    @property
    def preferred(self) -> str:
        """Hardware of multiplications: DSP blocks if they are preferred and the budget has any."""
        return "lut" if self.budget.dsp == 0 else self.prefer


def reset_port(options: Options) -> str:
    """The name of the reset port."""
    return options.reset_name or ("rst_n" if options.reset_active_low else "rst")


def from_manifest(values: object) -> Options | None:
    """The options in a manifest, which may hold anything; None if a name or a type is wrong.

    A manifest has the numbers of initial states: files that it names are not opened.
    """
    if not isinstance(values, Mapping) or not set(values) <= {
        declared_option.name for declared_option in declared(Options)
    }:
        return None
    states = values.get("state")
    if isinstance(states, list) and any(isinstance(text, str) and text.endswith(".npy") for text in states):
        return None
    try:
        return Options(**values)
    except HlsgenError:
        return None


def check_options(options: Options) -> None:
    """Checks that need no model. Raises every problem: HG040, HG041."""
    problems = Collector()
    check_values(options, problems)
    if options.clock_name == reset_port(options):
        problems.error(
            "HG040", "--clock-name", f"{options.clock_name!r} is the name of the reset.", "Choose another name."
        )
    requested_backends = {} if any(_targets(options.target)) else backends_of(options.target)
    legal = [
        name
        for name in BACKENDS["verilog"].memories
        if all(name in declared_option.memories for declared_option in requested_backends.values())
    ]
    if options.weights not in legal:
        text = f"{options.weights!r} with --target {options.target}."
        problems.error("HG040", "--weights", text, f"Supported: {', '.join(legal)}.")
    if options.loadable and options.recurrence == "once":
        text = "cannot be combined with --recurrence once."
        problems.error("HG040", "--loadable-weights", text, "Build with --recurrence unrolled.")
    for name, backend in requested_backends.items():
        if options.top is not None and backend.reserved(options.top):
            text = f"{options.top!r} is reserved in the files of target {name}."
            problems.error("HG040", "--top", text, "Choose another name.")
        for declared_option in declared(Options):
            value = options.states if declared_option.name == "state" else getattr(options, declared_option.name)
            if declared_option.name in backend.unsupported and value != declared_option.default:
                flag = declared_option.declaration.flag or declared_option.name
                text = f"target {name} does not support it: {backend.unsupported[declared_option.name]}."
                problems.error("HG040", flag, text, _left_out(options, flag))
    if options.starts_by == "register" and not options.control:
        problems.error("HG043", "--state-start", "register without --control.", "Add --control, or choose tuser.")
    if options.states and options.loadable:
        hint = _left_out(options, "--state") if VARIABLES in options.state else "Leave one of them out."
        problems.error("HG040", "--state", "cannot be combined with --loadable-weights.", hint)
    if {VARIABLES, NONE} <= set(options.state):
        problems.error("HG043", "--state", "both variables and none are given.", "Leave one of them out.")
    if options.plain:
        _check_plain(options, problems)
    if options.max_lut is not None and options.cycles is not None:
        problems.error("HG040", "--max-lut", "given together with a target rate.", "Give one of them.")
    problems.finish()


def _check_plain(options: Options, problems: Collector) -> None:
    """Checks that no option contradicts plain ports."""
    for declared_option in declared(Options):
        value = options.states if declared_option.name == "state" else getattr(options, declared_option.name)
        if declared_option.name in _STREAMS_ONLY and value != declared_option.default:
            flag = declared_option.declaration.flag or declared_option.name
            text = "cannot be combined with --ports plain, which has data and a valid bit only."
            problems.error("HG040", flag, text, _left_out(options, flag))
    if options.target_cycles not in (None, 1):
        text = f"{options.target_cycles}, but --ports plain takes a frame in every cycle."
        problems.error("HG040", "--target-cycles", text, "Leave the rate out.")
    if "hls" in options.target.split(","):
        problems.error("HG040", "--ports", f"plain with --target {options.target}.", "Build with --target verilog.")


def _left_out(options: Options, flag: str) -> str:
    """How to build without an option, which a TFLite file with variables sets by itself."""
    if flag == "--state" and VARIABLES in options.state:
        return "Build with --state none: variables are then inputs and outputs."
    return "Leave the option out."


def check_options_for(options: Options, graph: Graph) -> None:
    """Checks that the graph has the layers named in the options. Raises every problem: HG040, HG041."""
    problems = Collector()
    quantizers = [layer.name for layer in graph.layers if isinstance(layer, Map | BinaryMap)]
    hint = "Quantizers: " + (", ".join(quantizers) or "none") + "."
    for name in options.realize:
        if name and name not in quantizers:
            problems.error("HG040", "--realize", f"there is no quantizer {name!r}.", hint)
    multiplies = bool(works_of(graph))
    if options.lanes is not None and multiplies:
        problems.error("HG040", "--lanes", "applies to graphs without linear layers.", "Use --folding here.")
    if options.loadable and not multiplies:
        problems.error("HG040", "--loadable-weights", "the model has no layer with weights.", "Leave the option out.")
    check_folding(graph, options.folding, problems)
    problems.finish()
