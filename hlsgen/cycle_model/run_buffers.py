"""The units of `line_buffers` again, for whole runs of beats; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.repeats import Read, Repeats, Written
from hlsgen.cycle_model.run_clock import Clock, count_before
from hlsgen.cycle_model.run_processes import Machine, Memory, UnitTimes
from hlsgen.cycle_model.run_wires import Arrivals, Progression, Wire
from hlsgen.cycle_model.runs import Cursor, Runs, latest


class _Windows:
    """A unit with a window memory and its state while all beats pass.

    Words are stored in order when their place is free; a window is emitted when its last word is stored.
    """

    def __init__(self, memory: Memory, first: int, step: int, lag: int, enters: Wire, leaves: Wire) -> None:
        self.first, self.step, self.lag = first, step, lag
        self.period, self.depth, self.beats = memory.period, memory.depth, memory.period // step
        self.words, self.may_stall = enters.due.count, leaves.guess is not None
        self.full = memory.depth < self.words
        self.arrival, self.consumed, self.out, self.starts = Arrivals(enters), Runs(), Runs(), Runs()
        self.needed_words, self.kept_words = memory.of_frames(-(-self.words // memory.words) + 1)
        self.needs, self.keeps, self.kept_at = (
            Cursor(self.needed_words),
            Cursor(self.kept_words),
            Cursor(self.kept_words),
        )
        self.reads, self.writes = Clock(self.out, leaves.guess), Clock(self.out, leaves.guess)
        self.stored, self.ended_at, self.end_of = Cursor(self.consumed), Cursor(self.starts), Cursor(self.starts)
        self.repeats, self.steps = Repeats(enters.stride), 0
        #: The next word, and the cycle in which the previous word was consumed.
        self.k, self.t = 0, -1
        #: The next window, the number of its last word, and the cycle in which the previous window began.
        self.v, self.need, self.start = 0, self.needs.read(0)[0], -memory.period
        #: `ended`: windows that have certainly ended. `window`: windows that must end before the next word is stored.
        #: `free`: the first cycle after window `sent` - 1, the last one of these for which it is known.
        self.ended = self.window = self.sent = self.free = 0

    def emit(self) -> None:
        """Emits the windows whose last word is stored."""
        first, step, period, beats, reads, out = self.first, self.step, self.period, self.beats, self.reads, self.out
        need, need_step, m = self.needs.read(self.v)
        while need < self.k:
            self.steps += 1
            word, spacing, count = self.stored.read(need)
            need_spacing = 0
            if need_step:
                m, need_spacing = min(m, (count - 1) // need_step + 1), spacing * need_step
            enabled = reads.enabled(word + 1 + self.lag)
            stop = reads.stop()
            if enabled != word + 1 + self.lag:
                m = 1
            elif need_spacing:
                m = count_before(stop, enabled, need_spacing, m)
            start, spacing, m = latest(self.start + period, period, m, [(enabled - reads.lost, need_spacing)])
            if self.may_stall:
                if beats == 1:
                    m = reads.room(start + first, spacing, m)
                elif spacing == period:
                    m = -(-reads.room(start + first, step, m * beats) // beats)
                else:
                    m = 1
            if beats == 1:
                out.append(start + first, spacing, m)
            elif spacing == period:
                out.append(start + first, step, m * beats)
            else:
                for n in range(m):
                    out.append(start + first + n * spacing, step, beats)
            self.starts.append(start, spacing, m)
            self.start = start + (m - 1) * spacing
            self.v += m
            need, need_step, m = self.needs.read(self.v)
        self.need = need

    def store(self) -> bool:
        """Consumes the next words with one spacing, as many as possible.

        Returns False if the place of the first word is not free yet.
        """
        self.steps += 1
        self.repeats.steps += 1
        k, depth, arrival = self.k, self.depth, self.arrival
        lower_bound, max_count = self.t + 1, self.repeats.at - k
        if k < depth:
            max_count = min(max_count, depth - k)
        else:
            self._end(min(arrival.earliest(k, lower_bound, [])[0], self.reads.stop()))
            oldest_kept = self.kept_at.read(self.ended)[0]
            if oldest_kept > k - depth:
                max_count = min(max_count, oldest_kept + depth - k)
            elif self._frees(k - depth):
                lower_bound, max_count = max(lower_bound, self.free), 1
            else:
                return False
        t, spacing, m = arrival.earliest(k, lower_bound, [], 1, max_count)
        self.consumed.append(t, spacing, m)
        self.k += m
        self.t = t + (m - 1) * spacing
        arrival.consume(self.k - 1, self.t)
        return True

    def _end(self, cycle: int) -> None:
        """Counts the windows that have certainly ended at this cycle."""
        while self.ended < self.v:
            begin, spacing, count = self.ended_at.read(self.ended)
            elapsed = cycle - begin - self.period - self.reads.lost
            if elapsed < 0:
                break
            self.ended += min(count, elapsed // spacing + 1) if spacing else count

    def _frees(self, word: int) -> bool:
        """True if all windows with this word were emitted; `free` is then the first cycle after them."""
        while self.window < self.v:
            oldest_kept, kept_step, count = self.keeps.read(self.window)
            if oldest_kept > word:
                break
            self.window += min(
                count, self.v - self.window, (word - oldest_kept) // kept_step + 1 if kept_step else count
            )
        if self.keeps.read(self.window)[0] <= word:
            return False
        if self.sent < self.window:
            self.free = self.writes.cycle(self.end_of.read(self.window - 1)[0] + self.period - 1) + 1
            self.sent = self.window
        return True

    def copy(self) -> bool:
        """Repeats earlier behaviour if the state equals an earlier state; see `repeats`."""
        k, t, v, reads, writes = self.k, self.t, self.v, self.reads, self.writes
        clocks = *reads.state, *writes.state
        free, lost = max(self.free, t + 1), reads.lost
        if self.ended > self.window:
            self.window = self.sent = self.ended
        ended_windows, window, sent_windows = self.ended, self.window, self.sent
        # The first window that may not have ended yet, or that the place of the next word waits for.
        old = min(ended_windows, max(window - 1, 0)) if self.full else v
        counts = v - ended_windows, v - window, window - sent_windows, self.need - k
        times = free - t, self.start + lost - t, writes.lost - lost, reads.now - t
        room = (self.kept_at.read(ended_windows)[0] - k, self.keeps.read(window)[0] - k) if self.full else ()
        buffered = reads.buffered(t), writes.buffered(t), self.starts.since(old, t - lost)
        phase = counts, times, room, buffered, k if self.full and k < self.depth else None
        state = k, t, self.arrival.lateness, self.start, v, ended_windows, window, sent_windows, free, *clocks
        sources = [self.arrival.read(k, t), reads.read(t), writes.read(t), Read(self.needed_words, v, k, 1)]
        sources += [Read(self.kept_words, old, k, v - old + 1)] if self.full else []
        written = [Written(self.consumed, t), Written(self.out, t - lost), Written(self.starts, t - lost)]
        jumped = self.repeats.jump(k, phase, state, sources, written)
        if not jumped:
            return False
        self.k, self.t, self.arrival.lateness, self.start, self.v, *remaining = jumped
        self.ended, self.window, self.sent, self.free, *remaining = remaining
        reads.seek(*remaining[:3])
        writes.seek(*remaining[3:])
        self.need = self.needs.read(self.v)[0]
        return True

    def run(self) -> UnitTimes:
        """Moves all beats."""
        while self.k < self.words:
            if self.k == self.repeats.at and self.repeats.due(self.k) and self.copy():
                continue
            if not self.store():
                break
            if self.need < self.k:
                self.emit()
        return UnitTimes([self.consumed], [self.out], self.starts, self.steps)


def windows(memory: Memory, first: int, step: int, lag: int = 0) -> Machine:
    """As `line_buffers.windows`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        return _Windows(memory, first, step, lag, ins[0], outs[0]).run()

    words = (memory.words, memory.depth, memory.period, first, step, lag)
    return Machine(("windows", memory.needs.content(), memory.keeps.content(), *words), run, memory)


def matrix(length: int, repeat: int, tail: int) -> Machine:
    """As `line_buffers.matrix`."""
    depth = 4 if repeat == 1 and length > 2 else 2 * length
    repeated = repeat > 1

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrival, consumed, out, multiplied_at = Arrivals(ins[0]), Runs(), Runs(), Runs()
        reads, writes = Clock(out, outs[0].guess), Clock(out, outs[0].guess)
        may_stall = outs[0].guess is not None
        places = Cursor(multiplied_at)
        words, k, t, last_busy, steps = ins[0].due.count, 0, -1, -1, 0
        while k < words:
            steps += 1
            vector_place = k % length
            if not repeated:
                first, step, m = arrival.earliest(k, t + 1, [])
                enabled = reads.enabled(first + 2)
                stop = reads.stop()
                if enabled == first + 2 and last_busy + reads.lost < enabled:
                    # No stall: beats pass as they arrive, and places are free before they are needed.
                    m = count_before(stop, enabled, step, m)
                    begin = length - 1 - vector_place
                    ends = (vector_place + m) // length
                    if ends:
                        due = enabled - reads.lost + begin * step + tail
                        fit = reads.room(due, step * length, ends)
                        if fit < ends:
                            m, ends = begin + (fit - 1) * length + 1, fit
                        out.append(due, step * length, ends)
                    consumed.append(first, step, m)
                    multiplied_at.append(enabled - reads.lost, step, m)
                    k += m
                    t = first + (m - 1) * step
                    last_busy = multiplied_at.last()
                    arrival.consume(k - 1, t)
                    continue
            fixed: list[Progression] = []
            lower_bound, max_count = t + 1, length - vector_place
            overwritten = k - depth
            if overwritten >= 0 and (repeated or overwritten):
                last_read, spacing, count = places.read(overwritten if repeated else overwritten - 1)
                last_read -= repeated and length > 1
                if may_stall:
                    lower_bound, max_count = max(lower_bound, writes.cycle(last_read) + 1), 1
                else:
                    fixed.append((last_read + 1, spacing))
                    max_count = min(max_count, count)
            elif overwritten < 0:
                max_count = min(max_count, -overwritten)
            first, step, m = arrival.earliest(k, lower_bound, fixed, 1, max_count)
            enabled = reads.enabled(first + 2)
            m = count_before(reads.stop(), enabled, step, m) if enabled == first + 2 else 1
            begin, spacing, m = latest(last_busy + 1, 1, m, [(enabled - reads.lost, step)])
            consumed.append(first, step, m)
            k += m
            t = first + (m - 1) * step
            arrival.consume(k - 1, t)
            last_busy = begin + (m - 1) * spacing
            if not repeated:
                multiplied_at.append(begin, spacing, m)
            if k % length == 0:
                out.append(last_busy + tail, length, repeat)
                last_busy += (repeat - 1) * length
                if repeated:
                    multiplied_at.append(last_busy - length + 1, 1, length)
        return UnitTimes([consumed], [out], steps=steps)

    return Machine(("matrix", length, repeat, tail), run)
