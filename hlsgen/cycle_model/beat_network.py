"""Simulates a network beat by beat: units run in any order, each as far as the known times allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from hlsgen.cycle_model import processes
from hlsgen.cycle_model.line_buffers import Buffer, span
from hlsgen.cycle_model.processes import Wire
from hlsgen.cycle_model.timing_models import TimingModel
from hlsgen.cycle_model.wiring import Blocked, Wiring, offers
from hlsgen.dataflow.units import Fifo, Node, WidthConverter
from hlsgen.numerics.fixed import Array


class BeatNetwork:
    """The wires between the units, and the process of each unit, as an `Engine` of `wiring`."""

    def __init__(self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = ()) -> None:
        self.nodes, self.wiring, self.frames = nodes, Wiring(nodes, Wire), 0
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[Callable[[], None]] = []
        for n, node in enumerate(nodes):
            process, buffer = model.process(node, self.wiring.ins[n], self.wiring.outs[n])
            self.steps.append(process.__next__)
            if buffer is not None:
                self.buffers[node.name] = buffer
        self.steps += [processes.source(wire).__next__ for wire, _ in self.wiring.inputs]
        self.steps += [processes.sink(wire, ready).__next__ for wire, _ in self.wiring.sinks]

    def feed(self, frames: int, interval: int | None, rows: bool = False) -> bool:
        for (wire, _), stream in zip(self.wiring.inputs, self.wiring.enters, strict=True):
            for frame in range(self.frames, self.frames + frames):
                for first, step, count in offers(stream, interval, rows):
                    wire.due.extend(frame * (interval or 0) + first + step * n for n in range(count))
        self.frames += frames
        self._settle()
        return True

    def _settle(self) -> None:
        """Lets units move until nothing moves."""
        steps, ins, outs = self.steps, self.wiring.ins, self.wiring.outs
        queue = deque(wire.producer for wire, _ in self.wiring.inputs)
        queued = [False] * len(steps)
        while queue:
            unit = queue.popleft()
            queued[unit] = False
            steps[unit]()
            for wire in ins[unit]:
                if len(wire.consumed) != wire.known_consumed:
                    wire.known_consumed = len(wire.consumed)
                    if not queued[wire.producer]:
                        queued[wire.producer] = True
                        queue.append(wire.producer)
            for wire in outs[unit]:
                if len(wire.due) != wire.known_due:
                    wire.known_due = len(wire.due)
                    if not queued[wire.consumer]:
                        queued[wire.consumer] = True
                        queue.append(wire.consumer)

    def ends(self) -> tuple[int, ...]:
        return tuple(
            map(max, zip(*(wire.consumed[beats - 1 :: beats] for wire, beats in self.wiring.sinks), strict=False))
        )

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

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        return all(
            _alike(wire.consumed, len(wire.consumed) // frames, last, period, cycles)
            for wire in self.wiring.wires.values()
        )

    def moved(self) -> int:
        return sum(len(wire.consumed) for wire in self.wiring.wires.values())

    def work(self) -> int:
        return self.moved()

    def names(self) -> tuple[str, ...]:
        return tuple(self.wiring.wires)

    def consumed(self, name: str, stop: int | None = None) -> Array:
        return np.array(self.wiring.wires[name].consumed[:stop], np.int64)

    def offered(self, name: str) -> Array:
        return processes.offered(self.wiring.wires[name], self.consumed(name))

    def spans(self) -> dict[str, int]:
        spans = {}
        for n, node in enumerate(self.nodes):
            if node.name in self.buffers:
                buffer, out = self.buffers[node.name], self.wiring.outs[n][0]
                starts, keeps = np.array(buffer.starts, np.int64), np.array(buffer.keeps, np.int64)
                due, departures = np.array(out.due[: len(out.consumed)], np.int64), np.array(out.consumed, np.int64)
                consumed = np.array(self.wiring.ins[n][0].consumed, np.int64)
                spans[node.name] = span(consumed, starts + buffer.period - 1, keeps, buffer.words, due, departures)
        return spans


def _alike(times: list[int], beats: int, frames: int, period: int, cycles: int) -> bool:
    """True if the last `frames` frames moved exactly `cycles` cycles after the frames `period` frames earlier."""
    late, early = times[-frames * beats :], times[-(frames + period) * beats : -period * beats]
    return all(b - a == cycles for a, b in zip(early, late, strict=True))
