"""The checker's own program for layers that a build has merged: every sum by halves, every quantizer as a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hlsgen.certify.input_codes import input_codes
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.program_bounds import bounds_of
from hlsgen.ir import Graph, IntegerRows, Linear, Map
from hlsgen.ir.programs import Number, Operation, Program, Table, Take, Term, Total, Wrap
from hlsgen.ir.step_function import StepFunction, specialize
from hlsgen.numerics.fixed import Array, IntType

#: The name of the layer.
_NAME = "merged"
#: Most values of a sum.
_MOST_VALUES = 1 << 22


def merged_graph(graph: Graph) -> Graph:
    """The graph whose only layer computes all layers of `graph`. Raises HG055 for layers that cannot be merged."""
    chain = [layer for n, layer in enumerate(graph.layers) if isinstance(layer, Linear | Map) and layer.inputs == (n,)]
    vectors = all(layer.source.size == layer.source.shape[-1] for layer in chain)
    if graph.inputs or graph.outputs or not chain or len(chain) != len(graph.layers) or not vectors:
        raise broken("manifest.json", "option merge_layers: the model is no series of dense layers and quantizers.")
    low, high = _input_ends(graph)
    reference = _Reference()
    numbers = [reference.add(Take(n, _type_of(*ends))) for n, ends in enumerate(zip(low, high, strict=True))]
    units = [1] * len(numbers)
    for layer in chain:
        if isinstance(layer, Linear):
            if layer.binary:
                raise broken("manifest.json", "option merge_layers: weights of one bit are not merged.")
            numbers = [reference.product(row, numbers) for row in layer.weight.tolist()]
            low, high = layer.lo.tolist(), layer.hi.tolist()
            units = [abs(int(np.gcd.reduce(row))) or 1 for row in layer.weight]
            continue
        if max((b - a) // unit for a, b, unit in zip(low, high, units, strict=True)) >= _MOST_VALUES:
            raise broken("manifest.json", f"option merge_layers: {layer.name} has over {_MOST_VALUES} values.")
        f = specialize(layer, np.arange(len(numbers)), np.array(low), np.array(high))
        numbers = [
            reference.quantized(number, range(low[n], high[n] + 1, units[n]), f, int(f.index[n]))
            for n, number in enumerate(numbers)
        ]
        type_ = layer.result.type
        low, high, units = [type_.lo] * len(numbers), [type_.hi] * len(numbers), [1] * len(numbers)
    program = Program(tuple(reference.operations), tuple(numbers))
    bounds = bounds_of(program)
    ends = [bounds[n] for n in numbers]
    result = replace(graph.output, type=IntType(min(t.lo for t in ends), max(t.hi for t in ends)))
    names = tuple(layer.name for layer in chain)
    return replace(graph, layers=(IntegerRows(_NAME, program, graph.input, result, (0,), merged=names),), output=result)


def _input_ends(graph: Graph) -> tuple[list[int], list[int]]:
    """The lowest and the highest code of each element of the input."""
    type_, size = graph.input.type, graph.input.size
    ends = input_codes(graph)
    if ends is None:
        return [type_.lo] * size, [type_.hi] * size
    low, high = (np.broadcast_to(end, graph.input.shape).ravel().tolist() for end in ends)
    return low, high


def _type_of(low: int, high: int) -> IntType:
    """The narrowest type of whole bits."""
    bits = IntType(low, high).bits
    return IntType(0, 2**bits - 1) if low >= 0 else IntType(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@dataclass
class _Reference:
    operations: dict[Operation, int] = field(default_factory=dict)

    def add(self, operation: Operation) -> int:
        """The number of the operation; equal operations have one number, so that their results cancel in sums."""
        return self.operations.setdefault(operation, len(self.operations))

    def product(self, weights: list[int], numbers: list[int]) -> int:
        """Weights times results: the sum of both halves, down to a weight in binary."""
        terms = [(weight, number) for weight, number in zip(weights, numbers, strict=True) if weight]
        if not terms:
            return self.add(Number(0))
        if len(terms) > 1:
            middle = len(terms) // 2
            halves = [self.product(*map(list, zip(*part, strict=True))) for part in (terms[:middle], terms[middle:])]
            return self.add(Total(Term(halves[0]), Term(halves[1]), False))
        ((weight, number),) = terms
        total = self.add(Number(0))
        for place in range(abs(weight).bit_length()):
            if abs(weight) >> place & 1:
                total = self.add(Total(Term(total), Term(number, place), weight < 0))
        return total

    def quantized(self, number: int, sums: range, f: StepFunction, s: int) -> int:
        """Set s of a function of a result, which is one of `sums`. Low bits that never matter are dropped first."""
        x = np.array(sums)
        codes: Array = f.take(np.array([s]), x[:1], x[-1:]).evaluate(x[:, None])[:, 0]
        changes: list[int] = x[1:][codes[1:] != codes[:-1]].tolist()
        if not changes:
            return self.add(Number(int(codes[0])))
        shift = 0
        limit = (sums[-1] - sums[0]).bit_length() if len(changes) == 1 else 64
        while shift < limit and all((change - changes[0]) % 2 ** (shift + 1) == 0 for change in changes):
            shift += 1
        offset = int(codes[(changes[0] - sums[0]) // sums.step]) * 2**shift - changes[0]
        index = (x + offset) >> shift
        filled = np.searchsorted(index, np.arange(index[0], index[-1] + 1), side="right") - 1
        entries = codes[filled]
        if (entries[index - index[0]] != codes).any():
            raise broken("manifest.json", f"option merge_layers: {f.name} uses low bits of its sum.")
        if offset:
            number = self.add(Total(Term(number), Term(self.add(Number(offset))), False))
        if shift:
            number = self.add(Wrap(number, -shift, _type_of(int(index[0]), int(index[-1]))))
        return self.add(Table(number, int(index[0]), tuple(entries.tolist())))
