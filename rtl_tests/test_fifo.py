"""hg_fifo: every beat, unchanged and in order, and exactly DEPTH of them stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench import Unit
from bench import simulate as record
from streams import Stream, sweep


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, shape", sweep([(8, 5), (1, 2), (16, 16), (33, 3), (7, 17), (4, 64)]))
def test_fifo(simulate: Callable[..., None], simulator: str, shape: tuple[int, int]) -> None:
    width, depth = shape
    rng = random.Random(width)
    words = [rng.getrandbits(width) for _ in range(400)]
    job = Stream({"s_data": words}, {"m_data": words}, latency=1, capacity=depth, registered=True)
    simulate(simulator, "hg_fifo", {"WIDTH": width, "DEPTH": depth}, job)


def test_large(simulate: Callable[..., None]) -> None:
    """Enough beats to fill the memory that is read ahead, and to wrap."""
    rng = random.Random(6)
    words = [rng.getrandbits(5) for _ in range(1700)]
    job = Stream({"s_data": words}, {"m_data": words}, latency=1, capacity=530, registered=True, short=800)
    simulate("icarus", "hg_fifo", {"WIDTH": 5, "DEPTH": 530}, job)


def test_cycles(tmp_path: Path) -> None:
    """In every cycle, the FIFO offers a stored beat, and accepts one while it has room, for both memory types."""
    rng = np.random.default_rng(3)
    shapes = [(3, 1), (3, 2), (5, 7), (130, 66), (130, 127), (4, 65), (4, 512), (260, 65)]
    words = [[int.from_bytes(rng.bytes(40), "big") >> (320 - width) for _ in range(900)] for width, _ in shapes]
    units = [
        Unit("hg_fifo", {"WIDTH": width, "DEPTH": depth}, {"s": sent_words}, {"s": width, "m": width})
        for (width, depth), sent_words in zip(shapes, words, strict=True)
    ]
    for (width, depth), sent_words, phases in zip(shapes, words, record(units, tmp_path, cycles=800), strict=True):
        filled = 0
        for trace in phases:
            s, m = trace["s"], trace["m"]
            stored = np.cumsum(s.valid & s.ready) - (s.valid & s.ready)
            stored -= np.cumsum(m.valid & m.ready) - (m.valid & m.ready)
            assert np.array_equal(m.valid, stored > 0)
            assert np.array_equal(s.ready, stored < depth)
            assert m.holds_still()
            assert m.words == sent_words[: len(m.words)], (width, depth)
            assert len(m.words) > 50
            filled = max(filled, int(stored.max()))
        assert filled >= min(depth, 200)
