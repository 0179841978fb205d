"""Ports on a bus in the cycle model: split and merged again, with the same times in both engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from paths import DATA

import hlsgen
from hlsgen.cycle_model import simulate as model
from hlsgen.cycle_model.bus_ports import merge_ports, split_ports
from hlsgen.dataflow.network import on_bus
from hlsgen.dataflow.units import Fifo, Node, Port, WidthConverter
from hlsgen.verilog.unit_table import latency

OPTIONS = [
    {"bus_width": "8", "target_cycles": 20},
    {"bus_width": "128", "target_cycles": 20},
    {"bus_width": "32"},
    {"bus_width": "16", "input": "float32"},
]


def shown(nodes: Sequence[Node]) -> list[tuple[object, ...]]:
    """Nodes in a form that can be compared."""
    return [(node.name, node.unit, node.inputs, node.sources, node.outputs, node.result) for node in nodes]


@pytest.mark.sweep
def test_merging_undoes_splitting() -> None:
    for options in OPTIONS:
        nodes = list(hlsgen.check(DATA / "floor_ceil.onnx", hlsgen.Options(**options)).network.nodes)
        buses = [node.unit.bus for node in (nodes[0], nodes[-1]) if isinstance(node.unit, Port)]
        parts = split_ports(nodes)
        assert len(parts) == len(nodes) + sum(bus is not None and not bus.plain for bus in buses)
        assert all(node.unit == Port() for node in (parts[0], parts[-1])) or any(bus and bus.plain for bus in buses)
        assert (parts[0].source.beats, parts[-1].result.beats) == tuple(bus.words for bus in buses if bus)
        assert shown(split_ports(parts)) == shown(parts)
        assert shown(merge_ports(parts, nodes)) == shown(nodes)


def test_a_fifo_inserted_before_the_output_stays() -> None:
    nodes = on_bus(hlsgen.check(DATA / "floor_ceil.onnx", hlsgen.Options(target_cycles=1)).network.nodes, 8)
    *earlier, convert, port = split_ports(nodes)
    assert isinstance(convert.unit, WidthConverter)
    wire = convert.inputs[0]
    fifo = Node(f"{wire}_wait", Fifo(3), (wire,), convert.sources, (f"{wire}_wait",), nodes[-2].result)
    merged = merge_ports([*earlier, fifo, replace(convert, inputs=fifo.outputs), port], nodes)
    assert shown(merged) == shown([*nodes[:-1], fifo, replace(nodes[-1], inputs=fifo.outputs)])


@pytest.mark.parametrize("options", OPTIONS)
def test_both_engines_agree(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    build = hlsgen.check(DATA / "floor_ceil.onnx", hlsgen.Options(**options))
    nodes = build.network.nodes
    slow = model.measure(nodes, latency)
    assert slow == (build.timing.latency, build.timing.interval)
    assert slow[1] >= max(port.layout.words for port in (*build.network.inputs, *build.network.outputs))
    monkeypatch.setattr(model, "SMALL", 0)
    assert model.measure(nodes, latency) == slow
