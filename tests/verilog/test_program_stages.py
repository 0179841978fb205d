"""Stages of programs: as few as their length permits, and none of their registers becomes a shift register."""

from __future__ import annotations

import re

from hlsgen.ir.programs import Number, Operation, Program, Take, Term, Total
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.program_stages import staged
from hlsgen.verilog.program_text import program_module_text


def chain(sums: int) -> Program:
    """Sums in series. Each output uses the first sum again; the last operand is inverted."""
    operations: list[Operation] = [Take(0, IntType(0, 15)), Take(1, IntType(0, 15))]
    last = 0
    for _ in range(sums):
        operations.append(Total(Term(last), Term(1, 1), False))
        last = len(operations) - 1
    operations += [Number(15), Total(Term(len(operations)), Term(1), True)]
    operations.append(Total(Term(last), Term(len(operations) - 1), False))
    return Program(tuple(operations), (len(operations) - 1,))


def test_longer_stages_are_never_more() -> None:
    program = chain(12)
    latencies = [staged(program, adders).latency for adders in (1, 1.25, 1.5, 1.75, 2, 3, 5, 12)]
    assert latencies == sorted(latencies, reverse=True)
    assert latencies[0] > latencies[2] > latencies[4]


def test_inverters_follow_registers() -> None:
    """The inverse of an input is used in the last stage alone: the input waits, which other sums need as well."""
    program = chain(12)
    stages = staged(program, 2)
    inverter = len(program.operations) - 2
    assert stages.computed[inverter] == stages.computed[inverter + 1] > 0
    assert stages.needed[1] == stages.computed[inverter]


def test_every_third_register_in_series_is_reset() -> None:
    stages = staged(chain(12), 1)
    text = program_module_text("unit", stages, 2, 4, stages.intervals[-1].bits)
    assert stages.latency > 8
    reset = [int(cycle) for cycle in re.findall(r"n1_(\d+) <= 4'h0;", text)]
    assert reset == list(range(3, stages.needed[1] + 1, 3))
