"""hg_adder_tree and the forms of a dot product: exact sums, with the stated latency."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lanes import compile_function
from streams import RTL, Pipeline, chain_latency, dot_latency, integers, pack, pairs_latency, sweep

# terms, bits, signed, levels per register
TREES = [(5, 4, 1, 2), (7, 3, 0, 1), (1, 6, 1, 2), (2, 1, 0, 1), (16, 8, 1, 3), (33, 5, 1, 0), (9, 32, 1, 4)]
# terms, bits and sign of x, bits of w (1: -1 and 1), levels per register
DOTS = [
    (5, 4, 0, 3, 2),
    (6, 5, 1, 1, 1),
    (1, 1, 0, 1, 2),
    (1, 8, 1, 8, 1),
    (8, 1, 0, 2, 0),
    (17, 8, 0, 6, 2),
    (3, 32, 1, 16, 2),
]
#: The forms of a dot product, with their latencies and the port of their sum.
FORMS = {"hg_dot_pairs": (pairs_latency, "sums"), "hg_dot_plain": (dot_latency, "sum")}
#: Submodules of the dot products.
PARTS = ("hg_adder_tree", "hg_delay", "hg_digits", "hg_pair_row")


def levels(terms: int) -> int:
    return (terms - 1).bit_length()


def delay(terms: int, each: int) -> int:
    return levels(terms) // each if each else 0


def width(terms: int, x_bits: int, w_bits: int) -> int:
    return x_bits + w_bits + 1 + levels(terms)


def product(x: npt.NDArray[np.int64], w: npt.NDArray[np.int64], w_bits: int) -> npt.NDArray[np.int64]:
    """Sums over the last axis of codes times weights, the weights as codes of theirs."""
    return np.asarray((x * (2 * w - 1 if w_bits == 1 else w)).sum(axis=-1))


@pytest.mark.cases(1)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("simulator, shape", sweep(DOTS, 1))
def test_dot(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int, int, int], form: str) -> None:
    terms, x_bits, x_signed, w_bits, each = shape
    rng = np.random.default_rng(terms)
    x = integers(rng, x_bits, bool(x_signed), (600, terms))
    w = integers(rng, w_bits, w_bits > 1, (600, terms))
    parameters = {"SIMD": terms, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits, "EVERY": each}
    parameters |= {"DSP": terms % 2} if form == "hg_dot_plain" else {}
    total = pack(product(x, w, w_bits)[:, None], width(terms, x_bits, w_bits))
    latency, out = FORMS[form]
    job = Pipeline({"x": pack(x, x_bits), "w": pack(w, w_bits)}, {out: total}, latency(terms, w_bits, each))
    simulate(simulator, form, parameters, job)


# terms, bits and sign of x, bits of w: at most 16 bits of input together
EXHAUSTIVE = [
    (2, 4, 1, 4),
    (5, 2, 0, 1),
    (4, 3, 1, 1),
    (1, 8, 1, 8),
    (1, 8, 0, 8),
    (3, 3, 0, 2),
    (2, 5, 0, 3),
    (2, 2, 1, 6),
    (3, 2, 1, 3),
]

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


def compiled(
    form: str, shape: tuple[int, int, int, int], each: int, **further_parameters: int
) -> Callable[..., npt.NDArray[np.uint64]]:
    terms, x_bits, x_signed, w_bits = shape
    files = [RTL / f"{form}.v", *(RTL / f"{name}.v" for name in PARTS)]
    parameters = {
        "SIMD": terms,
        "X_W": x_bits,
        "X_SIGNED": x_signed,
        "W_W": w_bits,
        "EVERY": each,
        **further_parameters,
    }
    ports, out = {"x": terms * x_bits, "w": terms * w_bits}, width(terms, x_bits, w_bits)
    latency, name = FORMS[form]
    return compile_function(files, form, parameters, ports, (name, out), latency(terms, w_bits, each))


@pytest.mark.cases(1)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", EXHAUSTIVE)
def test_every_dot(form: str, shape: tuple[int, int, int, int]) -> None:
    terms, x_bits, x_signed, w_bits = shape
    x, w = (grid.ravel() for grid in np.meshgrid(*(np.arange(1 << terms * bits) for bits in (x_bits, w_bits))))
    xs, ws = unpacked(x, terms, x_bits, bool(x_signed)), unpacked(w, terms, w_bits, w_bits > 1)
    total = product(xs, ws, w_bits) & ((1 << width(terms, x_bits, w_bits)) - 1)
    for each in (1, 2):
        dot = compiled(form, shape, each)
        for stalls in (False, True):
            assert (dot(x=x, w=w, stalls=stalls) == total.astype(np.uint64)).all()


def unpacked(words: npt.NDArray[Any], terms: int, bits: int, signed: bool) -> npt.NDArray[np.int64]:
    unpacked = words[:, None] >> (np.arange(terms) * bits) & ((1 << bits) - 1)
    return np.asarray(unpacked - ((unpacked >> (bits - 1) & signed) << bits))


@pytest.mark.cases(1)
@pytest.mark.parametrize("each", [1, 2, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", LONG)
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


@pytest.mark.parametrize("each", [1, 2])
def test_products_in_blocks(each: int) -> None:
    """hg_dot_plain in DSP blocks with one to nine terms, random and extreme, signed or not."""
    for terms, x_signed in ((1, 0), (2, 1), (3, 0), (4, 1), (6, 0), (7, 1), (9, 0)):
        rng = np.random.default_rng(terms)
        x, w = integers(rng, 6, bool(x_signed), (2000, terms)), integers(rng, 5, True, (2000, terms))
        for k, (a, b) in enumerate(((x.min(), w.min()), (x.max(), w.min()), (x.min(), w.max()), (x.max(), w.max()))):
            x[k], w[k] = a, b
        dot = compiled("hg_dot_plain", (terms, 6, x_signed, 5), each, DSP=18)
        xs, ws = (np.array(pack(v, bits), dtype=np.uint64) for v, bits in ((x, 6), (w, 5)))
        total = np.array(pack(product(x, w, 5)[:, None], width(terms, 6, 5)), dtype=np.uint64)
        assert (dot(x=xs, w=ws, stalls=True) == total).all(), terms


# columns, rows, bits and sign of x, bits of w, guard: at most 16 bits of codes and weights together
EVERY_PACK = [
    (1, 2, 4, 0, 4, 0),
    (1, 2, 4, 1, 4, 2),
    (1, 3, 4, 1, 4, 1),
    (2, 2, 2, 0, 3, 2),
    (1, 2, 8, 0, 4, 0),
    (3, 2, 2, 1, 2, 1),
]
LONG_PACKS = [(3, 2, 8, 0, 8, 0), (4, 2, 8, 1, 8, 2), (5, 3, 4, 1, 4, 2), (9, 2, 5, 0, 3, 1), (6, 3, 4, 0, 3, 0)]

# columns, rows, rows per block, bits and sign of x, bits of w, guard: likewise
EVERY_CHAIN = [
    (4, 1, 1, 2, 0, 2, 0),
    (2, 1, 1, 4, 1, 4, 0),
    (2, 2, 2, 2, 0, 3, 0),
    (2, 2, 2, 2, 1, 2, 1),
    (3, 2, 2, 1, 0, 2, 0),
    (1, 3, 3, 4, 1, 4, 1),
    (1, 3, 2, 4, 0, 4, 0),
    (2, 3, 3, 2, 1, 2, 2),
]
# Cases wide enough that a chain's sums exceed its fields, and sums of rows that nearly fill them.
LONG_CHAINS = [
    (4, 2, 2, 8, 0, 8, 0),
    (7, 2, 2, 4, 1, 4, 0),
    (8, 2, 2, 4, 0, 4, 0),
    (8, 1, 1, 8, 1, 6, 0),
    (11, 1, 1, 5, 0, 4, 0),
    (8, 3, 3, 2, 0, 2, 2),
    (10, 3, 3, 2, 1, 2, 1),
    (8, 2, 2, 4, 1, 4, 2),
    (7, 3, 2, 3, 1, 3, 1),
    (5, 3, 3, 4, 0, 4, 0),
]

_LATE = """module late(input clk, input en, input [{x}:0] x, input [{w}:0] w, output [{out}:0] sums);
    reg [{x}:0] x_reg;
    always @(posedge clk) if (en) x_reg <= x;
    {form} #({parameters}) dot (.clk(clk), .en(en), .x(x_reg), .w(w), .sums(sums));
endmodule
"""


def packed(
    shape: tuple[int, int, int, int, int, int], each: int, folder: Path
) -> Callable[..., npt.NDArray[np.uint64]]:
    """hg_dot_packed, with codes and weights in the same cycle."""
    columns, rows, x_bits, x_signed, w_bits, guard = shape
    names = {"SIMD": columns, "ROWS": rows, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits, "GUARD": guard}
    return rows_function("hg_dot_packed", {**names, "EVERY": each}, dot_latency(columns, w_bits, each), folder)


def chained(
    shape: tuple[int, int, int, int, int, int, int], each: int, folder: Path
) -> Callable[..., npt.NDArray[np.uint64]]:
    """hg_dot_chain, likewise."""
    columns, rows, rows_per_block, x_bits, x_signed, w_bits, guard = shape
    names = {"SIMD": columns, "ROWS": rows, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits, "GUARD": guard}
    latency = chain_latency(columns, rows_per_block, bool(x_signed), guard, each)
    return rows_function("hg_dot_chain", {**names, "EACH": rows_per_block, "EVERY": each}, latency, folder)


def rows_function(
    form: str, names: dict[str, int], latency: int, folder: Path
) -> Callable[..., npt.NDArray[np.uint64]]:
    """A form that takes weights a cycle before codes, with both in the same cycle."""
    columns, rows, x_bits, w_bits = (names[name] for name in ("SIMD", "ROWS", "X_W", "W_W"))
    ports, out = {"x": columns * x_bits, "w": rows * columns * w_bits}, rows * width(columns, x_bits, w_bits)
    text = ", ".join(f".{name}({value})" for name, value in names.items())
    late = folder / "late.v"
    late.write_text(_LATE.format(x=ports["x"] - 1, w=ports["w"] - 1, out=out - 1, form=form, parameters=text))
    files = [late, *(RTL / f"{name}.v" for name in (form, "hg_chain", *PARTS))]
    return compile_function(files, "late", {}, ports, ("sums", out), 1 + latency)


def holds_everywhere(
    dot: Callable[..., npt.NDArray[np.uint64]], columns: int, rows: int, x_bits: int, x_signed: int, w_bits: int
) -> None:
    """All vectors of x times all of w, with and without stalls."""
    x, w = (a.ravel() for a in np.meshgrid(*(np.arange(1 << n) for n in (columns * x_bits, rows * columns * w_bits))))
    xs, ws = unpacked(x, columns, x_bits, bool(x_signed)), unpacked(w, rows * columns, w_bits, True)
    sums = (xs[:, None, :] * ws.reshape(-1, rows, columns)).sum(axis=-1)
    expected = np.array(pack(sums, width(columns, x_bits, w_bits)), dtype=np.uint64)
    for stalls in (False, True):
        assert (dot(x=x, w=w, stalls=stalls) == expected).all()


@pytest.mark.cases(1)
@pytest.mark.parametrize("shape", EVERY_PACK)
def test_every_packed_dot(shape: tuple[int, int, int, int, int, int], tmp_path: Path) -> None:
    columns, rows, x_bits, x_signed, w_bits, _ = shape
    holds_everywhere(packed(shape, 1, tmp_path), columns, rows, x_bits, x_signed, w_bits)


@pytest.mark.parametrize("x_signed", [0, 1])
@pytest.mark.parametrize("guard", [0, 1, 2])
def test_what_fields_pass_on(guard: int, x_signed: int) -> None:
    """hg_chain computes the carry modulo 4. For the products that its contract allows, it is -2 to 1 after any row."""
    for x_bits, w_bits in itertools.product(range(1, 13), range(2, 13)):
        low, high = (-(1 << x_bits - 1), (1 << x_bits - 1) - 1) if x_signed else (0, (1 << x_bits) - 1)
        products = [x * w for x in (low, high) for w in (-(1 << w_bits - 1), (1 << w_bits - 1) - 1)]
        count = (8 << guard) - 1 if x_signed else 4 << guard
        min_carry = max_carry = 0
        for _ in range(4):
            min_carry, max_carry = (
                (count * end + below) >> x_bits + w_bits + guard
                for end, below in ((min(products), min_carry), (max(products), max_carry))
            )
            assert -2 <= min_carry <= max_carry <= 1, (x_bits, w_bits)


@pytest.mark.cases(1)
@pytest.mark.parametrize("shape", EVERY_CHAIN)
def test_every_chain(shape: tuple[int, int, int, int, int, int, int], tmp_path: Path) -> None:
    columns, rows, _, x_bits, x_signed, w_bits, _ = shape
    holds_everywhere(chained(shape, 1, tmp_path), columns, rows, x_bits, x_signed, w_bits)


@pytest.mark.cases(2)
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("shape", LONG_CHAINS)
def test_long_chains(shape: tuple[int, int, int, int, int, int, int], each: int, tmp_path: Path) -> None:
    """All pairs of extreme operands in all rows, for growing numbers of columns, and random operands."""
    columns, rows, _, x_bits, x_signed, w_bits, _ = shape
    rng = np.random.default_rng(each)
    x = integers(rng, x_bits, bool(x_signed), (6000, columns))
    w = integers(rng, w_bits, True, (6000, rows, columns))
    for k in range(columns << rows + 1):
        extremes = k >> 1
        x[k, : 1 + extremes % columns] = x.max() if k & 1 else x.min()
        for row in range(rows):
            w[k, row, : 1 + extremes % columns] = w.max() if extremes // columns >> row & 1 else w.min()
    dot = chained(shape, each, tmp_path)
    ws = w.reshape(-1, rows * columns)
    expected = np.array(pack((x[:, None, :] * w).sum(axis=-1), width(columns, x_bits, w_bits)), dtype=np.uint64)
    words = (np.array(pack(v, bits), dtype=np.uint64) for v, bits in ((x, x_bits), (ws, w_bits)))
    xs, packed_ws = words
    assert (dot(x=xs, w=packed_ws, stalls=True) == expected).all()


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("x_signed", [0, 1])
def test_rows_that_share_pairs(x_signed: int, each: int) -> None:
    """Each row takes its own weights, and all of them the same sums of two codes."""
    terms, rows, x_bits, w_bits = 5, 3, 4, 3
    rng = np.random.default_rng(each)
    x = integers(rng, x_bits, bool(x_signed), (4000, terms))
    w = integers(rng, w_bits, True, (4000, rows, terms))
    parameters = {"SIMD": terms, "ROWS": rows, "X_W": x_bits, "X_SIGNED": x_signed, "W_W": w_bits, "EVERY": each}
    ports, out = {"x": terms * x_bits, "w": rows * terms * w_bits}, rows * width(terms, x_bits, w_bits)
    files = [RTL / "hg_dot_pairs.v", *(RTL / f"{name}.v" for name in PARTS)]
    dot = compile_function(files, "hg_dot_pairs", parameters, ports, ("sums", out), pairs_latency(terms, w_bits, each))
    sums = np.array(pack((x[:, None] * w).sum(axis=-1), width(terms, x_bits, w_bits)), dtype=np.uint64)
    xs, ws = np.array(pack(x, x_bits), np.uint64), np.array(pack(w.reshape(4000, -1), w_bits), np.uint64)
    assert (dot(x=xs, w=ws, stalls=True) == sums).all()


@pytest.mark.cases(1)
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("shape", LONG_PACKS)
def test_many_packed_terms(shape: tuple[int, int, int, int, int, int], each: int, tmp_path: Path) -> None:
    """All pairs of extremes in all rows, and random operands."""
    columns, rows, x_bits, x_signed, w_bits, _ = shape
    rng = np.random.default_rng(each)
    x = integers(rng, x_bits, bool(x_signed), (4000, columns))
    w = integers(rng, w_bits, True, (4000, rows, columns))
    for k in range(1 << rows + 1):
        x[k] = x.max() if k & 1 else x.min()
        for row in range(rows):
            w[k, row] = w.max() if k >> row + 1 & 1 else w.min()
    dot = packed(shape, each, tmp_path)
    xs = np.array(pack(x, x_bits), dtype=np.uint64)
    ws = np.array(pack(w.reshape(4000, -1), w_bits), dtype=np.uint64)
    expected = np.array(pack((x[:, None, :] * w).sum(axis=-1), width(columns, x_bits, w_bits)), dtype=np.uint64)
    assert (dot(x=xs, w=ws, stalls=True) == expected).all()
