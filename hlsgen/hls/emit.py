"""Prints a core in C++: its types and top level, its constants, its test bench, and the files that tools take."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.network import CorePort, Network
from hlsgen.dataflow.units import Fifo, Node, Slice, Stream
from hlsgen.hls.binary_point import binary_point
from hlsgen.hls.binding.units import bind_node
from hlsgen.hls.depths import in_front_of_fifos, room_for_next, safe_depths
from hlsgen.hls.names import process_names
from hlsgen.hls.process import Process, Rom, spell
from hlsgen.library import headers_used, library_text, render

#: Words of ap_int that are wider have to be asked for.
_AP_INT_BITS = 1024
_COLUMNS = 120
#: What takes the place of a vendor's headers in C simulation, by folder.
_STAND_INS = {
    "csim": ("hls_stream.h", "ap_axi_sdata.h"), "csim_ac": ("ap_int.h", "ap_fixed.h"), "catapult": ("hls_stream.h",),
}  # fmt: skip
#: Beats that a stream between two processes holds where no FIFO stands.
_DEPTH = 2


def comment(text: str) -> str:
    """Text for a comment on one line: names of a model's nodes may hold anything."""
    return re.sub(r"[^ -~]|[\\?]|\*/", "_", text)


def _wrapped(text: str, indent: int, first: int = 4) -> str:
    """Code on lines of at most 120 columns, broken behind commas."""
    lines, line = [], " " * first
    for part in re.split(r"(?<=, )", text):
        if len(line) + len(part.rstrip()) > _COLUMNS and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += part
    return "\n".join([*lines, line.rstrip()])


@dataclass(frozen=True, eq=False)
class Channel:
    """A stream between two processes, or at a port. `depth`: beats that it holds."""

    name: str
    wire: str
    type: str
    depth: int


@dataclass(frozen=True, eq=False)
class Part:
    """A process of the core: the node, its call, its name, and the names of its streams and of their types."""

    node: Node
    call: Process
    name: str
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]

    @property
    def roms(self) -> dict[str, Rom]:
        return {f"{self.name}_{end}": table for end, table in self.call.tables.items()}

    @property
    def about(self) -> str:
        """What a comment says in front of it."""
        layer = f"layer {self.node.layer}: " if self.node.layer else ""
        return comment(f"{layer}{self.call.about}")

    @property
    def ports(self) -> list[tuple[str, str]]:
        """Names and types of its streams: s or a, b that it takes, m or m0, m1, ... that it sends."""
        taken = ["s"] if len(self.inputs) == 1 else ["a", "b"]
        sent = ["m"] if len(self.outputs) == 1 else [f"m{n}" for n in range(len(self.outputs))]
        return [(n, c.type) for n, c in zip([*taken, *sent], [*self.inputs, *self.outputs], strict=True)]

    @property
    def text(self) -> str:
        """The call."""
        arguments = ", ".join(f"{value} /* {name} */" for name, value in self.call.arguments)
        values = ", ".join([*(name for name, _ in self.ports), *self.roms])
        head = f"{self.call.function}<{arguments}>" if arguments else self.call.function
        return _wrapped(f"{head}({values});", 4 + len(self.call.function) + 1)

    @property
    def signature(self) -> str:
        streams = ", ".join(f"hls::stream<{type_}> &{name}" for name, type_ in self.ports)
        return _wrapped(f"static void {self.name}({streams}) {{", 13 + len(self.name), 0)


@dataclass(frozen=True, eq=False)
class End:
    """A port of the core. `label`: what ends its names, "" of an only one; `channel`: the stream inside.

    `process`: what lies between both; `word`: the type of its words; `stream`: their beats.
    """

    port: str
    label: str
    process: str
    word: str
    channel: Channel
    stream: Stream

    @property
    def tail(self) -> int:
        """Bits of the last word of a group that hold no element."""
        stream = self.stream
        return stream.port_bits - ((stream.group - 1) % stream.lanes + 1) * stream.type.bits


@dataclass(frozen=True, eq=False)
class Core:
    """What the C++ of a network consists of."""

    top: str
    title: str
    parts: tuple[Part, ...]
    channels: tuple[Channel, ...]
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]

    @property
    def bits(self) -> int:
        """Those of the widest word of a port."""
        return max(end.stream.port_bits for end in (*self.inputs, *self.outputs))


def core_of(network: Network, top: str, title: str) -> Core:
    """Binds every node. FIFOs become depths of the streams in front of them, which are deeper where processes need it."""
    nodes = network.nodes
    names = process_names(nodes, top)
    front = in_front_of_fifos(nodes)
    depths = {wire: _DEPTH for node in nodes for wire in node.outputs}
    for node in nodes:
        wire = front.get(node.inputs[0], node.inputs[0])
        if isinstance(node.unit, Fifo | Slice):
            depths[wire] += node.unit.depth
        elif wire in depths:
            depths[wire] += room_for_next(node)
    into, _, out = divided(nodes)
    made = [node for node in nodes if not isinstance(node.unit, Fifo | Slice) and node not in out]
    depths = safe_depths(nodes, {wire: depths[wire] for node in made for wire in node.outputs})
    channels: dict[str, Channel] = {}
    for node in made:
        for n, wire in enumerate(node.outputs):
            name = names[node.name] if len(node.outputs) == 1 else f"{names[node.name]}_{n}"
            channels[wire] = Channel(f"{name}_out", wire, f"{names[node.name]}_beat", depths[wire])

    def channel(wire: str) -> Channel:
        return channels[front.get(wire, wire)]

    parts = tuple(
        Part(
            node, bind_node(node, binary_point(network.graph, node)), names[node.name], tuple(channel(wire) for wire in node.inputs),
            tuple(channel(wire) for wire in node.outputs),
        )
        for node in made[len(into) :]
    )  # fmt: skip
    inputs = tuple(_end(top, "input", "take_frame", port, channel(port.node.outputs[0])) for port in network.inputs)
    outputs = tuple(_end(top, "output", "send_frame", port, channel(port.node.inputs[0])) for port in network.outputs)
    return Core(top, comment(title), parts, tuple(channels.values()), inputs, outputs)


def _end(top: str, side: str, process: str, port: CorePort, channel: Channel) -> End:
    return End(port.name, port.label, f"{process}{port.label}", f"{top}_{side}{port.label}_t", channel, port.stream)


def emit(core: Core) -> dict[str, str]:
    """Relative path -> text of all files but the test vectors."""
    headers = sorted({part.call.header for part in core.parts} | {"ports"})
    types = [(f"{part.name}_beat", part.node.result) for part in core.parts]
    values = {
        "core": core,
        "headers": headers,
        "types": [*((end.channel.type, end.stream) for end in core.inputs), *types],
        "signature": _signature(core),
        "wide": -(-core.bits // 1024) * 1024 if core.bits > _AP_INT_BITS else 0,
        "spell": spell,
    }
    files = {
        f"hls/{core.top}.hpp": render("cpp/top.hpp.j2", **values),
        f"hls/{core.top}.cpp": render("cpp/top.cpp.j2", **values),
        "hls/weights.hpp": _constants(core),
        f"hls/tb/{core.top}_tb.cpp": render("cpp/tb.cpp.j2", **values),
        "hls/Makefile": render("cpp/Makefile.j2", **values),
        "hls/hls_config.cfg": render("cpp/hls_config.cfg.j2", **values),
        "hls/run_hls.tcl": render("cpp/run_hls.tcl.j2", **values),
        "hls/catapult.tcl": render("cpp/catapult.tcl.j2", **values),
    }
    files |= {f"hls/hg/{name}": library_text("cpp/hg", name) for name in headers_used({f"{h}.hpp" for h in headers})}
    for folder, names in _STAND_INS.items():
        files |= {f"hls/{folder}/{name}": library_text(f"cpp/{folder}", name) for name in names}
    return files


def _signature(core: Core) -> str:
    """The head of the top function."""
    ports = ", ".join(f"hls::stream<{end.word}> &{end.port}" for end in (*core.inputs, *core.outputs))
    return _wrapped(f"void {core.top}({ports})", 6 + len(core.top), 0)


def _constants(core: Core) -> str:
    """weights.hpp: all constants of the core."""
    guard = f"{core.top.upper()}_WEIGHTS_HPP"
    lines = [
        f"// Constants of {core.title}: weights, thresholds, multipliers, tables.", f"#ifndef {guard}",
        f"#define {guard}", "", '#include "hg/types.hpp"', "",
    ]  # fmt: skip
    for part in core.parts:
        for name, table in part.roms.items():
            lines.append(f"// {part.about}. {table.meaning}")
            lines += [f"static const {rom_text(name, table)}", ""]
    return "\n".join([*lines, "#endif", ""])


def rom_text(name: str, table: Rom) -> str:
    """The declaration of a table, behind `static const`."""
    return f"{_rom_type(table)} {name}{_extents(table)} =\n    {_braces(table.values)};"


def _rom_type(table: Rom) -> str:
    return "float" if table.type is None else f"HG_ROM({table.native}, {spell(table.type)})"


def _extents(table: Rom) -> str:
    return "".join(f"[{n}]" for n in table.values.shape)


def _braces(values: np.ndarray) -> str:
    """An array as an initializer, its innermost rows on lines of their own."""
    if values.ndim == 1:
        return "{" + ", ".join(map(_literal, values.tolist())) + "}"
    inner = ",\n    ".join(_braces(row) for row in values)
    return "{" + inner + "}"


def _literal(value: float) -> str:
    if isinstance(value, float):
        if not np.isfinite(value):
            return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        text = np.format_float_scientific(np.float32(value), unique=True)
        return f"{text}f"
    return f"{value}LL" if abs(value) >= 1 << 31 else str(value)
