"""hg_dot_words: dot products with one of a few words, whose sums are tables, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import Pipeline, integers, pack, sum_tables, sweep, words_latency

# terms, bits and sign of x, bits of weights, words, codes of the first table, a register every so many levels
DOTS = [
    (16, 4, 0, 4, 4, 4, 2), (5, 2, 1, 3, 2, 5, 1), (33, 3, 1, 8, 8, 3, 2), (1, 1, 0, 2, 2, 2, 2), (7, 8, 1, 2, 5, 3, 0),
    (9, 4, 1, 4, 2, 5, 3), (18, 5, 0, 1, 3, 4, 1), (2, 2, 1, 5, 6, 2, 2), (8, 4, 1, 6, 4, 4, 2), (70, 2, 0, 4, 2, 5, 1),
]  # fmt: skip


@pytest.mark.cases(3)
@pytest.mark.parametrize("simulator, shape", sweep(DOTS, 3))
def test_words(simulate: Callable[..., None], simulator: str, shape: tuple[int, ...]) -> None:
    """Every word with random codes, with all bits of all codes, and with codes of one bit."""
    terms, x_bits, x_signed, w_bits, words = shape[:5]
    rng = np.random.default_rng(terms)
    weights = integers(rng, w_bits, True, (words, 1, terms))
    weights[0], weights[-1] = -(1 << (w_bits - 1)), max(0, (1 << (w_bits - 1)) - 1)
    one = np.zeros((terms * x_bits, terms), np.int64)
    one[np.arange(len(one)), np.arange(len(one)) // x_bits] = 1 << (np.arange(len(one)) % x_bits)
    one[:] -= ((one >> (x_bits - 1)) & x_signed) << x_bits
    x = np.concatenate([one, integers(rng, x_bits, bool(x_signed), (200, terms)), np.full((1, terms), -1 if x_signed else (1 << x_bits) - 1)])  # fmt: skip
    x, number = np.repeat(x, words, axis=0), np.tile(np.arange(words), len(x))
    _run(simulate, simulator, shape, weights, x, number)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, signed", [("icarus", 0), ("verilator", 1)])
def test_all_codes(simulate: Callable[..., None], simulator: str, signed: int) -> None:
    """All codes and words of a small one."""
    terms, x_bits, words = 4, 3, 3
    weights = integers(np.random.default_rng(7), 4, True, (words, 1, terms))
    all_ = np.arange(words << (terms * x_bits))
    x = all_[:, None] // words >> (np.arange(terms) * x_bits) & ((1 << x_bits) - 1)
    x -= ((x >> (x_bits - 1)) & signed) << x_bits
    _run(simulate, simulator, (terms, x_bits, signed, 4, words, 2, 1), weights, x, all_ % words)


def _run(
    simulate: Callable[..., None],
    simulator: str,
    shape: tuple[int, ...],
    weights: np.ndarray,
    x: np.ndarray,
    number: np.ndarray,
) -> None:
    terms, x_bits, x_signed, w_bits, words, first, each = shape
    files, sizes = sum_tables(weights, first, "w")
    out = x_bits + w_bits + 1 + (terms - 1).bit_length()
    parameters = {"SIMD": terms, "X_W": x_bits, "X_SIGNED": x_signed, "ADDR_W": (words - 1).bit_length(), **sizes}
    parameters |= {"OUT_W": out, "EVERY": each, "FILE": '"w"', "ROW": 0}
    total = (weights[number, 0] * x).sum(axis=1)
    job = Pipeline(
        {"x": pack(x, x_bits), "word": number.tolist()}, {"sum": pack(total[:, None], out)},
        words_latency(terms, x_bits, first, each),
    )  # fmt: skip
    simulate(simulator, "hg_dot_words", parameters, job, files)
