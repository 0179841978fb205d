"""One layer of a build cut out of it, with a test that stands alone: for the first layer that differs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.artifacts.layer_table import nodes_of
from hlsgen.dataflow.units import Fork, Node, Stream
from hlsgen.driver.compile import Build
from hlsgen.interpreter import graph as reference
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.stream_codec import pack, to_text, to_wire
from hlsgen.verilog.render import render

#: Where the layer goes, below the build.
FOLDER = "divergence"


@dataclass(frozen=True)
class _Port:
    """A stream at the edge of the cut, and the value of the graph that it carries."""

    wire: str
    data: str
    stream: Stream
    value: int

    @property
    def bits(self) -> int:
        return self.stream.bits

    def config(self) -> dict[str, Any]:
        kept = {"lanes": self.stream.lanes, "bits": self.stream.type.bits, "group": self.stream.group}
        return {"wire": self.wire, "data": self.data, **kept}


def write_cut(build: Build, directory: Path, layer: str, codes: Array) -> Path:
    """Writes a layer of a build alone, with a test that fails as long as its modules are wrong; gives the folder.

    The folder lies below `directory`. It holds the units of the layer, wired as the build says, over the library
    modules and memories that lie in `directory`; the beats that the model sends into the layer for these frames,
    codes int64 (frames, *shape); and the beats that the layer must send.
    """
    network, graph = build.network, build.graph
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
    folder = directory / FOLDER / re.sub(r"[^\w.-]", "_", layer)[:80]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tb").mkdir(parents=True)
    shutil.copytree(directory / "rtl", folder / "rtl", ignore=shutil.ignore_patterns(f"{build.design.top}.v"))
    edge = {name for p in [*ports, output] for name in (p.data, f"{p.wire}_valid", f"{p.wire}_ready")}
    own = {name for s in nodes for w in s.outputs for name in (_data(s, w), f"{w}_valid", f"{w}_ready")} - edge
    names = {node.name for node in nodes}
    text = render(
        "verilog/cut.v.j2",
        layer=layer.replace("\n", " "),
        top=build.design.top,
        inputs=ports,
        output=output,
        nets=[net for net in build.design.nets if net.name in own],
        instances=[instance for instance in build.design.instances if instance.name in names],
    )
    (folder / "rtl" / "cut.v").write_text(text)
    library = [
        line for line in (directory / "files.f").read_text().split() if not line.endswith(f"/{build.design.top}.v")
    ]
    (folder / "files.f").write_text("\n".join([*library, "rtl/cut.v"]) + "\n")
    values = [codes, *reference.run_layers(graph, codes)]

    def beats(port: _Port) -> str:
        data = to_wire(values[port.value], graph.input.encoding) if port.value == 0 else values[port.value]
        return to_text(pack(data, network.orders[port.value], port.stream))

    for port in ports:
        (folder / "tb" / f"{port.wire}.hex").write_text(beats(port))
    (folder / "tb" / "expected.hex").write_text(beats(output))
    config = {
        "top": "cut", "test_module": "test_cut", "layer": layer, "inputs": [p.config() for p in ports],
        "output": output.config(), "patience": 4 * (build.timing.latency + build.timing.interval) + 1000,
    }  # fmt: skip
    (folder / "tb" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for name in ("run.py", "test_cut.py"):
        (folder / "tb" / name).write_text(library_text("tb", name))
    return folder


def _needed(nodes: list[Node]) -> list[Node]:
    """Without forks of which the layer takes only one output: what it takes can be sent there."""
    taken = [wire for node in nodes for wire in node.inputs]
    return [s for s in nodes if not isinstance(s.unit, Fork) or sum(w in taken for w in s.outputs) > 1]


def _data(node: Node, wire: str) -> str:
    return f"{node.name if isinstance(node.unit, Fork) else wire}_data"


def _value(producers: dict[str, Node], wire: str) -> int:
    """The value of the graph on a wire at the edge of a layer."""
    node = producers[wire]
    while node.position < 0 and node.inputs[0] in producers:
        node = producers[node.inputs[0]]
    return node.position + 1
