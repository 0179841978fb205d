"""One process (a Python generator) for each kind of unit: when it moves each beat, without the values.

A process takes beats from its wires and offers beats on others. It goes as far as it can with the times that are
known, and yields when it needs a time that is not known yet. Beats stay in order on every wire, and no unit
decides anything by the data. So the order in which the processes run does not matter: the times come out the same.

A unit with an enable (en = m_ready || !m_valid) stands still, with all that is in it, while the beat that it offers
waits. Such a unit counts time in enabled cycles. A cycle t that comes after `lost` cycles of standing still is the
enabled cycle t - lost. The last beat that left the unit tells `lost`: it is taken - due of that beat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hlsgen.dataflow.units import Crop, PadBorder, Stream, TiledPool, regrouping_step
from hlsgen.numerics.fixed import Array

#: A depth that no stream reaches.
ENDLESS = 1 << 60

Process = Iterator[None]


class Wire:
    """A stream between two units. Its consumer takes beat k in cycle taken[k].

    If the producer has an enable (`frozen`), due[k] counts enabled cycles, and beat k is offered from cycle
    due[k] + taken[k-1] - due[k-1] on. Otherwise it is offered from cycle max(due[k], taken[k-1] + 1) on.
    """

    __slots__ = ("consumer", "due", "frozen", "known_due", "known_taken", "name", "producer", "taken")

    def __init__(self, name: str, frozen: bool) -> None:
        self.name, self.frozen = name, frozen
        self.due: list[int] = []
        self.taken: list[int] = []
        self.known_due = self.known_taken = 0
        self.producer = self.consumer = -1


def offered(wire: Wire, taken: Array) -> Array:
    """The cycle in which each beat is offered, int64, for all beats of which it is known."""
    due: Array = np.array(wire.due[: len(taken) + 1], np.int64)
    before = taken[: len(due) - 1]
    due[1:] = due[1:] + before - due[:-1] if wire.frozen else np.maximum(due[1:], before + 1)
    return due


def next_offer(wire: Wire) -> int:
    """Cycle in which the first beat that is not taken yet is offered."""
    due, taken = wire.due, wire.taken
    k = len(taken)
    if not k:
        return due[0]
    if wire.frozen:
        return due[k] + taken[-1] - due[k - 1]
    return due[k] if due[k] > taken[-1] else taken[-1] + 1


def source(wire: Wire) -> Process:
    """The source outside of the input port. It does nothing: whoever runs the network fills wire.due."""
    while True:
        yield


def sink(wire: Wire, ready: Sequence[bool]) -> Process:
    """The sink outside of the output port: ready in cycle t if ready[t mod len(ready)], always if that is empty."""
    due, taken, period = wire.due, wire.taken, len(ready)
    while True:
        while len(taken) < len(due):
            cycle = next_offer(wire)
            if period:
                while not ready[cycle % period]:
                    cycle += 1
            taken.append(cycle)
        yield


def pipeline(wire: Wire, result: Wire, latency: int, gives: Sequence[bool] = (True,)) -> Process:
    """A unit with an enable and one input. It sends a beat `latency` enabled cycles after it took a marked one.

    `gives` marks the beats of a period; the period repeats.
    """
    due, taken, frozen, out, gone = wire.due, wire.taken, wire.frozen, result.due, result.taken
    k = left = lost = late = 0
    t, place, period = -1, 0, len(gives)
    while True:
        while k < len(due):
            t = due[k] + late if frozen else (due[k] if due[k] > t else t + 1)
            while left < len(out) and out[left] + lost <= t:
                while left == len(gone):
                    yield
                lost = gone[left] - out[left]
                if gone[left] > t:
                    t = gone[left]
                left += 1
            taken.append(t)
            late = t - due[k]
            k += 1
            if gives[place]:
                out.append(t - lost + latency)
            place = place + 1 if place + 1 < period else 0
        yield


def join(
    first: Wire, second: Wire, result: Wire, latency: int, gives: Sequence[bool] = (True,), every: int = 1
) -> Process:
    """A unit with an enable that takes a beat of each wire in the same cycle, and sends one `latency` enabled cycles
    after those that `gives` marks, as in `pipeline`.

    Each beat of the second wire is there for `every` beats of the first one, and taken with the last of them.
    """
    out, gone = result.due, result.taken
    k = left = lost = first_late = second_late = 0
    t, period = -1, len(gives)
    while True:
        while k < len(first.due) and k // every < len(second.due):
            row = k // every
            t = max(t + 1, first.due[k] + first_late, second.due[row] + second_late)
            while left < len(out) and out[left] + lost <= t:
                while left == len(gone):
                    yield
                lost = gone[left] - out[left]
                t = max(t, gone[left])
                left += 1
            first.taken.append(t)
            first_late = t - first.due[k] if first.frozen else 0
            if k % every == every - 1:
                second.taken.append(t)
                second_late = t - second.due[row] if second.frozen else 0
            if gives[k % period]:
                out.append(t - lost + latency)
            k += 1
        yield


def fifo(wire: Wire, result: Wire, depth: int, delay: int = 1) -> Process:
    """hg_fifo of `depth` beats. With depth 2 it is hg_slice as well; with more cycles of delay, hg_norm_root."""
    due, taken, frozen, out, gone = wire.due, wire.taken, wire.frozen, result.due, result.taken
    k = late = 0
    t = -1
    while True:
        while k < len(due):
            t = due[k] + late if frozen else (due[k] if due[k] > t else t + 1)
            if k >= depth:
                while k - depth >= len(gone):
                    yield
                if gone[k - depth] >= t:
                    t = gone[k - depth] + 1
            taken.append(t)
            late = t - due[k]
            out.append(t + delay)
            k += 1
        yield


def width(wire: Wire, result: Wire, enters: Sequence[int], leaves: Sequence[int], rooms: Sequence[int]) -> Process:
    """hg_width: `enters` and `leaves` say how many elements each beat of a period has.

    It takes beat k of a period while it stores at most rooms[k] elements.
    """
    due, taken, frozen, out, gone = wire.due, wire.taken, wire.frozen, result.due, result.taken
    k = late = stored = freed = left = made = 0
    t, offered = -1, leaves[0]  # elements up to and with the beat that is not offered yet
    while True:
        while k < len(due):
            t = due[k] + late if frozen else (due[k] if due[k] > t else t + 1)
            while stored - freed > rooms[k % len(rooms)]:
                while left == len(gone):
                    yield
                if gone[left] >= t:
                    t = gone[left] + 1
                freed += leaves[left % len(leaves)]
                left += 1
            taken.append(t)
            late = t - due[k]
            stored += enters[k % len(enters)]
            k += 1
            while offered <= stored:
                out.append(t + 1)
                made += 1
                offered += leaves[made % len(leaves)]
        yield


def fork(wire: Wire, results: Sequence[Wire]) -> Process:
    """hg_fork: every output takes the beat in its own cycle. The beat is gone when the last output took it."""
    due, taken, frozen = wire.due, wire.taken, wire.frozen
    k = late = 0
    t = -1
    while True:
        while k < len(due):
            t = due[k] + late if frozen else max(due[k], t + 1)
            for result in results:
                result.due.append(t)
            for result in results:
                while len(result.taken) <= k:
                    yield
                t = max(t, result.taken[k])
            taken.append(t)
            late = t - due[k]
            k += 1
        yield


def route(wires: Sequence[Wire], result: Wire, order: Sequence[int]) -> Process:
    """hg_concat and hg_pad: beat n of a period comes from wire order[n] without delay; with -1, the unit makes it.

    A beat that the unit makes is always on offer. Only the first of a period waits for the next beat of wire 0.
    """
    out, gone, period = result.due, result.taken, len(order)
    passed = [0] * len(wires)
    done = place = back = 0
    while True:
        while True:
            turn = order[place]
            if turn < 0 and place:
                out.append(0)
            else:
                wire, k = wires[max(turn, 0)], passed[max(turn, 0)]
                if k == len(wire.due) or (wire.frozen and k > len(wire.taken)):
                    break
                out.append(wire.due[k] + (wire.taken[k - 1] - wire.due[k - 1] if wire.frozen and k else 0))
                if turn >= 0:
                    passed[turn] += 1
            place = place + 1 if place + 1 < period else 0
        if done == len(gone):
            yield
        while done < len(gone):
            if order[back] >= 0:
                wires[order[back]].taken.append(gone[done])
            back = back + 1 if back + 1 < period else 0
            done += 1


def take(wire: Wire, result: Wire, keeps: Sequence[bool]) -> Process:
    """hg_take: the beats of a period that `keeps` marks go through without delay, the others are dropped at once."""
    due, taken, frozen, out, gone = wire.due, wire.taken, wire.frozen, result.due, result.taken
    k = late = place = 0
    t = -1
    while True:
        while k < len(due):
            t = due[k] + late if frozen else (due[k] if due[k] > t else t + 1)
            if keeps[place]:
                out.append(t)
                while len(gone) < len(out):
                    yield
                t = gone[-1]
            place = place + 1 if place + 1 < len(keeps) else 0
            taken.append(t)
            late = t - due[k]
            k += 1
        yield


def width_beats(source: Stream, result: Stream) -> tuple[list[int], list[int], list[int]]:
    """(enters, leaves, rooms) of `width` for the hg_width between two streams."""
    take, send = source.lanes, result.lanes
    step, more = regrouping_step(source, result)
    room = send if step in (take, send) else 2 * send - step
    sides = []
    for stream in (source, result):
        whole = stream.group_beats - 1
        last = stream.group + more - whole * stream.lanes
        sides.append([stream.lanes] * whole + [last] if last != stream.lanes else [last])
    enters, leaves = sides
    if step != take or leaves[-1] == take:
        return enters, leaves, [room]
    # Slots: the first beat of each that leaves has a place of its own, the others come when nothing waits.
    slots = [[before, *range(take, size, take)] for before, size in zip([leaves[-1], *leaves], leaves, strict=False)]
    return enters, leaves, [room for own in slots for room in own]


def kept_beats(unit: Crop) -> list[bool]:
    """For each beat of an image: whether hg_take lets it through."""
    height, width, folds = unit.sizes
    rows, columns, beats = range(*unit.rows), range(*unit.columns), range(*unit.beats)
    return [
        y in rows and x in columns and f in beats for y in range(height) for x in range(width) for f in range(folds)
    ]


def completing_beats(unit: TiledPool) -> list[bool]:
    """For each beat of an image: whether it completes a result of hg_reduce."""
    (tall, wide), (rows, columns) = unit.kernel, unit.size
    return [
        y % tall == tall - 1 and y // tall < rows and x % wide == wide - 1 and x // wide < columns
        for y in range(unit.height)
        for x in range(unit.width)
        for _ in range(unit.folds)
    ]


def pad_beats(unit: PadBorder) -> list[int]:
    """For each beat that hg_pad sends for an image: 0 if it is part of the image, -1 if it is part of the border."""
    top, left, bottom, right = unit.pads
    line = [-1] * (left * unit.folds) + [0] * (unit.width * unit.folds) + [-1] * (right * unit.folds)
    return [-1] * (top * len(line)) + line * unit.height + [-1] * (bottom * len(line))
