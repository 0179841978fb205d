"""hg_scale: rescaling by a multiplier and a shift, against hlsgen.rescale.scale.Scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, all_inputs, integers, pack, sweep, verilog

from hlsgen.numerics.fixed import int_type
from hlsgen.rescale.realize.scale import Scale
from hlsgen.verilog.binding.scale import bind


@dataclass(frozen=True)
class Case:
    """Bits of x and of the constants; mode and symmetric as the module has them."""

    lanes: int
    folds: int
    in_w: int
    signed: bool
    m_w: int
    r_w: int
    r_lsb: int
    shift: int
    mode: int
    symmetric: int
    dsp: bool
    low: int
    high: int


CASES = [
    Case(3, 5, 14, True, 9, 12, 3, 13, 3, 2, False, -31, 30),
    Case(2, 1, 11, True, 8, 12, 0, 9, 0, 1, False, -128, 127),
    Case(1, 1, 1, False, 1, 1, 0, 0, 0, 0, False, -3, 3),
    Case(2, 3, 27, True, 24, 40, 2, 31, 1, 0, True, -1000, 1000),
    Case(2, 4, 12, False, 5, 9, 0, 1, 2, 0, False, 0, 255),
    Case(1, 2, 8, True, 6, 3, 0, 0, 1, 2, True, -(2**15), 2**15 - 1),
    Case(2, 1, 4, False, 3, 2, 0, 12, 2, 2, False, -4, 5),
    Case(1, 3, 9, True, 4, 11, 4, 6, 3, 1, False, -7, -2),
    Case(3, 1, 16, True, 17, 20, 5, 22, 1, 0, True, -8, 7),
]


def constants(case: Case) -> Scale:
    """Random ones, of which the widest multiplier takes all bits."""
    rng = np.random.default_rng(case.in_w + case.shift)
    sets = case.lanes * case.folds
    multiplier = integers(rng, case.m_w, True, (sets,))
    multiplier[0] = -(1 << (case.m_w - 1))
    addend, below = integers(rng, case.r_w, True, (2, sets)) << case.r_lsb
    odd = rng.integers(0, 2, sets) if case.mode == 3 else np.full(sets, case.mode == 2, np.int64)
    if case.mode == 3:
        odd[:2] = 0, 1
    if case.symmetric == 1:
        below = addend ^ ((1 << case.shift) - 1)
    bound = int_type(case.in_w, case.signed)
    centre = rng.integers(bound.lo, bound.hi + 2, sets) if case.symmetric == 2 else np.zeros(sets, np.int64)
    return Scale(
        multiplier,
        addend,
        case.shift,
        case.low,
        case.high,
        odd if case.mode else None,
        centre if case.symmetric else None,
        below if case.symmetric else None,
        case.dsp,
    )


def run(simulate: Callable[..., None], simulator: str, case: Case, x: np.ndarray) -> None:
    realization = constants(case)
    assert (realization.centre is not None and realization.mirrored) == (case.symmetric == 1)
    table = np.random.default_rng(case.lanes).permutation(case.folds * case.lanes).reshape(case.folds, case.lanes)
    source = int_type(case.in_w, case.signed)
    result = int_type(max(abs(case.low) - 1, case.high).bit_length() + 1, True)
    binding = bind(realization, table, source, result, "s")
    fold = np.arange(len(x)) % case.folds
    sets = [np.broadcast_to(x[:, [k]], (len(x), len(realization.addend))) for k in range(case.lanes)]
    code = np.stack([realization.apply(s)[np.arange(len(x)), table[fold, k]] for k, s in enumerate(sets)], axis=1)
    job = Stream(
        {"s_data": pack(x, case.in_w)},
        {"m_data": pack(code, result.bits)},
        latency=realization.latency,
        capacity=realization.latency,
    )
    assert binding.parameters["SYMMETRIC"] == case.symmetric
    assert binding.parameters["MODE"] == case.mode
    simulate(simulator, binding.module, verilog(binding.parameters), job, binding.memories)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_scale(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.shift)
    run(simulate, simulator, case, integers(rng, case.in_w, case.signed, (400, case.lanes)))


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode, symmetric, folds, bits", [(0, 1, 2, 11), (1, 0, 1, 16), (3, 2, 2, 11)])
def test_every_input(simulate: Callable[..., None], mode: int, symmetric: int, folds: int, bits: int) -> None:
    """In 32 lanes and in every fold; small multipliers and shifts, so that ties are hit."""
    case = Case(32, folds, bits, True, 4, 9, 0, 5, mode, symmetric, False, -2000, 1999)
    x = all_inputs(bits, True, 32)
    run(simulate, "icarus", case, np.concatenate([x, x[1:], x[:1]]) if folds == 2 else x)
