"""Parallelism of each layer, and when every beat moves.

A `Schedule` is the pipeline of hardware units that carries a frame: what each does, how wide its
beats are and how long it takes. Times are in clock cycles. The forward recurrences in `beat_times`
are exact because no unit loses a cycle when it is released from back-pressure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import assert_never

from hlsgen.errors import Collector, fail
from hlsgen.fixed import Array, IntType
from hlsgen.ir import FloatBits, Graph, Linear, Map, Relabel, Winner
from hlsgen.layout import groups, stream_orders
from hlsgen.rescale import FloatUnits, Realization, Shift, Thresholds, realize, specialize
from hlsgen.rescale.floats import Arithmetic, Compare, RoundToFloat, ToCode, ToFloat, Unit

#: Multiplications a cycle that the default folding aims at.
DEFAULT_PARALLELISM = 1024
#: Adder levels between pipeline registers (parameter EVERY of the library).
TREE_LEVELS = 2
#: Widest input beat of a layer, in bits, that the folding search likes.
WIDE_BEAT = 1024
FLOAT_WORD = IntType(0, 0xFFFFFFFF)
FLOAT_LATENCY = {"ADD": 7, "MUL": 6, "DIV": 19, "MAX": 2, "MIN": 2}


@dataclass(frozen=True)
class Stream:
    """`beats` a frame of `lanes` elements of a type."""

    type: IntType
    lanes: int
    beats: int

    @property
    def bits(self) -> int:
        return self.type.bits * self.lanes


@dataclass(frozen=True)
class Port:
    """hg_axis_in or hg_axis_out."""


@dataclass(frozen=True)
class KeyStage:
    """hg_float_key."""


@dataclass(frozen=True)
class WidthStage:
    """hg_width."""


@dataclass(frozen=True, eq=False)
class ThresholdStage:
    """hg_threshold; table (folds, lanes) holds the function set of each lane."""

    thresholds: Thresholds
    table: Array


@dataclass(frozen=True, eq=False)
class ShiftStage:
    """hg_shift."""

    shift: Shift
    table: Array


@dataclass(frozen=True, eq=False)
class FloatStage:
    """One hg_f32_* unit."""

    unit: Unit
    table: Array


@dataclass(frozen=True, eq=False)
class MatrixStage:
    """hg_mvu: `vectors` a frame, weight int64 with columns in stream order; mode as in hg_mvu."""

    weight: Array
    mode: int
    pe: int
    simd: int
    vectors: int

    @property
    def row_folds(self) -> int:
        return len(self.weight) // self.pe

    @property
    def col_folds(self) -> int:
        return int(self.weight.shape[1]) // self.simd

    @property
    def dot_latency(self) -> int:
        terms = -(-self.simd // (6 if self.mode == 2 else 4))
        return 1 + (terms - 1).bit_length() // TREE_LEVELS


@dataclass(frozen=True)
class WinnerStage:
    """hg_argmax."""

    beats: int


Unit_ = Port | KeyStage | WidthStage | ThresholdStage | ShiftStage | FloatStage | MatrixStage | WinnerStage


@dataclass(frozen=True, eq=False)
class Stage:
    """A unit between two streams. `layer`: name of the model node it works for, "" for plumbing.

    `position`: index of the graph's layer whose result this stage delivers, -1 if none.
    """

    name: str
    unit: Unit_
    source: Stream
    result: Stream
    layer: str = ""
    position: int = -1


@dataclass(frozen=True, eq=False)
class Schedule:
    """All stages, first to last, with input and output ports; `orders` as in layout.py."""

    graph: Graph
    stages: tuple[Stage, ...]
    orders: tuple[Array, ...]
    folding: dict[str, Any]
    latency: int
    interval: int
    realizations: dict[str, Realization] = field(default_factory=dict)


@dataclass(frozen=True)
class Targets:
    """What the user asks for. `folding` maps layer names to {"pe": ..., "simd": ...}."""

    cycles: int | None = None
    lanes: int | None = None
    folding: dict[str, dict[str, int]] = field(default_factory=dict)


# --------------------------------------------------------------------------- building


def plan(graph: Graph, targets: Targets, progress: Any = None) -> Schedule:
    """Chooses folding and realizations. Raises HG035, HG037, HG040, HG041."""
    orders = stream_orders(graph)
    folding = choose_folding(graph, targets)
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
        int(times[-1]), busy, planner.realizations,
    )  # fmt: skip


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
        self.realizations: dict[str, Realization] = {}
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
        if not 1 <= lanes <= 999:
            raise fail("HG040", "--lanes", f"{lanes} lanes.", "Supported: 1 to 999.")
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
        found = realize(f, table.size)
        self.realizations[layer.name] = found
        result = Stream(layer.result.type, self.stream.lanes, self.stream.beats)
        match found:
            case Shift():
                self._append(Stage(name, ShiftStage(found, table), self.stream, result, layer.name, i))
            case Thresholds():
                if f.is_float:
                    keys = Stream(layer.source.type, self.stream.lanes, self.stream.beats)
                    self._append(Stage(f"{name}_key", KeyStage(), self.stream, keys, layer.name))
                self._append(Stage(name, ThresholdStage(found, table), self.stream, result, layer.name, i))
            case FloatUnits():
                self._float_units(i, layer, name, found, table)
            case _:
                assert_never(found)

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
                    step: Unit_ = ThresholdStage(thresholds, table)
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


# --------------------------------------------------------------------------- timing


def latency(unit: Unit_) -> int:
    """Cycles from the beat that completes an output beat to that output beat."""
    match unit:
        case Port() | KeyStage() | WidthStage():
            return 1
        case ThresholdStage():
            return unit.thresholds.bits + 1
        case ShiftStage():
            return 3
        case FloatStage():
            match unit.unit:
                case Arithmetic(op):
                    return FLOAT_LATENCY[op]
                case RoundToFloat():
                    return 2
                case ToFloat():
                    return 8
                case ToCode():
                    return 6
                case Compare():
                    raise AssertionError("a comparison is two stages")
                case _:
                    assert_never(unit.unit)
        case MatrixStage():
            return 2 + unit.dot_latency + 1
        case WinnerStage():
            return 2
        case _:
            assert_never(unit)


def beat_times(stages: list[Stage]) -> tuple[Array, int]:
    """(cycle in which each output beat of the first frame leaves, cycles between frames).

    The first input beat is taken in cycle 0, source and sink never wait.
    """
    times: Array = np.arange(stages[0].source.beats, dtype=np.int64)
    interval = stages[0].source.beats
    for stage in stages:
        times = _spaced(_ready(stage, times)) + (0 if isinstance(stage.unit, MatrixStage) else latency(stage.unit))
        interval = max(interval, len(times), busy(stage))
    return times, interval


def busy(stage: Stage) -> int:
    """Cycles that a frame occupies the stage."""
    unit = stage.unit
    if isinstance(unit, MatrixStage):
        return unit.vectors * unit.row_folds * unit.col_folds
    return max(stage.source.beats, stage.result.beats)


def _spaced(times: Array) -> Array:
    """At most one beat a cycle, in order."""
    steps = np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps


def _ready(stage: Stage, times: Array) -> Array:
    """When the input of each output beat is complete."""
    unit = stage.unit
    if isinstance(unit, WidthStage):
        needed = -(-np.arange(1, stage.result.beats + 1) * stage.result.lanes // stage.source.lanes) - 1
        return times[needed]
    if isinstance(unit, WinnerStage):
        return times[unit.beats - 1 :: unit.beats]
    if isinstance(unit, MatrixStage):
        # Reads of the vector buffer: the first pass waits for the beats, later ones do not.
        first = times.reshape(unit.vectors, 1, unit.col_folds) + 1
        reads = np.broadcast_to(first, (unit.vectors, unit.row_folds, unit.col_folds)).ravel()
        reads = _spaced(reads).reshape(-1, unit.col_folds)[:, -1]
        return reads + latency(unit) - 1
    return times
