"""Plans the network of a graph: parallelism, realizations and buffers, by the costs of a target."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from hlsgen.cycle_model.timing_models import busy
from hlsgen.dataflow.backend import Backend
from hlsgen.dataflow.builder import NetworkBuilder
from hlsgen.dataflow.bus import AUTO_WIDTHS
from hlsgen.dataflow.folding import Targets, choose_folding, even_intervals, intervals, least_cycles, priced_folding
from hlsgen.dataflow.lower import MAX_LANES, finish, lower_layer, start
from hlsgen.dataflow.measured_prices import measured
from hlsgen.dataflow.network import Network, Timing, layout_of, on_bus
from hlsgen.dataflow.plain_ports import with_plain_ports
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node, Port
from hlsgen.dataflow.weight_memories import placed
from hlsgen.dataflow.workload import Folding, shares, works_of
from hlsgen.diagnostics import fail
from hlsgen.driver.rate_search import RateSearch, Trial
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import lay_out
from hlsgen.rescale import Choice

#: Networks that a search plans: ATTEMPTS, or fewer (at least FEWEST) if they would have more than MOST_UNITS units
#: together.
ATTEMPTS, MOST_UNITS, FEWEST = 24, 1500, 6
#: Adders in series between registers that are tried for a limit of latency.
STAGES = (1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 5, 6, 8, 12)
#: Buffers are not sized if a network without buffers exceeds the budget by this ratio. Smaller buffers are not tried if
#: it exceeds the budget by this ratio with the first ones.
HOPELESS = 1.1
#: Another folding is laid out, and taken, if it is expected to save, and saves, these shares of the LUT.
WORTH_LAYING, WORTH_TAKING = 0.035, 0.01
#: Price of a register in LUT, to compare networks of one model.
REGISTER = 0.05

#: Called with the number of completed steps, the number of all steps, and the name of the next step.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class _Planned:
    """A planned network. timing is None if buffers were not sized. smallest: no smaller buffers are to be tried."""

    builder: NetworkBuilder
    folding: Folding
    nodes: tuple[Node, ...]
    timing: Timing | None
    smallest: bool = True


def plan(graph: Graph, targets: Targets, backend: Backend, progress: Progress | None = None) -> tuple[Network, Timing]:
    """Chooses folding, implementations and buffer sizes. Raises HG035, HG037, HG040, HG044.

    For a limit of latency, stages get longer until the network keeps it: fewer cycles, but a slower clock.
    """
    if targets.latency is None:
        return _plan(graph, targets, backend, progress)
    shortest = None
    for adders in sorted({targets.pipelining.adders_per_stage, *STAGES}):
        if adders < targets.pipelining.adders_per_stage:
            continue
        pipelining = replace(targets.pipelining, adders_per_stage=adders)
        network, timing = _plan(graph, replace(targets, pipelining=pipelining), backend, progress)
        if timing.latency <= targets.latency:
            return network, timing
        shortest = min(timing.latency, shortest or timing.latency)
    text = f"{targets.latency}: with the longest stages this network still takes {shortest} cycles."
    raise fail("HG040", "--latency-cycles", text, "Give more cycles, or a rate with more parallel hardware.")


def _plan(graph: Graph, targets: Targets, backend: Backend, progress: Progress | None) -> tuple[Network, Timing]:
    planner = _Planner(graph, targets, backend, progress)
    chosen = planner.chosen()
    nodes, timing = chosen.nodes, chosen.timing
    if timing is None or not chosen.smallest:
        nodes, timing = planner.sized(chosen.builder)
    layers = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in chosen.folding.items()}
    lanes = nodes[0].result.lanes
    return Network(graph, nodes, planner.layout, {"layers": layers, "lanes": lanes}, chosen.builder.choices), timing


def fastest_within(graph: Graph, targets: Targets, backend: Backend) -> Folding:
    """Folding of the fastest network within the budget of the targets; of the smallest network if none fits.

    If DSP blocks are preferred, all products use them. Buffers are sized only if they decide whether a network fits.
    """
    planner = _Planner(
        graph, replace(targets, cycles=None), replace(backend, choose_dsp_layers=None), None, sizes=False
    )
    return planner.chosen().folding


def _on_bus(
    nodes: Sequence[Node], targets: Targets, backend: Backend, effort: int | None
) -> tuple[tuple[Node, ...], Timing]:
    """Sets the bus width of the ports and sizes all buffers."""
    if targets.bus:
        return backend.size_buffers(on_bus(nodes, targets.bus), effort)
    if targets.bus is None:
        return backend.size_buffers(nodes, effort)
    interval = backend.size_buffers(nodes, 0)[1].interval
    wider = nodes
    for width in AUTO_WIDTHS:
        wider = on_bus(nodes, width)
        if width == AUTO_WIDTHS[-1]:
            break
        if _words(wider) <= interval and backend.size_buffers(wider, 0)[1].interval <= interval:
            break
    return backend.size_buffers(wider, effort)


def _in_memories(
    nodes: Sequence[Node], choices: Mapping[str, Choice], targets: Targets, backend: Backend
) -> tuple[Node, ...]:
    """Chooses the weight memories for the budget; cycles do not change."""
    if not targets.free_memories:
        return tuple(nodes)
    return tuple(placed(nodes, lambda selected: backend.network_cost(selected, choices, targets), targets.budget))


def _words(nodes: Sequence[Node]) -> int:
    """Largest number of words a frame at any port."""
    return max(layout_of(node).words for node in nodes if isinstance(node.unit, Port))


class _Planner:
    """Plans networks of a graph.

    sizes: true to size the buffers of every network by simulation; else only of networks that nearly fill the budget.
    """

    def __init__(
        self, graph: Graph, targets: Targets, backend: Backend, progress: Progress | None, *, sizes: bool = True
    ) -> None:
        self.graph, self.targets, self.backend, self.progress, self.sizes = graph, targets, backend, progress, sizes
        self.layout, self.works = lay_out(graph), works_of(graph)
        self.choices: dict[Hashable, Choice] = {}

    def chosen(self) -> _Planned:
        """The requested network: at a rate, or the fastest within the budget."""
        budget, cycles = self.targets.budget, self.targets.cycles
        if not budget.is_limited:
            planned = self.unlimited(self.targets)
            if cycles is None or not self.graph.states:
                return planned
            return self.with_fast_loops(planned, cycles)
        search = RateSearch(self.rates(), self.rough, self.planned, self.attempts())
        return (search.fastest(self.even_rates()) if cycles is None else search.slowest(cycles)).plan

    def unlimited(self, targets: Targets) -> _Planned:
        """The network for the rate of these targets.

        The folding is chosen by expected costs, and once more by the costs of the units that this leads to. The second
        choice is taken if it is smaller.
        """
        folding = choose_folding(self.graph, targets, self.backend.folding_price)
        builder = self.laid(folding, targets)
        slowest = max(busy(node) for node in builder.nodes)
        if slowest > builder.target and (self.works or targets.cycles) and not self.graph.states:
            # Layers faster than the slowest unit would not help.
            targets = replace(targets, cycles=slowest)
            folding = choose_folding(self.graph, targets, self.backend.folding_price)
            builder = self.laid(folding, targets)
        cost = self.cost(builder, builder.nodes)
        second = None if targets.prefer == "dsp" else self.second_choice(folding, builder, targets)
        if second is None or not _is_smaller(self.cost(second[1], second[1].nodes), cost):
            return _Planned(builder, folding, *self.sized(builder))
        smaller = _Planned(second[1], second[0], *self.sized(second[1]))
        smaller_cost = self.cost(second[1], smaller.nodes)
        if _is_smaller(smaller_cost, cost):
            return smaller
        planned = _Planned(builder, folding, *self.sized(builder))
        return smaller if _is_smaller(smaller_cost, self.cost(builder, planned.nodes)) else planned

    def second_choice(
        self, folding: Folding, builder: NetworkBuilder, targets: Targets
    ) -> tuple[Folding, NetworkBuilder] | None:
        """The folding that the costs of the units of a network lead to, with its network without buffers.

        The result is None if it is expected to save too little, or to need more block RAM.
        """

        def lut_of(nodes: Sequence[Node]) -> float:
            return self.cost(builder, nodes).lut

        price = measured(self.backend.folding_price, self.graph, self.works, folding, builder.nodes, lut_of)
        expected, second = priced_folding(self.graph, targets, price)
        saving = priced_folding(self.graph, targets, price, only=folding)[0] - expected
        blocks, second_blocks = (self.backend.folded_cost(self.works, x, targets).bram for x in (folding, second))
        if saving < WORTH_LAYING * lut_of(builder.nodes) or second_blocks > blocks:
            return None
        return second, self.laid(second, targets)

    def cost(self, builder: NetworkBuilder, nodes: Sequence[Node]) -> Cost:
        return self.backend.network_cost(nodes, builder.choices, self.targets)

    def with_fast_loops(self, planned: _Planned, cycles: int) -> _Planned:
        """The slowest network whose loops of states keep an interval of `cycles`, or the fastest one that was tried.

        A loop takes the sum of its layers, while `planned` gives `cycles` to each layer. Rates are bisected.
        """
        rates = [rate for rate in self.rates() if rate < cycles]
        first, end, best = 0, len(rates), planned
        while first < end and not (best is planned and _interval(planned) <= cycles):
            middle = (first + end) // 2
            faster = self.unlimited(replace(self.targets, cycles=rates[middle]))
            if _interval(faster) <= cycles:
                first, best = middle + 1, faster
            else:
                end = middle
                best = min(best, faster, key=_interval)
        return best

    def attempts(self) -> int:
        """Number of networks that a search may plan; smaller for large graphs."""
        return max(FEWEST, min(ATTEMPTS, MOST_UNITS // len(self.graph.layers)))

    def rates(self) -> list[int]:
        """Cycles a frame of each folding of each layer; without multiplying layers, of each number of lanes."""
        if not self.works:
            sizes = {value.size for _, _, value in self.graph.streamed_inputs}
            return sorted({-(-size // lanes) for size in sizes for lanes in shares(size) if lanes <= MAX_LANES})
        return self._reachable({cycles for work in self.works.values() for cycles in intervals(work)})

    def even_rates(self) -> list[int]:
        """Rates at which a layer has no empty rows or columns. They are cheap for their speed."""
        if not self.works:
            return []
        return self._reachable({cycles for work in self.works.values() for cycles in even_intervals(work)})

    def _reachable(self, rates: set[int]) -> list[int]:
        shortest = least_cycles(self.graph, self.targets)
        return sorted({max(shortest, cycles) for cycles in rates})

    def rough(self, cycles: int) -> float:
        """Share of the budget that multiplying layers need at a rate, estimated without planning."""
        targets = replace(self.targets, cycles=cycles)
        folding = choose_folding(self.graph, targets, self.backend.folding_price)
        block_limit = _most_blocks(self.targets)
        if self.backend.choose_dsp_layers is not None and block_limit is not None:
            targets = replace(
                targets, dsp_layers=self.backend.choose_dsp_layers(self.works, folding, targets, block_limit)
            )
        return self.load(self.backend.folded_cost(self.works, folding, targets))

    def load(self, cost: Cost) -> float:
        """Share of the budget of all but DSP blocks that only some layers get: at any rate they fill their budget."""
        is_choice = self.backend.choose_dsp_layers is not None and _most_blocks(self.targets) is not None
        budget = replace(self.targets.budget, dsp=None) if is_choice else self.targets.budget
        return budget.excess(cost)

    def planned(self, cycles: int) -> Trial[_Planned]:
        """The network for a rate; its buffers are sized unless it exceeds the budget without them.

        Smaller buffers are tried only if the network does not fit otherwise: that takes the most time.
        """
        targets = replace(self.targets, cycles=cycles)
        folding = choose_folding(self.graph, targets, self.backend.folding_price)
        builder = self.laid(folding, targets)
        nodes = tuple(_in_memories(builder.nodes, builder.choices, targets, self.backend))
        timing, interval, smallest = None, builder.target, False
        cost = self.backend.network_cost(nodes, builder.choices, targets)
        excess = targets.budget.excess(cost)
        if excess <= HOPELESS if self.sizes else 1 / HOPELESS < excess <= 1:
            nodes, timing = self.sized(builder, 0)
            cost = self.backend.network_cost(nodes, builder.choices, targets)
            smallest = 1 < targets.budget.excess(cost) <= HOPELESS
            if smallest:
                nodes, timing = self.sized(builder)
                cost = self.backend.network_cost(nodes, builder.choices, targets)
            interval = timing.interval
        planned = _Planned(builder, folding, nodes, timing, smallest)
        return Trial(cycles, interval, targets.budget.excess(cost), self.load(cost), cost.lut, planned)

    def sized(self, builder: NetworkBuilder, effort: int | None = None) -> tuple[tuple[Node, ...], Timing]:
        """All nodes with bus widths, buffer sizes and weight memories. `effort`: see `Backend.size_buffers`."""
        nodes = finish(builder)
        if self.targets.plain_ports:
            nodes = with_plain_ports(nodes)
        if self.progress:
            self.progress(len(self.graph.layers), len(self.graph.layers) + 1, "buffers")
        sized, timing = _on_bus(nodes, self.targets, self.backend, effort)
        return _in_memories(sized, builder.choices, self.targets, self.backend), timing

    def laid(self, folding: Folding, targets: Targets) -> NetworkBuilder:
        """The network of a folding. DSP blocks go to the layers that save the most LUT with them.

        Quantizers get DSP blocks first or none at all: the variant with fewer LUT is taken.
        """
        block_limit = _most_blocks(self.targets)
        if self.backend.choose_dsp_layers is None or block_limit is None:
            return self._laid(folding, targets)
        candidates = []
        for plain in (False, True):
            block_budget = block_limit
            while block_budget >= 0:
                blocks = self.backend.choose_dsp_layers(self.works, folding, targets, block_budget)
                limited = replace(targets, dsp_layers=blocks, plain=plain)
                builder = self._laid(folding, limited)
                cost = self.backend.network_cost(builder.nodes, builder.choices, limited)
                candidates.append((max(0, cost.dsp - block_limit), cost.lut, plain, builder))
                if cost.dsp <= block_limit:
                    break
                block_budget -= cost.dsp - block_limit
        return min(candidates, key=lambda candidate: candidate[:3])[-1]

    def _laid(self, folding: Folding, targets: Targets) -> NetworkBuilder:
        graph, backend = self.graph, self.backend
        builder = NetworkBuilder(
            graph,
            self.layout,
            folding,
            targets,
            backend.prices,
            backend.adders_pay,
            backend.tables_of,
            self.choices,
            backend.unit_lut,
        )
        start(builder)
        for i, layer in enumerate(graph.layers):
            if self.progress:
                self.progress(i, len(graph.layers) + 1, layer.name)
            lower_layer(builder, i)
        return builder


def _is_smaller(cost: Cost, reference: Cost) -> bool:
    """True if a cost has fewer LUT than the reference, clearly so with its registers, and no more blocks."""
    luts, reference_luts = (x.lut + REGISTER * x.ff for x in (cost, reference))
    few_blocks = cost.bram <= reference.bram and cost.dsp <= reference.dsp
    return few_blocks and cost.lut < reference.lut and luts < (1 - WORTH_TAKING) * reference_luts


def _interval(planned: _Planned) -> int:
    """The interval of a network with sized buffers."""
    assert planned.timing is not None
    return planned.timing.interval


def _most_blocks(targets: Targets) -> int | None:
    """Largest number of DSP blocks, if other products use LUT; None without a limit.

    All products use them if nothing limits the LUT: the fastest network would use any number of LUT.
    """
    bounded = targets.cycles is not None or targets.budget.lut is not None
    return targets.budget.dsp if targets.prefer == "dsp" and bounded else None
