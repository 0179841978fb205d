"""Streams between the units of a network, and the interface of its simulation engines, beat by beat or in runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from hlsgen.dataflow.ends import consumed_stream, divided
from hlsgen.dataflow.flow import flow_of, has_enable
from hlsgen.dataflow.units import INPUT as INPUT
from hlsgen.dataflow.units import Node, Stream
from hlsgen.numerics.fixed import Array

#: The stream that the output port emits.
OUTPUT = "output"
#: Beats of a pixel from which on units look for repeated pixels, not rows.
PIXEL = 32


@dataclass(frozen=True)
class Blocked:
    """A node that waits forever: for a beat on a stream or, if `full`, for the consumer of a stream."""

    node: str
    stream: str
    full: bool

    def __str__(self) -> str:
        return f"{self.node} waits for {'room in' if self.full else 'a beat on'} {self.stream}"


class BudgetExceeded(Exception):
    """A simulation was stopped: its first frame is later than allowed, or it takes more work than allowed."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a simulation in runs. `latest`: the last cycle for the end of the first frame. `work`: see
    `Engine`.

    `only_runs`: it also stops if it would have to continue beat by beat. `strict`: the beat-by-beat part is bounded
    too.
    """

    latest: int
    work: int
    only_runs: bool = False
    strict: bool = False


@lru_cache(maxsize=1024)
def stride(beats: int, groups: int) -> int:
    """Beats after which units may look for repeats: a pixel or, if it has few beats, about a row of an image.

    A stream of one group says nothing about pixels; each of its beats is treated as a pixel.
    """
    pixel = beats // groups
    if groups > 1 and pixel >= PIXEL:
        return pixel
    parts = groups if groups > 1 else beats
    rows = math.isqrt(parts) or 1
    while parts % rows:
        rows -= 1
    return beats // rows if rows > 1 else beats // max(1, math.isqrt(beats))


def offers(stream: Stream, interval: int | None, rows: bool) -> list[tuple[int, int, int]]:
    """The times at which an input port offers a frame, as (first, step, count): evenly within `interval`, or at once.

    `rows`: rows of the image begin as evenly as a constant step allows, and the beats of a row have a constant step
    too.
    """
    beats = stream.beats
    if interval is None:
        return [(0, 0, beats)]
    if interval % beats == 0:
        return [(0, interval // beats, beats)]
    if not rows:
        return [(k * interval // beats, 0, 1) for k in range(beats)]
    row = stride(beats, stream.groups)
    count = beats // row if beats % row == 0 else 1
    row_interval, row = interval // count, beats // count
    return [(n * row_interval, row_interval // row, row) for n in range(count)]


class AnyWire(Protocol):
    """The common attributes of the wires of both engines."""

    producer: int
    consumer: int


W = TypeVar("W", bound=AnyWire)


class Wiring(Generic[W]):
    """The wires of a network by name, and the wires of each unit: of all nodes, then of the sources, then of the sinks.

    `inputs`, `sinks`: the wires after the sources and before the sinks, each with its beats a frame. `enters`: the
    streams after the sources.
    """

    def __init__(self, nodes: Sequence[Node], make: Callable[[str, bool], W]) -> None:
        first, _, last = divided(nodes)
        self.wires = {consumed_stream(node): make(consumed_stream(node), False) for node in first}
        for node in nodes:
            for name in node.outputs or (OUTPUT,):
                self.wires[name] = make(name, has_enable(flow_of(node)))
        self.inputs = [(self.wires[consumed_stream(node)], node.source.beats) for node in first]
        self.enters = [node.source for node in first]
        self.sinks = [(self.wires[(node.outputs or (OUTPUT,))[0]], node.result.beats) for node in last]
        sources: list[list[W]] = [[] for _ in first]
        self.ins = [[self.wires[name] for name in node.inputs or (INPUT,)] for node in nodes]
        self.ins += [*sources, *([wire] for wire, _ in self.sinks)]
        self.outs = [[self.wires[name] for name in node.outputs or (OUTPUT,)] for node in nodes]
        self.outs += [*([wire] for wire, _ in self.inputs), *([] for _ in last)]
        for unit, (ins, outs) in enumerate(zip(self.ins, self.outs, strict=True)):
            for wire in ins:
                wire.consumer = unit
            for wire in outs:
                wire.producer = unit


class Engine(Protocol):
    """A simulation of the nodes of a network."""

    def feed(self, frames: int, interval: int | None, rows: bool = False) -> bool:
        """Offers more frames, one every `interval` cycles or, for None, always. Returns False if it finds no result.

        `rows`: see `offers`.
        """

    def ends(self) -> tuple[int, ...]:
        """Cycle of the last output beat of each complete frame, at all output ports."""

    def blocked(self) -> tuple[Blocked, ...]:
        """The nodes of a deadlock, each waiting for the next one, if a frame is incomplete."""

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        """True if the last of `frames` frames repeat earlier ones.

        On all streams, the `last` frames moved exactly `cycles` cycles after the frames `period` frames earlier.
        """

    def moved(self) -> int:
        """Number of beats that moved, on all streams together."""

    def work(self) -> int:
        """Work so far, in beats of the beat-by-beat simulation."""

    def names(self) -> tuple[str, ...]:
        """Names of all streams."""

    def consumed(self, name: str, stop: int | None = None) -> Array:
        """The cycles in which the beats of a stream were consumed, or the first `stop` of them, int64."""

    def offered(self, name: str) -> Array:
        """The cycles in which the beats of a stream were offered, int64, as far as they are known."""

    def spans(self) -> dict[str, int]:
        """The most words that each window memory ever spans, from the oldest kept word to the newest."""
