"""Simulates a network in runs of beats, by guessing when beats are taken until all guesses are right.

A unit can be computed for whole frames at once if all that it depends on is known: when beats reach it, and when
those that it sends are taken. The latter follows from the units behind it, which come later. So the first guess is
that each beat is taken as soon as it is offered. Where the taker says something else, that is the next guess, and the
unit is computed again, and so on in both directions.

Every time depends only on earlier ones. So there is exactly one way in which beats can move: guesses that all turn out
to be right are it. In networks that seldom stand still they are right after a few rounds. Where beats wait for each
other in many small steps, or for ever, the search ends without a result, and `beat_network` has to do it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.cycle_model import run_processes
from hlsgen.cycle_model.line_buffers import span
from hlsgen.cycle_model.repeats import foreseen
from hlsgen.cycle_model.run_processes import Machine
from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Runs, alike, same
from hlsgen.cycle_model.units import TimingModel
from hlsgen.cycle_model.wiring import Blocked, Bounds, Ended, Wiring, offers, stride
from hlsgen.dataflow.ends import enters
from hlsgen.dataflow.units import Node, WindowUnit
from hlsgen.numerics.fixed import Array

#: What a computation of a unit costs, in runs, besides those that it gives.
UNIT = 4
#: The search is given up when it has cost so much for each beat of all frames, beyond what is always allowed.
SHARE, FEW = 0.25, 2000
#: How often what follows from a guess is the next one as it is.
PLAIN = 6
#: A run takes about as long as so many beats, one by one.
RUN = 3
#: A step of a unit with a memory about as long as so many beats. Only bounds on large networks count it.
STEP = 12


class RunNetwork:
    """The wires between the units, and the machine of each unit. See `wiring.Moves` for what it answers.

    `cost` counts what was computed so far, in runs, and `steps` those of units with a memory.
    """

    def __init__(
        self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = (), bounds: Bounds | None = None
    ) -> None:
        self.nodes, self.wiring, self.frames, self.bounds = nodes, Wiring(nodes, Wire), 0, bounds
        self.known = model.known
        self.machines: list[Machine] = [model.machine(node, enters(node)) for node in nodes]
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
        self.kinds = [self.known.kind(machine) for machine in self.machines]
        self.starts: dict[int, Runs] = {}
        self.dirty = [False] * len(self.machines)
        #: Guesses that are foreseen may be too late, which no bound on the first frame allows. Without latencies, what is
        #: guessed too late can be right as well, as nothing depends on earlier times only.
        self.foresees = model.enables and (bounds is None or bounds.latest >= ENDLESS)
        self.groups = self._grouped()
        self.cost = self.steps = 0

    def _grouped(self) -> list[list[int]]:
        """The units, those together that hold each other up at once: no FIFO or memory of windows is between them."""
        group = list(range(len(self.machines)))
        for wire in self.wiring.wires.values():
            if not self.machines[wire.consumer].stores:
                one, other = group[wire.producer], group[wire.consumer]
                group = [one if number == other else number for number in group]
        members: dict[int, list[int]] = {}
        for unit, number in enumerate(group):
            members.setdefault(number, []).append(unit)
        return sorted(members.values())

    def feed(self, frames: int, pace: int | None, rows: bool = False) -> bool:
        for (wire, _), stream in zip(self.wiring.inputs, self.wiring.enters, strict=True):
            for frame in range(self.frames, self.frames + frames):
                for first, step, count in offers(stream, pace, rows):
                    wire.due.append(frame * (pace or 0) + first, step, count)
            self.dirty[wire.consumer] = True
        self.frames += frames
        if not self._settle():
            return False
        return all(wire.taken.count == self.frames * beats for wire, beats in self.wiring.sinks)

    def _settle(self) -> bool:
        """Computes units until all guesses are right; False if that takes too long.

        Guesses begin too early, and move backwards. So a frame that is late by guesses that are not right yet is.
        Raises Ended at the bounds.
        """
        beats = self.frames * sum(node.result.beats for node in self.nodes)
        most = self.cost + FEW + UNIT * 4 * len(self.machines) + int(SHARE * beats)
        if self.bounds is not None:
            most = min(most, self.bounds.work // RUN)
        while any(self.dirty):
            for order in (self.groups, reversed(self.groups)):
                for group in order:
                    if not self._agree(group, most):
                        return False
            if self.bounds is not None and max(self.ends()[:1], default=0) > self.bounds.latest:
                raise Ended
        return True

    def _agree(self, group: Sequence[int], most: int) -> bool:
        """Computes units of a group until their guesses of each other are right; False at `most` cost.

        The next one is always the first unit, on the way through the network, that has to be computed again.
        """
        dirty, at = self.dirty, 0
        while at < len(group):
            unit = group[at]
            at += 1
            if dirty[unit]:
                if self.cost > most or (self.bounds is not None and self.work() > self.bounds.work):
                    return False
                self._compute(unit)
                if any(dirty[wire.producer] for wire in self.wiring.ins[unit]):
                    at = 0
        return True

    def _compute(self, unit: int) -> None:
        ins, outs = self.wiring.ins[unit], self.wiring.outs[unit]
        self.dirty[unit] = False
        self.cost += UNIT
        every_taken, every_due, starts, steps = self.known.moved(self.kinds[unit], self.machines[unit], ins, outs)
        self.steps += steps
        if starts is not None:
            self.starts[unit] = starts
        for wire, taken in zip(ins, every_taken, strict=True):
            wire.taken = taken
            self.cost += len(taken.starts)
            if same(taken, wire.due):
                wire.foreseen = False
                if wire.guess is not None:
                    wire.guess, self.dirty[wire.producer] = None, True
            elif wire.guess is None or not same(taken, wire.guess):
                wire.guesses += 1
                guess = taken
                if wire.guesses > PLAIN and wire.guess is not None and self.foresees:
                    guess = foreseen(wire.guess, taken, wire.stride, wire.frame)
                wire.guess, wire.foreseen, self.dirty[wire.producer] = guess, guess is not taken, True
            else:
                wire.foreseen = False
        for wire, due in zip(outs, every_due, strict=True):
            self.cost += len(due.starts)
            if not same(due, wire.due):
                wire.due, self.dirty[wire.consumer] = due, True
            elif wire.foreseen and not self.dirty[wire.consumer]:
                # The consumer would say what it said before.
                wire.guess, wire.foreseen, self.dirty[unit] = wire.taken, False, True

    def ends(self) -> tuple[int, ...]:
        every = []
        for wire, beats in self.wiring.sinks:
            cursor = Cursor(wire.taken)
            every.append([cursor.read(k)[0] for k in range(beats - 1, wire.taken.count, beats)])
        return tuple(map(max, zip(*every, strict=False)))

    def blocked(self) -> tuple[Blocked, ...]:
        raise AssertionError("all frames are through")

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        for wire in self.wiring.wires.values():
            taken, beats = wire.taken, wire.taken.count // frames
            begin, lag = taken.count - (last + period) * beats, period * beats
            if not alike(Cursor(taken), Cursor(taken), begin, begin + last * beats, lag, cycles):
                return False
        return True

    def moved(self) -> int:
        return sum(wire.taken.count for wire in self.wiring.wires.values())

    def work(self) -> int:
        counted = self.bounds is not None and (self.bounds.strict or self.bounds.only_runs)
        return RUN * self.cost + (STEP * self.steps if counted else 0)

    def names(self) -> tuple[str, ...]:
        return tuple(self.wiring.wires)

    def taken(self, name: str, stop: int | None = None) -> Array:
        return self.wiring.wires[name].taken.array(stop)

    def offered(self, name: str) -> Array:
        wire = self.wiring.wires[name]
        taken, due = wire.taken.array(), wire.due.array(wire.taken.count + 1)
        before = taken[: len(due) - 1]
        due[1:] = due[1:] + before - due[:-1] if wire.frozen else np.maximum(due[1:], before + 1)
        return due

    def spans(self) -> dict[str, int]:
        found = {}
        for n, node in enumerate(self.nodes):
            memory, out = self.machines[n].memory, self.wiring.outs[n][0]
            if memory is not None and isinstance(node.unit, WindowUnit):
                taken, gone = self.wiring.ins[n][0].taken.array(), out.taken.array()
                ends, due = self.starts[n].array() + memory.period - 1, out.due.array(len(gone))
                found[node.name] = span(taken, ends, memory.keeps.array(), memory.words, due, gone)
        return found
