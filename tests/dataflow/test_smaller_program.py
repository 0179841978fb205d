"""Programs with sums derived again and functions in tables: the same outputs, and never more estimated LUTs."""

from __future__ import annotations

import numpy as np
import pytest
from random_programs import all_codes, random_inputs, random_program

from hlsgen.dataflow import smaller_program as smaller_program_module
from hlsgen.dataflow.program_luts import program_luts
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
    excess,
    intervals_of,
    program_values,
)


def luts(program: Program) -> float:
    return sum(program_luts(program).values())


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_outputs(seed: int) -> None:
    program = random_program(seed)
    smaller = smaller_program(program)
    x = random_inputs(program, seed)
    assert (program_values(program, x) == program_values(smaller, x)).all()
    assert luts(smaller) <= luts(program)
    assert unproven_output(program, smaller, intervals_of) is None
    assert excess(smaller, intervals_of(smaller)) is None


@pytest.mark.parametrize("seed", range(60))
def test_what_is_written_needs_no_proof_to_be_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the proof, which would hide a wrong program behind the model's."""
    monkeypatch.setattr("hlsgen.dataflow.smaller_program.unproven_output", lambda *_: None)
    program = random_program(seed)
    x = random_inputs(program, seed)
    assert (program_values(program, x) == program_values(smaller_program(program), x)).all()


def dense(inputs: int, bits: int, rows: int, seed: int, columns_of_row: int) -> Program:
    """Sums of few inputs, each with its constant in its first sum, then Relu and wrapping to 4 bits."""
    rng = np.random.default_rng(seed)
    operations: list[Operation] = [Take(e, all_codes(bits, True)) for e in range(inputs)]
    outputs = []
    for _ in range(rows):
        operations.append(Number(int(rng.integers(1, 8))))
        for column in rng.choice(inputs, columns_of_row, replace=False).tolist():
            last = Term(len(operations) - 1)
            operations.append(Total(last, Term(column, int(rng.integers(3))), bool(rng.integers(2))))
        operations.append(Wrap(len(operations) - 1, -1, all_codes(4, False), True))
        outputs.append(len(operations) - 1)
    return Program(tuple(operations), tuple(outputs))


def test_constants_and_relu_of_wide_sums_become_tables_of_the_sum() -> None:
    program = dense(8, 5, 6, 0, 5)
    smaller = smaller_program(program)
    assert sum(isinstance(operation, Table) for operation in smaller.operations) == 3
    assert not any(isinstance(operation, Join) for operation in smaller.operations)
    assert sum(isinstance(operation, Wrap) and operation.bounded for operation in smaller.operations) == 3
    assert luts(smaller) < 0.95 * luts(program)


def test_sums_of_few_bits_become_tables_of_their_terms() -> None:
    program = dense(6, 2, 5, 1, 3)
    smaller = smaller_program(program)
    assert sum(isinstance(operation, Join) for operation in smaller.operations) >= 3
    assert luts(smaller) < 0.6 * luts(program)
    x = np.stack(np.meshgrid(*[np.arange(-2, 2)] * 6, indexing="ij"), axis=-1).reshape(-1, 6)
    assert (program_values(program, x) == program_values(smaller, x)).all()


def test_equal_sums_of_rows_with_other_constants_are_one() -> None:
    sums = [Total(Term(0), Term(1, 1), False), Number(3), Total(Term(2), Term(3), False), Number(-9)]
    takes = [Take(e, all_codes(9, True)) for e in range(2)]
    functions = [Total(Term(5), Term(2), False), Wrap(4, -9, all_codes(2, True)), Wrap(6, -9, all_codes(2, True))]
    program = Program((*takes, *sums, *functions), (7, 8))
    smaller = smaller_program(program)
    wide = [
        k for k, t in zip(smaller.operations, intervals_of(smaller), strict=True) if isinstance(k, Total) and t.bits > 9
    ]
    assert luts(smaller) <= luts(program)
    assert len(wide) <= 3


def test_sums_before_a_constant_are_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences are sums with inverted bits, and constants that this needs join the one of each row."""
    program = dense(8, 5, 12, 3, 6)
    smaller = smaller_program(program)
    intervals = intervals_of(smaller)
    totals = [(n, o) for n, o in enumerate(smaller.operations) if isinstance(o, Total)]
    with_constant = [n for n, o in totals if any(intervals[t.source].lo == intervals[t.source].hi for t in (o.a, o.b))]
    assert all(intervals[n].lo >= 0 for n, _ in totals if n not in with_constant)
    monkeypatch.setattr(smaller_program_module, "_OFFSETS", (False,))
    assert luts(smaller) < 0.95 * luts(smaller_program(program))
