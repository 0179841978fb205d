"""The unit table of manifest and report: all units, their streams, and their estimated costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    senders |= {stream: port.name for port in network.inputs for stream in port.node.outputs}
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


def loops_of(units: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """For each loop the names of its layers in the order of the data, from the table of units.

    A loop begins at a unit that consumes a stream of a later unit, such as the memory of a state. It may lead through
    other loops.
    """
    position = {unit["instance"]: n for n, unit in enumerate(units)}
    loops = []
    for first, unit in enumerate(units):
        for sender in unit["inputs"]:
            if position.get(sender, -1) >= first:
                names = [units[n]["layer"] for n in _path(units, first, position[sender])]
                layers = [name for n, name in enumerate(names) if name and name not in names[:n]]
                loops += [layers] if layers else []
    return loops


def _path(units: Sequence[Mapping[str, Any]], first: int, last: int) -> list[int]:
    """Units of a shortest way of the data from one unit to another one; none if there is no way."""
    upstream: dict[int, int] = {}
    reached = [first]
    for unit in reached:
        following = [n for n, row in enumerate(units) if units[unit]["instance"] in row["inputs"]]
        for n in following:
            if n not in upstream and n != first:
                upstream[n] = unit
                reached.append(n)
    path = [last]
    while path[-1] != first and path[-1] in upstream:
        path.append(upstream[path[-1]])
    return path[::-1] if path[-1] == first else []
