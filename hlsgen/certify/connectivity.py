"""Proves that the top level is a graph of streams: each has one sender and one taker, from s_axis to m_axis.

Every net must belong to a stream, a clock, the reset or the port for weights. So no other connection can change
what a module does, and the contract of each module says all that there is to know of its streams.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.certify.netlist_reader import Cell, Nets, TopModule, broken

_AXIS = ("tdata", "tvalid", "tready", "tlast")
#: AXI4-Lite: (direction, bits, name) of the core's port for weights that can be written.
_AXIL = (
    ("input", 4, "awaddr"), ("input", 1, "awvalid"), ("output", 1, "awready"), ("input", 32, "wdata"),
    ("input", 4, "wstrb"), ("input", 1, "wvalid"), ("output", 1, "wready"), ("output", 2, "bresp"),
    ("output", 1, "bvalid"), ("input", 1, "bready"), ("input", 4, "araddr"), ("input", 1, "arvalid"),
    ("output", 1, "arready"), ("output", 32, "rdata"), ("output", 2, "rresp"), ("output", 1, "rvalid"),
    ("input", 1, "rready"),
)  # fmt: skip
#: Bits of the wire from that port to the memories.
_LOAD = 50
#: Modules with weights.
_WEIGHTS = ("hg_mvu", "hg_conv", "hg_dwconv", "hg_dwmvu")
#: Modules that take two streams.
_TWO = ("hg_join", "hg_concat", "hg_beside")
_PORTS = ("hg_reset", "hg_axis_in", "hg_axis_out", "hg_axil_weights")
_CLOCKS: dict[str, Nets] = {"clk": "clk", "rst": "rst_core"}


@dataclass(frozen=True)
class Netlist:
    """The instances between the ports, and the names of the streams that each takes and sends.

    A stream's name is that of its valid net; `widths` has the bits of its data net. The ports send
    `first` and take `last`.
    """

    cells: dict[str, Cell]
    takes: dict[str, tuple[str, ...]]
    sends: dict[str, tuple[str, ...]]
    widths: dict[str, int]
    port_in: Cell
    port_out: Cell
    first: str
    last: str


def network(top: TopModule, name: str, reset_active_low: bool, loadable: bool = False) -> Netlist:
    """The netlist of a top level, with nothing but streams between its instances. Raises HG055 otherwise.

    name: of the module. reset_active_low, loadable: the options of the build; they decide about ports.
    """
    port_in, port_out = _ends(top, name, reset_active_low, loadable)
    cells = {n: c for n, c in top.cells.items() if c.module not in _PORTS}
    _loads(top, cells, loadable)
    found = _Streams(top)
    sends = {cell.name: found.sent(cell) for cell in (port_in, *cells.values())}
    takes = {cell.name: found.taken(cell) for cell in (*cells.values(), port_out)}
    for valid in found.nets:
        if valid not in found.takers:
            raise broken(top.name, f"nothing takes stream {valid} that {found.senders[valid]} sends.")
    wires = {"rst_core": 1, **({"load": _LOAD} if loadable else {}), **found.wires}
    if wires != top.wires:
        odd = sorted(set(wires.items()) ^ set(top.wires.items()))
        raise broken(top.name, f"has other wires than its streams: {odd[:4]}.")
    _no_circle(top, found, takes, sends, port_in.name)
    widths = {valid: top.wires[data] for valid, (data, _) in found.nets.items()}
    last = takes.pop(port_out.name)[0]
    first = sends.pop(port_in.name)[0]
    return Netlist(cells, takes, sends, widths, port_in, port_out, first, last)


class _Streams:
    """Collects the streams as the instances use them."""

    def __init__(self, top: TopModule) -> None:
        self.top = top
        self.nets: dict[str, tuple[str, str]] = {}  # valid -> (data, ready)
        self.senders: dict[str, str] = {}
        self.takers: dict[str, str] = {}
        self.wires: dict[str, int] = {}

    def _new(self, cell: Cell, wire: Nets, data: bool = False) -> str:
        """A wire that no other stream uses."""
        if not isinstance(wire, str) or wire in self.wires or wire not in self.top.wires:
            raise broken(cell.name, f"{wire} is no wire of its own that it can use.")
        self.wires[wire] = self.top.wires[wire] if data else 1
        return wire

    def sent(self, cell: Cell) -> tuple[str, ...]:
        """The streams that an instance sends. The several streams of a fork share their data."""
        data, valid, ready = (cell.ports.get(f"m_{kind}", "") for kind in ("data", "valid", "ready"))
        if cell.module == "hg_fork":
            count = cell.number("COUNT", 2) if "COUNT" in cell.parameters else 0
            if not (isinstance(valid, tuple) and isinstance(ready, tuple) and len(valid) == len(ready) == count):
                raise broken(cell.name, f"it has no valid and ready for each of {count} streams.")
        else:
            if not (isinstance(valid, str) and isinstance(ready, str)):
                raise broken(cell.name, f"{cell.module} sends one stream, not {valid}.")
            valid, ready = (valid,), (ready,)
        shared = self._new(cell, data, data=True)
        for own, back in zip(valid, ready, strict=True):
            self.nets[self._new(cell, own)] = shared, self._new(cell, back)
            self.senders[own] = cell.name
        return valid

    def taken(self, cell: Cell) -> tuple[str, ...]:
        """The streams that an instance takes; its ports are these and those it sends."""
        names, wanted = [], dict(_CLOCKS)
        for side in ("a", "b") if cell.module in _TWO else ("s",):
            data, valid, ready = (cell.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready"))
            if not isinstance(valid, str) or valid not in self.nets:
                raise broken(cell.name, f"nothing sends stream {valid or side} that it takes.")
            if self.nets[valid] != (data, ready):
                raise broken(
                    cell.name, f"data {data} and ready {ready} are not those of stream {valid} that "
                    f"{self.senders[valid]} sends.",
                )  # fmt: skip
            if valid in self.takers:
                raise broken(cell.name, f"it takes stream {valid}, which {self.takers[valid]} takes as well.")
            self.takers[valid] = cell.name
            names.append(valid)
            wanted |= {f"{side}_data": data, f"{side}_valid": valid, f"{side}_ready": ready}
        if cell.module != "hg_axis_out":
            wanted |= {port: nets for port, nets in cell.ports.items() if port in ("m_data", "m_valid", "m_ready")}
            if cell.module in _WEIGHTS:
                wanted["load"] = "load" if "LOADABLE" in cell.parameters else f"{_LOAD}'h0"
            _connected(cell, wanted)
        return tuple(names)


def _no_circle(
    top: TopModule, found: _Streams, takes: dict[str, tuple[str, ...]], sends: dict[str, tuple[str, ...]], start: str
) -> None:
    """No streams form a circle: starting at s_axis, every instance gets its streams from instances before it."""
    waits = {name: len(streams) for name, streams in takes.items()}
    ready = [start]
    while ready:
        for valid in sends.get(ready.pop(), ()):
            taker = found.takers[valid]
            waits[taker] -= 1
            if not waits[taker]:
                ready.append(taker)
    rest = [name for name, count in waits.items() if count]
    if rest:
        raise broken(top.name, f"its streams go in a circle, or do not come from s_axis: {', '.join(rest[:4])}.")


def _loads(top: TopModule, cells: dict[str, Cell], loadable: bool) -> None:
    """The port for weights is there if the option says so, and its units have the numbers 0, 1, 2, ..."""
    ports = [cell for cell in top.cells.values() if cell.module == "hg_axil_weights"]
    units = [cell for cell in cells.values() if "LOADABLE" in cell.parameters]
    numbers = [(cell.parameters["LOADABLE"], cell.parameters.get("UNIT")) for cell in units]
    if len(ports) != int(loadable) or numbers != [(1, n) for n in range(len(units) if loadable else 0)]:
        raise broken(top.name, "its units with weights that can be written do not fit the option loadable.")
    for port in ports:
        outside: dict[str, Nets] = {f"s_axil_{p}": f"s_axil_{p}" for _, _, p in _AXIL}
        _connected(port, _CLOCKS | outside | {"load": "load"})
        if port.parameters != {"UNITS": len(units)}:
            raise broken(port.name, f"parameters {port.parameters} do not fit {len(units)} units.")


def _ends(top: TopModule, name: str, reset_active_low: bool, loadable: bool) -> tuple[Cell, Cell]:
    """The instances at the input and the output port. They, and the reset, are connected as they must be."""
    single = []
    for module in _PORTS[:3]:
        cells = [cell for cell in top.cells.values() if cell.module == module]
        if len(cells) != 1:
            raise broken(top.name, f"has {len(cells)} instances of {module}, not one.")
        single.append(cells[0])
    reset, first, last = single
    pin = "rst_n" if reset_active_low else "rst"
    for end in (first, last):
        if set(end.parameters) != {"WIDTH", "TDATA_W", "BEATS"}:
            raise broken(end.name, f"{end.module} has other parameters than its model.")
    widths = first.number("TDATA_W", 1), last.number("TDATA_W", 1)
    wanted = (
        ("input", 1, "clk"), ("input", 1, pin),
        ("input", widths[0], "s_axis_tdata"), ("input", 1, "s_axis_tvalid"),
        ("output", 1, "s_axis_tready"), ("input", 1, "s_axis_tlast"),
        ("output", widths[1], "m_axis_tdata"), ("output", 1, "m_axis_tvalid"),
        ("input", 1, "m_axis_tready"), ("output", 1, "m_axis_tlast"),
        *((way, bits, f"s_axil_{port}") for way, bits, port in _AXIL if loadable),
        ("output", 1, "frame_error"),
    )  # fmt: skip
    if top.name != name or top.ports != wanted:
        raise broken(top.name, "its name or ports are not those of a core with this port width and reset.")
    _connected(reset, {"clk": "clk", "reset_in": pin, "rst": "rst_core"})
    if reset.parameters != {"ACTIVE_LOW": int(reset_active_low)}:
        raise broken(reset.name, f"parameters {reset.parameters} do not fit the option reset_active_low.")
    for end, port, side in ((first, "s_axis", "m"), (last, "m_axis", "s")):
        outside: dict[str, Nets] = {f"{port}_{p}": f"{port}_{p}" for p in _AXIS}
        if end is first:
            outside["frame_error"] = "frame_error"
        inner = {f"{side}_{kind}": end.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready")}
        _connected(end, _CLOCKS | outside | inner)
    return first, last


def _connected(cell: Cell, wanted: dict[str, Nets]) -> None:
    if cell.ports != wanted:
        odd = sorted(str(x) for x in set(cell.ports.items()) ^ set(wanted.items()))
        raise broken(cell.name, f"{cell.module} is connected otherwise than it should be: {odd[:4]}.")
