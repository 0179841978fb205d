"""What the cocotb testbench of a build has to know."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.dataflow.network import Schedule
from hlsgen.dataflow.units import Node
from hlsgen.numerics.fixed import Array
from hlsgen.verilog.netlist import Design

#: Elements of a frame whose order is listed for the testbench.
MAX_LISTED = 1 << 16


def testbench_config(design: Design, schedule: Schedule) -> dict[str, Any]:
    """What tb/test_top.py has to know."""
    output = schedule.nodes[-1]
    last = next((s for s in reversed(schedule.nodes) if s.layer), output)
    return {
        "top": design.top,
        "reset": design.reset,
        "reset_active_low": design.reset_active_low,
        "weights": design.loads > 0,
        "beats_in": design.input.beats,
        "beats_out": design.output.beats,
        "latency": schedule.latency,
        "interval": schedule.interval,
        "stall_frames": max(2, min(8, 20000 // max(1, schedule.interval))),
        "output": {"layer": last.layer, **_port(schedule, output, len(schedule.orders) - 1)},
        "monitors": [
            {"stream": s.name, "layer": s.layer, **_port(schedule, s, s.position + 1)}
            for s in schedule.nodes
            if s.position >= 0
        ],
    }


def _port(schedule: Schedule, node: Node, which: int) -> dict[str, Any]:
    order, stream = schedule.orders[which], node.result
    layer = schedule.graph.layers[which - 1] if which else None
    shape = layer.result.shape if layer else schedule.graph.input.shape
    return {
        "bits": stream.type.bits,
        "signed": stream.type.signed,
        "lanes": stream.lanes,
        "beats": stream.beats,
        "group": stream.group,
        "channels": shape[-1] if shape else 1,
        "order": _order(order),
    }


def _order(order: Array) -> list[int] | None:
    """The permutation, or None for row-major (or too many elements to list)."""
    plain = (order == np.arange(len(order))).all()
    return None if plain or len(order) > MAX_LISTED else order.tolist()
