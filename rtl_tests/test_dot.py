"""hg_adder_tree and hg_dot: exact sums, with the stated latency."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lanes import compile_function
from streams import RTL, Pipeline, integers, pack, sweep

# terms, bits, signed, a register every so many levels
TREES = [(5, 4, 1, 2), (7, 3, 0, 1), (1, 6, 1, 2), (2, 1, 0, 1), (16, 8, 1, 3), (33, 5, 1, 0), (9, 32, 1, 4)]
# terms, bits and sign of x, bits of w, bipolar, registers
DOTS = [
    (5, 4, 0, 3, 0, 2),
    (6, 5, 1, 1, 1, 1),
    (1, 1, 0, 1, 1, 2),
    (1, 8, 1, 8, 0, 1),
    (8, 1, 0, 1, 0, 0),
    (17, 8, 0, 6, 0, 2),
    (3, 32, 1, 16, 0, 2),
]


def levels(terms: int) -> int:
    return (terms - 1).bit_length()


def delay(terms: int, each: int) -> int:
    return levels(terms) // each if each else 0


def groups(terms: int) -> int:
    """Groups of four products that hg_dot sums before its first register."""
    return -(-terms // 4)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, shape", sweep(TREES))
def test_adder_tree(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int, int]) -> None:
    terms, bits, signed, each = shape
    x = integers(np.random.default_rng(terms), bits, bool(signed), (600, terms))
    total = pack(x.sum(axis=1, keepdims=True), bits + levels(terms))
    parameters = {"N": terms, "IN_W": bits, "SIGNED": signed, "EVERY": each}
    job = Pipeline({"terms": pack(x, bits)}, {"sum": total}, delay(terms, each))
    simulate(simulator, "hg_adder_tree", parameters, job)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, shape", sweep(DOTS, 3))
def test_dot(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int, int, int, int]) -> None:
    terms, x_bits, x_signed, w_bits, bipolar, each = shape
    rng = np.random.default_rng(terms)
    x = integers(rng, x_bits, bool(x_signed), (600, terms))
    w = integers(rng, w_bits, not bipolar, (600, terms))
    total = (x * (2 * w - 1 if bipolar else w)).sum(axis=1, keepdims=True)
    parameters = {"SIMD": terms, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits}
    job = Pipeline(
        {"x": pack(x, x_bits), "w": pack(w, w_bits)},
        {"sum": pack(total, x_bits + w_bits + 3 + levels(groups(terms)))},
        1 + delay(groups(terms), each),
    )
    simulate(simulator, "hg_dot", {**parameters, "W_BIPOLAR": bipolar, "EVERY": each}, job)


# terms, bits and sign of x, bits of w, bipolar: at most 16 bits of input together
EXHAUSTIVE = [(2, 4, 1, 4, 0), (5, 2, 0, 1, 0), (4, 3, 1, 1, 1), (1, 8, 1, 8, 0)]


@pytest.mark.parametrize("terms, x_bits, x_signed, w_bits, bipolar", EXHAUSTIVE)
def test_every_dot(terms: int, x_bits: int, x_signed: int, w_bits: int, bipolar: int) -> None:
    parameters = {"SIMD": terms, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits}
    parameters |= {"W_BIPOLAR": bipolar, "EVERY": 1}
    files = [RTL / "hg_dot.v", RTL / "hg_adder_tree.v"]
    ports = {"x": terms * x_bits, "w": terms * w_bits}
    out = x_bits + w_bits + 3 + levels(groups(terms))
    dot = compile_function(files, "hg_dot", parameters, ports, ("sum", out), 1 + delay(groups(terms), 1))
    x, w = (grid.ravel() for grid in np.meshgrid(*(np.arange(1 << bits) for bits in ports.values())))
    total = np.zeros_like(x)
    for k in range(terms):
        a = x >> (k * x_bits) & ((1 << x_bits) - 1)
        b = w >> (k * w_bits) & ((1 << w_bits) - 1)
        a -= (a >> (x_bits - 1) & x_signed) << x_bits
        b = 2 * b - 1 if bipolar else b - ((b >> (w_bits - 1)) << w_bits)
        total += a * b
    for stalls in (False, True):
        assert (dot(x=x, w=w, stalls=stalls) == (total & ((1 << out) - 1)).astype(np.uint64)).all()
