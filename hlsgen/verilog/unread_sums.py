"""Finds low bits of sums that their quantizers ignore, for estimates: synthesis removes their registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hlsgen.adder_graph import AdderGraph
from hlsgen.dataflow.units import AdderMatVec, Node, RescaleUnit
from hlsgen.numerics.fixed import Rounding
from hlsgen.rescale import LaneShift, LaneTable

#: Zeros below the lowest 1 of an offset of 0.
_ALL = 64


def with_unread_bits(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with `unread` of adder graphs before quantizers with a function for each lane."""
    unread: dict[str, tuple[int, ...]] = {}
    for node in nodes:
        if isinstance(node.unit, RescaleUnit) and isinstance(node.unit.realization, LaneTable | LaneShift):
            unread[node.inputs[0]] = _unread_bits(node.unit.realization.take(node.unit.table[0]))
    return [_with_unread_bits(node, unread.get(node.outputs[0], ())) for node in nodes]


def _with_unread_bits(node: Node, unread: tuple[int, ...]) -> Node:
    unit = node.unit
    if not isinstance(unit, AdderMatVec) or not isinstance(unit.graph, AdderGraph):
        return node
    return replace(node, unit=replace(unit, unread=unread if len(unread) == len(unit.graph.outputs) else ()))


def _unread_bits(lanes: LaneTable | LaneShift) -> tuple[int, ...]:
    """Low bits of each lane's input that only reach bits which are cut off."""
    shift = lanes.shift
    if isinstance(lanes, LaneShift):
        shift = np.where((lanes.mode == Rounding.FLOOR) & (lanes.left_shift == 0), shift, 0)
    zeros = np.where(lanes.offset == 0, _ALL, [(int(x) & -int(x)).bit_length() - 1 for x in lanes.offset])
    return tuple(np.minimum(shift, zeros).tolist())
