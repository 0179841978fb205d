"""Proves that the top level is a graph of streams: each has one sender and one taker, from the inputs to the outputs.

Every net must belong to a stream, a clock, the reset or the port for weights. So no other connection can change
what a module does, and the contract of each module says all that there is to know of its streams.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.certify.netlist_reader import Cell, Nets, TopModule, broken
from hlsgen.certify.port_wiring import PORTS, SINGLE, Labels, PortOptions, connected, ends, lite

#: Bits of the wire from the port for weights that can be written to the memories.
_LOAD = 50
#: Modules with weights.
_WEIGHTS = ("hg_mvu", "hg_conv", "hg_dwconv", "hg_dwmvu")
#: Modules that take two streams.
_TWO = ("hg_join", "hg_f32_join", "hg_concat", "hg_beside", "hg_dynmvu", "hg_norm_scale")


@dataclass(frozen=True)
class Netlist:
    """The instances between the ports, and the names of the streams that each takes and sends.

    A stream's name is that of its valid net; `widths` has the bits of its data net. `inputs`, `outputs`: the ports, each
    with the stream that it sends or takes.
    """

    cells: dict[str, Cell]
    takes: dict[str, tuple[str, ...]]
    sends: dict[str, tuple[str, ...]]
    widths: dict[str, int]
    inputs: tuple[tuple[Cell, str], ...]
    outputs: tuple[tuple[Cell, str], ...]


def network(
    top: TopModule, name: str, options: PortOptions, sha256: str, states: int = 0, labels: Labels = SINGLE
) -> Netlist:
    """The netlist of a top level, with nothing but streams between its instances. Raises HG055 otherwise.

    name: of the module. options: those of the build that decide about ports. sha256: of the model's file. states: of
    loops; as many streams may come back. labels: what ends the names of the ports.
    """
    first, last = ends(top, name, options, sha256, labels)
    cells = {n: c for n, c in top.cells.items() if c.module not in PORTS}
    _loads(top, cells, options)
    found = _Streams(top, options.clocks)
    sends = {cell.name: found.sent(cell) for cell in (*first, *cells.values())}
    takes = {cell.name: found.taken(cell) for cell in (*cells.values(), *last)}
    for valid in found.nets:
        if valid not in found.takers:
            raise broken(top.name, f"nothing takes stream {valid} that {found.senders[valid]} sends.")
    wires = {**options.wires(labels), **({"load": _LOAD} if options.loadable else {}), **found.wires}
    if wires != top.wires:
        odd = sorted(set(wires.items()) ^ set(top.wires.items()))
        raise broken(top.name, f"has other wires than its streams: {odd[:4]}.")
    _no_circle(top, found, takes, sends, [cell.name for cell in first], states)
    widths = {valid: top.wires[data] for valid, (data, _) in found.nets.items()}
    outputs = tuple((cell, takes.pop(cell.name)[0]) for cell in last)
    inputs = tuple((cell, sends.pop(cell.name)[0]) for cell in first)
    return Netlist(cells, takes, sends, widths, inputs, outputs)


class _Streams:
    """Collects the streams as the instances use them."""

    def __init__(self, top: TopModule, clocks: dict[str, Nets]) -> None:
        self.top, self.clocks = top, clocks
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
        names, wanted = [], dict(self.clocks)
        for side in ("a", "b") if cell.module in _TWO else ("s",):
            data, valid, ready = (cell.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready"))
            if not isinstance(valid, str) or valid not in self.nets:
                raise broken(cell.name, f"nothing sends stream {valid or side} that it takes.")
            if self.nets[valid] != (data, ready):
                raise broken(
                    cell.name,
                    f"data {data} and ready {ready} are not those of stream {valid} that {self.senders[valid]} sends.",
                )
            if valid in self.takers:
                raise broken(cell.name, f"it takes stream {valid}, which {self.takers[valid]} takes as well.")
            self.takers[valid] = cell.name
            names.append(valid)
            wanted |= {f"{side}_data": data, f"{side}_valid": valid, f"{side}_ready": ready}
        if cell.module not in ("hg_axis_out", "hg_bus_out"):
            wanted |= {port: nets for port, nets in cell.ports.items() if port in ("m_data", "m_valid", "m_ready")}
            if cell.module in _WEIGHTS:
                wanted["load"] = "load" if "LOADABLE" in cell.parameters else f"{_LOAD}'h0"
            connected(cell, wanted)
        return tuple(names)


def _no_circle(
    top: TopModule,
    found: _Streams,
    takes: dict[str, tuple[str, ...]],
    sends: dict[str, tuple[str, ...]],
    start: list[str],
    states: int,
) -> None:
    """No streams form a circle: starting at the input ports, every instance gets its streams from instances before it.

    But for the second streams of so many hg_concat, which may come back: the checker asks what these carry.
    """
    waits = {name: len(streams) for name, streams in takes.items()}
    ready, back = list(start), set[str]()
    while ready:
        for valid in sends.get(ready.pop(), ()):
            taker = found.takers[valid]
            waits[taker] -= 1
            if not waits[taker] and taker not in back:
                ready.append(taker)
        if not ready and len(back) < states:
            early = [n for n, c in waits.items() if c == 1 and n in top.cells and top.cells[n].module == "hg_concat"]
            chosen = [name for name in early if name not in back][: states - len(back)]
            back.update(chosen)
            ready += chosen
    rest = [name for name, count in waits.items() if count]
    if rest:
        raise broken(top.name, f"its streams go in a circle, or do not come from an input port: {', '.join(rest[:4])}.")


def _loads(top: TopModule, cells: dict[str, Cell], options: PortOptions) -> None:
    """The port for weights is there if the option says so, and its units have the numbers 0, 1, 2, ..."""
    ports = [cell for cell in top.cells.values() if cell.module == "hg_axil_weights"]
    units = [cell for cell in cells.values() if "LOADABLE" in cell.parameters]
    numbers = [(cell.parameters["LOADABLE"], cell.parameters.get("UNIT")) for cell in units]
    if len(ports) != int(options.loadable) or numbers != [(1, n) for n in range(len(units) if options.loadable else 0)]:
        raise broken(top.name, "its units with weights that can be written do not fit the option loadable.")
    for port in ports:
        connected(port, options.clocks | lite("s_axil") | {"load": "load"})
        if port.parameters != {"UNITS": len(units)}:
            raise broken(port.name, f"parameters {port.parameters} do not fit {len(units)} units.")
