"""Removes inverters between adders and hg_shift: the LUTs of hg_shift can invert instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.adder_graph import AdderGraph, inverted_bits
from hlsgen.dataflow.units import AdderMatVec, Node, RescaleUnit
from hlsgen.rescale.realize.shift import Shift


def without_inverters(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with stored-inverted bits of adder sums passed on inverted to hg_shift."""
    flips: dict[str, int] = {}
    for node in nodes:
        if isinstance(node.unit, AdderMatVec) and isinstance(node.unit.graph, AdderGraph):
            flips[node.outputs[0]] = inverted_bits(node.unit.graph, node.result.type.bits)
    flipped_streams = {
        node.inputs[0]
        for node in nodes
        if isinstance(node.unit, RescaleUnit) and isinstance(node.unit.realization, Shift) and flips.get(node.inputs[0])
    }
    result: list[Node] = []
    for node in nodes:
        unit = node.unit
        if isinstance(unit, AdderMatVec) and flipped_streams & {*node.outputs}:
            unit = replace(unit, omits_inverters=True)
        elif isinstance(unit, RescaleUnit) and flipped_streams & {*node.inputs}:
            unit = replace(unit, inverted_bits=flips[node.inputs[0]])
        result.append(replace(node, unit=unit))
    return result
