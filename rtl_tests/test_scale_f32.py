"""hg_scale_f32 and hg_significant, against hlsgen.rescale.float_scale.FloatScale and numpy's float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from streams import Pipeline, Stream, all_inputs, integers, pack, sweep, verilog

from hlsgen.numerics.fixed import Array, int_type
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.verilog.binding.float_scale import bind


@dataclass(frozen=True)
class Case:
    """Bits of the inputs and of the constants."""

    lanes: int
    folds: int
    in_w: int
    signed: bool
    offset_w: int
    left: int
    u_w: int
    m_w: int
    shift: int
    z_w: int
    dsp: bool
    low: int
    high: int


CASES = [
    Case(3, 5, 14, True, 12, 3, 15, 24, 31, 5, False, -31, 30),
    Case(1, 1, 32, True, 31, 0, 29, 24, 46, 3, False, -128, 127),
    Case(1, 1, 1, False, 0, 0, 1, 1, 1, 0, False, -3, 3),
    Case(2, 3, 40, True, 40, 5, 38, 24, 55, 9, True, -1000, 1000),
    Case(2, 4, 12, False, 0, 1, 12, 20, 21, 4, False, 0, 255),
    Case(1, 2, 8, True, 20, 0, 16, 24, 44, 0, True, -(2**15), 2**15 - 1),
    Case(2, 1, 6, False, 3, 31, 40, 24, 60, 2, False, -4, 5),
    Case(1, 3, 40, False, 5, 0, 25, 23, 26, 21, False, -(2**21), 2**21 - 1),
]


def constants(case: Case) -> FloatScale:
    rng = np.random.default_rng(case.in_w + case.shift)
    sets = case.lanes * case.folds
    mantissa = rng.integers(1 << (case.m_w - 1), 1 << case.m_w, sets)
    left = rng.integers(0, case.left, sets, endpoint=True)
    left[-1] = case.left
    offset, zero = (
        integers(rng, bits, True, (sets,)) if bits else np.zeros(sets, np.int64) for bits in (case.offset_w, case.z_w)
    )
    return FloatScale(mantissa, left, case.shift, offset, zero, case.u_w, case.low, case.high, case.dsp)


def sets_of(case: Case) -> Array:
    """The set of each lane in each fold."""
    return np.random.default_rng(case.lanes).permutation(case.folds * case.lanes).reshape(case.folds, case.lanes)


def run(simulate: Callable[..., None], simulator: str, case: Case, realization: FloatScale, x: Array) -> None:
    table = sets_of(case)
    source = int_type(case.in_w, case.signed)
    result = int_type(max(abs(case.low) - 1, case.high).bit_length() + 1, True)
    binding = bind(realization, table, source, result, "s")
    fold = np.arange(len(x)) % case.folds
    sets = [np.broadcast_to(x[:, [k]], (len(x), len(realization.offset))) for k in range(case.lanes)]
    code = np.stack([realization.apply(s)[np.arange(len(x)), table[fold, k]] for k, s in enumerate(sets)], axis=1)
    job = Stream(
        {"s_data": pack(x, case.in_w)},
        {"m_data": pack(code, result.bits)},
        latency=realization.latency,
        capacity=realization.latency,
    )
    simulate(simulator, binding.module, verilog(binding.parameters), job, binding.memories)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_scale_f32(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    """Random inputs, and such whose product is on or beside a tie."""
    rng = np.random.default_rng(case.shift)
    bound = int_type(case.in_w, case.signed)
    x = integers(rng, case.in_w, case.signed, (120, case.lanes))
    realization = constants(case)
    unit = np.ldexp(1.0, case.shift) / realization.mantissa / np.exp2(realization.left)
    s = rng.integers(0, len(unit), x.shape)
    ties = (rng.integers(-40, 40, x.shape) + 0.5) * unit[s] - realization.offset[s] + rng.integers(-1, 2, x.shape)
    inside = np.clip(np.rint(ties), bound.lo, bound.hi).astype(np.int64)
    x = np.where(rng.random(x.shape) < 0.5, inside, x)
    # The first saturating input, and one less, of each set in turn in every lane.
    ends = np.repeat([-(1 << case.u_w), -(1 << case.u_w) + 1, 1 << case.u_w], len(unit))[:, None]
    ends = (ends >> np.tile(realization.left, 3)[:, None]) - np.tile(realization.offset, 3)[:, None]
    x[: len(ends)] = np.clip(ends, bound.lo, bound.hi)
    x[len(ends) : 2 * len(ends)] = np.roll(x[: len(ends)], 1, axis=0)
    run(simulate, simulator, case, realization, x)


@pytest.mark.slow
def test_every_input(simulate: Callable[..., None]) -> None:
    """16 bits into 16 lanes, with ties that float32 makes: the result is numpy's."""
    case = Case(16, 1, 16, True, 10, 1, 18, 24, 28, 4, False, -8000, 7999)
    x = all_inputs(16, True, 16)
    # Fractions with a small even denominator: their products lie beside a tie often.
    rng = np.random.default_rng(2)
    fraction, _ = np.frexp(((2 * rng.integers(1, 60, 16) + 1) / (2 * rng.integers(1, 10, 16) + 1)).astype(np.float32))
    realization = replace(constants(case), mantissa=(fraction * np.float32(1 << 24)).astype(np.int64))
    scale = np.ldexp(realization.mantissa, realization.left - case.shift).astype(np.float32)
    product = (x + realization.offset).astype(np.float32) * scale
    code = np.clip(np.rint(product).astype(np.int64) + realization.zero_point, case.low, case.high)
    assert (realization.apply(x) == code).all()
    exact = np.rint((x + realization.offset) * scale.astype(np.float64)).astype(np.int64) + realization.zero_point
    assert (np.clip(exact, case.low, case.high) != code).sum() > 50
    run(simulate, "verilator", case, realization, x)


def test_just_beyond_a_tie(simulate: Callable[..., None]) -> None:
    """Products so little above the float32 tie beside 1/2 that only their lowest bits show it."""
    rng, case = np.random.default_rng(1), Case(8, 1, 25, True, 0, 0, 24, 23, 46, 0, False, -8, 7)
    tie, step = (1 << 45) + (1 << 21), 1 << 21
    mantissa = rng.integers(1 << 22, 1 << 23, 400)
    x = -(-tie // mantissa)
    hit = ((x * mantissa > tie) & (x * mantissa < tie + step)).nonzero()[0][:8]
    assert len(hit) == 8
    zeros = np.zeros(8, np.int64)
    realization = FloatScale(mantissa[hit], zeros, 46, zeros, zeros, 24, case.low, case.high)
    inputs_near_tie = np.concatenate([sign * (x[hit] + d) for sign in (1, -1) for d in (0, -1, 1)]).reshape(-1, 8)
    assert realization.apply(inputs_near_tie)[::3].tolist() == [[1] * 8, [-1] * 8]
    assert realization.apply(inputs_near_tie)[1::3].tolist() == [[0] * 8, [0] * 8]
    run(simulate, "icarus", case, realization, np.tile(inputs_near_tie[:, sets_of(case)[0]], (5, 1)))


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, width, keep", [("icarus", 12, 5), ("icarus", 40, 24), ("verilator", 25, 24)])
def test_significant(simulate: Callable[..., None], simulator: str, width: int, keep: int) -> None:
    """All numbers of 12 bits, and numbers rounded to 24 significant bits like numpy's float32."""
    rng = np.random.default_rng(width)
    x = (
        all_inputs(12, False, 1)[:, 0]
        if width == 12
        else integers(rng, width, False, (800,)) >> rng.integers(0, 12, 800)
    )
    mantissa, exponent = np.frexp(x.astype(np.float64))
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, keep)), exponent - keep).astype(np.int64)
    assert keep != 24 or (rounded == x.astype(np.float32).astype(np.int64)).all()
    job = Pipeline({"x": pack(x[:, None], width)}, {"y": pack(rounded[:, None], width + 1)}, 2)
    simulate(simulator, "hg_significant", {"W": width, "KEEP": keep}, job)
