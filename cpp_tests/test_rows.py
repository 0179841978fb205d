"""hg/rows.hpp, hg/softmax.hpp, hg/norm.hpp: rows, compared with integers, fractions and numpy's float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import Case, case_of, run_cases

from hlsgen.dataflow.norm_units import NormScale, RowCodes, units_of
from hlsgen.dataflow.units import FLOAT_WORD, Node, RowsUnit, SoftmaxUnit, Stream, Unit, stream_of
from hlsgen.ir.graph import MASK_KEPT, MASK_REMOVED, MASK_UNIFORM
from hlsgen.ir.row_functions import (
    BelowLargest,
    FixedPointShare,
    IntegerNorm,
    RowFunction,
    Share,
    result_type,
    row_values,
)
from hlsgen.numerics.exponential import powers
from hlsgen.numerics.exponential_factors import factors
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.normalization import moments, normalized, reciprocal_root
from hlsgen.numerics.tflite.softmax import exponentials_in_integers

rng = np.random.default_rng(23)
INT8, UINT8 = IntType(-128, 127), IntType(0, 255)
FRAMES, ROWS = 2, 40
#: A case, and the words that its output stream must have.
CaseAndOutput = tuple[Case, Array]


def case(unit: Unit, sources: Sequence[Stream], inputs: Sequence[Array], result: Stream) -> Case:
    """Case with two frames. The processes of a function run in sequence: the first one reads all input."""
    node = Node("unit", unit, tuple("ab"[: len(sources)]), tuple(sources), ("m",), result)
    return replace(case_of(node, inputs, FRAMES), needs=())


def rows_of(type_: IntType, count: int) -> Array:
    """Rows of both frames: values close together, spread, equal, or at the ends of the type."""
    center = rng.uniform(type_.lo, type_.hi, (FRAMES * ROWS, 1))
    spread = rng.choice([0, 0.02, 0.1, 1], (FRAMES * ROWS, 1)) * (type_.hi - type_.lo)
    x = np.clip(np.rint(rng.normal(center, spread, (FRAMES * ROWS, count))), type_.lo, type_.hi).astype(np.int64)
    x[0], x[1], x[2] = type_.lo, type_.hi, np.where(np.arange(count) % 2, type_.lo, type_.hi)
    return x


def check(cases: Sequence[CaseAndOutput], dialect: str, folder: Path) -> None:
    outputs = run_cases(folder, [each_case for each_case, _ in cases], dialect)
    for streams, (each_case, expected) in zip(outputs, cases, strict=True):
        assert np.array_equal(streams[0], expected.astype(np.int64)), each_case.call


def function(f: RowFunction, type_: IntType, lanes: int, beats: int) -> CaseAndOutput:
    x = rows_of(type_, lanes * beats)
    if isinstance(f, Share | FixedPointShare):
        x[:, rng.integers(lanes * beats)] = 0
    unit = RowsUnit(f, beats, type_, lanes * beats)
    source, result = (stream_of(t, lanes, x.size // FRAMES, lanes * beats) for t in (type_, result_type(f, type_)))
    return case(unit, [source], [x.reshape(-1, lanes)], result), row_values(f, x).reshape(-1, lanes)


#: Dialects, each with the stride through the cases.
DIALECT_AND_STEP = [("ap", 2), ("ap", 1), ("ac", 2)]


def share(levels: int, a: int, b: int, c: int, log2: int) -> Share:
    """Weights and numbers of an iSoftmax."""
    below = np.arange(256)
    power = np.minimum(below // log2, 31)
    table = (a * (power * log2 - below + b) ** 2 + c) >> power
    return Share(table, table * (levels - 1))


def norm(
    centred: bool, count: int, max_weight: int, shift: int, max_bias: int = 0, type_: IntType = INT8
) -> IntegerNorm:
    weight, bias = (rng.integers(-end, end + 1, count) for end in (max_weight, max_bias))
    return IntegerNorm(centred, weight, bias, shift, type_, centred)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect, step", DIALECT_AND_STEP)
def test_rows_of_integers(dialect: str, step: int, tmp_path: Path) -> None:
    ita = 256 >> ((np.arange(256) + 16) >> 5)
    cases = [
        function(BelowLargest(), UINT8, 3, 2),
        function(BelowLargest(), IntType(-300, 90), 1, 1),
        function(share(256, 1, 345, 62395, 255), UINT8, 2, 4),
        function(share(16, 2, 20, 30, 9), IntType(0, 130), 4, 1),
        function(Share(ita, ita * 255), UINT8, 1, 3),
        function(FixedPointShare(exponentials_in_integers(0.1, 1.0), 8), UINT8, 2, 4),
        function(FixedPointShare(exponentials_in_integers(0.02, 1.0), 16), IntType(0, 130), 1, 7),
        function(norm(False, 8, 1 << 20, 16), INT8, 2, 4),
        function(norm(True, 6, 5000, 9, 900), UINT8, 1, 6),
        function(norm(True, 5, 90, 0, 9), IntType(-300, 7), 5, 1),
        function(norm(False, 1, 7, 0, type_=IntType(-4, 3)), IntType(-1, 0), 1, 1),
    ]
    check(cases[::step], dialect, tmp_path)


def mask_of(count: int) -> Array:
    """Mask rows with some masked-out elements, where the others count or are even, and one full row of each."""
    masked = rng.random((ROWS // 2, count)) < 0.6
    masked[:2] = False
    masked[np.arange(len(masked)), rng.integers(count, size=len(masked))] = False
    return np.where(
        masked, MASK_REMOVED, np.where(np.arange(len(masked)) % 2, MASK_UNIFORM, MASK_KEPT)[:, None]
    ).astype(np.uint8)


def softmax(
    lanes: int,
    beats: int,
    type_: IntType,
    step: float,
    *,
    in_order: bool = False,
    max_words: int = 0,
    masked: bool = False,
) -> CaseAndOutput:
    """Case of a Softmax. `max_words`: words of a lookup table, if powers are products of two."""
    count, exact = lanes * beats, Fraction(float(np.float32(step)))
    reach = type_.hi - type_.lo
    power = powers(exact, reach + 1)
    if in_order:
        high = np.float32(np.finfo(np.float32).max / np.float32(200 * count))
        power = (np.exp(-float(exact) * np.arange(reach + 1)) * high).astype(np.float32)
    numerator = power * np.float32(100) if in_order else power
    if (
        in_order and not power[1]
    ):  # quotients of 2^-24, of the next smaller number, which becomes 0, and of the next larger one
        quotient_2_24 = power[0] * np.float32(2.0**-24)
        numerator[1:4] = (
            quotient_2_24,
            np.nextafter(quotient_2_24, np.float32(0)),
            np.nextafter(quotient_2_24, power[0]),
        )
    closed = masked or len(power) <= reach
    x = rows_of(type_, count)
    mask = mask_of(count) if masked else None
    effective_codes, masked_distance = x, len(power) + reach
    if mask is not None:
        mask_rows = np.tile(mask, (len(x) // len(mask), 1))
        effective_codes = np.where(
            mask_rows == MASK_REMOVED, type_.lo - masked_distance, np.where(mask_rows == MASK_UNIFORM, type_.lo, x)
        )
    at = np.minimum(effective_codes.max(axis=1, keepdims=True) - effective_codes, masked_distance)
    e, top = (np.append(part, np.zeros(reach + 1, np.float32))[at] for part in (power, numerator))
    if in_order:
        total = np.zeros(len(x), np.float32)
        for column in e.T:
            total = total + column
        y = top / total[:, None]
        y = np.where(y < np.float32(2.0**-24), np.float32(0), y)
    else:
        sums = [nearest(sum(map(Fraction, row), Fraction(0))) for row in e.astype(float).tolist()]
        y = top * (np.float32(1) / np.array(sums, np.float32))[:, None]
    source = stream_of(type_, lanes, x.size // FRAMES, count)
    parts = factors(exact, power, reach, max_words, zero=masked) if max_words else None
    assert (parts is not None) == bool(max_words)
    unit = SoftmaxUnit(
        power, numerator, in_order, closed, lanes, beats, parts, None if mask is None else mask.reshape(-1)
    )
    bits = y.astype(np.float32).view(np.uint32).astype(np.int64)
    return case(unit, [source], [x.reshape(-1, lanes)], replace(source, type=FLOAT_WORD)), bits.reshape(-1, lanes)


def nearest(number: Fraction) -> float:
    """The number rounded to 24 bits, ties to even."""
    scale = Fraction(1)
    while number * scale < 1 << 23:
        scale *= 2
    while number * scale >= 1 << 24:
        scale /= 2
    return float(round(number * scale) / scale)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect, step", DIALECT_AND_STEP)
def test_softmax(dialect: str, step: int, tmp_path: Path) -> None:
    cases = [
        softmax(2, 4, INT8, 0.0142),
        softmax(4, 1, UINT8, 0.3),
        softmax(1, 1, IntType(-4, 3), 0.5),
        softmax(5, 2, INT8, 1.0),  # subnormal powers and products
        softmax(1, 6, IntType(-100, 7), 200.0),  # every power except 1 is 0
        softmax(2, 3, IntType(-3000, 2000), 0.003, max_words=200),
        softmax(1, 4, IntType(0, 9000), 0.02, max_words=200),
        softmax(1, 2, IntType(0, 3), 200.0, in_order=True),
        softmax(1, 6, INT8, 0.05, in_order=True),
        softmax(1, 3, INT8, 2.5, in_order=True),
        softmax(2, 3, IntType(5, 90), 0.05, masked=True),
        softmax(3, 2, IntType(-3000, 2000), 0.003, max_words=200, masked=True),
        softmax(5, 1, INT8, 0.9, masked=True),
    ]
    check(cases[::step], dialect, tmp_path)


F = Fraction
# lanes, beats, type of the codes, shift, offset, centered, addend, rows in flight
NORMS: list[tuple[int, int, IntType, int, int, bool, Fraction, int]] = [
    (2, 3, IntType(-8, 7), 0, 0, True, F(36) * F(float(np.float32(1e-5))) / F(float(np.float32(0.3))) ** 2, 2),
    (3, 8, INT8, 0, 0, True, F(5, 4), 3),
    (1, 5, IntType(0, 3), 1, -3, False, F(1, 1 << 20), 2),
    (8, 2, IntType(0, 15), 0, 0, True, F(12345678901, 1000), 99),
]


def norm_units(
    lanes: int,
    beats: int,
    type_: IntType,
    shift: int,
    offset: int,
    centered: bool,
    addend: Fraction,
    rows_in_flight: int,
) -> list[CaseAndOutput]:
    """Cases of the three units of a normalization. Each gets the expected output of the previous one."""
    count = lanes * beats
    rows = RowCodes(count, type_, shift, offset, centered)
    units = units_of(rows, addend, lanes, rows_in_flight)
    moments_unit, root, scale = units
    x = rows_of(type_, count)
    q = (x << shift) + offset
    _, moment = moments(q, centered)
    low = (q.sum(axis=1) if centered else 0 * moment) & ((1 << rows.sum_bits) - 1)
    roots = [reciprocal_root(int(m), addend) for m in moment]
    sums = [int(m) << rows.sum_bits | int(s) for m, s in zip(moment, low, strict=True)]
    factors = [
        (1 - root.constants.exponent - e << 24 | m) << rows.sum_bits | int(s)
        for (m, e), s in zip(roots, low, strict=True)
    ]
    real = normalized(q, centered, addend).astype(np.float32).view(np.uint32).astype(np.int64)
    codes = stream_of(type_, lanes, x.size // FRAMES, count)
    widths = moments_unit.moment_bits + rows.sum_bits, root.constants.step_bits + 24 + rows.sum_bits
    words = [stream_of(IntType(0, (1 << bits) - 1), 1, ROWS, 1) for bits in widths]
    beats_of = [np.array(values, object).reshape(-1, 1) for values in (sums, factors)]
    elements = x.reshape(-1, lanes)
    streams: list[tuple[Unit, list[Stream], list[Array], Stream, Array]] = [
        (moments_unit, [codes], [elements], words[0], beats_of[0]),
        (root, [words[0]], [beats_of[0]], words[1], beats_of[1]),
        (scale, [codes, words[1]], [elements, beats_of[1]], replace(codes, type=FLOAT_WORD), real.reshape(-1, lanes)),
    ]
    cases = []
    for unit, sources, inputs, result, expected in streams:
        node = Node("unit", unit, tuple("ab"[: len(sources)]), tuple(sources), ("m",), result)
        cases.append((case_of(node, inputs, FRAMES), expected))
        assert isinstance(unit, NormScale) or int(max(expected[:, 0])).bit_length() <= result.type.bits <= 63
    return cases


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect, step", DIALECT_AND_STEP)
def test_normalization(dialect: str, step: int, tmp_path: Path) -> None:
    units = [norm_units(*norm) for norm in NORMS[::step]]
    check([each_case for cases in units for each_case in cases], dialect, tmp_path)
