"""QDQ layers as integer layers, the way onnxruntime runs them.

DequantizeLinear, MatMul or Gemm with an int32 bias, QuantizeLinear is a QLinearMatMul with one
multiplication by fl(fl(sa * sb) / sy), so is MatMul of two tensors; with Conv likewise a QLinearConv; DequantizeLinear, Add or Mul,
QuantizeLinear of 8 bits is a QLinearAdd or QLinearMul, with an average pool a QLinearAveragePool or
QLinearGlobalAveragePool. Elsewhere the chain is evaluated as the file has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend import two_inputs
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.dialect_qlinear import added, multiplied
from hlsgen.frontend.node_context import Origin
from hlsgen.frontend.ops_multi_operand import exchanged
from hlsgen.frontend.pattern_match import NamedOps, Replacement, StepGraph, keeps_order, named, plain, relabels
from hlsgen.frontend.qdq_fusion_pools import averaged, moved
from hlsgen.frontend.qdq_softmax import softmax
from hlsgen.ir import (
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Conv,
    ConvInteger,
    MatMul,
    MatMulInteger,
    Op,
    Pack,
    Repeat,
    Reshape,
    Step,
    Transpose,
)
from hlsgen.ir.ops import Add, BinaryKind, Cast, Dequantize, Max, Mul, QuantizeLinear
from hlsgen.ir.rewrite import pruned
from hlsgen.numerics.fixed import Array


def fuse(
    steps: Sequence[Step], origins: Mapping[int, Origin], output: int, fixed_point: bool = False
) -> tuple[Step, ...]:  # fmt: skip
    """The steps on which value `output` depends, with every such pattern replaced. `origins` by index of the step."""
    graph = StepGraph(steps, origins)
    result: list[Step] = []
    numbers = {0: 0}
    for i, step in enumerate(steps):
        found = _ending_with(graph, i, fixed_point)
        if found is None:
            result.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
            numbers[i + 1] = len(result)
        else:
            ends = [numbers[j] for j in found.inputs]
            for n, way in enumerate(found.moved):
                ends[n] = _append(result, way, (ends[n],))
            numbers[i + 1] = _append(result, found.ops, tuple(ends))
    return tuple(pruned(result, numbers[output])[0])


def _append(result: list[Step], ops: NamedOps, inputs: tuple[int, ...]) -> int:
    """Adds steps that follow values; gives the value behind them."""
    for name, op, shape in ops:
        result.append(Step(name, op, shape, inputs))
        inputs = (len(result),)
    return inputs[0]


def _ending_with(graph: StepGraph, i: int, fixed_point: bool) -> Replacement | None:
    """What replaces the steps that end with the QuantizeLinear of step i."""
    last = graph.steps[i].op
    if not isinstance(last, QuantizeLinear) or not plain(last.scale, last.zero_point):
        return None
    return (
        _layer(graph, i, last)
        or _elementwise(graph, i, last, fixed_point)
        or _branches(graph, i, last, fixed_point)
        or _product(graph, i, last)
        or averaged(graph, i, last)
        or moved(graph, i, last)
        or softmax(graph, i, last)
    )


def _layer(graph: StepGraph, i: int, last: QuantizeLinear) -> Replacement | None:
    """An integer layer: DequantizeLinear, MatMul or Conv, int32 bias, Relu, QuantizeLinear."""
    j = graph.before(i)
    relu = j >= 0 and isinstance(bound := graph.steps[j].op, Max) and not bound.value.any()
    j = graph.before(j) if relu else j
    bias = j if j >= 0 and isinstance(graph.steps[j].op, Add) and j in graph.origins else -1
    j = graph.before(j) if bias >= 0 else j
    after: list[Step] = []
    while j >= 0 and keeps_order(graph.steps[j].op):
        after.insert(0, graph.steps[j])
        j = graph.before(j)
    if j < 0 or not isinstance(layer := graph.steps[j].op, MatMul | Conv) or not _codes_are(graph, layer, j):
        return None
    at = graph.steps[j]
    moved: list[Step] = []
    value = at.inputs[0]
    while value and isinstance(graph.steps[value - 1].op, Reshape | Transpose) and value - 1 not in graph.origins:
        if graph.users[value] > 1:
            return None
        moved.insert(0, graph.steps[value - 1])  # Flatten has an origin: onnxruntime does not move behind it
        value = graph.steps[value - 1].inputs[0]
    first = graph.dequantized(value)
    if first < 0:
        return None
    data = graph.steps[first].op
    assert isinstance(data, Dequantize)
    kinds = graph.origins[first].dtype, _kind(graph.origins.get(j)), last.dtype
    if kinds not in _LAYERS or (relu and last.zero_point.ravel()[0] != last.type.lo):
        return None
    product = data.scale.ravel()[0] * layer.scale
    zero = int(data.zero_point.ravel()[0])
    body: list[Op] = [_integer(layer, zero)]
    one = (1,) * (len(at.shape) - 1)
    if bias >= 0:
        codes = _int32(graph.origins[bias], product)
        if codes is None:
            return None
        body.append(Add(codes.reshape(*one, -1)))
    factor = (product / last.scale.ravel()[0]).reshape(*one, -1)
    whole = replace(last, scale=np.ones((1,) * len(at.shape), np.float32), zero_point=last.zero_point.reshape(*one, 1))
    body += [Cast("float32"), Mul(factor), whole]
    ops: NamedOps = named(moved)
    names = [at.name] * (len(body) - 1) + [graph.steps[i].name]
    ops += [(name, op, at.shape) for name, op in zip(names, body, strict=True)]
    ops += named(after)
    return Replacement(graph.steps[first].inputs, ops)


def _codes_are(graph: StepGraph, layer: MatMul | Conv, j: int) -> bool:
    """Whether the weights are codes with one scale a row: no ratios of scales within."""
    origin = graph.origins.get(j)
    const = origin.const if origin is not None else None
    if const is None or const.codes is None or const.zero_point is None:
        return False
    real, weight = const.codes - const.zero_point, layer.weight
    if isinstance(layer, Conv):
        real = real.reshape(*real.shape[:2], *(1,) * (4 - real.ndim), *real.shape[2:])  # signals have one row
        return bool(np.array_equal(real.transpose(0, 2, 3, 1), weight))
    return any(np.array_equal(form, weight) for form in (real, real.T))


def _elementwise(graph: StepGraph, i: int, last: QuantizeLinear, fixed_point: bool) -> Replacement | None:
    """DequantizeLinear, Add or Mul of a constant that was dequantized, QuantizeLinear."""
    j = graph.before(i)
    if j < 0 or not isinstance(op := graph.steps[j].op, Add | Mul) or j not in graph.origins:
        return None
    first = graph.dequantized(graph.steps[j].inputs[0])
    origin = graph.origins[j]
    const = origin.const
    if first < 0 or const is None or const.codes is None or const.scale is None or const.zero_point is None:
        return None
    scale, zero = const.scale, const.zero_point
    if not graph.origins[first].dtype == const.kind == last.dtype or last.dtype not in ("int8", "uint8"):
        return None
    if len(np.unique(scale)) > 1 or len(np.unique(zero)) > 1:
        return None
    head = graph.steps[first].op
    assert isinstance(head, Dequantize)
    name, shape = graph.steps[i].name, graph.steps[j].shape
    constant = Dequantize(scale.ravel()[:1], zero.ravel()[:1].astype(np.int64))
    if isinstance(op, Add):
        ops = added(name, shape, head, const.codes, constant, last, origin.position, fixed_point)
    else:
        ops = multiplied(name, shape, head, const.codes, constant, last)
    names = [graph.steps[j].name] * (len(ops) - 1) + [name]
    return Replacement(graph.steps[first].inputs, [(n, o, shape) for n, o in zip(names, ops, strict=True)])


def _branches(graph: StepGraph, i: int, last: QuantizeLinear, fixed_point: bool) -> Replacement | None:
    """DequantizeLinear of two tensors, Add or Mul, QuantizeLinear."""
    value, after = graph.back(graph.steps[i].inputs[0], keeps_order)
    j = value - 1
    if j < 0 or graph.users[value] > 1 or not isinstance(op := graph.steps[j].op, Binary):
        return None
    sides = [graph.back(side, _repeats) for side in graph.steps[j].inputs]
    ends = [graph.dequantized(value) for value, _ in sides]
    if (
        op.kind not in (BinaryKind.ADD, BinaryKind.MUL)
        or min(ends) < 0
        or {graph.origins[e].dtype for e in ends} != {last.dtype}
        or last.dtype not in ("int8", "uint8")
    ):
        return None
    operands: list[tuple[Array, Const | None]] = []
    for e in ends:
        head = graph.steps[e].op
        assert isinstance(head, Dequantize)
        operands.append((head.scale.reshape(-1), Const(head.zero_point.reshape(-1).astype(last.dtype))))
    name, shape = graph.steps[i].name, graph.steps[j].shape
    kind = "QLinearAdd" if op.kind is BinaryKind.ADD else "QLinearMul"
    inputs = [graph.steps[e].inputs[0] for e in ends]
    ways = [named(steps) for _, steps in sides]
    if kind == "QLinearAdd" and exchanged(*(graph.steps[e].shape for e in ends)):
        operands, inputs, ways = operands[::-1], inputs[::-1], ways[::-1]
    try:
        found = two_inputs.exact(name, kind, operands, last, last.dtype, fixed_point)
    except HlsgenError:
        return None
    ops: NamedOps = [(graph.steps[j].name, Pack(), shape), (name, found, shape), *named(after)]
    return Replacement(tuple(inputs), ops, tuple(ways))


def _product(graph: StepGraph, i: int, last: QuantizeLinear) -> Replacement | None:
    """DequantizeLinear of two tensors, MatMul, QuantizeLinear."""
    value, after = graph.back(graph.steps[i].inputs[0], keeps_order)
    j = value - 1
    if j < 0 or graph.users[value] > 1 or not isinstance(graph.steps[j].op, BatchMatMul):
        return None
    sides = [graph.back(side, relabels) for side in graph.steps[j].inputs]
    ends = [graph.dequantized(value) for value, _ in sides]
    if min(ends) < 0 or (*(graph.origins[e].dtype for e in ends), last.dtype) not in _LAYERS:
        return None
    left, right = (graph.steps[e].op for e in ends)
    assert isinstance(left, Dequantize)
    assert isinstance(right, Dequantize)
    name, shape, one = graph.steps[j].name, graph.steps[j].shape, (1,) * len(graph.steps[j].shape)
    factor = left.scale.ravel()[:1] * right.scale.ravel()[:1] / last.scale.ravel()[:1]
    whole = replace(last, scale=np.ones(one, np.float32), zero_point=last.zero_point.reshape(one))
    sums = BatchMatMulInteger((int(left.zero_point.ravel()[0]), int(right.zero_point.ravel()[0])))
    ops: NamedOps = [(name, op, shape) for op in (sums, Cast("float32"), Mul(factor.reshape(one)))]
    ops += [(graph.steps[i].name, whole, shape), *named(after)]
    ways = tuple(named(steps) for _, steps in sides)
    return Replacement(tuple(graph.steps[e].inputs[0] for e in ends), ops, ways)


def _repeats(op: Op) -> bool:
    return relabels(op) or isinstance(op, Repeat)


#: Types of data, weights and result that onnxruntime has an integer layer for.
_LAYERS = {("uint8", "int8", "uint8"), ("uint8", "uint8", "uint8"), ("int8", "int8", "int8")}


def _integer(layer: MatMul | Conv, zero: int) -> MatMulInteger | ConvInteger:
    if isinstance(layer, MatMul):
        return MatMulInteger(layer.weight, np.full(layer.weight.shape[1], zero))
    channels = layer.weight.shape[3] * layer.groups
    return ConvInteger(layer.weight, np.full(channels, zero), layer.window, layer.groups)


def _kind(origin: Origin | None) -> str:
    """The type of the codes of a constant operand, "" if it has none."""
    return origin.const.kind if origin is not None and origin.const is not None else ""


def _int32(origin: Origin, product: Array) -> Array | None:
    """The codes of an int32 bias in units of the sum, one each row. Any other bias is added in float, as the
    file has it (onnxruntime takes the codes for granted, whatever their scale)."""
    if _kind(origin) != "int32" or origin.const is None:
        return None
    codes, scale, zero = origin.const.codes, origin.const.scale, origin.const.zero_point
    if codes is None or scale is None or zero is None or zero.any() or codes.shape[-1:] != (codes.size,):
        return None
    if codes.size not in (1, product.size) or (scale.ravel() != product).any():
        return None
    return np.asarray(codes.ravel().astype(np.int32))
