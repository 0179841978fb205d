"""Finds the bits of neurons in lookup tables that their consumers read; synthesis removes the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.adder_graph import AdderGraph, width
from hlsgen.dataflow.units import AdderMatVec, Fifo, NeuronUnit, Node, Slice


def with_read_bits(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with `read` of neurons whose codes only other neurons or adders consume."""
    read: dict[str, frozenset[int]] = {}
    result: list[Node] = []
    for node in reversed(nodes):
        unit = node.unit
        if isinstance(unit, NeuronUnit):
            unit = replace(unit, read=read.get(node.outputs[0]))
            network = unit.tables.network
            outputs = range(network.outputs) if unit.read is None else unit.read
            read[node.inputs[0]] = frozenset(network.cone(outputs)[1])
        elif isinstance(unit, AdderMatVec) and isinstance(unit.graph, AdderGraph):
            read[node.inputs[0]] = _bits_of_columns(unit.graph, node.source.type.bits)
        elif isinstance(unit, Slice | Fifo) and node.outputs[0] in read:
            read[node.inputs[0]] = read[node.outputs[0]]
        result.append(replace(node, unit=unit))
    return result[::-1]


def _bits_of_columns(graph: AdderGraph, x_bits: int) -> frozenset[int]:
    """The bits of a beat that sums use: for each column with weights the bits of its range."""
    used = {node for adder in graph.adders for node, _ in adder.terms} | {output.node for output in graph.outputs}
    columns = [(n, min(x_bits, width(*ends))) for n, ends in enumerate(graph.inputs) if n in used]
    return frozenset(n * x_bits + bit for n, bits in columns for bit in range(bits))
