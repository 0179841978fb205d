"""A graph becomes a network of units: parallelism, realizations and buffers, by the prices of a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hlsgen.dataflow.backend import Backend
from hlsgen.dataflow.builder import NetworkBuilder
from hlsgen.dataflow.bus import AUTO_WIDTHS
from hlsgen.dataflow.folding import Targets, choose_folding
from hlsgen.dataflow.lower import finish, lower_layer, start
from hlsgen.dataflow.network import Network, Timing, layout_of, on_bus
from hlsgen.dataflow.units import Node, Port
from hlsgen.dataflow.weight_memories import placed
from hlsgen.dataflow.workload import Folding, Workload, works_of
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import StreamOrder, lay_out
from hlsgen.rescale import Choice

#: Networks that are tried for a budget.
ATTEMPTS = 6

#: Called with the number of steps done, of all steps, and what comes next.
Progress = Callable[[int, int, str], None]


def plan(graph: Graph, targets: Targets, backend: Backend, progress: Progress | None = None) -> tuple[Network, Timing]:
    """Chooses folding, realizations, and the sizes of buffers. Raises HG035, HG037, HG040."""
    layout = lay_out(graph)
    builder, folding = _planned(graph, layout, targets, backend, progress)
    nodes = finish(builder)
    if progress:
        progress(len(graph.layers), len(graph.layers) + 1, "buffers")
    sized, timing = _on_bus(nodes, targets, backend)
    sized = _in_memories(sized, builder.choices, targets, backend)
    written = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in folding.items()}
    lanes = nodes[0].result.lanes
    return Network(graph, sized, layout, {"layers": written, "lanes": lanes}, builder.choices), timing


def _on_bus(nodes: Sequence[Node], targets: Targets, backend: Backend) -> tuple[tuple[Node, ...], Timing]:
    """With the ports on the bus that is asked for, and the sizes of buffers."""
    if targets.bus:
        return backend.size_buffers(on_bus(nodes, targets.bus))
    found = backend.size_buffers(nodes)
    if targets.bus is None:
        return found
    interval = found[1].interval
    for width in AUTO_WIDTHS:
        wider = on_bus(nodes, width)
        if width == AUTO_WIDTHS[-1] or _words(wider) <= interval:
            found = backend.size_buffers(wider)
            if found[1].interval <= interval:
                break
    return found


def _in_memories(
    nodes: Sequence[Node], choices: Mapping[str, Choice], targets: Targets, backend: Backend
) -> tuple[Node, ...]:
    """With weights in those memories that the budget wants; cycles stay as they are."""
    if not targets.free_memories:
        return tuple(nodes)
    return tuple(placed(nodes, lambda some: backend.network_cost(some, choices, targets), targets.budget))


def _words(nodes: Sequence[Node]) -> int:
    """The most words of a frame that a port carries."""
    return max(layout_of(node).words for node in nodes if isinstance(node.unit, Port))


def fastest_within(graph: Graph, targets: Targets, backend: Backend) -> Folding:
    """The folding of the fastest network within the budget of the targets; of the smallest one if none is.

    With blocks, of one that has all products in them.
    """
    return _planned(graph, lay_out(graph), replace(targets, cycles=None), replace(backend, blocks=None), None)[1]


def _planned(
    graph: Graph, layout: StreamOrder, targets: Targets, backend: Backend, progress: Progress | None
) -> tuple[NetworkBuilder, Folding]:
    """All nodes of the network: the one asked for, or the fastest within the budget."""
    if not targets.budget.given or targets.cycles is not None:
        folding = choose_folding(graph, targets, backend.folding_price)
        return _within_blocks(graph, layout, folding, targets, backend, progress), folding
    works = works_of(graph)
    scale = 1.0
    for _ in range(ATTEMPTS):
        folding = _fastest(graph, works, targets, backend, scale)
        builder = _within_blocks(graph, layout, folding, replace(targets, cycles=None), backend, progress)
        nodes = _in_memories(builder.nodes, builder.choices, targets, backend)
        excess = targets.budget.excess(backend.network_cost(nodes, builder.choices, targets))
        if excess <= 1:
            break
        scale *= excess * 1.05
    else:
        slowest = max((work.cycles(1, 1) for work in works.values()), default=1)
        folding = choose_folding(graph, replace(targets, cycles=slowest), backend.folding_price)
        builder = _within_blocks(graph, layout, folding, replace(targets, cycles=None), backend, progress)
    return builder, folding


def _fastest(graph: Graph, works: dict[str, Workload], targets: Targets, backend: Backend, scale: float) -> Folding:
    """The folding of the shortest interval whose rough cost, times `scale`, is within the budget."""
    low, high = 1, max((work.cycles(1, 1) for work in works.values()), default=1)
    best = choose_folding(graph, replace(targets, cycles=high), backend.folding_price)
    while low < high:
        middle = math.isqrt(low * high) if high > low + 1 else low
        folding = choose_folding(graph, replace(targets, cycles=middle), backend.folding_price)
        chosen = targets
        if backend.blocks is not None and (most := _most_blocks(targets)) is not None:
            chosen = replace(targets, blocks=backend.blocks(works, folding, targets, most))
        if targets.budget.excess(backend.folded_cost(works, folding, chosen)) * scale <= 1:
            best, high = folding, middle
        else:
            low = middle + 1
    return best


def _most_blocks(targets: Targets) -> int | None:
    """Multiplier blocks of a network whose other products are in tables; None if all that can be are in blocks.

    Where nothing bounds the tables, all are: the fastest network would have any number of tables.
    """
    bounded = targets.cycles is not None or targets.budget.lut is not None
    return targets.budget.dsp if targets.prefer == "dsp" and bounded else None


def _within_blocks(
    graph: Graph, layout: StreamOrder, folding: Folding, targets: Targets, backend: Backend, progress: Progress | None
) -> NetworkBuilder:
    """The network of a folding with products of those layers in blocks for which it pays most, and the quantizers.

    Quantizers take them first, or not at all: whichever has fewer tables.
    """
    most = _most_blocks(targets)
    if backend.blocks is None or most is None:
        return _laid(graph, layout, folding, targets, backend, progress)
    tried = []
    for plain in (False, True):
        left = most
        while left >= 0:
            blocks = backend.blocks(works_of(graph), folding, targets, left)
            own = replace(targets, blocks=blocks, plain=plain)
            builder = _laid(graph, layout, folding, own, backend, progress)
            cost = backend.network_cost(builder.nodes, builder.choices, own)
            tried.append((max(0, cost.dsp - most), cost.lut, plain, builder))
            if cost.dsp <= most:
                break
            left -= cost.dsp - most
    return min(tried, key=lambda each: each[:3])[-1]


def _laid(
    graph: Graph, layout: StreamOrder, folding: Folding, targets: Targets, backend: Backend, progress: Progress | None
) -> NetworkBuilder:
    builder = NetworkBuilder(graph, layout, folding, targets, backend.prices, backend.adders_pay, backend.tables_of)
    start(builder)
    for i, layer in enumerate(graph.layers):
        if progress:
            progress(i, len(graph.layers) + 1, layer.name)
        lower_layer(builder, i)
    return builder
