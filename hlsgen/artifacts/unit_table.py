"""The table of units in manifest and report: what the hardware consists of, how streams join it, and what each part costs."""

from __future__ import annotations

from typing import Any

from hlsgen.artifacts.layer_table import Pricer
from hlsgen.cycle_model.units import busy
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import Port


def unit_table(network: Network, price: Pricer) -> list[dict[str, Any]]:
    """One row for each unit between the ports, in the order of the data.

    `inputs`: the instances that send its streams; `bits`, `lanes` and `beats` a frame of each stream that it sends;
    `cycles` of a frame in which it is busy; `lut`, `ff`, `bram18`, `dsp`: the estimate, with the realization of a quantizer at the
    unit that delivers its codes.
    """
    senders = {stream: node.name for node in network.nodes for stream in node.outputs}
    rows = []
    for node in network.nodes:
        if isinstance(node.unit, Port):
            continue
        choice = network.choices.get(node.layer) if node.position >= 0 else None
        found = price([node], {} if choice is None else {node.layer: choice})
        rows.append({
            "instance": node.name,
            "unit": type(node.unit).__name__,
            "layer": node.layer,
            "inputs": [senders[stream] for stream in node.inputs],
            "bits": node.result.bits,
            "lanes": node.result.lanes,
            "beats": node.result.beats,
            "cycles": busy(node),
            **found.as_dict(),
        })  # fmt: skip
    return rows
