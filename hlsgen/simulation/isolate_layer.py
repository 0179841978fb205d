"""Writes one layer of a build with a test of its own, for the first layer that differs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.artifacts.layer_table import nodes_of
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.units import Fork, Node, Stream
from hlsgen.diagnostics import fail
from hlsgen.driver.replace_directory import replace_files
from hlsgen.interpreter import graph as reference
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.stream_codec import pack, to_text, to_wire
from hlsgen.verilog.netlist import Design
from hlsgen.verilog.render import render


@dataclass(frozen=True)
class _Port:
    """A stream at the edge of the cut.

    wire: its name. data: name of its data net. value: number of the graph's value that it carries, 0 for the input.
    """

    wire: str
    data: str
    stream: Stream
    value: int

    @property
    def bits(self) -> int:
        return self.stream.bits

    def config(self) -> dict[str, Any]:
        layout = {"lanes": self.stream.lanes, "bits": self.stream.type.bits, "group": self.stream.group}
        return {"wire": self.wire, "data": self.data, **layout}


def check_cut(folder: Path) -> None:
    """Raises HG040 if the folder for `write_cut` exists and is not an empty folder."""
    if os.path.lexists(folder) and (not folder.is_dir() or folder.is_symlink() or any(folder.iterdir())):
        raise fail("HG040", "--cut", f"{str(folder)!r} exists.", "Name a new folder, or an empty one.")


def write_cut(
    design: Design,
    network: Network,
    timing: Timing,
    core: Mapping[str, bytes],
    folder: Path,
    layer: str,
    codes: Array,
) -> None:
    """Writes one layer of a build into a new folder, with a test that fails as long as its modules are wrong.

    The folder has the units of the layer, wired as in the build, with the library modules and memories of `core` (the
    simulated files by relative path). It also has the beats that the model sends into the layer for these frames, codes
    int64 (frames, *shape), and the beats that the layer must send. Raises HG001, HG040.
    """
    check_cut(folder)
    replace_files(cut(design, network, timing, core, layer, codes), folder, dict)


def cut(
    design: Design, network: Network, timing: Timing, core: Mapping[str, bytes], layer: str, codes: Array
) -> dict[str, bytes]:
    """The files of one layer; arguments as for `write_cut`."""
    graph = network.graph
    nodes = _needed(nodes_of(network)[layer])
    producers = {wire: node for node in network.nodes for wire in node.outputs}
    inside = {wire for node in nodes for wire in node.outputs}
    ports = [
        _Port(wire, _data(producers[wire], wire), stream, _value(producers, wire))
        for node in nodes
        for wire, stream in zip(node.inputs, node.sources, strict=True)
        if wire not in inside
    ]
    end = next(node for node in reversed(nodes) if node.position >= 0)
    output = _Port(end.outputs[0], f"{end.outputs[0]}_data", end.result, end.position + 1)
    edge = {name for p in [*ports, output] for name in (p.data, f"{p.wire}_valid", f"{p.wire}_ready")}
    inner_nets = {
        name
        for node_ in nodes
        for wire_ in node_.outputs
        for name in (_data(node_, wire_), f"{wire_}_valid", f"{wire_}_ready")
    } - edge
    names = {node.name for node in nodes}
    text = render(
        "verilog/cut.v.j2",
        layer=layer.replace("\n", " "),
        top=design.top,
        prefix=design.prefix,
        inputs=ports,
        output=output,
        nets=[net for net in design.nets if net.name in inner_nets],
        instances=[instance for instance in design.instances if instance.name in names],
    )
    top = f"rtl/{design.top}.v"
    library = [line for line in core["files.f"].decode().split() if line != top]
    texts = {"rtl/cut.v": text, "files.f": "\n".join([*library, "rtl/cut.v"]) + "\n"}
    values = [codes, *reference.run_layers(graph, codes)]

    def beats(port: _Port) -> str:
        carried = graph.layers[port.value - 1].result if port.value else graph.input
        data = to_wire(values[port.value], carried.encoding)
        return to_text(pack(data, network.orders[port.value], port.stream))

    texts |= {f"tb/{port.wire}.hex": beats(port) for port in ports} | {"tb/expected.hex": beats(output)}
    config = {
        "top": "cut",
        "test_module": "test_cut",
        "layer": layer,
        "inputs": [port.config() for port in ports],
        "output": output.config(),
        "patience": 4 * (timing.latency + timing.interval) + 1000,
    }
    texts["tb/config.json"] = json.dumps(config, indent=2) + "\n"
    texts |= {f"tb/{name}": library_text("tb", name) for name in ("run.py", "test_cut.py")}
    library_files = {name: data for name, data in core.items() if name.startswith("rtl/") and name != top}
    return library_files | {name: text.encode() for name, text in texts.items()}


def _needed(nodes: list[Node]) -> list[Node]:
    """The nodes without forks that feed the layer with only one output: their input can be sent to that output."""
    consumed = [wire for node in nodes for wire in node.inputs]
    return [s for s in nodes if not isinstance(s.unit, Fork) or sum(w in consumed for w in s.outputs) > 1]


def _data(node: Node, wire: str) -> str:
    """Name of the data net of a wire: a fork's outputs share one."""
    return f"{node.name if isinstance(node.unit, Fork) else wire}_data"


def _value(producers: dict[str, Node], wire: str) -> int:
    """The number of the graph's value on a wire at the edge of a layer."""
    node = producers[wire]
    while node.position < 0 and node.inputs[0] in producers:
        node = producers[node.inputs[0]]
    return node.position + 1
