"""hg/rows.hpp, hg/softmax.hpp, hg/norm.hpp: functions of rows, against integers, fractions and numpy's float32."""

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
from hlsgen.ir.graph import COUNTS, EVEN, GONE
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, RowFunction, Share, result_type, row_values
from hlsgen.numerics.exponential import powers
from hlsgen.numerics.exponential_factors import factors
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.normalization import moments, normalized, reciprocal_root

rng = np.random.default_rng(23)
INT8, UINT8 = IntType(-128, 127), IntType(0, 255)
FRAMES, ROWS = 2, 40
#: Streams of a unit, what goes in, and the words that must come out.
Made = tuple[Case, Array]


def case(unit: Unit, sources: Sequence[Stream], inputs: Sequence[Array], result: Stream) -> Case:
    """Two frames. Functions of several processes are simulated one process after the other: the first of them reads all."""
    node = Node("unit", unit, tuple("ab"[: len(sources)]), tuple(sources), ("m",), result)
    return replace(case_of(node, inputs, FRAMES), needs=())


def rows_of(type_: IntType, count: int) -> Array:
    """Rows of both frames: near each other, far apart, equal, at the ends."""
    center = rng.uniform(type_.lo, type_.hi, (FRAMES * ROWS, 1))
    spread = rng.choice([0, 0.02, 0.1, 1], (FRAMES * ROWS, 1)) * (type_.hi - type_.lo)
    x = np.clip(np.rint(rng.normal(center, spread, (FRAMES * ROWS, count))), type_.lo, type_.hi).astype(np.int64)
    x[0], x[1], x[2] = type_.lo, type_.hi, np.where(np.arange(count) % 2, type_.lo, type_.hi)
    return x


def check(made: Sequence[Made], dialect: str, folder: Path) -> None:
    found = run_cases(folder, [own for own, _ in made], dialect)
    for streams, (own, wanted) in zip(found, made, strict=True):
        assert np.array_equal(streams[0], wanted.astype(np.int64)), own.call


def function(f: RowFunction, type_: IntType, lanes: int, beats: int) -> Made:
    x = rows_of(type_, lanes * beats)
    if isinstance(f, Share):
        x[:, rng.integers(lanes * beats)] = 0
    unit = RowsUnit(f, beats, type_, lanes * beats)
    source, result = (stream_of(t, lanes, x.size // FRAMES, lanes * beats) for t in (type_, result_type(f, type_)))
    return case(unit, [source], [x.reshape(-1, lanes)], result), row_values(f, x).reshape(-1, lanes)


#: Dialects, and every how many of the cases.
EVERY = [("ap", 2), ("ap", 1), ("ac", 2)]


def share(levels: int, a: int, b: int, c: int, log2: int) -> Share:
    """The tables of an iSoftmax."""
    below = np.arange(256)
    power = np.minimum(below // log2, 31)
    table = (a * (power * log2 - below + b) ** 2 + c) >> power
    return Share(table, table * (levels - 1))


def norm(centred: bool, count: int, most: int, shift: int, biased: int = 0, type_: IntType = INT8) -> IntegerNorm:
    weight, bias = (rng.integers(-end, end + 1, count) for end in (most, biased))
    return IntegerNorm(centred, weight, bias, shift, type_, centred)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect, every", EVERY)
def test_rows_of_integers(dialect: str, every: int, tmp_path: Path) -> None:
    ita = 256 >> ((np.arange(256) + 16) >> 5)
    made = [
        function(BelowLargest(), UINT8, 3, 2), function(BelowLargest(), IntType(-300, 90), 1, 1),
        function(share(256, 1, 345, 62395, 255), UINT8, 2, 4), function(share(16, 2, 20, 30, 9), IntType(0, 130), 4, 1),
        function(Share(ita, ita * 255), UINT8, 1, 3), function(norm(False, 8, 1 << 20, 16), INT8, 2, 4),
        function(norm(True, 6, 5000, 9, 900), UINT8, 1, 6), function(norm(True, 5, 90, 0, 9), IntType(-300, 7), 5, 1),
        function(norm(False, 1, 7, 0, type_=IntType(-4, 3)), IntType(-1, 0), 1, 1),
    ]  # fmt: skip
    check(made[::every], dialect, tmp_path)


def mask_of(count: int) -> Array:
    """Rows in which some elements are gone and the others count, or are even, and one of each whole."""
    gone = rng.random((ROWS // 2, count)) < 0.6
    gone[:2] = False
    gone[np.arange(len(gone)), rng.integers(count, size=len(gone))] = False
    return np.where(gone, GONE, np.where(np.arange(len(gone)) % 2, EVEN, COUNTS)[:, None]).astype(np.uint8)


def softmax(
    lanes: int, beats: int, type_: IntType, step: float, *, in_order: bool = False, most: int = 0, masked: bool = False
) -> Made:  # fmt: skip
    """`most`: words of a table, if powers are products of two."""
    count, exact = lanes * beats, Fraction(float(np.float32(step)))
    reach = type_.hi - type_.lo
    power = powers(exact, reach + 1)
    if in_order:
        high = np.float32(np.finfo(np.float32).max / np.float32(200 * count))
        power = (np.exp(-float(exact) * np.arange(reach + 1)) * high).astype(np.float32)
    numerator = power * np.float32(100) if in_order else power
    if in_order and not power[1]:  # quotients of 2^-24, of what becomes 0, and of the next one
        least = power[0] * np.float32(2.0**-24)
        numerator[1:4] = least, np.nextafter(least, np.float32(0)), np.nextafter(least, power[0])
    closed = masked or len(power) <= reach
    x = rows_of(type_, count)
    mask = mask_of(count) if masked else None
    own, far = x, len(power) + reach
    if mask is not None:
        says = np.tile(mask, (len(x) // len(mask), 1))
        own = np.where(says == GONE, type_.lo - far, np.where(says == EVEN, type_.lo, x))
    at = np.minimum(own.max(axis=1, keepdims=True) - own, far)
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
    parts = factors(exact, power, reach, most, zero=masked) if most else None
    assert (parts is not None) == bool(most)
    unit = SoftmaxUnit(
        power, numerator, in_order, closed, lanes, beats, parts, None if mask is None else mask.reshape(-1)
    )
    bits = y.astype(np.float32).view(np.uint32).astype(np.int64)
    return case(unit, [source], [x.reshape(-1, lanes)], replace(source, type=FLOAT_WORD)), bits.reshape(-1, lanes)


def nearest(number: Fraction) -> float:
    """The nearest number of 24 bits, the even one of two."""
    scale = Fraction(1)
    while number * scale < 1 << 23:
        scale *= 2
    while number * scale >= 1 << 24:
        scale /= 2
    return float(round(number * scale) / scale)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect, every", EVERY)
def test_softmax(dialect: str, every: int, tmp_path: Path) -> None:
    made = [
        softmax(2, 4, INT8, 0.0142), softmax(4, 1, UINT8, 0.3), softmax(1, 1, IntType(-4, 3), 0.5),
        softmax(5, 2, INT8, 1.0),  # powers and products below the smallest normal number
        softmax(1, 6, IntType(-100, 7), 200.0),  # a power but 1 is 0
        softmax(2, 3, IntType(-3000, 2000), 0.003, most=200), softmax(1, 4, IntType(0, 9000), 0.02, most=200),
        softmax(1, 2, IntType(0, 3), 200.0, in_order=True),
        softmax(1, 6, INT8, 0.05, in_order=True), softmax(1, 3, INT8, 2.5, in_order=True),
        softmax(2, 3, IntType(5, 90), 0.05, masked=True),
        softmax(3, 2, IntType(-3000, 2000), 0.003, most=200, masked=True), softmax(5, 1, INT8, 0.9, masked=True),
    ]  # fmt: skip
    check(made[::every], dialect, tmp_path)


F = Fraction
# lanes, beats, type of the codes, shift, offset, centered, addend, ways
NORMS: list[tuple[int, int, IntType, int, int, bool, Fraction, int]] = [
    (2, 3, IntType(-8, 7), 0, 0, True, F(36) * F(float(np.float32(1e-5))) / F(float(np.float32(0.3))) ** 2, 2),
    (3, 8, INT8, 0, 0, True, F(5, 4), 3),
    (1, 5, IntType(0, 3), 1, -3, False, F(1, 1 << 20), 2),
    (8, 2, IntType(0, 15), 0, 0, True, F(12345678901, 1000), 99),
]


def norm_units(
    lanes: int, beats: int, type_: IntType, shift: int, offset: int, centered: bool, addend: Fraction, ways: int
) -> list[Made]:
    """The three units of a normalization: each gets what the one before has to send."""
    count = lanes * beats
    rows = RowCodes(count, type_, shift, offset, centered)
    units = units_of(rows, addend, lanes, ways)
    own, root, scale = units
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
    widths = own.moment_bits + rows.sum_bits, root.constants.step_bits + 24 + rows.sum_bits
    words = [stream_of(IntType(0, (1 << bits) - 1), 1, ROWS, 1) for bits in widths]
    beats_of = [np.array(values, object).reshape(-1, 1) for values in (sums, factors)]
    elements = x.reshape(-1, lanes)
    streams: list[tuple[Unit, list[Stream], list[Array], Stream, Array]] = [
        (own, [codes], [elements], words[0], beats_of[0]),
        (root, [words[0]], [beats_of[0]], words[1], beats_of[1]),
        (scale, [codes, words[1]], [elements, beats_of[1]], replace(codes, type=FLOAT_WORD), real.reshape(-1, lanes)),
    ]
    made = []
    for unit, sources, inputs, result, wanted in streams:
        node = Node("unit", unit, tuple("ab"[: len(sources)]), tuple(sources), ("m",), result)
        made.append((case_of(node, inputs, FRAMES), wanted))
        assert isinstance(unit, NormScale) or int(max(wanted[:, 0])).bit_length() <= result.type.bits <= 63
    return made


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect, every", EVERY)
def test_normalization(dialect: str, every: int, tmp_path: Path) -> None:
    units = [norm_units(*norm) for norm in NORMS[::every]]
    check([own for made in units for own in made], dialect, tmp_path)
