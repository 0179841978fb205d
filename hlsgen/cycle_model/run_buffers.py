"""The units of `line_buffers` once more, for whole runs of beats; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.repeats import Read, Repeats, Written
from hlsgen.cycle_model.run_clock import Clock, before
from hlsgen.cycle_model.run_processes import Machine, Memory, Moved
from hlsgen.cycle_model.run_wires import Arrivals, Progression, Wire
from hlsgen.cycle_model.runs import Cursor, Runs, latest


class _Windows:
    """A unit with a memory of windows on its way through all beats.

    Words are stored in order while their place is free; a window is sent when its last word is stored.
    """

    def __init__(self, memory: Memory, first: int, step: int, lag: int, enters: Wire, leaves: Wire) -> None:
        self.first, self.step, self.lag = first, step, lag
        self.period, self.depth, self.beats = memory.period, memory.depth, memory.period // step
        self.words, self.stands = enters.due.count, leaves.guess is not None
        self.full = memory.depth < self.words
        self.arrival, self.taken, self.out, self.starts = Arrivals(enters), Runs(), Runs(), Runs()
        self.every_need, self.every_keep = memory.of_frames(-(-self.words // memory.words) + 1)
        self.needs, self.keeps, self.kept_at = Cursor(self.every_need), Cursor(self.every_keep), Cursor(self.every_keep)
        self.reads, self.writes = Clock(self.out, leaves.guess), Clock(self.out, leaves.guess)
        self.stored, self.ended_at, self.end_of = Cursor(self.taken), Cursor(self.starts), Cursor(self.starts)
        self.again, self.steps = Repeats(enters.stride), 0
        #: The next word, and when the one before was taken.
        self.k, self.t = 0, -1
        #: The next window, the number of its last word, and when the window before began.
        self.v, self.need, self.start = 0, self.needs.read(0)[0], -memory.period
        #: Windows that are over for sure, and those that have to be over before the next word is stored: the last one of
        #: them that `free`, the first cycle after it, is known of is number `sent` - 1.
        self.ended = self.window = self.sent = self.free = 0

    def send(self) -> None:
        """Sends the windows whose last word is stored."""
        first, step, period, beats, reads, out = self.first, self.step, self.period, self.beats, self.reads, self.out
        need, need_step, m = self.needs.read(self.v)
        while need < self.k:
            self.steps += 1
            word, pace, count = self.stored.read(need)
            every = 0
            if need_step:
                m, every = min(m, (count - 1) // need_step + 1), pace * need_step
            enabled = reads.enabled(word + 1 + self.lag)
            stop = reads.stop()
            if enabled != word + 1 + self.lag:
                m = 1
            elif every:
                m = before(stop, enabled, every, m)
            start, pace, m = latest(self.start + period, period, m, [(enabled - reads.lost, every)])
            if self.stands:
                if beats == 1:
                    m = reads.room(start + first, pace, m)
                elif pace == period:
                    m = -(-reads.room(start + first, step, m * beats) // beats)
                else:
                    m = 1
            if beats == 1:
                out.append(start + first, pace, m)
            elif pace == period:
                out.append(start + first, step, m * beats)
            else:
                for n in range(m):
                    out.append(start + first + n * pace, step, beats)
            self.starts.append(start, pace, m)
            self.start = start + (m - 1) * pace
            self.v += m
            need, need_step, m = self.needs.read(self.v)
        self.need = need

    def store(self) -> bool:
        """Takes the next words, as many as come at one pace; False if the place of the first one is not free yet."""
        self.steps += 1
        self.again.steps += 1
        k, depth, arrival = self.k, self.depth, self.arrival
        least, most = self.t + 1, self.again.at - k
        if k < depth:
            most = min(most, depth - k)
        else:
            self._end(min(arrival.earliest(k, least, [])[0], self.reads.stop()))
            kept = self.kept_at.read(self.ended)[0]
            if kept > k - depth:
                most = min(most, kept + depth - k)
            elif self._frees(k - depth):
                least, most = max(least, self.free), 1
            else:
                return False
        t, pace, m = arrival.earliest(k, least, [], 1, most)
        self.taken.append(t, pace, m)
        self.k += m
        self.t = t + (m - 1) * pace
        arrival.took(self.k - 1, self.t)
        return True

    def _end(self, cycle: int) -> None:
        """Counts the windows that are certainly over by then."""
        while self.ended < self.v:
            begin, pace, count = self.ended_at.read(self.ended)
            over = cycle - begin - self.period - self.reads.lost
            if over < 0:
                break
            self.ended += min(count, over // pace + 1) if pace else count

    def _frees(self, word: int) -> bool:
        """Whether all windows with this word were sent; `free` is when they are over then."""
        while self.window < self.v:
            kept, every, count = self.keeps.read(self.window)
            if kept > word:
                break
            self.window += min(count, self.v - self.window, (word - kept) // every + 1 if every else count)
        if self.keeps.read(self.window)[0] <= word:
            return False
        if self.sent < self.window:
            self.free = self.writes.cycle(self.end_of.read(self.window - 1)[0] + self.period - 1) + 1
            self.sent = self.window
        return True

    def copy(self) -> bool:
        """Goes on as it did before, where it is as it was; see `repeats`."""
        k, t, v, reads, writes = self.k, self.t, self.v, self.reads, self.writes
        clocks = *reads.state, *writes.state
        free, lost = max(self.free, t + 1), reads.lost
        if self.ended > self.window:
            self.window = self.sent = self.ended
        ended, window, sent = self.ended, self.window, self.sent
        # From the first window on that may not be over yet, or that the place of the next word waits for.
        old = min(ended, max(window - 1, 0)) if self.full else v
        counts = v - ended, v - window, window - sent, self.need - k
        times = free - t, self.start + lost - t, writes.lost - lost, reads.now - t
        room = (self.kept_at.read(ended)[0] - k, self.keeps.read(window)[0] - k) if self.full else ()
        waiting = reads.waiting(t), writes.waiting(t), self.starts.since(old, t - lost)
        phase = counts, times, room, waiting, k if self.full and k < self.depth else None
        state = k, t, self.arrival.late, self.start, v, ended, window, sent, free, *clocks
        sources = [self.arrival.read(k, t), reads.read(t), writes.read(t), Read(self.every_need, v, k, 1)]
        sources += [Read(self.every_keep, old, k, v - old + 1)] if self.full else []
        made = [Written(self.taken, t), Written(self.out, t - lost), Written(self.starts, t - lost)]
        found = self.again.jump(k, phase, state, sources, made)
        if not found:
            return False
        self.k, self.t, self.arrival.late, self.start, self.v, *rest = found
        self.ended, self.window, self.sent, self.free, *rest = rest
        reads.seek(*rest[:3])
        writes.seek(*rest[3:])
        self.need = self.needs.read(self.v)[0]
        return True

    def run(self) -> Moved:
        while self.k < self.words:
            if self.k == self.again.at and self.again.due(self.k) and self.copy():
                continue
            if not self.store():
                break
            if self.need < self.k:
                self.send()
        return Moved([self.taken], [self.out], self.starts, self.steps)


def windows(memory: Memory, first: int, step: int, lag: int = 0) -> Machine:
    """As `line_buffers.windows`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        return _Windows(memory, first, step, lag, ins[0], outs[0]).run()

    words = (memory.words, memory.depth, memory.period, first, step, lag)
    return Machine(("windows", memory.needs.content(), memory.keeps.content(), *words), run, memory)


def matrix(length: int, repeat: int, tail: int) -> Machine:
    """As `line_buffers.matrix`."""
    depth = 4 if repeat == 1 and length > 2 else 2 * length
    again = repeat > 1

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrival, taken, out, sent = Arrivals(ins[0]), Runs(), Runs(), Runs()
        reads, writes = Clock(out, outs[0].guess), Clock(out, outs[0].guess)
        stands = outs[0].guess is not None
        places = Cursor(sent)
        words, k, t, busy, steps = ins[0].due.count, 0, -1, -1, 0
        while k < words:
            steps += 1
            place = k % length
            if not again:
                first, step, m = arrival.earliest(k, t + 1, [])
                enabled = reads.enabled(first + 2)
                stop = reads.stop()
                if enabled == first + 2 and busy + reads.lost < enabled:
                    # Nothing waits: beats go through as they come, and places are free before they are needed.
                    m = before(stop, enabled, step, m)
                    begin = length - 1 - place
                    ends = (place + m) // length
                    if ends:
                        due = enabled - reads.lost + begin * step + tail
                        fit = reads.room(due, step * length, ends)
                        if fit < ends:
                            m, ends = begin + (fit - 1) * length + 1, fit
                        out.append(due, step * length, ends)
                    taken.append(first, step, m)
                    sent.append(enabled - reads.lost, step, m)
                    k += m
                    t = first + (m - 1) * step
                    busy = sent.last()
                    arrival.took(k - 1, t)
                    continue
            fixed: list[Progression] = []
            least, most = t + 1, length - place
            over = k - depth
            if over >= 0 and (again or over):
                last, pace, count = places.read(over if again else over - 1)
                last -= again and length > 1
                if stands:
                    least, most = max(least, writes.cycle(last) + 1), 1
                else:
                    fixed.append((last + 1, pace))
                    most = min(most, count)
            elif over < 0:
                most = min(most, -over)
            first, step, m = arrival.earliest(k, least, fixed, 1, most)
            enabled = reads.enabled(first + 2)
            m = before(reads.stop(), enabled, step, m) if enabled == first + 2 else 1
            begin, pace, m = latest(busy + 1, 1, m, [(enabled - reads.lost, step)])
            taken.append(first, step, m)
            k += m
            t = first + (m - 1) * step
            arrival.took(k - 1, t)
            busy = begin + (m - 1) * pace
            if not again:
                sent.append(begin, pace, m)
            if k % length == 0:
                out.append(busy + tail, length, repeat)
                busy += (repeat - 1) * length
                if again:
                    sent.append(busy - length + 1, 1, length)
        return Moved([taken], [out], steps=steps)

    return Machine(("matrix", length, repeat, tail), run)
