"""One layer of a build cut out of it, with a test that stands alone: for the first layer that differs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.artifacts.layer_table import stages_of
from hlsgen.dataflow.units import ForkStage, Stage, Stream
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
    """Writes the layer's units as they lie in `directory`, the beats of these frames (frames, *shape) that the
    model sends into them, and those that it expects, to a folder below `directory`; gives the folder."""
    schedule, graph = build.schedule, build.graph
    stages = _needed(stages_of(schedule)[layer])
    producers = {wire: stage for stage in schedule.stages for wire in stage.outputs}
    inside = {wire for stage in stages for wire in stage.outputs}
    ports = [
        _Port(wire, _data(producers[wire], wire), stream, _value(producers, wire))
        for stage in stages
        for wire, stream in zip(stage.inputs, stage.sources, strict=True)
        if wire not in inside
    ]
    end = next(stage for stage in reversed(stages) if stage.position >= 0)
    output = _Port(end.outputs[0], f"{end.outputs[0]}_data", end.result, end.position + 1)
    folder = directory / FOLDER / re.sub(r"[^\w.-]", "_", layer)[:80]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tb").mkdir(parents=True)
    shutil.copytree(directory / "rtl", folder / "rtl", ignore=shutil.ignore_patterns(f"{build.design.top}.v"))
    top = (directory / "rtl" / f"{build.design.top}.v").read_text()
    edge = {name for p in [*ports, output] for name in (p.data, f"{p.wire}_valid", f"{p.wire}_ready")}
    own = {name for s in stages for w in s.outputs for name in (_data(s, w), f"{w}_valid", f"{w}_ready")} - edge
    declarations = [line for line in top.splitlines() if (m := _NET.fullmatch(line)) and m[1] in own]
    instances = [_instance(top, stage.name) for stage in stages]
    text = render(
        "verilog/cut.v.j2", layer=layer.replace("\n", " "), top=build.design.top, inputs=ports, output=output,
        declarations=declarations, instances=instances,
    )  # fmt: skip
    (folder / "rtl" / "cut.v").write_text(text)
    library = [
        line for line in (directory / "files.f").read_text().split() if not line.endswith(f"/{build.design.top}.v")
    ]
    (folder / "files.f").write_text("\n".join([*library, "rtl/cut.v"]) + "\n")
    values = [codes, *reference.run_layers(graph, codes)]

    def beats(port: _Port) -> str:
        data = to_wire(values[port.value], graph.input.decode) if port.value == 0 else values[port.value]
        return to_text(pack(data, schedule.orders[port.value], port.stream))

    for port in ports:
        (folder / "tb" / f"{port.wire}.hex").write_text(beats(port))
    (folder / "tb" / "expected.hex").write_text(beats(output))
    config = {
        "top": "cut", "test_module": "test_cut", "layer": layer, "inputs": [p.config() for p in ports],
        "output": output.config(), "patience": 4 * (schedule.latency + schedule.interval) + 1000,
    }  # fmt: skip
    (folder / "tb" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for name in ("run.py", "test_cut.py"):
        (folder / "tb" / name).write_text(library_text("tb", name))
    return folder


_NET = re.compile(r"    wire (?:\[\d+:0\] )?(\w+);")


def _instance(top: str, name: str) -> str:
    """The text of an instance, with its comment."""
    found = re.search(
        rf"(?:    //[^\n]*\n)?    hg_\w+ #\(\n(?:(?!    \);\n).*\n)*?    \) {re.escape(name)} \(\n(?:(?!    \);).*\n)*    \);",
        top,
    )
    return found[0] if found else f"    // instance {name} is not in the top level"


def _needed(stages: list[Stage]) -> list[Stage]:
    """Without forks of which the layer takes only one output: what it takes can be sent there."""
    taken = [wire for stage in stages for wire in stage.inputs]
    return [s for s in stages if not isinstance(s.unit, ForkStage) or sum(w in taken for w in s.outputs) > 1]


def _data(stage: Stage, wire: str) -> str:
    return f"{stage.name if isinstance(stage.unit, ForkStage) else wire}_data"


def _value(producers: dict[str, Stage], wire: str) -> int:
    """The value of the graph on a wire at the edge of a layer."""
    stage = producers[wire]
    while stage.position < 0 and stage.inputs[0] in producers:
        stage = producers[stage.inputs[0]]
    return stage.position + 1
