"""Random programs of integer operations, and changes of programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hlsgen.ir import programs
from hlsgen.ir.programs import Choose, Number, Product, Program, Table, Take, Term, Total, Wrap
from hlsgen.numerics.fixed import IntType


def all_codes(bits: int, signed: bool) -> IntType:
    return IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else IntType(0, (1 << bits) - 1)


class _Random:
    """A program of layers of sums, each followed by a few functions of one number."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.operations: list[programs.Operation] = []

    def program(self) -> Program:
        rng = self.rng
        layer = [self.add(Take(e, self.type(5))) for e in range(rng.integers(1, 7))]
        for _ in range(rng.integers(1, 4)):
            earlier = layer if rng.random() < 0.8 else list(range(len(self.operations)))
            layer = [self.neuron(earlier) for _ in range(rng.integers(1, 7))]
        return Program(tuple(self.operations), tuple(layer))

    def type(self, bits: int) -> IntType:
        return all_codes(int(self.rng.integers(1, bits)), bool(self.rng.integers(2)))

    def add(self, operation: programs.Operation) -> int:
        """The number of the new result, or of its first operand if it has many bits."""
        self.operations.append(operation)
        if programs.intervals_of(Program(tuple(self.operations), ()))[-1].bits <= 24:
            return len(self.operations) - 1
        self.operations.pop()
        return programs.sources_of(operation)[0]

    def number(self, most: int) -> int:
        return self.add(Number(int(self.rng.integers(-most, most))))

    def neuron(self, earlier: list[int]) -> int:
        rng = self.rng
        n = int(rng.choice(earlier))
        for _ in range(rng.integers(0, 5)):
            terms = Term(n, int(rng.integers(2))), Term(int(rng.choice(earlier)), int(rng.integers(3)))
            n = self.add(Total(*terms, bool(rng.integers(2))))
        for _ in range(rng.integers(0, 4)):
            n = self.function(n, earlier)
        return n

    def function(self, n: int, earlier: list[int]) -> int:
        rng = self.rng
        interval = programs.intervals_of(Program(tuple(self.operations), ()))[n]
        match rng.integers(6):
            case 0:
                return self.add(Total(Term(n), Term(self.number(20)), bool(rng.integers(2))))
            case 1:
                yes = n if rng.random() < 0.5 else int(rng.choice(earlier))
                return self.add(Choose(n, int(rng.integers(interval.lo, interval.hi + 2)), yes, self.number(9)))
            case 2 if interval.bits <= 8:
                values = rng.integers(-8, 8, interval.hi - interval.lo + 1)
                return self.add(Table(n, interval.lo, tuple(values.tolist())))
            case 3 if interval.bits <= 6:
                return self.add(Product(n, int(rng.choice(earlier))))
            case _:
                return self.add(Wrap(n, int(rng.integers(-3, 2)), self.type(6), bool(rng.integers(2))))


def random_program(seed: int) -> Program:
    return _Random(seed).program()


def random_inputs(program: Program, seed: int, count: int = 2000) -> NDArray[np.int64]:
    """Codes int64 (count, elements)."""
    rng = np.random.default_rng(seed)
    types = [operation.type for operation in program.operations if isinstance(operation, Take)]
    return np.stack([rng.integers(t.lo, t.hi + 1, count) for t in types], axis=1)


def changed(program: Program, rng: np.random.Generator) -> Program:
    """The program with another number in one operation."""
    operations = list(program.operations)
    places = [n for n, operation in enumerate(operations) if not isinstance(operation, Take)]
    n = int(rng.choice(places)) if places else 0
    match operations[n]:
        case Table(values=values) as table:
            k = int(rng.integers(len(values)))
            operations[n] = replace(table, values=(*values[:k], values[k] + 1, *values[k + 1 :]))
        case Total(a, b, minus) as total:
            options = replace(total, minus=not minus), replace(total, a=replace(a, shift=a.shift + 1))
            operations[n] = [*options, replace(total, b=replace(b, source=int(rng.integers(n))))][rng.integers(3)]
        case Wrap(shift=shift, bounded=bounded) as wrap:
            operations[n] = [replace(wrap, bounded=not bounded), replace(wrap, shift=shift - 1)][rng.integers(2)]
        case Number(value):
            operations[n] = Number(value + 1)
        case Choose(threshold=threshold) as choose:
            operations[n] = replace(choose, threshold=threshold + 1)
        case programs.Join(parts):
            operations[n] = programs.Join(parts[::-1])
    return Program(tuple(operations), program.outputs)
