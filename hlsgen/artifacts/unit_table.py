"""The table of units in manifest and report: what the hardware consists of, how streams join it, and what each part costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hlsgen.cycle_model.units import busy
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node, Port
from hlsgen.rescale import Choice

#: What nodes and the realizations of quantizers cost together, as the target estimates it.
CostOf = Callable[[Iterable[Node], Mapping[str, Choice]], Cost]


def unit_table(network: Network, cost: CostOf) -> list[dict[str, Any]]:
    """One row for each unit between the ports, in the order of the data.

    `inputs`: the instances that send its streams; `bits`, `lanes` and `beats` a frame of each stream that it sends;
    `cycles` of a frame in which it is busy; `lut`, `dsp`, `bram18`: the estimate, with the realization of a quantizer at the
    unit that delivers its codes.
    """
    senders = {stream: node.name for node in network.nodes for stream in node.outputs}
    rows = []
    for node in network.nodes:
        if isinstance(node.unit, Port):
            continue
        choice = network.choices.get(node.layer) if node.position >= 0 else None
        found = cost([node], {} if choice is None else {node.layer: choice})
        rows.append({
            "instance": node.name,
            "unit": type(node.unit).__name__,
            "layer": node.layer,
            "inputs": [senders[stream] for stream in node.inputs],
            "bits": node.result.bits,
            "lanes": node.result.lanes,
            "beats": node.result.beats,
            "cycles": busy(node),
            "lut": round(found.lut),
            "dsp": found.dsp,
            "bram18": found.bram,
        })  # fmt: skip
    return rows


def estimate(network: Network, cost: CostOf) -> dict[str, int]:
    """LUT, DSP blocks, and block memories of 18 Kbit of the whole network, ports included."""
    total = cost(network.nodes, network.choices)
    return {"lut": round(total.lut), "dsp": total.dsp, "bram18": total.bram}
