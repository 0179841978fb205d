"""hg_adder_tree and the forms of a dot product: exact sums, with the stated latency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lanes import compile_function
from streams import RTL, Pipeline, dot_latency, integers, pack, sweep

# terms, bits, signed, a register every so many levels
TREES = [(5, 4, 1, 2), (7, 3, 0, 1), (1, 6, 1, 2), (2, 1, 0, 1), (16, 8, 1, 3), (33, 5, 1, 0), (9, 32, 1, 4)]
# terms, bits and sign of x, bits of w (1: -1 and 1), a register every so many levels
DOTS = [(5, 4, 0, 3, 2), (6, 5, 1, 1, 1), (1, 1, 0, 1, 2), (1, 8, 1, 8, 1), (8, 1, 0, 2, 0), (17, 8, 0, 6, 2), (3, 32, 1, 16, 2)]  # fmt: skip
#: The forms of a dot product, and the last only for few bits.
FORMS = ("hg_dot_booth", "hg_dot_plain", "hg_dot_table")


def fits(form: str, x_bits: int, w_bits: int) -> bool:
    return form != "hg_dot_table" or (w_bits > 1 and x_bits + w_bits <= 6)


def levels(terms: int) -> int:
    return (terms - 1).bit_length()


def delay(terms: int, each: int) -> int:
    return levels(terms) // each if each else 0


def width(terms: int, x_bits: int, w_bits: int) -> int:
    return x_bits + w_bits + 1 + levels(terms)


def product(x: npt.NDArray[np.int64], w: npt.NDArray[np.int64], w_bits: int) -> npt.NDArray[np.int64]:
    """Sums over the last axis of codes times weights, the weights as codes of theirs."""
    return np.asarray((x * (2 * w - 1 if w_bits == 1 else w)).sum(axis=-1))


@pytest.mark.cases(2)
@pytest.mark.parametrize("form", ["hg_dot_booth", "hg_dot_plain"])
@pytest.mark.parametrize("simulator, shape", sweep(DOTS, 1))
def test_dot(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int, int, int], form: str) -> None:
    terms, x_bits, x_signed, w_bits, each = shape
    rng = np.random.default_rng(terms)
    x = integers(rng, x_bits, bool(x_signed), (600, terms))
    w = integers(rng, w_bits, w_bits > 1, (600, terms))
    parameters = {"SIMD": terms, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits, "EVERY": each}
    parameters |= {"DSP": terms % 2} if form == "hg_dot_plain" else {}
    total = pack(product(x, w, w_bits)[:, None], width(terms, x_bits, w_bits))
    job = Pipeline({"x": pack(x, x_bits), "w": pack(w, w_bits)}, {"sum": total}, dot_latency(terms, w_bits, each))
    simulate(simulator, form, parameters, job)


# terms, bits and sign of x, bits of w: at most 16 bits of input together
EXHAUSTIVE = [
    (2, 4, 1, 4), (5, 2, 0, 1), (4, 3, 1, 1), (1, 8, 1, 8), (1, 8, 0, 8), (3, 3, 0, 2), (2, 5, 0, 3), (2, 2, 1, 6), (3, 2, 1, 3),
]  # fmt: skip

LONG = [
    (8, 8, 0, 8),
    (8, 8, 1, 7),
    (13, 4, 1, 4),
    (16, 3, 0, 3),
    (32, 2, 0, 2),
    (7, 8, 0, 5),
    (16, 2, 1, 4),
    (9, 3, 1, 3),
]


def compiled(form: str, shape: tuple[int, int, int, int], each: int) -> Callable[..., npt.NDArray[np.uint64]]:
    terms, x_bits, x_signed, w_bits = shape
    files = [RTL / f"{form}.v", RTL / "hg_adder_tree.v", RTL / "hg_digits.v"]
    parameters = {"SIMD": terms, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits, "EVERY": each}
    ports, out = {"x": terms * x_bits, "w": terms * w_bits}, width(terms, x_bits, w_bits)
    return compile_function(files, form, parameters, ports, ("sum", out), dot_latency(terms, w_bits, each))


@pytest.mark.cases(4)
@pytest.mark.parametrize("form, shape", [(f, s) for f in FORMS for s in EXHAUSTIVE if fits(f, s[1], s[3])])
def test_every_dot(form: str, shape: tuple[int, int, int, int]) -> None:
    terms, x_bits, x_signed, w_bits = shape
    dot = compiled(form, shape, 1)
    x, w = (grid.ravel() for grid in np.meshgrid(*(np.arange(1 << terms * bits) for bits in (x_bits, w_bits))))
    xs, ws = unpacked(x, terms, x_bits, bool(x_signed)), unpacked(w, terms, w_bits, w_bits > 1)
    total = product(xs, ws, w_bits) & ((1 << width(terms, x_bits, w_bits)) - 1)
    for stalls in (False, True):
        assert (dot(x=x, w=w, stalls=stalls) == total.astype(np.uint64)).all()


def unpacked(words: npt.NDArray[Any], terms: int, bits: int, signed: bool) -> npt.NDArray[np.int64]:
    found = words[:, None] >> (np.arange(terms) * bits) & ((1 << bits) - 1)
    return np.asarray(found - ((found >> (bits - 1) & signed) << bits))


@pytest.mark.cases(3)
@pytest.mark.parametrize("each", [1, 2, 3])
@pytest.mark.parametrize("form, shape", [(f, s) for f in FORMS for s in LONG if fits(f, s[1], s[3])])
def test_many_terms(form: str, shape: tuple[int, int, int, int], each: int) -> None:
    """Random and extreme operands: each sum is of functions of one element, and those are tried with every one."""
    terms, x_bits, x_signed, w_bits = shape
    rng = np.random.default_rng(each)
    x = integers(rng, x_bits, bool(x_signed), (4000, terms))
    w = integers(rng, w_bits, True, (4000, terms))
    for k, (a, b) in enumerate(((x.min(), w.min()), (x.max(), w.min()), (x.min(), w.max()), (x.max(), w.max()))):
        x[k], w[k] = a, b
    dot = compiled(form, shape, each)
    words = (np.array(pack(v, bits), dtype=np.uint64) for v, bits in ((x, x_bits), (w, w_bits)))
    total = np.array(pack(product(x, w, w_bits)[:, None], width(terms, x_bits, w_bits)), dtype=np.uint64)
    xs, ws = words
    assert (dot(x=xs, w=ws, stalls=True) == total).all()
