"""Realizations of quantizers as calls of the C++ library, with the codes of their own definitions for all inputs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpp_bench import Case, run_cases

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.realizations import bind_realization
from hlsgen.numerics.fixed import Array, IntType

#: All inputs of types up to this width are tried. Wider inputs are random, many of them at ties and thresholds.
_MAX_EXHAUSTIVE_BITS = 12


@pytest.fixture(autouse=True, params=[12, pytest.param(16, marks=pytest.mark.slow)], ids="all_of_{}_bits".format)
def all_inputs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All inputs of 16 bits take minutes with ap_int and sanitizers."""
    monkeypatch.setattr(sys.modules[__name__], "_MAX_EXHAUSTIVE_BITS", request.param)


def is_small(source: IntType) -> bool:
    """True if all inputs of a type are tried."""
    return source.bits <= _MAX_EXHAUSTIVE_BITS


def rescaled(
    realization: Any, table: Array, source: IntType, result: IntType, x: Array, fraction: int | None = None
) -> tuple[Case, Array]:
    """Case with two frames x, int64 (beats, lanes), and the codes that the realization's `apply` gives.

    `table` int64 (folds, lanes): the channel set of each lane in each beat.
    """
    folds, lanes = table.shape
    x = x[: len(x) // (2 * folds) * 2 * folds]
    beats = len(x) // 2
    streams = (Stream(type_, lanes, beats, beats * lanes) for type_ in (source, result))
    call = bind_realization(realization, table, *streams, fraction)
    sets = int(table.max()) + 1
    fold = np.arange(len(x)) % folds
    codes_by_lane = [realization.apply(np.broadcast_to(x[:, [k]], (len(x), sets))) for k in range(lanes)]
    codes = np.stack([each[np.arange(len(x)), table[fold, k]] for k, each in enumerate(codes_by_lane)], axis=1)
    return Case(call, [x], [(source, lanes)], [(result, lanes)], 2), codes


def check(folder: Path, cases: Sequence[tuple[Case, Array]], dialect: str, *, exact: bool = False) -> None:
    """Run all cases in one program and compare their codes."""
    outputs = run_cases(folder, [case for case, _ in cases], dialect, exact=exact)
    for streams, (case, codes) in zip(outputs, cases, strict=True):
        wrong = (streams[0] != codes).nonzero()[0] if streams[0].shape == codes.shape else [0]
        assert len(wrong) == 0, (
            f"{case.call.function} {dict(case.call.arguments)}: {len(wrong)} wrong, first in beat {wrong[0]}"
        )


def every_input(type_: IntType, lanes: int, repeat: int = 1) -> Array:
    """All numbers of a type `repeat` times, int64 (beats, lanes), in a different order in every lane."""
    codes = np.arange(type_.lo, type_.hi + 1)
    rng = np.random.default_rng(len(codes))
    return np.stack([np.concatenate([rng.permutation(codes) for _ in range(repeat)]) for _ in range(lanes)], axis=1)


def integers(rng: np.random.Generator, bits: int, signed: bool, shape: tuple[int, ...]) -> Array:
    """Random integers of `bits` bits."""
    low = -(1 << (bits - 1)) if signed else 0
    return rng.integers(low, low + (1 << bits), shape)
