"""Small Models made of IR operations, without ONNX, and what they compute by plain numpy, step by step.

`evaluate` shares no code with the passes: elementwise operations are those of the IR, everything else is written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.parser import parse_model

from hlsgen import ir
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import BinaryKind, IntQuant
from hlsgen.numerics.fixed import IntType, Rounding

Array = NDArray[Any]
_JOIN: dict[BinaryKind, Callable[[Array, Array], Array]] = {
    BinaryKind.ADD: np.add,
    BinaryKind.SUB: np.subtract,
    BinaryKind.MUL: np.multiply,
    BinaryKind.DIV: np.divide,
    BinaryKind.MAX: np.maximum,
    BinaryKind.MIN: np.minimum,
}


def model_of(
    shape: ir.Shape, *steps: tuple[ir.Op, ir.Shape, tuple[int, ...]], dtype: str = "float32", out: str = "float32"
) -> ir.Model:
    """A Model of (operator, shape, inputs); names are s1, s2 ..."""
    made = tuple(ir.Step(f"s{n}", op, result, inputs) for n, (op, result, inputs) in enumerate(steps, 1))
    return ir.Model("small", "x", shape, dtype, False, None, made, "y", out)


def chain_of(
    shape: ir.Shape, *steps: ir.Op | tuple[ir.Op, ir.Shape], dtype: str = "float32", out: str = "float32"
) -> ir.Model:
    """A Model of operators one behind the other; an elementwise one keeps the shape."""
    full: list[tuple[ir.Op, ir.Shape, tuple[int, ...]]] = []
    own = shape
    for n, step in enumerate(steps):
        op, own = step if isinstance(step, tuple) else (step, own)
        full.append((op, own, (n,)))
    return model_of(shape, *full, dtype=dtype, out=out)


def const(values: Any, rank: int, dtype: Any = np.float32) -> Array:
    """A constant for tensors of that rank: a number, or one for each channel."""
    return np.asarray(values, dtype).reshape((1,) * (rank - 1) + (-1,))


def quant(rank: int, scale: Any = 0.25, zero: Any = 0, bits: int = 8) -> IntQuant:
    type_ = IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return IntQuant(const(scale, rank), const(zero, rank), type_, Rounding.ROUND)


def frames(model: ir.Model, seed: int, count: int = 24) -> Array:
    """Inputs of both signs, many of them on the limits between codes; dtype and shape are the model's."""
    rng = np.random.default_rng(seed)
    size = (count, *model.input_shape)
    if np.dtype(model.input_dtype).kind in "iu":
        info = np.iinfo(model.input_dtype)
        return rng.integers(max(info.min, -(1 << 15)), min(info.max, 1 << 15), size, endpoint=True).astype(
            model.input_dtype
        )
    fine = rng.normal(0, 4, size)
    return np.where(rng.random(size) < 0.5, np.round(fine * 8) / 8, fine).astype(model.input_dtype)


def evaluate(model: ir.Model, x: Array) -> Array:
    """Inputs (frames, *input_shape) -> outputs (frames, *shape), every step as its docstring says, in float64 where it
    sums."""
    values = [x]
    for step in model.steps:
        values.append(_step(step, [values[i] for i in step.inputs]))
        assert values[-1].shape[1:] == step.shape, step
    return values[-1]


def _step(step: ir.Step, given: list[Array]) -> Array:
    op, x = step.op, given[0]
    match op:
        case ir.Reshape():
            return x.reshape(len(x), *step.shape)
        case ir.Transpose(perm):
            return x.transpose(0, *(p + 1 for p in perm))
        case ir.Repeat(rows, columns):
            return x.repeat(rows, 2).repeat(columns, 3)
        case ir.Slice(ranges):
            return x[(slice(None), *(slice(*r) for r in ranges))]
        case ir.Pad((top, left, bottom, right), value):
            return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)
        case ir.Concat(axis):
            return np.concatenate(given, axis + 1)
        case ir.Binary(kind):
            with np.errstate(all="ignore"):
                return _JOIN[kind](*given)
        case ir.Select(fixed):
            rest = iter(given)
            return np.where(*(next(rest) if part is None else part for part in fixed))
        case ir.MatMul(weight, scale):
            return (x.astype(np.float64) @ (weight * scale[:, None].astype(np.float64)).T).astype(np.float32)
        case ir.Conv(weight, scale, window, groups):
            return _conv(x, weight * scale.astype(np.float64)[:, None, None, None], window, groups, 0).astype(
                np.float32
            )
        case ir.ConvInteger(weight, zero_point, window, groups):
            data = x.astype(np.float64) - zero_point
            return _conv(data, weight.astype(np.float64), window, groups, 0).astype(np.int32)
        case ir.Pool(ir.Reduction.MAX, window):
            return _pool(x, window, -np.inf).max(axis=-1).astype(x.dtype)
        case ir.Pool(ir.Reduction.SUM, window):
            return _pool(x, window, 0).sum(axis=-1).astype(np.float32)
        case _:
            return apply(op, x)  # type: ignore[arg-type]


def _taps(x: Array, window: ir.Window, border: float) -> Array:
    """(frames, n, rows, columns, channels, taps) in float64, by one slice for each tap."""
    top, left, bottom, right = window.pads
    full = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0)), constant_values=border)
    reach = [(k - 1) * d for k, d in zip(window.kernel, window.dilations, strict=True)]
    rows, columns = full.shape[2] - reach[0], full.shape[3] - reach[1]
    parts = []
    for i in range(window.kernel[0]):
        for j in range(window.kernel[1]):
            y, z = i * window.dilations[0], j * window.dilations[1]
            parts.append(full[:, :, y : y + rows : window.strides[0], z : z + columns : window.strides[1]])
    return np.stack(parts, axis=-1)


def _pool(x: Array, window: ir.Window, border: float) -> Array:
    return _taps(x, window, border)


def _conv(x: Array, weight: Array, window: ir.Window, groups: int, border: float) -> Array:
    taps = _taps(x, window, border)
    outputs, inputs = len(weight) // groups, x.shape[-1] // groups
    found = []
    for group in range(groups):
        data = taps[..., group * inputs : (group + 1) * inputs, :]
        own = weight[group * outputs : (group + 1) * outputs].reshape(outputs, -1, inputs)
        found.append(np.einsum("fnrwck,okc->fnrwo", data, own))
    return np.concatenate(found, axis=-1)


def two_ports() -> onnx.ModelProto:
    """One input, two outputs."""
    return parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> net (float[1, 6] a) => (int32[1, 2] y, float[1, 6] z) '
        "<float s = {0.3}, uint8 p = {7}, int8[6, 2] w = {1, -2, 3, 5, -7, 4, 2, 2, 9, -8, 6, 1}> "
        "{ q = QuantizeLinear(a, s, p) y = MatMulInteger(q, w, p) z = DequantizeLinear(q, s, p) }"
    )
