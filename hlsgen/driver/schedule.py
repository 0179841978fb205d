"""A graph becomes a network of hardware units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hlsgen.cycle_model.fifo_sizing import size as size_buffers
from hlsgen.dataflow.folding import Folding, Targets, Workload, choose_folding, works_of
from hlsgen.dataflow.lower import Planner
from hlsgen.dataflow.network import Schedule
from hlsgen.diagnostics import Collector
from hlsgen.ir import BinaryMap, Graph, Map
from hlsgen.ir.stream_order import StreamOrder, lay_out
from hlsgen.rescale import KINDS
from hlsgen.verilog.resource_model import STYLES, folded_cost, network_cost

#: Networks that are tried for a budget.
ATTEMPTS = 6


def plan(graph: Graph, targets: Targets, progress: Callable[[int, int, str], None] | None = None) -> Schedule:
    """Chooses folding, realizations, and the sizes of buffers. Raises HG035, HG037, HG040, HG041."""
    layout = lay_out(graph)
    _check_wishes(graph, targets)
    planner, folding = _planned(graph, layout, targets, progress)
    nodes = planner.finish()
    if progress:
        progress(len(graph.layers), len(graph.layers) + 1, "buffers")
    sized = size_buffers(nodes)
    written = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in folding.items()}
    return Schedule(
        graph, tuple(sized.nodes), layout, {"layers": written, "lanes": nodes[0].result.lanes},
        sized.latency, sized.interval, planner.choices, tuple(sized.critical),
    )  # fmt: skip


def _planned(
    graph: Graph, layout: StreamOrder, targets: Targets, progress: Callable[[int, int, str], None] | None
) -> tuple[Planner, Folding]:  # fmt: skip
    """All nodes of the network: the one asked for, or the fastest within the budget."""
    if not targets.budget.given or targets.cycles is not None:
        folding = choose_folding(graph, targets)
        return _laid(graph, layout, folding, targets, progress), folding
    dsp, style = targets.prefer == "dsp", STYLES[targets.weights]
    works = works_of(graph)
    scale = 1.0
    for _ in range(ATTEMPTS):
        folding = _fastest(graph, works, targets, scale)
        planner = _laid(graph, layout, folding, replace(targets, cycles=None), progress)
        excess = targets.budget.excess(network_cost(planner.nodes, planner.choices, dsp=dsp, style=style))
        if excess <= 1:
            break
        scale *= excess * 1.05
    return planner, folding


def _fastest(graph: Graph, works: dict[str, Workload], targets: Targets, scale: float) -> Folding:
    """The folding of the shortest interval whose rough cost, times `scale`, is within the budget."""
    dsp, style = targets.prefer == "dsp", STYLES[targets.weights]
    low, high = 1, max((work.cycles(1, 1) for work in works.values()), default=1)
    best = choose_folding(graph, replace(targets, cycles=high))
    while low < high:
        middle = math.isqrt(low * high) if high > low + 1 else low
        folding = choose_folding(graph, replace(targets, cycles=middle))
        cost = folded_cost(graph, works, folding, dsp=dsp, style=style)
        if targets.budget.excess(cost) * scale <= 1:
            best, high = folding, middle
        else:
            low = middle + 1
    return best


def _laid(
    graph: Graph, layout: StreamOrder, folding: Folding, targets: Targets, progress: Callable[[int, int, str], None] | None
) -> Planner:  # fmt: skip
    planner = Planner(graph, layout, folding, targets)
    for i, layer in enumerate(graph.layers):
        if progress:
            progress(i, len(graph.layers) + 1, layer.name)
        planner.add(i)
    return planner


def _check_wishes(graph: Graph, targets: Targets) -> None:
    names = [layer.name for layer in graph.layers if isinstance(layer, Map | BinaryMap)]
    problems = Collector()
    if targets.weights not in STYLES:
        problems.error("HG040", "--weights", f"{targets.weights!r}.", f"Supported: {', '.join(STYLES)}.")
    if targets.budget.given and targets.cycles is not None:
        problems.error("HG040", "--max-lut, --max-dsp, --max-bram", "a budget and a target rate.", "Give one of them.")
    if targets.prefer not in ("lut", "dsp"):
        problems.error("HG040", "--prefer", f"{targets.prefer!r}.", "Supported: lut, dsp.")
    for name, kind in targets.realize.items():
        if kind not in KINDS:
            problems.error("HG040", "--realize", f"{kind!r} is no realization.", f"Supported: {', '.join(KINDS)}.")
        if name and name not in names:
            problems.error(
                "HG040", "--realize", f"no quantizer {name!r}.", "Quantizers: " + (", ".join(names) or "none") + "."
            )
    problems.finish()
