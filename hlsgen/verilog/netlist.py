"""Elaborates a Network into a Design: module instances, nets and memory contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlsgen.dataflow.backend import Request
from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.ends import leaves
from hlsgen.dataflow.network import CorePort, Network
from hlsgen.dataflow.units import DynamicMatVec, Fork, FrameStart, Node, SoftmaxUnit, Stream, WeightedUnit
from hlsgen.dataflow.weighted_units import has_weight_memory
from hlsgen.diagnostics import fail
from hlsgen.library import scoped, tool_version
from hlsgen.verilog.binding.memory_files import Bits, Parameter
from hlsgen.verilog.unit_table import bind_node


@dataclass(frozen=True)
class Instance:
    """An instance of a module; the printed text adds the prefix of the design.

    `inputs`, `outputs`: names of its streams. `ports`: port -> net.
    """

    module: str
    name: str
    parameters: dict[str, Parameter]
    ports: dict[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    comment: str


@dataclass(frozen=True)
class Net:
    """A wire inside the core."""

    name: str
    width: int


@dataclass(frozen=True)
class Identity:
    """The core's values in the port for control and status, see hg_control. `words`: words of a frame at each input."""

    version: Bits
    model: Bits
    words: Bits


@dataclass(frozen=True)
class StreamPort:
    """An AXI4-Stream port, or one without handshake (`Design.plain`). `label` ends its name, "" if it is the only one.

    `bus`: how a frame of `stream` is laid out on it. `early`: ready is cut at the input, see Port. `data`, `valid`,
    `ready`: the nets of the stream inside.
    """

    name: str
    label: str
    stream: Stream
    bus: BusLayout
    data: str
    valid: str
    ready: str
    early: bool


@dataclass(frozen=True)
class Design:
    """Everything that the top level prints, the memory files and the modules of single nodes. Knows no operators.

    `on_bus`: True if the ports `inputs` and `outputs` are on a bus of requested width. `plain`: True if they have no
    handshake: data and a valid bit. `keep`: True if they have tkeep.
    `control`: the values of the port for control and status, if there is one. `modules`: text of the modules that are
    written for one instance, by name. `loads`: number of units whose weights can be written over AXI4-Lite, 0 if there
    is no such port. `starts_by`: how a sequence of frames starts, as in Options.
    """

    top: str
    clock: str
    reset: str
    reset_active_low: bool
    title: str
    nets: tuple[Net, ...]
    instances: tuple[Instance, ...]
    inputs: tuple[StreamPort, ...]
    outputs: tuple[StreamPort, ...]
    on_bus: bool
    keep: bool
    control: Identity | None
    memories: dict[str, str]
    modules: dict[str, str]
    loads: int = 0
    starts_by: str = ""
    plain: bool = False

    @property
    def prefix(self) -> str:
        """The prefix of the names of all modules and memory files except the top level.

        Both are global in an FPGA project. The prefix lets cores of several models and versions share one project.
        """
        return prefix_of(self.top)


def prefix_of(top: str) -> str:
    return f"{top}_"


def elaborate(network: Network, request: Request, style: int = 0) -> Design:
    """Binds every node to a module. `style`: kind of weight memories, see hg_weights. Raises HG040."""
    top, loadable, dsp = request.top, request.loadable, request.dsp_factor_bits if request.prefer == "dsp" else 0
    memories: dict[str, str] = {}
    modules: dict[str, str] = {}
    prefix = prefix_of(top)
    nodes = network.nodes
    data = {wire: f"{node.name if _forks(node) else wire}_data" for node in nodes for wire in node.outputs}
    producers = [node for node in nodes if not leaves(node)]
    nets = [net for node in producers for net in _nets(node)]
    instances: list[Instance] = []
    loads = 0
    for node in network.inner:
        binding = bind_node(node, style)
        assert not memories.keys() & binding.memories.keys(), f"two units write the memory files of {node.name}"
        memories.update(binding.memories)
        parameters = dict(binding.parameters)
        if "FILE" in parameters:
            parameters["FILE"] = f"{prefix}{parameters['FILE']}"
        comment = f"layer {node.layer}: {binding.summary}" if node.layer else binding.summary
        ports = _ports(node, data)
        if has_weight_memory(node.unit):
            ports["load"] = "load" if loadable else "50'h0"
            parameters |= {"LOAD_UNIT": loads} if loadable else {}
            loads += loadable
        if isinstance(node.unit, FrameStart):
            ports |= _begin_ports(network.inputs[0].name, request.starts_by)
        products = node.unit.dsp if isinstance(node.unit, DynamicMatVec | WeightedUnit) else None
        if products is not None:
            parameters |= {"DSP": products.factor_bits}
        if dsp and isinstance(node.unit, SoftmaxUnit) and not node.unit.in_order:
            parameters |= {"DSP": dsp}
        module = binding.module
        if binding.text is not None:
            module = f"{node.name}_{binding.module}"
            modules[module] = scoped(binding.text(f"{prefix}{module}"), prefix)
        instances.append(Instance(module, node.name, parameters, ports, node.inputs, node.outputs, comment))
    inputs = tuple(_stream_port(port, port.node.outputs[0], data) for port in network.inputs)
    outputs = tuple(_stream_port(port, port.node.inputs[0], data) for port in network.outputs)
    names = [*(net.name for net in nets), *(instance.name for instance in instances)]
    assert len({name.lower() for name in names}) == len(names), "two nets or instances have one name"
    _check_names(request, set(names))
    control = _identity(request.model["sha256"], inputs) if request.control else None
    return Design(
        top,
        request.clock,
        request.reset,
        request.reset_active_low,
        request.title,
        tuple(nets),
        tuple(instances),
        inputs,
        outputs,
        network.inputs[0].on_bus,
        request.keep,
        control,
        {f"{prefix}{name}": text for name, text in memories.items()},
        modules,
        loads,
        request.starts_by,
        network.inputs[0].is_plain,
    )


def _stream_port(port: CorePort, wire: str, data: dict[str, str]) -> StreamPort:
    """The port for stream `wire`; `data`: the data nets of all streams."""
    nets = data[wire], f"{wire}_valid", f"{wire}_ready"
    return StreamPort(port.name, port.label, port.stream, port.layout, *nets, port.cuts_ready)


def _begin_ports(port: str, starts_by: str) -> dict[str, str]:
    """Pins of hg_frame_start at the input port of this name."""
    fresh = {"tuser": f"{port}_tuser", "register": "port_fresh", "reset": "1'h0"}[starts_by]
    handshake = {"word_valid": f"{port}_tvalid", "word_ready": f"{port}_tready"}
    return {**handshake, "fresh": fresh, "begins": "port_begins"}


def _check_names(request: Request, net_names: set[str]) -> None:
    """Checks that nothing else in the top level has the name of clock or reset. Raises HG040."""
    plain = ("in_valid", "in_data", "out_valid", "out_data")
    reserved = ("rst_core", "load", "tlast_error", "frame_error", request.top, *plain)
    for option, name in (("--clock-name", request.clock), ("--reset-name", request.reset)):
        if name in net_names or name in reserved or name.startswith(("s_axi", "m_axi", "port_", "hg_")):
            raise fail(
                "HG040", option, f"{name!r} is already the name of something else in the core.", "Choose another name."
            )


def _identity(sha256: str, inputs: Sequence[StreamPort]) -> Identity:
    parts = [int(part) if part.isdigit() else 0 for part in (*tool_version().split("."), "", "")[:3]]
    version = sum((part & 0xFF) << shift for part, shift in zip(parts, (16, 8, 0), strict=True))
    words = sum(port.bus.words << (32 * place) for place, port in enumerate(inputs))
    return Identity(Bits(32, version), Bits(32, int(sha256[:8], 16)), Bits(32 * len(inputs), words))


def _forks(node: Node) -> bool:
    return isinstance(node.unit, Fork)


def _nets(node: Node) -> list[Net]:
    """The nets of the streams that a node produces. The outputs of a fork share their data net."""
    nets = [Net(f"{node.name if _forks(node) else node.outputs[0]}_data", node.result.bits)]
    for wire in node.outputs:
        nets += [Net(f"{wire}_valid", 1), Net(f"{wire}_ready", 1)]
    return nets


def _ports(node: Node, data: dict[str, str]) -> dict[str, str]:
    sides = ("s",) if len(node.inputs) == 1 else ("a", "b")
    ports: dict[str, str] = {}
    for side, wire in zip(sides, node.inputs, strict=True):
        ports |= {f"{side}_data": data[wire], f"{side}_valid": f"{wire}_valid", f"{side}_ready": f"{wire}_ready"}
    ports["m_data"] = data[node.outputs[0]]
    for kind in ("valid", "ready"):
        names = [f"{wire}_{kind}" for wire in reversed(node.outputs)]
        ports[f"m_{kind}"] = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
    return ports
