"""Writes a wake word's network as plain C: the same integers on a processor alone, to compare its cycles.

The file has layers over time, one column wide. Kernels are in network.c; this program writes the constants, and a call
for each operator. The result is a function of a frame that keeps the variables of the file, as tflite-micro does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlsgen.frontend.tflite.file import TfliteFile, TfliteOperator, TfliteTensor
from hlsgen.frontend.tflite.initial_values import initial_value
from hlsgen.frontend.tflite.ops_state import variable_of
from hlsgen.numerics.tflite.functions import CodeFunction, CodeType
from hlsgen.numerics.tflite.multipliers import Runtime

Array = NDArray[Any]


def multiplier(real: float) -> tuple[int, int]:
    """(31-bit multiplier, exponent): real is about multiplier * 2^(exponent - 31)."""
    fraction, exponent = math.frexp(real)
    value = math.floor(fraction * 2**31 + 0.5)
    return (value // 2, exponent + 1) if value == 2**31 else (value, exponent)


class PlainC:
    """The text of network.h for a file. Raises SystemExit for operators that wake words of microWakeWord have not."""

    def __init__(self, file: TfliteFile) -> None:
        self.file, self.graph = file, file.graphs[0]
        self.declarations: list[str] = []
        self.calls: list[str] = []
        self.variables: dict[int, str] = {}  # by number of the handle
        self.names = {self.graph.inputs[0]: "input"}

    def text(self) -> str:
        """Constants, tensors, and the function `plain_frame`."""
        for operator in self.graph.operators:
            write = getattr(self, operator.name.lower(), None)
            if write is None:
                raise SystemExit(f"{operator.name} has no kernel in network.c")
            write(operator)
        result = self.names[self.graph.outputs[0]]
        lines = [*self.declarations, "", "static uint8_t plain_frame(const int8_t *input)", "{"]
        lines += [f"    {call};" for call in self.calls]
        return "\n".join([*lines, f"    return (uint8_t){result}[0];", "}", ""])

    # ---- tensors ----

    def tensor(self, number: int) -> TfliteTensor:
        return self.graph.tensors[number]

    def size(self, number: int) -> int:
        return math.prod(self.tensor(number).shape)

    def zero(self, number: int) -> int:
        quantization = self.tensor(number).quantization
        assert quantization is not None
        return int(quantization.zero_point[0])

    def scale(self, number: int) -> Array:
        quantization = self.tensor(number).quantization
        assert quantization is not None
        return np.asarray(quantization.scale, np.float64)

    def array(self, kind: str, values: Array) -> str:
        """The name of a new constant."""
        name = f"c{len(self.declarations)}"
        numbers = ", ".join(str(int(value)) for value in values.ravel())
        self.declarations.append(f"static const {kind} {name}[{values.size}] = {{{numbers}}};")
        return name

    def result(self, operator: TfliteOperator, position: int = 0) -> str:
        """The name of a new tensor."""
        number = operator.outputs[position]
        self.names[number] = f"t{number}"
        self.declarations.append(f"static int8_t t{number}[{self.size(number)}];")
        return self.names[number]

    def rows_and_channels(self, number: int) -> tuple[int, int]:
        shape = self.tensor(number).shape
        return math.prod(shape[:-1]), shape[-1]

    def copied(self, source: int, corner: tuple[int, int], target: str, shape: tuple[int, int]) -> None:
        """A call that copies a rectangle (rows, channels) of a tensor."""
        _, channels = self.rows_and_channels(source)
        first = corner[0] * channels + corner[1]
        self.calls.append(
            f"copy({self.names[source]} + {first}, {channels}, {target}, {shape[1]}, {shape[0]}, {shape[1]})"
        )

    # ---- variables ----

    def call_once(self, operator: TfliteOperator) -> None:
        """Initial values are those of the arrays of variables."""

    def var_handle(self, operator: TfliteOperator) -> None:
        name = f"v{len(self.variables)}"
        reads = (o for o in self.graph.operators if o.name == "READ_VARIABLE" and o.inputs[0] == operator.outputs[0])
        tensor = self.tensor(next(reads).outputs[0])
        initial = initial_value(self.file, variable_of(operator), tensor.shape, tensor.type)
        numbers = ", ".join(str(int(value)) for value in initial.ravel())
        self.declarations.append(f"static int8_t {name}[{initial.size}] = {{{numbers}}};")
        self.variables[operator.outputs[0]] = name

    def read_variable(self, operator: TfliteOperator) -> None:
        self.names[operator.outputs[0]] = self.variables[operator.inputs[0]]

    def assign_variable(self, operator: TfliteOperator) -> None:
        size = self.size(operator.inputs[1])
        self.calls.append(f"memcpy({self.variables[operator.inputs[0]]}, {self.names[operator.inputs[1]]}, {size})")

    # ---- operators that move codes ----

    def reshape(self, operator: TfliteOperator) -> None:
        self.names[operator.outputs[0]] = self.names[operator.inputs[0]]

    def concatenation(self, operator: TfliteOperator) -> None:
        result, place = self.result(operator), 0
        rows, channels = self.rows_and_channels(operator.outputs[0])
        for number in operator.inputs:
            part_rows, part = self.rows_and_channels(number)
            self.calls.append(
                f"copy({self.names[number]}, {part}, {result} + {place}, {channels}, {part_rows}, {part})"
            )
            place += part if part_rows == rows and part < channels else part_rows * channels

    def strided_slice(self, operator: TfliteOperator) -> None:
        begin = self.tensor(operator.inputs[1]).data
        rows, _ = self.rows_and_channels(operator.inputs[0])
        assert begin is not None
        start = 0 if operator.options["begin_mask"] & 2 else int(begin[1]) % rows
        self.copied(operator.inputs[0], (start, 0), self.result(operator), self.rows_and_channels(operator.outputs[0]))

    def split_v(self, operator: TfliteOperator) -> None:
        first = 0
        for position, number in enumerate(operator.outputs):
            shape = self.rows_and_channels(number)
            self.copied(operator.inputs[0], (0, first), self.result(operator, position), shape)
            first += shape[1]

    # ---- layers ----

    def conv_2d(self, operator: TfliteOperator) -> None:
        source, weights = operator.inputs[:2]
        (rows, channels), (out_rows, out) = self.rows_and_channels(source), self.rows_and_channels(operator.outputs[0])
        window = self.size(weights) // out
        step = operator.options.get("stride_h", 1) * channels if rows * channels > window else 0
        codes = self.tensor(weights).data
        assert codes is not None
        rescale = self.rescaling(operator, codes.reshape(out, -1).sum(axis=1))
        self.calls.append(
            f"layer({self.names[source]}, {step}, {self.array('int8_t', codes)}, {window}, {rescale}, "
            f"{self.result(operator)}, {out_rows}, {out}, {self.lowest(operator)}, {self.zero(operator.outputs[0])})"
        )

    fully_connected = conv_2d

    def depthwise_conv_2d(self, operator: TfliteOperator) -> None:
        source, weights = operator.inputs[:2]
        rows, channels = self.rows_and_channels(source)
        codes = self.tensor(weights).data
        assert codes is not None
        rescale = self.rescaling(operator, codes.reshape(-1, channels).sum(axis=0))
        self.calls.append(
            f"depthwise({self.names[source]}, {self.array('int8_t', codes)}, {rows}, {rescale}, "
            f"{self.result(operator)}, {channels}, {self.lowest(operator)}, {self.zero(operator.outputs[0])})"
        )

    def rescaling(self, operator: TfliteOperator, sums: Array) -> str:
        """Names of the biases with the zero point of the data in them, of multipliers and of exponents."""
        source, weights, bias_number = operator.inputs
        bias = self.tensor(bias_number).data
        assert bias is not None
        ratio = self.scale(source)[0] * self.scale(weights) / self.scale(operator.outputs[0])[0]
        pairs = np.array([multiplier(float(real)) for real in np.broadcast_to(ratio, bias.shape)])
        folded = bias.astype(np.int64) - self.zero(source) * sums.astype(np.int64)
        names = [self.array(*item) for item in (("int32_t", folded), ("int32_t", pairs[:, 0]), ("int8_t", pairs[:, 1]))]
        return ", ".join(names)

    def lowest(self, operator: TfliteOperator) -> int:
        is_relu = operator.options["fused_activation_function"] == "RELU"
        return self.zero(operator.outputs[0]) if is_relu else -128

    # ---- functions of a code ----

    def logistic(self, operator: TfliteOperator) -> None:
        source, target = operator.inputs[0], operator.outputs[0]
        types = [CodeType("int8", self.scale(n).astype(np.float32)[0], self.zero(n)) for n in (source, target)]
        table = CodeFunction("LOGISTIC", Runtime.TFLM, *types).codes(np.arange(-128, 128))
        name = self.array("int8_t", table)
        self.calls.append(f"look_up({self.names[source]}, {name}, {self.result(operator)}, {self.size(target)})")

    def quantize(self, operator: TfliteOperator) -> None:
        """From int8 to uint8 of the same scale: the zero points differ by 128."""
        source, target = operator.inputs[0], operator.outputs[0]
        shift = self.zero(target) - self.zero(source)
        if shift != 128 or self.scale(source)[0] != self.scale(target)[0]:
            raise SystemExit("QUANTIZE changes the scale")
        name = self.array("int8_t", (np.arange(-128, 128) + shift).astype(np.uint8).view(np.int8))
        self.calls.append(f"look_up({self.names[source]}, {name}, {self.result(operator)}, {self.size(target)})")


def plain_c(file: TfliteFile) -> str:
    """The text of network.h."""
    return PlainC(file).text()
