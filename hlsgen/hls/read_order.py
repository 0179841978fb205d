"""The order in which processes of the C++ library read their inputs, and their iterations per frame.

A process with a buffer reads in a fixed order: no decision depends on the arrival of a beat. While it emits a window it
already reads the beats that the next window adds, as far as its buffer has room for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.flow import BufferFlow, WordWindows, flow_of, needed_beats
from hlsgen.dataflow.units import ConvUnit, Node, PoolUnit, Reorder, SlidingWindow
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class ReadOrder:
    """Windows of a frame of `words` words.

    A window is used for `uses` iterations and emits a beat in every `step`-th of them. In the last `open_uses` of them
    the process reads. `reads`: int64 (windows + 1,), words that each window adds, then those after the last window.
    """

    words: int
    uses: int
    step: int
    open_uses: int
    reads: Array

    @property
    def iterations(self) -> int:
        """Iterations of a frame."""
        in_windows = self.uses - self.open_uses + np.maximum(self.open_uses, self.reads[1:])
        return int(self.reads[0] + in_windows.sum())

    @property
    def read_before(self) -> Array:
        """int64 (result beats,): words that are read before each beat is emitted, or in the same iteration."""
        use = np.arange(self.step - 1, self.uses, self.step)
        during = np.maximum(use + 1 - (self.uses - self.open_uses), 0)
        words_at_start = np.cumsum(self.reads[:-1])
        words = words_at_start[:, None] + np.minimum(during, self.reads[1:, None])
        return np.asarray(np.minimum(words, self.words).ravel())


def read_order(node: Node) -> ReadOrder | None:
    """The order of a process with a buffer, or None."""
    flow = flow_of(node)
    match unit := node.unit:
        case ConvUnit() | PoolUnit():
            assert isinstance(flow, BufferFlow)
            return window_order(flow.windows, flow.period, flow.step, unit.depth)
        case SlidingWindow():
            assert isinstance(flow, BufferFlow)
            return window_order(flow.windows, flow.period, flow.step, unit.rows * unit.columns * unit.folds)
        case Reorder():
            assert isinstance(flow, BufferFlow)
            blocks = node.source.beats // unit.block
            reads = np.array([unit.block] * blocks + [0])
            return ReadOrder(node.source.beats, flow.period, 1, flow.period, reads)
        case _:
            return None


def read_beats(node: Node) -> list[Array]:
    """For each input, int64 (result beats,): beats that the process reads before it emits each beat of a frame."""
    order = read_order(node)
    return needed_beats(node) if order is None else [order.read_before]


def window_order(windows: WordWindows, uses: int, step: int, depth: int) -> ReadOrder:
    """The order of a buffer of `depth` words. A row of windows reads on into the next row, if there is room."""
    window, width, folds = windows.window, windows.width, windows.folds
    first = window.reach[1] - 1 - window.pads[1]
    next_row = min(max(first, 0), width - 1) + width
    limit = next_row if _span(windows, next_row) <= depth else width - 1
    ends = (_newest_rows(windows)[:, None] * width + _newest_columns(windows, limit) + 1) * folds
    ends = np.maximum.accumulate(ends.ravel())
    after = max(0, windows.words - int(ends[-1]))
    open_uses = min(uses, depth - _span(windows, limit) + 1)
    assert open_uses > 0
    return ReadOrder(windows.words, uses, step, open_uses, np.diff(ends, prepend=0, append=ends[-1] + after))


def _newest_rows(windows: WordWindows) -> Array:
    """The last row that each row of windows needs."""
    return np.array(windows.last_rows)


def _newest_columns(windows: WordWindows, limit: int) -> Array:
    """The last column that each column of windows needs, at most `limit`."""
    window = windows.window
    count = window.size(windows.height, windows.width)[1]
    start = window.reach[1] - 1 - window.pads[1]
    return np.clip(start + np.arange(count) * window.strides[1], 0, limit)


def _span(windows: WordWindows, limit: int) -> int:
    """Largest number of words from the oldest one that a window or a later one needs to its newest one."""
    window, height, width = windows.window, windows.height, windows.width
    rows, columns = window.size(height, width)
    starts = np.arange(rows) * window.strides[0] - window.pads[0]
    is_kept = (starts < height) & ((starts + window.strides[0] > 0) | (np.arange(rows) == rows - 1))
    oldest_columns = np.clip(np.arange(columns) * window.strides[1] - window.pads[1], 0, width)
    newest_columns = _newest_columns(windows, limit)
    in_row = np.where(is_kept, (newest_columns - oldest_columns).max(), newest_columns[-1])
    lines = (_newest_rows(windows) - np.clip(starts, 0, height)) * width
    return int((lines + in_row + 1).max()) * windows.folds
