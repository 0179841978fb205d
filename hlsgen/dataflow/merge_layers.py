"""Merges dense layers and quantizers in series into one program of operations on single numbers.

Sums then share stages with the quantizers and sums after them, and a function of a sum may be a table of its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlsgen.adder_graph import count_digits, digits
from hlsgen.dataflow.smaller_program import MOST_OPERATIONS
from hlsgen.diagnostics import Collector
from hlsgen.ir import FloatKey, Graph, IntegerRows, Layer, Linear, Map
from hlsgen.ir.input_codes import input_ends
from hlsgen.ir.programs import Bounds, Choose, Number, Operation, Program, Table, Take, Term, Total, Wrap, output_type
from hlsgen.ir.step_function import StepFunction, specialize
from hlsgen.numerics.fixed import Array, IntType

#: Most values of a sum.
_MOST_VALUES = 1 << 22
_HINT = "Leave the option out: every layer then has its own modules."
#: Most operations of a quantizer's element: a constant, a sum, a wrap and a table.
_OF_ELEMENT = 4
#: The option, as messages name it, and the name of the layer.
_OPTION, _NAME = "--merge-layers", "merged"


def merged_layers(graph: Graph) -> Graph:
    """The graph with all layers as one. Raises HG040 for each layer that prevents it."""
    problems = Collector()
    for n, layer in enumerate(graph.layers):
        if text := _problem(graph, n, layer):
            problems.error("HG040", layer.name, f"{_OPTION} {text}", _HINT)
    operations = sum(
        count_digits(layer.weight) if isinstance(layer, Linear) else _OF_ELEMENT * layer.result.size
        for layer in graph.layers
    )
    if operations > MOST_OPERATIONS:
        text = f"builds at most {MOST_OPERATIONS} operations, and these layers need up to {operations}."
        problems.error("HG040", _OPTION, text, _HINT)
    if graph.inputs or graph.outputs or not graph.layers:
        text = "the core has no layers, or several inputs, outputs or states."
        problems.error("HG040", _OPTION, text, _HINT)
    problems.finish()
    program = _program(graph)
    result = replace(graph.output, type=output_type(program))
    names = tuple(layer.name for layer in graph.layers)
    layer = IntegerRows(_NAME, program, graph.input, result, (0,), merged=names)
    return replace(graph, layers=(layer,), output=result)


def _problem(graph: Graph, n: int, layer: Layer) -> str:
    """Why layer n cannot be merged, "" if it can."""
    if not isinstance(layer, Linear | Map):
        return "merges dense layers and quantizers only."
    if layer.inputs != (n,):
        return "merges layers in series only, and this one uses an earlier value."
    if layer.source.size != layer.source.shape[-1]:
        return f"merges layers of one vector a frame only, and this one reads {layer.source.shape}."
    if isinstance(layer, Linear):
        return "does not merge weights of one bit." if layer.binary else ""
    type_, producer = layer.source.type, graph.layers[n - 1] if n else None
    count = type_.hi - type_.lo + 1
    if isinstance(producer, Linear):
        count = int(((producer.hi - producer.lo) // _units(producer)).max()) + 1
    if isinstance(layer.source.encoding, FloatKey) or count > _MOST_VALUES:
        return f"merges quantizers of at most {_MOST_VALUES} values, and this one reads {count}."
    return ""


def _units(layer: Linear) -> Array:
    """The greatest common divisor of the weights of each row, 1 for rows of zeros, int64 (rows,)."""
    units = np.gcd.reduce(layer.weight, axis=1)
    return np.asarray(np.where(units == 0, 1, units))


def _program(graph: Graph) -> Program:
    """The operations of all layers: sums of shifted numbers, and a table for each element of a quantizer."""
    low, high = (end.tolist() for end in input_ends(graph))
    writer = _Writer()
    numbers = [writer.add(Take(n, _codes(*ends))) for n, ends in enumerate(zip(low, high, strict=True))]
    for n, layer in enumerate(graph.layers):
        if isinstance(layer, Linear):
            numbers = [writer.sum(row, numbers) for row in layer.weight.tolist()]
            low, high = layer.lo.tolist(), layer.hi.tolist()
            continue
        assert isinstance(layer, Map)
        producer = graph.layers[n - 1] if n else None
        if producer is not None and not isinstance(producer, Linear):
            low, high = [layer.source.type.lo] * len(numbers), [layer.source.type.hi] * len(numbers)
        f = specialize(layer, np.arange(len(numbers)), np.array(low), np.array(high))
        units = [1] * len(numbers)
        if isinstance(producer, Linear):
            units = _units(producer).tolist()
        columns = zip(f.index.tolist(), low, high, units, numbers, strict=True)
        tables = [_StepTable.of(f, *column[:4]) for column in columns]
        numbers = [writer.table(table, number) for table, number in zip(tables, numbers, strict=True)]
    return Program(tuple(writer.operations), tuple(numbers))


def _codes(low: int, high: int) -> IntType:
    """The smallest type with a power of two of codes that holds these."""
    bits = IntType(low, high).bits
    return IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if low < 0 else IntType(0, (1 << bits) - 1)


@dataclass(frozen=True)
class _StepTable:
    """codes[((x + offset) >> shift) - first], a function of x."""

    offset: int
    shift: int
    first: int
    codes: tuple[int, ...]

    @property
    def is_bounded(self) -> bool:
        """True if the codes are the indexes between two bounds."""
        indexes = np.arange(self.first, self.first + len(self.codes))
        return bool((np.clip(indexes, self.codes[0], max(self.codes)) == self.codes).all())

    @staticmethod
    def of(f: StepFunction, s: int, low: int, high: int, unit: int) -> _StepTable:
        """Set s of a function of low, low + unit, ..., high, with as many low bits left out as possible."""
        function = f.take(np.array([s]), np.array([low]), np.array([high]))
        x = np.arange(low, high + 1, unit)
        codes = function.evaluate(x[:, None])[:, 0]
        starts = x[1:][codes[1:] != codes[:-1]]
        if not len(starts):
            return _StepTable(0, 0, 0, (int(codes[0]),))
        spacing = int(np.gcd.reduce(np.diff(starts))) if len(starts) > 1 else 1 << (high - low).bit_length()
        size = spacing & -spacing
        # At the first step, the number without its low bits is the code itself.
        offset, shift = int(codes[x == starts[0]][0]) * size - int(starts[0]), size.bit_length() - 1
        index, places = np.unique((x + offset) >> shift, return_index=True)
        indexes = np.arange(index[0], index[-1] + 1)
        places = places[np.searchsorted(index, indexes, side="right") - 1]
        return _StepTable(offset, shift, int(indexes[0]), tuple(codes[places].tolist()))


@dataclass
class _Writer:
    operations: list[Operation] = field(default_factory=list)
    number_of: dict[Operation, int] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)

    def add(self, operation: Operation) -> int:
        """The number of the operation's result."""
        if operation not in self.number_of:
            self.number_of[operation] = len(self.operations)
            self.operations.append(operation)
            self.bounds.add(operation)
        return self.number_of[operation]

    def sum(self, weights: Sequence[int], numbers: Sequence[int]) -> int:
        """The sum of weights times results."""
        terms: dict[int, list[Term]] = {1: [], -1: []}
        for weight, number in zip(weights, numbers, strict=True):
            for shift, sign in digits(weight):
                terms[sign].append(Term(number, shift))
        positive, negative = (self._tree(terms[sign]) for sign in (1, -1))
        if negative is not None:
            return self.add(Total(positive or Term(self.add(Number(0))), negative, True))
        if positive is None:
            return self.add(Number(0))
        return self.add(Total(positive, Term(self.add(Number(0))), False)) if positive.shift else positive.source

    def _tree(self, terms: list[Term]) -> Term | None:
        """The sum of terms as a tree, or None without terms."""
        while len(terms) > 1:
            sums = [Term(self.add(Total(*pair, False))) for pair in zip(terms[::2], terms[1::2], strict=False)]
            terms = sums + terms[2 * len(sums) :]
        return terms[0] if terms else None

    def table(self, table: _StepTable, number: int) -> int:
        """The function of a result."""
        if len(table.codes) == 1:
            return self.add(Number(table.codes[0]))
        if table.offset:
            number = self.add(Total(Term(number), Term(self.add(Number(table.offset))), False))
        if table.shift:
            number = self.add(Wrap(number, -table.shift, _codes(table.first, table.first + len(table.codes) - 1)))
        return self._bounded(table, number) if table.is_bounded else self.add(Table(number, table.first, table.codes))

    def _bounded(self, table: _StepTable, number: int) -> int:
        """A number between the least and the greatest code."""
        low, high = table.codes[0], table.codes[-1]
        interval = self.bounds.intervals[number]
        if interval.lo < low:
            number = self.add(Choose(number, low, number, self.add(Number(low))))
        if interval.hi > high:
            number = self.add(Choose(number, high + 1, self.add(Number(high)), number))
        return number
