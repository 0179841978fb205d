"""QDQ layers as integer layers, the way onnxruntime runs them.

DequantizeLinear, MatMul or Gemm with an int32 bias, QuantizeLinear is a QLinearMatMul with one
multiplication by fl(fl(sa * sb) / sy); DequantizeLinear, Add or Mul, QuantizeLinear of 8 bits is a
QLinearAdd or QLinearMul. Elsewhere the chain is evaluated as the file has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.fixed import Array
from hlsgen.frontend.qlinear import Operand, added, multiplied
from hlsgen.frontend.tensors import Const
from hlsgen.ir import (
    MatMul,
    MatMulInteger,
    Op,
    Reshape,
    Step,
    Transpose,
)
from hlsgen.operations import (
    Add,
    Cast,
    Dequantize,
    Max,
    Mul,
    QuantizeLinear,
)


@dataclass(frozen=True, eq=False)
class Source:
    """Of a step: its constant operand, which operand the data is, and the data's dtype."""

    const: Const | None
    position: int
    dtype: str


def fuse(steps: Sequence[Step], sources: Mapping[int, Source], fixed_point: bool = False) -> tuple[Step, ...]:
    """The steps with every such pattern replaced. `sources` by index of the step."""
    result: list[Step] = []
    i = 0
    while i < len(steps):
        found = _layer(steps, i, sources) or _elementwise(steps, i, sources, fixed_point)
        if found is None:
            result.append(steps[i])
            i += 1
        else:
            result += found[0]
            i = found[1]
    return tuple(result)


def _layer(steps: Sequence[Step], i: int, sources: Mapping[int, Source]) -> tuple[list[Step], int] | None:
    """The integer layer that begins with step i, and the index behind it."""
    first = steps[i].op
    if not isinstance(first, Dequantize) or not _plain(first.scale, first.zero_point):
        return None
    j = i + 1
    while j < len(steps) and isinstance(steps[j].op, Reshape | Transpose) and j not in sources:
        j += 1  # a Flatten has a source: onnxruntime does not move DequantizeLinear behind it
    if j >= len(steps) or not isinstance(layer := steps[j].op, MatMul):
        return None
    kinds = sources[i].dtype, _kind(sources.get(j))
    if not _codes_are(layer.weight, sources.get(j)):
        return None
    product = first.scale.ravel()[0] * layer.scale
    moved, at, shape = list(steps[i + 1 : j]), steps[j], steps[j].shape
    zero = np.full(layer.weight.shape[1], first.zero_point.ravel()[0])
    body: list[Op] = [MatMulInteger(layer.weight, zero)]
    j += 1
    if j < len(steps) and (bias := _int32(steps[j].op, sources.get(j), product)) is not None:
        body.append(Add(bias.reshape((1,) * (len(shape) - 1) + (-1,))))
        j += 1
    relu = j < len(steps) and isinstance(bound := steps[j].op, Max) and not bound.value.any()
    j += int(relu)
    if j >= len(steps) or not isinstance(last := steps[j].op, QuantizeLinear):
        return None
    if (*kinds, last.dtype) not in _LAYERS or not _plain(last.scale, last.zero_point):
        return None
    if relu and last.zero_point.ravel()[0] != last.type.lo:
        return None
    factor = (product / last.scale.ravel()[0]).reshape((1,) * (len(shape) - 1) + (-1,))
    body += [Cast("float32"), Mul(factor), replace(last, scale=np.ones_like(last.scale))]
    names = [at.name] * (len(body) - 1) + [steps[j].name]
    return [*moved, *(Step(name, op, shape) for name, op in zip(names, body, strict=True))], j + 1


#: Types of data, weights and result that onnxruntime has an integer layer for.
_LAYERS = {("uint8", "int8", "uint8"), ("uint8", "uint8", "uint8"), ("int8", "int8", "int8")}


def _kind(source: Source | None) -> str:
    """The type of the codes of a constant operand, "" if it has none."""
    return source.const.kind if source is not None and source.const is not None else ""


def _codes_are(weight: Array, source: Source | None) -> bool:
    """Whether the weights are codes with one scale a row: no ratios of scales within."""
    const = source.const if source is not None else None
    if const is None or const.codes is None or const.zero_point is None:
        return False
    real = const.codes - const.zero_point
    return any(np.array_equal(form, weight) for form in (real, real.T))


def _int32(op: Op, source: Source | None, product: Array) -> Array | None:
    """The codes of an int32 bias in units of the sum, one each row. Any other bias is added in float, as the
    file has it (onnxruntime takes the codes for granted, whatever their scale)."""
    if not isinstance(op, Add) or source is None or _kind(source) != "int32" or source.const is None:
        return None
    codes, scale, zero = source.const.codes, source.const.scale, source.const.zero_point
    if codes is None or scale is None or zero is None or zero.any() or codes.shape[-1:] != (codes.size,):
        return None
    if codes.size not in (1, product.size) or (scale.ravel() != product).any():
        return None
    return np.asarray(codes.ravel().astype(np.int32))


def _elementwise(
    steps: Sequence[Step], i: int, sources: Mapping[int, Source], fixed_point: bool
) -> tuple[list[Step], int] | None:
    if i + 2 >= len(steps):
        return None
    first, op, last = (s.op for s in steps[i : i + 3])
    source = sources.get(i + 1)
    if not isinstance(first, Dequantize) or not isinstance(op, Add | Mul) or not isinstance(last, QuantizeLinear):
        return None
    const = source.const if source is not None else None
    if source is None or const is None or const.codes is None or const.scale is None or const.zero_point is None:
        return None
    scale, zero = const.scale, const.zero_point
    if not sources[i].dtype == const.kind == last.dtype or last.dtype not in ("int8", "uint8"):
        return None
    parts = (first.scale, first.zero_point, last.scale, last.zero_point)
    if not _plain(*parts) or len(np.unique(scale)) > 1 or len(np.unique(zero)) > 1:
        return None
    name, shape = steps[i + 2].name, steps[i + 1].shape
    data = Operand(first.scale, first.zero_point)
    constant = Operand(scale.ravel()[:1], zero.ravel()[:1].astype(np.int64))
    if isinstance(op, Add):
        ops = added(name, shape, data, const.codes, constant, last, source.position, fixed_point)
    else:
        ops = multiplied(name, shape, data, const.codes, constant, last)
    names = [steps[i + 1].name] * (len(ops) - 1) + [name]
    return [Step(n, o, shape) for n, o in zip(names, ops, strict=True)], i + 3


def _plain(*parts: Array) -> bool:
    """One value for the whole tensor, scales in float32."""
    return all(part.size == 1 and part.dtype.name in ("float32", "int64") for part in parts)
