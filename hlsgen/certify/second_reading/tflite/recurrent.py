"""Second reading of UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF: results and new states for random codes.

All tables of 65,536 entries and all multipliers of the steps are compared as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite.imported import STATES, ImportedOperators
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.rescaling import divided, double
from hlsgen.certify.second_reading.tflite.scales import (
    DOUBLE,
    LIMITS,
    exact,
    multiplier,
    rounded,
    single_factor,
)
from hlsgen.certify.second_reading.tflite.wide_tables import fixed_sigmoid, lines
from hlsgen.ir import ConvInteger, MatMulInteger
from hlsgen.ir.ops import Add, Convention, IntegerRatio, Lookup, Requantize
from hlsgen.numerics.fixed import Array

_LOW, _HIGH = LIMITS["int16"]
_CODES = np.arange(_LOW, _HIGH + 1)
#: The gates by their places among the operator's inputs, as steps compute them: i, f, o, g.
_SIDE_BY_SIDE = (0, 1, 3, 2)
#: Frames of random codes.
_FRAMES = 12
Part = tuple[int, int]


@dataclass(frozen=True, eq=False)
class _Meaning:
    """run: from codes of the data and the states to the result and the new states, all flat.

    The multipliers (m, e) of DOUBLE are `parts`. Functions of int16 codes are `tables`.
    All `weights` come with the zero point of their codes. Sums are added to `biases`.
    Products are divided by `powers`, ties away from zero. The result's zero point is `zero`.
    """

    run: Callable[[list[Array]], list[Array]]
    parts: list[Part]
    tables: list[Array]
    weights: list[tuple[Array, int]]
    biases: list[Array]
    powers: tuple[int, ...]
    zero: int


def check_recurrent(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare results, new states, tables and multipliers."""
    positions = (0, *STATES[operator.kind])
    numbers = [operator.inputs[n] for n in positions]
    tensors = [imported.file.tensors[n] for n in numbers]
    news = [imported.new_states.get(n) for n in numbers[1:]]
    read_tensors = [n for n in numbers if imported.value(n) is not None]
    if None in news or set(imported.external(operator)) != {imported.value(n) for n in read_tensors}:
        return None
    meaning = _MEANINGS[operator.kind](imported, operator)
    if meaning is None:
        return None
    differences: list[str] = []
    rng = np.random.default_rng(0)
    for _ in range(_FRAMES):
        codes = [rng.integers(*LIMITS[t.type], t.shape, endpoint=True).astype(t.type) for t in tensors]
        # A state that a frame does not read has no input.
        results = imported.run(operator, {n: x for n, x in zip(numbers, codes, strict=True) if n in read_tensors})
        if not results:
            return None
        values = dict(zip((number for number, _ in imported.steps(operator)), results, strict=True))
        computed = [results[-1], *(values[number] for number in news if number is not None)]
        expected = meaning.run([x.astype(np.int64) for x in codes])
        for quantity, ours, theirs in zip(("code", "new state", "new cell"), computed, expected, strict=False):
            differences += differ(quantity, ours.ravel(), theirs.ravel())
        if differences:
            break
    return [*differences, *_compare_constants(imported, operator, meaning)]


def _compare_constants(imported: ImportedOperators, operator: Operator, meaning: _Meaning) -> Iterator[str]:
    """Differences of constants, each of which must be one of the operator's own."""
    for _, step in imported.steps(operator):
        match step.op:
            case Requantize(convention, multipliers, add, shifts, zero, _, dtype):
                if not set(zero.ravel().tolist()) <= ({0, meaning.zero} if dtype == "int8" else {0}):
                    yield "a zero point was imported that the file does not have."
                double_parts = {(int(m), 31 - int(s)) for m, s in np.broadcast(multipliers, shifts)}
                is_double = convention is Convention.DOUBLE and double_parts <= set(meaning.parts)
                is_limit = convention is Convention.FLOOR and double_parts == {(1, 31)}
                if add.any() or not (is_double or is_limit):
                    yield f"the multipliers {sorted(double_parts)[:4]} were imported, the file has {meaning.parts}."
            case IntegerRatio(factor, half, power, _, _, is_mirrored, _):
                divisions = {(1, p // 2, p) for p in meaning.powers}
                if {
                    (int(a), int(b), int(c)) for a, b, c in np.broadcast(factor, half, power)
                } - divisions or not is_mirrored:
                    yield "a product is divided by another number than in the runtime."
            case Lookup(values):
                if not any(np.array_equal(values.ravel(), table) for table in meaning.tables):
                    yield "a function of int16 codes was imported that the operator does not have."
            case MatMulInteger(weight, zero, _) | ConvInteger(weight, zero, _, _, _):
                if not any(np.array_equal(weight.ravel(), w.ravel()) and (zero == z).all() for w, z in meaning.weights):
                    yield "weights or a zero point were imported that the file does not have."
            case Add(value):
                if not any(np.array_equal(value.ravel(), bias.ravel()) for bias in (*meaning.biases, np.array(-_LOW))):
                    yield "a bias was imported that the file does not have."


def _ratio(runtime: str, data: Fraction, weights: Fraction, result: Fraction) -> Part:
    if runtime == "tflm":
        return multiplier(rounded(rounded(data * weights, DOUBLE) / result, DOUBLE))
    return multiplier(single_factor(data, weights, result))


def _numbers(tensor: Tensor) -> Array:
    """The elements of a constant, int64."""
    return np.asarray(tensor.codes).astype(np.int64)


def _limited(x: Array, low: int = _LOW, high: int = _HIGH) -> Array:
    return np.asarray(np.clip(x, low, high))


# --------------------------------------------------------------------------- LSTM


@dataclass(frozen=True, eq=False)
class _Gate:
    """A gate's weights of the data and of the hidden state, its bias, and the multipliers of both sums."""

    weights: Array
    recurrent: Array
    bias: Array
    data_part: Part
    hidden_part: Part


@dataclass(frozen=True, eq=False)
class _Lstm:
    """The numbers of an LSTM, and its steps.

    `zeros`: zero points of data, hidden state and result. `forget`, `added`: multipliers of the new cell's terms, in
    tflm. `output`: multiplier of the result. `tables`: sigmoid and tanh of the gates, and tanh of the cell, of int16
    codes. `power`: the cell's scale is 2^-power. `bound`: clip of the cell; 0: none.
    """

    is_micro: bool
    gates: list[_Gate]
    zeros: tuple[int, int, int]
    forget: Part
    added: Part
    output: Part
    tables: list[Array]
    power: int
    bound: int
    time_major: bool

    def run(self, codes: list[Array]) -> list[Array]:
        """All results, the last hidden state and the last cell."""
        data = codes[0] if self.time_major else codes[0].swapaxes(0, 1)
        h, c = (state.reshape(data.shape[1], -1) for state in codes[1:])
        rows = []
        for row in data:
            h, c = self._step(row, h, c)
            rows.append(h)
        stacked = np.stack(rows)
        return [stacked if self.time_major else stacked.swapaxes(0, 1), h, c]

    def _step(self, row: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """The hidden state and the cell after a row of data."""
        i, f, g, o = (self._sums(gate, row, h) for gate in self.gates)
        i, f, o = (_looked_up(self.tables[0], sums) for sums in (i, f, o))
        g = _looked_up(self.tables[1], g)
        if self.is_micro:
            c = _limited(_limited(double(f * c, *self.forget)) + _limited(double(i * g, *self.added)))
        else:
            c = _limited(divided(f * c, 1 << 15) + divided(i * g, 1 << (30 - self.power)))
        c = _limited(c, -self.bound, self.bound) if self.bound else c
        result = double(_looked_up(self.tables[2], c) * o, *self.output)
        return _limited(result + self.zeros[2], -128, 127), c

    def _sums(self, gate: _Gate, row: Array, h: Array) -> Array:
        """The input of a gate's function."""
        a = _limited(double((row - self.zeros[0]) @ gate.weights.T + gate.bias, *gate.data_part))
        b = double((h - self.zeros[1]) @ gate.recurrent.T, *gate.hidden_part)
        return _limited(a + (_limited(b) if self.is_micro else b))


def _looked_up(table: Array, codes: Array) -> Array:
    return np.asarray(table[codes - _LOW])


def _lstm(imported: ImportedOperators, operator: Operator) -> _Meaning | None:
    """Steps one after the other, gate after gate."""
    tensors, is_micro = imported.file.tensors, imported.model.runtime == "tflm"
    if any(operator.inputs[n] < 0 or tensors[operator.inputs[n]].codes is None for n in (*range(1, 9), *range(12, 16))):
        return None
    input_tensors = [tensors[n] for n in operator.inputs]
    x, hidden, cell, result = input_tensors[0], input_tensors[18], input_tensors[19], tensors[operator.outputs[0]]
    if result.type != "int8":
        return None
    last = hidden if is_micro else tensors[operator.intermediates[4]]
    unit, size, scale = Fraction(1, 32768), exact(cell.one_scale), exact(last.one_scale)
    clip = exact(operator.options["clip"])
    lstm = _Lstm(
        is_micro=is_micro,
        gates=_gates(imported.model.runtime, input_tensors),
        zeros=(x.one_zero, hidden.one_zero, last.one_zero),
        forget=multiplier(unit),
        added=multiplier(rounded(unit * unit / size, DOUBLE)),
        output=(
            multiplier(rounded(unit * unit / scale, DOUBLE))
            if is_micro
            else multiplier(rounded(rounded(unit / scale, 24) * unit, 24))
        ),
        tables=_gate_tables(is_micro, size.denominator.bit_length() - 1),
        power=size.denominator.bit_length() - 1,
        bound=min(int(rounded(clip / size, DOUBLE)), _HIGH) if clip > 0 else 0,
        time_major=bool(operator.options["time_major"]),
    )
    parts = [part for gate in lstm.gates for part in (gate.data_part, gate.hidden_part)]
    parts += [lstm.output, *([lstm.forget, lstm.added] if is_micro else [])]
    ordered = [lstm.gates[n] for n in _SIDE_BY_SIDE]
    weights = [
        (np.concatenate([gate.weights for gate in ordered]), x.one_zero),
        (np.concatenate([gate.recurrent for gate in ordered]), hidden.one_zero),
    ]
    biases = [np.concatenate([gate.bias for gate in ordered])]
    powers = () if is_micro else (1 << 15, 1 << (30 - lstm.power))
    return _Meaning(lstm.run, parts, lstm.tables, weights, biases, powers, last.one_zero)


def _gates(runtime: str, input_tensors: list[Tensor]) -> list[_Gate]:
    """The gates i, f, g and o."""
    x, hidden, scale = input_tensors[0], input_tensors[18], Fraction(1, 4096)
    gates = []
    for n in range(4):
        weights, recurrent, bias = input_tensors[1 + n], input_tensors[5 + n], input_tensors[12 + n]
        parts = (
            _ratio(runtime, exact(x.one_scale), exact(weights.one_scale), scale),
            _ratio(runtime, exact(hidden.one_scale), exact(recurrent.one_scale), scale),
        )
        gates.append(_Gate(_numbers(weights), _numbers(recurrent), _numbers(bias), *parts))
    return gates


def _gate_tables(is_micro: bool, power: int) -> list[Array]:
    """Sigmoid and tanh of the gates, and tanh of the cell, whose scale is 2^-power, for all int16 codes."""
    if not is_micro:
        return [fixed_sigmoid(steep, _CODES, bits) for steep, bits in ((False, 12), (True, 12), (True, power))]
    left_shift = 12 - power
    scaled = (
        _CODES * (3 << left_shift)
        if left_shift >= 0
        else np.floor_divide(6 * _CODES + (1 << -left_shift), 2 << -left_shift)
    )
    return [lines(False, 3 * _CODES), lines(True, 3 * _CODES), lines(True, scaled)]


# --------------------------------------------------------------------------- SVDF


def _svdf(imported: ImportedOperators, operator: Operator) -> _Meaning | None:
    tensors, runtime = imported.file.tensors, imported.model.runtime
    x, feature, time, bias, state = (tensors[n] for n in operator.inputs)
    result = tensors[operator.outputs[0]]
    if feature.codes is None or time.codes is None or state.one_zero:
        return None
    newest = _ratio(runtime, exact(x.one_scale), exact(feature.one_scale), exact(state.one_scale))
    total = _ratio(runtime, exact(state.one_scale), exact(time.one_scale), exact(result.one_scale))
    features, times = _numbers(feature), _numbers(time)
    added = _numbers(bias) if operator.inputs[3] >= 0 else np.zeros(1, np.int64)

    def run(codes: list[Array]) -> list[Array]:
        line = codes[1].reshape(len(codes[0]), *times.shape)
        first = _limited(double((codes[0] - x.one_zero) @ features.T, *newest), *LIMITS[state.type])
        line = np.concatenate([line[:, :, 1:], first[:, :, None]], axis=2)
        sums = np.einsum("nfm,fm->nf", line, times).reshape(len(line), -1, operator.options["rank"]).sum(axis=2)
        return [_limited(double(sums + added, *total) + result.one_zero, *LIMITS[result.type]), line]

    kernel = times.reshape(-1, operator.options["rank"], times.shape[1]).swapaxes(1, 2)
    return _Meaning(run, [newest, total], [], [(features, x.one_zero), (kernel, 0)], [added], (), result.one_zero)


_MEANINGS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm, "SVDF": _svdf}
