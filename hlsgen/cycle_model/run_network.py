"""Simulates a network in runs of beats, by guessing the times at which beats are consumed until all guesses are right.

A unit can be computed for whole frames at once if two things are known: the times at which beats reach it, and the
times at which its output beats are consumed. The latter depend on the downstream units, which are computed later. Hence
the first guess is that each beat is consumed as soon as it is offered. If the consumer reports another time, that is
the next guess, and the unit is computed again, and so on in both directions.

Every time depends only on earlier times. Hence there is exactly one way in which beats can move, and guesses that all
turn out to be right describe it. In networks that seldom stall they are right after a few rounds. If beats wait for
each other in many small steps, or forever, the search ends without a result, and `beat_network` has to do it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.cycle_model import run_processes
from hlsgen.cycle_model.line_buffers import span
from hlsgen.cycle_model.repeats import foreseen
from hlsgen.cycle_model.run_processes import Machine
from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Runs, alike, runs_equal
from hlsgen.cycle_model.timing_models import TimingModel
from hlsgen.cycle_model.wiring import Blocked, Bounds, BudgetExceeded, Wiring, offers, stride
from hlsgen.dataflow.units import Node, WindowUnit
from hlsgen.numerics.fixed import Array

#: Cost of computing a unit, in runs, besides the runs of its result.
UNIT = 4
#: The search is abandoned at a cost of SHARE for each beat of all frames, in addition to FEW.
SHARE, FEW = 0.25, 2000
#: Number of wrong guesses of a wire after which the next guess extrapolates the reported times.
PLAIN = 6
#: Time to compute a run, relative to a beat of the beat-by-beat simulation.
RUN = 3
#: Time of a step of a unit with a memory, relative to a beat. Only bounds on large networks count it.
STEP = 12


class RunNetwork:
    """The wires between the units, and the machine of each unit, as an `Engine` of `wiring`.

    `cost` counts the computed runs so far, and `steps` the steps of units with a memory.
    """

    def __init__(
        self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = (), bounds: Bounds | None = None
    ) -> None:
        self.nodes, self.wiring, self.frames, self.bounds = nodes, Wiring(nodes, Wire), 0, bounds
        self.cache = model.cache
        self.machines: list[Machine] = [model.machine(node) for node in nodes]
        self.machines += [run_processes.source for _ in self.wiring.inputs]
        self.machines += [run_processes.sink(ready) for _ in self.wiring.sinks]
        if not model.enables:
            for machine, outs in zip(self.machines, self.wiring.outs, strict=True):
                for wire in outs:
                    wire.frozen = machine.memory is not None
        for node, outs in zip(nodes, self.wiring.outs, strict=False):
            for wire in outs:
                wire.stride, wire.frame = stride(node.result.beats, node.result.groups), node.result.beats
        for (wire, _), stream in zip(self.wiring.inputs, self.wiring.enters, strict=True):
            wire.stride, wire.frame = stride(stream.beats, stream.groups), stream.beats
        self.kinds = [self.cache.kind(machine) for machine in self.machines]
        self.starts: dict[int, Runs] = {}
        self.dirty = [False] * len(self.machines)
        #: Foreseen guesses may be too late, which a bound on the first frame does not allow. In a model without
        #: latencies, a guess that is too late could turn out to be right, as times may depend on equal times.
        self.foresees = model.enables and (bounds is None or bounds.latest >= ENDLESS)
        self.groups = self._grouped()
        self.cost = self.steps = 0

    def _grouped(self) -> list[list[int]]:
        """Groups of units that stall each other in the same cycle: no FIFO or window memory is between them."""
        members = [[unit] for unit in range(len(self.machines))]
        for wire in self.wiring.wires.values():
            joined, moved = members[wire.producer], members[wire.consumer]
            if not self.machines[wire.consumer].stores and joined is not moved:
                joined, moved = (joined, moved) if len(joined) >= len(moved) else (moved, joined)
                joined += moved
                for unit in moved:
                    members[unit] = joined
        return sorted(sorted(group) for unit, group in enumerate(members) if unit == min(group))

    def feed(self, frames: int, interval: int | None, rows: bool = False) -> bool:
        for (wire, _), stream in zip(self.wiring.inputs, self.wiring.enters, strict=True):
            for frame in range(self.frames, self.frames + frames):
                for first, step, count in offers(stream, interval, rows):
                    wire.due.append(frame * (interval or 0) + first, step, count)
            self.dirty[wire.consumer] = True
        self.frames += frames
        if not self._settle():
            return False
        return all(wire.consumed.count == self.frames * beats for wire, beats in self.wiring.sinks)

    def _settle(self) -> bool:
        """Computes units until all guesses are right; False if that takes too long.

        Guesses begin too early, and become later. Hence a frame that is late by unfinished guesses is late in the end
        too. Raises BudgetExceeded at the bounds.
        """
        beats = self.frames * sum(node.result.beats for node in self.nodes)
        max_cost = self.cost + FEW + UNIT * 4 * len(self.machines) + int(SHARE * beats)
        if self.bounds is not None:
            max_cost = min(max_cost, self.bounds.work // RUN)
        while any(self.dirty):
            for order in (self.groups, reversed(self.groups)):
                for group in order:
                    if not self._agree(group, max_cost):
                        return False
            if self.bounds is not None and max(self.ends()[:1], default=0) > self.bounds.latest:
                raise BudgetExceeded
        return True

    def _agree(self, group: Sequence[int], max_cost: int) -> bool:
        """Computes units of a group until their guesses of each other are right; False at the cost `max_cost`.

        The next unit is always the first one, in the order of the network, that has to be computed again.
        """
        dirty, at = self.dirty, 0
        while at < len(group):
            unit = group[at]
            at += 1
            if dirty[unit]:
                if self.cost > max_cost or (self.bounds is not None and self.work() > self.bounds.work):
                    return False
                self._compute(unit)
                if any(dirty[wire.producer] for wire in self.wiring.ins[unit]):
                    at = 0
        return True

    def _compute(self, unit: int) -> None:
        """Computes a unit, and marks the units whose inputs or guesses change."""
        ins, outs = self.wiring.ins[unit], self.wiring.outs[unit]
        self.dirty[unit] = False
        self.cost += UNIT
        consumed_by_wire, due_by_wire, starts, steps = self.cache.run(self.kinds[unit], self.machines[unit], ins, outs)
        self.steps += steps
        if starts is not None:
            self.starts[unit] = starts
        for wire, consumed in zip(ins, consumed_by_wire, strict=True):
            wire.consumed = consumed
            self.cost += len(consumed.starts)
            if runs_equal(consumed, wire.due):
                wire.foreseen = False
                if wire.guess is not None:
                    wire.guess, self.dirty[wire.producer] = None, True
            elif wire.guess is None or not runs_equal(consumed, wire.guess):
                wire.guesses += 1
                guess = consumed
                if wire.guesses > PLAIN and wire.guess is not None and self.foresees:
                    guess = foreseen(wire.guess, consumed, wire.stride, wire.frame)
                wire.guess, wire.foreseen, self.dirty[wire.producer] = guess, guess is not consumed, True
            else:
                wire.foreseen = False
        for wire, due in zip(outs, due_by_wire, strict=True):
            self.cost += len(due.starts)
            if not runs_equal(due, wire.due):
                wire.due, self.dirty[wire.consumer] = due, True
            elif wire.foreseen and not self.dirty[wire.consumer]:
                # The consumer would report the same times as before.
                wire.guess, wire.foreseen, self.dirty[unit] = wire.consumed, False, True

    def ends(self) -> tuple[int, ...]:
        ends_by_port = []
        for wire, beats in self.wiring.sinks:
            cursor = Cursor(wire.consumed)
            ends_by_port.append([cursor.read(k)[0] for k in range(beats - 1, wire.consumed.count, beats)])
        return tuple(map(max, zip(*ends_by_port, strict=False)))

    def blocked(self) -> tuple[Blocked, ...]:
        raise AssertionError("all frames have passed")

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        for wire in self.wiring.wires.values():
            consumed, beats = wire.consumed, wire.consumed.count // frames
            begin, lag = consumed.count - (last + period) * beats, period * beats
            if not alike(Cursor(consumed), Cursor(consumed), begin, begin + last * beats, lag, cycles):
                return False
        return True

    def moved(self) -> int:
        return sum(wire.consumed.count for wire in self.wiring.wires.values())

    def work(self) -> int:
        counted = self.bounds is not None and (self.bounds.strict or self.bounds.only_runs)
        return RUN * self.cost + (STEP * self.steps if counted else 0)

    def names(self) -> tuple[str, ...]:
        return tuple(self.wiring.wires)

    def consumed(self, name: str, stop: int | None = None) -> Array:
        return self.wiring.wires[name].consumed.array(stop)

    def offered(self, name: str) -> Array:
        wire = self.wiring.wires[name]
        consumed, due = wire.consumed.array(), wire.due.array(wire.consumed.count + 1)
        previous = consumed[: len(due) - 1]
        due[1:] = due[1:] + previous - due[:-1] if wire.frozen else np.maximum(due[1:], previous + 1)
        return due

    def spans(self) -> dict[str, int]:
        spans = {}
        for n, node in enumerate(self.nodes):
            memory, out = self.machines[n].memory, self.wiring.outs[n][0]
            if memory is not None and isinstance(node.unit, WindowUnit):
                consumed, departures = self.wiring.ins[n][0].consumed.array(), out.consumed.array()
                ends, due = self.starts[n].array() + memory.period - 1, out.due.array(len(departures))
                spans[node.name] = span(consumed, ends, memory.keeps.array(), memory.words, due, departures)
        return spans
