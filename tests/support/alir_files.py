"""ALIR files for tests: a writer, and random programs of all operations."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: (lowest, highest, step) of a number.
Interval = tuple[float, float, float]


@dataclass
class AlirWriter:
    """Collects operations; `content` is the file. Methods return the number of the operation."""

    inputs: int
    input_shifts: list[int] = field(default_factory=list)
    operations: list[list[Any]] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)

    def add(self, opcode: int, operands: list[int], data: list[int], interval: Interval) -> int:
        self.operations.append([operands, opcode, data, list(interval), 0.0, 0.0])
        return len(self.operations) - 1

    def table(self, values: list[int], step: float) -> int:
        interval = {"min": min(values) * step, "max": max(values) * step, "step": step}
        self.tables.append({"spec": {"hash": "", "out_qint": interval, "inp_width": 1}, "table": values})
        return len(self.tables) - 1

    def content(self, outputs: list[int], shifts: list[int] | None = None, signs: list[bool] | None = None) -> bytes:
        """The bytes of the file whose outputs are these operations (-1: zero)."""
        count = len(outputs)
        model = [
            [self.inputs, count],
            self.input_shifts or [0] * self.inputs,
            outputs,
            shifts or [0] * count,
            signs or [False] * count,
            self.operations,
            -1,
            -1,
            self.tables or None,
        ]
        return json.dumps({"model": model, "meta": "ALIRModel", "spec_version": 4}).encode()


def random_alir(seed: int, operations: int = 40) -> bytes:
    """A program of random operations of all kinds, with the intervals that they need or wider ones."""
    rng = np.random.default_rng(seed)
    inputs = int(rng.integers(1, 6))
    writer = AlirWriter(inputs, [int(rng.integers(-2, 3)) for _ in range(inputs)])
    make = _Random(writer, rng)
    for element in range(inputs):
        make.taken(element)
    while len(writer.operations) < operations:
        make.operation()
    count, last = int(rng.integers(1, 5)), len(writer.operations)
    outputs = [int(rng.integers(max(0, last - 12), last)) for _ in range(count)]
    if rng.random() < 0.2:
        outputs[0] = -1
    if all(n < 0 for n in outputs):
        outputs.append(last - 1)
    shifts = [int(rng.integers(-2, 3)) for _ in outputs]
    return writer.content(outputs, shifts, [bool(rng.integers(2)) for _ in outputs])


class _Random:
    """Random operations whose intervals are known."""

    def __init__(self, writer: AlirWriter, rng: np.random.Generator) -> None:
        self.writer, self.rng = writer, rng

    def interval(self, n: int) -> Interval:
        low, high, step = self.writer.operations[n][3]
        return low, high, step

    def any_of(self, most_bits: int = 12) -> int:
        """An operation of not too many bits, mostly a late one."""
        count = len(self.writer.operations)
        for _ in range(20):
            n = count - 1 - int(min(self.rng.geometric(0.2), count) - 1)
            low, high, step = self.interval(n)
            if low < high and max(-low, high) / step < 1 << most_bits:
                return n
        return int(self.rng.integers(self.writer.inputs))

    def quantized(self, least: float = 0.0) -> Interval:
        """A random interval of a quantizer. Its step is at least that of the operand, as the interpreter needs it."""
        step = max(2.0 ** int(self.rng.integers(-4, 2)), least)
        codes = 1 << int(self.rng.integers(1, 6))
        low = -codes if self.rng.random() < 0.5 else 0
        return low * step, (codes - 1) * step, step

    def taken(self, element: int) -> None:
        self.writer.add(-1, [], [element], self.quantized())

    def operation(self) -> None:
        rng, add = self.rng, self.writer.add
        a = self.any_of()
        low, high, step = self.interval(a)
        shift = int(rng.integers(-2, 3))
        match int(rng.integers(13)):
            case 0:
                add(-2, [a], [], (-high, -low, step))
            case 1 | 2 | 3:
                b, minus = self.any_of(), int(rng.integers(2))
                ends = [end * 2.0**shift * (-1 if minus else 1) for end in self.interval(b)[:2]]
                least = min(step, self.interval(b)[2] * 2.0**shift)
                add(minus, [a, b], [shift], (low + min(ends), high + max(ends), least))
            case 4:
                interval = self.quantized(step)
                add(2, [a], [], (0.0, max(interval[1], interval[2]), interval[2]))
            case 5:
                add(3, [a], [shift], self.quantized(step * 2.0**shift))
            case 6:
                value, point = int(rng.integers(-9, 10)), int(rng.integers(-1, 4))
                number = value * 2.0**-point
                add(4, [a], [value, point], (low + number, high + number, min(step, 2.0**-point)))
            case 7:
                value = int(rng.choice([-5, -2, 1, 3]))
                add(5, [], [value], (value * 0.5, value * 0.5, 0.5))
            case 8:
                b = self.any_of()  # the interpreter needs the finer of both units
                unit = min(step, self.interval(b)[2] * 2.0**shift)
                low, high, claimed = self.quantized()
                add(6, [a, b, self.any_of()], [shift], (low / claimed * unit, high / claimed * unit, unit))
            case 9:
                b = self.any_of(6)
                a = self.any_of(6)
                ends = [x * y for x in self.interval(a)[:2] for y in self.interval(b)[:2]]
                add(7, [a, b], [], (min(ends), max(ends), self.interval(a)[2] * self.interval(b)[2]))
            case 10:
                self.looked_up()
            case 11:
                self.of_bits(a)
            case _:
                operands = [self.any_of(8) for _ in range(3)]
                signs, shifts = rng.integers(0, 2, 3).tolist(), rng.integers(-1, 2, 3).tolist()
                ends, steps = [0.0, 0.0], []
                for n, sign, places in zip(operands, signs, shifts, strict=True):
                    values = sorted(end * 2.0**places * (1 if sign else -1) for end in self.interval(n)[:2])
                    ends = [ends[0] + values[0], ends[1] + values[1]]
                    steps.append(self.interval(n)[2] * 2.0**places)
                data = [value for pair in zip(signs, shifts, strict=True) for value in pair]
                add(11, operands, data, (ends[0], ends[1], min(steps)))

    def looked_up(self) -> None:
        source = self.any_of(6)
        step = max(2.0 ** int(self.rng.integers(-3, 2)), self.interval(source)[2])
        codes = 1 << int(self.rng.integers(1, 5))
        low = -codes * step if self.rng.random() < 0.5 else 0.0
        high = (codes - 1) * step
        a = self.writer.add(3, [source], [0], (low, high, step))
        values = self.rng.integers(-20, 21, round((high - low) / step) + 1).tolist()
        table = self.writer.table(values, 0.25)
        self.writer.add(8, [a], [table], (min(values) * 0.25, max(values) * 0.25, 0.25))

    def of_bits(self, a: int) -> None:
        """An operation on all bits of a quantized number, or on two numbers."""
        low, high, step = self.interval(a)
        codes = 1 << max(1, int(max(-low, high) / step).bit_length())
        full = (-codes * step, (codes - 1) * step, step) if low < 0 else (0.0, (codes - 1) * step, step)
        n = self.writer.add(3, [a], [0], full)
        match int(self.rng.integers(4)):
            case 0:
                self.writer.add(9, [n], [0], full)
            case 1 | 2 as kind:
                self.writer.add(9, [n], [kind], (0.0, 1.0, 1.0))
            case _:
                kind = int(self.rng.integers(3))
                self.writer.add(10, [n, n], [1, kind], (min(2 * full[0], 0), 2 * full[1] + full[2], step))
