"""Second reading of SOFTMAX: its tables, entry by entry in Python's integers and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import onnx
from onnx import numpy_helper

from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite.imported import ImportedOperators, run_chain
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.scales import DOUBLE, LIMITS, SINGLE, exact, multiplier, nearest_away, rounded
from hlsgen.certify.second_reading.tflite.tables import exponential, high_product
from hlsgen.ir import HostOp, RowStep, Step
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare
from hlsgen.numerics.fixed import Array

#: Differences of codes have this many fraction bits, and below -31 they do not count.
_FRACTION, _FARTHEST = 26, 31
#: Entries of a table of int16 codes.
_ENTRIES = 513


def check_softmax(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the tables, the types of the codes and the shape of the rows."""
    x, y = imported.file.tensors[operator.inputs[0]], imported.file.tensors[operator.outputs[0]]
    if not imported.connected(operator) or not _is_known(operator, x, y):
        return None
    steps = imported.steps(operator)
    if x.type == "int16":
        if len(steps) != 1 or not isinstance(steps[0][1].op, HostOp):
            return None
        expected = int16_tables(operator, x, imported.model.runtime)
        return _host_differences(steps[0][1].op, x, y, expected)
    table = exponentials(operator, x, imported.model.runtime)
    if len(steps) == 1 and isinstance(steps[0][1].op, HostOp):
        return _host_differences(steps[0][1].op, x, y, {"exponentials": table})
    return _row_differences(steps, x, y, table)


def _host_differences(op: HostOp, x: Tensor, y: Tensor, expected: dict[str, Array]) -> list[str]:
    """Texts for each part of the host's operation that differs from the file: name, types, shape, constants."""
    graph = onnx.ModelProto.FromString(op.model).graph
    kinds = [("", op.op_type), *((node.domain, node.op_type) for node in graph.node)]
    tables = {table.name: numpy_helper.to_array(table) for table in graph.initializer}
    inputs = [list(node.input[1:]) for node in graph.node]
    is_known = kinds == [("", "SOFTMAX"), ("hlsgen.tflite", "SOFTMAX")] and inputs == [list(expected)]
    if not is_known or set(tables) != set(expected):
        return ["another operation was imported."]
    attributes = {attribute.name: attribute.s.decode() for attribute in graph.node[0].attribute}
    data, result = graph.input[0].type.tensor_type, graph.output[0].type.tensor_type
    return [
        *differ("type", onnx.helper.tensor_dtype_to_np_dtype(data.elem_type).name, x.type),
        *differ("type of the result", onnx.helper.tensor_dtype_to_np_dtype(result.elem_type).name, y.type),
        *differ("attributes", attributes, {"result": y.type}),
        *differ("shape", [size.dim_value for size in data.shape.dim], x.shape),
        *(text for name in expected for text in _table_differences(name, tables[name], expected[name])),
    ]


def _table_differences(name: str, table: Array, expected: Array) -> list[str]:
    return [*differ(f"type of {name}", table.dtype.name, expected.dtype.name), *differ(name, table, expected)]


def _row_differences(steps: list[tuple[int, Step]], x: Tensor, y: Tensor, expected: Array) -> Differences:
    """The steps in hardware: distances below the row's largest code, their shares, and the shares' codes."""
    functions = [step.op.function for _, step in steps if isinstance(step.op, RowStep)]
    if [type(function) for function in functions] != [BelowLargest, FixedPointShare]:
        return None
    share = functions[1]
    assert isinstance(share, FixedPointShare)
    in_order = all(after.inputs == (number,) for (number, _), (_, after) in pairwise(steps))
    in_order = in_order and all(isinstance(step.op, RowStep) for _, step in steps[:2])
    low, high = LIMITS[y.type]
    shares = np.arange(high - low + 1)
    one_column = shares.reshape(-1, *(1,) * (len(x.shape) - 1)).astype(np.float32)
    codes = run_chain([step for _, step in steps[2:]], one_column)
    if not in_order or codes is None:
        return ["another chain of operations was imported."]
    differences = [text for _, step in steps for text in differ("shape", step.shape, x.shape)]
    differences += differ("type of exponentials", share.exponentials.dtype.name, expected.dtype.name)
    differences += differ("exponential", share.exponentials, expected)
    differences += differ("bits of a share", share.bits, (high - low).bit_length())
    return [*differences, *differ("code", codes.ravel(), shares + low)]


def _is_known(operator: Operator, x: Tensor, y: Tensor) -> bool:
    """True for 8-bit codes to codes of scale 2^-bits whose lowest one is 0, and int16 codes to codes of scale 2^-15."""
    if y.type not in (x.type, "int16") or x.type not in LIMITS or len(x.scale) != 1 or len(y.scale) != 1:
        return False
    low, high = LIMITS[y.type]
    zero, steps = (0, high + 1) if x.type == "int16" else (low, high - low + 1)
    return bool(exact(y.one_scale) == Fraction(1, steps) and y.one_zero == zero and operator.options["beta"] > 0)


def exponentials(operator: Operator, x: Tensor, runtime: str) -> Array:
    """The table by the distance of a code from the row's largest one: float32, or int64 with 31 fraction bits."""
    scale, beta = exact(x.one_scale), exact(operator.options["beta"])
    if runtime == "litert":
        unit = rounded(scale * beta, SINGLE)
        reals = [exact(math.exp(-rounded(unit * distance, SINGLE))) for distance in range(256)]
        return np.array([float(rounded(real, SINGLE)) for real in reals], np.float32)
    value, exponent = multiplier(min(scale * beta * 2**_FRACTION, Fraction(2**31 - 1)))
    farthest = math.floor(Fraction(_FARTHEST * 2**_FRACTION) / Fraction(2) ** exponent)
    table = []
    for distance in range(256):
        difference = high_product(-distance * 2**exponent, value)
        power = exponential(difference, _FRACTION) if difference else (1 << 31) - 1
        table.append(power if distance <= farthest else 0)
    return np.array(table, np.int64)


def int16_tables(operator: Operator, x: Tensor, runtime: str) -> dict[str, Array]:
    """The tables of int16 codes by name, int64, and the multiplier (value, exponent) of a difference of codes."""
    scale, beta = exact(x.one_scale), exact(operator.options["beta"])
    product = scale * beta if runtime == "tflm" else rounded(scale * beta, SINGLE)
    number_format = SINGLE if runtime == "tflm" else DOUBLE
    to_steps = exact(10.0 / 65535.0)
    return {
        **_int16_functions(number_format),
        "multiplier": np.array(multiplier(rounded(product / to_steps, DOUBLE)), np.int64),
    }


@cache
def _int16_functions(significand: int) -> dict[str, Array]:
    """The tables that do not depend on the operator, read-only."""
    tables = {
        "exponentials": _lines(math.exp, Fraction(-10), significand),
        "reciprocals": _lines(lambda real: 1 / (1 + real), Fraction(0), significand),
    }
    for table in tables.values():
        table.setflags(write=False)
    return tables


def _lines(function: Callable[[float], float], first: Fraction, significand: int) -> Array:
    """The entries of a function on 512 steps of a range of length -first or 1, each moved toward the middle of a step.

    first: start of the range, negative for exp. significand: bits of the numbers that the runtime computes with.
    """

    def in_format(value: Fraction) -> Fraction:
        return rounded(value, significand)

    def in_codes(real: Fraction) -> Fraction:
        return in_format(in_format(exact(function(float(real)))) * to_codes)

    low, high = LIMITS["int16"]
    code_count = high - low
    unit = in_format((abs(first) or Fraction(1)) / code_count)
    start, end = (in_format(-code_count * unit), Fraction(0)) if first else (Fraction(0), in_format(code_count * unit))
    step = in_format(in_format(end - start) / (_ENTRIES - 1))
    result_unit = in_format(Fraction(2, code_count))
    to_codes = in_format((code_count + 1) / in_format(in_format(high * result_unit) - in_format(low * result_unit)))
    entries = []
    for n in range(_ENTRIES - 1):
        position = in_format(start + in_format(n * step))
        sample = nearest_away(in_codes(position))
        right = in_codes(in_format(start + in_format((n + 1) * step)))
        chord = nearest_away(in_format(in_format(right + sample) / 2))
        middle = nearest_away(in_codes(in_format(position + in_format(step / 2))))
        entries.append(sample - nearest_away(Fraction(chord - middle, 2)))
    entries.append(nearest_away(in_codes(end)))
    return np.clip(np.array(entries, np.int64), low, high)
