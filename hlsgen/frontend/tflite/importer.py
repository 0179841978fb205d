"""Import of a TFLite file as a Model: operator by operator, in the order of the file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend import multiple_ports
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.step_builder import StepBuilder
from hlsgen.frontend.tflite.chosen_outputs import needed_operators
from hlsgen.frontend.tflite.file import TfliteFile, TfliteOperator
from hlsgen.frontend.tflite.initial_values import initial_value
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.ops_lstm import has_steps
from hlsgen.frontend.tflite.ops_state import read_first
from hlsgen.frontend.tflite.rules import RULES, Rule
from hlsgen.frontend.tflite.softmax_in_hardware import move_softmax_to_hardware
from hlsgen.frontend.tflite.variables import Variables
from hlsgen.ir import Model, ModelInput, ModelOutput, ModelVariable, Shape
from hlsgen.ir.rewrite import pruned
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.tflite.multipliers import Runtime

#: Types of inputs and outputs of a Model.
_PORTS = frozenset({"int8", "uint8", "int16", "float32"})


def import_tflite(file: TfliteFile, name: str, options: ImportOptions, problems: Collector) -> Model | None:
    """The Model of the file's first graph as `options.runtime` computes it, or None if an error was added.

    Variables are inputs (old values) and outputs (new values) after the file's own.
    """
    return _Importer(file, options, problems).run(name)


def import_tensors(file: TfliteFile, name: str, runtime: str) -> tuple[Model, tuple[int, ...]]:
    """A Model of a file that can be imported, with every computed tensor as an output, and their numbers.

    The outputs have the numbers as names, in the order of the operators. Outputs of variables follow.
    """
    problems = Collector()
    importer = _Importer(file, ImportOptions(False, {}, False, False, runtime), problems)
    model = importer.run(name, every_tensor=True)
    problems.finish()
    assert model is not None
    return model, importer.computed


class _Importer:
    """One pass over the operators of the first graph."""

    def __init__(self, file: TfliteFile, options: ImportOptions, problems: Collector) -> None:
        self.file, self.graph, self.problems = file, file.graphs[0], problems
        self.runtime, self.last_softmax_in_hardware = Runtime(options.runtime), options.last_softmax_in_hardware
        self.once = options.once
        self.builder, self.variables = StepBuilder(), Variables()
        self.values: dict[int, int] = {}
        self._failed: set[int] = set()
        self._ports: dict[str, str] = {}
        self._initial: dict[str, ModelVariable] = {}

    def run(self, name: str, every_tensor: bool = False) -> Model | None:
        errors_before = len(self.problems.errors)
        inputs = self._inputs()
        for operator in needed_operators(self.file):
            self._import(operator)
        if len(self.problems.errors) > errors_before:
            return None
        with self.problems.catching():
            ends = dict(zip(self.file.output_names, self.graph.outputs, strict=True))
            return self._model(name, inputs, {str(n): n for n in self.computed} if every_tensor else ends)
        return None

    @property
    def computed(self) -> tuple[int, ...]:
        """Numbers of the tensors that imported operators have computed, in their order."""
        written = (index for operator in self.graph.operators for index in operator.outputs)
        return tuple(index for index in written if index in self.values)

    # ----------------------------------------------------------------------- ends of the graph

    def _inputs(self) -> tuple[ModelInput, ...]:
        """The inputs of the file and old values of variables; if there are several, each is a step."""
        tensors = [self.graph.tensors[index] for index in self.graph.inputs]
        inputs = []
        for name, tensor in zip(self.file.input_names, tensors, strict=True):
            inputs.append(self._input(name, tensor.shape, tensor.type))
        old = read_first(self.graph)
        for variable, form in old.items():
            inputs.append(self._input(self._port(variable), *form))
            with self.problems.catching():
                value = initial_value(self.file, variable, *form)
                self._initial[self._port(variable)] = ModelVariable(self._port(variable), value)
        numbers = [0]
        if len(inputs) > 1:
            steps = multiple_ports.split_steps(inputs, {operator.node for operator in self.graph.operators})
            numbers = [self.builder.add(step.name, step.op, step.shape, step.inputs) for step in steps]
        self.values.update(zip(self.graph.inputs, numbers, strict=False))
        self.variables.current.update(zip(old, numbers[len(tensors) :], strict=True))
        return tuple(inputs)

    def _input(self, name: str, shape: Shape, dtype: str) -> ModelInput:
        with self.problems.catching():
            if dtype not in _PORTS:
                text = f"an input of type {dtype}."
                raise fail("HG026", name, text, f"Supported: {', '.join(sorted(_PORTS))}.")
            if not all(shape):
                raise fail("HG012", name, f"an input of shape {list(shape)}.", "Export the model with fixed shapes.")
        declared = None
        if dtype in _PORTS - {"float32"}:
            info = np.iinfo(dtype)
            declared = IntType(int(info.min), int(info.max)), 0
        return ModelInput(name, shape, dtype, bool(shape) and shape[0] == 1, declared)

    def _port(self, variable: str) -> str:
        """The name of a variable's input and output, which no port of the file and no other variable has."""
        if variable not in self._ports:
            used = {*self.file.input_names, *self.file.output_names, *self._ports.values()}
            name = variable or "variable"
            while name in used:
                name += "_"
            self._ports[variable] = name
        return self._ports[variable]

    def _model(self, name: str, inputs: tuple[ModelInput, ...], ends: Mapping[str, int]) -> Model:
        """The Model from the imported steps; `ends`: the number of the tensor by output.

        Raises HG015 for an output that depends on no input.
        """
        outputs, values = [], []
        for output, index in ends.items():
            tensor = self.graph.tensors[index]
            if index not in self.values:
                text = "this output of the graph does not depend on its input."
                raise fail("HG015", output, text, "Remove it from the graph: there is nothing to build.")
            outputs.append(ModelOutput(output, tensor.shape, tensor.type))
            values.append(self.values[index])
        for variable, form in self.variables.new.items():
            outputs.append(ModelOutput(self._port(variable), *form))
            values.append(self.variables.current[variable])
        if not outputs:
            raise fail("HG015", name, "the graph has no output.", "Export the model again.")
        last, dtype = values[0], outputs[0].dtype
        if len(outputs) > 1:
            step = multiple_ports.assemble_step(outputs, {operator.node for operator in self.graph.operators})
            last, dtype = self.builder.add(step.name, step.op, step.shape, tuple(values)), "float64"
        remaining, _ = pruned(self.builder.steps, last)
        remaining = move_softmax_to_hardware(remaining, self.last_softmax_in_hardware)
        steps, inputs = multiple_ports.without_unused_inputs(tuple(remaining), inputs)
        if not steps:
            raise fail("HG015", name, "the output is the input.", "There is nothing to build.")
        combined = multiple_ports.combined_input(inputs)
        source = combined or inputs[0]
        return Model(
            name,
            source.name,
            source.shape,
            source.dtype,
            all(part.batched for part in inputs),
            None if combined else source.type,
            steps,
            ", ".join(output.name for output in outputs),
            dtype,
            None,
            inputs if combined else (),
            tuple(outputs) if len(outputs) > 1 else (),
            self.runtime.value,
            tuple(self._initial[part.name] for part in inputs if part.name in self._initial),
            any(has_steps(self.graph, operator) for operator in self.graph.operators),
        )

    # ----------------------------------------------------------------------- operators

    def _import(self, operator: TfliteOperator) -> None:
        """Add the steps of an operator, or its problem. Users of a refused one are checked as far as known."""
        rule = self._rule(operator)
        uses_failed = any(index in self._failed for index in operator.inputs)
        errors_before = len(self.problems.errors)
        if rule is not None:
            with self.problems.catching():
                node = OperatorNode(
                    operator, self.graph, self.runtime, self.builder, self.values, self.variables, self.once
                )
                self._check_types(node, rule)
                rule.convert(node)
        if rule is None or uses_failed or len(self.problems.errors) > errors_before:
            self._assume(operator)

    def _rule(self, operator: TfliteOperator) -> Rule | None:
        """The operator's row, or None with HG010 in `problems`."""
        rule = RULES.get(operator.name)
        if rule is None:
            label = f"custom operator {operator.custom}" if operator.name == "CUSTOM" else operator.name
            self.problems.error("HG010", operator.node, f"{label} is not supported.")
        return rule

    def _check_types(self, node: OperatorNode, rule: Rule) -> None:
        """Raises HG026 for data of a type that the row does not have, or the runtime."""
        if not rule.types:
            return
        tensor = node.tensor(rule.data)
        types = rule.types & rule.micro if self.runtime is Runtime.TFLM else rule.types
        if tensor.type in types:
            return
        if tensor.type in rule.types:
            text = f"{node.operator.name} of {tensor.type}: tflite-micro has no kernels for it."
            raise fail("HG026", node.name, text, "Use --runtime litert-ref, or convert the model to int8.")
        text = f"{node.operator.name} of {tensor.type} data is not supported."
        raise fail("HG026", node.name, text, f"Supported: {', '.join(sorted(types))}.")

    def _assume(self, operator: TfliteOperator) -> None:
        """Give the outputs of an operator with a problem the number of the input, so that later ones are checked."""
        for index in operator.outputs:
            self._failed.add(index)
            self.values.setdefault(index, 0)
