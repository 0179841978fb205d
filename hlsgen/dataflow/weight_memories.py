"""Chooses which weights are in LUTs and which in block RAM if a network would be over its budget otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlsgen.dataflow.resources import Budget, Cost, front
from hlsgen.dataflow.units import ConvUnit, GroupedMatVec, MatVec, Node
from hlsgen.dataflow.weighted_units import has_weight_memory, weight_words

#: Values of a unit's `memory` besides "", the cheapest kind.
KINDS = ("tables", "blocks")


def placed(nodes: Sequence[Node], cost: Callable[[Sequence[Node]], Cost], budget: Budget) -> list[Node]:
    """The nodes with the weights of each in LUTs or in block RAM, so that they meet the budget with the fewest LUTs.

    If no choice meets the budget, the closest one. `cost`: cost of nodes. Nodes that meet it already are not changed.
    """
    total = cost(nodes)
    if budget.excess(total) <= 1:
        return list(nodes)
    free = {n: _kinds(node) for n, node in enumerate(nodes) if _is_free(node)}
    _, picks = chosen(
        total, [(cost([nodes[n]]), [cost([variant]) for variant in kinds]) for n, kinds in free.items()], budget
    )
    changed = dict(zip(free, picks, strict=True))
    return [free[n][changed[n]] if n in free else node for n, node in enumerate(nodes)]


def chosen(total: Cost, parts: Sequence[tuple[Cost, Sequence[Cost]]], budget: Budget) -> tuple[Cost, list[int]]:
    """(total cost, index of the kind of each part): within the budget with the fewest LUTs, or closest to it.

    `total`: cost of the network with all parts unchanged. `parts`: cost of each part unchanged, and as each kind.
    """
    picks = front(
        [[(kind.bram - unchanged.bram, kind.lut - unchanged.lut) for kind in kinds] for unchanged, kinds in parts]
    )

    def cost(block_rams: int) -> Cost:
        return total + Cost(lut=picks[block_rams][0], bram=block_rams)

    best = min(picks, key=lambda block_rams: (max(1.0, budget.excess(cost(block_rams))), picks[block_rams][0]))
    return cost(best), list(picks[best][1])


def _is_free(node: Node) -> bool:
    """True if the kind of a node's weight memory is free to choose; false if the clock requires LUTs."""
    unit = node.unit
    if not isinstance(unit, MatVec | ConvUnit | GroupedMatVec) or unit.memory == "tables":
        return False
    return weight_words(unit) > 1 and has_weight_memory(unit)


def _kinds(node: Node) -> list[Node]:
    """The node with its weights in each kind of memory."""
    unit = node.unit
    assert isinstance(unit, MatVec | ConvUnit | GroupedMatVec)
    return [replace(node, unit=replace(unit, memory=kind)) for kind in KINDS]
