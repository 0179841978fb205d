"""hg_conv, hg_dwconv and hg_pool: results against numpy, and every cycle against the rules of hg_window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from players import Player, Stimulus, play
from streams import SIMULATORS, pack
from windows import Case, Geometry, random_geometry, running, simulate_cycles

IMAGE = Geometry(6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 6, 5, 1, 2, 2)
SIGNAL = replace(IMAGE, height=1, width=19, kh=1, sh=1, pt=0, out_h=1, kw=4, sw=2, dw=2, pl=3, out_w=10)
POINT = replace(IMAGE, height=1, width=1, kh=1, kw=1, pt=0, pl=0, out_h=1, out_w=1, folds=1, repeat=1)
#: All that is worth a name; random ones follow.
NAMED = [
    Case("conv", IMAGE, IMAGE.min_depth(), 3, 2, 4, 1, -3, 3),
    Case("conv", SIGNAL, SIGNAL.min_depth(), 5, 1, 3, 0, 2, 1, 1, 1),
    Case("conv", POINT, 1, 1, 1, 1, 0, 0, 1, 2, 2, 0),
    Case("conv", replace(POINT, height=7, width=4, sh=2, sw=3, out_h=3, out_w=1), 3, 2, 1, 4, 1, 0, 4),
    Case("conv", replace(IMAGE, pt=9, pl=9, out_h=17, out_w=18, folds=1), 64, 2, 2, 2, 1, 1, 2, 0, 2, 1),
    Case("conv", replace(IMAGE, sh=4, sw=4, kh=2, kw=2, pt=0, pl=0, out_h=1, out_w=1), 500, 17, 1, 1, 0, 1, 1, 2),
    Case("dwconv", replace(IMAGE, groups=3, folds=1), 40, 2, 2, 4, 0, 7, 3),
    Case(
        "dwconv", replace(IMAGE, dh=2, dw=3, pt=2, pl=3, sh=2, sw=2, out_h=3, out_w=3, folds=1), 30, 1, 1, 2, 1, 1, 1, 1
    ),
    Case(
        "pool",
        replace(IMAGE, kh=2, kw=2, sh=2, sw=2, pt=0, pl=0, out_h=3, out_w=2, folds=1, repeat=1),
        8,
        3,
        3,
        4,
        1,
        -8,
    ),
    Case("dwconv", replace(SIGNAL, kh=4, dh=3, pt=6, out_h=5, folds=1, repeat=1), 12, 3, 3, 1, 0, 1, 4),
    Case("pool", replace(IMAGE, groups=2, folds=1, repeat=1), 32, 2, 2, 3, 0, 0, mode=1),
]


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    module = str(rng.choice(["conv", "conv", "conv", "dwconv", "pool"]))
    loops = {"conv": (3, 3, 3), "dwconv": (3, 1, 3), "pool": (4, 1, 1)}[module]
    geometry = random_geometry(rng, loops, beyond=bool(rng.random() < 0.3))
    least_depth = geometry.min_depth()
    depth = int(
        rng.choice(
            [
                least_depth,
                least_depth,
                least_depth + 1,
                least_depth + 3,
                1 << least_depth.bit_length(),
                2 * geometry.words + 5,
            ]
        )
    )
    mode = int(rng.integers(0, {"conv": 3, "dwconv": 2, "pool": 2}[module]))
    pe = int(rng.integers(1, 4))
    simd = int(rng.choice([1, 2, 3, 5, 14])) if module == "conv" else pe
    x_signed = int(rng.integers(0, 2)) if mode < 2 or module == "pool" else 0
    x_w = 1 if module == "conv" and mode == 2 else int(rng.integers(1, 6))
    pad = int(rng.integers(0, 1 << x_w)) - ((1 << (x_w - 1)) if x_signed else 0)
    w_w = 1 if mode or module == "pool" else int(rng.integers(2, 5))
    style, every = int(rng.integers(0, 3)), int(rng.integers(0, 3))
    return Case(module, geometry, max(depth, least_depth), simd, pe, x_w, x_signed, pad, w_w, mode, style, every)


def stimuli(rng: np.random.Generator, cycles: int, resets: float) -> list[Stimulus]:
    """Full rate first, then stretches of other rates on both sides, and between some of them a reset."""
    rows: list[Stimulus] = [(1, 1, 0), (1, 0, 1)]
    offer = take = 1.0
    while len(rows) < cycles:
        length = int(rng.integers(cycles // 12, cycles // 4))
        rows += [(0, int(a < offer), int(b < take)) for a, b in rng.random((length, 2))]
        offer, take = (float(rng.choice([1.0, 1.0, 0.8, 0.5, 0.15])) for _ in range(2))
        if rng.random() < resets:
            rows.append((1, 1, 1))
    return rows[:cycles]


def check(simulator: str, cases: list[Case], folder: Path, max_cycles: int = 2500, resets: float = 0.2) -> list[int]:
    """Compare every cycle of every case; the beats that each case sent since the last reset."""
    players, expected = [], []
    for k, case in enumerate(cases):
        g, rng = case.geometry, np.random.default_rng(k)
        cycles = min(max_cycles, 6 * max(g.words, g.period * g.windows) + 100)
        played = stimuli(rng, cycles, resets)
        trace = simulate_cycles(case, played)
        # As many images as the longest stretch between two resets can take, from each reset on.
        x, weights = case.data(rng, cycles // g.words + 2)
        results = {start: case.results(whole_images(x[start:], g), weights) for start in {row[3] for row in trace}}
        name = f"w{k}.mem"
        parameters = case.parameters() | ({} if case.module == "pool" else {"FILE": f'"{name}"'})
        words = pack(x, case.x_w)
        widths = case.simd * case.x_w, case.pe * case.acc_w
        memories = {name: case.memory(weights)}
        players.append(Player(f"hg_{case.module}", parameters, memories, *widths, words, played))
        expected.append((played, trace, results))
    counts = []
    for k, records in enumerate(play(simulator, players, folder)):
        played, trace, results = expected[k]
        assert len(records) == len(trace)
        for cycle, (row, (s_ready, m_valid, beat, start)) in enumerate(zip(records, trace, strict=True)):
            if played[cycle][0] and not cycle:
                continue  # nothing is known before the first reset
            context = f"{cases[k]}, cycle {cycle}"
            assert row[:2] == (str(s_ready), str(m_valid)), context
            assert not m_valid or int(row[2], 16) == results[start][beat], context
        counts.append(trace[-1][2])
    return counts


def whole_images(x: np.ndarray, g: Geometry) -> np.ndarray:
    return x[: len(x) // g.words * g.words]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
def test_named(simulator: str, tmp_path: Path) -> None:
    assert all(check(simulator, NAMED, tmp_path))


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, first, count", [("icarus", 0, 20), ("icarus", 20, 100), ("verilator", 120, 12)])
def test_random(simulator: str, first: int, count: int, tmp_path: Path) -> None:
    check(simulator, [random_case(seed) for seed in range(first, first + count)], tmp_path, max_cycles=1200)


def test_least_depth(tmp_path: Path) -> None:
    """The least depth lets every image pass; with one word less the unit waits forever."""
    cases = [random_case(seed) for seed in range(200, 220)]
    cases = [replace(case, depth=case.geometry.min_depth()) for case in cases if case.geometry.min_depth() > 1]
    cases = [case for case in cases if case.geometry.windows * case.geometry.period < 600][:10]
    assert len(cases) == 10
    smaller = [replace(case, depth=case.depth - 1) for case in cases]
    enough = check("icarus", cases, tmp_path, resets=0.0)
    short = check("icarus", smaller, tmp_path, resets=0.0)
    for case, beats, fewer in zip(cases, enough, short, strict=True):
        image = case.geometry.windows * case.geometry.groups * case.geometry.repeat
        assert fewer < image < beats, case


def test_rules() -> None:
    """The buffer keeps only words that a later window needs, and a window waits only for its own taps."""
    rng = np.random.default_rng(9)
    exact = 0
    for _ in range(3000):
        g = random_geometry(rng, (1, 1, 1), beyond=bool(rng.random() < 0.5))
        taps, newest, oldest = list(g.taps()), g.newest(), g.oldest()
        assert oldest == sorted(oldest)
        assert oldest[-1] <= g.words
        later = g.words
        for window in reversed(range(g.windows)):
            later = min([later, *taps[window]])
            assert oldest[window] <= later
            assert newest[window] >= max(taps[window], default=0)
        if g.dh == g.dw == 1 and all(taps):
            exact += 1
            assert running(newest) == running([max(pixels) for pixels in taps])
    assert exact > 300
