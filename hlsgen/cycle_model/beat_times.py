"""Reads results from the times of all beats: the common part of the two engines that move beat by beat."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from hlsgen.cycle_model.line_buffers import span
from hlsgen.cycle_model.wiring import AnyWire, Blocked, Wiring
from hlsgen.dataflow.units import Fifo, Node, WidthConverter
from hlsgen.numerics.fixed import Array


class TimedWire(AnyWire, Protocol):
    """A stream with the times of its beats, as `processes.Wire` describes them."""

    name: str
    frozen: bool

    @property
    def due(self) -> Sequence[int] | Array: ...

    @property
    def consumed(self) -> Sequence[int] | Array: ...


W = TypeVar("W", bound=TimedWire)


class Windows(NamedTuple):
    """The windows of a unit with a memory: `starts` so far, and `keeps`, `words`, `period` of a `Buffer`."""

    starts: Sequence[int] | Array
    keeps: Sequence[int] | Array
    words: int
    period: int


class BeatTimes(ABC, Generic[W]):
    """The wires of a network and the times of their beats, after `frames` offered frames."""

    def __init__(self, nodes: Sequence[Node], wiring: Wiring[W]) -> None:
        self.nodes, self.wiring, self.frames = nodes, wiring, 0

    def ends(self) -> tuple[int, ...]:
        ends_by_port = (wire.consumed[beats - 1 :: beats] for wire, beats in self.wiring.sinks)
        return tuple(int(max(ends)) for ends in zip(*ends_by_port, strict=False))

    def blocked(self) -> tuple[Blocked, ...]:
        path: dict[int, Blocked] = {}
        incomplete = (wire for wire, beats in self.wiring.sinks if len(wire.consumed) < self.frames * beats)
        unit = next(incomplete, self.wiring.sinks[0][0]).producer
        while unit not in path and unit < len(self.nodes):
            name = self.nodes[unit].name
            starving = [wire for wire in self.wiring.ins[unit] if len(wire.due) == len(wire.consumed)]
            full = [wire for wire in self.wiring.outs[unit] if len(wire.due) > len(wire.consumed)]
            if starving and not (full and isinstance(self.nodes[unit].unit, Fifo | WidthConverter)):
                path[unit], unit = Blocked(name, starving[0].name, False), starving[0].producer
            elif full:
                path[unit], unit = Blocked(name, full[0].name, True), full[0].consumer
            else:
                path[unit] = Blocked(name, self.wiring.ins[unit][0].name, False)
        units = list(path)
        return tuple(path[unit] for unit in units[units.index(unit) if unit in path else 0 :])

    def moved(self) -> int:
        return sum(len(wire.consumed) for wire in self.wiring.wires.values())

    def work(self) -> int:
        return self.moved()

    def names(self) -> tuple[str, ...]:
        return tuple(self.wiring.wires)

    def consumed(self, name: str, stop: int | None = None) -> Array:
        return np.array(self.wiring.wires[name].consumed[:stop], np.int64)

    def offered(self, name: str) -> Array:
        """The cycle in which each beat is offered, int64, for all beats for which it is known."""
        wire, consumed = self.wiring.wires[name], self.consumed(name)
        due: Array = np.array(wire.due[: len(consumed) + 1], np.int64)
        previous = consumed[: len(due) - 1]
        due[1:] = due[1:] + previous - due[:-1] if wire.frozen else np.maximum(due[1:], previous + 1)
        return due

    @abstractmethod
    def windows(self, unit: int) -> Windows | None:
        """The windows of a unit whose memory is sized, else None."""

    def spans(self) -> dict[str, int]:
        spans = {}
        for unit, node in enumerate(self.nodes):
            windows = self.windows(unit)
            if windows is not None:
                out = self.wiring.outs[unit][0]
                departures: Array = np.array(out.consumed, np.int64)
                due: Array = np.array(out.due[: len(departures)], np.int64)
                ends = np.array(windows.starts, np.int64) + windows.period - 1
                consumed, keeps = self.consumed(self.wiring.ins[unit][0].name), np.array(windows.keeps, np.int64)
                spans[node.name] = span(consumed, ends, keeps, windows.words, due, departures)
        return spans
