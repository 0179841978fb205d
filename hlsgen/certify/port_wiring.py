"""Proves the ends of a top level: its ports are those that the options ask for, and end at the modules for ports.

Written a second time, from docs/commands.md and the heads of these modules; nothing of what emits them is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlsgen.certify.netlist_reader import Cell, Nets, SizedConstant, TopModule, broken
from hlsgen.library import tool_version

_AXIS = ("tdata", "tvalid", "tready", "tlast")
#: AXI4-Lite: (direction, bits, name); 0 for the bits of an address.
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
#: Modules that are no part of the streams of the core.
PORTS = (
    "hg_reset",
    "hg_axis_in",
    "hg_axis_out",
    "hg_bus_in",
    "hg_bus_out",
    "hg_keep_in",
    "hg_keep_out",
    "hg_control",
    "hg_axil_weights",
)
#: The wire from hg_axis_in or hg_bus_in to hg_keep_in.
_ERROR = "tlast_error"
_WIDTHS = [str(8 << k) for k in range(8)]


#: What ends the names of the input ports and of the output ports: "" of an only one.
Labels = tuple[tuple[str, ...], tuple[str, ...]]
#: Those of a core with one port each way.
SINGLE: Labels = (("",), ("",))


def labels_of(tensors: Sequence[str], separate: bool) -> tuple[str, ...]:
    """What ends the names of the ports of these tensors, none or one of which share a port with all others.

    With a port each it is _ and the tensor's name: letters and digits, any others between them a _. What would be taken, in
    upper or lower case, ends with the least number from _2 on with which it is not.
    """
    if not separate or len(tensors) < 2:
        return ("",)
    found: list[str] = []
    for tensor in tensors:
        own = "_" + ("_".join(re.findall(r"[0-9A-Za-z]+", tensor)) or "x")
        endings = ("", *(f"_{number}" for number in range(2, len(tensors) + 2)))
        known = [one.lower() for one in found]
        found.append(next(own + end for end in endings if (own + end).lower() not in known))
    return tuple(found)


@dataclass(frozen=True)
class PortOptions:
    """What the options of a build say of its ports. `bus`: bits of tdata, "auto", or None: those of a beat."""

    clock: str = "clk"
    reset: str = "rst"
    active_low: bool = False
    bus: str | None = None
    keep: bool = False
    control: bool = False
    loadable: bool = False

    @property
    def clocks(self) -> dict[str, Nets]:
        """The ports that every instance of the core has."""
        return {"clk": self.clock, "rst": "rst_core"}

    def wires(self, labels: Labels) -> dict[str, int]:
        """Wires of the top level that belong to the ports."""
        return {"rst_core": 1, **({f"{_ERROR}{label}": 1 for label in labels[0]} if self.keep else {})}


def port_options(options: dict[str, Any]) -> PortOptions:
    """What a manifest says. Raises HG055 for values of which no core can be made."""
    low, clock, reset = options.get("reset_active_low") is True, options.get("clock_name"), options.get("reset_name")
    names = (clock, f"rst{'_n' * low}" if reset is None else reset)
    for name, value in zip(("clock_name", "reset_name"), names, strict=True):
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]\w*", value, re.ASCII):
            raise broken("manifest.json", f"option {name} is {value!r}, no name of a port.")
    bus = options.get("bus_width")
    if bus is not None and bus not in ("auto", *_WIDTHS):
        raise broken("manifest.json", f"option bus_width is {bus!r}.")
    switches = (options.get(name) is True for name in ("tkeep", "control", "loadable"))
    return PortOptions(str(names[0]), str(names[1]), low, bus, *switches)


@dataclass(frozen=True)
class PortFrame:
    """A frame on a port: `words` of `width` bits, each beat of the core in `slot` bits; `last` bytes of the last word count."""

    width: int
    slot: int
    words: int
    last: int


def frame_on(cell: Cell, bus: str | None) -> PortFrame:
    """The frame of a port, by the bits and beats of the stream at its instance. Raises HG055 if tdata is of no legal width."""
    bits, beats, width = (cell.number(name, 1) for name in ("WIDTH", "BEATS", "TDATA_W"))
    size = -(-bits // 8)
    if bus is None:
        return PortFrame(8 * size, 8 * size, beats, size)
    legal = _WIDTHS[2:7] if bus == "auto" else [bus]
    if str(width) not in legal:
        raise broken(cell.name, f"TDATA_W is {width}, the option bus_width is {bus}.")
    word = width // 8
    if size > word:
        parts = -(-size // word)
        return PortFrame(width, parts * width, beats * parts, word)
    slot = word
    while slot > 1 and slot // 2 >= size:
        slot //= 2
    words = -(-beats * slot // word)
    return PortFrame(width, 8 * slot, words, beats * slot - (words - 1) * word)


def ends(top: TopModule, name: str, options: PortOptions, sha256: str, labels: Labels) -> tuple[list[Cell], list[Cell]]:
    """The instances at the input ports and at the output ports. They, the reset, and all other ports are connected as they
    must be."""
    modules = ("hg_bus_in", "hg_bus_out") if options.bus is not None else ("hg_axis_in", "hg_axis_out")
    reset = _single(top, "hg_reset")
    first, last = (
        _at_ports(top, module, *what) for module, what in zip(modules, zip("sm", labels, strict=True), strict=True)
    )
    odd = [cell.module for cell in top.cells.values() if cell.module in PORTS[1:5] and cell.module not in modules]
    if odd:
        raise broken(top.name, f"has an instance of {odd[0]}, which is not what the option bus_width asks for.")
    given = {"WIDTH", "TDATA_W", "BEATS", *(("SLOT",) if options.bus is not None else ())}
    cut = set() if options.bus is not None else _cuts_early(first, last)
    for end in (*first, *last):
        if set(end.parameters) != given | cut:
            raise broken(end.name, f"{end.module} has other parameters than its model.")
    widths = [[end.number("TDATA_W", 8) for end in some] for some in (first, last)]
    wanted = tuple(port[:3] for port in listed(options, labels, widths))
    if top.name != name or top.ports != wanted:
        raise broken(top.name, "its name or ports are not those of a core with these options.")
    connected(reset, {"clk": options.clock, "reset_in": options.reset, "rst": "rst_core"})
    if reset.parameters != {"ACTIVE_LOW": int(options.active_low)}:
        raise broken(reset.name, f"parameters {reset.parameters} do not fit the option reset_active_low.")
    for some, own, port, side in ((first, labels[0], "s_axis", "m"), (last, labels[1], "m_axis", "s")):
        for end, label in zip(some, own, strict=True):
            outside: dict[str, Nets] = {f"{port}_{p}": f"{port}{label}_{p}" for p in _AXIS}
            if some is first:
                outside["frame_error"] = f"{_ERROR if options.keep else 'frame_error'}{label}"
            inner = {f"{side}_{kind}": end.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready")}
            connected(end, options.clocks | outside | inner)
    _keep(top, options, (first, last), labels)
    _control(top, options, (first, last), labels, sha256)
    return first, last


def _cuts_early(first: Sequence[Cell], last: Sequence[Cell]) -> set[str]:
    """CUT, if all ports have it: then the input ports keep ready apart and the output ports do not. Raises HG055."""
    values = [end.number("CUT") if "CUT" in end.parameters else None for end in (*first, *last)]
    if all(value is None for value in values):
        return set()
    if values != [1] * len(first) + [0] * len(last):
        raise broken(first[0].name, f"CUT of the ports is {values}: no end of the core keeps tready apart for sure.")
    return {"CUT"}


def _at_ports(top: TopModule, module: str, side: str, labels: Sequence[str]) -> list[Cell]:
    """The instance of a module at each of the ports, and no others."""
    cells = [cell for cell in top.cells.values() if cell.module == module]
    found = []
    for label in labels:
        port = f"{side}_axis{label}_tdata"
        found += [cell for cell in cells if cell.ports.get(f"{side}_axis_tdata") == port]
    if len(cells) != len(labels) or len(found) != len(labels) or len({cell.name for cell in found}) != len(labels):
        raise broken(top.name, f"has {len(cells)} instances of {module}, not one at each of {len(labels)} ports.")
    return found


def _single(top: TopModule, module: str) -> Cell:
    cells = [cell for cell in top.cells.values() if cell.module == module]
    if len(cells) != 1:
        raise broken(top.name, f"has {len(cells)} instances of {module}, not one.")
    return cells[0]


def _keep(top: TopModule, options: PortOptions, both: tuple[list[Cell], list[Cell]], labels: Labels) -> None:
    """tkeep is checked and made if the option says so."""
    if not options.keep:
        if any(cell.module in ("hg_keep_in", "hg_keep_out") for cell in top.cells.values()):
            raise broken(top.name, "has tkeep; the option tkeep does not ask for it.")
        return
    for module, side, some, own in zip(("hg_keep_in", "hg_keep_out"), "sm", both, labels, strict=True):
        cells = [cell for cell in top.cells.values() if cell.module == module]
        if len(cells) != len(own):
            raise broken(top.name, f"has {len(cells)} instances of {module}, not {len(own)}.")
        by_port = {cell.ports.get("tkeep"): cell for cell in cells}
        for end, label in zip(some, own, strict=True):
            port = f"{side}_axis{label}"
            cell, frame = by_port.get(f"{port}_tkeep"), frame_on(end, options.bus)
            if cell is None:
                raise broken(top.name, f"has no instance of {module} at {port}.")
            if cell.parameters != (wanted := {"BYTES": frame.width // 8, "LAST": frame.last}):
                raise broken(cell.name, f"parameters are {cell.parameters}, a frame of this core needs {wanted}.")
            nets: dict[str, Nets] = {name: f"{port}_{name}" for name in ("tkeep", "tlast")}
            if some is both[0]:
                nets |= {name: f"{port}_{name}" for name in ("tvalid", "tready")}
                nets |= {**options.clocks, "error_in": f"{_ERROR}{label}", "frame_error": f"frame_error{label}"}
            connected(cell, nets)


def _control(
    top: TopModule, options: PortOptions, both: tuple[list[Cell], list[Cell]], labels: Labels, sha256: str
) -> None:
    """The port for control and status is there if the option says so; it says what the core is and watches all ports."""
    if not options.control:
        if any(cell.module == "hg_control" for cell in top.cells.values()):
            raise broken(top.name, "has a port for control; the option control does not ask for it.")
        return
    cell = _single(top, "hg_control")
    parts = [*tool_version().split("."), "", "", ""][:3]
    major, minor, patch = (int(part) & 0xFF if part.isdigit() else 0 for part in parts)
    version = major << 16 | minor << 8 | patch
    wanted = {
        "VERSION": SizedConstant(32, version),
        "MODEL": SizedConstant(32, int(sha256[:8], 16)),
        "INPUTS": len(both[0]),
        "OUTPUTS": len(both[1]),
        "WORDS": SizedConstant(
            32 * len(both[0]), sum(frame_on(end, options.bus).words << 32 * k for k, end in enumerate(both[0]))
        ),
    }
    if cell.parameters != wanted:
        said, right = ({name: str(value) for name, value in found.items()} for found in (cell.parameters, wanted))
        raise broken(cell.name, f"parameters are {said}, this core has {right}.")
    watched: dict[str, Nets] = {}
    for side, port, own in (("in", "s", labels[0]), ("out", "m", labels[1])):
        for name in ("valid", "ready", "last"):
            nets = tuple(f"{port}_axis{label}_t{name}" for label in own)
            watched[f"{side}_{name}"] = nets if len(nets) > 1 else nets[0]
    connected(cell, options.clocks | watched | lite("s_axil_ctrl"))


def lite(port: str) -> dict[str, Nets]:
    """How an instance with an AXI4-Lite port is connected to that of the top level."""
    return {f"s_axil_{part}": f"{port}_{part}" for _, _, part in _AXIL}


def connected(cell: Cell, wanted: dict[str, Nets]) -> None:
    """Raises HG055 if an instance is connected otherwise."""
    if cell.ports != wanted:
        odd = sorted(str(x) for x in set(cell.ports.items()) ^ set(wanted.items()))
        raise broken(cell.name, f"{cell.module} is connected otherwise than it should be: {odd[:4]}.")


def listed(
    options: PortOptions, labels: Labels, widths: Sequence[Sequence[int]]
) -> Iterator[tuple[str, int, str, tuple[str, ...]]]:
    """(direction, bits, name, attributes) of all ports. `widths`: bits of tdata of each input and of each output."""
    streams = [[f"{side}_axis{label}" for label in some] for side, some in zip("sm", labels, strict=True)]
    lites = [("s_axil", 4)] * options.loadable + [("s_axil_ctrl", 5)] * options.control
    associated = ":".join([*streams[0], *streams[1], *(name for name, _ in lites)])
    polarity = "LOW" if options.active_low else "HIGH"
    clock, reset = options.clock, options.reset
    about = f"ASSOCIATED_BUSIF {associated}, ASSOCIATED_RESET {reset}"
    yield "input", 1, clock, (_info("signal:clock", clock, "CLK"), f'X_INTERFACE_PARAMETER = "{about}"')
    active = f'X_INTERFACE_PARAMETER = "POLARITY ACTIVE_{polarity}"'
    yield "input", 1, reset, (_info("signal:reset", reset, "RST"), active)
    for names, own, (forth, back) in zip(streams, widths, (("input", "output"), ("output", "input")), strict=True):
        for name, width in zip(names, own, strict=True):
            parts = [(forth, width, "tdata"), (forth, 1, "tvalid"), (back, 1, "tready"), (forth, 1, "tlast")]
            for way, bits, part in parts + [(forth, width // 8, "tkeep")] * options.keep:
                yield way, bits, f"{name}_{part}", (_info("interface:axis", name, part.upper()),)
    for name, address in lites:
        for way, bits, part in _AXIL:
            yield way, bits or address, f"{name}_{part}", (_info("interface:aximm", name, part.upper()),)
    for label in labels[0]:
        yield "output", 1, f"frame_error{label}", ()


def _info(kind: str, name: str, part: str) -> str:
    return f'X_INTERFACE_INFO = "xilinx.com:{kind}:1.0 {name} {part}"'
