"""Proves neurons in lookup tables: a matrix and the quantizer after it are one instance of hg_lut_network.

Each neuron is evaluated for all reachable codes of the inputs that its weights or its tables use.
"""

from __future__ import annotations

import math

import numpy as np

from hlsgen.certify.models.lut_network import MODULE, LutNetworkModel
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.quantizers import QuantizerHardware, Summary, check_equal, check_reachable
from hlsgen.certify.stream_contents import Elements, StreamContents, check_codes
from hlsgen.ir import Linear, Map
from hlsgen.ir.step_function import StepFunction, specialize
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array

#: Most inputs of a neuron.
_MOST_INPUTS = 1 << 20


def matrix_before(name: str, layer: Map, elements: Elements) -> Linear:
    """The matrix whose sums a quantizer consumes. Raises HG055 if it is not one vector of integers."""
    matrix = elements.graph.layers[layer.inputs[0] - 1] if layer.inputs[0] else None
    if not isinstance(matrix, Linear) or matrix.binary or matrix.source.size != matrix.weight.shape[1]:
        raise broken(name, f"{MODULE} computes a matrix of one vector, which the quantizer does not have before it.")
    return matrix


def codes_stream(cell: Cell, stream: StreamContents, layer: Map, matrix: Linear, numbers: Array) -> StreamContents:
    """The stream that an instance sends. `numbers`: its elements in order. Raises HG055."""
    model, type_ = LutNetworkModel(cell), layer.result.type
    if stream.beats != 1 or model.in_bits != stream.width:
        raise broken(cell.name, f"it reads {model.in_bits} bits, its stream has {stream.beats} x {stream.width}.")
    check_codes(cell.name, stream, matrix.source.type, stream.bits, None)
    if model.out_bits != len(numbers) * type_.bits:
        raise broken(cell.name, f"it sends {model.out_bits} bits, not {len(numbers)} codes of {type_}.")
    return StreamContents(numbers[None], type_.bits, type_.lo, type_.hi)


def prove_neurons(
    q: QuantizerHardware,
    layer: Map,
    matrix: Linear,
    stream: StreamContents,
    interval: ValueRange,
    elements: Elements,
) -> Summary:
    """Prove the codes of all neurons. `stream`: the input of the instance. Raises HG055."""
    (cell,) = q.units
    f = specialize(layer, q.order, *interval)
    check_equal(layer.name, "certificate.json, number of sets", [len(q.entry["sets"])], [f.sets])
    places, entries = q.places(f.index, layer.source.shape), q.listed(f.sets, f.index)
    intervals = np.stack([f.lo, f.hi], axis=1).tolist()
    check_equal(layer.name, "certificate.json, interval of set", [s["interval"] for s in entries], intervals)
    check_reachable(layer, f.index, f.lo, f.hi, elements, elements.numbers[layer.inputs[0]][q.order])
    q.form("constants")
    model, neuron, evaluated = LutNetworkModel(cell), _Inputs(cell, stream, matrix, elements), 0
    bits = layer.result.type.bits
    for position, (row, s) in enumerate(zip(q.order.tolist(), f.index.tolist(), strict=True)):
        outputs = list(range(position * bits, (position + 1) * bits))
        used = {bit // stream.bits for bit in model.cone(outputs)[0]}
        codes, sums = neuron.listed(matrix.weight[row], used, places[s])
        expected = _evaluated(f, s, sums) & ((1 << bits) - 1)
        values = {lane * stream.bits + k: x >> k & 1 for lane, x in codes.items() for k in range(stream.bits)}
        actual = model.apply(outputs, values)
        wrong = np.flatnonzero(np.broadcast_to(actual, expected.shape) != expected)
        if len(wrong):
            n = int(wrong[0])
            inputs = ", ".join(f"lane {lane}: {int(x[n])}" for lane, x in sorted(codes.items())) or "any"
            raise broken(
                cell.name,
                f"{places[s]}: for the inputs {inputs} its code has the bits {int(np.ravel(actual)[n]):b}, in the "
                f"model {int(expected[n]):b}.",
            )
        evaluated += len(sums)
    total = int((f.hi - f.lo + 1).sum())
    return Summary(layer.name, "quantizer", cell.module, f.sets, total, evaluated)


def _evaluated(f: StepFunction, s: int, sums: Array) -> Array:
    """The codes of set s for these sums."""
    distinct, number = np.unique(sums, return_inverse=True)
    neuron = f.take(np.array([s]), f.lo[[s]], f.hi[[s]])
    return np.asarray(neuron.evaluate(distinct[:, None])[number.ravel(), 0])


class _Inputs:
    """The codes that the lanes of a beat can have, by lane: their columns of the matrix, lowest and highest codes."""

    def __init__(self, cell: Cell, stream: StreamContents, matrix: Linear, elements: Elements) -> None:
        self.cell = cell
        numbers = elements.numbers[matrix.inputs[0]]
        column_of = {number: column for column, number in enumerate(numbers.tolist())}
        self.column = {lane: column_of.get(number, -1) for lane, number in enumerate(stream.elements[0].tolist())}
        self.low, self.high = elements.code_range(numbers)

    def listed(self, weights: Array, used: set[int], place: str) -> tuple[dict[int, Array], Array]:
        """(codes of the lanes that matter, sums) of all inputs of a row. `used`: lanes that its tables use."""
        if any(self.column[lane] < 0 for lane in used):
            raise broken(self.cell.name, f"{place} uses a lane without an element.")
        lanes = [lane for lane, c in self.column.items() if c >= 0 and (lane in used or weights[c])]
        ends = [(int(self.low[self.column[lane]]), int(self.high[self.column[lane]])) for lane in lanes]
        count = math.prod(high - low + 1 for low, high in ends)
        if count > _MOST_INPUTS:
            raise broken(self.cell.name, f"{place} has {count} inputs; at most {_MOST_INPUTS} can be listed.")
        index, codes, sums = np.arange(count), {}, np.zeros(count, np.int64)
        for lane, (low, high) in zip(lanes, ends, strict=True):
            index, digit = np.divmod(index, high - low + 1)
            codes[lane] = low + digit
            sums += weights[self.column[lane]] * codes[lane]
        return codes, sums
