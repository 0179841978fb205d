"""Streams between the units of a network, and what is asked of a simulation, beat by beat or in runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from hlsgen.cycle_model.units import traits
from hlsgen.dataflow.ends import consumed_stream, divided, enters
from hlsgen.dataflow.units import INPUT as INPUT
from hlsgen.dataflow.units import Node, Port, Stream
from hlsgen.numerics.fixed import Array

#: The stream that the output port sends.
OUTPUT = "output"
#: Beats of a pixel from which on units look for repeats of it.
PIXEL = 32


@dataclass(frozen=True)
class Blocked:
    """A node that waits for ever: for a beat on a stream or, if `full`, for the consumer to take one from it."""

    node: str
    stream: str
    full: bool

    def __str__(self) -> str:
        return f"{self.node} waits for {'room in' if self.full else 'a beat on'} {self.stream}"


class Ended(Exception):
    """A simulation was ended: its first frame is later than it may be, or it takes more work than it may."""


@dataclass(frozen=True)
class Bounds:
    """What ends a simulation in runs. `latest`: the last cycle for the end of the first frame. `work`: see `Moves`.

    `only_runs`: it ends as well where it would have to go on beat by beat. `strict`: going on beat by beat is bounded, too.
    """

    latest: int
    work: int
    only_runs: bool = False
    strict: bool = False


@lru_cache(maxsize=1024)
def stride(beats: int, groups: int) -> int:
    """Beats after which units may look for repeats: those of a pixel or, if it has few, of about a row of an image.

    A stream of one group says nothing of pixels; it is looked at as if each beat was one.
    """
    pixel = beats // groups
    if groups > 1 and pixel >= PIXEL:
        return pixel
    parts = groups if groups > 1 else beats
    rows = math.isqrt(parts) or 1
    while parts % rows:
        rows -= 1
    return beats // rows if rows > 1 else beats // max(1, math.isqrt(beats))


def offers(stream: Stream, pace: int | None, rows: bool) -> list[tuple[int, int, int]]:
    """When an input port offers a frame, as (first, step, count) each: evenly, one every `pace` cycles, or at once.

    `rows`: as evenly as rows of the image can begin at one pace, and the beats of a row come at one pace.
    """
    beats = stream.beats
    if pace is None:
        return [(0, 0, beats)]
    if pace % beats == 0:
        return [(0, pace // beats, beats)]
    if not rows:
        return [(k * pace // beats, 0, 1) for k in range(beats)]
    row = stride(beats, stream.groups)
    count = beats // row if beats % row == 0 else 1
    every, row = pace // count, beats // count
    return [(n * every, every // row, row) for n in range(count)]


class AnyWire(Protocol):
    """What the wires of both kinds of simulation have."""

    producer: int
    consumer: int


W = TypeVar("W", bound=AnyWire)


def _stands_still(node: Node) -> bool:
    """Whether the node stands still while the beat that it offers waits. Of the ports it is the one that cuts no ready."""
    return enters(node) != node.unit.early if isinstance(node.unit, Port) else traits(node.unit).enable


class Wiring(Generic[W]):
    """The wires of a network, by name, and those of each unit: of all nodes, then of the sources and of the sinks.

    `inputs`, `sinks`: the wires behind the sources and in front of the sinks, each with its beats a frame.
    `enters`: the streams behind the sources.
    """

    def __init__(self, nodes: Sequence[Node], make: Callable[[str, bool], W]) -> None:
        first, _, last = divided(nodes)
        self.wires = {consumed_stream(node): make(consumed_stream(node), False) for node in first}
        for node in nodes:
            for name in node.outputs or (OUTPUT,):
                self.wires[name] = make(name, _stands_still(node))
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


class Moves(Protocol):
    """A simulation of the nodes of a network."""

    def feed(self, frames: int, pace: int | None, rows: bool = False) -> bool:
        """Offers more frames, one every `pace` cycles or, for None, always. False: it cannot say what happens.

        `rows`: see `offers`.
        """

    def ends(self) -> tuple[int, ...]:
        """Cycle of the last output beat of each frame that is through, at all output ports."""

    def blocked(self) -> tuple[Blocked, ...]:
        """The nodes of a deadlock, each waiting for the next one, if not all frames are through."""

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        """Whether, of so many frames, the `last` ones moved on all streams exactly `cycles` cycles after those that
        lie `period` frames back."""

    def moved(self) -> int:
        """How many beats moved, on all streams together."""

    def work(self) -> int:
        """How much was computed so far: as much as so many beats, one by one."""

    def names(self) -> tuple[str, ...]:
        """Of all streams."""

    def taken(self, name: str, stop: int | None = None) -> Array:
        """The cycles in which the beats of a stream were taken, or the first `stop` of them, int64."""

    def offered(self, name: str) -> Array:
        """The cycles in which the beats of a stream were offered, int64, as far as they are known."""

    def spans(self) -> dict[str, int]:
        """The most words that each memory of windows ever spans, from the oldest that stays to the newest."""
