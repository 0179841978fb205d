"""Neurons as lookup tables: a matrix and the quantizer of its sums become functions of input bits.

A row is listed for all codes of the columns that it uses. Each column needs as many low bits as distinguish its
reachable codes. Entries that no code selects have the value of the nearest code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen import ir, rescale
from hlsgen.dataflow.builder import NetworkBuilder
from hlsgen.dataflow.code_ranges import column_ranges
from hlsgen.dataflow.units import AdderMatVec, MatVec, Node
from hlsgen.diagnostics import fail
from hlsgen.lut_network import LutNetworkBuilder
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize import neuron_table

#: The name of the implementation, as in `rescale.KINDS`.
NAME = "neuron-table"
#: Most input bits of a neuron, and most listed inputs of all neurons of a layer.
MOST_BITS, _MOST_INPUTS = 14, 1 << 18
#: Most bits and functions of a network: the module numbers them with 16 bits.
_MOST_NUMBERS = (1 << 16) - 1
#: Share of the estimated LUTs of sparse rows and their quantizers that synthesis leaves.
_ARITHMETIC = 0.8


def quantizer_of(b: NetworkBuilder, i: int, unit: MatVec) -> int | None:
    """The layer that quantizes the sums of matrix i, if both may become tables.

    All rows are computed in a beat with constant weights, and nothing else consumes or reorders their sums.
    """
    layer = b.graph.layers[i]
    if not isinstance(layer, ir.Linear) or layer.binary or not b.narrows or NAME in b.prices.missing:
        return None
    if unit.folds > 1 or unit.windows > 1 or unit.vectors > 1 or not b.targets.wires(layer.name):
        return None
    consumers = b.consumers(i + 1)
    if len(consumers) != 1 or consumers[0][0] >= len(b.graph.layers) or consumers[0] in b.layout.reorderings:
        return None
    j = consumers[0][0]
    quantizer = b.graph.layers[j]
    return j if isinstance(quantizer, ir.Map) and quantizer.inputs[0] == i + 1 else None


def choose(
    b: NetworkBuilder,
    i: int,
    j: int,
    matrix: Node,
    f: rescale.StepFunction,
    arithmetic: Callable[[], rescale.Choice],
) -> rescale.Choice | None:
    """The choice of tables for matrix i and quantizer j, or None if arithmetic costs less or is requested.

    `matrix`: the node of the matrix. `f`, `arithmetic`: the function of the quantizer, and its cheapest implementation.
    Raises HG037 if tables are requested and impossible.
    """
    forced = b.targets.preference(b.graph.layers[j].name, b.prices).forced
    if forced not in (None, NAME):
        return None
    tables = b.once(("neurons", i), lambda: find(b, i, j, matrix, f))
    if isinstance(tables, str):
        if forced is None:
            return None
        hint = "Leave --realize out for this quantizer: then all implementations are tried."
        raise fail("HG037", f.name, f"the implementation {NAME!r} is impossible here: {tables}.", hint)
    lut = neuron_table.cost(tables, 6 if b.targets.family == "xc7" else 4)
    trials: tuple[rescale.Trial, ...] = (rescale.Trial(NAME, "", round(lut, 1)),)
    if forced is None:
        choice = arithmetic()
        quantizer_lut = next(trial.lut for trial in choice.trials if trial.name == choice.name) or 0.0
        if lut > _ARITHMETIC * (b.unit_lut(matrix, b.targets.family) + quantizer_lut):
            return None
        trials += choice.trials
    return rescale.Choice(NAME, tables, None, trials, function=f)


def find(b: NetworkBuilder, i: int, j: int, matrix: Node, f: rescale.StepFunction) -> rescale.NeuronTable | str:
    """The tables of matrix i with the quantizer of layer j, or the reason why there are none, as text."""
    layer, output_bits, type_ = b.graph.layers[i], b.graph.layers[j].result.type.bits, matrix.source.type
    assert isinstance(layer, ir.Linear)
    assert isinstance(matrix.unit, AdderMatVec | MatVec)
    unit = matrix.unit.matrix if isinstance(matrix.unit, AdderMatVec) else matrix.unit
    low, high = column_ranges(layer, b.code_range(layer.inputs[0]))
    neurons = [_Neuron.of(weights, low, high) for weights in layer.weight]
    widest = max(neuron.bits for neuron in neurons)
    if widest > MOST_BITS:
        return f"a neuron has {widest} input bits; at most {MOST_BITS}"
    if sum(1 << neuron.bits for neuron in neurons) > _MOST_INPUTS:
        return f"its neurons have more than {_MOST_INPUTS} inputs in total"
    lane_of_column = np.argsort(unit.order)
    network = LutNetworkBuilder(matrix.source.bits)
    outputs: list[int] = []
    for row, s in zip(b.layout.orders[j + 1].tolist(), f.index.tolist(), strict=True):
        neuron = neurons[row]
        sums, number = np.unique(neuron.sums(), return_inverse=True)
        function = f.take(np.array([s]), f.lo[[s]], f.hi[[s]])
        codes = function.evaluate(sums[:, None])[number.ravel(), 0] & ((1 << output_bits) - 1)
        first_bits = (lane_of_column[neuron.columns] * type_.bits).tolist()
        places = [first + k for first, bits in zip(first_bits, neuron.widths, strict=True) for k in range(bits)]
        outputs += network.add(codes, output_bits, places)
    tables = rescale.NeuronTable(network.finish(outputs))
    count = tables.network.inputs + len(tables.network.functions)
    return tables if count <= _MOST_NUMBERS else f"they are {count} bits and functions; at most {_MOST_NUMBERS}"


@dataclass(frozen=True, eq=False)
class _Neuron:
    """A row of a matrix. `columns`: those that it uses and that change, with weights, code ranges and bits of each.

    `constant`: the sum of the columns that do not change.
    """

    columns: Array
    weights: Array
    low: Array
    high: Array
    constant: int

    @staticmethod
    def of(weights: Array, low: Array, high: Array) -> _Neuron:
        columns = np.flatnonzero((weights != 0) & (low < high))
        fixed = low == high
        constant = int((weights[fixed] * low[fixed]).sum())
        return _Neuron(columns, weights[columns], low[columns], high[columns], constant)

    @property
    def widths(self) -> list[int]:
        """Low bits that distinguish the codes of each column."""
        return [int(n).bit_length() for n in self.high - self.low]

    @property
    def bits(self) -> int:
        return sum(self.widths)

    def sums(self) -> Array:
        """The sum for each value of the input bits, the first column in the low bits."""
        index = np.arange(1 << self.bits)
        total = np.full(len(index), self.constant)
        for weight, low, high, bits in zip(self.weights, self.low, self.high, self.widths, strict=True):
            size = 1 << bits
            beyond = ((index & (size - 1)) - low) % size
            unreached = beyond > high - low
            nearest = np.where(beyond - (high - low) <= size - beyond, high - low, 0)
            total += weight * (low + np.where(unreached, nearest, beyond))
            index = index >> bits
        return total
