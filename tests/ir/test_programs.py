"""Programs: sums with a constant that only invert bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from hlsgen.certify.program_bounds import bounds_of as checker_bounds_of
from hlsgen.ir.programs import (
    Choose,
    Number,
    Program,
    Take,
    Term,
    Total,
    intervals_of,
    inverted_bits,
    program_values,
)
from hlsgen.numerics.fixed import IntType

X, CONSTANT = 0, 1
BoundsOf = Callable[[Program], list[IntType]]


@pytest.mark.parametrize("minus", [False, True])
def test_inverted_bits_are_the_sum(minus: bool) -> None:
    """All intervals of up to three bits with all constants of five: the pattern of bits is that of the sum."""
    found = 0
    for lo, hi in itertools.combinations(range(-8, 8), 2):
        x_type = IntType(lo, hi)
        for constant in range(-16, 16):
            terms = (Term(CONSTANT), Term(X)) if minus else (Term(X), Term(CONSTANT))
            ends = sorted(constant - x if minus else constant + x for x in (lo, hi))
            interval = IntType(*ends)
            inverted = inverted_bits(Total(*terms, minus), interval, [x_type, IntType(constant, constant)])
            if inverted is None:
                continue
            found += 1
            number, mask = inverted
            assert number == X
            for x in range(lo, hi + 1):
                total = constant - x if minus else constant + x
                assert (total - (x ^ mask)) % (1 << interval.bits) == 0
    assert found > 100


@pytest.mark.parametrize(
    ("total", "type_", "interval", "mask"),
    [
        (Total(Term(CONSTANT), Term(X), True), IntType(0, 7), IntType(0, 7), 7),
        (Total(Term(X), Term(CONSTANT), False), IntType(-4, 3), IntType(0, 7), 4),
        (Total(Term(X), Term(CONSTANT), True), IntType(0, 7), IntType(-7, 0), None),
        (Total(Term(CONSTANT), Term(X, 1), True), IntType(0, 3), IntType(1, 7), None),
    ],
)
def test_which_sums_invert_bits(total: Total, type_: IntType, interval: IntType, mask: int | None) -> None:
    constant = IntType(7, 7) if total.minus else IntType(4, 4)
    inverted = inverted_bits(total, interval, [type_, constant])
    assert inverted == (None if mask is None else (X, mask))


@pytest.mark.parametrize("bounds_of", [intervals_of, checker_bounds_of])
def test_the_interval_of_a_choice_holds_its_results_and_nothing_more(bounds_of: BoundsOf) -> None:
    """A number between two bounds, for all bounds of a number of three bits."""
    for low, high in itertools.combinations(range(-5, 6), 2):
        take = Take(0, IntType(-4, 3))
        raised = Choose(0, low, 0, 1)
        lowered = Choose(3, high + 1, 2, 3)
        program = Program((take, Number(low), Number(high), raised, lowered), (3, 4))
        results = program_values(program, np.arange(-4, 4)[:, None])
        bounds = bounds_of(program)
        for column, n in enumerate(program.outputs):
            assert bounds[n] == IntType(int(results[:, column].min()), int(results[:, column].max()))
