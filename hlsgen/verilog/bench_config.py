"""The configuration that the cocotb testbench of a build reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.units import Node
from hlsgen.numerics.fixed import Array
from hlsgen.verilog.netlist import Design

#: Elements of a frame whose order is listed for the testbench.
MAX_LISTED = 1 << 16
#: How often a core is filled until nothing moves, and emptied, at most.
_BURSTS = 3
#: Handshakes that are looked at meanwhile, at most: a second or two.
_MAX_LOOKS = 1_000_000


def testbench_config(design: Design, network: Network, timing: Timing) -> dict[str, Any]:
    """The values that tb/test_top.py reads: ports, frames, all streams, and those that it compares (`monitors`)."""
    output = network.nodes[-1]
    last = next((s for s in reversed(network.nodes) if s.layer), output)
    streams = [name for node in network.nodes[:-1] for name in node.outputs]
    orders: dict[bytes, int] = {}
    burst_cycles = max(20_000, 3 * timing.latency + 6 * timing.interval)
    return {
        "top": design.top,
        "clock": design.clock,
        "reset": design.reset,
        "reset_active_low": design.reset_active_low,
        "weights": design.loads,
        "tdata": [bus.width for bus in design.buses],
        "beats_in": design.buses[0].words,
        "beats_out": design.buses[1].words,
        "latency": timing.latency,
        "interval": timing.interval,
        "stall_frames": max(2, min(8, 20_000 // timing.interval), 400 // timing.interval),
        "burst_rounds": _BURSTS,
        "burst_cycles": burst_cycles,
        "coverage_stride": 1 + burst_cycles * len(streams) // _MAX_LOOKS,
        "streams": streams,
        "output": {"layer": last.layer, **_port(network, output, len(network.orders) - 1, orders)},
        **({"keep": [bus.last_bytes for bus in design.buses]} if design.keep else {}),
        **({"control": [design.control.version.value, design.control.model.value]} if design.control else {}),
        **({"bus": {"slot_bytes": design.buses[1].slot_bytes}} if design.wide else {}),
        "monitors": [
            {"stream": s.name, "layer": s.layer, **_port(network, s, s.position + 1, orders)}
            for s in network.nodes
            if s.position >= 0
        ],
        "orders": [np.frombuffer(order, np.int64).tolist() for order in orders],
    }


def _port(network: Network, node: Node, which: int, orders: dict[bytes, int]) -> dict[str, Any]:
    order, stream = network.orders[which], node.result
    layer = network.graph.layers[which - 1] if which else None
    shape = layer.result.shape if layer else network.graph.input.shape
    return {
        "bits": stream.type.bits,
        "signed": stream.type.signed,
        "lanes": stream.lanes,
        "beats": stream.beats,
        "group": stream.group,
        "channels": shape[-1] if shape else 1,
        "order": _order(order, orders),
    }


def _order(order: Array, orders: dict[bytes, int]) -> int | None:
    """The number of the permutation in `orders`, or None for row-major (or too many elements to list)."""
    if len(order) > MAX_LISTED or (order == np.arange(len(order))).all():
        return None
    return orders.setdefault(order.astype(np.int64).tobytes(), len(orders))
