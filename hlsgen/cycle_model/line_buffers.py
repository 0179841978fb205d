"""Units that keep words to send them more than once: windows, blocks, vectors. See `processes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hlsgen.cycle_model.processes import Process, Wire
from hlsgen.dataflow.units import ConvUnit, SlidingWindow, WindowUnit
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array


@dataclass
class Buffer:
    """The memory of a unit that sends a window (a block) after the other.

    Window v of a frame may start when word needs[v] of the frame is stored; while it is awaited or
    sent, words from keeps[v] on are kept. A frame is `words` words, a window takes `period` enabled
    cycles, starts[v] is the enabled cycle in which window v (of all frames) began.
    """

    needs: Sequence[int]
    keeps: Sequence[int]
    words: int
    depth: int
    period: int
    starts: list[int] = field(default_factory=list)


def windows(wire: Wire, result: Wire, buffer: Buffer, first: int, step: int) -> Process:
    """A unit with an enable behind a memory that is written without it: hg_conv, hg_dwconv, hg_pool, hg_gather.

    A window gives a beat every `step` enabled cycles of its period, the first one `first` enabled cycles
    after it began. Words are written from the cycle after the one in which the last word was sent of
    the last window that needs their place.
    """
    due, taken, frozen, out, gone = wire.due, wire.taken, wire.frozen, result.due, result.taken
    starts, words, period, depth = buffer.starts, buffer.words, buffer.period, buffer.depth
    needs, keeps = list(buffer.needs), list(buffer.keeps)
    count = len(needs)
    k = late = 0  # words
    t = -1
    v, base, need = 0, 0, needs[0]  # window, first word of its frame, last word that it needs
    left = lost = 0  # beats known to be gone, cycles lost by them
    u, keep, free, freed = 0, keeps[0], 0, 0  # window that is being sent when a word is written; first cycle of it
    back = back_lost = 0
    while True:
        moved = False
        while need < k:
            t_full = taken[need] + 1
            start = starts[-1] + period if starts else 0
            if t_full - lost > start:
                while left < len(out) and left < len(gone) and out[left] + lost <= t_full:
                    lost = gone[left] - out[left]
                    if gone[left] > t_full:
                        t_full = gone[left]
                    left += 1
                if left < len(out) and out[left] + lost <= t_full:
                    break
                if t_full - lost > start:
                    start = t_full - lost
            starts.append(start)
            out.extend(range(start + first, start + first + period, step))
            v += 1
            if v % count == 0:
                base += words
            need = base + needs[v % count]
            moved = True
        while k < len(due):
            while keep <= k - depth and u < v:
                u += 1
                keep = u // count * words + keeps[u % count]
            if keep <= k - depth:
                break
            if freed < u:
                end = starts[u - 1] + period - 1
                while back < len(out) and back < len(gone) and out[back] <= end:
                    back_lost = gone[back] - out[back]
                    back += 1
                if back < len(out) and out[back] <= end:
                    break
                free, freed = end + back_lost + 1, u
            t = due[k] + late if frozen else (due[k] if due[k] > t else t + 1)
            if free > t:
                t = free
            taken.append(t)
            late = t - due[k]
            k += 1
            moved = True
        if not moved:
            yield


def matrix(wire: Wire, result: Wire, length: int, repeat: int, tail: int) -> Process:
    """hg_mvu: vectors of `length` beats, each sent `repeat` times; the sum of the last beat that is sent
    in enabled cycle c is offered in c + tail.

    The register between buffer and multipliers fills in lost cycles too.
    """
    due, taken, frozen, out, gone = wire.due, wire.taken, wire.frozen, result.due, result.taken
    depth = 4 if repeat == 1 and length > 2 else 2 * length
    sent: list[int] = []  # enabled cycle in which each beat is multiplied for the last time
    k = late = 0
    t = last = -1
    read, place = 0, 0
    left = lost = back = back_lost = 0
    while True:
        moved = False
        while read < k:
            t_read = taken[read] + 2
            while left < len(out) and left < len(gone) and out[left] + lost <= t_read:
                lost = gone[left] - out[left]
                t_read = max(t_read, gone[left])
                left += 1
            if left < len(out) and out[left] + lost <= t_read:
                break
            last = max(t_read - lost, last + 1)
            read += 1
            place += 1
            moved = True
            if repeat == 1:
                sent.append(last)
            if place == length:
                place = 0
                out.extend(range(last + tail, last + tail + repeat * length, length))
                last += (repeat - 1) * length
                if repeat > 1:
                    sent.extend(range(last - length + 1, last + 1))
        while k < len(due):
            ready = due[k] + late if frozen else (due[k] if due[k] > t else t + 1)
            if k >= depth:
                # Its place is read when the beat before it goes on to the multipliers, or later.
                if len(sent) < k - depth + (repeat > 1):
                    break
                before = sent[k - depth] - 1 if repeat > 1 else (sent[k - depth - 1] if k > depth else -1)
                while back < len(out) and back < len(gone) and out[back] <= before:
                    back_lost = gone[back] - out[back]
                    back += 1
                if back < len(out) and out[back] <= before:
                    break
                ready = max(ready, before + back_lost + 1)
            t = ready
            taken.append(t)
            late = t - due[k]
            k += 1
            moved = True
        if not moved:
            yield


def window_words(window: Window, height: int, width: int, folds: int) -> tuple[list[int], list[int]]:
    """(last word that each window of an image needs, first word that is kept while it is sent), see hg_window.

    A pixel is `folds` words.
    """
    rows, columns = window.size(height, width)
    (tall, wide), (down, across), (top, left, *_) = window.reach, window.strides, window.pads
    needs, keeps = [], []
    for oy in range(rows):
        y = oy * down - top
        newest = min(max(y + tall - 1, 0), height - 1) * width
        oldest = min(max(y, 0), height) * width
        kept = y < height and (y + down > 0 or oy == rows - 1)
        for ox in range(columns):
            x = ox * across - left
            needs.append((newest + min(max(x + wide - 1, 0), width - 1) + 1) * folds - 1)
            keeps.append((oldest + (min(max(x, 0), width) if kept else 0)) * folds)
    return needs, keeps


def words_of(unit: WindowUnit) -> tuple[list[int], list[int], int]:
    """`window_words` of a unit, and the words of an image."""
    if isinstance(unit, SlidingWindow):
        window, width, folds = unit.span, unit.across, unit.folds
    else:
        window, width = unit.window, unit.width
        folds = unit.groups * unit.folds if isinstance(unit, ConvUnit) else unit.folds
    return *window_words(window, unit.height, width, folds), unit.height * width * folds


def least_depth(unit: WindowUnit) -> int:
    """Words that the memory of a unit with windows has to have."""
    needs, keeps, _ = words_of(unit)
    return max(need - keep for need, keep in zip(needs, keeps, strict=True)) + 1


def span(buffer: Buffer, taken: Array, out: Wire) -> int:
    """Most words from the oldest that is kept to the newest."""
    due = np.array(out.due[: len(out.taken)], np.int64)
    lost: Array = np.concatenate([[0], np.array(out.taken, np.int64) - due])
    last = np.array(buffer.starts, np.int64) + buffer.period - 1
    last += lost[np.searchsorted(due, last, "right")]
    window = np.searchsorted(last, taken)
    frame, place = np.divmod(window, len(buffer.keeps))
    kept = frame * buffer.words + np.array(buffer.keeps, np.int64)[place]
    return int((np.arange(len(taken)) - kept).max(initial=0)) + 1
