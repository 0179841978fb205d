"""UNIDIRECTIONAL_SEQUENCE_LSTM of int8 data and weights with an int16 cell: one cell, or a copy of it for each step.

    i, f, o = logistic(x W^T + h R^T)       g likewise, with tanh
    c = f * c + i * g                       h = tanh(c) * o

The gates are computed side by side in the order i, f, o, g, so that the three logistic functions are one.
The states are variables of the file: inputs of the Model with their old values, and outputs with their new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.tflite.file import TfliteGraph, TfliteOperator
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.ops_state import assign_state, old_state
from hlsgen.frontend.tflite.requantizers import doubly_rounded, shifted
from hlsgen.ir import Binary, BinaryKind, Concat, MatMulInteger, Previous, Reshape, Shape, Slice, State
from hlsgen.ir.ops import Add, Cast, IntegerRatio, Lookup, Quantizer
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.lstm import (
    CELL_EXPONENTS,
    cell_limit,
    gate_multiplier,
    hidden_multiplier,
    logistic_table,
    tanh_table,
)
from hlsgen.numerics.tflite.multipliers import CODE_TYPES, Multiplier, Runtime, quantized_multiplier
from hlsgen.numerics.tflite.piecewise import RESULT_BITS, power_of_two
from hlsgen.numerics.tflite.rescaling import rescale

#: Numbers of the inputs: weights of the input for i, f, g, o; of the hidden state; biases; both states.
_WEIGHTS, _RECURRENT, _BIASES, _HIDDEN, _CELL = 1, 5, 12, 18, 19
#: The gates i, f, o, g by their places among these inputs.
_ORDER = (0, 1, 3, 2)
#: Absent in the supported form: numbers of the inputs, and what they make of the operator.
_VARIANTS = {
    "peepholes": (9, 10, 11),
    "a projection": (16, 17),
    "layer normalization": (20, 21, 22, 23),
}
_INT16 = CODE_TYPES["int16"]
_HINT = "Supported: gates i, f, g, o with weights and biases alone, as Keras' LSTM gives them."


@dataclass(frozen=True)
class _Product:
    """Sums of one operand for all gates side by side: weights (4 * cells, columns), a multiplier for each row."""

    weights: Array
    zero_point: int
    multipliers: list[Multiplier]
    bias: Array | None

    def ops(self, shape: Shape, bounded: bool) -> ShapedOps:
        """From codes (..., columns) to rescaled sums (..., 4 * cells) of 16 bits; not bounded: the sums as they are."""
        rows, columns = self.weights.shape
        shape, rank = (*shape[:-1], rows), len(shape)
        ops: ShapedOps = [(MatMulInteger(self.weights, np.full(columns, self.zero_point, np.int64)), shape)]
        if self.bias is not None:
            ops.append((Add(self.bias.reshape((1,) * (rank - 1) + (-1,))), shape))
        kind = _INT16 if bounded else self._range()
        dtype = "int16" if bounded else "int32"
        return [*ops, (doubly_rounded(self.multipliers, rank, 0, kind, dtype), shape)]

    def _range(self) -> IntType:
        """All rescaled sums of int8 codes."""
        ends = [code - self.zero_point for code in (-128, 127)]
        products = np.stack([self.weights * end for end in ends])
        lowest, highest = products.min(axis=0).sum(axis=1), products.max(axis=0).sum(axis=1)
        low = min(int(rescale(x, m)) for x, m in zip(lowest, self.multipliers, strict=True))
        high = max(int(rescale(x, m)) for x, m in zip(highest, self.multipliers, strict=True))
        return IntType(min(low, 0), max(high, 0))


def unidirectional_sequence_lstm(node: OperatorNode) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM. Raises HG013 - HG015, HG020, HG022 - HG024, HG026."""
    _refuse_variants(node)
    cell = _Cell(node)
    steps, frames, _ = cell.sequence
    data, hidden, memory = node.value(0), *(old_state(node, place) for place in (_HIDDEN, _CELL))
    state = (frames, cell.cells)
    hidden, memory = (node.step(Reshape(), state, value) for value in (hidden, memory))
    shape = node.tensor(0).shape
    sums = node.chain(data, cell.of_input.ops(shape, True))
    time = 0 if cell.time_major else 1
    if node.once and frames == 1 and steps > 1:
        _shared(cell, sums, hidden, memory)
        return
    results = []
    for step in range(steps):
        ranges = tuple((step, step + 1, 1) if axis == time else (0, size, 1) for axis, size in enumerate(shape[:2]))
        row = (1, frames) if cell.time_major else (frames, 1)
        width = 4 * cell.cells
        part = node.step(Slice((*ranges, (0, width, 1))), (*row, width), sums)
        hidden, memory = cell.step(node.step(Reshape(), (frames, width), part), hidden, memory)
        results.append(node.step(Reshape(), (*row, cell.cells), hidden))
    assign_state(node, _HIDDEN, hidden)
    assign_state(node, _CELL, cell.as_state(memory))
    result = (*shape[:2], cell.cells)
    node.finish(node.step(Concat(time) if steps > 1 else Reshape(), result, *results), result)


def has_steps(graph: TfliteGraph, operator: TfliteOperator) -> bool:
    """True for an LSTM with several steps of one sequence, whose steps can share one body."""
    if operator.name != "UNIDIRECTIONAL_SEQUENCE_LSTM" or not operator.inputs:
        return False
    shape = graph.tensors[operator.inputs[0]].shape
    return len(shape) == 3 and sorted(shape[:2])[0] == 1 < sorted(shape[:2])[1]


def _shared(cell: _Cell, sums: int, hidden: int, memory: int) -> None:
    """Express the LSTM as one loop body. Row n of each of its tensors belongs to step n."""
    node, steps, shape = cell.node, cell.sequence[0], (cell.sequence[0], cell.cells)
    names = f"{node.name}/hidden", f"{node.name}/cell"
    rows = node.step(Reshape(), (steps, 4 * cell.cells), sums)
    old_states = [
        node.step(Previous(name, None), shape, value) for name, value in zip(names, (hidden, memory), strict=True)
    ]
    hidden, memory = cell.step(rows, *old_states)
    after = [hidden, cell.as_state(memory)]
    after = [node.step(State(name), shape, value) for name, value in zip(names, after, strict=True)]
    for position, value in zip((_HIDDEN, _CELL), after, strict=True):
        last_row = ((steps - 1, steps, 1), (0, cell.cells, 1))
        assign_state(node, position, node.step(Slice(last_row), (1, cell.cells), value))
    result = (*node.tensor(0).shape[:2], cell.cells)
    node.finish(node.step(Reshape(), result, after[0]), result)


class _Cell:
    """The numbers of the operator, and one step of it.

    sequence: (steps, frames, elements of the input); cells: elements of a state.
    """

    def __init__(self, node: OperatorNode) -> None:
        self.node, self.runtime = node, node.runtime
        self.time_major = bool(node.options["time_major"])
        shape = node.tensor(0).shape
        if len(shape) != 3 or not all(shape):
            raise fail("HG023", node.name, f"data of shape {list(shape)}.", "It needs steps, a batch and elements.")
        self.sequence = shape if self.time_major else (shape[1], shape[0], shape[2])
        self.cells = int(node.tensor(_RECURRENT).shape[-1])
        codes = self._codes(0, "int8"), self._codes(_HIDDEN, "int8")
        for place, dtype in ((_HIDDEN, "int8"), (_CELL, "int16")):
            if int(np.prod(node.tensor(place).shape)) != self.sequence[1] * self.cells:
                text = f"a state of type {dtype} and shape {list(node.tensor(place).shape)}."
                raise fail("HG023", node.name, text, f"It needs {self.cells} elements for each frame.")
        self.of_input = self._product(codes[0], _WEIGHTS, shape[2], _BIASES)
        self.of_hidden = self._product(codes[1], _RECURRENT, self.cells, None)
        scale = self._codes(_CELL, "int16").scale
        exponent = power_of_two(scale)
        if exponent is None or exponent not in CELL_EXPONENTS or scale != 2.0**exponent:
            text = f"the cell has the scale {scale}."
            hint = f"It must be a power of two from 2^{CELL_EXPONENTS[0]} to 2^{CELL_EXPONENTS[-1]}."
            raise fail("HG022", node.name, text, hint)
        self.exponent = exponent
        limit = cell_limit(float(node.options["cell_clip"]), scale)
        self.bounds = IntType(-limit, limit) if limit else _INT16
        self.hidden = self._hidden(codes[1])
        if node.result().type != "int8":
            raise node.wrong_type(node.result())

    def _codes(self, place: int, dtype: str) -> CodeType:
        tensor = self.node.tensor(place)
        if tensor.type != dtype:
            raise self.node.wrong_type(tensor)
        return self.node.codes(tensor)

    def _hidden(self, state: CodeType) -> CodeType:
        """The codes of the hidden state: LiteRT reads them from the fifth intermediate tensor."""
        if self.runtime is Runtime.TFLM:
            return state
        inner = self.node.operator.intermediates
        if len(inner) != 5 or inner[4] < 0:
            reason = f"{len(inner)} intermediate tensors choose another kernel"
            raise self.node.refused(reason, "Convert the model with int8 data and an int16 cell.")
        return self.node.codes(self.node.graph.tensors[inner[4]])

    def _product(self, data: CodeType, first: int, columns: int, bias: int | None) -> _Product:
        """The product of an operand with the weights that start at input `first`."""
        node, parts, biases, multipliers = self.node, [], [], []
        for gate in _ORDER:
            weights = node.constant(first + gate, "a weight").astype(np.int64)
            codes = self._codes(first + gate, "int8")
            if weights.shape != (self.cells, columns):
                text = f"weights of shape {list(weights.shape)}."
                raise fail("HG023", node.name, text, f"They must have the shape {[self.cells, columns]}.")
            if codes.zero_point:
                raise fail("HG024", node.name, f"weights of zero point {codes.zero_point}.", "It must be 0.")
            parts.append(weights)
            multipliers += [gate_multiplier(self.runtime, data.scale, codes.scale)] * self.cells
            if bias is not None:
                biases.append(self._bias(bias + gate))
        return _Product(np.concatenate(parts), data.zero_point, multipliers, np.concatenate(biases) if biases else None)

    def _bias(self, place: int) -> Array:
        node = self.node
        if node.optional(place) is None:
            raise node.refused("a gate without a bias ends the runtime", "Store a bias of zeros.")
        values = node.constant(place, "a bias")
        if values.dtype != np.int32 or values.size != self.cells:
            text = f"a bias of type {values.dtype} with {values.size} elements."
            raise fail("HG023", node.name, text, f"It needs {self.cells} int32 numbers.")
        return values.reshape(-1)

    # ----------------------------------------------------------------------- one step

    def step(self, sums: int, hidden: int, memory: int) -> tuple[int, int]:
        """(hidden state, cell) after a step; sums: of the input, (rows, 4 * cells)."""
        rows = self.node.builder.steps[sums - 1].shape[0]
        shape = (rows, 4 * self.cells)
        is_bounded = self.runtime is Runtime.TFLM
        recurrent = self.node.chain(hidden, self.of_hidden.ops((rows, self.cells), is_bounded))
        gates = self._joined(BinaryKind.ADD, shape, sums, recurrent, shifted(2, 0, 0, 0, _INT16, "int16"))
        logistic = self._looked_up(self._columns(gates, 0, 3), logistic_table(self.runtime))
        added_gate = self._looked_up(self._columns(gates, 3, 4), tanh_table(self.runtime))
        input_gate, forget_gate, output_gate = (self._columns(logistic, n, n + 1) for n in range(3))
        state = (rows, self.cells)
        forgotten = self._joined(BinaryKind.MUL, state, forget_gate, memory, self._power(RESULT_BITS))
        added = self._joined(
            BinaryKind.MUL, state, input_gate, added_gate, self._power(2 * RESULT_BITS + self.exponent)
        )
        memory = self._joined(BinaryKind.ADD, state, forgotten, added, shifted(2, 0, 0, 0, self.bounds, "int16"))
        activated = self._looked_up(memory, tanh_table(self.runtime, self.exponent))
        multiplier = hidden_multiplier(self.runtime, self.hidden.scale)
        last = doubly_rounded([multiplier], 2, self.hidden.zero_point, CODE_TYPES["int8"], "int8")
        return self._joined(BinaryKind.MUL, state, activated, output_gate, last), memory

    def as_state(self, memory: int) -> int:
        """The cell with all codes of int16, which a state has from its initial value; cell_clip leaves fewer."""
        if self.bounds == _INT16:
            return memory
        shape = self.node.builder.steps[memory - 1].shape
        return self.node.step(shifted(2, 0, 0, 0, _INT16, "int16"), shape, memory)

    def _power(self, bits: int) -> Quantizer:
        """The division of a product by 2^bits: gemmlowp's in LiteRT, twice rounded in tflite-micro."""
        if self.runtime is Runtime.TFLM:
            return doubly_rounded([quantized_multiplier(2.0**-bits)], 2, 0, _INT16, "int16")
        unit = np.ones((1, 1), np.int64)
        half, divisor = unit << (bits - 1), unit << bits
        return IntegerRatio(unit, half, divisor, _INT16, "int16", mirrored=True)

    def _joined(self, kind: BinaryKind, shape: Shape, first: int, second: int, last: Quantizer) -> int:
        operands = [self.node.step(Cast("int32"), shape, value) for value in (first, second)]
        return self.node.step(last, shape, self.node.step(Binary(kind), shape, *operands))

    def _columns(self, value: int, first: int, end: int) -> int:
        """Elements of the gates `first` to `end`."""
        rows = self.node.builder.steps[value - 1].shape[0]
        ranges = (0, rows, 1), (first * self.cells, end * self.cells, 1)
        return self.node.step(Slice(ranges), (rows, (end - first) * self.cells), value)

    def _looked_up(self, value: int, table: Array) -> int:
        """The function of int16 codes with this table."""
        shape = self.node.builder.steps[value - 1].shape
        offset = np.full((1, 1), 1 << 15, np.int32)
        entries = table.astype(np.int32).reshape(-1, 1, 1)
        # The quantizer changes nothing: it makes codes that joins and slices take.
        ops = Cast("int32"), Add(offset), Lookup(entries), shifted(2, 0, 0, 0, _INT16, "int16")
        return self.node.chain(value, [(op, shape) for op in ops])


def _refuse_variants(node: OperatorNode) -> None:
    """Raises HG013 for a form of the operator with other inputs or options."""
    present = {reason for reason, places in _VARIANTS.items() for place in places if node.optional(place) is not None}
    if node.optional(_WEIGHTS) is None:
        present.add("coupled input and forget gates")
    if present:
        raise fail("HG013", node.name, f"{node.operator.name} with {', '.join(sorted(present))}.", _HINT)
    activation = node.options["fused_activation_function"]
    if activation != "TANH":
        text = f"{node.operator.name} with the activation {activation}."
        raise fail("HG013", node.name, text, "Supported: TANH.")
