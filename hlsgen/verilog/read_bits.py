"""Finds the bits of neurons in lookup tables that the next neurons read; synthesis removes the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.dataflow.units import Fifo, NeuronUnit, Node, Slice


def with_read_bits(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with `read` of neurons whose codes only other neurons consume."""
    read: dict[str, frozenset[int]] = {}
    result: list[Node] = []
    for node in reversed(nodes):
        unit = node.unit
        if isinstance(unit, NeuronUnit):
            unit = replace(unit, read=read.get(node.outputs[0]))
            network = unit.tables.network
            outputs = range(network.outputs) if unit.read is None else unit.read
            read[node.inputs[0]] = frozenset(network.cone(outputs)[1])
        elif isinstance(unit, Slice | Fifo) and node.outputs[0] in read:
            read[node.inputs[0]] = read[node.outputs[0]]
        result.append(replace(node, unit=unit))
    return result[::-1]
