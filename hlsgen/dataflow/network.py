"""The network of a graph: nodes and streams, with the cycles they take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hlsgen.dataflow.units import Node
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import Choice


@dataclass(frozen=True, eq=False)
class Schedule:
    """All nodes in the order of the data, with input and output ports first and last.

    `critical`: names of FIFOs that cannot be one beat smaller without costing cycles.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    layout: StreamOrder
    folding: dict[str, Any]
    latency: int
    interval: int
    choices: dict[str, Choice] = field(default_factory=dict)
    critical: tuple[str, ...] = ()

    @property
    def orders(self) -> list[Array]:
        """Order of every value of the graph, see ir/stream_order.py."""
        return self.layout.orders
