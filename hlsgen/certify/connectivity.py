"""Proves that the top level is a graph of streams from the inputs to the outputs: each has one producer and one
consumer.

Every net must belong to a stream, a clock, the reset or the port for weights. No other connection can then change the
behaviour of a module. The contracts of the modules describe all streams completely.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.certify.netlist_reader import Cell, Nets, TopModule, broken
from hlsgen.certify.port_wiring import PORTS, SINGLE, Labels, PortOptions, axi_lite_nets, check_connections, check_ends

#: Bits of the wire from the port for writable weights to the memories.
_LOAD = 50
#: Modules with weights in a memory, which have a port for writing it.
_WEIGHTS = ("hg_mvu", "hg_conv", "hg_dwconv", "hg_dwmvu")
#: Modules with two input streams.
_JOINS = ("hg_join_sum", "hg_join_product", "hg_join_pair", "hg_f32_join")
_TWO_INPUTS = (*_JOINS, "hg_concat", "hg_beside", "hg_dynmvu", "hg_norm_scale", "hg_state")


@dataclass(frozen=True)
class Netlist:
    """The instances between the ports, and the names of their input streams and output streams.

    The name of a stream is the name of its valid net; `widths` has the bits of its data net. `inputs`, `outputs`: the
    instances at the ports, each with its stream.
    """

    cells: dict[str, Cell]
    streams_in: dict[str, tuple[str, ...]]
    streams_out: dict[str, tuple[str, ...]]
    widths: dict[str, int]
    inputs: tuple[tuple[Cell, str], ...]
    outputs: tuple[tuple[Cell, str], ...]


def network(
    top: TopModule, name: str, options: PortOptions, sha256: str, states: int = 0, labels: Labels = SINGLE
) -> Netlist:
    """The netlist of a top level that has only streams between its instances. Raises HG055.

    name: of the module. options: the build options of the ports. sha256: of the model's file.

    states: number of states of loops, or between frames; as many streams may lead back. labels: the suffixes of the
    port names.
    """
    input_cells, output_cells = check_ends(top, name, options, sha256, labels)
    cells = {n: c for n, c in top.cells.items() if c.module not in PORTS}
    _check_weight_port(top, cells, options)
    streams = _Streams(top, options.clocks, _begin_ports(labels[0][0], options.starts_by))
    streams_out = {cell.name: streams.output_streams(cell) for cell in (*input_cells, *cells.values())}
    streams_in = {cell.name: streams.input_streams(cell) for cell in (*cells.values(), *output_cells)}
    for valid in streams.nets:
        if valid not in streams.consumers:
            raise broken(top.name, f"nothing reads stream {valid}, which {streams.producers[valid]} sends.")
    wires = {**options.wires(labels), **({"load": _LOAD} if options.loadable else {}), **streams.wires}
    if wires != top.wires:
        unexpected = sorted(set(wires.items()) ^ set(top.wires.items()))
        raise broken(top.name, f"has other wires than its streams: {unexpected[:4]}.")
    modules = frozenset({"hg_concat", "hg_state"} if options.starts_by else {"hg_concat"})
    _check_acyclic(top, streams, streams_in, streams_out, [cell.name for cell in input_cells], states, modules)
    widths = {valid: top.wires[data] for valid, (data, _) in streams.nets.items()}
    outputs = tuple((cell, streams_in.pop(cell.name)[0]) for cell in output_cells)
    inputs = tuple((cell, streams_out.pop(cell.name)[0]) for cell in input_cells)
    return Netlist(cells, streams_in, streams_out, widths, inputs, outputs)


class _Streams:
    """Collects the streams as the instances use them."""

    def __init__(self, top: TopModule, clocks: dict[str, Nets], begin_ports: dict[str, Nets]) -> None:
        self.top, self.clocks, self.begin_ports = top, clocks, begin_ports
        self.nets: dict[str, tuple[str, str]] = {}  # valid -> (data, ready)
        self.producers: dict[str, str] = {}
        self.consumers: dict[str, str] = {}
        self.wires: dict[str, int] = {}

    def _new(self, cell: Cell, wire: Nets, data: bool = False) -> str:
        """A wire that no other stream uses."""
        if not isinstance(wire, str) or wire in self.wires or wire not in self.top.wires:
            raise broken(cell.name, f"{wire} is not an unused wire.")
        self.wires[wire] = self.top.wires[wire] if data else 1
        return wire

    def output_streams(self, cell: Cell) -> tuple[str, ...]:
        """The streams that an instance sends. The outputs of a fork share their data."""
        data, valid, ready = (cell.ports.get(f"m_{kind}", "") for kind in ("data", "valid", "ready"))
        if cell.module == "hg_fork":
            count = cell.number("COUNT", 2) if "COUNT" in cell.parameters else 0
            if not (isinstance(valid, tuple) and isinstance(ready, tuple) and len(valid) == len(ready) == count):
                raise broken(cell.name, f"it has no valid and ready for each of {count} streams.")
        else:
            if not (isinstance(valid, str) and isinstance(ready, str)):
                raise broken(cell.name, f"{cell.module} sends one stream, not {valid}.")
            valid, ready = (valid,), (ready,)
        data_net = self._new(cell, data, data=True)
        for valid_net, ready_net in zip(valid, ready, strict=True):
            self.nets[self._new(cell, valid_net)] = data_net, self._new(cell, ready_net)
            self.producers[valid_net] = cell.name
        return valid

    def input_streams(self, cell: Cell) -> tuple[str, ...]:
        """The streams that an instance consumes. Its ports must be these and its outputs."""
        names, expected_ports = [], dict(self.clocks)
        for side in ("a", "b") if cell.module in _TWO_INPUTS else ("s",):
            data, valid, ready = (cell.ports.get(f"{side}_{kind}", "") for kind in ("data", "valid", "ready"))
            if not isinstance(valid, str) or valid not in self.nets:
                raise broken(cell.name, f"nothing sends stream {valid or side}, which it reads.")
            if self.nets[valid] != (data, ready):
                raise broken(
                    cell.name,
                    f"data {data} and ready {ready} do not belong to stream {valid}, which "
                    f"{self.producers[valid]} sends.",
                )
            if valid in self.consumers:
                raise broken(cell.name, f"it reads stream {valid}, which {self.consumers[valid]} also reads.")
            self.consumers[valid] = cell.name
            names.append(valid)
            expected_ports |= {f"{side}_data": data, f"{side}_valid": valid, f"{side}_ready": ready}
        if cell.module not in PORTS:
            expected_ports |= {
                port: nets for port, nets in cell.ports.items() if port in ("m_data", "m_valid", "m_ready")
            }
            if cell.module == "hg_frame_start":
                expected_ports |= self.begin_ports
            if cell.module in _WEIGHTS:
                expected_ports["load"] = "load" if "LOAD_UNIT" in cell.parameters else f"{_LOAD}'h0"
            check_connections(cell, expected_ports)
        return tuple(names)


def _begin_ports(label: str, starts_by: str) -> dict[str, Nets]:
    """Connections of hg_frame_start beside its streams: the handshake of the first input port, and the start."""
    port = f"s_axis{label}"
    fresh = {"tuser": f"{port}_tuser", "register": "port_fresh"}.get(starts_by, "1'h0")
    handshake: dict[str, Nets] = {"word_valid": f"{port}_tvalid", "word_ready": f"{port}_tready"}
    return {**handshake, "fresh": fresh, "begins": "port_begins"}


def _check_acyclic(
    top: TopModule,
    streams: _Streams,
    streams_in: dict[str, tuple[str, ...]],
    streams_out: dict[str, tuple[str, ...]],
    start: list[str],
    states: int,
    modules: frozenset[str],
) -> None:
    """Check that no streams form a cycle: every instance gets its streams from instances before it.

    The second streams of `states` instances of `modules` may lead back; the checker proves their contents.
    """
    missing_inputs = {name: len(names) for name, names in streams_in.items()}
    ready, feedback = list(start), set[str]()
    while ready:
        for valid in streams_out.get(ready.pop(), ()):
            consumer = streams.consumers[valid]
            missing_inputs[consumer] -= 1
            if not missing_inputs[consumer] and consumer not in feedback:
                ready.append(consumer)
        if not ready and len(feedback) < states:
            candidates = [
                n for n, c in missing_inputs.items() if c == 1 and n in top.cells and top.cells[n].module in modules
            ]
            chosen = [name for name in candidates if name not in feedback][: states - len(feedback)]
            feedback.update(chosen)
            ready += chosen
    unreached = [name for name, count in missing_inputs.items() if count]
    if unreached:
        raise broken(
            top.name, f"its streams form a cycle, or do not come from an input port: {', '.join(unreached[:4])}."
        )


def _check_weight_port(top: TopModule, cells: dict[str, Cell], options: PortOptions) -> None:
    """Check that the port for weights exists if the option says so, and that its units are numbered 0, 1, 2, ..."""
    ports = [cell for cell in top.cells.values() if cell.module == "hg_axil_weights"]
    units = [cell.parameters["LOAD_UNIT"] for cell in cells.values() if "LOAD_UNIT" in cell.parameters]
    if len(ports) != int(options.loadable) or units != list(range(len(units) if options.loadable else 0)):
        raise broken(top.name, "its units with writable weights do not fit the option loadable.")
    for port in ports:
        check_connections(port, options.clocks | axi_lite_nets("s_axil") | {"load": "load"})
        if port.parameters != {"UNITS": len(units)}:
            raise broken(port.name, f"parameters {port.parameters} do not fit {len(units)} units.")
