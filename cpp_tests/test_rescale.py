"""Multiplying and look-up realizations of quantizers, compared with their `apply` on all inputs of up to 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case
from rescale_cases import all_inputs, check, every_input, integers, is_small, rescaled  # noqa: F401

from hlsgen.ir.ops import Pair, PairOp
from hlsgen.numerics.fixed import Array, IntType, int_type
from hlsgen.numerics.quantized_add import Parameters
from hlsgen.rescale import Comparators, FloatScale, LaneShift, Lines, PairAdd, PairScale, Rank, Scale, Table, Thresholds
from hlsgen.rescale.realize import correct, rank
from hlsgen.rescale.realize.lines import logistic, tanh
from hlsgen.rescale.realize.table import TableMode
from hlsgen.rescale.threshold_table import ThresholdTable


def inputs(source: IntType, lanes: int, folds: int, interesting: Array | None = None) -> Array:
    """All inputs in each fold, or random ones, most of them close to a value of `interesting`."""
    if is_small(source):
        return every_input(source, lanes, 2 * folds)
    rng = np.random.default_rng(source.bits)
    x = rng.integers(source.lo, source.hi, (1600, lanes), endpoint=True)
    if interesting is not None:
        x = np.where(
            rng.random(x.shape) < 0.7, rng.choice(interesting.ravel(), x.shape) + rng.integers(-2, 2, x.shape), x
        )
    return np.clip(x, source.lo, source.hi)


def sets_of(lanes: int, folds: int) -> Array:
    return np.random.default_rng(lanes).permutation(lanes * folds).reshape(folds, lanes)


def scaled(
    lanes: int, folds: int, source: IntType, m_bits: int, r_bits: int, shift: int, kind: str, low: int, high: int
) -> tuple[Case, Array]:
    """Case of a scale with random constants. `kind`: the function of the library."""
    rng = np.random.default_rng(source.bits + shift)
    sets = lanes * folds
    multiplier = integers(rng, m_bits, True, (sets,))
    multiplier[0] = -(1 << (m_bits - 1))
    addend, below = integers(rng, r_bits, True, (2, sets))
    odd, centre = None, None
    if kind == "scale_nearest":
        odd = rng.integers(0, 2, sets)
    if kind == "scale_mirrored":
        addend = rng.integers(0, 1 << shift, sets)
        below, centre = addend ^ ((1 << shift) - 1), np.zeros(sets, np.int64)
    if kind == "scale_sides":
        centre = rng.integers(source.lo, source.hi + 2, sets)
    realization = Scale(multiplier, addend, shift, low, high, odd, centre, None if centre is None else below)
    result = int_type(max(abs(low) - 1, high).bit_length() + 1, True)
    case = rescaled(realization, sets_of(lanes, folds), source, result, inputs(source, lanes, folds))
    assert case[0].call.function == f"hg::{kind}"
    return case


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_scale(dialect: str, tmp_path: Path) -> None:
    """Small multipliers and shifts that give ties, wide ones, shifts by 0, and shifts by more than all bits."""
    cases = [
        scaled(3, 1, int_type(11, True), 8, 12, 9, "scale", -128, 127),
        scaled(2, 3, int_type(27, True), 24, 40, 31, "scale", -1000, 1000),
        scaled(1, 1, IntType(0, 1), 1, 1, 0, "scale", -3, 3),
        scaled(3, 5, int_type(12, True), 9, 12, 6, "scale_nearest", -31, 30),
        scaled(2, 2, int_type(10, False), 4, 9, 5, "scale_nearest", -2000, 1999),
        scaled(2, 1, int_type(4, False), 3, 2, 12, "scale_nearest", -4, 5),
        scaled(1, 3, int_type(8, True), 5, 4, 0, "scale_nearest", -500, 500),
        scaled(3, 2, int_type(11, True), 4, 9, 5, "scale_mirrored", -2000, 1999),
        scaled(1, 3, int_type(9, True), 4, 6, 6, "scale_mirrored", -7, -2),
        scaled(2, 1, int_type(16, True), 17, 20, 22, "scale_mirrored", -8, 7),
        scaled(3, 5, int_type(12, True), 4, 12, 5, "scale_sides", -900, 900),
        scaled(2, 1, int_type(5, False), 3, 2, 12, "scale_sides", -4, 5),
    ]
    check(tmp_path, cases, dialect)


def floats(
    lanes: int,
    folds: int,
    source: IntType,
    b_bits: int,
    max_left: int,
    u_bits: int,
    m_bits: int,
    shift: int,
    z_bits: int,
    low: int,
    high: int,
) -> tuple[Case, Array]:
    """Case of a float32 product with random constants, and inputs whose product is near a tie, or saturates."""
    rng = np.random.default_rng(source.bits + shift)
    sets = lanes * folds
    mantissa = rng.integers(1 << (m_bits - 1), 1 << m_bits, sets)
    lefts = rng.integers(0, max_left, sets, endpoint=True)
    lefts[-1] = max_left
    offset, zero = (integers(rng, b, True, (sets,)) if b else np.zeros(sets, np.int64) for b in (b_bits, z_bits))
    realization = FloatScale(mantissa, lefts, shift, offset, zero, u_bits, low, high)
    step = np.ldexp(1.0, shift) / mantissa / np.exp2(lefts)
    ties = ((rng.integers(-40, 40, (400, sets)) + 0.5) * step - offset).clip(source.lo, source.hi)
    ends = ((np.array([[-1], [1]]) << u_bits) >> lefts) - offset
    near_ties = np.concatenate([np.rint(ties).astype(np.int64), ends.clip(source.lo, source.hi)])
    result = int_type(max(abs(low) - 1, high).bit_length() + 1, True)
    return rescaled(realization, sets_of(lanes, folds), source, result, inputs(source, lanes, folds, near_ties))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_scale_f32(dialect: str, tmp_path: Path) -> None:
    cases = [
        floats(3, 5, int_type(14, True), 12, 3, 15, 24, 31, 5, -31, 30),
        floats(1, 1, int_type(32, True), 31, 0, 29, 24, 46, 3, -128, 127),
        floats(1, 1, IntType(0, 1), 0, 0, 1, 1, 1, 0, -3, 3),
        floats(2, 3, int_type(40, True), 40, 5, 38, 24, 55, 9, -1000, 1000),
        floats(2, 4, int_type(10, False), 0, 1, 11, 20, 20, 4, 0, 255),
        floats(1, 2, int_type(8, True), 20, 0, 16, 24, 44, 0, -(2**15), 2**15 - 1),
        floats(2, 1, int_type(6, False), 3, 31, 40, 24, 60, 2, -4, 5),
        floats(1, 3, int_type(40, False), 5, 0, 25, 23, 26, 21, -(2**21), 2**21 - 1),
        tied(),
        beyond_a_tie(),
        onto_a_tie(),
    ]
    check(tmp_path, cases, dialect)


def tied() -> tuple[Case, Array]:
    """All inputs of 12 bits, with scales that give ties in float32: the codes equal numpy's."""
    rng = np.random.default_rng(2)
    scale = ((2 * rng.integers(1, 60, 8) + 1) / (4 * rng.integers(1, 10, 8) + 2)).astype(np.float32)
    fraction, exponent = np.frexp(scale)
    mantissa = (fraction * np.float32(1 << 24)).astype(np.int64)
    left = exponent.astype(np.int64) - exponent.min()
    zero = np.zeros(8, np.int64)
    realization = FloatScale(mantissa, left, 24 - int(exponent.min()), zero, zero, 12 + int(left.max()), -9000, 9000)
    source = int_type(12, True)
    x = every_input(source, 8)
    case, codes = rescaled(realization, np.arange(8)[None], source, int_type(15, True), x)
    product = x.astype(np.float32) * scale
    assert (codes == np.clip(np.rint(product), -9000, 9000)).all()
    exact = np.rint(x * scale.astype(np.float64))
    assert (np.clip(exact, -9000, 9000) != codes).sum() > 50
    return case, codes


def beyond_a_tie() -> tuple[Case, Array]:
    """Products so close above the float32 tie at 1/2 that only their lowest bits differ."""
    tie, step = (1 << 45) + (1 << 21), 1 << 21
    mantissa = np.random.default_rng(1).integers(1 << 22, 1 << 23, 400)
    x = -(-tie // mantissa)
    hit = ((x * mantissa > tie) & (x * mantissa < tie + step)).nonzero()[0][:8]
    zeros = np.zeros(8, np.int64)
    realization = FloatScale(mantissa[hit], zeros, 46, zeros, zeros, 24, -8, 7)
    inputs_near_tie = np.concatenate([sign * (x[hit] + d) for sign in (1, -1) for d in (0, -1, 1)]).reshape(-1, 8)
    assert realization.apply(inputs_near_tie)[::3].tolist() == [[1] * 8, [-1] * 8]
    return rescaled(realization, np.arange(8)[None], int_type(25, True), int_type(4, True), inputs_near_tie)


def onto_a_tie() -> tuple[Case, Array]:
    """Products half a float32 unit below 5 + 1/2 and 7 + 1/2, which become ties and round up."""
    mantissa, x = np.array([7689557, 39769]), np.array([3, 791])
    assert (mantissa * x == (np.array([11, 15]) << 21) - 1).all()
    zeros = np.zeros(2, np.int64)
    realization = FloatScale(mantissa, zeros, 22, zeros, zeros, 10, -99, 99)
    case, codes = rescaled(realization, np.arange(2)[None], int_type(11, True), int_type(8, True), np.stack([x, -x]))
    assert codes.tolist() == [[6, 8], [-6, -8]]
    return case, codes


def steps_of(lanes: int, folds: int, source: IntType, steps: int, base: int, turned: bool) -> ThresholdTable:
    """Random thresholds, some beyond the range and some duplicated. Every second function falls if `turned`."""
    rng = np.random.default_rng(source.bits + steps)
    sets = lanes * folds
    table = rng.integers(source.lo, source.hi + 1, (steps, sets), endpoint=True)
    table[0, ::3], table[-1, ::4] = source.lo, source.hi + 1
    values = np.repeat(base + np.arange(steps + 1)[:, None], sets, axis=1)
    if turned:
        values[:, ::2] = values[::-1, ::2]
    lo, hi = np.full(sets, source.lo), np.full(sets, source.hi)
    return ThresholdTable("f", lo, hi, np.sort(table, axis=0), values)


def compared(
    kind: type[Comparators] | type[Thresholds],
    lanes: int,
    folds: int,
    source: IntType,
    steps: int,
    base: int,
    turned: bool = False,
) -> tuple[Case, Array]:
    f = steps_of(lanes, folds, source, steps, base, turned)
    falling = np.asarray(f.values[0] > f.values[-1])
    realization = kind(np.where(falling, f.table[::-1], f.table), falling, base)
    x = inputs(source, lanes, folds, f.table)
    case, codes = rescaled(realization, sets_of(lanes, folds), source, IntType(base, base + steps), x)
    assert ("falling" in case.call.tables) == turned
    return case, codes


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_comparisons(dialect: str, tmp_path: Path) -> None:
    cases = []
    for kind in (Comparators, Thresholds):
        cases += [
            compared(kind, 3, 5, int_type(8, True), 3, -4, True),
            compared(kind, 4, 1, int_type(10, True), 15, -8, True),
            compared(kind, 2, 1, int_type(8, False), 7, 0, True),
            compared(kind, 1, 1, IntType(0, 1), 1, 0),
            compared(kind, 1, 2, IntType(-1, 0), 1, -1, True),
            compared(kind, 2, 3, int_type(32, False), 2, -3),
            compared(kind, 2, 1, int_type(32, True), 5, 3),
            compared(kind, 1, 4, int_type(16, True), 31, -16, True),
            compared(kind, 2, 2, int_type(12, True), 6, 0),
        ]
    cases.append(compared(Thresholds, 1, 2, int_type(12, True), 255, -128, True))
    check(tmp_path, cases, dialect)


def looked_up(
    lanes: int,
    folds: int,
    source: IntType,
    result: IntType,
    mode: TableMode,
    bits: int,
    max_center: int = 0,
    even: bool = False,
    total: int = 0,
) -> tuple[Case, Array]:
    """Case of a lookup table with random entries. `max_center`: largest distance of a center from zero."""
    rng = np.random.default_rng(source.bits + bits)
    sets = lanes * folds
    entries = rng.integers(result.lo, result.hi, (1 << bits, sets), endpoint=True)
    center = rng.integers(-max_center if source.signed else 0, max_center, sets, endpoint=True)
    center[:1] = max_center
    if mode == TableMode.HALF:  # keep entries whose mirror image is a code
        entries = np.clip(entries, max(result.lo, total - result.hi), min(result.hi, total - result.lo))
    near_centers = center + rng.integers(-3 << bits, 3 << bits, (400, sets))
    x = inputs(source, lanes, folds, near_centers)
    return rescaled(Table(mode, entries, center, even, total), sets_of(lanes, folds), source, result, x)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_tables(dialect: str, tmp_path: Path) -> None:
    full, window, half = TableMode
    cases = [
        looked_up(2, 3, int_type(9, True), int_type(6, True), half, 5, 100, True, -7),
        looked_up(3, 1, int_type(8, False), int_type(8, False), full, 8),
        looked_up(2, 5, int_type(8, True), int_type(3, True), window, 4, 60),
        looked_up(1, 1, int_type(10, True), int_type(8, False), half, 7, 0, total=255),
        looked_up(2, 1, int_type(10, True), int_type(8, True), half, 7, 0, True),
        looked_up(1, 2, int_type(8, False), int_type(4, False), half, 8, 200, total=15),
        looked_up(1, 1, IntType(-1, 0), int_type(2, True), full, 1),
        looked_up(1, 2, IntType(0, 1), IntType(0, 1), half, 1, 1, True, 1),
        looked_up(2, 3, int_type(8, True), int_type(5, False), full, 5),
        looked_up(2, 2, int_type(32, False), int_type(16, True), window, 6, 2**32 - 70),
        looked_up(2, 3, int_type(32, True), int_type(4, False), half, 3, 2**30, True, 15),
        looked_up(1, 3, int_type(9, True), int_type(4, True), window, 9, 200),
    ]
    check(tmp_path, cases, dialect)


def cascade(lanes: int, source: IntType, result: IntType, steps: int, low: int = 0) -> tuple[Case, Array]:
    """Case of a cascade with thresholds at multiples of 2^low, and any codes between them."""
    rng = np.random.default_rng(source.bits + steps)
    table = rng.integers((source.lo >> low) + 1, source.hi >> low, (steps, lanes), endpoint=True) << low
    values = rng.integers(result.lo, result.hi, (steps + 1, lanes), endpoint=True)
    values[1:, 0] = np.where(values[1:, 0] == values[:-1, 0], values[:-1, 0] ^ 1, values[1:, 0])
    lo, hi = np.full(lanes, source.lo), np.full(lanes, source.hi)
    f = ThresholdTable("f", lo, hi, np.sort(table, axis=0), values)
    realization = rank.find(f)
    assert isinstance(realization, Rank)
    return rescaled(realization, np.arange(lanes)[None], source, result, inputs(source, lanes, 1, f.table))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_rank(dialect: str, tmp_path: Path) -> None:
    cases = [
        cascade(3, int_type(11, True), int_type(4, True), 15),
        cascade(2, int_type(7, False), int_type(3, False), 5, 2),
        cascade(1, IntType(0, 1), IntType(0, 1), 1),
        cascade(2, IntType(-1, 0), int_type(2, True), 1),
        cascade(2, int_type(32, True), int_type(3, False), 7),
        cascade(2, int_type(40, False), int_type(5, True), 12, 20),
        cascade(1, int_type(12, False), int_type(8, False), 200),
    ]
    check(tmp_path, cases, dialect)


def lane_shifted(lanes: int, source: IntType, result: IntType, most_shift: int) -> tuple[Case, Array]:
    """Case with all roundings, shifts, offsets and bounds, one set for each lane."""
    rng = np.random.default_rng(source.bits)
    bounds = np.sort(rng.integers(result.lo, result.hi + 1, (2, lanes)), axis=0)
    left_shift, shift = rng.integers(0, 4, lanes), rng.integers(0, most_shift + 1, lanes)
    ends = np.full(lanes, source.lo), np.full(lanes, source.hi)
    realization = LaneShift(left_shift, shift, np.arange(lanes) % 7, rng.integers(-90, 90, lanes), *bounds, *ends)
    return rescaled(realization, np.arange(lanes)[None], source, result, inputs(source, lanes, 1))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_lane_shift(dialect: str, tmp_path: Path) -> None:
    cases = [
        lane_shifted(14, int_type(9, True), int_type(5, True), 6),
        lane_shifted(8, int_type(10, False), int_type(6, False), 9),
        lane_shifted(7, int_type(30, True), int_type(8, True), 24),
        lane_shifted(7, int_type(6, True), int_type(10, True), 0),  # nothing to round
    ]
    check(tmp_path, cases, dialect)


def lined(lanes: int, source: IntType, result: IntType, knots: int, lines: Lines | None = None) -> tuple[Case, Array]:
    """Case with random knots, or with `lines`."""
    if lines is None:
        rng = np.random.default_rng(source.bits)
        values, rises = rng.integers(0, 1 << 9, (2, knots))
        lines = Lines(5, 2, 4, values, rises, 3, 2, 77)
    return rescaled(lines, np.zeros((1, lanes), np.int64), source, result, inputs(source, lanes, 1))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_lines(dialect: str, tmp_path: Path) -> None:
    int16 = int_type(16, True)
    cases = [
        lined(2, int_type(9, True), int_type(14, True), 8),
        lined(1, int_type(7, False), int_type(14, True), 2),
        lined(2, int16, int16, 256, logistic(3, 0)),
        lined(2, int16, int16, 256, tanh(24769, 24)),
    ]
    check(tmp_path, cases, dialect)


def corrected(
    lanes: int, folds: int, source: IntType, steps: int, base: int, reach: float, noise: int, has_rest: bool = False
) -> tuple[Case, Array]:
    """Case with thresholds roughly evenly spaced over the share `reach` of the inputs, moved by up to `noise`."""
    rng = np.random.default_rng(source.bits + steps)
    sets = lanes * folds
    span = (source.hi - source.lo) * reach * rng.uniform(0.6, 1, sets)
    origin = source.lo + (source.hi - source.lo - span) * rng.uniform(0.2, 0.8, sets)
    table = np.ceil(origin + span * (np.arange(steps)[:, None] + 0.5) / steps).astype(np.int64)
    table = np.clip(table + rng.integers(-noise, noise + 1, table.shape), source.lo, source.hi + 1)
    values = np.broadcast_to(base + np.arange(steps + 1)[:, None], (steps + 1, sets))
    f = ThresholdTable("f", np.full(sets, source.lo), np.full(sets, source.hi), table, values)
    realization = correct.find(f, folds > 1)
    assert isinstance(realization, correct.Correct), realization
    assert (realization.rest_bits > 0) == has_rest
    case, codes = rescaled(
        realization,
        np.arange(sets).reshape(folds, lanes),
        source,
        IntType(base, base + steps),
        inputs(source, lanes, folds, table),
    )
    x, fold = case.inputs[0], np.arange(len(case.inputs[0])) % folds
    exact_codes = np.stack(
        [
            f.apply(np.broadcast_to(x[:, [k]], (len(x), sets)))[np.arange(len(x)), fold * lanes + k]
            for k in range(lanes)
        ],
        1,
    )
    assert (codes == exact_codes).all()
    return case, codes


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_correct(dialect: str, tmp_path: Path) -> None:
    cases = [
        corrected(3, 1, int_type(16, True), 255, -128, 0.5, 0),
        corrected(2, 3, int_type(12, True), 31, 0, 0.3, 0),
        corrected(3, 1, int_type(12, True), 15, -8, 0.6, 5),
        corrected(3, 1, int_type(32, True), 255, -128, 0.9, 60, has_rest=True),
        corrected(1, 2, int_type(32, False), 127, 0, 0.5, 0),
        corrected(1, 4, int_type(32, True), 31, 3, 0.1, 1000, has_rest=True),
        corrected(2, 1, IntType(0, 1), 1, 0, 1.0, 0),
        corrected(2, 2, IntType(-1, 0), 1, -1, 1.0, 0),
        corrected(2, 3, int_type(24, True), 255, -128, 0.8, 9, has_rest=True),
        corrected(2, 1, int_type(9, True), 255, -128, 0.8, 0),
    ]
    check(tmp_path, cases, dialect)


INT8, UINT8 = IntType(-128, 127), IntType(0, 255)
SIGNED = Pair(PairOp.ADD, INT8, "int8")
UNSIGNED = Pair(PairOp.MUL, UINT8, "uint8", zeros=(255, 0, 9))
PAIRS = [
    PairScale(SIGNED, False, 77, -55, -1900, 7, True),
    PairScale(SIGNED, False, -1, 1 << 20, (1 << 27) - 5, 20, False),
    PairScale(SIGNED, False, 1, 1, 0, 1, True),
    PairScale(UNSIGNED, True, -3001, 0, 1 << 19, 18, True),
    PairScale(Pair(PairOp.MUL, INT8, "int8", zeros=(-128, 127, 0)), True, 5, 0, 77, 9, False),
    PairAdd(SIGNED, Parameters(-32768, 32767, 5, 65535, 40000, 255, 20)),
    PairAdd(SIGNED, Parameters(3, -9, 5, 400, 333, 7, 14)),
    PairAdd(SIGNED, Parameters(3, -9, -32768, 40, 33, 7, -3)),
    PairAdd(SIGNED, Parameters(3, -9, 5, 65535, 65535, 255, 40)),
    PairAdd(SIGNED, Parameters(3, -9, 5, 1, 2, 1, 1)),
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_pair(dialect: str, tmp_path: Path) -> None:
    codes = np.random.default_rng(1).permutation(1 << 16).reshape(-1, 4)
    zero = np.zeros((1, 4), np.int64)
    cases = [rescaled(realization, zero, IntType(0, 65535), realization.pair.type, codes) for realization in PAIRS]
    check(tmp_path, cases, dialect)
