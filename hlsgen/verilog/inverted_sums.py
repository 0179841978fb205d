"""Leaves inverters out between adders and hg_shift, whose own tables invert: they would be behind the sums otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.adder_graph import AdderGraph, inverted_bits
from hlsgen.dataflow.units import AdderMatVec, Node, RescaleUnit
from hlsgen.rescale.realize.shift import Shift


def without_inverters(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, where sums of adders go to hg_shift with the bits inverted that are held so."""
    flips: dict[str, int] = {}
    for node in nodes:
        if isinstance(node.unit, AdderMatVec) and isinstance(node.unit.graph, AdderGraph):
            flips[node.outputs[0]] = inverted_bits(node.unit.graph, node.result.type.bits)
    taken = {
        node.inputs[0]
        for node in nodes
        if isinstance(node.unit, RescaleUnit) and isinstance(node.unit.realization, Shift) and flips.get(node.inputs[0])
    }
    result: list[Node] = []
    for node in nodes:
        unit = node.unit
        if isinstance(unit, AdderMatVec) and taken & {*node.outputs}:
            unit = replace(unit, bare=True)
        elif isinstance(unit, RescaleUnit) and taken & {*node.inputs}:
            unit = replace(unit, flips=flips[node.inputs[0]])
        result.append(replace(node, unit=unit))
    return result
