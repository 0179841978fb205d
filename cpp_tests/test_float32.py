"""hg/float32.hpp: float32 units, compared with numpy, exact integers and the definitions of the Verilog modules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of
from rescale_cases import check, every_input, integers
from test_f32 import (
    around_integers,
    canonical,
    code_reference,
    exact_float,
    round_reference,
    scale_cases,
    specials,
    uniform,
)

from hlsgen.dataflow.units import FLOAT_WORD, FloatUnit, JoinStreams, Node, Stream
from hlsgen.hls.binding.float_units import bind_float_key, bind_float_unit
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.ops import BinaryKind
from hlsgen.numerics.fixed import Array, IntType, Rounding, int_type
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatOp, RoundToFloat, ToCode, ToFloat

OPERATIONS = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAX": np.maximum,
    "MIN": np.minimum,
}


def unit(op: FloatOp, table: Array, source: IntType, result: IntType, x: Array) -> Case:
    """Case with one frame; x int64 (beats, lanes)."""
    stream = Stream(source, x.shape[1], len(x), x.size)
    return Case(bind_float_unit(FloatUnit(op, table), stream), [x], [(source, x.shape[1])], [(result, x.shape[1])])


def words(x: Array) -> Array:
    return x.astype(np.int64)


def arithmetic(op: str) -> tuple[Case, Array]:
    """Special constants in several folds, on special and uniformly drawn numbers."""
    rng = np.random.default_rng(len(op))
    ends = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1], np.uint32)
    c = np.concatenate([np.repeat(ends, 2), specials()[::7], uniform(rng, 36)])
    c = c[: len(c) // 2 * 2].reshape(-1, 2)
    x = np.concatenate([np.repeat(specials(), len(c)), uniform(rng, 200 * len(c))]).reshape(-1, 1)
    # Inputs of the other lane are close to the constant: sums cancel, quotients are near one, and NaN meets NaN.
    x = np.concatenate([x, np.resize(c[:, 1], len(x))[:, None] ^ (uniform(rng, len(x)) >> 9 & 0x801FFFFF)[:, None]], 1)
    with np.errstate(all="ignore"):
        a, b = x.astype(np.uint32).view(np.float32), np.resize(c, x.shape).view(np.float32)
        expected = canonical(OPERATIONS[op](a, b))
    if op in ("MAX", "MIN"):  # -0 is below +0
        zeros = (a == 0) & (b == 0)
        bits = a.view(np.uint32), b.view(np.uint32)
        expected[zeros] = (bits[0] & bits[1] if op == "MAX" else bits[0] | bits[1])[zeros]
    table = np.arange(c.size).reshape(c.shape)
    return unit(Arithmetic(op, c.view(np.float32).reshape(-1)), table, FLOAT_WORD, FLOAT_WORD, words(x)), words(
        expected
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_arithmetic(dialect: str, tmp_path: Path) -> None:
    check(tmp_path, [arithmetic(op) for op in OPERATIONS if op != "SUB"], dialect)


def joined(kind: BinaryKind) -> tuple[Case, Array]:
    """Every pair of special numbers, and uniformly drawn pairs that are close to each other in one lane."""
    rng = np.random.default_rng(len(kind.value))
    pairs = np.stack(np.meshgrid(specials(), specials()), axis=-1).reshape(-1, 2)
    drawn = uniform(rng, 4000)
    near = np.stack([drawn, drawn ^ (uniform(rng, 4000) >> 9 & 0x801FFFFF)], axis=1)
    a, b = np.concatenate([pairs, near, uniform(rng, 4000).reshape(-1, 2)])[: (len(pairs) + 6000) // 2 * 2].T
    a, b = (operand.astype(np.uint32).reshape(-1, 2) for operand in (a, b))
    with np.errstate(all="ignore"):
        expected = canonical(OPERATIONS[kind.name](a.view(np.float32), b.view(np.float32)))
    stream = Stream(FLOAT_WORD, 2, len(a), a.size)
    node = Node("u", JoinStreams(floats=kind), ("a", "b"), (stream, stream), ("m",), stream)
    return case_of(node, [words(a), words(b)]), words(expected)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_streams(dialect: str, tmp_path: Path) -> None:
    check(tmp_path, [joined(kind) for kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)], dialect)


def rounded(mode: Rounding) -> tuple[Case, Array]:
    rng = np.random.default_rng(mode)
    x = np.concatenate([uniform(rng, 2000), around_integers(rng, 4000)]).reshape(-1, 1)
    number = x.view(np.float32)
    expected = canonical(np.copysign(np.abs(round_reference(number, mode)), number))
    return unit(RoundToFloat(mode), np.zeros((1, 1), np.int64), FLOAT_WORD, FLOAT_WORD, words(x)), words(expected)


def coded(mode: int, width: int, signed: bool) -> tuple[Case, Array]:
    """All pairs of bounds, one per fold."""
    rng = np.random.default_rng(mode * 100 + width)
    result = int_type(width, signed)
    low, high = result.lo, (1 << (width - signed)) - 1
    bounds = [(-np.inf, np.inf), (low, high), (-5, 17), (0, 2**32), (-(2**31), 2**31), (3, 3), (-9, -0.0)]
    x = np.concatenate([uniform(rng, 2000), around_integers(rng, 3000)])
    x = np.repeat(x, len(bounds)).reshape(-1, 1)
    lows, highs = (np.array([pair[n] for pair in bounds], np.float32) for n in (0, 1))
    expected = np.empty(x.shape, np.int64)
    for k in range(len(bounds)):
        code = code_reference(x[k :: len(bounds)].view(np.float32), lows[k], highs[k], mode, width, int(signed)).view(
            np.int64
        )
        expected[k :: len(bounds)] = code - ((code >> (width - 1) & 1) << width if signed else 0)
    op, exact = ToCode(mode, result, lows, highs), IntType(low, high)
    return unit(op, np.arange(len(bounds))[:, None], FLOAT_WORD, exact, words(x)), expected


CODES = [
    *((mode, 8, True) for mode in range(8)),
    (0, 33, False),
    (0, 33, True),
    (0, 32, True),
    (0, 1, False),
    (0, 1, True),
]
CODES += [(2, 16, False), (3, 33, False), (5, 33, True), (6, 33, True), (7, 1, False)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_rounding(dialect: str, tmp_path: Path) -> None:
    check(tmp_path, [*map(rounded, Rounding), *(coded(*parameters) for parameters in CODES)], dialect)


def decoded(bits: int, signed: bool, shift: int, b_bits: int, m_bits: int, seed: int) -> tuple[Case, Array]:
    """Sums of all magnitudes, with mantissas and exponents that cause ties, underflow and overflow."""
    rng = np.random.default_rng(seed)
    source = int_type(bits, signed)
    lanes = 3
    cases = scale_cases(max(bits, b_bits), m_bits, 40 * lanes)
    sets = len(cases)
    offset = integers(rng, b_bits, True, (sets,)) if b_bits else np.zeros(sets, np.int64)
    mantissa, exponent = (np.array([case[n] for case in cases], np.int64) for n in (1, 2))
    table = np.arange(sets).reshape(-1, lanes)
    x = every_input(source, lanes, len(table)) if bits <= 8 else integers(rng, bits, signed, (40 * len(table), lanes))
    x = x[: len(x) // len(table) * len(table)]
    if bits > 8:  # numbers with fewer bits
        x = x >> rng.integers(0, bits - 1, x.shape)
    chosen = table[np.arange(len(x)) % len(table)]
    sums = (x << shift) + offset[chosen]
    values = zip(
        sums.ravel().tolist(), mantissa[chosen].ravel().tolist(), exponent[chosen].ravel().tolist(), strict=True
    )
    expected = np.array([exact_float(v * m, e) for v, m, e in values]).reshape(x.shape)
    return unit(ToFloat(source, shift, offset, mantissa, exponent), table, source, FLOAT_WORD, x), expected


def converted(
    bits: int, signed: bool, shift: int, b_bits: int, min_exponent: int, max_exponent: int
) -> tuple[Case, Array]:
    """Mantissas that are powers of two."""
    rng = np.random.default_rng(bits)
    source, table = int_type(bits, signed), np.arange(6).reshape(3, 2)
    offset = integers(rng, b_bits, True, (6,)) if b_bits else np.zeros(6, np.int64)
    places = rng.integers(0, 40, 6)
    exponent = rng.integers(min_exponent, max_exponent, 6, endpoint=True)
    exponent[0], exponent[-1] = min_exponent, max_exponent
    x = every_input(source, 2, 3) if bits <= 8 else integers(rng, bits, signed, (3000, 2))
    if bits > 8:
        x = x >> rng.integers(0, bits - 1, x.shape)
    chosen = table[np.arange(len(x)) % 3]
    sums = (x << shift) + offset[chosen]
    expected = [
        exact_float(v, e) for v, e in zip(sums.ravel().tolist(), exponent[chosen].ravel().tolist(), strict=True)
    ]
    op = ToFloat(source, shift, offset, np.int64(1) << places, exponent - places)
    case = unit(op, table, source, FLOAT_WORD, x)
    assert case.call.function == "hg::f32_convert"
    return case, np.array(expected).reshape(x.shape)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_integers_to_float(dialect: str, tmp_path: Path) -> None:
    cases = [
        decoded(8, True, 0, 9, 24, 1),
        decoded(16, False, 5, 30, 40, 2),
        decoded(4, False, 0, 0, 1, 3),
        decoded(40, True, 3, 50, 48, 4),
        decoded(1, False, 0, 1, 48, 5),
        converted(8, True, 0, 0, 0, 0),
        converted(40, True, 4, 50, -126, 60),
        converted(33, False, 0, 20, -20, 3),
    ]
    check(tmp_path, cases, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_key(dialect: str, tmp_path: Path) -> None:
    """All upper halves, special numbers with their neighbours, and uniformly drawn numbers."""
    rng = np.random.default_rng(1)
    x = np.concatenate([np.arange(1 << 16, dtype=np.uint32) << 16, specials(), uniform(rng, 20000)])
    x = x[: len(x) // 2 * 2].reshape(-1, 2)
    call = bind_float_key(Stream(FLOAT_WORD, 2, len(x), x.size))
    case = Case(call, [words(x)], [(FLOAT_WORD, 2)], [(FLOAT_WORD, 2)])
    check(tmp_path, [(case, float_to_key(x.view(np.float32)))], dialect)
