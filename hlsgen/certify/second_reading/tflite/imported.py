"""The imported Model's steps by operator of a TFLite file, and their results for test data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hlsgen import ir
from hlsgen.certify.second_reading.step_results import bordered, convolved, moved, taps
from hlsgen.certify.second_reading.tflite.records import FileRecords, Operator, Tensor
from hlsgen.ir.evaluate import apply, apply_binary
from hlsgen.ir.model import InputPart, OutputParts
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.numerics.fixed import Array

#: Operators of variables, which have no steps.
VARIABLES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
#: Numbers of the inputs that are states of recurrent operators.
STATES = {"UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19), "SVDF": (4,)}
#: Larger tensors are not tried.
MAX_ELEMENTS = 1 << 22


class ImportedOperators:
    """The steps of each operator with the numbers of their results, and the value of each tensor of the file."""

    def __init__(self, file: FileRecords, model: ir.Model) -> None:
        self.file, self.model = file, model
        self._named: dict[str, list[tuple[int, ir.Step]]] = {}
        self._values: dict[int, int] = {}
        inputs = file.used_inputs
        for number, step in enumerate(model.steps, 1):
            if isinstance(step.op, InputPart):
                if step.op.number < len(inputs):
                    self._values[inputs[step.op.number]] = number
            elif not isinstance(step.op, OutputParts):
                self._named.setdefault(step.name.partition(" (")[0], []).append((number, step))
        if not model.inputs and inputs:
            self._values[inputs[0]] = 0
        self._handles: dict[int, str] = {}
        #: Number of the new value of a state, by number of its tensor.
        self.new_states: dict[int, int] = {}
        self._variables = {
            port.name: number
            for number, step in enumerate(model.steps, 1)
            if isinstance(step.op, InputPart) and step.op.number >= len(inputs)
            for port in [model.inputs[step.op.number]]
        }
        for operator in file.operators:
            if self._follow_variable(operator):
                continue
            steps = self.steps(operator)
            self._follow_states(operator)
            computed = self.computed(operator)
            if steps and len(operator.outputs) == 1:
                self._values[operator.outputs[0]] = steps[-1][0]
            elif len(last := self.last_positions(operator)) == len(operator.outputs):
                self._values.update(zip(operator.outputs, (steps[n][0] for n in last), strict=True))
            elif not steps and len(computed) == len(operator.outputs) == 1 and computed[0] in self._values:
                self._values[operator.outputs[0]] = self._values[computed[0]]

    def _follow_variable(self, operator: Operator) -> bool:
        """True for operators of variables; a value is written once, so it is known by its number."""
        if operator.kind == "VAR_HANDLE":
            container, name = operator.options["container"], operator.options["variable"]
            self._handles[operator.outputs[0]] = f"{container}/{name}" if container else name
        elif operator.kind == "READ_VARIABLE":
            value = self._variables.get(self._handles.get(operator.inputs[0], ""))
            if value is not None:
                self._values[operator.outputs[0]] = value
        elif operator.kind == "ASSIGN_VARIABLE":
            value = self._values.get(operator.inputs[1])
            if value is not None:
                self._variables[self._handles.get(operator.inputs[0], "")] = value
        return operator.kind in VARIABLES

    def _follow_states(self, operator: Operator) -> None:
        """The states of a recurrent operator: their old values, and as new ones the outputs among its steps."""
        results = {number for number, _ in self.steps(operator)}
        outputs = dict(zip((port.name for port in self.model.all_outputs), self.model.steps[-1].inputs, strict=False))
        for position in STATES.get(operator.kind, ()):
            tensor = operator.inputs[position]
            name = self.file.tensors[tensor].name
            if name in self._variables:
                self._values[tensor] = self._variables[name]
            if outputs.get(name) in results:
                self.new_states[tensor] = self._variables[name] = outputs[name]

    def ends(self) -> Iterator[tuple[str, str]]:
        """Outputs of the Model, variables included, that are another value than the file's."""
        last = len(self.model.steps)
        numbers = self.model.steps[-1].inputs if self.model.outputs else (last,)
        for position, (port, number) in enumerate(zip(self.model.all_outputs, numbers, strict=True)):
            if position < len(self.file.outputs):
                value = self._values.get(self.file.outputs[position])
            else:
                value = self._variables.get(port.name)
            if value is not None and value != number:
                yield port.name, "the output is another value in the file."

    def value(self, tensor: int) -> int | None:
        """The Model's number of a tensor's value, if it is known."""
        return self._values.get(tensor)

    def steps(self, operator: Operator) -> list[tuple[int, ir.Step]]:
        """The operator's steps with the numbers of their results."""
        return self._named.get(operator.node.partition(" (")[0], [])

    def last_positions(self, operator: Operator) -> list[int]:
        """The positions of the operator's steps that are not read by its other steps."""
        steps = self.steps(operator)
        read = {number for _, step in steps for number in step.inputs}
        return [position for position, (number, _) in enumerate(steps) if number not in read]

    def chain(self, operator: Operator) -> list[ir.Step] | None:
        """The operator's steps if each reads just the result of the one before it."""
        steps = self.steps(operator)
        numbers = [number for number, _ in steps]
        read = [step.inputs for _, step in steps]
        is_chain = bool(steps) and len(read[0]) == 1 and read[1:] == [(number,) for number in numbers[:-1]]
        return [step for _, step in steps] if is_chain else None

    def tensor(self, number: int) -> Tensor | None:
        return self.file.tensors[number] if number >= 0 else None

    def computed(self, operator: Operator) -> list[int]:
        """The inputs that are no constants, each once."""
        return [n for n in dict.fromkeys(operator.inputs) if n >= 0 and self.file.tensors[n].codes is None]

    def external(self, operator: Operator) -> list[int]:
        """The values that the operator's steps read from elsewhere, each once."""
        results = {number for number, _ in self.steps(operator)}
        return list(dict.fromkeys(i for _, step in self.steps(operator) for i in step.inputs if i not in results))

    def connected(self, operator: Operator) -> bool:
        """True if the steps read just the values of the operator's computed inputs."""
        values = [self._values.get(n) for n in self.computed(operator)]
        return None not in values and set(self.external(operator)) == set(values)

    def shape(self, value: int) -> tuple[int, ...]:
        return self.model.steps[value - 1].shape if value else self.model.input_shape

    def run(self, operator: Operator, arrays: Mapping[int, Array]) -> list[Array] | None:
        """Results of all steps for codes of the computed inputs, or None for a step of an unknown kind.

        arrays: by number of a tensor, of the value's shape in the Model.
        """
        values = {self._values[n]: array.reshape(self.shape(self._values[n])) for n, array in arrays.items()}
        results = []
        for number, step in self.steps(operator):
            result = run_step(step, [values[i] for i in step.inputs])
            if result is None:
                return None
            values[number] = result
            results.append(result)
        return results


def run_chain(steps: Sequence[ir.Step], x: Array) -> Array | None:
    """The elementwise steps in order, without those that only reshape. A step of another kind gives no result."""
    for step in steps:
        if isinstance(step.op, ir.Reshape):
            continue
        if not isinstance(step.op, FLOATS + QUANTIZERS):
            return None
        x = apply(step.op, x)
    return x


def run_step(step: ir.Step, inputs: list[Array]) -> Array | None:
    """The result of a step, or None for an unknown kind."""
    x = inputs[0]
    match step.op:
        case ir.Pad(pads, value):
            return bordered(x, pads, value)
        case ir.Binary(kind):
            return apply_binary(kind, inputs[0], inputs[1])
        case ir.Pool(kind, window):
            lowest = 0 if kind is ir.Reduction.SUM else np.iinfo(np.int64).min
            windows = taps(x.astype(np.int64), window.kernel, window.strides, window.dilations, window.pads, lowest)
            return np.asarray(windows.sum(axis=(-2, -1)) if kind is ir.Reduction.SUM else windows.max(axis=(-2, -1)))
        case ir.MatMulInteger(weight, zero_point):
            return np.asarray((x.astype(np.int64) - zero_point) @ weight.T)
        case ir.ConvInteger(weight, zero_point, window, groups):
            centred = x.astype(np.int64) - zero_point
            windows = taps(centred, window.kernel, window.strides, window.dilations, window.pads, 0)
            return np.asarray(np.rint(convolved(windows, weight, groups)), np.int64)
        case _ if isinstance(step.op, FLOATS + QUANTIZERS):
            return apply(step.op, x)
        case _:
            return moved(step.op, inputs, step.shape)


def elements(shape: Sequence[int]) -> int:
    return math.prod(shape)
