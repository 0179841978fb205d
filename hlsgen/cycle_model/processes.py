"""One process (a Python generator) for each kind of unit: the cycle in which it moves each beat, without the values.

A process consumes beats from its wires and offers beats on others. It continues as far as the known times allow, and
yields when it needs a time that is not known yet. Beats stay in order on every wire, and no unit decides anything by
the data. Hence the order in which the processes run does not change the times.

A unit with an enable (en = m_ready || !m_valid) stalls with all its contents while its offered beat waits. Such a unit
counts time in enabled cycles. A cycle t after `lost` stalled cycles is the enabled cycle t - lost. The last beat that
left the unit determines `lost`: consumed - due of that beat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: A FIFO depth that is never full.
ENDLESS = 1 << 60

Process = Iterator[None]


class Wire:
    """A stream between two units. Its consumer consumes beat k in cycle consumed[k].

    If the producer has an enable (`frozen`), due[k] counts enabled cycles, and beat k is offered from cycle due[k] +
    consumed[k-1] - due[k-1] on. Otherwise it is offered from cycle max(due[k], consumed[k-1] + 1) on.
    """

    __slots__ = ("consumed", "consumer", "due", "frozen", "name", "producer")

    def __init__(self, name: str, frozen: bool) -> None:
        self.name, self.frozen = name, frozen
        self.due: list[int] = []
        self.consumed: list[int] = []
        self.producer = self.consumer = -1


def next_offer(wire: Wire) -> int:
    """Cycle in which the first unconsumed beat is offered."""
    due, consumed = wire.due, wire.consumed
    k = len(consumed)
    if not k:
        return due[0]
    if wire.frozen:
        return due[k] + consumed[-1] - due[k - 1]
    return due[k] if due[k] > consumed[-1] else consumed[-1] + 1


def source(wire: Wire) -> Process:
    """The source before an input port. It does nothing: the caller fills wire.due."""
    while True:
        yield


def sink(wire: Wire, ready: Sequence[bool]) -> Process:
    """The sink after an output port: ready in cycle t if ready[t mod len(ready)]; always ready if `ready` is empty."""
    due, consumed, period = wire.due, wire.consumed, len(ready)
    while True:
        while len(consumed) < len(due):
            cycle = next_offer(wire)
            if period:
                while not ready[cycle % period]:
                    cycle += 1
            consumed.append(cycle)
        yield


def pipeline(wire: Wire, result: Wire, latency: int, emits: Sequence[bool] = (True,)) -> Process:
    """A unit with an enable and one input. It emits a beat `latency` enabled cycles after it consumed a marked beat.

    `emits` marks the beats of a period; the period repeats.
    """
    due, consumed, frozen, out, departures = wire.due, wire.consumed, wire.frozen, result.due, result.consumed
    k = passed = lost = lateness = 0
    t, place, period = -1, 0, len(emits)
    while True:
        while k < len(due):
            t = due[k] + lateness if frozen else (due[k] if due[k] > t else t + 1)
            while passed < len(out) and out[passed] + lost <= t:
                while passed == len(departures):
                    yield
                lost = departures[passed] - out[passed]
                if departures[passed] > t:
                    t = departures[passed]
                passed += 1
            consumed.append(t)
            lateness = t - due[k]
            k += 1
            if emits[place]:
                out.append(t - lost + latency)
            place = place + 1 if place + 1 < period else 0
        yield


def join(
    first: Wire, second: Wire, result: Wire, latency: int, emits: Sequence[bool] = (True,), beats_per_second: int = 1
) -> Process:
    """A unit with an enable that consumes a beat of each wire in the same cycle.

    It emits a beat `latency` enabled cycles after the beats that `emits` marks, as in `pipeline`. Each beat of the
    second wire is used with `beats_per_second` beats of the first wire, and consumed with the last of them.
    """
    out, departures = result.due, result.consumed
    k = passed = lost = first_lateness = second_lateness = 0
    t, period = -1, len(emits)
    while True:
        while k < len(first.due) and k // beats_per_second < len(second.due):
            second_index = k // beats_per_second
            t = max(t + 1, first.due[k] + first_lateness, second.due[second_index] + second_lateness)
            while passed < len(out) and out[passed] + lost <= t:
                while passed == len(departures):
                    yield
                lost = departures[passed] - out[passed]
                t = max(t, departures[passed])
                passed += 1
            first.consumed.append(t)
            first_lateness = t - first.due[k] if first.frozen else 0
            if k % beats_per_second == beats_per_second - 1:
                second.consumed.append(t)
                second_lateness = t - second.due[second_index] if second.frozen else 0
            if emits[k % period]:
                out.append(t - lost + latency)
            k += 1
        yield


def fifo(wire: Wire, result: Wire, depth: int, delay: int = 1) -> Process:
    """hg_fifo of `depth` beats; with depth 2 also hg_slice, with a longer delay also hg_norm_root."""
    due, consumed, frozen, out, departures = wire.due, wire.consumed, wire.frozen, result.due, result.consumed
    k = lateness = 0
    t = -1
    while True:
        while k < len(due):
            t = due[k] + lateness if frozen else (due[k] if due[k] > t else t + 1)
            if k >= depth:
                while k - depth >= len(departures):
                    yield
                if departures[k - depth] >= t:
                    t = departures[k - depth] + 1
            consumed.append(t)
            lateness = t - due[k]
            out.append(t + delay)
            k += 1
        yield


def width(wire: Wire, result: Wire, enters: Sequence[int], leaves: Sequence[int], rooms: Sequence[int]) -> Process:
    """hg_width: `enters` and `leaves` are the numbers of elements of each beat of a period.

    It consumes beat k of a period while it stores at most rooms[k] elements.
    """
    due, consumed, frozen, out, departures = wire.due, wire.consumed, wire.frozen, result.due, result.consumed
    k = lateness = stored = freed = freed_beats = emitted_beats = 0
    t, offered = -1, leaves[0]  # elements up to and including the next beat to offer
    while True:
        while k < len(due):
            t = due[k] + lateness if frozen else (due[k] if due[k] > t else t + 1)
            while stored - freed > rooms[k % len(rooms)]:
                while freed_beats == len(departures):
                    yield
                if departures[freed_beats] >= t:
                    t = departures[freed_beats] + 1
                freed += leaves[freed_beats % len(leaves)]
                freed_beats += 1
            consumed.append(t)
            lateness = t - due[k]
            stored += enters[k % len(enters)]
            k += 1
            while offered <= stored:
                out.append(t + 1)
                emitted_beats += 1
                offered += leaves[emitted_beats % len(leaves)]
        yield


def fork(wire: Wire, results: Sequence[Wire]) -> Process:
    """hg_fork: each output is consumed in its own cycle. The input beat is consumed with the last of them."""
    due, consumed, frozen = wire.due, wire.consumed, wire.frozen
    k = lateness = 0
    t = -1
    while True:
        while k < len(due):
            t = due[k] + lateness if frozen else max(due[k], t + 1)
            for result in results:
                result.due.append(t)
            for result in results:
                while len(result.consumed) <= k:
                    yield
                t = max(t, result.consumed[k])
            consumed.append(t)
            lateness = t - due[k]
            k += 1
        yield


def route(wires: Sequence[Wire], result: Wire, order: Sequence[int]) -> Process:
    """hg_concat and hg_pad: beat n of a period comes from wire order[n] without delay; with -1, the unit generates it.

    A generated beat is always on offer. Only the first beat of a period waits for the next beat of wire 0.
    """
    out, departures, period = result.due, result.consumed, len(order)
    forwarded = [0] * len(wires)
    departed_beats = offer_place = departure_place = 0
    while True:
        while True:
            selected = order[offer_place]
            if selected < 0 and offer_place:
                out.append(0)
            else:
                wire, k = wires[max(selected, 0)], forwarded[max(selected, 0)]
                if k == len(wire.due) or (wire.frozen and k > len(wire.consumed)):
                    break
                out.append(wire.due[k] + (wire.consumed[k - 1] - wire.due[k - 1] if wire.frozen and k else 0))
                if selected >= 0:
                    forwarded[selected] += 1
            offer_place = offer_place + 1 if offer_place + 1 < period else 0
        if departed_beats == len(departures):
            yield
        while departed_beats < len(departures):
            if order[departure_place] >= 0:
                wires[order[departure_place]].consumed.append(departures[departed_beats])
            departure_place = departure_place + 1 if departure_place + 1 < period else 0
            departed_beats += 1


def state(starts: Wire, feedback: Wire, result: Wire, beats: int, waiting: int) -> Process:
    """hg_state: `starts` has a beat for each frame, `feedback` the state after it, `beats` beats.

    Frame 0 finds constants, every later frame the beats of the frame before.
    """
    out, departures = result.due, result.consumed
    arrivals: list[int] = []  # when the beat of each frame is stored
    write_times: list[int] = []  # when each beat of the state is stored
    read_times: list[int] = []  # when each beat is taken
    start_lateness = feedback_lateness = 0
    while True:
        moved = False
        while (n := len(arrivals)) < len(starts.due) and (n < waiting or len(read_times) >= (n - waiting + 1) * beats):
            t = max(starts.due[n] + start_lateness, arrivals[-1] + 1 if n else 0)
            if n >= waiting:
                t = max(t, read_times[(n - waiting + 1) * beats - 1] + 1)
            starts.consumed.append(t)
            start_lateness = t - starts.due[n] if starts.frozen else 0
            arrivals.append(t)
            moved = True
        while (n := len(write_times)) < len(feedback.due) and (n < beats or len(read_times) > n):
            t = max(feedback.due[n] + feedback_lateness, write_times[-1] + 1 if n else 0)
            if n >= beats:
                t = max(t, read_times[n] + 1)
            feedback.consumed.append(t)
            feedback_lateness = t - feedback.due[n] if feedback.frozen else 0
            write_times.append(t)
            moved = True
        while (
            (k := len(read_times)) // beats < len(arrivals)
            and (k < beats or k - beats < len(write_times))
            and len(departures) >= k
        ):
            t = max(arrivals[k // beats] + 1, read_times[-1] + 1 if k else 0)
            if k >= beats:
                t = max(t, write_times[k - beats] + 1)
            if k:
                t = max(t, departures[k - 1])
            read_times.append(t)
            out.append(t + 1)
            moved = True
        if not moved:
            yield


def keep(wire: Wire, result: Wire, keeps: Sequence[bool]) -> Process:
    """hg_take: the beats of a period that `keeps` marks pass without delay, the others are dropped at once."""
    due, consumed, frozen, out, departures = wire.due, wire.consumed, wire.frozen, result.due, result.consumed
    k = lateness = place = 0
    t = -1
    while True:
        while k < len(due):
            t = due[k] + lateness if frozen else (due[k] if due[k] > t else t + 1)
            if keeps[place]:
                out.append(t)
                while len(departures) < len(out):
                    yield
                t = departures[-1]
            place = place + 1 if place + 1 < len(keeps) else 0
            consumed.append(t)
            lateness = t - due[k]
            k += 1
        yield
