"""hg_unfold: windows against numpy, every cycle against the rules of hg_window_flow and `hlsgen.windows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from players import Player, Stimulus, play
from streams import SIMULATORS, integers, mac_latency, memory, pack
from windows import Geometry

from hlsgen.cycle_model.line_buffers import Buffer, window_lists, windows
from hlsgen.cycle_model.processes import Wire
from hlsgen.dataflow.flow import word_windows
from hlsgen.dataflow.units import SlidingWindow
from hlsgen.ir.window import Window

LATENCY = 2


def in_words(g: Geometry, pixels: int, windows: int) -> Geometry:
    """The same with words for pixels and beats for windows; SPAN of hg_unfold for KW."""
    left = -(-g.pl // pixels)
    last = left * pixels - g.pl + (windows - 1) * g.sw + (g.kw - 1) * g.dw
    across, beats = -(-g.width // pixels), -(-g.out_w // windows)
    return replace(g, width=across, kw=last // pixels + 1, dw=1, sw=windows * g.sw // pixels, pl=left, out_w=beats)


@dataclass(frozen=True)
class Case:
    """Geometry without groups and repetitions, and the other parameters in lower case."""

    geometry: Geometry
    columns: int
    unit: int
    lanes: int
    pad: int
    more_rows: int = 0
    pixels: int = 1
    windows: int = 1

    @property
    def span(self) -> Geometry:
        return in_words(self.geometry, self.pixels, self.windows)

    @property
    def rows(self) -> int:
        return 1 if self.geometry.kh == 1 else (self.geometry.kh - 1) * self.geometry.dh + 1 + self.more_rows

    @property
    def kept(self) -> int:
        return self.columns if self.geometry.kh == 1 else self.span.width

    @property
    def depth(self) -> int:
        return self.rows * self.kept * self.geometry.folds

    @property
    def beats(self) -> int:
        """Of an image."""
        return self.span.windows * self.geometry.folds

    def parameters(self) -> dict[str, object]:
        names = ("height", "width", "kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl", "out_h", "out_w", "folds")
        values: dict[str, object] = {name.upper(): getattr(self.geometry, name) for name in names}
        values |= {"ROWS": self.rows, "COLUMNS": self.kept, "UNIT": self.unit, "LANES": self.lanes}
        values |= {"PIXELS": self.pixels, "WINDOWS": self.windows}
        return values | {"PAD": f"{self.unit}'d{self.pad}"}

    def data(self, rng: np.random.Generator, words: int) -> npt.NDArray[np.int64]:
        """Words (words, pixels * lanes), of which those at the end of rows have elements without a pixel."""
        return integers(rng, self.unit, False, (words, self.pixels * self.lanes))

    def results(self, data: npt.NDArray[np.int64]) -> list[int]:
        """Output beats for whole images, 0 where any value is allowed."""
        g = self.geometry
        images = data.reshape(-1, g.height, self.span.width, g.folds, self.pixels, self.lanes)
        images = images.swapaxes(3, 4).reshape(len(images), g.height, -1, g.folds, self.lanes)[:, :, : g.width]
        below = max(0, (g.out_h - 1) * g.sh + (g.kh - 1) * g.dh + 1 - g.pt - g.height)
        right = max(0, (g.out_w - 1) * g.sw + (g.kw - 1) * g.dw + 1 - g.pl - g.width)
        images = np.pad(images, ((0, 0), (g.pt, below), (g.pl, right), (0, 0), (0, 0)), constant_values=self.pad)
        window_elements = np.empty((len(images), g.out_h, g.out_w, g.folds, g.kh, g.kw, self.lanes), np.int64)
        for oy in range(g.out_h):
            for ox in range(g.out_w):
                y, x = oy * g.sh, ox * g.sw
                window = images[:, y : y + g.kh * g.dh : g.dh, x : x + g.kw * g.dw : g.dw]
                window_elements[:, oy, ox] = window.transpose(0, 3, 1, 2, 4)
        return self.adjacent_windows(window_elements)

    def masks(self) -> list[int]:
        """The bits of the beats of an image that belong to windows."""
        g = self.geometry
        return self.adjacent_windows(np.full((1, g.out_h, g.out_w, g.folds, g.kh, g.kw, self.lanes), -1))

    def adjacent_windows(self, window_elements: npt.NDArray[np.int64]) -> list[int]:
        """Beats of windows (images, out_h, out_w, folds, kh, kw, lanes)."""
        images, rows, columns, *window = window_elements.shape
        beats = np.zeros((images, rows, self.span.out_w * self.windows, *window), np.int64)
        beats[:, :, :columns] = window_elements
        beats = np.moveaxis(beats.reshape(images, rows, -1, self.windows, *window), 3, 6)
        return pack(beats.reshape(images * self.beats, -1), self.unit)

    def player(self, x: npt.NDArray[np.int64], played: Sequence[Stimulus]) -> Player:
        word = self.unit * self.lanes
        out = self.geometry.kh * self.geometry.kw * self.windows * word
        return Player("hg_unfold", self.parameters(), {}, self.pixels * word, out, pack(x, self.unit), played)


def ring(g: Geometry, extra_words: int = 0) -> int:
    """COLUMNS for a kernel with one row: the minimum plus `extra_words`."""
    return -(-(-(-g.min_depth() // g.folds) + extra_words) // g.kw) * g.kw


IMAGE = Geometry(6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 6, 5, 1, 2, 1)
ONE = replace(IMAGE, folds=1)
POINT = replace(ONE, height=1, width=1, kh=1, kw=1, pt=0, pl=0, out_h=1, out_w=1)
SIGNAL = replace(ONE, height=1, width=19, kh=1, kw=4, sw=1, pt=0, pl=3, out_h=1, out_w=19)
BESIDE = replace(ONE, width=8, out_w=8)
INSIDE = replace(ONE, height=4, width=30, pt=0, pl=0, out_h=2, out_w=28)
HALF = replace(BESIDE, sh=2, sw=2, out_h=3, out_w=4)
#: All that is worth a name; random ones follow.
NAMED = [
    Case(IMAGE, 5, 4, 2, 3),
    Case(IMAGE, 5, 4, 2, 3, 1),
    Case(ONE, 5, 3, 1, 5),
    Case(replace(ONE, height=4, out_h=4, width=33, out_w=17, sw=2), 33, 2, 2, 0),
    Case(replace(ONE, height=3, out_h=3, width=65, out_w=65), 65, 4, 1, 9),  # column banks, not copies
    Case(replace(ONE, height=4, width=67, pt=0, pl=0, out_h=2, out_w=65), 67, 2, 1, 1),  # a row ends in front of bank 0
    Case(replace(IMAGE, height=3, out_h=3, width=35, out_w=35, kw=2, folds=3), 35, 2, 1, 1),
    Case(replace(ONE, height=5, width=23, kh=5, kw=5, out_h=3, out_w=21, folds=4), 23, 1, 2, 1),
    Case(replace(SIGNAL, width=75, out_w=75), 68, 3, 1, 2),
    Case(replace(SIGNAL, width=75, kw=9, pl=4, out_w=75, folds=6), 18, 1, 1, 1),
    Case(POINT, 1, 1, 1, 0),
    Case(SIGNAL, ring(SIGNAL), 3, 2, 1),
    Case(replace(SIGNAL, kw=5, sw=3, pl=2, out_w=7, folds=3), 15, 2, 1, 3),
    Case(replace(ONE, kh=2, kw=2, pt=0, pl=0, sh=2, sw=2, out_h=3, out_w=2), 5, 4, 2, 0),  # a column left over
    Case(replace(ONE, kh=3, kw=1, pl=0), 5, 4, 1, 7),
    Case(replace(ONE, kh=1, kw=3, pt=0), 6, 4, 1, 7),  # rows of an image, no slots
    Case(replace(ONE, sh=4, sw=5, out_h=2, out_w=1), 5, 4, 1, 7),  # gaps
    Case(replace(ONE, height=2, width=2, kh=5, kw=7, pt=2, pl=3, out_h=2, out_w=2), 2, 3, 1, 6),  # larger than images
    Case(replace(IMAGE, pt=7, pl=8, out_h=17, out_w=18), 5, 2, 1, 1, 3),  # windows without a pixel
    Case(BESIDE, 4, 3, 2, 5, pixels=2, windows=2),
    Case(BESIDE, 2, 4, 1, 9, 1, pixels=4, windows=4),
    Case(HALF, 4, 3, 2, 6, pixels=2, windows=1),
    Case(replace(INSIDE, width=7, out_w=5), 4, 4, 1, 1, 2, pixels=2, windows=2),  # half a word, half a beat left over
    Case(replace(SIGNAL, width=20, out_w=20), 6, 3, 1, 4, pixels=2, windows=2),
    Case(replace(BESIDE, height=3, out_h=3, width=134, out_w=134), 67, 2, 1, 3, pixels=2, windows=2),
    Case(HALF, 2, 1, 3, 1, pixels=4, windows=2),
    Case(INSIDE, 8, 2, 1, 1, pixels=4, windows=4),
    Case(replace(BESIDE, width=12, out_w=12), 6, 2, 2, 2, pixels=2, windows=8),
    Case(replace(BESIDE, out_w=7), 8, 2, 1, 1, windows=3),
    Case(replace(SIGNAL, height=3, out_h=3, width=13, pl=1, out_w=11), 12, 2, 2, 3, pixels=3, windows=3),
    Case(replace(SIGNAL, width=160, sw=2, out_w=80), 68, 2, 1, 1, pixels=2, windows=2),
    Case(replace(BESIDE, pl=5, out_w=12), 4, 2, 1, 2, pixels=2, windows=2),
    Case(replace(BESIDE, width=6, out_w=6), 1, 3, 1, 7, pixels=6, windows=6),
    Case(replace(HALF, width=4, kw=4, sw=4, pl=0, out_w=1), 1, 3, 1, 7, pixels=4, windows=1),
    Case(replace(IMAGE, dh=2, dw=3, pt=2, pl=3), 5, 2, 2, 3),
    Case(replace(SIGNAL, dw=2, pl=6), 8, 3, 1, 2),
    Case(replace(BESIDE, dh=3, dw=2, pt=3, pl=2), 4, 2, 1, 1, pixels=2, windows=2),
]


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    beyond = bool(rng.random() < 0.2)

    def axis() -> tuple[int, int, int, int, int, int]:
        size, kernel = int(rng.choice([1, 2, 3, 4, 5, 7, 11, 20])), int(rng.choice([1, 1, 2, 3, 3, 4, 5]))
        stride, dilation = int(rng.choice([1, 1, 2, 3, 5])), int(rng.choice([1, 1, 1, 2, 3]))
        reach = (kernel - 1) * dilation + 1
        pad_before = int(rng.integers(0, reach + 3 if beyond else reach))
        after = max(int(rng.integers(0, reach + 3 if beyond else reach)), reach - size - pad_before)
        return size, kernel, stride, dilation, pad_before, (size + pad_before + after - reach) // stride + 1

    (height, kh, sh, dh, pt, out_h), (width, kw, sw, dw, pl, out_w) = axis(), axis()
    folds, lanes, unit = int(rng.choice([1, 1, 2, 3, 4])), int(rng.integers(1, 4)), int(rng.integers(1, 7))
    g = Geometry(height, width, kh, kw, sh, sw, dh, dw, pt, pl, out_h, out_w, 1, folds, 1)
    extra_words, extra = int(rng.choice([0, 0, 1, 5, 12, 40])), int(rng.choice([0, 0, 1, 2, 5]))
    pad = int(rng.integers(0, 1 << unit))
    pixels = windows = 1
    if rng.random() < 0.6:
        inside = (out_w - 1) * sw + (kw - 1) * dw + 1 - pl <= width
        sizes = [p for p in range(1, width + 1) if inside or width % p == 0]
        choice = {p: fit for p in sizes if (fit := [w for w in range(1, min(out_w, 6) + 1) if w * sw % p == 0])}
        pixels = int(rng.choice(list(choice)[len(choice) > 1 :]))
        windows = int(rng.choice(choice[pixels]))
        g = replace(g, folds=1 if pixels * windows > 1 else folds)
    columns = ring(in_words(g, pixels, windows), extra_words) if kh == 1 else width
    return Case(g, columns, unit, lanes, pad, extra, pixels, windows)


def stimuli(rng: np.random.Generator, cycles: int) -> list[Stimulus]:
    """Full rate first, then stretches of other rates on both sides, and between some of them a reset."""
    rows: list[Stimulus] = [(1, 1, 0), (1, 0, 1)]
    offer = take = 1.0
    while len(rows) < cycles:
        length = int(rng.integers(cycles // 6, cycles // 3))
        rows += [(0, int(a < offer), int(b < take)) for a, b in rng.random((length, 2))]
        offer, take = (float(rng.choice([1.0, 1.0, 0.8, 0.5, 0.15])) for _ in range(2))
        if rng.random() < 0.2:
            rows.append((1, 1, 1))
    return rows[:cycles]


def simulate_cycles(case: Case, played: Sequence[Stimulus]) -> list[tuple[int, int, int, int]]:
    """Every cycle's (s_ready, m_valid, beats since reset, words taken up to this reset)."""
    g = case.span
    newest, oldest = g.newest(), g.oldest()
    trace = []
    total = window = fold = accepted = beats = start = 0
    pipe = [False] * LATENCY
    for rst, s_valid, m_ready in played:
        image, place = divmod(window, g.windows)
        m_valid = pipe[-1]
        en = m_ready or not m_valid
        s_ready = accepted - (image * g.words + oldest[place]) < case.depth
        trace.append((int(s_ready), int(m_valid), beats, start))
        if rst:
            window = fold = accepted = beats = 0
            start = total
            pipe = [False] * LATENCY
            continue
        issue = en and (fold > 0 or accepted > image * g.words + newest[place])
        if en:
            beats += m_valid
            pipe = [bool(issue), *pipe[:-1]]
        if issue:
            fold += 1
            if fold == g.folds:
                window, fold = window + 1, 0
        if s_valid and s_ready:
            accepted, total = accepted + 1, total + 1
    return trace


def check(simulator: str, cases: Sequence[Case], folder: Path) -> None:
    """Compares every cycle of every case."""
    players, expected = [], []
    for k, case in enumerate(cases):
        rng = np.random.default_rng(k)
        words = case.span.words
        played = stimuli(rng, 300 + 4 * max(words, case.beats))
        trace = simulate_cycles(case, played)
        x = case.data(rng, (len(played) // words + 2) * words)
        images_by_start = {start: x[start:][: (len(x) - start) // words * words] for start in {row[3] for row in trace}}
        players.append(case.player(x, played))
        expected.append((trace, {start: case.results(some) for start, some in images_by_start.items()}))
    for case, records, (trace, results) in zip(cases, play(simulator, players, folder), expected, strict=True):
        assert len(records) == len(trace)
        assert max(beats for _, _, beats, _ in trace) >= case.beats, "no image came through"
        masks = case.masks()
        # Nothing is known before the first reset.
        for cycle, (row, (s_ready, m_valid, beat, start)) in list(enumerate(zip(records, trace, strict=True)))[1:]:
            context = f"{case}, cycle {cycle}"
            assert row[:2] == (str(s_ready), str(m_valid)), context
            assert not m_valid or int(row[2], 16) & masks[beat % case.beats] == results[start][beat], context


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "simulator, cases", [("icarus", NAMED[::2]), ("icarus", NAMED[1::2]), ("verilator", NAMED[:24])]
)
def test_named(simulator: str, cases: Sequence[Case], tmp_path: Path) -> None:
    check(simulator, cases, tmp_path)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, first, count", [("icarus", 0, 45), ("verilator", 45, 8)])
def test_random(simulator: str, first: int, count: int, tmp_path: Path) -> None:
    check(simulator, [random_case(seed) for seed in range(first, first + count)], tmp_path)


def predicted(case: Case, due: Sequence[int], ready: Sequence[bool]) -> tuple[list[int], list[int], list[int]]:
    """Cycles in which words are taken, beats are offered and taken, as the timing model of builds has them.

    Word k is offered from cycle due[k] on, and somebody takes in cycle t if ready[t].
    """
    g = case.geometry
    below = max(0, (g.out_h - 1) * g.sh + (g.kh - 1) * g.dh + 1 - g.pt - g.height)
    right = max(0, (g.out_w - 1) * g.sw + (g.kw - 1) * g.dw + 1 - g.pl - g.width)
    window = Window((g.kh, g.kw), (g.sh, g.sw), (g.dh, g.dw), (g.pt, g.pl, below, right))
    assert window.size(g.height, g.width) == (g.out_h, g.out_w)
    sizes = case.rows, case.kept, case.pixels, case.windows
    node = SlidingWindow(window, g.height, g.width, g.folds, case.pad, *sizes)
    flow = word_windows(node)
    needs, keeps = window_lists(flow)
    wire, result = Wire("s", frozen=False), Wire("m", frozen=True)
    wire.due.extend(due)
    unit = windows(wire, result, Buffer(needs, keeps, flow.words, node.depth, node.period), first=LATENCY, step=1)
    offers: list[int] = []
    lost, moved = 0, True
    while moved:
        known_counts = len(wire.consumed), len(result.due)
        next(unit)
        while len(offers) < len(result.due) and result.due[len(offers)] + lost < len(ready):
            offers.append(result.due[len(offers)] + lost)
            result.consumed.append(next((t for t in range(offers[-1], len(ready)) if ready[t]), len(ready)))
            lost += result.consumed[-1] - offers[-1]
        moved = known_counts != (len(wire.consumed), len(result.due)) or len(offers) > len(result.consumed)
    return wire.consumed, offers, result.consumed


def test_timing_model(tmp_path: Path) -> None:
    """The cycles that a build is scheduled with, at several paces on both sides."""
    players, expected = [], []
    cases = NAMED[::2] + [random_case(seed) for seed in range(200, 203)]
    for k, case in enumerate(cases):
        rng = np.random.default_rng(k)
        cycles = 300 + 3 * max(case.span.words, case.beats)
        ready = list(rng.random(cycles) < rng.choice([1.0, 0.8, 0.4]))
        due = np.sort(rng.integers(0, cycles, int(cycles * rng.choice([0.3, 0.9, 4.0]))))
        accepted, offers, gone = predicted(case, due.tolist(), ready)
        # Two cycles of reset come first.
        valid, waits = np.zeros(cycles, bool), np.zeros(cycles, bool)
        begin = -1
        for want, cycle in zip(due, [*accepted, *[cycles] * (len(due) - len(accepted))], strict=True):
            valid[max(want, begin + 1) : cycle + 1] = True
            begin = max(begin, cycle)
        for offer, cycle in zip(offers, gone, strict=True):
            waits[offer : cycle + 1] = True
        played = [(1, 0, 0)] * 2 + [(0, int(a), int(b)) for a, b in zip(valid, ready, strict=True)]
        x = case.data(rng, len(due))
        players.append(case.player(x, played))
        expected.append((valid, {cycle for cycle in accepted if cycle < cycles}, waits))
    for case, records, (valid, accepted, waits) in zip(cases, play("icarus", players, tmp_path), expected, strict=True):
        rows = records[2:]
        assert {t for t, row in enumerate(rows) if valid[t] and row[0] == "1"} == accepted, case
        assert [row[1] == "1" for row in rows] == waits.tolist(), case
        assert len(accepted) > case.span.words, case


@dataclass(frozen=True)
class Depthwise:
    """Parameters of hg_dwmvu in lower case."""

    pe: int
    taps: int
    folds: int
    x_w: int
    x_signed: int
    w_w: int
    mode: int
    acc_w: int
    style: int
    every: int
    rows: int = 1
    columns: int = 1
    module = "hg_dwmvu"

    @property
    def lanes(self) -> int:
        """Elements of a tap."""
        return self.pe // self.rows * self.columns

    @property
    def latency(self) -> int:
        return 1 + mac_latency(self.taps * self.columns + (self.mode == 2), self.w_w, self.mode, self.every)

    def weights(self, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        return integers(rng, self.w_w, self.mode == 0, (self.folds, self.pe, self.taps, self.columns))

    def results(self, x: npt.NDArray[np.int64], w: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sums of beats (beats, taps, lanes), starting at weight word 0."""
        turns = w[np.arange(len(x)) % self.folds]
        grouped_taps = x.reshape(len(x), self.taps, -1, self.columns).transpose(0, 2, 1, 3).repeat(self.rows, axis=1)
        if self.mode == 2:
            return (grouped_taps == turns).sum(axis=(2, 3))
        return (grouped_taps * (2 * turns - 1 if self.mode == 1 else turns)).sum(axis=(2, 3))


@dataclass(frozen=True)
class Pool:
    """Parameters of hg_pool_tree in lower case."""

    lanes: int
    taps: int
    x_w: int
    x_signed: int
    sum: int
    acc_w: int
    module = "hg_pool_tree"

    @property
    def pe(self) -> int:
        return self.lanes

    @property
    def latency(self) -> int:
        return max(1, (self.taps - 1).bit_length())

    def weights(self, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        return np.empty(0, np.int64)

    def results(self, x: npt.NDArray[np.int64], w: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Maxima or sums of beats (beats, taps, lanes)."""
        return x.sum(axis=1) if self.sum else x.max(axis=1)


UNITS: list[Depthwise | Pool] = [
    Depthwise(2, 9, 3, 4, 0, 3, 0, 12, 0, 2),
    Depthwise(1, 1, 1, 1, 0, 1, 1, 2, 0, 2),
    Depthwise(3, 25, 4, 3, 1, 1, 1, 9, 1, 1),
    Depthwise(2, 14, 2, 1, 0, 1, 2, 4, 2, 1),
    Depthwise(1, 6, 5, 8, 1, 8, 0, 19, 1, 0),
    Depthwise(4, 4, 1, 2, 0, 2, 0, 3, 0, 3),  # sums modulo 8
    Depthwise(6, 4, 2, 3, 0, 3, 0, 11, 0, 2, rows=3, columns=2),
    Depthwise(4, 9, 1, 2, 1, 1, 1, 7, 0, 1, rows=2),
    Depthwise(2, 1, 3, 1, 0, 1, 2, 3, 0, 2, columns=5),
    Pool(2, 9, 4, 0, 0, 4),
    Pool(3, 4, 3, 1, 0, 5),
    Pool(1, 2, 1, 0, 0, 1),
    Pool(2, 1, 3, 1, 0, 4),
    Pool(2, 1, 3, 1, 1, 6),
    Pool(3, 7, 4, 1, 1, 7),
    Pool(2, 9, 2, 0, 1, 6),
    Pool(1, 5, 4, 1, 1, 5),  # sums modulo 32
    Pool(2, 25, 3, 1, 0, 3),
]


def simulate_pipeline(latency: int, played: Sequence[Stimulus]) -> list[tuple[int, int, int, int]]:
    """Every cycle's (s_ready, m_valid, beats since reset, beats taken up to this reset)."""
    trace = []
    pipe = [False] * latency
    accepted = beats = start = 0
    for rst, s_valid, m_ready in played:
        en = m_ready or not pipe[-1]
        trace.append((int(en), int(pipe[-1]), beats, start))
        if rst:
            start, accepted, beats, pipe = start + accepted, 0, 0, [False] * latency
        elif en:
            beats += pipe[-1]
            pipe = [bool(s_valid), *pipe[:-1]]
            accepted += s_valid
    return trace


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
def test_users(simulator: str, tmp_path: Path) -> None:
    """hg_dwmvu and hg_pool_tree: values and every cycle."""
    players, expected = [], []
    for k, unit in enumerate(UNITS):
        rng = np.random.default_rng(k)
        played = stimuli(rng, 600)
        trace = simulate_pipeline(unit.latency, played)
        x, w = integers(rng, unit.x_w, bool(unit.x_signed), (len(played), unit.taps, unit.lanes)), unit.weights(rng)
        parameters: dict[str, object] = {name.upper(): value for name, value in vars(unit).items()}
        memories = {}
        if isinstance(unit, Depthwise):
            parameters["FILE"] = f'"w{k}.mem"'
            memories[f"w{k}.mem"] = memory(pack(w.reshape(unit.folds, -1), unit.w_w))
        widths = unit.taps * unit.lanes * unit.x_w, unit.pe * unit.acc_w
        words = pack(x.reshape(len(x), -1), unit.x_w)
        players.append(Player(unit.module, parameters, memories, *widths, words, played))
        starts = {row[3] for row in trace}
        expected.append((trace, {start: pack(unit.results(x[start:], w), unit.acc_w) for start in starts}))
    for unit, records, (trace, results) in zip(UNITS, play(simulator, players, tmp_path), expected, strict=True):
        assert len(records) == len(trace)
        assert max(beats for _, _, beats, _ in trace) > 100
        for cycle, (row, (s_ready, m_valid, beat, start)) in list(enumerate(zip(records, trace, strict=True)))[1:]:
            context = f"{unit}, cycle {cycle}"
            assert row[:2] == (str(s_ready), str(m_valid)), context
            assert not m_valid or int(row[2], 16) == results[start][beat], context
