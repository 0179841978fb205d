"""Simulates a network beat by beat: units go on in any order, each as far as the times allow that are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from hlsgen.cycle_model import processes
from hlsgen.cycle_model.line_buffers import Buffer, span
from hlsgen.cycle_model.processes import Wire
from hlsgen.cycle_model.units import TimingModel
from hlsgen.cycle_model.wiring import Blocked, Wiring, offers
from hlsgen.dataflow.ends import enters
from hlsgen.dataflow.units import Fifo, Node, WidthConverter
from hlsgen.numerics.fixed import Array


class BeatNetwork:
    """The wires between the units, and the process of each unit. See `wiring.Moves` for what it answers."""

    def __init__(self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = ()) -> None:
        self.nodes, self.wiring, self.frames = nodes, Wiring(nodes, Wire), 0
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[Callable[[], None]] = []
        for n, node in enumerate(nodes):
            process, buffer = model.process(node, self.wiring.ins[n], self.wiring.outs[n], enters(node))
            self.steps.append(process.__next__)
            if buffer is not None:
                self.buffers[node.name] = buffer
        self.steps += [processes.source(wire).__next__ for wire, _ in self.wiring.inputs]
        self.steps += [processes.sink(wire, ready).__next__ for wire, _ in self.wiring.sinks]

    def feed(self, frames: int, pace: int | None, rows: bool = False) -> bool:
        for (wire, _), stream in zip(self.wiring.inputs, self.wiring.enters, strict=True):
            for frame in range(self.frames, self.frames + frames):
                for first, step, count in offers(stream, pace, rows):
                    wire.due.extend(frame * (pace or 0) + first + step * n for n in range(count))
        self.frames += frames
        self._settle()
        return True

    def _settle(self) -> None:
        """Lets units move until nothing does."""
        steps, ins, outs = self.steps, self.wiring.ins, self.wiring.outs
        queue = deque(wire.producer for wire, _ in self.wiring.inputs)
        queued = [False] * len(steps)
        while queue:
            unit = queue.popleft()
            queued[unit] = False
            steps[unit]()
            for wire in ins[unit]:
                if len(wire.taken) != wire.known_taken:
                    wire.known_taken = len(wire.taken)
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
            map(max, zip(*(wire.taken[beats - 1 :: beats] for wire, beats in self.wiring.sinks), strict=False))
        )

    def blocked(self) -> tuple[Blocked, ...]:
        way: dict[int, Blocked] = {}
        waiting = (wire for wire, beats in self.wiring.sinks if len(wire.taken) < self.frames * beats)
        unit = next(waiting, self.wiring.sinks[0][0]).producer
        while unit not in way and unit < len(self.nodes):
            name = self.nodes[unit].name
            starving = [wire for wire in self.wiring.ins[unit] if len(wire.due) == len(wire.taken)]
            full = [wire for wire in self.wiring.outs[unit] if len(wire.due) > len(wire.taken)]
            if starving and not (full and isinstance(self.nodes[unit].unit, Fifo | WidthConverter)):
                way[unit], unit = Blocked(name, starving[0].name, False), starving[0].producer
            elif full:
                way[unit], unit = Blocked(name, full[0].name, True), full[0].consumer
            else:
                way[unit] = Blocked(name, self.wiring.ins[unit][0].name, False)
        found = list(way)
        return tuple(way[unit] for unit in found[found.index(unit) if unit in way else 0 :])

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        return all(
            _alike(wire.taken, len(wire.taken) // frames, last, period, cycles) for wire in self.wiring.wires.values()
        )

    def moved(self) -> int:
        return sum(len(wire.taken) for wire in self.wiring.wires.values())

    def work(self) -> int:
        return self.moved()

    def names(self) -> tuple[str, ...]:
        return tuple(self.wiring.wires)

    def taken(self, name: str, stop: int | None = None) -> Array:
        return np.array(self.wiring.wires[name].taken[:stop], np.int64)

    def offered(self, name: str) -> Array:
        return processes.offered(self.wiring.wires[name], self.taken(name))

    def spans(self) -> dict[str, int]:
        found = {}
        for n, node in enumerate(self.nodes):
            if node.name in self.buffers:
                buffer, out = self.buffers[node.name], self.wiring.outs[n][0]
                starts, keeps = np.array(buffer.starts, np.int64), np.array(buffer.keeps, np.int64)
                due, gone = np.array(out.due[: len(out.taken)], np.int64), np.array(out.taken, np.int64)
                taken = np.array(self.wiring.ins[n][0].taken, np.int64)
                found[node.name] = span(taken, starts + buffer.period - 1, keeps, buffer.words, due, gone)
        return found


def _alike(times: list[int], beats: int, frames: int, period: int, cycles: int) -> bool:
    """Whether the last `frames` frames moved exactly `cycles` cycles after those that lie `period` frames back."""
    late, early = times[-frames * beats :], times[-(frames + period) * beats : -period * beats]
    return all(b - a == cycles for a, b in zip(early, late, strict=True))
