"""hg_reduce: results compared with numpy, and every cycle with a model of a pipeline with an enable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from players import Player, Stimulus, play
from streams import SIMULATORS, integers, pack

LATENCY = 2


@dataclass(frozen=True)
class Case:
    """Parameters in lower case."""

    height: int
    width: int
    kh: int
    kw: int
    folds: int
    lanes: int
    x_w: int
    x_signed: int
    sum: int

    @property
    def out_h(self) -> int:
        return self.height // self.kh

    @property
    def out_w(self) -> int:
        return self.width // self.kw

    @property
    def acc_w(self) -> int:
        return self.x_w + ((self.kh * self.kw).bit_length() if self.sum else 0)

    @property
    def words(self) -> int:
        return self.height * self.width * self.folds

    def completes(self) -> list[bool]:
        """Per word of an image: it completes a result."""
        y, x, _ = np.unravel_index(np.arange(self.words), (self.height, self.width, self.folds))
        last = (y % self.kh == self.kh - 1) & (x % self.kw == self.kw - 1)
        return list(last & (y < self.out_h * self.kh) & (x < self.out_w * self.kw))

    def results(self, x: npt.NDArray[np.int64]) -> list[int]:
        """Output beats for whole images (words, lanes)."""
        images = x.reshape(-1, self.height, self.width, self.folds * self.lanes)
        used_pixels = images[:, : self.out_h * self.kh, : self.out_w * self.kw]
        windows = used_pixels.reshape(-1, self.out_h, self.kh, self.out_w, self.kw, self.folds * self.lanes)
        reduced = windows.sum(axis=(2, 4)) if self.sum else windows.max(axis=(2, 4))
        return pack(reduced.reshape(-1, self.lanes), self.acc_w)


POINT = Case(1, 1, 1, 1, 1, 1, 1, 0, 0)
#: All that is worth a name; random ones follow.
NAMED = [
    POINT,
    Case(4, 6, 2, 2, 2, 2, 4, 0, 0),
    Case(5, 7, 2, 2, 1, 2, 4, 1, 1),  # odd rows and columns are left over
    Case(4, 4, 4, 4, 3, 2, 3, 1, 1),  # over the whole image
    Case(5, 4, 5, 4, 1, 3, 4, 1, 1),  # without a memory
    Case(9, 5, 3, 5, 1, 2, 4, 1, 0),
    Case(1, 13, 1, 3, 1, 2, 4, 1, 0),  # signals
    Case(1, 11, 1, 2, 4, 1, 2, 0, 1),
    Case(6, 1, 2, 1, 2, 1, 5, 1, 1),
    Case(6, 5, 2, 1, 1, 1, 3, 1, 1),
    Case(3, 5, 1, 1, 2, 2, 3, 1, 0),  # changes nothing
    Case(7, 8, 2, 3, 2, 1, 3, 0, 1),
]


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)

    def axis() -> tuple[int, int]:
        kernel, count = int(rng.choice([1, 2, 2, 3, 4])), int(rng.choice([1, 1, 2, 3, 4]))
        return kernel * count + int(rng.choice([0, 0, rng.integers(0, kernel)])), kernel

    (height, kh), (width, kw) = axis(), axis()
    folds, lanes, x_w = int(rng.choice([1, 1, 2, 3, 4])), int(rng.integers(1, 4)), int(rng.integers(1, 7))
    signed, total = int(rng.integers(0, 2)), int(rng.integers(0, 2))
    return Case(height, width, kh, kw, folds, lanes, x_w, signed, total)


def stimuli(rng: np.random.Generator, cycles: int) -> list[Stimulus]:
    """Full rate first, then stretches of other rates on both sides, and between some of them a reset."""
    rows: list[Stimulus] = [(1, 1, 0), (1, 0, 1)]
    offer = take = 1.0
    while len(rows) < cycles:
        length = int(rng.integers(cycles // 12, cycles // 4))
        rows += [(0, int(a < offer), int(b < take)) for a, b in rng.random((length, 2))]
        offer, take = (float(rng.choice([1.0, 1.0, 0.8, 0.5, 0.15])) for _ in range(2))
        if rng.random() < 0.2:
            rows.append((1, 1, 1))
    return rows[:cycles]


def simulate_cycles(case: Case, played: Sequence[Stimulus]) -> list[tuple[int, int, int, int]]:
    """Every cycle's (s_ready, m_valid, beats since reset, words taken up to this reset)."""
    completes = case.completes()
    trace = []
    accepted = beats = start = 0
    pipe = [False] * LATENCY
    for rst, s_valid, m_ready in played:
        en = m_ready or not pipe[-1]
        trace.append((int(en), int(pipe[-1]), beats, start))
        if rst:
            start, accepted, beats = start + accepted, 0, 0
            pipe = [False] * LATENCY
        elif en:
            beats += pipe[-1]
            pipe = [bool(s_valid and completes[accepted % case.words]), *pipe[:-1]]
            accepted += s_valid
    return trace


def check(simulator: str, cases: Sequence[Case], folder: Path) -> None:
    """Compares every cycle of every case."""
    players, expected = [], []
    for k, case in enumerate(cases):
        rng = np.random.default_rng(k)
        played = stimuli(rng, 400 + 7 * case.words)
        trace = simulate_cycles(case, played)
        x = integers(rng, case.x_w, bool(case.x_signed), ((len(played) // case.words + 2) * case.words, case.lanes))
        images_by_start = {
            start: x[start:][: (len(x) - start) // case.words * case.words] for start in {row[3] for row in trace}
        }
        parameters = {name.upper(): value for name, value in vars(case).items()} | {"ACC_W": case.acc_w}
        widths = case.lanes * case.x_w, case.lanes * case.acc_w
        players.append(Player("hg_reduce", parameters, {}, *widths, pack(x, case.x_w), played))
        expected.append((trace, {start: case.results(words) for start, words in images_by_start.items()}))
    for case, records, (trace, results) in zip(cases, play(simulator, players, folder), expected, strict=True):
        assert len(records) == len(trace)
        assert max(beats for _, _, beats, _ in trace) >= case.out_h * case.out_w * case.folds, "no image came through"
        # Nothing is known before the first reset.
        for cycle, (row, (s_ready, m_valid, beat, start)) in list(enumerate(zip(records, trace, strict=True)))[1:]:
            context = f"{case}, cycle {cycle}"
            assert row[:2] == (str(s_ready), str(m_valid)), context
            assert not m_valid or int(row[2], 16) == results[start][beat], context


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_named(simulator: str, tmp_path: Path) -> None:
    check(simulator, NAMED, tmp_path)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, first, count", [("icarus", 0, 25), ("icarus", 25, 75), ("verilator", 100, 15)])
def test_random(simulator: str, first: int, count: int, tmp_path: Path) -> None:
    check(simulator, [random_case(seed) for seed in range(first, first + count)], tmp_path)


def test_every_pair(tmp_path: Path) -> None:
    """The sum and the larger one of all pairs of 3-bit codes, of a pixel right after the other and a row later."""
    for signed in (0, 1):
        for total in (0, 1):
            for kh, kw in ((1, 2), (2, 1)):
                case = replace(POINT, height=kh, width=kw, kh=kh, kw=kw, x_w=3, x_signed=signed, sum=total)
                codes = np.arange(64)[:, None] >> np.array([0, 3]) & 7
                x = (codes - ((codes >> 2 & signed) << 3)).reshape(-1, 1)
                played = [(1, 0, 0), (1, 0, 0), *[(0, 1, 1)] * 140]
                parameters = {name.upper(): value for name, value in vars(case).items()} | {"ACC_W": case.acc_w}
                player = Player("hg_reduce", parameters, {}, 3, case.acc_w, pack(x, 3), played)
                records = play("icarus", [player], tmp_path)[0]
                assert [int(data, 16) for _, valid, data in records[2:] if valid == "1"][:64] == case.results(x)
