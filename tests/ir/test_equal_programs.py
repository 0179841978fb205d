"""The proof that two programs are equal accepts no program with other outputs."""

from __future__ import annotations

import numpy as np
import pytest
from random_programs import all_codes, changed, random_inputs, random_program

from hlsgen.dataflow.smaller_program import smaller_program
from hlsgen.ir.equal_programs import unproven_output
from hlsgen.ir.programs import (
    Join,
    Number,
    Operation,
    Program,
    Table,
    Take,
    Term,
    Total,
    Wrap,
    intervals_of,
    program_values,
)


def equal(first: Program, second: Program) -> bool:
    return unproven_output(first, second, intervals_of) is None


@pytest.mark.parametrize("seed", range(40))
def test_changed_programs_are_not_accepted(seed: int) -> None:
    program, rng = random_program(seed), np.random.default_rng(seed)
    smaller = smaller_program(program)
    x, seen = random_inputs(program, seed), 0
    expected = program_values(program, x)
    for _ in range(12):
        other = changed(smaller, rng)
        if max(t.bits for t in intervals_of(other)) > 60:
            continue
        differs = (program_values(other, x) != expected).any()
        assert not (differs and equal(program, other))
        seen += bool(differs)
    assert seen or all(t.lo == t.hi for t in (intervals_of(program)[n] for n in program.outputs))


def program(*operations: Operation) -> Program:
    """The program with the last result as its output."""
    return Program(operations, (len(operations) - 1,))


def relu(shift: int = -1, constant: int = 3, bits: int = 6) -> Program:
    """Relu of an input plus a constant, in units of 2^-shift."""
    total = Total(Term(0), Term(1), False)
    return program(
        Take(0, all_codes(bits, True)), Number(constant), total, Wrap(2, shift, all_codes(bits, False), True)
    )


def test_a_table_of_a_function_is_equal_to_it() -> None:
    values = tuple(max(x + 3, 0) >> 1 for x in range(-32, 32))
    take = Take(0, all_codes(6, True))
    assert equal(relu(), program(take, Table(0, -32, values)))
    assert not equal(relu(), program(take, Table(0, -32, (*values[:40], values[40] + 1, *values[41:]))))
    assert not equal(relu(), relu(constant=4))
    assert not equal(relu(), relu(shift=-2))


def test_linear_tables_are_linear() -> None:
    take = Take(0, all_codes(4, False))
    line = program(take, Table(0, 0, tuple(3 * x - 5 for x in range(16))))
    tripled = program(take, Number(-5), Total(Term(0), Term(0, 1), False), Total(Term(2), Term(1), False))
    assert equal(line, tripled)


@pytest.mark.parametrize("entry", [None, 0, 17, 63])
def test_a_table_of_the_terms_of_a_sum(entry: int | None) -> None:
    takes = Take(0, all_codes(3, True)), Take(1, all_codes(3, False))
    values = [((x if x < 4 else x - 8) + 2 * y) >> 1 for y in range(8) for x in range(8)]
    if entry is not None:
        values[entry] += 1
    table = program(*takes, Join(((0, 3), (1, 3))), Table(2, 0, tuple(values)))
    total = program(*takes, Total(Term(0), Term(1, 1), False), Wrap(2, -1, all_codes(6, True)))
    assert equal(total, table) == (entry is None)


def test_sums_that_are_too_wide_to_list_keep_their_operations() -> None:
    takes = [Take(e, all_codes(16, True)) for e in range(3)]
    first = [Total(Term(0), Term(1), False), Total(Term(3), Term(2, 1), False)]
    second = [Total(Term(1), Term(2, 1), False), Total(Term(3), Term(0), False)]
    wrap = Wrap(4, -3, all_codes(5, True))
    assert equal(program(*takes, *first, wrap), program(*takes, *second, wrap))
    assert not equal(program(*takes, *first, wrap), program(*takes, *second, Wrap(4, -2, all_codes(5, True))))
    assert not equal(program(*takes, *first), program(*takes, first[0], Total(Term(3), Term(2), False)))


@pytest.mark.parametrize("entry", [None, 0, 100, -1])
def test_a_table_of_a_sum_of_wide_numbers(entry: int | None) -> None:
    """Sums of more combinations than are listed: the table is compared for each value of the sum."""
    takes = Take(0, all_codes(8, True)), Take(1, all_codes(8, False)), Total(Term(0), Term(1, 1), False)
    values = [x >> 2 for x in range(-128, 127 + 2 * 255 + 1)]
    if entry is not None:
        values[entry] += 1
    table = program(*takes, Table(2, -128, tuple(values)))
    assert equal(program(*takes, Wrap(2, -2, all_codes(12, True))), table) == (entry is None)
