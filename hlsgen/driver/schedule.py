"""A graph becomes a network of units: parallelism, realizations and buffers, by the prices of a target."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from hlsgen.dataflow.backend import Backend
from hlsgen.dataflow.builder import NetworkBuilder
from hlsgen.dataflow.bus import AUTO_WIDTHS
from hlsgen.dataflow.folding import Targets, choose_folding, even_intervals, intervals, least_cycles
from hlsgen.dataflow.lower import MAX_LANES, finish, lower_layer, start
from hlsgen.dataflow.network import Network, Timing, layout_of, on_bus
from hlsgen.dataflow.units import Node, Port
from hlsgen.dataflow.weight_memories import placed
from hlsgen.dataflow.workload import Folding, shares, works_of
from hlsgen.driver.rate_search import RateSearch, Trial
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import lay_out
from hlsgen.rescale import Choice

#: Networks that are planned in a search: this number, or fewer where all of them together have more units than MOST_UNITS.
ATTEMPTS, MOST_UNITS, FEWEST = 24, 1500, 6
#: A network that is beyond the budget by this ratio without buffers is not simulated to size them.
HOPELESS = 1.1

#: Called with the number of steps done, of all steps, and what comes next.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class _Planned:
    """A network before it is written down. `timing`: None if buffers were not sized."""

    builder: NetworkBuilder
    folding: Folding
    nodes: tuple[Node, ...]
    timing: Timing | None


def plan(graph: Graph, targets: Targets, backend: Backend, progress: Progress | None = None) -> tuple[Network, Timing]:
    """Chooses folding, implementations, and the sizes of buffers. Raises HG035, HG037, HG040."""
    planner = _Planner(graph, targets, backend, progress)
    chosen = planner.chosen()
    nodes, timing = chosen.nodes, chosen.timing
    if timing is None:
        nodes, timing = planner.sized(chosen.builder)
    written = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in chosen.folding.items()}
    lanes = nodes[0].result.lanes
    return Network(graph, nodes, planner.layout, {"layers": written, "lanes": lanes}, chosen.builder.choices), timing


def fastest_within(graph: Graph, targets: Targets, backend: Backend) -> Folding:
    """The folding of the fastest network within the budget of the targets; of the smallest one if none is.

    With DSP blocks, of one that has all products in them. Buffers are sized only where they decide whether it fits.
    """
    planner = _Planner(graph, replace(targets, cycles=None), replace(backend, blocks=None), None, sizes=False)
    return planner.chosen().folding


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


class _Planner:
    """Plans networks of a graph.

    `sizes`: whether buffers are sized, which takes simulations; if not, only of networks that nearly fill the budget.
    """

    def __init__(
        self, graph: Graph, targets: Targets, backend: Backend, progress: Progress | None, *, sizes: bool = True
    ) -> None:
        self.graph, self.targets, self.backend, self.progress, self.sizes = graph, targets, backend, progress, sizes
        self.layout, self.works = lay_out(graph), works_of(graph)
        self.choices: dict[Hashable, Choice] = {}

    def chosen(self) -> _Planned:
        """The network that is asked for: at a rate, or the fastest within the budget."""
        budget, cycles = self.targets.budget, self.targets.cycles
        if not budget.is_limited:
            folding = choose_folding(self.graph, self.targets, self.backend.folding_price)
            builder = self.laid(folding, self.targets)
            return _Planned(builder, folding, *self.sized(builder))
        search = RateSearch(self.rates(), self.rough, self.planned, self.attempts())
        return (search.fastest(self.even_rates()) if cycles is None else search.slowest(cycles)).plan

    def attempts(self) -> int:
        """Networks that a search may plan: fewer of large graphs."""
        return max(FEWEST, min(ATTEMPTS, MOST_UNITS // len(self.graph.layers)))

    def rates(self) -> list[int]:
        """Cycles a frame that some folding of some layer takes, or some number of lanes where no layer multiplies."""
        if not self.works:
            sizes = {value.size for _, _, value in self.graph.streamed_inputs}
            return sorted({-(-size // lanes) for size in sizes for lanes in shares(size) if lanes <= MAX_LANES})
        return self._reachable({cycles for work in self.works.values() for cycles in intervals(work)})

    def even_rates(self) -> list[int]:
        """Those at which a layer has no empty rows or columns: these are cheap for their speed."""
        if not self.works:
            return []
        return self._reachable({cycles for work in self.works.values() for cycles in even_intervals(work)})

    def _reachable(self, rates: set[int]) -> list[int]:
        least = least_cycles(self.graph, self.targets)
        return sorted({max(least, cycles) for cycles in rates})

    def rough(self, cycles: int) -> float:
        """How much of the budget the layers that multiply take at a rate, before anything is planned."""
        targets = replace(self.targets, cycles=cycles)
        folding = choose_folding(self.graph, targets, self.backend.folding_price)
        most = _most_blocks(self.targets)
        if self.backend.blocks is not None and most is not None:
            targets = replace(targets, blocks=self.backend.blocks(self.works, folding, targets, most))
        return targets.budget.excess(self.backend.folded_cost(self.works, folding, targets))

    def planned(self, cycles: int) -> Trial[_Planned]:
        """The network for a rate: sized, unless it is hopeless without buffers already."""
        targets = replace(self.targets, cycles=cycles)
        folding = choose_folding(self.graph, targets, self.backend.folding_price)
        builder = self.laid(folding, targets)
        nodes = tuple(_in_memories(builder.nodes, builder.choices, targets, self.backend))
        timing, interval = None, builder.target
        cost = self.backend.network_cost(nodes, builder.choices, targets)
        excess = targets.budget.excess(cost)
        if excess <= HOPELESS if self.sizes else 1 / HOPELESS < excess <= 1:
            nodes, timing = self.sized(builder)
            interval, cost = timing.interval, self.backend.network_cost(nodes, builder.choices, targets)
        return Trial(cycles, interval, targets.budget.excess(cost), cost.lut, _Planned(builder, folding, nodes, timing))

    def sized(self, builder: NetworkBuilder) -> tuple[tuple[Node, ...], Timing]:
        """All nodes with the ports on their bus, the sizes of buffers, and weights in the memories the budget allows."""
        nodes = finish(builder)
        if self.progress:
            self.progress(len(self.graph.layers), len(self.graph.layers) + 1, "buffers")
        sized, timing = _on_bus(nodes, self.targets, self.backend)
        return _in_memories(sized, builder.choices, self.targets, self.backend), timing

    def laid(self, folding: Folding, targets: Targets) -> NetworkBuilder:
        """The network of a folding, with products of those layers in DSP blocks for which it pays most.

        Quantizers take blocks first, or none: whichever has fewer LUT.
        """
        most = _most_blocks(self.targets)
        if self.backend.blocks is None or most is None:
            return self._laid(folding, targets)
        tried = []
        for plain in (False, True):
            left = most
            while left >= 0:
                blocks = self.backend.blocks(self.works, folding, targets, left)
                limited = replace(targets, blocks=blocks, plain=plain)
                builder = self._laid(folding, limited)
                cost = self.backend.network_cost(builder.nodes, builder.choices, limited)
                tried.append((max(0, cost.dsp - most), cost.lut, plain, builder))
                if cost.dsp <= most:
                    break
                left -= cost.dsp - most
        return min(tried, key=lambda each: each[:3])[-1]

    def _laid(self, folding: Folding, targets: Targets) -> NetworkBuilder:
        graph, backend = self.graph, self.backend
        builder = NetworkBuilder(
            graph, self.layout, folding, targets, backend.prices, backend.adders_pay, backend.tables_of, self.choices
        )
        start(builder)
        for i, layer in enumerate(graph.layers):
            if self.progress:
                self.progress(i, len(graph.layers) + 1, layer.name)
            lower_layer(builder, i)
        return builder


def _most_blocks(targets: Targets) -> int | None:
    """Multiplier blocks of a network whose other products are in tables; None if all that can be are in blocks.

    Where nothing bounds the tables, all are: the fastest network would have any number of tables.
    """
    bounded = targets.cycles is not None or targets.budget.lut is not None
    return targets.budget.dsp if targets.prefer == "dsp" and bounded else None
