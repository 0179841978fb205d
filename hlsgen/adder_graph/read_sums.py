"""Bits of the registers of a graph that synthesis keeps: those that a consumer or another sum reads."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.adder_graph.graph import NOTHING, carry_place, width
from hlsgen.adder_graph.pipeline import Pipeline

#: The first bit of a node of which nothing is read.
_NONE = 64


def register_bits(pipeline: Pipeline, unread: Sequence[int]) -> int:
    """As `Pipeline.registers`, if nothing reads some low bits of the outputs: `unread` of each."""
    spans = zip(
        pipeline.graph.intervals, first_read_bits(pipeline, unread), pipeline.computed, pipeline.needed, strict=True
    )
    return sum(max(0, width(*ends) - first_bit) * max(0, last - computed) for ends, first_bit, computed, last in spans)


def first_read_bits(pipeline: Pipeline, unread: Sequence[int]) -> list[int]:
    """The lowest bit of each node that is read. The bits below it change no bit of an output that is read.

    A sum reads all bits of its terms from its carry on, even if nothing reads the lowest bits of the sum.
    """
    graph, inputs = pipeline.graph, len(pipeline.graph.inputs)
    first_bits = [_NONE] * len(graph.intervals)
    for output, bits in zip(graph.outputs, unread, strict=True):
        if output.node != NOTHING:
            first_bits[output.node] = min(first_bits[output.node], max(0, bits - output.shift))
    for n in range(len(graph.intervals) - 1, inputs - 1, -1):
        if first_bits[n] < _NONE:
            adder = graph.adders[n - inputs]
            lowest = min(first_bits[n], carry_place(adder, graph.intervals))
            for node, shift in adder.terms:
                first_bits[node] = min(first_bits[node], max(0, lowest - shift))
    return first_bits
