"""Parallelism of each layer: a graph becomes a pipeline of hardware units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import assert_never

from hlsgen.errors import Collector, fail
from hlsgen.fixed import Array, IntType
from hlsgen.ir import FloatBits, Graph, Linear, Map, Relabel, Winner
from hlsgen.layout import groups, stream_orders
from hlsgen.rescale import KINDS, Choice, FloatUnits, Indexed, Wish, realize, specialize
from hlsgen.rescale.floats import Compare, ToCode
from hlsgen.stages import (
    FLOAT_WORD,
    FloatStage,
    KeyStage,
    MatrixStage,
    Port,
    RescaleStage,
    Stage,
    Stream,
    WidthStage,
    WinnerStage,
    Work,
)
from hlsgen.timing import beat_times

#: Multiplications a cycle that the default folding aims at.
DEFAULT_PARALLELISM = 1024
#: Lanes that the names of threshold files can tell apart.
MAX_LANES = 9999
#: Widest input beat of a layer, in bits, that the folding search likes.
WIDE_BEAT = 1024


@dataclass(frozen=True, eq=False)
class Schedule:
    """All stages, first to last, with input and output ports; `orders` as in layout.py."""

    graph: Graph
    stages: tuple[Stage, ...]
    orders: tuple[Array, ...]
    folding: dict[str, Any]
    latency: int
    interval: int
    choices: dict[str, Choice] = field(default_factory=dict)


@dataclass(frozen=True)
class Targets:
    """What the user asks for. `folding` maps layer names to {"pe": ..., "simd": ...}, `realize`
    quantizers to a realization."""

    cycles: int | None = None
    lanes: int | None = None
    folding: dict[str, dict[str, int]] = field(default_factory=dict)
    prefer: str = "lut"
    realize: dict[str, str] = field(default_factory=dict)

    def wish(self, layer: str) -> Wish:
        """How the quantizer of that name is to be realized; the name "" stands for all."""
        return Wish(self.prefer, self.realize.get(layer, self.realize.get("")))


# --------------------------------------------------------------------------- building


def plan(graph: Graph, targets: Targets, progress: Callable[[int, int, str], None] | None = None) -> Schedule:
    """Chooses folding and realizations. Raises HG035, HG037, HG040, HG041."""
    orders = stream_orders(graph)
    folding = choose_folding(graph, targets)
    _check_wishes(graph, targets)
    planner = _Planner(graph, orders, folding, targets)
    for i, layer in enumerate(graph.layers):
        if progress:
            progress(i, len(graph.layers), layer.name)
        planner.add(i)
    stages = planner.finish()
    times, busy = beat_times(stages)
    written = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in folding.items()}
    return Schedule(
        graph, tuple(stages), tuple(orders), {"layers": written, "lanes": stages[0].result.lanes},
        int(times[-1]), busy, planner.choices,
    )  # fmt: skip


def _check_wishes(graph: Graph, targets: Targets) -> None:
    names = [layer.name for layer in graph.layers if isinstance(layer, Map)]
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


def choose_folding(graph: Graph, targets: Targets) -> dict[str, tuple[int, int]]:
    """(PE, SIMD) of each linear layer: the cheapest that meets the target, or what the user says."""
    layers = {layer.name: layer for layer in graph.layers if isinstance(layer, Linear)}
    problems = Collector()
    for name in targets.folding:
        if name not in layers:
            problems.error("HG041", name, "no such linear layer.", "Layers: " + (", ".join(layers) or "none") + ".")
    if layers and targets.lanes is not None:
        problems.error("HG040", "--lanes", "applies to graphs without linear layers.", "Use --folding here.")
    macs = sum(layer.weight.size * _vectors(layer) for layer in layers.values())
    target = targets.cycles or max(1, -(-macs // DEFAULT_PARALLELISM))
    result = {}
    for name, layer in layers.items():
        rows, columns = layer.weight.shape
        given = targets.folding.get(name)
        if given is None:
            result[name] = _search(layer, target)
            continue
        pe, simd = given.get("pe", 0), given.get("simd", 0)
        for what, value, size in (("pe", pe, rows), ("simd", simd, columns)):
            if not isinstance(value, int) or value < 1 or size % value:
                problems.error(
                    "HG041", name, f"{what} = {value} does not divide {size}.",
                    "Possible: " + ", ".join(map(str, _divisors(size))) + ".",
                )  # fmt: skip
        result[name] = (pe, simd)
    problems.finish()
    return result


def _vectors(layer: Linear) -> int:
    return int(np.prod(layer.source.shape[:-1]))


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _search(layer: Linear, target: int) -> tuple[int, int]:
    """Cheapest divisors that do a frame in `target` cycles; the fastest if none does."""
    rows, columns = layer.weight.shape
    x_bits, acc_bits = layer.source.type.bits, layer.result.type.bits
    w_bits = 1 if layer.binary else IntType(int(layer.weight.min()), int(layer.weight.max())).bits
    best: tuple[float, ...] | None = None
    choice = (rows, columns)
    for pe in _divisors(rows):
        for simd in _divisors(columns):
            cycles = _vectors(layer) * (rows // pe) * (columns // simd)
            if cycles > target:
                continue
            multiplier = 0.5 if layer.binary else x_bits * w_bits * 0.6 + x_bits + w_bits
            cost = pe * simd * multiplier + pe * acc_bits * 3 + max(0, simd * x_bits - WIDE_BEAT) * 2
            key = (cost, simd)
            if best is None or key < best:
                best, choice = key, (pe, simd)
    return choice


class _Planner:
    """Appends stages; `stream` is what leaves the last one."""

    def __init__(
        self, graph: Graph, orders: list[Array], folding: dict[str, tuple[int, int]], targets: Targets
    ) -> None:
        self.graph, self.orders, self.folding = graph, orders, folding
        self.stages: list[Stage] = []
        self.choices: dict[str, Choice] = {}
        self.targets = targets
        self.elements = len(orders[0])
        lanes = self._input_lanes(targets)
        source = Stream(graph.input.type, lanes, -(-self.elements // lanes))
        if isinstance(graph.input.decode, FloatBits):
            source = Stream(FLOAT_WORD, source.lanes, source.beats)
        self.stream = source
        self._append(Stage("s_axis", Port(), source, source))

    def _input_lanes(self, targets: Targets) -> int:
        for layer in self.graph.layers:
            if isinstance(layer, Linear):
                return self.folding[layer.name][1]
        lanes = targets.lanes or (-(-self.elements // targets.cycles) if targets.cycles else 1)
        if not 1 <= lanes <= MAX_LANES:
            raise fail("HG040", "--lanes", f"{lanes} lanes.", "Supported: 1 to 9999.")
        winner = next((x for x in self.graph.layers if isinstance(x, Winner)), None)
        if winner:
            return max(d for d in _divisors(winner.source.shape[-1]) if d <= lanes)
        return min(lanes, self.elements)

    def _append(self, stage: Stage) -> None:
        self.stages.append(stage)
        self.stream = stage.result

    def add(self, i: int) -> None:
        layer = self.graph.layers[i]
        number = sum(not isinstance(before, Relabel) for before in self.graph.layers[:i])
        match layer:
            case Map():
                self._map(i, layer, f"q{number}")
            case Linear():
                self._linear(i, layer, f"mv{number}")
            case Winner():
                stream = self.stream
                count = layer.source.shape[-1] // stream.lanes
                result = Stream(layer.result.type, 1, stream.beats // count)
                self._append(Stage(f"top{number}", WinnerStage(count), stream, result, layer.name, i))
            case Relabel():
                pass
            case _:
                assert_never(layer)

    def _map(self, i: int, layer: Map, name: str) -> None:
        before = self.graph.layers[i - 1] if i else None
        lo, hi = (before.lo, before.hi) if isinstance(before, Linear) else (None, None)
        f = specialize(layer, self.orders[i], lo, hi)
        table = fold_table(f.index, self.stream.lanes, self.stream.beats)
        choice = realize(f, table, self.targets.wish(layer.name))
        self.choices[layer.name] = choice
        found = choice.realization
        if isinstance(found, FloatUnits):
            self._float_units(i, layer, name, found, table)
            return
        if f.is_float:
            keys = Stream(layer.source.type, self.stream.lanes, self.stream.beats)
            self._append(Stage(f"{name}_key", KeyStage(), self.stream, keys, layer.name))
        result = Stream(layer.result.type, self.stream.lanes, self.stream.beats)
        if isinstance(found, Indexed):
            index = Stream(found.index, self.stream.lanes, self.stream.beats)
            self._append(Stage(f"{name}_search", RescaleStage(found.search, table), self.stream, index, layer.name))
            found = found.codes
        self._append(Stage(name, RescaleStage(found, table), self.stream, result, layer.name, i))

    def _float_units(self, i: int, layer: Map, name: str, found: FloatUnits, table: Array) -> None:
        lanes, beats = self.stream.lanes, self.stream.beats
        for n, unit in enumerate(found.units):
            last = n == len(found.units) - 1
            word = Stream(FLOAT_WORD, lanes, beats)
            to, position = (Stream(layer.result.type, lanes, beats), i) if last else (word, -1)
            match unit:
                case Compare(thresholds):
                    self._append(Stage(f"{name}_{n}_key", KeyStage(), self.stream, word, layer.name))
                    count = IntType(thresholds.base, thresholds.base + len(thresholds.table))
                    to = to if last else Stream(count, lanes, beats)
                    step: Work = RescaleStage(thresholds, table)
                case ToCode(output=output):
                    to = to if last else Stream(output, lanes, beats)
                    step = FloatStage(unit, table)
                case _:
                    step = FloatStage(unit, table)
            self._append(Stage(f"{name}_{n}", step, self.stream, to, layer.name, position))

    def _linear(self, i: int, layer: Linear, name: str) -> None:
        pe, simd = self.folding[layer.name]
        if self.stream.lanes != simd:
            elements = self.stream.lanes * self.stream.beats
            to = Stream(self.stream.type, simd, elements // simd)
            self._append(Stage(f"{name}_width", WidthStage(), self.stream, to))
        _, columns = groups(layer.name, self.orders[i], layer.source.shape)
        weight = layer.weight[:, columns]
        bipolar = bool((np.abs(weight) == 1).all())
        mode = 2 if layer.binary else 1 if bipolar else 0
        unit = MatrixStage(weight, mode, pe, simd, _vectors(layer))
        result = Stream(layer.result.type, pe, unit.vectors * unit.row_folds)
        self._append(Stage(name, unit, self.stream, result, layer.name, i))

    def finish(self) -> list[Stage]:
        self._append(Stage("m_axis", Port(), self.stream, self.stream))
        return self.stages


def fold_table(index: Array, lanes: int, beats: int) -> Array:
    """(folds, lanes): the set that each lane of beat b uses is row b mod folds.

    Lanes behind the last element of a frame take set 0.
    """
    table: Array = np.zeros(beats * lanes, np.int64)
    table[: len(index)] = index
    table = table.reshape(beats, lanes)
    for folds in _divisors(beats):
        if (table.reshape(-1, folds, lanes) == table[:folds]).all():
            return table[:folds]
    return table
