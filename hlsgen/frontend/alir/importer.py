"""Imports an ALIR file as a Model: a quantizer of the inputs, one `Program`, and the scales of the outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.alir.file import AlirFile, AlirOperation, Interval
from hlsgen.ir import Model, RowStep, Step, programs
from hlsgen.ir.ops import Activation, BinaryKind, BinaryOf, Cast, Elementwise, IntQuant, Mul
from hlsgen.numerics.fixed import IntType, Rounding

#: The name of the runtime whose integers a Model of an ALIR file has.
RUNTIME = "alir"
#: The most bits of an element of the input, whose codes are float32 numbers, and of the output.
_MOST_INPUT_BITS, _MOST_OUTPUT_BITS = 24, 32
_BITWISE = (programs.BitwiseKind.AND, programs.BitwiseKind.OR, programs.BitwiseKind.XOR)
#: Names of the tensors: ALIR files have none.
_INPUT, _OUTPUT = "input", "output"


def import_alir(file: AlirFile, name: str) -> Model:
    """The Model of a program. Raises HG004, HG015, HG021, HG033."""
    ports = input_formats(file)
    program, exponents = _pruned(*_Programmer(file, ports).program())
    _check_sizes(program)
    count, outputs = len(file.input_shifts), len(program.outputs)
    scales = [2.0**shift for shift, _ in ports]
    bits = max(1, *(width for _, width in ports))
    signs = [-1.0 if negated else 1.0 for negated in file.output_negated]
    output_scales = [sign * 2.0**exponent for sign, exponent in zip(signs, exponents, strict=True)]
    head = _codes(np.array([scales]), bits)
    steps = [Step(f"{_INPUT}_codes", op, (1, count), (n,)) for n, op in enumerate(head)]
    steps.append(Step("program", RowStep(program), (1, outputs), (len(steps),)))
    steps.append(Step(f"{_OUTPUT}_scale", Mul(np.array([output_scales])), (1, outputs), (len(steps),)))
    return Model(name, _INPUT, (1, count), "float64", True, None, tuple(steps), _OUTPUT, "float64", runtime=RUNTIME)


def _codes(scales: np.ndarray[tuple[int, ...], np.dtype[np.float64]], bits: int) -> list[Elementwise]:
    """Operations that make the codes of the port: floor(x * scale), its lowest bits as a number without a sign."""
    codes = 2.0**bits
    floor = Activation("Floor")
    modulo_codes = BinaryOf(BinaryKind.SUB, ((), (Mul(np.full((1, 1), 1 / codes)), floor, Mul(np.full((1, 1), codes)))))
    quantizer = IntQuant(np.ones((1, 1)), np.zeros((1, 1)), IntType(0, (1 << bits) - 1), Rounding.ROUND)
    return [Cast("float64"), Mul(scales), floor, modulo_codes, quantizer]


def input_formats(file: AlirFile) -> list[tuple[int, int]]:
    """(shift, bits) of each input: its code is floor(input * 2^shift), of which `bits` bits are used. Raises HG021."""
    formats_of_element: list[list[tuple[int, int]]] = [[] for _ in file.input_shifts]
    for operation in file.operations:
        if operation.opcode == -1 and (operation.interval.low or operation.interval.high):
            element = operation.data[0]
            shift = file.input_shifts[element] - operation.interval.exponent
            formats_of_element[element].append((shift, wrapping_type(operation.interval).bits))
    formats = []
    for element, forms in enumerate(formats_of_element):
        shift = max((shift for shift, _ in forms), default=0)
        bits = max((bits + shift - s for s, bits in forms), default=0)
        if bits > _MOST_INPUT_BITS or abs(shift) > 1000:
            text = f"element {element} of the input needs {bits} bits, {shift} of them after the point."
            raise fail("HG021", _INPUT, text, f"At most {_MOST_INPUT_BITS} bits are supported.")
        formats.append((shift, bits))
    return formats


def wrapping_type(interval: Interval) -> IntType:
    """The type to which a quantizing operation wraps: the fewest bits that hold its interval."""
    if interval.low < 0:
        bits = max((-interval.low - 1).bit_length(), max(interval.high, 0).bit_length())
        return IntType(-(1 << bits), (1 << bits) - 1)
    return IntType(0, (1 << max(1, interval.high.bit_length())) - 1)


class _Programmer:
    """Converts operation by operation. A number of the file is a result times a power of two."""

    def __init__(self, file: AlirFile, ports: Sequence[tuple[int, int]]) -> None:
        self.file, self.ports = file, ports
        self.operations: list[programs.Operation] = []
        #: (result, exponent) of each operation of the file.
        self.values: list[tuple[int, int]] = []

    def program(self) -> tuple[programs.Program, list[int]]:
        """The program, and the exponent of each output."""
        for operation in self.file.operations:
            empty = operation.interval.low == operation.interval.high == 0 and operation.opcode in (-1, 2, 3, 6)
            self.values.append((self._add(programs.Number(0)), 0) if empty else self._converted(operation))
        outputs, exponents = [], []
        for number, shift in zip(self.file.output_numbers, self.file.output_shifts, strict=True):
            result, exponent = self.values[number] if number >= 0 else (self._add(programs.Number(0)), 0)
            outputs.append(result)
            exponents.append(exponent + shift)
        return programs.Program(tuple(self.operations), tuple(outputs)), exponents

    def _add(self, operation: programs.Operation) -> int:
        self.operations.append(operation)
        return len(self.operations) - 1

    def _converted(self, operation: AlirOperation) -> tuple[int, int]:
        """The value of an operation."""
        data, interval = operation.data, operation.interval
        operands = [self.values[k] for k in operation.operands]
        match operation.opcode:
            case -2:
                return self._sum((self._add(programs.Number(0)), operands[0][1]), operands[0], 0, minus=True)
            case -1:
                return self._input_bits(operation)
            case 0 | 1:
                return self._sum(operands[0], operands[1], data[0], minus=operation.opcode == 1)
            case 2:
                return self._wrapped(operands[0], 0, interval, bounded=True)
            case 3:
                return self._wrapped(operands[0], data[0], interval)
            case 4:
                return self._sum(operands[0], (self._add(programs.Number(data[0])), -data[1]), 0, minus=False)
            case 5:
                return self._add(programs.Number(data[0])), interval.exponent
            case 6:
                return self._chosen(operation)
            case 7:
                (a, first), (b, second) = operands
                return self._add(programs.Product(a, b)), first + second
            case 8:
                return self._looked_up(operation)
            case 9:
                return self._of_bits(operation)
            case 10:
                (a, first), (b, second) = operands
                exponent = min(first, second + data[0])
                terms = programs.Term(a, first - exponent), programs.Term(b, second + data[0] - exponent)
                return self._add(programs.Bitwise(_BITWISE[data[1]], *terms)), exponent
            case _:
                total = self._add(programs.Number(0)), operands[0][1] + data[1]
                for n, operand in enumerate(operands):
                    total = self._sum(total, operand, data[2 * n + 1], minus=not data[2 * n])
                return total

    def _sum(self, a: tuple[int, int], b: tuple[int, int], shift: int, *, minus: bool) -> tuple[int, int]:
        """a + b * 2^shift, or a - b * 2^shift."""
        (first, a_exponent), (second, b_exponent) = a, b
        exponent = min(a_exponent, b_exponent + shift)
        terms = programs.Term(first, a_exponent - exponent), programs.Term(second, b_exponent + shift - exponent)
        return self._add(programs.Total(*terms, minus)), exponent

    def _wrapped(
        self, value: tuple[int, int], shift: int, interval: Interval, *, bounded: bool = False
    ) -> tuple[int, int]:
        number, exponent = value
        type_ = wrapping_type(interval)
        return self._add(programs.Wrap(number, exponent + shift - interval.exponent, type_, bounded)), interval.exponent

    def _input_bits(self, operation: AlirOperation) -> tuple[int, int]:
        """An element of the input: the bits of the port's code from its unit up."""
        element, interval = operation.data[0], operation.interval
        shift, bits = self.ports[element]
        below = shift - (self.file.input_shifts[element] - interval.exponent)
        if not below:
            return self._add(programs.Take(element, wrapping_type(interval))), interval.exponent
        code = self._add(programs.Take(element, IntType(0, (1 << bits) - 1)))
        return self._add(programs.Wrap(code, -below, wrapping_type(interval))), interval.exponent

    def _chosen(self, operation: AlirOperation) -> tuple[int, int]:
        """The first operand if the highest bit of the third is set, else the second, each wrapped."""
        yes, _ = self._wrapped(self.values[operation.operands[0]], 0, operation.interval)
        no, _ = self._wrapped(self.values[operation.operands[1]], operation.data[0], operation.interval)
        condition, claim = self._on_grid(operation.operands[2])
        if claim.low < 0:
            return self._add(programs.Choose(condition, 0, no, yes)), operation.interval.exponent
        highest = 1 << (max(1, claim.high.bit_length()) - 1)
        return self._add(programs.Choose(condition, highest, yes, no)), operation.interval.exponent

    def _on_grid(self, number: int) -> tuple[int, Interval]:
        """An operation's result in the unit of the interval that the file states for it."""
        interval = self.file.operations[number].interval
        result, exponent = self.values[number]
        if exponent == interval.exponent:
            return result, interval
        all_bits = IntType(-(1 << (programs.MAX_BITS - 1)), (1 << (programs.MAX_BITS - 1)) - 1)
        return self._add(programs.Wrap(result, exponent - interval.exponent, all_bits)), interval

    def _looked_up(self, operation: AlirOperation) -> tuple[int, int]:
        table = self.file.tables[operation.data[0]]
        source, interval = self._on_grid(operation.operands[0])
        return self._add(programs.Table(source, interval.low, table.values)), table.exponent

    def _of_bits(self, operation: AlirOperation) -> tuple[int, int]:
        """Inverse of all bits; or 1 if any bit, or if all bits are set."""
        source, claim = self._on_grid(operation.operands[0])
        if operation.data[0] == 0:
            inverse = self._add(
                programs.Total(programs.Term(self._add(programs.Number(-1))), programs.Term(source), minus=True)
            )
            return self._wrapped((inverse, claim.exponent), 0, operation.interval)
        yes, no = self._add(programs.Number(1)), self._add(programs.Number(0))
        if operation.data[0] == 1:
            above, not_below = programs.Choose(source, 1, yes, no), (0, yes)
        elif claim.low < 0:
            above, not_below = programs.Choose(source, 0, no, yes), (-1, no)
        else:
            above, not_below = programs.Choose(source, claim.high, yes, no), (0, no)
        first = self._add(above)
        return self._add(programs.Choose(source, not_below[0], first, not_below[1])), operation.interval.exponent


def _pruned(program: programs.Program, exponents: list[int]) -> tuple[programs.Program, list[int]]:
    """The program without operations that no output uses."""
    needed = set(program.outputs)
    for n in reversed(range(len(program.operations))):
        if n in needed:
            needed.update(programs.sources_of(program.operations[n]))
    numbers = {n: k for k, n in enumerate(sorted(needed))}
    operations = tuple(programs.renumbered(program.operations[n], numbers) for n in numbers)
    return programs.Program(operations, tuple(numbers[n] for n in program.outputs)), exponents


def _check_sizes(program: programs.Program) -> None:
    """Raises HG004 for sums that take too long to bound, HG015 without an input, HG033 for too many bits."""
    if not any(isinstance(operation, programs.Take) for operation in program.operations):
        raise fail("HG015", _OUTPUT, "the outputs do not depend on the input.", "There is nothing to build.")
    summands = programs.most_summands(program)
    if summands > programs.MAX_SUMMANDS:
        raise fail("HG004", "program", f"its sums have up to {summands} summands.", "Divide the program.")
    intervals: list[IntType] = []
    for operation, interval in zip(program.operations, programs.each_interval(program), strict=True):
        intervals.append(interval)
        width = programs.widest(operation, interval, intervals)
        if width > programs.MAX_BITS:
            text = f"{type(operation).__name__} needs {width} bits."
            raise fail("HG033", "program", text, f"At most {programs.MAX_BITS} bits are supported.")
        if isinstance(operation, programs.Table) and intervals[operation.source].bits > programs.MAX_TABLE_BITS:
            text = f"the operand of a lookup table has {intervals[operation.source].bits} bits."
            raise fail(
                "HG033", "program", text, f"At most {programs.MAX_TABLE_BITS} bits are supported: quantize it before."
            )
    for n in program.outputs:
        if intervals[n].bits > _MOST_OUTPUT_BITS:
            text = f"an output has {intervals[n].bits} bits."
            raise fail("HG033", _OUTPUT, text, f"At most {_MOST_OUTPUT_BITS} are supported.")
