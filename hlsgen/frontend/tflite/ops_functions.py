"""Functions of one code: rectifiers, LOGISTIC, TANH, HARD_SWISH, PRELU, QUANTIZE; and DEQUANTIZE.

A function of 8 or 16 bits is a table of the runtime's results: see `hlsgen.numerics.tflite.functions`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.requantizers import doubly_rounded, half_to_even, shifted
from hlsgen.ir.ops import Add, Cast, Dequantize, Div, Elementwise, Lookup, Mul
from hlsgen.numerics.fixed import Array, Rounding
from hlsgen.numerics.tflite.functions import CodeFunction, CodeType, UnsupportedFunction
from hlsgen.numerics.tflite.multipliers import (
    Runtime,
    activation_bounds,
    activation_ratio,
    code_ratio,
    product_ratio,
    quantized_multiplier,
)
from hlsgen.numerics.tflite.piecewise import RESULT_BITS
from hlsgen.numerics.tflite.rescaling import rescale

_HINT = "Use another --runtime, or replace the operator."
#: Denominators of the only scales of results that every kernel takes, and the distance of zero from the lowest code.
_FIXED_RESULTS = {"LOGISTIC": (256, 0), "TANH": (128, 128)}
#: Types of input and result for which runtimes have no QUANTIZE.
_NO_QUANTIZE = frozenset({("int16", "uint8")})
_NO_QUANTIZE_IN_MICRO = _NO_QUANTIZE | {("float32", "uint8"), ("uint8", "uint8"), ("uint8", "int16")}
_RECTIFIERS = frozenset({"RELU", "RELU6"})
#: Codes of 16 bits that are shifted left by more leave 32 bits, where the kernels wrap.
_MOST_SHIFT = 15


def function(node: OperatorNode) -> None:
    """An operator of one tensor of codes. Raises HG013, HG014, HG022 - HG024, HG026."""
    data, result = node.codes(node.tensor(0)), node.codes(node.result())
    if result.dtype != data.dtype and node.operator.name != "QUANTIZE":
        raise node.wrong_type(node.result())
    _check_fixed_result(node, result)
    if data.dtype == "int16" and node.operator.name in _RECTIFIERS and _rectified(node, data, result):
        return
    alpha = float(node.options.get("alpha", 0.0))
    try:
        codes = CodeFunction(node.operator.name, node.runtime, data, result, alpha).codes(data.all_codes)
    except UnsupportedFunction as reason:
        raise node.refused(str(reason), _HINT) from None
    _looked_up(node, data, result, codes.reshape((-1,) + (1,) * len(node.tensor(0).shape)))


def prelu(node: OperatorNode) -> None:
    """PRELU with constant slopes. Raises HG013, HG014, HG020, HG022 - HG024, HG026."""
    tensors = node.tensor(0), node.tensor(1), node.result()
    data, slope, result = (node.codes(tensor) for tensor in tensors)
    # Slopes of int16 data are of int8.
    for tensor, dtype in zip(tensors[1:], ("int8" if data.dtype == "int16" else data.dtype, data.dtype), strict=True):
        if tensor.type != dtype:
            raise node.wrong_type(tensor)
    slopes, rank = node.constant(1, "the slopes").astype(np.int64) - slope.zero_point, len(tensors[0].shape)
    try:
        fits = np.broadcast_shapes(slopes.shape, tensors[0].shape) == tensors[0].shape
    except ValueError:
        fits = False
    if not fits:
        text = f"slopes of shape {list(slopes.shape)} for data of shape {list(tensors[0].shape)}."
        raise fail("HG023", node.name, text, "They must broadcast to the shape of the data.")
    x = (data.all_codes - data.zero_point).reshape((-1,) + (1,) * rank)
    rising = quantized_multiplier(activation_ratio(node.runtime, data.scale, result.scale))
    falling = quantized_multiplier(product_ratio(node.runtime, data.scale, slope.scale, result.scale))
    products = x * slopes.reshape((1,) * (1 + rank - slopes.ndim) + slopes.shape)
    values = np.where(x >= 0, rescale(x, rising), rescale(products, falling))
    _looked_up(node, data, result, result.saturate(values + result.zero_point))


def quantize(node: OperatorNode) -> None:
    """QUANTIZE of codes or of float32 numbers. Raises HG013, HG014, HG022 - HG024, HG026."""
    source, result = node.tensor(0), node.codes(node.result())
    missing = _NO_QUANTIZE_IN_MICRO if node.runtime is Runtime.TFLM else _NO_QUANTIZE
    if (source.type, result.dtype) in missing:
        raise node.refused(f"it has no kernel from {source.type} to {result.dtype}", "Convert the model to int8.")
    if source.type == "float32":
        _quantize_reals(node, result)
    elif "int16" in (source.type, result.dtype):
        data = node.codes(source)
        multiplier = quantized_multiplier(code_ratio(data.scale, result.scale))
        rank, shape = len(source.shape), source.shape
        last = doubly_rounded([multiplier], rank, result.zero_point, result.type, result.dtype, -data.zero_point)
        node.finish(node.chain(node.value(0), [(Cast("int32"), shape), (last, shape)]), shape)
    else:
        function(node)


def dequantize(node: OperatorNode) -> None:
    """DEQUANTIZE: fl((code - zero_point) * scale). Raises HG014, HG022 - HG024, HG026."""
    data, shape = node.codes(node.tensor(0), any_zero=node.runtime is Runtime.TFLM), node.tensor(0).shape
    if node.result().type != "float32":
        raise node.wrong_type(node.result())
    scalar = (1,) * len(shape)
    scale, zero = np.full(scalar, data.scale, np.float32), np.full(scalar, data.zero_point, np.int64)
    node.finish(node.chain(node.value(0), [(Dequantize(scale, zero), shape)]), shape)


def _quantize_reals(node: OperatorNode, result: CodeType) -> None:
    """x / scale half away from zero; LiteRT's default: x times fl(1 / scale), half to even."""
    shape = node.tensor(0).shape
    scale = np.full((1,) * len(shape), result.scale, np.float32)
    ops: list[Elementwise]
    if node.runtime is Runtime.LITERT:
        if result.dtype == "int16":
            raise node.refused("float32 to int16 is rounded by the position in the tensor", _HINT)
        last = half_to_even(len(shape), result.zero_point, result.type, result.dtype)
        ops = [Mul((np.float32(1) / scale).astype(np.float32)), last]
    else:
        # HALF_UP adds 1/2 to a magnitude, which is exact in float64 only.
        last = half_to_even(len(shape), result.zero_point, result.type, result.dtype)
        ops = [Div(scale), Cast("float64"), replace(last, mode=Rounding.HALF_UP)]
    node.finish(node.chain(node.value(0), [(op, shape) for op in ops]), shape)


def _rectified(node: OperatorNode, data: CodeType, result: CodeType) -> bool:
    """The steps of RELU or RELU6 of int16 codes as a rescaling within bounds; False if they need a table."""
    rank, shape = len(node.tensor(0).shape), node.tensor(0).shape
    if node.runtime is Runtime.TFLM and node.operator.name == "RELU6":
        # The kernel copies codes within its input's bounds.
        bounds = activation_bounds("RELU6", node.runtime, data.dtype, data.scale, data.zero_point)
        rescaled = shifted(rank, 0, 0, 0, bounds, result.dtype)
    else:
        multiplier = quantized_multiplier(activation_ratio(node.runtime, data.scale, result.scale))
        if multiplier.exponent > _MOST_SHIFT:
            return False
        bounds = activation_bounds(node.operator.name, node.runtime, result.dtype, result.scale, result.zero_point)
        rescaled = doubly_rounded([multiplier], rank, 0, bounds, result.dtype)
    node.finish(node.chain(node.value(0), [(Cast("int32"), shape), (rescaled, shape)]), shape)
    return True


def _looked_up(node: OperatorNode, data: CodeType, result: CodeType, entries: Array) -> None:
    """The steps of a table; entries, 256 or 65,536: by the distance from the lowest code along the first axis."""
    shape = node.tensor(0).shape
    ops: list[Elementwise] = [Cast("int32")]
    if data.type.lo:
        ops.append(Add(np.full((1,) * len(shape), -data.type.lo, np.int32)))
    ops.append(Lookup(entries.astype(result.dtype)))
    node.finish(node.chain(node.value(0), [(op, shape) for op in ops]), shape)


def _check_fixed_result(node: OperatorNode, result: CodeType) -> None:
    """Raises HG022 for a LOGISTIC or TANH whose result has other codes than the kernels assume."""
    fixed = _FIXED_RESULTS.get(node.operator.name)
    if fixed is None:
        return
    scale, zero = 1 / fixed[0], result.type.lo + fixed[1]
    if result.dtype == "int16":
        scale, zero = 2.0**-RESULT_BITS, 0
    if (result.scale, result.zero_point) != (scale, zero):
        text = f"{node.operator.name}: the result has scale {result.scale}, zero point {result.zero_point}."
        raise fail("HG022", node.name, text, f"The kernels assume scale {scale} and zero point {zero}.")
