"""Plans networks of a graph without the elements that need no hardware, and takes the cheapest one.

The smallest graph is the cheapest with a frame a cycle. At other rates, numbers of channels with more divisors may fold
better, so these are tried as well.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from hlsgen.dataflow.backend import Backend
from hlsgen.dataflow.folding import Targets, check_folding
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.smaller_graph import smaller_graph
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.driver.options import Options, check_options_for
from hlsgen.driver.schedule import Progress, plan
from hlsgen.ir import Graph

#: Numbers of channels are rounded up to multiples of these.
_MULTIPLES = (1, 4)
#: Prices of resources in LUT, only to compare networks of one model.
_FF, _BRAM, _DSP = 0.05, 128, 100


@dataclass(frozen=True)
class _Planned:
    """A network with its timing and the cost by which it is compared."""

    network: Network
    timing: Timing
    cost: Cost

    @property
    def lut(self) -> float:
        """All resources in LUT."""
        return self.cost.lut + _FF * self.cost.ff + _BRAM * self.cost.bram + _DSP * self.cost.dsp


def plan_smallest(
    graph: Graph, targets: Targets, backend: Backend, progress: Progress | None = None
) -> tuple[Network, Timing]:
    """As `schedule.plan`, for the cheapest of the graphs that compute the same output.

    Weights that can be written at run time keep all elements. A requested folding may need elements that others do not.
    """
    smaller = [] if targets.loadable else smaller_graphs(graph, targets)
    planned: list[_Planned] = []
    for candidate in smaller:
        with suppress(HlsgenError):  # the model's graph shows whether the request is impossible
            check_folding(candidate, targets.folding, problems := Collector())
            problems.finish()
            planned.append(_planned(candidate, targets, backend, progress))
    if not planned:
        return plan(graph, targets, backend, progress)
    fastest = min(max(x.timing.interval, targets.cycles or 0) for x in planned)
    fast = [x for x in planned if x.timing.interval <= fastest]
    best = min(fast, key=lambda x: (max(0.0, targets.budget.excess(x.cost) - 1), x.lut))
    return best.network, best.timing


def check_requests(graph: Graph, options: Options, targets: Targets) -> None:
    """As `check_options_for`, for the model's graph or one of the smaller ones. Raises HG040, HG041."""
    try:
        check_options_for(options, graph)
    except HlsgenError:
        for smaller in [] if options.loadable else smaller_graphs(graph, targets):
            with suppress(HlsgenError):
                check_options_for(options, smaller)
                return
        raise


def smaller_graphs(graph: Graph, targets: Targets) -> list[Graph]:
    """The graphs to plan, each once; none if the graph needs all its elements."""
    smallest = smaller_graph(graph)
    if smallest is graph:
        return []
    multiples = (1,) if targets.cycles == 1 else _MULTIPLES
    graphs = [smallest if multiple == 1 else smaller_graph(graph, multiple) for multiple in multiples]
    return list({smaller.removed: smaller for smaller in graphs if smaller is not graph}.values())


def _planned(graph: Graph, targets: Targets, backend: Backend, progress: Progress | None) -> _Planned:
    network, timing = plan(graph, targets, backend, progress)
    return _Planned(network, timing, backend.network_cost(network.nodes, network.choices, targets))
