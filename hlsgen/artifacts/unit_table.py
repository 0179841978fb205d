"""The unit table of manifest and report: all units, their streams, and their estimated costs."""

from __future__ import annotations

from typing import Any

from hlsgen.artifacts.layer_table import Estimator
from hlsgen.cycle_model.timing_models import busy
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import Port


def unit_table(network: Network, estimator: Estimator) -> list[dict[str, Any]]:
    """One row for each unit between the ports, in the order of the data.

    inputs: upstream instances. bits, lanes, beats: of each output stream, beats a frame. cycles: busy cycles a frame.
    lut, ff, bram, dsp: the estimate; the realization of a quantizer counts at the unit that emits its codes.
    """
    senders = {stream: node.name for node in network.nodes for stream in node.outputs}
    rows = []
    for node in network.nodes:
        if isinstance(node.unit, Port):
            continue
        choice = network.choices.get(node.layer) if node.position >= 0 else None
        estimate = estimator([node], {} if choice is None else {node.layer: choice})
        rows.append(
            {
                "instance": node.name,
                "unit": type(node.unit).__name__,
                "layer": node.layer,
                "inputs": [senders[stream] for stream in node.inputs],
                "bits": node.result.bits,
                "lanes": node.result.lanes,
                "beats": node.result.beats,
                "cycles": busy(node),
                **estimate,
            }
        )
    return rows
