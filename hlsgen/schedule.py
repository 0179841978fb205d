"""A graph becomes a network of hardware units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hlsgen.buffers import size as size_buffers
from hlsgen.errors import Collector
from hlsgen.fixed import Array
from hlsgen.folding import Targets, choose_folding
from hlsgen.ir import Graph, Map, Merge
from hlsgen.layout import Layout, lay_out
from hlsgen.planner import Planner
from hlsgen.rescale import KINDS, Choice
from hlsgen.stages import Stage


@dataclass(frozen=True, eq=False)
class Schedule:
    """All stages in the order of the data, with input and output ports first and last.

    `critical`: names of FIFOs that cannot be one beat smaller without costing cycles.
    """

    graph: Graph
    stages: tuple[Stage, ...]
    layout: Layout
    folding: dict[str, Any]
    latency: int
    interval: int
    choices: dict[str, Choice] = field(default_factory=dict)
    critical: tuple[str, ...] = ()

    @property
    def orders(self) -> list[Array]:
        """Order of every value of the graph, see layout.py."""
        return self.layout.orders


def plan(graph: Graph, targets: Targets, progress: Callable[[int, int, str], None] | None = None) -> Schedule:
    """Chooses folding, realizations, and the sizes of buffers. Raises HG035, HG037, HG040, HG041."""
    layout = lay_out(graph)
    folding = choose_folding(graph, targets)
    _check_wishes(graph, targets)
    network = Planner(graph, layout, folding, targets)
    for i, layer in enumerate(graph.layers):
        if progress:
            progress(i, len(graph.layers) + 1, layer.name)
        network.add(i)
    stages = network.finish()
    if progress:
        progress(len(graph.layers), len(graph.layers) + 1, "buffers")
    sized = size_buffers(stages)
    written = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in folding.items()}
    return Schedule(
        graph, tuple(sized.stages), layout, {"layers": written, "lanes": stages[0].result.lanes},
        sized.latency, sized.interval, network.choices, tuple(sized.critical),
    )  # fmt: skip


def _check_wishes(graph: Graph, targets: Targets) -> None:
    names = [layer.name for layer in graph.layers if isinstance(layer, Map | Merge)]
    problems = Collector()
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
