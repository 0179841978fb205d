"""An operator of a TFLite file while it becomes steps: its tensors, constants and scales, with refusals by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.step_builder import StepBuilder
from hlsgen.frontend.tflite.file import TfliteGraph, TfliteOperator, TfliteTensor
from hlsgen.frontend.tflite.variables import Variables
from hlsgen.ir import Op, Reshape, Shape
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.multipliers import CODE_TYPES, Runtime, activation_bounds, xnnpack_bounds


@dataclass(frozen=True)
class OperatorNode:
    """An operator of a graph.

    builder    steps so far
    values     number of the Model's value, by number of the tensor
    variables  variables of the file
    once       one body for all steps
    """

    operator: TfliteOperator
    graph: TfliteGraph
    runtime: Runtime
    builder: StepBuilder
    values: dict[int, int]
    variables: Variables
    once: bool = False

    @property
    def name(self) -> str:
        return self.operator.node

    @property
    def options(self) -> Mapping[str, Any]:
        return self.operator.options

    # ----------------------------------------------------------------------- tensors

    def optional(self, position: int) -> TfliteTensor | None:
        """The tensor of an input, None if it is absent."""
        inputs = self.operator.inputs
        index = inputs[position] if position < len(inputs) else -1
        return None if index < 0 else self.graph.tensors[index]

    def tensor(self, position: int) -> TfliteTensor:
        """The tensor of an input. Raises HG014 if it is absent."""
        tensor = self.optional(position)
        if tensor is None:
            text = f"input {position} of {self.operator.name} is absent."
            raise fail("HG014", self.name, text, "Export the model again.")
        return tensor

    def result(self, position: int = 0) -> TfliteTensor:
        """The tensor of an output. Raises HG015 if there is none."""
        if position >= len(self.operator.outputs):
            text = f"{self.operator.name} has {len(self.operator.outputs)} outputs."
            raise fail("HG015", self.name, text, "Export the model again.")
        return self.graph.tensors[self.operator.outputs[position]]

    def is_computed(self, position: int) -> bool:
        """True if an input depends on the model's inputs."""
        return self.operator.inputs[position] in self.values

    def value(self, position: int) -> int:
        """Number of the Model's value of an input. Raises HG014, HG015 for a constant."""
        self.tensor(position)
        if not self.is_computed(position):
            text = f"input {position} of {self.operator.name} does not depend on the model's input."
            raise fail("HG015", self.name, text, "Compute it when the file is exported.")
        return self.values[self.operator.inputs[position]]

    def constant(self, position: int, subject: str) -> Array:
        """The elements of a constant input. Raises HG014, HG020."""
        data = self.tensor(position).data
        if data is None:
            raise fail("HG020", self.name, f"{subject} is not a constant.", "It must be stored in the file.")
        return data

    def numbers(self, position: int, subject: str) -> list[int]:
        """The whole numbers of a constant input. Raises HG014, HG020, HG026."""
        data = self.constant(position, subject)
        if data.dtype.kind not in "iu":
            raise fail("HG026", self.name, f"{subject} is of type {data.dtype}.", "It must have an integer type.")
        return [int(v) for v in data.reshape(-1)]

    # ----------------------------------------------------------------------- codes

    def codes(self, tensor: TfliteTensor, any_zero: bool = False) -> CodeType:
        """The meaning of a tensor's codes. Raises HG022 to HG024, HG026 without one scale and one zero point.

        any_zero: int16 codes may have any zero point, as the result of SOFTMAX of int8 has; else it must be 0.
        """
        if tensor.type not in CODE_TYPES:
            raise self.wrong_type(tensor)
        quantization = tensor.quantization
        if quantization is None:
            text = f"{self.operator.name}: tensor {tensor.name!r} has no scale."
            raise fail("HG022", self.name, text, "Convert the model with full integer quantization.")
        if quantization.scale.size != 1 or quantization.zero_point.size > 1:
            text = f"{self.operator.name}: tensor {tensor.name!r} has {quantization.scale.size} scales."
            raise fail("HG023", self.name, text, "Use one scale and one zero point for the tensor.")
        scale = float(self.positive(quantization.scale, tensor)[0])
        zero = int(quantization.zero_point[0]) if quantization.zero_point.size else 0
        is_wide = tensor.type in ("int16", "int32") and not any_zero
        kind = IntType(0, 0) if is_wide else CODE_TYPES[tensor.type]
        if not kind.lo <= zero <= kind.hi:
            text = f"{self.operator.name}: tensor {tensor.name!r} of {tensor.type} has the zero point {zero}."
            raise fail("HG024", self.name, text, f"It must be from {kind.lo} to {kind.hi}.")
        return CodeType(tensor.type, scale, zero)

    def positive(self, scale: Array, tensor: TfliteTensor) -> Array:
        """The scales. Raises HG022 unless all are finite and greater than 0."""
        wrong = ~(np.isfinite(scale) & (scale > 0))
        if wrong.any():
            text = f"{self.operator.name}: a scale of tensor {tensor.name!r} is {scale[wrong][0]}."
            raise fail("HG022", self.name, text, "A scale must be finite and greater than 0.")
        return scale

    def bounds(self, result: CodeType, xnnpack: bool = False) -> IntType:
        """The codes within the fused activation, as XNNPACK or the other kernels round them. Raises HG013."""
        activation = self.options.get("fused_activation_function", "NONE")
        if activation not in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
            text = f"{self.operator.name} with the fused activation {activation}: every runtime refuses it."
            raise fail("HG013", self.name, text, "Supported: NONE, RELU, RELU6, RELU_N1_TO_1.")
        if xnnpack:
            bounds = xnnpack_bounds(activation, result.dtype, result.scale, result.zero_point)
        else:
            bounds = activation_bounds(activation, self.runtime, result.dtype, result.scale, result.zero_point)
        if bounds.lo > bounds.hi:
            text = f"no code of the result is within the fused activation {activation}."
            raise fail("HG022", self.name, text, "Quantize the result to the range of the activation.")
        return bounds

    @property
    def by_xnnpack(self) -> bool:
        """True if XNNPACK computes operators on 8-bit codes that it takes."""
        return self.runtime is Runtime.LITERT and self.result().type in ("int8", "uint8")

    # ----------------------------------------------------------------------- steps

    def step(self, op: Op, shape: Shape, *inputs: int) -> int:
        """Add a step; returns the number of its result. Raises HG004."""
        return self.builder.add(self.name, op, shape, inputs)

    def chain(self, value: int, ops: ShapedOps) -> int:
        """Add steps one after the other; returns the number of the last result. Raises HG004."""
        for op, shape in ops:
            value = self.step(op, shape, value)
        return value

    def finish(self, value: int, shape: Shape, position: int = 0) -> None:
        """Make a value of this shape the output of that number. Raises HG023 if the file has another size."""
        result = self.result(position)
        if shape != result.shape:
            if int(np.prod(shape)) != int(np.prod(result.shape)):
                text = f"{self.operator.name} computes the shape {list(shape)}, the file has {list(result.shape)}."
                raise fail("HG023", self.name, text, "Export the model again, with fixed shapes.")
            value = self.step(Reshape(), result.shape, value)
        self.values[self.operator.outputs[position]] = value

    # ----------------------------------------------------------------------- refusals

    def wrong_type(self, tensor: TfliteTensor) -> HlsgenError:
        text = f"{self.operator.name}: tensor {tensor.name!r} is of type {tensor.type}."
        return fail("HG026", self.name, text, "Convert the model with full integer quantization (int8).")

    def refused(self, reason: str, hint: str) -> HlsgenError:
        """HG013 of a form that the runtime refuses, or computes by the position in the tensor."""
        return fail("HG013", self.name, f"{self.operator.name} in {self.runtime.value}: {reason}.", hint)
