"""Second reading of SOFTMAX: its table of exponentials, entry by entry in Python's integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import onnx
from onnx import numpy_helper

from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite.imported import ImportedOperators, run_chain
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.scales import LIMITS, SINGLE, exact, multiplier, rounded
from hlsgen.certify.second_reading.tflite.tables import exponential, high_product
from hlsgen.ir import HostOp, RowStep, Step
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare
from hlsgen.numerics.fixed import Array

#: Differences of codes have this many fraction bits, and below -31 they do not count.
_FRACTION, _FARTHEST = 26, 31
#: Shares are codes above the lowest one.
_SHARE_BITS = 8


def check_softmax(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the table of exponentials, the type of the codes and the shape of the rows."""
    x, y = imported.file.tensors[operator.inputs[0]], imported.file.tensors[operator.outputs[0]]
    if not imported.connected(operator) or not _is_known(operator, x, y):
        return None
    steps = imported.steps(operator)
    expected = exponentials(operator, x, imported.model.runtime)
    if len(steps) == 1 and isinstance(steps[0][1].op, HostOp):
        return _host_differences(steps[0][1].op, x, expected)
    return _row_differences(steps, x, y, expected)


def _host_differences(op: HostOp, x: Tensor, expected: Array) -> list[str]:
    graph = onnx.ModelProto.FromString(op.model).graph
    kinds = [("", op.op_type), *((node.domain, node.op_type) for node in graph.node)]
    if kinds != [("", "SOFTMAX"), ("hlsgen.tflite", "SOFTMAX")] or len(graph.initializer) != 1:
        return ["another operation was imported."]
    table = numpy_helper.to_array(graph.initializer[0])
    data = graph.input[0].type.tensor_type
    return [
        *differ("type", onnx.helper.tensor_dtype_to_np_dtype(data.elem_type).name, x.type),
        *differ("shape", [size.dim_value for size in data.shape.dim], x.shape),
        *differ("type of exponentials", table.dtype.name, expected.dtype.name),
        *differ("exponential", table, expected),
    ]


def _row_differences(steps: list[tuple[int, Step]], x: Tensor, y: Tensor, expected: Array) -> Differences:
    """The steps in hardware: distances below the row's largest code, their shares, and the shares' codes."""
    functions = [step.op.function for _, step in steps if isinstance(step.op, RowStep)]
    if [type(function) for function in functions] != [BelowLargest, FixedPointShare]:
        return None
    share = functions[1]
    assert isinstance(share, FixedPointShare)
    in_order = all(after.inputs == (number,) for (number, _), (_, after) in pairwise(steps))
    in_order = in_order and all(isinstance(step.op, RowStep) for _, step in steps[:2])
    low, _ = LIMITS[y.type]
    shares = np.arange(1 << _SHARE_BITS)
    one_column = shares.reshape(-1, *(1,) * (len(x.shape) - 1)).astype(np.float32)
    codes = run_chain([step for _, step in steps[2:]], one_column)
    if not in_order or codes is None:
        return ["another chain of operations was imported."]
    differences = [text for _, step in steps for text in differ("shape", step.shape, x.shape)]
    differences += differ("type of exponentials", share.exponentials.dtype.name, expected.dtype.name)
    differences += differ("exponential", share.exponentials, expected)
    differences += differ("bits of a share", share.bits, _SHARE_BITS)
    return [*differences, *differ("code", codes.ravel(), shares + low)]


def _is_known(operator: Operator, x: Tensor, y: Tensor) -> bool:
    """True for codes of 8 bits to codes of scale 1/256 whose lowest one is 0."""
    if x.type not in ("int8", "uint8") or y.type != x.type or len(x.scale) != 1 or len(y.scale) != 1:
        return False
    low, _ = LIMITS[y.type]
    return bool(exact(y.one_scale) == Fraction(1, 256) and y.one_zero == low and operator.options["beta"] > 0)


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
