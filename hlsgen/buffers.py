"""Depths of all buffers: enough for a frame every `bottleneck` cycles, and not more where a branch waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hlsgen.flow import Network
from hlsgen.stages import (
    ConvStage,
    FifoStage,
    FloatStage,
    ForkStage,
    KeyStage,
    PoolStage,
    Port,
    RescaleStage,
    Stage,
    WidthStage,
)
from hlsgen.timing import busy
from hlsgen.windows import least_depth

#: Beats that may be simulated to find smaller depths; all that is needed for correct ones is not counted.
EFFORT = 8_000_000
#: hg_fifo with less does not carry a beat a cycle.
LEAST_FIFO = 2
#: Frames of a run without limits.
OPEN_FRAMES = 6
#: How much more memory may be spent to keep the first frame from waiting.
FIRST_FRAME_SHARE = 0.25
#: How often depths are doubled before the network is taken to be as fast as it can be.
GROWTH = 8
#: Units in front of which a FIFO does not help: it does as well behind them, or they have a memory of their own.
_EVEN = (Port, KeyStage, RescaleStage, FloatStage, WidthStage, ForkStage, FifoStage, ConvStage, PoolStage)


@dataclass(frozen=True, eq=False)
class Sized:
    """Stages with depths, without FIFOs that do nothing; what they take, by simulation.

    `bottleneck`: the least interval that any depths could give. `critical`: FIFOs that would, with a depth
    less by one, give a longer latency or interval, or a deadlock.
    """

    stages: list[Stage]
    latency: int
    interval: int
    bottleneck: int
    critical: tuple[str, ...]


@dataclass
class _Search:
    """Simulations of variants of a network; a depth of 0 leaves a FIFO out."""

    stages: Sequence[Stage]
    work: int = 0
    known: dict[tuple[int, ...], tuple[int, int] | None] = field(default_factory=dict)
    held: dict[tuple[int, ...], dict[str, int]] = field(default_factory=dict)

    def variant(self, depths: dict[str, int]) -> list[Stage]:
        return with_depths(self.stages, depths)

    def measured(self, depths: dict[str, int], limit: tuple[int, int] | None = None) -> tuple[int, int] | None:
        """(latency, interval), None if it blocks or, as far as is certain, is slower than the limit."""
        key = tuple(depths.values())
        if key not in self.known:
            network = Network(self.variant(depths))
            network.feed(1)
            possible = not network.blocked() and not (limit and network.latency() > limit[0])
            fine = possible and network.run(limit[1] if limit else None)
            self.known[key] = network.result() if fine else None
            self.held[key] = network.held() if fine else {}
            self.work += sum(len(wire.taken) for wire in network.wires.values())
        return self.known[key]

    def as_fast(self, depths: dict[str, int], limit: tuple[int, int]) -> tuple[int, int] | None:
        """What it takes if that is not more than the limit."""
        found = self.measured(depths, limit)
        return found if found and found[0] <= limit[0] and found[1] <= limit[1] else None

    def trimmed(self, depths: dict[str, int]) -> dict[str, int]:
        """Without the room in FIFOs that was never used in a network that was measured: not a cycle is another."""
        key = tuple(depths.values())
        fewer = {name: min(depth, self.held[key].get(name, depth)) for name, depth in depths.items()}
        own = tuple(fewer.values())
        self.known[own], self.held[own] = self.known[key], self.held[key]
        return fewer


def size(stages: Sequence[Stage], effort: int = EFFORT) -> Sized:
    """Chooses the depths of all FIFOs and of the memories of windows; those given do not matter.

    FIFOs are added where the network could not be as fast as its slowest unit without them.
    The same stages always give the same depths. Raises ValueError if no depths let frames through.
    """
    bottleneck = max(busy(stage) for stage in stages)
    ideal, interval, first_held = _open(stages, bottleneck)
    if interval > bottleneck:
        more = _with_fifos(stages)
        found = _open(more, bottleneck)
        if found[1] < interval:
            stages, (ideal, interval, first_held) = more, found
    least = {s.name: least_depth(s.unit) for s in stages if isinstance(s.unit, ConvStage | PoolStage)}
    least |= {s.name: LEAST_FIFO for s in stages if isinstance(s.unit, FifoStage)}
    wanted = _occupancy(stages, max(bottleneck, interval), least)
    search = _Search(stages)
    depths, limit = _grow(search, wanted, max(bottleneck, interval))
    if limit[0] > ideal:
        depths, limit = _first_frame(search, depths, limit, first_held)
    search.work = 0
    depths, limit = _narrow_windows(search, depths, least, limit, effort)
    depths, limit = _drop_fifos(search, depths, limit, effort)
    depths, limit, critical = _narrow_fifos(search, depths, limit, effort)
    return Sized(search.variant(depths), limit[0], limit[1], bottleneck, critical)


def _with_fifos(stages: Sequence[Stage]) -> list[Stage]:
    """With a FIFO in front of every unit that does not take beats at an even pace and has no room for many."""
    result: list[Stage] = []
    made = {wire: stage for stage in stages for wire in stage.outputs}
    for stage in stages:
        inputs = list(stage.inputs)
        for n, wire in enumerate(inputs):
            if not isinstance(stage.unit, _EVEN) and not isinstance(made[wire].unit, FifoStage | Port):
                inputs[n] = f"{wire}_wait"
                stream = stage.sources[n]
                result.append(Stage(inputs[n], FifoStage(LEAST_FIFO), (wire,), (stream,), (inputs[n],), stream))
        result.append(replace(stage, inputs=tuple(inputs)))
    return result


def with_depths(stages: Sequence[Stage], depths: dict[str, int]) -> list[Stage]:
    """The stages with other depths; a FIFO of depth 0 is left out."""
    result, renamed = [], dict[str, str]()
    for stage in stages:
        inputs = tuple(renamed.get(name, name) for name in stage.inputs)
        unit, depth = stage.unit, depths.get(stage.name)
        if isinstance(unit, FifoStage) and depth == 0:
            renamed[stage.outputs[0]] = inputs[0]
        elif isinstance(unit, ConvStage | PoolStage | FifoStage) and depth is not None:
            result.append(replace(stage, unit=replace(unit, depth=depth), inputs=inputs))
        else:
            result.append(replace(stage, inputs=inputs))
    return result


def _bits(stages: Sequence[Stage], depths: dict[str, int]) -> int:
    """Size of all buffers together."""
    return sum(depths.get(stage.name, 0) * stage.source.bits for stage in stages)


def _open(stages: Sequence[Stage], goal: int) -> tuple[int, int, dict[str, int]]:
    """(latency, interval, what is held for the first frame) with endless buffers.

    An interval that is the goal for some frames is taken to stay so: without limits nothing ever repeats.
    """
    network = Network(stages, unlimited=True)
    network.feed(1)
    held = network.flow().occupancy
    network.feed(OPEN_FRAMES - 1)
    if network.blocked() or (network.result()[1] > goal and not network.run()):
        raise ValueError("; ".join(map(str, network.blocked())))
    return *network.result(), held


def _occupancy(stages: Sequence[Stage], interval: int, least: dict[str, int]) -> dict[str, int]:
    """What endless buffers hold when a frame comes every `interval` cycles."""
    network = Network(stages, unlimited=True)
    network.feed(3, interval)
    while not network.period() and network.frames < OPEN_FRAMES:
        network.feed(1, interval)
    held = network.flow().occupancy
    return {name: max(depth, held[name]) for name, depth in least.items()}


def _grow(search: _Search, depths: dict[str, int], goal: int) -> tuple[dict[str, int], tuple[int, int]]:
    """Doubles depths until the interval is the goal, if need be GROWTH times; the latency is as it comes."""
    best = search.measured(depths)
    chosen = depths
    for _ in range(GROWTH):
        if best and best[1] <= goal:
            break
        depths = {name: 2 * depth for name, depth in depths.items()}
        found = search.measured(depths)
        if found and (best is None or found[1] < best[1]):
            best, chosen = found, depths
    if best is None:
        raise ValueError("the network blocks with buffers of any depth")
    return chosen, best


def _first_frame(
    search: _Search, depths: dict[str, int], limit: tuple[int, int], held: dict[str, int]
) -> tuple[dict[str, int], tuple[int, int]]:
    """Adds what the first frame needs in order not to wait, or, where that is too much, a share of the depth."""
    all_of_it = {name: max(depth, held[name]) for name, depth in depths.items()}
    some = {name: min(all_of_it[name], int(depth * (1 + FIRST_FRAME_SHARE)) + 1) for name, depth in depths.items()}
    affordable = _bits(search.stages, all_of_it) <= (1 + FIRST_FRAME_SHARE) * _bits(search.stages, depths)
    more = all_of_it if affordable else some
    found = search.as_fast(more, (limit[0] - 1, limit[1]))
    return (more, found) if found else (depths, limit)


def _narrow_windows(
    search: _Search, depths: dict[str, int], least: dict[str, int], limit: tuple[int, int], effort: int
) -> tuple[dict[str, int], tuple[int, int]]:
    """Takes off what the memories of windows have beyond the least: from all, or from the largest by quarters."""
    bits = {s.name: s.source.bits for s in search.stages if isinstance(s.unit, ConvStage | PoolStage)}
    fewer = {**depths, **{name: least[name] for name in bits}}
    found = search.as_fast(fewer, limit)
    if found:
        return fewer, found
    for name in sorted(bits, key=lambda n: -bits[n] * (depths[n] - least[n])):
        excess = depths[name] - least[name]
        for kept in range(min(4, excess) - 1, -1, -1):
            fewer = {**depths, name: least[name] + kept * excess // 4}
            found = search.as_fast(fewer, limit) if 2 * search.work < effort else None
            if not found:
                break
            depths, limit = fewer, found
    return depths, limit


def _drop_fifos(
    search: _Search, depths: dict[str, int], limit: tuple[int, int], effort: int
) -> tuple[dict[str, int], tuple[int, int]]:
    """Leaves out the FIFOs that do nothing of those that need not hold much: all at once, or half of them, ..."""
    depths = search.trimmed(depths)
    groups = [[s.name for s in search.stages if isinstance(s.unit, FifoStage) and depths[s.name] <= LEAST_FIFO]]
    while groups and search.work < effort:
        group = groups.pop()
        fewer = {**depths, **dict.fromkeys(group, 0)}
        found = search.as_fast(fewer, limit)
        if found:
            depths, limit = fewer, found
        elif len(group) > 1:
            half = len(group) // 2
            groups += [group[:half], group[half:]]
    return depths, limit


def _narrow_fifos(
    search: _Search, depths: dict[str, int], limit: tuple[int, int], effort: int
) -> tuple[dict[str, int], tuple[int, int], tuple[str, ...]]:
    """The smallest depth of each FIFO, the one with the most bits first, that costs no cycle, and which of them
    cannot be smaller by one. Whenever one becomes smaller, all others are looked at again."""
    bits = {s.name: s.result.bits for s in search.stages if isinstance(s.unit, FifoStage)}
    names = sorted(bits, key=lambda n: -bits[n] * depths[n])
    waiting, critical = deque(names), set[str]()
    while waiting and search.work < effort:
        name = waiting.popleft()
        fewer, found = _narrowed(search, depths, limit, name, effort)
        if fewer != depths:
            depths, limit, critical = fewer, found, set()
            waiting = deque(n for n in names if depths[n] and n != name)
        if depths[name] and search.work < effort:
            critical.add(name)
    return depths, limit, tuple(name for name in bits if name in critical)


def _narrowed(
    search: _Search, depths: dict[str, int], limit: tuple[int, int], name: str, effort: int
) -> tuple[dict[str, int], tuple[int, int]]:
    """With the least depth of one FIFO, if the effort is enough."""
    low, depth = -1, depths[name] - 1  # low is too small, or not looked at
    while low < depth and search.work < effort:
        fewer = {**depths, name: depth}
        found = search.as_fast(fewer, limit)
        if found:
            depths, limit = search.trimmed(fewer), found
        else:
            low = depth
        # What comes in is mostly right; and where it is not, what is too small is known soon.
        depth = (low + depths[name]) // 2
    if low == 1 and depths[name] == LEAST_FIFO and search.work < effort:
        found = search.as_fast({**depths, name: 0}, limit)
        return ({**depths, name: 0}, found) if found else (depths, limit)
    return depths, limit
