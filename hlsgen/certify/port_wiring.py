"""Proves the ends of a top level: its ports are the ones that the options request, and end at the modules for ports.

Written independently, from docs/commands.md and the heads of these modules. No code of the emitter is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlsgen.certify.netlist_reader import Cell, Nets, SizedConstant, TopModule, broken
from hlsgen.library import tool_version

_AXIS = ("tdata", "tvalid", "tready", "tlast")
#: AXI4-Lite: (direction, bits, name); 0 means the bits of an address.
_AXIL = (
    ("input", 0, "awaddr"),
    ("input", 1, "awvalid"),
    ("output", 1, "awready"),
    ("input", 32, "wdata"),
    ("input", 4, "wstrb"),
    ("input", 1, "wvalid"),
    ("output", 1, "wready"),
    ("output", 2, "bresp"),
    ("output", 1, "bvalid"),
    ("input", 1, "bready"),
    ("input", 0, "araddr"),
    ("input", 1, "arvalid"),
    ("output", 1, "arready"),
    ("output", 32, "rdata"),
    ("output", 2, "rresp"),
    ("output", 1, "rvalid"),
    ("input", 1, "rready"),
)
#: The modules at input and output: of streams, of streams on a bus, and of ports without handshake.
_AXIS_ENDS, _BUS_ENDS, PLAIN_ENDS = (
    tuple(f"hg_{kind}_{end}" for end in ("in", "out")) for kind in ("axis", "bus", "plain")
)
_ENDS = (*_AXIS_ENDS, *_BUS_ENDS, *PLAIN_ENDS)
#: Modules that are not part of the streams of the core.
PORTS = (
    *_ENDS,
    "hg_reset",
    "hg_keep_in",
    "hg_keep_out",
    "hg_control",
    "hg_control_starts",
    "hg_axil_weights",
)
#: The wire from hg_axis_in or hg_bus_in to hg_keep_in.
_ERROR = "tlast_error"
_WIDTHS = [str(8 << k) for k in range(8)]


#: Suffixes of the names of the input ports and of the output ports; "" for a single port.
Labels = tuple[tuple[str, ...], tuple[str, ...]]
#: Suffixes of a core with one input port and one output port.
SINGLE: Labels = (("",), ("",))


def labels_of(tensors: Sequence[str], separate: bool) -> tuple[str, ...]:
    """Suffixes of the port names of these tensors; a single "" if all tensors share a port.

    If each tensor has a port, its suffix is _ and the tensor's name: its letters and digits; any other characters
    between them become a _. If that name is used already, ignoring upper and lower case, the smallest number from _2 on
    is appended that makes it unique.
    """
    if not separate or len(tensors) < 2:
        return ("",)
    labels: list[str] = []
    for tensor in tensors:
        label = "_" + ("_".join(re.findall(r"[0-9A-Za-z]+", tensor)) or "x")
        endings = ("", *(f"_{number}" for number in range(2, len(tensors) + 2)))
        used_labels = [label_.lower() for label_ in labels]
        labels.append(next(label + end for end in endings if (label + end).lower() not in used_labels))
    return tuple(labels)


@dataclass(frozen=True)
class PortOptions:
    """The build options of the ports. `bus`: bits of tdata, "auto", or None for the bits of a beat.

    `plain`: there is no handshake.
    """

    clock: str = "clk"
    reset: str = "rst"
    active_low: bool = False
    bus: str | None = None
    keep: bool = False
    control: bool = False
    loadable: bool = False
    starts_by: str = ""
    plain: bool = False

    @property
    def clocks(self) -> dict[str, Nets]:
        """The ports that every instance of the core has."""
        return {"clk": self.clock, "rst": "rst_core"}

    def wires(self, labels: Labels) -> dict[str, int]:
        """Wires of the top level that belong to the ports."""
        states = {"port_begins": 1} if self.starts_by else {}
        states |= {"port_fresh": 1} if self.starts_by == "register" else {}
        return {"rst_core": 1, **states, **({f"{_ERROR}{label}": 1 for label in labels[0]} if self.keep else {})}


def port_options(options: dict[str, Any]) -> PortOptions:
    """The port options of a manifest. Raises HG055 for invalid values."""
    low, clock, reset = options.get("reset_active_low") is True, options.get("clock_name"), options.get("reset_name")
    names = (clock, f"rst{'_n' * low}" if reset is None else reset)
    for name, value in zip(("clock_name", "reset_name"), names, strict=True):
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]\w*", value, re.ASCII):
            raise broken("manifest.json", f"option {name} is {value!r}, no name of a port.")
    bus = options.get("bus_width")
    if bus is not None and bus not in ("auto", *_WIDTHS):
        raise broken("manifest.json", f"option bus_width is {bus!r}.")
    keep, control, loadable = (options.get(name) is True for name in ("tkeep", "control", "loadable"))
    start, starts_by = options.get("state_start"), ""
    has_states = options.get("state") not in ([], ["none"])
    if start == "auto":
        start = "register" if control else "tuser"
    if start not in ("tuser", "register", "reset") or (start == "register" and not control and has_states):
        raise broken("manifest.json", f"option state_start is {start!r}.")
    if has_states:
        starts_by = str(start)
    plain = options.get("ports") == "plain"
    if plain and (bus is not None or keep or control or loadable or has_states):
        raise broken("manifest.json", "option ports is plain, with options of streams.")
    return PortOptions(str(names[0]), str(names[1]), low, bus, keep, control, loadable, starts_by, plain)


@dataclass(frozen=True)
class PortFrame:
    """A frame on a port:

    `words` of `width` bits, each beat of the core in `slot` bits, `last` valid bytes in the last word. The port has
    `pins` bits of data: `width`, or the bits of a beat if it is plain.
    """

    width: int
    slot: int
    words: int
    last: int
    pins: int


def frame_on(cell: Cell, bus: str | None) -> PortFrame:
    """The frame of a port, from the bits and beats of the stream at its instance.

    Raises HG055 if the width of tdata is invalid.
    """
    bits = cell.number("WIDTH", 1)
    size = -(-bits // 8)
    if cell.module in PLAIN_ENDS:
        return PortFrame(8 * size, 8 * size, 1, size, bits)
    beats, width = (cell.number(name, 1) for name in ("BEATS", "TDATA_W"))
    if bus is None:
        return PortFrame(8 * size, 8 * size, beats, size, width)
    legal = _WIDTHS[2:7] if bus == "auto" else [bus]
    if str(width) not in legal:
        raise broken(cell.name, f"TDATA_W is {width}, the option bus_width is {bus}.")
    word = width // 8
    if size > word:
        parts = -(-size // word)
        return PortFrame(width, parts * width, beats * parts, word, width)
    slot = word
    while slot > 1 and slot // 2 >= size:
        slot //= 2
    words = -(-beats * slot // word)
    return PortFrame(width, 8 * slot, words, beats * slot - (words - 1) * word, width)


def check_ends(
    top: TopModule, name: str, options: PortOptions, sha256: str, labels: Labels
) -> tuple[list[Cell], list[Cell]]:
    """The instances at the input ports and at the output ports. Raises HG055.

    Checks the connections of these instances, of the reset and of all other ports.
    """
    if options.plain:
        return _check_plain_ends(top, name, options)
    modules = _BUS_ENDS if options.bus is not None else _AXIS_ENDS
    _check_ends_are(top, modules)
    input_cells, output_cells = (
        _at_ports(top, module, *side_and_labels)
        for module, side_and_labels in zip(modules, zip("sm", labels, strict=True), strict=True)
    )
    parameter_names = {"WIDTH", "TDATA_W", "BEATS", *(("SLOT",) if options.bus is not None else ())}
    cut = set() if options.bus is not None else _cut_parameter(input_cells, output_cells)
    for end in (*input_cells, *output_cells):
        if set(end.parameters) != parameter_names | cut:
            raise broken(end.name, f"{end.module} has other parameters than its model.")
    widths = [[end.number("TDATA_W", 8) for end in cells] for cells in (input_cells, output_cells)]
    _check_ports_and_reset(top, name, options, labels, widths)
    for cells, cell_labels, port, side in (
        (input_cells, labels[0], "s_axis", "m"),
        (output_cells, labels[1], "m_axis", "s"),
    ):
        for end, label in zip(cells, cell_labels, strict=True):
            outer_nets: dict[str, Nets] = {f"{port}_{p}": f"{port}{label}_{p}" for p in _AXIS}
            if cells is input_cells:
                outer_nets["frame_error"] = f"{_ERROR if options.keep else 'frame_error'}{label}"
            inner_nets = {f"{side}_{kind}": end.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready")}
            check_connections(end, options.clocks | outer_nets | inner_nets)
    _check_keep(top, options, (input_cells, output_cells), labels)
    _check_control(top, options, (input_cells, output_cells), labels, sha256)
    return input_cells, output_cells


def _check_plain_ends(top: TopModule, name: str, options: PortOptions) -> tuple[list[Cell], list[Cell]]:
    """The instances at both ports of a core without handshake. Raises HG055."""
    _check_ends_are(top, PLAIN_ENDS)
    unexpected = [
        cell.module
        for cell in top.cells.values()
        if cell.module in PORTS and cell.module not in (*PLAIN_ENDS, "hg_reset")
    ]
    if unexpected:
        raise broken(top.name, f"has an instance of {unexpected[0]}, but no handshake.")
    source, sink = (_single(top, module) for module in PLAIN_ENDS)
    for end, port, side in ((source, "in", "m"), (sink, "out", "s")):
        if set(end.parameters) != {"WIDTH"}:
            raise broken(end.name, f"{end.module} has other parameters than its model.")
        nets: dict[str, Nets] = {pin: pin for pin in (f"{port}_valid", f"{port}_data")}
        check_connections(
            end, nets | {f"{side}_{kind}": end.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready")}
        )
    widths = [[end.number("WIDTH", 1)] for end in (source, sink)]
    _check_ports_and_reset(top, name, options, SINGLE, widths)
    return [source], [sink]


def _check_ends_are(top: TopModule, modules: Sequence[str]) -> None:
    """Check that no other modules are at the ports than these. Raises HG055."""
    unexpected = [cell.module for cell in top.cells.values() if cell.module in _ENDS and cell.module not in modules]
    if unexpected:
        raise broken(
            top.name, f"has an instance of {unexpected[0]}, which does not fit the options bus_width and ports."
        )


def _check_ports_and_reset(
    top: TopModule, name: str, options: PortOptions, labels: Labels, widths: Sequence[Sequence[int]]
) -> None:
    """Check the name of the top level, its list of ports, and the instance at the reset. Raises HG055."""
    expected_ports = tuple(port[:3] for port in port_list(options, labels, widths))
    if top.name != name or top.ports != expected_ports:
        raise broken(top.name, "its name or ports do not fit the options.")
    reset = _single(top, "hg_reset")
    check_connections(reset, {"clk": options.clock, "reset_in": options.reset, "rst": "rst_core"})
    if reset.parameters != {"ACTIVE_LOW": int(options.active_low)}:
        raise broken(reset.name, f"parameters {reset.parameters} do not fit the option reset_active_low.")


def port_name(cell: Cell) -> str:
    """The name of the port at an instance."""
    if cell.module in PLAIN_ENDS:
        return cell.module.removeprefix("hg_plain_")
    return str(cell.ports.get("s_axis_tdata", cell.ports.get("m_axis_tdata"))).removesuffix("_tdata")


def _cut_parameter(input_cells: Sequence[Cell], output_cells: Sequence[Cell]) -> set[str]:
    """{"CUT"} if all ports have this parameter: 1 at input ports, 0 at output ports. Raises HG055."""
    values = [end.number("CUT") if "CUT" in end.parameters else None for end in (*input_cells, *output_cells)]
    if all(value is None for value in values):
        return set()
    if values != [1] * len(input_cells) + [0] * len(output_cells):
        raise broken(
            input_cells[0].name, f"CUT of the ports is {values}: tready may pass through the core combinationally."
        )
    return {"CUT"}


def _at_ports(top: TopModule, module: str, side: str, labels: Sequence[str]) -> list[Cell]:
    """The instances of a module, exactly one at each port. Raises HG055."""
    cells = [cell for cell in top.cells.values() if cell.module == module]
    port_cells = []
    for label in labels:
        port = f"{side}_axis{label}_tdata"
        port_cells += [cell for cell in cells if cell.ports.get(f"{side}_axis_tdata") == port]
    if (
        len(cells) != len(labels)
        or len(port_cells) != len(labels)
        or len({cell.name for cell in port_cells}) != len(labels)
    ):
        raise broken(top.name, f"has {len(cells)} instances of {module}, not one at each of {len(labels)} ports.")
    return port_cells


def _single(top: TopModule, module: str) -> Cell:
    cells = [cell for cell in top.cells.values() if cell.module == module]
    if len(cells) != 1:
        raise broken(top.name, f"has {len(cells)} instances of {module}, not one.")
    return cells[0]


def _check_keep(
    top: TopModule, options: PortOptions, port_cells: tuple[list[Cell], list[Cell]], labels: Labels
) -> None:
    """Check that tkeep is checked and generated if the option says so."""
    if not options.keep:
        if any(cell.module in ("hg_keep_in", "hg_keep_out") for cell in top.cells.values()):
            raise broken(top.name, "has tkeep, but the option tkeep is off.")
        return
    for module, side, end_cells, cell_labels in zip(
        ("hg_keep_in", "hg_keep_out"), "sm", port_cells, labels, strict=True
    ):
        cells = [cell for cell in top.cells.values() if cell.module == module]
        if len(cells) != len(cell_labels):
            raise broken(top.name, f"has {len(cells)} instances of {module}, not {len(cell_labels)}.")
        by_port = {cell.ports.get("tkeep"): cell for cell in cells}
        for end, label in zip(end_cells, cell_labels, strict=True):
            port = f"{side}_axis{label}"
            cell, frame = by_port.get(f"{port}_tkeep"), frame_on(end, options.bus)
            if cell is None:
                raise broken(top.name, f"has no instance of {module} at {port}.")
            if cell.parameters != (expected := {"BYTES": frame.width // 8, "LAST": frame.last}):
                raise broken(cell.name, f"parameters are {cell.parameters}, a frame of this core needs {expected}.")
            nets: dict[str, Nets] = {name: f"{port}_{name}" for name in ("tkeep", "tlast")}
            if end_cells is port_cells[0]:
                nets |= {name: f"{port}_{name}" for name in ("tvalid", "tready")}
                nets |= {**options.clocks, "error_in": f"{_ERROR}{label}", "frame_error": f"frame_error{label}"}
            check_connections(cell, nets)


def _check_control(
    top: TopModule, options: PortOptions, port_cells: tuple[list[Cell], list[Cell]], labels: Labels, sha256: str
) -> None:
    """Check that the control port exists if the option says so, describes the core, and monitors all ports."""
    if not options.control:
        if any(cell.module.startswith("hg_control") for cell in top.cells.values()):
            raise broken(top.name, "has a control port, but the option control is off.")
        return
    register = options.starts_by == "register"
    cell = _single(top, "hg_control_starts" if register else "hg_control")
    if sum(module.startswith("hg_control") for module in (x.module for x in top.cells.values())) > 1:
        raise broken(top.name, "has two control ports.")
    parts = [*tool_version().split("."), "", "", ""][:3]
    major, minor, patch = (int(part) & 0xFF if part.isdigit() else 0 for part in parts)
    version = major << 16 | minor << 8 | patch
    expected = {
        "VERSION": SizedConstant(32, version),
        "MODEL": SizedConstant(32, int(sha256[:8], 16)),
        "INPUTS": len(port_cells[0]),
        "OUTPUTS": len(port_cells[1]),
        "WORDS": SizedConstant(
            32 * len(port_cells[0]),
            sum(frame_on(end, options.bus).words << 32 * k for k, end in enumerate(port_cells[0])),
        ),
    }
    if cell.parameters != expected:
        actual_texts, expected_texts = (
            {name: str(value) for name, value in parameters.items()} for parameters in (cell.parameters, expected)
        )
        raise broken(cell.name, f"parameters are {actual_texts}, this core needs {expected_texts}.")
    monitored_nets: dict[str, Nets] = {}
    for side, port, port_labels in (("in", "s", labels[0]), ("out", "m", labels[1])):
        for name in ("valid", "ready", "last"):
            nets = tuple(f"{port}_axis{label}_t{name}" for label in port_labels)
            monitored_nets[f"{side}_{name}"] = nets if len(nets) > 1 else nets[0]
    starts: dict[str, Nets] = {"start": "port_fresh", "started": "port_begins"} if register else {}
    check_connections(cell, options.clocks | starts | monitored_nets | axi_lite_nets("s_axil_ctrl"))


def axi_lite_nets(port: str) -> dict[str, Nets]:
    """The connections of an instance's AXI4-Lite port to the port of the top level."""
    return {f"s_axil_{part}": f"{port}_{part}" for _, _, part in _AXIL}


def check_connections(cell: Cell, expected: dict[str, Nets]) -> None:
    """Check the connections of an instance. Raises HG055."""
    if cell.ports != expected:
        differences = sorted(str(x) for x in set(cell.ports.items()) ^ set(expected.items()))
        raise broken(cell.name, f"{cell.module} has wrong connections: {differences[:4]}.")


def port_list(
    options: PortOptions, labels: Labels, widths: Sequence[Sequence[int]]
) -> Iterator[tuple[str, int, str, tuple[str, ...]]]:
    """(direction, bits, name, attributes) of all ports. `widths`: bits of the data of each input and of each output."""
    streams = [[f"{side}_axis{label}" for label in port_labels] for side, port_labels in zip("sm", labels, strict=True)]
    lites = [("s_axil", 4)] * options.loadable + [("s_axil_ctrl", 5)] * options.control
    associated = ":".join([*streams[0], *streams[1], *(name for name, _ in lites)])
    polarity = "LOW" if options.active_low else "HIGH"
    clock, reset = options.clock, options.reset
    busif = f"ASSOCIATED_RESET {reset}" if options.plain else f"ASSOCIATED_BUSIF {associated}, ASSOCIATED_RESET {reset}"
    yield "input", 1, clock, (_info("signal:clock", clock, "CLK"), f'X_INTERFACE_PARAMETER = "{busif}"')
    active = f'X_INTERFACE_PARAMETER = "POLARITY ACTIVE_{polarity}"'
    yield "input", 1, reset, (_info("signal:reset", reset, "RST"), active)
    if options.plain:
        for (width,), port, direction in zip(widths, ("in", "out"), ("input", "output"), strict=True):
            yield from ((direction, 1, f"{port}_valid", ()), (direction, width, f"{port}_data", ()))
        return
    for names, stream_widths, (forward, backward) in zip(
        streams, widths, (("input", "output"), ("output", "input")), strict=True
    ):
        for name, width in zip(names, stream_widths, strict=True):
            parts = [(forward, width, "tdata"), (forward, 1, "tvalid"), (backward, 1, "tready"), (forward, 1, "tlast")]
            parts += [(forward, width // 8, "tkeep")] * options.keep
            parts += [(forward, 1, "tuser")] * (options.starts_by == "tuser" and name == streams[0][0])
            for direction, bits, part in parts:
                yield direction, bits, f"{name}_{part}", (_info("interface:axis", name, part.upper()),)
    for name, address in lites:
        for direction, bits, part in _AXIL:
            yield direction, bits or address, f"{name}_{part}", (_info("interface:aximm", name, part.upper()),)
    for label in labels[0]:
        yield "output", 1, f"frame_error{label}", ()


def _info(kind: str, name: str, part: str) -> str:
    return f'X_INTERFACE_INFO = "xilinx.com:{kind}:1.0 {name} {part}"'
