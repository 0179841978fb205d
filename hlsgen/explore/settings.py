"""The networks that an exploration tries: target cycles, spread evenly over what the layers can do, and DSP or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hlsgen.dataflow.backend import Backend
from hlsgen.dataflow.folding import choose_folding, least_cycles
from hlsgen.dataflow.workload import works_of
from hlsgen.driver.backends import backends_of
from hlsgen.driver.compile import targets_of
from hlsgen.driver.fit import SHARE, budget_of
from hlsgen.driver.options import Options
from hlsgen.driver.schedule import fastest_within
from hlsgen.explore.points import Place
from hlsgen.ir import Graph

#: What multiplications take.
PREFERENCES = ("lut", "dsp")
#: Without a device: networks of more tables of six inputs, by a first, rough estimate, are not tried.
MOST_LUT = 2e6
#: Most elements a beat.
MOST_LANES = 9999


def settings(graph: Graph, base: Options, place: Place, most: int) -> list[Options]:
    """At most so many networks, fastest first: options that differ in nothing but target cycles, or lanes, and DSP.

    Two of the same folding and DSP are one. most: 1 or more.
    """
    found: list[Options] = []
    without = place.device is not None and not place.device.dsp
    preferences = PREFERENCES[: 1 if without else most]
    if not works_of(graph):
        counts = [1 << n for n in range(graph.input.size.bit_length()) if 1 << n <= MOST_LANES]
        return [replace(base, lanes=n, prefer=prefer) for n in reversed(counts) for prefer in preferences][-most:]
    # Half of them with DSP blocks, or as many as differ and fit; all others without.
    for n, prefer in reversed(list(enumerate(preferences))):
        count = most // len(preferences) if n else most - len(found)
        cycles = _spread(graph, replace(base, prefer=prefer), place, count)
        found += [replace(base, target_cycles=target, prefer=prefer) for target in cycles]
    return sorted(found, key=lambda one: (one.target_cycles or 0, PREFERENCES.index(one.prefer)))


def memories(base: Options) -> list[str]:
    """The kinds of weight memories that all targets have."""
    first, *others = backends_of(base.target).values()
    return [name for name in first.memories if all(name in one.memories for one in others)]


def _spread(graph: Graph, base: Options, place: Place, most: int) -> list[int]:
    """Target cycles, at most so many, no two of the same folding: always one more in the middle of the widest gap."""
    backend = next(iter(backends_of(base.target).values()))
    works = works_of(graph)
    slowest = max(work.cycles(1, 1) for work in works.values())
    given = [works[name].cycles(f["pe"], f["simd"]) for name, f in base.folding.items()]
    floor = max(least_cycles(graph, targets_of(base)), *given, 1)
    reached = _reached(graph, base, backend)
    first = _fastest(graph, base, place, backend, floor, max(slowest, floor))
    steps = {cycles for work in works.values() for pe, simd in work.foldings() if (cycles := work.cycles(pe, simd))}
    steps |= {1 << n for n in range(slowest.bit_length())}
    open_ = sorted(cycles for cycles in steps if first < cycles <= slowest)
    # The slowest one, which takes the least, is always tried: if it does not fit, none does.
    taken = {reached(open_[-1] if open_ else first)}
    if most > 1:
        taken.add(reached(first))
    while open_ and len(taken) < most:
        open_ = [cycles for cycles in open_ if cycles not in taken]
        if not open_:
            break
        wanted = max(open_, key=lambda cycles: (_distance(cycles, taken), -cycles))
        open_.remove(wanted)
        taken.add(reached(wanted))
    return sorted(taken)[:most]


def _distance(cycles: int, taken: set[int]) -> float:
    """How far, in powers of two, from the next one that is taken."""
    return min(abs(math.log2(cycles / other)) for other in taken)


def _reached(graph: Graph, base: Options, backend: Backend) -> Callable[[int], int]:
    """What the slowest layer takes of the folding for a target: the folding for this is the same."""
    works = works_of(graph)

    def reached(target: int) -> int:
        folding = choose_folding(graph, replace(targets_of(base), cycles=target), backend.folding_price)
        return max(
            least_cycles(graph, targets_of(base)), *(work.cycles(*folding[name]) for name, work in works.items())
        )

    return reached


def _fastest(graph: Graph, base: Options, place: Place, backend: Backend, low: int, high: int) -> int:
    """The least target cycles between these that fit: by the estimate of a build; without a device, that any FPGA may have.

    If none does, the greatest.
    """
    works = works_of(graph)
    if place.device is not None:
        wanted = replace(targets_of(base), family=place.family, settled=True)
        folding = fastest_within(graph, replace(wanted, budget=budget_of(place.device, SHARE)), backend)
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
    """The points of a network: one for each kind of weight memory, which changes what it costs and nothing else."""
    return [replace(network, weights=memory) for memory in memories(network)]
