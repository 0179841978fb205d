"""Parallelism of the layers that multiply: PE rows by SIMD columns a cycle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hlsgen.budget import Budget
from hlsgen.errors import Collector
from hlsgen.fixed import IntType
from hlsgen.ir import Convolution, Graph, Linear
from hlsgen.rescale import Wish

#: Multiplications a cycle that the default folding aims at.
DEFAULT_PARALLELISM = 1024
#: Widest input beat of a layer, in bits, that the folding search likes.
WIDE_BEAT = 1024

Folding = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Targets:
    """What the user asks for. `folding` maps layer names to {"pe": ..., "simd": ...}, `realize`
    quantizers to a realization."""

    cycles: int | None = None
    lanes: int | None = None
    folding: dict[str, dict[str, int]] = field(default_factory=dict)
    prefer: str = "lut"
    realize: dict[str, str] = field(default_factory=dict)
    weights: str = "auto"
    budget: Budget = field(default_factory=Budget)

    def wish(self, layer: str) -> Wish:
        """How the quantizer of that name is to be realized; the name "" stands for all."""
        return Wish(self.prefer, self.realize.get(layer, self.realize.get("")))


@dataclass(frozen=True)
class Work:
    """A layer that multiplies: `places` windows or vectors a frame, `groups` independent groups of `rows` sums
    over `taps` x `columns` elements; PE divides the work on rows, SIMD that on columns.

    Depthwise: the channels are the rows, there is one column. `arrivals`: vectors of `columns` elements
    that come in.
    """

    layer: Linear | Convolution
    places: int
    groups: int
    rows: int
    taps: int
    columns: int
    arrivals: int

    @property
    def macs(self) -> int:
        return self.places * self.groups * self.rows * self.taps * self.columns

    @property
    def depthwise(self) -> bool:
        return isinstance(self.layer, Convolution) and is_depthwise(self.layer)

    @property
    def unrolls(self) -> bool:
        """Whether all taps of a window can be worked on at once: with an SIMD of taps * 1 ... taps * columns."""
        layer = self.layer
        if isinstance(layer, Linear) or self.taps == 1 or not (layer.groups == 1 or self.depthwise):
            return False
        return layer.window.dilations == (1, 1)

    def columns_at_once(self, simd: int) -> int:
        """Columns of a tap in a cycle. SIMD above the columns: all taps at once."""
        return simd // self.taps if simd > self.columns else simd

    def legal(self, simd: int) -> bool:
        return 1 <= simd <= self.columns or (
            self.unrolls and not simd % self.taps and 1 <= simd // self.taps <= self.columns
        )

    def cycles(self, pe: int, simd: int) -> int:
        """Of a frame: sums, and words that come in (of a window with strides more than are used)."""
        row_folds, folds = -(-self.rows // pe), -(-self.columns // self.columns_at_once(simd))
        sums = self.places * self.groups * row_folds * folds * (1 if simd > self.columns else self.taps)
        return max(sums, self.arrivals * (row_folds if self.depthwise else folds))


def is_depthwise(layer: Convolution) -> bool:
    """One input and one output channel a group."""
    return layer.groups > 1 and layer.weight.shape[3] == 1 and len(layer.weight) == layer.groups


def work_of(layer: Linear | Convolution) -> Work:
    if isinstance(layer, Linear):
        rows, columns = layer.weight.shape
        vectors = math.prod(layer.source.shape[:-1])
        return Work(layer, vectors, 1, rows, 1, columns, vectors)
    rows, height, width, columns = layer.weight.shape
    places, pixels = math.prod(layer.result.shape[:-1]), math.prod(layer.source.shape[:-1])
    if is_depthwise(layer):
        return Work(layer, places, 1, rows, height * width, 1, pixels)
    return Work(layer, places, layer.groups, rows // layer.groups, height * width, columns, pixels * layer.groups)


def works_of(graph: Graph) -> dict[str, Work]:
    """All layers that multiply, by name."""
    return {x.name: work_of(x) for x in graph.layers if isinstance(x, Linear | Convolution)}


def choose_folding(graph: Graph, targets: Targets) -> Folding:
    """(PE, SIMD) of each layer that multiplies: the cheapest that meets the target, or what the user says.

    Raises HG040, HG041.
    """
    layers = works_of(graph)
    problems = Collector()
    for name in targets.folding:
        if name not in layers:
            problems.error("HG041", name, "no such linear layer.", "Layers: " + (", ".join(layers) or "none") + ".")
    if layers and targets.lanes is not None:
        problems.error("HG040", "--lanes", "applies to graphs without linear layers.", "Use --folding here.")
    target = targets.cycles or default_target(graph)
    result: Folding = {}
    for name, work in layers.items():
        given = targets.folding.get(name)
        if given is None:
            result[name] = search(work, target)
            continue
        pe, simd = given.get("pe", 0), given.get("simd", 0)
        if not isinstance(pe, int) or not 1 <= pe <= work.rows:
            problems.error("HG041", name, f"pe = {pe}.", f"Possible: 1 to {work.rows}.")
        if not isinstance(simd, int) or not work.legal(simd):
            more = f", and {work.taps} times that, with all taps at once" if work.unrolls else ""
            problems.error("HG041", name, f"simd = {simd}.", f"Possible: 1 to {work.columns}{more}.")
        result[name] = (pe, simd)
    problems.finish()
    return result


def default_target(graph: Graph) -> int:
    """Cycles a frame at the default number of multiplications a cycle."""
    macs = sum(work_of(x).macs for x in graph.layers if isinstance(x, Linear | Convolution))
    return max(1, -(-macs // DEFAULT_PARALLELISM))


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def rotation(work: Work, pe: int, simd: int) -> float:
    """LUTs that hg_unfold takes to put the taps of a window in their places, 0 if they come one by one."""
    lanes = (pe if work.depthwise else 1) * simd if simd > work.columns else 0
    return 2.0 * lanes * work.layer.source.type.bits


def search(work: Work, target: int) -> tuple[int, int]:
    """Cheapest divisors that do a frame in `target` cycles; the fastest if none does."""
    layer = work.layer
    x_bits, acc_bits = layer.source.type.bits, layer.result.type.bits
    bipolar = bool((np.abs(layer.weight) == 1).all())
    w_bits = 1 if layer.binary or bipolar else IntType(int(layer.weight.min()), int(layer.weight.max())).bits
    best: tuple[float, ...] | None = None
    at_once = [work.taps * d for d in divisors(work.columns)] if work.unrolls else []
    choice = (work.rows, at_once[-1] if at_once else work.columns)
    for pe in divisors(work.rows):
        for simd in [*divisors(work.columns), *(d for d in at_once if d > work.columns)]:
            if work.cycles(pe, simd) > target:
                continue
            multiplier = 0.5 if layer.binary else x_bits * w_bits * 0.6 + x_bits + w_bits
            beat = work.columns_at_once(simd) * x_bits
            cost = pe * simd * multiplier + pe * acc_bits * 3 + max(0, beat - WIDE_BEAT) * 2
            cost += rotation(work, pe, simd)
            key = (cost, simd)
            if best is None or key < best:
                best, choice = key, (pe, simd)
    return choice
