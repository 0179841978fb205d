"""hg_lines: random lines, and LOGISTIC and TANH of int16 codes, against hlsgen.rescale.Lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from streams import Stream, all_inputs, integers, pack, sweep

from hlsgen.numerics.fixed import Array, int_type
from hlsgen.rescale.realize.lines import Lines, logistic, tanh
from hlsgen.verilog.binding import lines as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """`bits`: bits of the number of a knot, with random knots; 0: those of `lines`."""

    lanes: int
    in_w: int
    in_signed: bool
    out_w: int
    lines: Lines
    bits: int = 0


def random_lines(multiplier: int, shift: int, fraction: int, left: int, right: int, mirror: int) -> Lines:
    empty = np.zeros(0, np.int64)
    return Lines(multiplier, shift, fraction, empty, empty, left, right, mirror)


CASES = [
    Case(2, 9, True, 12, random_lines(5, 2, 4, 3, 2, 77), 3),
    Case(2, 5, True, 6, random_lines(1, 6, 2, 1, 3, 5), 1),
    Case(1, 7, False, 9, random_lines(3, 0, 6, 0, 4, 0), 2),
    Case(4, 10, True, 8, random_lines(1, 6, 3, 9, 12, -5), 4),
    Case(2, 16, True, 16, replace(logistic(24769, 24), dsp=True)),
    Case(2, 16, True, 16, replace(tanh(3, 1), every=1)),
]


def with_knots(rng: np.random.Generator, case: Case) -> Lines:
    if not case.bits:
        return case.lines
    values, rises = rng.integers(0, 1 << 6, (2, 1 << case.bits))
    return replace(case.lines, values=values, rises=rises)


def check(simulate: Callable[..., None], simulator: str, case: Case, lines: Lines, x: Array) -> None:
    source, result = int_type(case.in_w, case.in_signed), int_type(case.out_w, True)
    bound = binding.bind(lines, np.zeros((1, case.lanes), np.int64), source, result, "f")
    job = Stream(
        {"s_data": pack(x, source.bits)},
        {"m_data": pack(lines.apply(x), result.bits)},
        latency=lines.latency,
        capacity=lines.latency,
    )
    parameters = {name: constant(value) for name, value in bound.parameters.items()}
    simulate(simulator, bound.module, parameters, job, bound.memories)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 1))
def test_lines(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.in_w + case.lanes)
    x = integers(rng, case.in_w, case.in_signed, (512, case.lanes))
    if case.in_w < 16:
        codes = np.arange(1 << case.in_w) - ((1 << case.in_w) >> 1) * case.in_signed
        x = rng.permutation(np.tile(codes, -(-x.size // len(codes)))).reshape(-1, case.lanes)
    check(simulate, simulator, case, with_knots(rng, case), x)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [logistic(3, 0), tanh(24769, 24)])
def test_every_code_of_int16(simulate: Callable[..., None], lines: Lines) -> None:
    check(simulate, "verilator", Case(64, 16, True, 16, lines), lines, all_inputs(16, True, 64))
