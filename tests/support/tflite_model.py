"""Models of single TFLite operators, made by hand from the numerics, for tests of the second reading."""

from __future__ import annotations

import numpy as np
from tflite_random import RandomFile
from tflite_writer import Operator, Tensor

from hlsgen import ir
from hlsgen.ir import Transpose as Permutation
from hlsgen.ir import ops
from hlsgen.ir.model import InputPart, ModelInput, ModelOutput, Op, OutputParts
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite import multipliers
from hlsgen.numerics.tflite.functions import CodeFunction, CodeType
from hlsgen.numerics.tflite.multipliers import Runtime

_FUNCTIONS = ("LOGISTIC", "TANH", "RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "HARD_SWISH", "QUANTIZE")


def _type(tensor: Tensor) -> multipliers.IntType:
    return multipliers.CODE_TYPES[tensor.type]


def _scale(tensor: Tensor) -> float:
    return float(np.float32(np.max(tensor.scale)))


def _zero(tensor: Tensor) -> int:
    return int(np.max(tensor.zero_point))


class ModelMaker:
    """The Model of a file with one operator, in a runtime."""

    def __init__(self, file: RandomFile, runtime: str) -> None:
        self.graph = file.writer.graphs[0]
        self.buffers = file.writer.buffers
        self.runtime = Runtime(runtime)
        self.operator: Operator = self.graph.operators[0]
        self.result = self.graph.tensors[self.operator.outputs[0]]
        self.steps: list[ir.Step] = []

    def data(self, number: int) -> Array:
        tensor = self.graph.tensors[number]
        return np.frombuffer(self.buffers[tensor.buffer], tensor.type).reshape(tensor.shape)

    def add(self, op: Op, shape: tuple[int, ...], *inputs: int) -> int:
        self.steps.append(ir.Step(self.result.name, op, shape, inputs or (len(self.steps),)))
        return len(self.steps)

    def constant(self, values: Array | float, dtype: str, rank: int) -> Array:
        array = np.asarray(values, dtype).reshape(-1)
        return array.reshape(*[1] * (rank - 1), len(array)) if rank else array.reshape(())

    def model(self) -> ir.Model:
        tensors = [self.graph.tensors[n] for n in self.graph.inputs]
        has_many_inputs = len(tensors) > 1
        inputs: tuple[ModelInput, ...] = ()
        if has_many_inputs:
            sizes = [int(np.prod(t.shape)) for t in tensors]
            inputs = tuple(ModelInput(t.name, t.shape, t.type, True, None) for t in tensors)
            self.steps = [
                ir.Step(t.name, InputPart(n, sum(sizes[:n]), t.type), t.shape, (0,)) for n, t in enumerate(tensors)
            ]
        getattr(self, f"_{self.operator.name.lower()}", self._function)(
            *range(1, len(tensors) + 1) if has_many_inputs else (0,)
        )
        outputs: tuple[ModelOutput, ...] = ()
        first = self.graph.tensors[self.graph.outputs[0]]
        if len(self.graph.outputs) > 1:
            tensors_out = [self.graph.tensors[n] for n in self.graph.outputs]
            outputs = tuple(ModelOutput(t.name, t.shape, t.type) for t in tensors_out)
            values = tuple(range(len(self.steps) - len(outputs) + 1, len(self.steps) + 1))
            size = sum(output.size for output in outputs)
            self.steps.append(ir.Step("outputs", OutputParts(), (size,), values))
        size = sum(int(np.prod(t.shape)) for t in tensors)
        shape = (size,) if has_many_inputs else tensors[0].shape
        dtype = "float64" if has_many_inputs else tensors[0].type
        return ir.Model(
            "m",
            tensors[0].name,
            shape,
            dtype,
            True,
            None,
            tuple(self.steps),
            first.name,
            first.type,
            None,
            inputs,
            outputs,
            self.runtime.value,
        )

    # ----------------------------------------------------------------- layers

    def _fully_connected(self, x: int) -> None:
        weights = self.data(self.operator.inputs[1]).astype(np.int64)
        data, tensor = (self.graph.tensors[n] for n in self.operator.inputs[:2])
        zero = _zero(tensor) if tensor.type == "uint8" else 0
        shape = self.result.shape
        self.add(ir.MatMulInteger(weights - zero, np.full(weights.shape[1], _zero(data))), shape, x)
        self._rescaled(data, tensor, 2)

    def _conv_2d(self, x: int) -> None:
        weights = self.data(self.operator.inputs[1]).astype(np.int64)
        self._convolution(x, weights, 1)

    def _depthwise_conv_2d(self, x: int) -> None:
        weights = self.data(self.operator.inputs[1]).astype(np.int64)
        channels = self.graph.tensors[self.operator.inputs[0]].shape[3]
        self._convolution(x, weights[0].transpose(2, 0, 1)[..., None], channels)

    def _convolution(self, x: int, weights: Array, groups: int) -> None:
        data, tensor = (self.graph.tensors[n] for n in self.operator.inputs[:2])
        options = self.operator.options
        zero = _zero(tensor) if tensor.type == "uint8" else 0
        dilations = (options["dilation_h_factor"], options["dilation_w_factor"])
        window = self._window(data, weights.shape[1:3], dilations)
        self.add(
            ir.ConvInteger(weights - zero, np.full(data.shape[3], _zero(data)), window, groups), self.result.shape, x
        )
        self._rescaled(data, tensor, 2)

    def _window(self, data: Tensor, kernel: tuple[int, ...], dilations: tuple[int, int]) -> Window:
        strides = (self.operator.options["stride_h"], self.operator.options["stride_w"])
        pads = [0, 0, 0, 0]
        for axis in range(2):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            total = (self.result.shape[axis + 1] - 1) * strides[axis] + reach - data.shape[axis + 1]
            if self.operator.options["padding"] == "SAME":
                pads[axis], pads[axis + 2] = max(total, 0) // 2, max(total, 0) - max(total, 0) // 2
        return Window((kernel[0], kernel[1]), strides, dilations, tuple(pads))  # type: ignore[arg-type]

    def _rescaled(self, data: Tensor, weights: Tensor, bias: int) -> None:
        """Bias and rescaling of the last step's sums."""
        rank, shape = len(self.result.shape), self.result.shape
        y, name = self.result, self.operator.name
        number = self.operator.inputs[bias]
        if number >= 0:
            terms = self.data(number)
            self.add(ops.Add(self.constant(terms, terms.dtype.name, rank)), shape)
        activation = self.operator.options.get("fused_activation_function", "NONE")
        scales = np.atleast_1d(np.asarray(weights.scale, np.float32))
        if self.runtime is Runtime.LITERT and y.type != "int16":
            ends = multipliers.xnnpack_bounds(activation, y.type, _scale(y), _zero(y))
            factor = multipliers.single_ratio(np.float32(_scale(data)), scales, np.float32(_scale(y)))
            self.add(ops.Cast("float32"), shape)
            self.add(ops.Mul(self.constant(factor, "float32", rank)), shape)
            unit, zero = self.constant(1, "float32", rank), self.constant(_zero(y), "int64", rank)
            self.add(ops.QuantizeLinear(unit, zero, ends, y.type), shape)
            return
        ends = multipliers.activation_bounds(activation, self.runtime, y.type, _scale(y), _zero(y))
        ratios = multipliers.layer_ratio(name, y.type, np.float32(_scale(data)), scales, np.float32(_scale(y)))
        if multipliers.rounds_once_in_double(name, self.runtime, y.type):
            fractions, exponents = np.frexp(np.atleast_1d(ratios))
            self._requantize(ops.Convention.FLOAT64, fractions * 2.0**53, 53 - exponents, ends)
            return
        parts = [multipliers.quantized_multiplier(ratio) for ratio in np.atleast_1d(ratios)]
        if y.type == "int16":
            values, shifts = zip(*(multipliers.single_multiplier(part) for part in parts), strict=True)
            self._requantize(ops.Convention.SINGLE, values, shifts, ends)
        else:
            self._requantize(ops.Convention.DOUBLE, [p.value for p in parts], [p.shift for p in parts], ends)

    def _requantize(
        self, convention: ops.Convention, values: object, shifts: object, ends: IntType, add: int = 0
    ) -> None:
        rank = len(self.steps[-1].shape)
        arrays = [self.constant(np.asarray(v), "int64", rank) for v in (values, add, shifts, _zero(self.result))]
        self.add(ops.Requantize(convention, *arrays, ends, self.result.type), self.steps[-1].shape)

    # ----------------------------------------------------------------- functions

    def _function(self, x: int) -> None:
        name = self.operator.name
        assert name in _FUNCTIONS, name
        data = self.graph.tensors[self.operator.inputs[0]]
        kinds = [_code_type(t) for t in (data, self.result)]
        function = CodeFunction(name, self.runtime, *kinds, float(self.operator.options.get("alpha", 0)))
        low, high = _type(data).lo, _type(data).hi
        codes = function.codes(np.arange(low, high + 1)).astype(self.result.type)
        rank, shape = len(data.shape), data.shape
        self.add(ops.Cast("int32"), shape, x)
        self.add(ops.Add(self.constant(-low, "int32", rank)), shape)
        self.add(ops.Lookup(codes.reshape(-1, *[1] * rank)), shape)

    # ----------------------------------------------------------------- two inputs

    def _add(self, a: int, b: int) -> None:
        self._sum(a, b, ir.BinaryKind.ADD)

    def _sub(self, a: int, b: int) -> None:
        self._sum(a, b, ir.BinaryKind.SUB)

    def _centered(self, number: int, value: int, factor: int, shape: tuple[int, ...]) -> int:
        tensor, rank = self.graph.tensors[number], len(shape)
        self.add(ops.Cast("int32"), shape, value)
        self.add(ops.Add(self.constant(-_zero(tensor), "int32", rank)), shape)
        return self.add(ops.Mul(self.constant(factor, "int32", rank)), shape)

    def _sum(self, a: int, b: int, kind: ir.BinaryKind) -> None:
        tensors = [self.graph.tensors[n] for n in self.operator.inputs]
        y, shape = self.result, self.result.shape
        order = (a, b) if self.operator.inputs == self.graph.inputs else (b, a)
        activation = self.operator.options["fused_activation_function"]
        if self.runtime is Runtime.LITERT:
            parts = multipliers.xnnpack_add_multipliers(*map(_scale, tensors), _scale(y))
            assert parts is not None
            ends = multipliers.xnnpack_bounds(activation, y.type, _scale(y), _zero(y))
            values = [
                self._centered(n, v, f, shape) for n, v, f in zip(self.operator.inputs, order, parts, strict=False)
            ]
            self.add(ir.Binary(kind), shape, *values)
            self._requantize(ops.Convention.FLOOR, 1, parts[2], ends, 1 << (parts[2] - 1))
            return
        ends = multipliers.activation_bounds(activation, self.runtime, y.type, _scale(y), _zero(y))
        derived = multipliers.add_multipliers(y.type, *map(_scale, tensors), _scale(y))
        values = []
        for n, v, part in zip(self.operator.inputs, order, (derived.first, derived.second), strict=True):
            self._centered(n, v, 1 << derived.left_shift, shape)
            rank = len(shape)
            numbers = [self.constant(i, "int64", rank) for i in (part.value, 0, part.shift, 0)]
            values.append(
                self.add(
                    ops.Requantize(ops.Convention.DOUBLE, *numbers, multipliers.CODE_TYPES["int32"], "int32"), shape
                )
            )
        self.add(ir.Binary(kind), shape, *values)
        self._requantize(ops.Convention.DOUBLE, derived.result.value, derived.result.shift, ends)

    def _mul(self, a: int, b: int) -> None:
        tensors = [self.graph.tensors[n] for n in self.operator.inputs]
        y, shape = self.result, self.result.shape
        values = [self._centered(n, v, 1, shape) for n, v in zip(self.graph.inputs, (a, b), strict=True)]
        self.add(ir.Binary(ir.BinaryKind.MUL), shape, *values)
        ends = multipliers.activation_bounds(
            self.operator.options["fused_activation_function"], self.runtime, y.type, _scale(y), _zero(y)
        )
        part = multipliers.quantized_multiplier(
            multipliers.product_ratio(self.runtime, *map(_scale, tensors), _scale(y))
        )
        self._requantize(ops.Convention.DOUBLE, part.value, part.shift, ends)

    # ----------------------------------------------------------------- pools and means

    def _average_pool_2d(self, x: int) -> None:
        data, shape = self.graph.tensors[self.operator.inputs[0]], self.result.shape
        kernel = (self.operator.options["filter_height"], self.operator.options["filter_width"])
        window = self._window(data, kernel, (1, 1))
        self.add(ops.Cast("int32"), data.shape, x)
        self.add(ir.Pool(ir.Reduction.SUM, window), shape)
        counts = [
            [sum(0 <= p * stride - pad + k < size for k in range(taps)) for p in range(positions)]
            for stride, pad, size, taps, positions in zip(
                window.strides, window.pads, data.shape[1:3], kernel, shape[1:3], strict=False
            )
        ]
        count = np.outer(*counts)[None, :, :, None].astype(np.int64)
        unit = np.ones((1, 1, 1, 1), np.int64)
        self.add(ops.IntegerRatio(unit, count // 2, count, self._ends(), self.result.type, mirrored=True), shape)

    def _ends(self) -> IntType:
        y, activation = self.result, self.operator.options["fused_activation_function"]
        return multipliers.activation_bounds(activation, self.runtime, y.type, _scale(y), _zero(y))

    def _max_pool_2d(self, x: int) -> None:
        data, shape = self.graph.tensors[self.operator.inputs[0]], self.result.shape
        kernel = (self.operator.options["filter_height"], self.operator.options["filter_width"])
        self.add(ir.Pool(ir.Reduction.MAX, self._window(data, kernel, (1, 1))), shape, x)
        y, activation = self.result, self.operator.options["fused_activation_function"]
        ends = self._ends()
        if self.runtime is Runtime.LITERT:
            ends = multipliers.xnnpack_bounds(activation, y.type, _scale(y), _zero(y))
        self.add(ops.Max(np.full((1,) * 4, ends.lo, y.type)), shape)
        self.add(ops.Min(np.full((1,) * 4, ends.hi, y.type)), shape)

    def _mean(self, x: int) -> None:
        data, y = self.graph.tensors[self.operator.inputs[0]], self.result
        axes = sorted(int(axis) for axis in self.data(self.operator.inputs[1]))
        assert axes == [1, 2]
        count = data.shape[1] * data.shape[2]
        self.add(ops.Cast("int32"), data.shape, x)
        self.add(ir.Pool(ir.Reduction.SUM, Window(data.shape[1:3])), (data.shape[0], 1, 1, data.shape[3]))  # type: ignore[arg-type]
        part = multipliers.mean_multiplier(_scale(data), _scale(y), count)
        self._requantize(ops.Convention.DOUBLE, part.value, part.shift, _type(y), -count * _zero(data))
        self.add(ir.Reshape(), y.shape)

    # ----------------------------------------------------------------- moves

    def _reshape(self, x: int) -> None:
        self.add(ir.Reshape(), self.result.shape, x)

    def _transpose(self, x: int) -> None:
        order = tuple(int(n) for n in self.data(self.operator.inputs[1]))
        self.add(Permutation(order), self.result.shape, x)

    def _concatenation(self, *values: int) -> None:
        self.add(ir.Concat(self.operator.options["axis"] % 4), self.result.shape, *values)

    def _split(self, x: int) -> None:
        axis = int(self.data(self.operator.inputs[0]))
        start = 0
        for number in self.operator.outputs:
            shape = self.graph.tensors[number].shape
            ranges = tuple(
                (start, start + shape[axis], 1) if n == axis else (0, size, 1) for n, size in enumerate(shape)
            )
            self.add(ir.Slice(ranges), shape, x)
            start += shape[axis]


def _code_type(tensor: Tensor) -> CodeType:
    return CodeType(tensor.type, _scale(tensor), _zero(tensor))


def made_model(file: RandomFile, runtime: str) -> ir.Model:
    """The Model of a file with one operator."""
    return ModelMaker(file, runtime).model()
