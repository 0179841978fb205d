"""Chooses the networks of an exploration: target cycles spread evenly over the possible range, with and without DSP
blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hlsgen.dataflow.backend import Backend
from hlsgen.dataflow.folding import choose_folding, least_cycles
from hlsgen.dataflow.workload import works_of
from hlsgen.driver.backends import backends_of, planning_backend
from hlsgen.driver.compile import targets_of
from hlsgen.driver.fit import SHARE, budget_of
from hlsgen.driver.options import Options
from hlsgen.driver.schedule import fastest_within
from hlsgen.explore.points import Place
from hlsgen.ir import Graph

#: Resources for multiplications.
PREFERENCES = ("lut", "dsp")
#: If there is no device, networks of more LUTs of six inputs, by a first, rough estimate, are not tried.
MOST_LUT = 2e6
#: Most elements a beat.
MOST_LANES = 9999


def settings(graph: Graph, base: Options, place: Place, limit: int) -> list[Options]:
    """At most `limit` networks, fastest first: options that differ only in target cycles, or lanes, and DSP.

    Networks with equal folding and DSP count as one. Plain ports allow one network. limit: 1 or more.
    """
    if base.plain:
        return [replace(base, target_cycles=1)]
    networks: list[Options] = []
    has_no_dsp = place.device is not None and not place.device.dsp
    preferences = PREFERENCES[: 1 if has_no_dsp else limit]
    if not works_of(graph):
        counts = [1 << n for n in range(graph.input.size.bit_length()) if 1 << n <= MOST_LANES]
        return [replace(base, lanes=n, prefer=prefer) for n in reversed(counts) for prefer in preferences][-limit:]
    # Half of the networks use DSP blocks, or fewer if fewer differ and fit; the others do not.
    for n, prefer in reversed(list(enumerate(preferences))):
        count = limit // len(preferences) if n else limit - len(networks)
        cycles = _spread(graph, replace(base, prefer=prefer), place, count)
        networks += [replace(base, target_cycles=target, prefer=prefer) for target in cycles]
    return sorted(networks, key=lambda options: (options.target_cycles or 0, PREFERENCES.index(options.prefer)))


def memories(base: Options) -> list[str]:
    """The kinds of weight memories that all targets have."""
    first, *further = backends_of(base.target).values()
    return [name for name in first.memories if all(name in backend.memories for backend in further)]


def _spread(graph: Graph, base: Options, place: Place, limit: int) -> list[int]:
    """At most `limit` target cycles, no two of the same folding: each further one is in the middle of the widest
    gap."""
    backend = planning_backend(base.target)
    works = works_of(graph)
    slowest = max(work.cycles(1, 1) for work in works.values())
    fixed_cycles = [works[name].cycles(f["pe"], f["simd"]) for name, f in base.folding.items()]
    floor = max(least_cycles(graph, targets_of(base)), *fixed_cycles, 1)
    reached = _reached(graph, base, backend)
    first = _fastest(graph, base, place, backend, floor, max(slowest, floor))
    steps = {cycles for work in works.values() for pe, simd in work.foldings() if (cycles := work.cycles(pe, simd))}
    steps |= {1 << n for n in range(slowest.bit_length())}
    open_ = sorted(cycles for cycles in steps if first < cycles <= slowest)
    # The slowest network, which is the smallest, is always tried: if it does not fit, no network does.
    chosen = {reached(open_[-1] if open_ else first)}
    if limit > 1:
        chosen.add(reached(first))
    while open_ and len(chosen) < limit:
        open_ = [cycles for cycles in open_ if cycles not in chosen]
        if not open_:
            break
        farthest = max(open_, key=lambda cycles: (_distance(cycles, chosen), -cycles))
        open_.remove(farthest)
        chosen.add(reached(farthest))
    return sorted(chosen)[:limit]


def _distance(cycles: int, chosen: set[int]) -> float:
    """Distance, in powers of two, to the nearest chosen target."""
    return min(abs(math.log2(cycles / target)) for target in chosen)


def _reached(graph: Graph, base: Options, backend: Backend) -> Callable[[int], int]:
    """A function from a target to the cycles of the slowest layer with its folding: its folding is the same."""
    works = works_of(graph)

    def reached(target: int) -> int:
        folding = choose_folding(graph, replace(targets_of(base), cycles=target), backend.folding_price)
        return max(
            least_cycles(graph, targets_of(base)), *(work.cycles(*folding[name]) for name, work in works.items())
        )

    return reached


def _fastest(graph: Graph, base: Options, place: Place, backend: Backend, low: int, high: int) -> int:
    """The smallest target cycles in this range that fit, by the estimate of a build; if none does, the largest.

    If there is no device, the limit is MOST_LUT.
    """
    works = works_of(graph)
    if place.device is not None:
        targets = replace(targets_of(base), family=place.family, settled=True)
        folding = fastest_within(graph, replace(targets, budget=budget_of(place.device, SHARE)), backend)
        return min(high, max(low, *(work.cycles(*folding[name]) for name, work in works.items())))

    def hopeless(target: int) -> bool:
        targets = replace(targets_of(base), cycles=target)
        cost = backend.folded_cost(works, choose_folding(graph, targets, backend.folding_price), targets)
        return cost.lut > MOST_LUT

    while low < high:
        middle = math.isqrt(low * high) if high > low + 1 else low
        low, high = (middle + 1, high) if hopeless(middle) else (low, middle)
    return low


def split(network: Options) -> list[Options]:
    """The points of a network: one for each kind of weight memory, which changes only its cost."""
    return [replace(network, weights=memory) for memory in memories(network)]
