"""Which weights are in tables and which in block memories, where a network is over its budget otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlsgen.dataflow.resources import Budget, Cost, front
from hlsgen.dataflow.units import ConvUnit, GroupedMatVec, MatVec, Node
from hlsgen.dataflow.weighted_units import weight_words

#: What `memory` of a unit can be, besides "": whichever takes least.
KINDS = ("tables", "blocks")


def placed(nodes: Sequence[Node], cost: Callable[[Sequence[Node]], Cost], budget: Budget) -> list[Node]:
    """The nodes with the weights of each in tables or in blocks, so that all of them are within the budget with the fewest
    tables; if nothing is, as close to it as can be. `cost`: of nodes. Nodes that are within it stay as they are."""
    total = cost(nodes)
    if budget.excess(total) <= 1:
        return list(nodes)
    free = {n: _kinds(node) for n, node in enumerate(nodes) if _is_free(node)}
    _, picks = chosen(total, [(cost([nodes[n]]), [cost([one]) for one in kinds]) for n, kinds in free.items()], budget)
    changed = dict(zip(free, picks, strict=True))
    return [free[n][changed[n]] if n in free else node for n, node in enumerate(nodes)]


def chosen(total: Cost, parts: Sequence[tuple[Cost, Sequence[Cost]]], budget: Budget) -> tuple[Cost, list[int]]:
    """The number of what each part is to be, and the total then: within the budget with the fewest tables, or close to it.

    total: of the network with all parts as they are. parts: what each costs as it is, and as what it can be.
    """
    ways = front([[(kind.bram - own.bram, kind.lut - own.lut) for kind in kinds] for own, kinds in parts])

    def cost(blocks: int) -> Cost:
        return total + Cost(lut=ways[blocks][0], bram=blocks)

    best = min(ways, key=lambda blocks: (max(1.0, budget.excess(cost(blocks))), ways[blocks][0]))
    return cost(best), list(ways[best][1])


def _is_free(node: Node) -> bool:
    """Whether weights of a node are in a memory that may become another kind: not if the clock needs tables."""
    unit = node.unit
    if not isinstance(unit, MatVec | ConvUnit | GroupedMatVec) or unit.memory == "tables":
        return False
    return weight_words(unit) > 1 and not (isinstance(unit, MatVec) and unit.sums)


def _kinds(node: Node) -> list[Node]:
    """The node with its weights in each kind of memory."""
    unit = node.unit
    assert isinstance(unit, MatVec | ConvUnit | GroupedMatVec)
    return [replace(node, unit=replace(unit, memory=kind)) for kind in KINDS]
