"""Simulates a network beat by beat: units run in any order, each as far as the known times allow."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence

from hlsgen.cycle_model import processes
from hlsgen.cycle_model.beat_times import BeatTimes, Windows
from hlsgen.cycle_model.line_buffers import Buffer
from hlsgen.cycle_model.processes import Wire
from hlsgen.cycle_model.timing_models import TimingModel
from hlsgen.cycle_model.wiring import Wiring, offers
from hlsgen.dataflow.units import Node


class BeatNetwork(BeatTimes[Wire]):
    """The wires between the units, and the process of each unit, as an `Engine` of `wiring`."""

    def __init__(self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = ()) -> None:
        super().__init__(nodes, Wiring(nodes, Wire))
        self.buffers: dict[int, Buffer] = {}
        self.steps: list[Callable[[], None]] = []
        for n, node in enumerate(nodes):
            process, buffer = model.process(node, self.wiring.ins[n], self.wiring.outs[n])
            self.steps.append(process.__next__)
            if buffer is not None:
                self.buffers[n] = buffer
        self.steps += [processes.source(wire).__next__ for wire, _ in self.wiring.inputs]
        self.steps += [processes.sink(wire, ready).__next__ for wire, _ in self.wiring.sinks]
        # (number, times, waiting unit) for each list of times that a unit appends to.
        numbers = itertools.count()
        self.watched: list[list[tuple[int, list[int], int]]] = [
            [(next(numbers), wire.consumed, wire.producer) for wire in ins]
            + [(next(numbers), wire.due, wire.consumer) for wire in outs]
            for ins, outs in zip(self.wiring.ins, self.wiring.outs, strict=True)
        ]
        self.counts = [0] * next(numbers)

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
        steps, watched, counts = self.steps, self.watched, self.counts
        queue = deque(wire.producer for wire, _ in self.wiring.inputs)
        queued = [False] * len(steps)
        while queue:
            unit = queue.popleft()
            queued[unit] = False
            steps[unit]()
            for number, times, neighbour in watched[unit]:
                if len(times) != counts[number]:
                    counts[number] = len(times)
                    if not queued[neighbour]:
                        queued[neighbour] = True
                        queue.append(neighbour)

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        return all(
            _alike(wire.consumed, len(wire.consumed) // frames, last, period, cycles)
            for wire in self.wiring.wires.values()
        )

    def windows(self, unit: int) -> Windows | None:
        buffer = self.buffers.get(unit)
        return None if buffer is None else Windows(buffer.starts, buffer.keeps, buffer.words, buffer.period)


def _alike(times: list[int], beats: int, frames: int, period: int, cycles: int) -> bool:
    """True if the last `frames` frames moved exactly `cycles` cycles after the frames `period` frames earlier."""
    late, early = times[-frames * beats :], times[-(frames + period) * beats : -period * beats]
    return all(b - a == cycles for a, b in zip(early, late, strict=True))
