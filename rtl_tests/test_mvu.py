"""hg_mvu and hg_mvu_words: matrix-vector products at every kind of folding, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, integers, mac_latency, memory, pack, sum_tables, sweep, words_latency


@dataclass(frozen=True)
class Matrix:
    """Parameters of hg_mvu, in lower case. With `first` and `cut`, it is hg_mvu_words instead."""

    simd: int
    pe: int
    col_folds: int
    row_folds: int
    x_w: int
    x_signed: int
    w_w: int
    mode: int
    acc_w: int
    every: int
    windows: int = 1
    taps: int = 1
    dsp: int = 0
    first: int = 0
    cut: int = 0
    style: int = 0


CASES = [
    Matrix(4, 2, 3, 2, 4, 0, 3, 0, 12, 2),
    Matrix(3, 2, 2, 3, 3, 1, 4, 0, 11, 1, style=3),
    Matrix(6, 3, 3, 5, 1, 0, 1, 2, 5, 1),
    Matrix(5, 2, 2, 3, 3, 1, 1, 1, 8, 1),
    Matrix(6, 3, 1, 1, 4, 1, 3, 0, 12, 2, windows=2, taps=3),
    Matrix(1, 1, 1, 1, 1, 0, 1, 1, 2, 2),
    Matrix(1, 1, 5, 1, 8, 1, 8, 0, 19, 2),
    Matrix(3, 4, 1, 3, 5, 0, 4, 0, 20, 0),
    Matrix(16, 1, 1, 1, 2, 1, 2, 0, 7, 3),
    Matrix(4, 2, 2, 2, 3, 0, 1, 0, 8, 2),
    Matrix(2, 2, 2, 2, 32, 1, 4, 0, 40, 1),
    Matrix(13, 2, 3, 1, 1, 0, 1, 2, 6, 0),
    Matrix(5, 2, 1, 1, 3, 0, 4, 0, 11, 1, windows=3),
    Matrix(8, 1, 1, 1, 2, 1, 1, 1, 6, 2, windows=4, taps=2),
    Matrix(18, 2, 1, 1, 1, 0, 1, 2, 5, 1, windows=3, taps=9),
    Matrix(5, 5, 2, 2, 4, 1, 4, 0, 16, 2, dsp=25),
    Matrix(3, 3, 1, 2, 8, 0, 8, 0, 20, 1, dsp=25),
    Matrix(2, 2, 1, 1, 4, 0, 4, 0, 14, 2, windows=2, dsp=18),
    Matrix(2, 3, 1, 1, 8, 0, 3, 0, 14, 1, dsp=25),
    Matrix(17, 3, 2, 1, 8, 1, 8, 0, 22, 2, dsp=25),
    Matrix(9, 1, 2, 2, 8, 0, 8, 0, 21, 1, dsp=27),
    Matrix(7, 4, 1, 1, 8, 0, 8, 0, 19, 0, dsp=27),
    Matrix(2, 2, 1, 1, 4, 0, 4, 0, 14, 2, windows=2, dsp=25),
    Matrix(6, 3, 2, 2, 4, 1, 4, 0, 14, 2, first=4),
    Matrix(16, 2, 1, 2, 3, 0, 4, 0, 12, 1, first=5, cut=1),
    Matrix(16, 2, 2, 2, 3, 1, 4, 0, 12, 1, first=4),
    Matrix(5, 2, 2, 3, 4, 1, 1, 1, 8, 2, first=3),
    Matrix(17, 1, 5, 1, 2, 1, 3, 0, 14, 3, first=3),
    Matrix(3, 12, 3, 1, 1, 0, 1, 0, 6, 0, first=4),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, shape", sweep(CASES, 4))
def test_mvu(simulate: Callable[..., None], simulator: str, shape: Matrix) -> None:
    rng = np.random.default_rng(shape.simd)
    rows, columns = shape.pe * shape.row_folds, shape.simd * shape.col_folds
    vectors = -(-240 // shape.col_folds) * shape.windows
    x = integers(rng, shape.x_w, bool(shape.x_signed), (vectors, columns))
    w = integers(rng, shape.w_w, shape.mode == 0, (rows, columns))
    match shape.mode:
        case 0:
            acc = x @ w.T
        case 1:
            acc = x @ (2 * w - 1).T
        case _:
            acc = (x[:, None, :] == w).sum(axis=2)
    # A word holds PE rows by SIMD columns, and the words of a group of rows come together.
    tiles = w.reshape(shape.row_folds, shape.pe, shape.col_folds, shape.simd).transpose(0, 2, 1, 3)
    words = pack(tiles.reshape(-1, shape.pe * shape.simd), shape.w_w)
    files = {"w.mem": memory(words)}
    parameters = {n.upper(): v for n, v in vars(shape).items() if n not in ("first", "cut")} | {"FILE": '"w.mem"'}
    counted = shape.simd + (shape.mode == 2 and shape.col_folds == 1)  # nothing takes the position that is left
    latency = mac_latency(counted, shape.w_w, shape.mode, shape.every, shape.dsp, shape.pe, (shape.x_w, shape.x_signed))
    if shape.first:
        weights = (2 * tiles - 1 if shape.mode else tiles).reshape(-1, shape.pe, shape.simd)
        files, numbers = sum_tables(weights, shape.first, "w")
        kept = ("simd", "pe", "col_folds", "row_folds", "x_w", "x_signed", "acc_w", "every", "cut")
        parameters = {"FILE": '"w"', **numbers, **{name.upper(): getattr(shape, name) for name in kept}}
        latency = 2 + words_latency(shape.simd, shape.x_w, shape.first, shape.every, shape.cut)
    # Pieces of WINDOWS vectors lie side by side.
    beats = x.reshape(-1, shape.windows, shape.taps, shape.simd // shape.taps).swapaxes(1, 2)
    last = [(v + 1) * shape.col_folds - 1 for v in range(vectors // shape.windows) for _ in range(shape.row_folds)]
    job = Stream(
        {"s_data": pack(beats.reshape(-1, shape.windows * shape.simd), shape.x_w)},
        {"m_data": pack(acc.reshape(-1, shape.windows * shape.pe), shape.acc_w)},
        latency=2 + latency,
        completes=last,
        continuous="output",
        gap=shape.col_folds,
        short=60,
    )
    simulate(simulator, "hg_mvu_words" if shape.first else "hg_mvu", parameters, job, files)
