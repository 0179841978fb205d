"""The units of `line_buffers` once more, for whole runs of beats; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.repeats import Read, Repeats, Written
from hlsgen.cycle_model.run_clock import Clock, before
from hlsgen.cycle_model.run_processes import Machine, Memory, Moved
from hlsgen.cycle_model.run_wires import Arrivals, Progression, Wire
from hlsgen.cycle_model.runs import Cursor, Runs, latest


def windows(memory: Memory, first: int, step: int, lag: int = 0) -> Machine:
    """As `line_buffers.windows`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        period, depth, beats = memory.period, memory.depth, memory.period // step
        arrival, taken, out, starts = Arrivals(ins[0]), Runs(), Runs(), Runs()
        words = ins[0].due.count
        every_need, every_keep = memory.of_frames(-(-words // memory.words) + 1)
        needs, keeps, kept_at = Cursor(every_need), Cursor(every_keep), Cursor(every_keep)
        reads, writes = Clock(out, outs[0].guess), Clock(out, outs[0].guess)
        stored, ends, end_of = Cursor(taken), Cursor(starts), Cursor(starts)
        k, t, start, stands = 0, -1, -period, outs[0].guess is not None
        v = ended = window = sent = free = steps = 0
        again = Repeats(ins[0].stride)
        need, need_step, need_left = needs.read(0)
        while True:
            moved = False
            steps += 1
            # The reading side: windows whose last word is stored.
            while need < k:
                word, pace, count = stored.read(need)
                m, every = need_left, 0
                if need_step:
                    m, every = min(m, (count - 1) // need_step + 1), pace * need_step
                enabled = reads.enabled(word + 1 + lag)
                stop = reads.stop()
                if enabled != word + 1 + lag:
                    m = 1
                elif every:
                    m = before(stop, enabled, every, m)
                start, pace, m = latest(start + period, period, m, [(enabled - reads.lost, every)])
                if stands:
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
                starts.append(start, pace, m)
                start += (m - 1) * pace
                v += m
                need, need_step, need_left = needs.read(v)
                moved = True
            # The writing side: words whose place is free.
            while k < words:
                steps += 1
                again.steps += 1
                if k == again.at and again.due(k):
                    clocks = *reads.state, *writes.state
                    free, lost = max(free, t + 1), reads.lost
                    if ended > window:
                        window = sent = ended
                    # From the first window on that may not be over yet, or that the place of the next word waits for.
                    old = min(ended, max(window - 1, 0)) if depth < words else v
                    counts = v - ended, v - window, window - sent, need - k
                    times = free - t, start + lost - t, writes.lost - lost, reads.now - t
                    room = (kept_at.read(ended)[0] - k, keeps.read(window)[0] - k) if depth < words else ()
                    waiting = reads.waiting(t), writes.waiting(t), starts.since(old, t - lost)
                    phase = counts, times, room, waiting, k if k < depth < words else None
                    state = k, t, arrival.late, start, v, ended, window, sent, free, *clocks
                    sources = [arrival.read(k, t), reads.read(t), writes.read(t), Read(every_need, v, k, 1)]
                    sources += [Read(every_keep, old, k, v - old + 1)] if depth < words else []
                    made = [Written(taken, t), Written(out, t - lost), Written(starts, t - lost)]
                    found = again.jump(k, phase, state, sources, made)
                    if found:
                        k, t, arrival.late, start, v, ended, window, sent, free, *seek = found
                        reads.seek(*seek[:3])
                        writes.seek(*seek[3:])
                        need, need_step, need_left = needs.read(v)
                        moved = True
                        continue
                most = again.at - k
                if k < depth:
                    t, pace, m = arrival.earliest(k, t + 1, [], 1, min(depth - k, most))
                else:
                    offer = arrival.earliest(k, t + 1, [])[0]
                    # All windows that are certainly over by then.
                    now = min(offer, reads.stop())
                    while ended < v:
                        begin, pace, count = ends.read(ended)
                        over = now - begin - period - reads.lost
                        if over < 0:
                            break
                        ended += min(count, over // pace + 1) if pace else count
                    kept = kept_at.read(ended)[0]
                    if kept > k - depth:
                        t, pace, m = arrival.earliest(k, t + 1, [], 1, min(kept + depth - k, most))
                    else:
                        while window < v:
                            kept, every, count = keeps.read(window)
                            if kept > k - depth:
                                break
                            window += min(count, v - window, (k - depth - kept) // every + 1 if every else count)
                        if keeps.read(window)[0] <= k - depth:
                            break
                        if sent < window:
                            free = writes.cycle(end_of.read(window - 1)[0] + period - 1) + 1
                            sent = window
                        t, pace, m = arrival.earliest(k, max(t + 1, free), [], 1, 1)
                taken.append(t, pace, m)
                k += m
                t += (m - 1) * pace
                arrival.took(k - 1, t)
                moved = True
                if need < k:
                    break
            if not moved:
                break
        return Moved([taken], [out], starts, steps)

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
