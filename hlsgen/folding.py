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

    def cycles(self, pe: int, simd: int) -> int:
        """Of a frame: sums, and words that come in (of a window with strides more than are used)."""
        sums = self.places * self.groups * -(-self.rows // pe) * self.taps * -(-self.columns // simd)
        depthwise = isinstance(self.layer, Convolution) and is_depthwise(self.layer)
        return max(sums, self.arrivals * (-(-self.rows // pe) if depthwise else -(-self.columns // simd)))


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
        for what, value, size in (("pe", pe, work.rows), ("simd", simd, work.columns)):
            if not isinstance(value, int) or not 1 <= value <= size:
                problems.error("HG041", name, f"{what} = {value}.", f"Possible: 1 to {size}.")
        result[name] = (pe, simd)
    problems.finish()
    return result


def default_target(graph: Graph) -> int:
    """Cycles a frame at the default number of multiplications a cycle."""
    macs = sum(work_of(x).macs for x in graph.layers if isinstance(x, Linear | Convolution))
    return max(1, -(-macs // DEFAULT_PARALLELISM))


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def search(work: Work, target: int) -> tuple[int, int]:
    """Cheapest divisors that do a frame in `target` cycles; the fastest if none does."""
    layer = work.layer
    x_bits, acc_bits = layer.source.type.bits, layer.result.type.bits
    bipolar = bool((np.abs(layer.weight) == 1).all())
    w_bits = 1 if layer.binary or bipolar else IntType(int(layer.weight.min()), int(layer.weight.max())).bits
    best: tuple[float, ...] | None = None
    choice = (work.rows, work.columns)
    for pe in divisors(work.rows):
        for simd in divisors(work.columns):
            if work.cycles(pe, simd) > target:
                continue
            multiplier = 0.5 if layer.binary else x_bits * w_bits * 0.6 + x_bits + w_bits
            cost = pe * simd * multiplier + pe * acc_bits * 3 + max(0, simd * x_bits - WIDE_BEAT) * 2
            key = (cost, simd)
            if best is None or key < best:
                best, choice = key, (pe, simd)
    return choice
