"""Sizing of networks with states between frames: no FIFO holds a second copy of a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx
from state_models import delays

from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.dataflow.network import Timing
from hlsgen.dataflow.units import Fifo, FrameMemory, Node
from hlsgen.diagnostics import Collector
from hlsgen.driver.compile import lowered, targets_of
from hlsgen.driver.options import Options
from hlsgen.driver.schedule import plan
from hlsgen.verilog.backend import VERILOG, latency

#: Enough for a few simulations: large networks have no more.
EFFORT = 400


def test_memories_of_states_need_no_fifo_after_them(tmp_path: Path) -> None:
    onnx.save(delays(), tmp_path / "m.onnx")
    options = Options(state=["line=line_out", "last=last_out"], target_cycles=8)
    options, _, graph = lowered(tmp_path / "m.onnx", options, Collector())
    networks: list[Sequence[Node]] = []

    def sized(nodes: Sequence[Node], effort: int | None) -> tuple[tuple[Node, ...], Timing]:
        networks.append(nodes)
        return VERILOG.size_buffers(nodes, effort)

    plan(graph, targets_of(options), replace(VERILOG, size_buffers=sized))
    unsearched, searched = (size(networks[0], latency, effort=effort) for effort in (0, EFFORT))
    assert _copies(unsearched.nodes)
    assert _copies(searched.nodes) == []
    assert searched.interval == unsearched.interval == 8
    assert searched.latency <= unsearched.latency


def _copies(nodes: Sequence[Node]) -> list[str]:
    """Names of the FIFOs that get their beats from the memory of a state."""
    memories = {node.outputs[0] for node in nodes if isinstance(node.unit, FrameMemory)}
    return [node.name for node in nodes if isinstance(node.unit, Fifo) and node.inputs[0] in memories]
