"""The configuration that the cocotb testbench of a build reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlsgen.dataflow.ends import leaves
from hlsgen.dataflow.network import CorePort, Network, Timing
from hlsgen.dataflow.units import Node, Stream
from hlsgen.numerics.fixed import Array
from hlsgen.verilog.netlist import Design

#: Elements of a frame whose order is listed for the testbench.
MAX_LISTED = 1 << 16
#: Rounds in which the testbench fills a stalled core and drains it, at most.
_BURSTS = 3
#: Handshakes that are sampled in these rounds, at most: a second or two.
_MAX_LOOKS = 1_000_000


def testbench_config(design: Design, network: Network, timing: Timing) -> dict[str, Any]:
    """The values that tb/test_top.py reads: ports, frames, all streams, and the compared streams (`monitors`)."""
    streams = [name for node in network.nodes if not leaves(node) for name in node.outputs]
    orders: dict[bytes, int] = {}
    burst_cycles = max(20_000, 3 * timing.latency + 6 * timing.interval)
    return {
        "top": design.top,
        "clock": design.clock,
        "reset": design.reset,
        "reset_active_low": design.reset_active_low,
        "weights": design.loads,
        "inputs": [_pins(design, port, "input", []) for port in network.inputs],
        "outputs": [
            {
                **_pins(design, port, "expected", [("captured", "output")]),
                "layer": _source(network, port),
                **_port(network, port.stream, port.number, orders),
            }
            for port in network.outputs
        ],
        **({"starts_by": design.starts_by} if design.starts_by else {}),
        **({"plain": True} if design.plain else {}),
        "latency": timing.latency,
        "interval": timing.interval,
        "stall_frames": max(2, min(8, 20_000 // timing.interval), 400 // timing.interval),
        "burst_rounds": _BURSTS,
        "burst_cycles": burst_cycles,
        "coverage_stride": 1 + burst_cycles * len(streams) // _MAX_LOOKS,
        "streams": streams,
        **({"control": [design.control.version.value, design.control.model.value]} if design.control else {}),
        "monitors": [
            {"stream": s.name, "layer": s.layer, **_port(network, s.result, s.position + 1, orders)}
            for s in network.nodes
            if s.position >= 0
        ],
        "orders": [np.frombuffer(order, np.int64).tolist() for order in orders],
    }


def _pins(design: Design, port: CorePort, stem: str, further_files: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The port: its bits and words, and the names of its word files.

    `stem`: start of the name of its vector file. `further_files`: (key, start of the name) of each other file.
    """
    bus = port.layout
    return {
        "port": port.name,
        "label": port.label,
        "tdata": port.data_bits,
        "words": bus.words,
        **{key: f"{name}{port.label}.hex" for key, name in [("vectors", stem), *further_files]},
        **({"keep": bus.last_bytes} if design.keep else {}),
        **({"slot_bytes": bus.slot_bytes} if design.on_bus else {}),
    }


def _source(network: Network, port: CorePort) -> str:
    """The layer that computes an output."""
    producers = {wire: node for node in network.nodes for wire in node.outputs}
    node: Node | None = port.node
    while node is not None and not node.layer:
        node = producers.get(node.inputs[0])
    return "" if node is None else node.layer


def _port(network: Network, stream: Stream, which: int, orders: dict[bytes, int]) -> dict[str, Any]:
    order = network.orders[which]
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
