"""Models of one of Deeploy's operators on rows, and what its C kernel makes of a row, with Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


def model(
    op: str, shape: list[int], attributes: dict[str, int], constants: list[Array], form: str = "tensor"
) -> onnx.ModelProto:
    """The operator alone, of float32 data in a domain of its exporter. `form`: attributes as tensors or as integers."""
    given = {
        k: numpy_helper.from_array(np.array([v], np.float32)) if form == "tensor" else v for k, v in attributes.items()
    }
    names = [f"c{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="op", domain="Deeploy", **given)
    graph = helper.make_graph(
        [node],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(c, np.float32), n) for n, c in zip(names, constants, strict=True)],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("Deeploy", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def divided(a: int, b: int) -> int:
    """C's division."""
    return abs(a) // b if a >= 0 else -(abs(a) // b)


def softmax(row: list[int], coeffA: int, coeffB: int, coeffC: int, log2: int, n_levels: int) -> list[int]:
    largest, y = max(row), []
    for x in row:
        t = x - largest
        z = min(max(-divided(t, log2), 0), 31)
        p = t + z * log2
        y.append((coeffA * ((p + coeffB) * (p + coeffB)) + coeffC) >> z)
    return [v * (n_levels - 1) // sum(y) for v in y]


def ita_max(row: list[int], n_levels: int) -> list[int]:
    shifts = [(max(row) - x + 16) >> 5 for x in row]
    total = sum(256 >> s for s in shifts)
    return [((n_levels - 1) * 256 // total) >> s for s in shifts]


def ita_partial_max(row: list[int], n_levels: int, group_width: int) -> list[int]:
    """As the kernel has it, group by group."""
    total, largest = 0, -128
    for g in range(len(row) // group_width):
        part = row[g * group_width : (g + 1) * group_width]
        current = max(part)
        shift = (current - largest + 16) >> 5 if current > largest else 0
        largest = max(largest, current)
        total = (total >> shift) + sum(256 >> ((largest - x + 16) >> 5) for x in part)
    inverse = (n_levels // 2 - 1) * 256 // total
    return [inverse >> ((largest - x + 16) >> 5) for x in row]


def layer_norm(row: list[int], weight: Array, bias: Array, D: int) -> list[int]:
    mean = divided(sum(row), len(row))
    root = math.isqrt(sum((x - mean) ** 2 for x in row) // len(row) + 1)
    shift = D.bit_length() - 1
    found = [(divided((x - mean) * int(w), root) + int(b)) >> shift for x, w, b in zip(row, weight, bias, strict=True)]
    return [int(np.int64(v).astype(np.int8)) for v in found]


def rms_norm(row: list[int], weight: Array, D: int) -> list[int]:
    root = math.isqrt(sum(x * x for x in row) // len(row) + 1)
    shift = D.bit_length() - 1
    return [min(max(divided(x * int(w), root) >> shift, -128), 127) for x, w in zip(row, weight, strict=True)]


_rng = np.random.default_rng(6)
_WEIGHT, _BIAS = _rng.integers(-9000, 9000, 12), _rng.integers(-300000, 300000, 12)
#: Operator, attributes, constants, and the kernel of a row.
CASES: dict[str, tuple[str, dict[str, int], list[Array], Callable[[list[int]], list[int]]]] = {
    "softmax": (
        "iSoftmax",
        {"coeffA": 1, "coeffB": 345, "coeffC": 62395, "log2": 255, "n_levels": 256},
        [],
        lambda row: softmax(row, 1, 345, 62395, 255, 256),
    ),
    "steep softmax": (
        "iSoftmax",
        {"coeffA": 3, "coeffB": 20, "coeffC": 7, "log2": 9, "n_levels": 16},
        [],
        lambda row: softmax(row, 3, 20, 7, 9, 16),
    ),
    "ita": ("ITAMax", {"n_levels": 256}, [], lambda row: ita_max(row, 256)),
    "ita partial": (
        "ITAPartialMax",
        {"n_levels": 256, "group_width": 12},
        [],
        lambda row: ita_partial_max(row, 256, 12),
    ),
    "layer": (
        "iLayerNorm",
        {"D": 4096, "n_levels": 256},
        [_WEIGHT, _BIAS],
        lambda row: layer_norm(row, _WEIGHT, _BIAS, 4096),
    ),
    "rms": ("iRMSNorm", {"D": 256, "n_levels": 256}, [_WEIGHT], lambda row: rms_norm(row, _WEIGHT, 256)),
}


def rows(count: int = 60) -> Array:
    """Rows of 12 numbers of 8 bits: extremes, small ones, equal ones, one that sticks out."""
    x = _rng.integers(-128, 128, (count, 12))
    x[1::4] //= 30
    x[2], x[3], x[4], x[5] = -128, 127, 0, [-128] * 11 + [127]
    return x


def expected(case: str, x: Array) -> Array:
    return np.array([CASES[case][3]([int(v) for v in row]) for row in x])
