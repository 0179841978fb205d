"""Evaluates float operations, quantizers and decodings literally in numpy, in the model's dtype."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir.encoding import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.ops import (
    Activation,
    Add,
    BinaryKind,
    BinaryOf,
    Bipolar,
    Cast,
    Compare,
    Constant,
    Convention,
    Dequantize,
    Div,
    Elementwise,
    FixedAdd,
    FloatQuant,
    Fma,
    IntegerActivation,
    IntegerKind,
    IntegerRatio,
    IntQuant,
    Lookup,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    PairOp,
    QuantizeLinear,
    Quantizer,
    Relation,
    Requantize,
    SignedBit,
    Slope,
    Trunc,
    Where,
)
from hlsgen.numerics import activations
from hlsgen.numerics.fixed import Array, IntType, fused_multiply_add, product_to_float32, round_away, round_float

#: Keys of -infinity and +infinity; NaN has key 0.
KEY_NEG_INF, KEY_POS_INF = 0x007FFFFF, 0xFF800000
#: Trunc version 1 does not clamp; its codes saturate at these bounds.
UNCLAMPED = IntType(-(1 << 31), (1 << 31) - 1)


def float_to_key(x: Array) -> Array:
    """float32 -> int64 key that sorts like the number; NaN -> 0 (as the module hg_float_key does)."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.int64)
    key = np.where(bits >> 31 != 0, 0xFFFFFFFF - bits, bits + 0x80000000)
    return np.where(np.isnan(x), 0, key)


def key_to_float(key: Array) -> Array:
    """Inverse of `float_to_key`; keys below the key of -infinity give NaN."""
    bits = np.where(key >= 0x80000000, key - 0x80000000, 0xFFFFFFFF - key)
    bits = np.where(key < KEY_NEG_INF, 0x7FC00000, bits)
    return bits.astype(np.uint32).view(np.float32)


def apply(op: Elementwise, x: Array) -> Array:
    """Apply one operation to values of any shape to which the constants broadcast."""
    with np.errstate(all="ignore"):
        match op:
            case Mul(value):
                return x * value
            case Add(value):
                return x + value
            case Fma(factor, value):
                return fused_multiply_add(x, factor, value)
            case Div(value):
                return x / value
            case Max(value):
                return np.maximum(x, value)
            case Min(value):
                return np.minimum(x, value)
            case Cast(dtype):
                # Through float64, integers are rounded to float16 once and not twice.
                unrounded = x.astype(np.float64) if dtype == "float16" else x
                result: Array = unrounded.astype(dtype)
                return result
            case Dequantize(scale, zero_point):
                product = (x.astype(np.int64) - zero_point).astype(np.float32) * _at_least_single(scale)
                return np.asarray(product.astype(scale.dtype))
            case Activation(kind, alpha, beta):
                return activations.evaluate(kind, x, alpha, beta)
            case Slope(value):
                return np.where(x >= 0, x, x * value)
            case Compare():
                return _compare(op, x)
            case Constant(value):
                return np.broadcast_to(value, np.broadcast_shapes(value.shape, x.shape))
            case Lookup(values):
                return _look_up(values, x)
            case BinaryOf(kind, (left, right)):
                return apply_binary(kind, apply_chain(left, x), apply_chain(right, x))
            case Where((condition, yes, no)):
                return np.where(apply_chain(condition, x), apply_chain(yes, x), apply_chain(no, x))
            case BinaryOf() | Where():
                raise AssertionError("BinaryOf needs two chains, Where three")
            case _:
                return decode(decoding(op), quantize(op, x))


def apply_chain(ops: tuple[Elementwise, ...], x: Array) -> Array:
    """Apply the operations in order."""
    for op in ops:
        x = apply(op, x)
    return x


def _look_up(values: Array, x: Array) -> Array:
    """values[x[...], ...], from the lookup table of each element."""
    tensor_shape = values.shape[1:]
    shape = np.broadcast_shapes(x.shape, tensor_shape)
    position = np.clip(np.nan_to_num(x), 0, len(values) - 1).astype(np.int64)
    column = np.broadcast_to(np.arange(int(np.prod(tensor_shape))).reshape(tensor_shape), shape)
    return np.asarray(values.reshape(len(values), -1)[np.broadcast_to(position, shape), column])


def _compare(op: Compare, x: Array) -> Array:
    match op.kind:
        case Relation.GREATER:
            return np.asarray(x > op.value)
        case Relation.LESS:
            return np.asarray(x < op.value)
        case Relation.NOT_LESS:
            return np.asarray(x >= op.value)
        case Relation.NOT_GREATER:
            return np.asarray(x <= op.value)
        case Relation.EQUAL:
            return np.asarray(x == op.value)
        case _:
            assert_never(op.kind)


def apply_binary(kind: BinaryKind, x: Array, y: Array) -> Array:
    """Combine two tensors of one dtype elementwise; integers wrap, NaN propagates."""
    with np.errstate(all="ignore"):
        match kind:
            case BinaryKind.ADD:
                return np.asarray(x + y)
            case BinaryKind.SUB:
                return np.asarray(x - y)
            case BinaryKind.MUL:
                return np.asarray(x * y)
            case BinaryKind.DIV:
                return np.asarray(x / y)
            case BinaryKind.MAX:
                return np.maximum(x, y)
            case BinaryKind.MIN:
                return np.minimum(x, y)
            case _:
                assert_never(kind)


def quantize(op: Quantizer, x: Array) -> Array:
    """Quantize values to int64 codes."""
    with np.errstate(all="ignore"):
        match op:
            case IntQuant():
                return _to_codes(x / op.scale + op.zero_point, op.type, op)
            case Bipolar():
                return (x / op.divisor >= 0).astype(np.int64)
            case SignedBit():
                return np.where(x / op.scale + op.zero_point >= 0, 1, -1)
            case Trunc():
                y = np.round(x / op.scale + op.zero_point) / op.divisor
                return _to_codes(y, op.type, op)
            case MultiThreshold():
                return _count_reached(op.thresholds, x)
            case QuantizeLinear():
                y = round_float(_at_least_single(x) / _at_least_single(op.scale), op.mode)
                rounded = np.clip(np.where(np.isnan(y), -np.inf, y), -(2.0**62), 2.0**62).astype(np.int64)
                return np.clip(rounded + op.zero_point, op.type.lo, op.type.hi)
            case Requantize():
                return np.asarray(np.clip(_rescale(op, x) + op.zero_point, op.type.lo, op.type.hi))
            case FloatQuant():
                return _quantize_minifloat(op, x)
            case Pair():
                return _quantize_pair(op, x.astype(np.int64))
            case FixedAdd():
                a, b = (x, op.other) if op.first else (op.other, x)
                return op.fixed.apply(a.astype(np.int64), b.astype(np.int64)).astype(np.int64)
            case IntegerActivation():
                return np.asarray(np.clip(_integer_activation(op, _floor_to_int64(x)), op.type.lo, op.type.hi))
            case IntegerRatio():
                return _integer_ratio(op, _floor_to_int64(x))
            case _:
                assert_never(op)


def _count_reached(thresholds: Array, x: Array) -> Array:
    """Number of `thresholds` (number, ...) that each x reaches.

    Counts all of them, or uses a binary search where there are more thresholds than sets, of at least one set.
    """
    tensor_shape = thresholds.shape[1:]
    threshold_sets = math.prod(tensor_shape)
    shape = np.broadcast_shapes(x.shape, tensor_shape)
    x = np.broadcast_to(x, shape)
    count = np.zeros(shape, np.int64)
    if not threshold_sets or threshold_sets >= len(thresholds):
        for threshold in thresholds:
            count += x >= threshold
        return count
    column = np.broadcast_to(np.arange(threshold_sets).reshape(tensor_shape), shape)
    for n, sorted_thresholds in enumerate(np.sort(thresholds.reshape(-1, threshold_sets), 0).T):
        count[column == n] = np.searchsorted(sorted_thresholds, x[column == n], side="right")
    count[np.isnan(x)] = 0
    return count


def _at_least_single(x: Array) -> Array:
    """float16 as float32, the dtype in which ONNX quantizes and dequantizes float16."""
    return np.asarray(x, np.float32) if x.dtype == np.float16 else x


def _floor_to_int64(x: Array) -> Array:
    return np.floor(x).astype(np.int64)


def _integer_activation(op: IntegerActivation, x: Array) -> Array:
    match op.kind:
        case IntegerKind.GELU:
            b, unit = op.parameters
            d = np.minimum(np.abs(x), -b) + b
            return np.asarray(x * ((unit + np.sign(x) * (unit - d * d)) >> 1))
        case IntegerKind.HARDSWISH:
            three, six, one_over_six = op.parameters
            return np.asarray(x * (np.clip(x + three, 0, six) * one_over_six))
        case _:
            assert_never(op.kind)


def _integer_ratio(op: IntegerRatio, x: Array) -> Array:
    product = x * op.multiplier
    y = (np.abs(product) if op.mirrored else product) + op.add
    y = y // op.divisor
    y = np.where(product < 0, -y, y) if op.mirrored else y
    if op.wraps:
        return np.asarray((y - op.type.lo) % (op.type.hi - op.type.lo + 1) + op.type.lo)
    return np.asarray(np.clip(y, op.type.lo, op.type.hi))


def _rescale(op: Requantize, x: Array) -> Array:
    integral = np.floor(x)  # x may have a fraction, for example after an average
    fractional_product = np.floor((x - integral).astype(np.float64) * op.multiplier).astype(np.int64)
    x = integral.astype(np.int64)
    match op.convention:
        case Convention.FLOOR:
            return np.asarray((x * op.multiplier + fractional_product + op.add) >> op.shift)
        case Convention.SINGLE:
            half = np.where(op.shift > 0, np.int64(1) << np.maximum(op.shift - 1, 0), 0)
            return np.asarray((x * op.multiplier + op.add + half) >> op.shift)
        case Convention.DOUBLE:
            return _double_rounding(x + op.add, op.multiplier, op.shift)
        case Convention.FLOAT64:
            factor = np.ldexp(op.multiplier.astype(np.float64), -op.shift)
            rounded = round_away((x + op.add).astype(np.float64) * factor)
            return np.asarray(np.clip(rounded, -(2.0**62), 2.0**62).astype(np.int64))
        case _:
            assert_never(op.convention)


def _double_rounding(x: Array, multiplier: Array, shift: Array) -> Array:
    """gemmlowp: SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT; left shifts saturate at 32 bits."""
    bounds = -(1 << 31), (1 << 31) - 1
    x = np.clip(x << np.maximum(31 - shift, 0), *bounds)
    product = x * multiplier
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    total = product + nudge
    high = np.clip(np.where(total >= 0, total >> 31, -(-total >> 31)), *bounds)
    right_shift = np.maximum(shift - 31, 0)
    remainder = high & ((np.int64(1) << right_shift) - 1)
    limit = (((np.int64(1) << right_shift) - 1) >> 1) + (high < 0)
    return np.asarray((high >> right_shift) + (remainder > limit))


def operands(op: Pair, codes: Array) -> tuple[Array, Array]:
    """The operands a and b that are packed in each code."""
    a, b = codes & 0xFF, (codes >> 8) & 0xFF
    return (a, b) if op.dtype == "uint8" else (a - ((a & 0x80) << 1), b - ((b & 0x80) << 1))


def _quantize_pair(op: Pair, codes: Array) -> Array:
    a, b = operands(op, codes)
    if op.fixed is not None:
        return op.fixed.apply(a, b).astype(np.int64)
    (scale_a, scale_b, scale_c), (zero_a, zero_b, zero_c) = (tuple(map(np.float32, v)) for v in (op.scales, op.zeros))
    if op.kind == PairOp.ADD:
        ratio_a, ratio_b = np.asarray([scale_a / scale_c]), np.asarray([scale_b / scale_c])
        constant = zero_c - fused_multiply_add(ratio_a, np.asarray(zero_a), ratio_b * zero_b)
        partial_sum = fused_multiply_add(b.astype(np.float32), ratio_b, constant)
        y = fused_multiply_add(a.astype(np.float32), ratio_a, partial_sum)
    else:
        product = (a.astype(np.float32) - zero_a) * (b.astype(np.float32) - zero_b)
        y = product * (scale_a * scale_b / scale_c) + zero_c
    return np.asarray(np.clip(np.round(y).astype(np.int64), op.type.lo, op.type.hi))


def _quantize_minifloat(op: FloatQuant, x: Array) -> Array:
    """QONNX FloatQuant, operation by operation: round to the step of the value's own binade, then clip.

    qonnx gives NaN where no code exists. Here NaN becomes the lowest code; an infinite x / scale becomes the
    last code of its sign.
    """
    y = minifloat_argument(op, x)
    highest = np.finfo(y.dtype).maxexp - 1
    step = np.ldexp(y.dtype.type(1), np.minimum(minifloat_exponent(op, y) - op.mantissa, highest))
    largest = y.dtype.type(op.largest)
    rounded = np.clip(round_float(y / step, op.mode) * step, -largest if op.signed else 0, largest)
    return np.asarray(np.ldexp(rounded.astype(np.float64), -op.step).astype(np.int64))


def minifloat_argument(op: FloatQuant, x: Array) -> Array:
    """x / scale, limited to finite numbers; NaN becomes the lowest."""
    y = np.asarray(x / op.scale)
    finite: Array = np.clip(
        np.where(np.isnan(y), y.dtype.type(-np.inf), y), *(np.finfo(y.dtype).max * s for s in (-1, 1))
    )
    return finite


def minifloat_exponent(op: FloatQuant, y: Array) -> Array:
    """max(floor(log2(|y| + tiny)), minimum_exponent) with sum and logarithm rounded to y's dtype.

    Hence the few numbers just below 2^k whose logarithm rounds to k have the exponent k, as in qonnx.

    log2(mantissa) in float64 decides this. No float32 or float64 is nearer to the limit than its error.
    """
    mantissa, power = np.frexp(np.abs(y) + np.finfo(y.dtype).tiny)
    rounded = power.astype(y.dtype)
    rounding_gap = (rounded - np.nextafter(rounded, y.dtype.type(-np.inf))).astype(np.float64)
    rounds_up = -np.log2(mantissa.astype(np.float64)) < rounding_gap / 2
    return np.asarray(np.maximum(power - 1 + rounds_up, op.minimum_exponent))


def _to_codes(y: Array, type_: IntType | None, op: IntQuant | Trunc) -> Array:
    if type_ is None:
        rounded = np.clip(round_float(np.where(np.isnan(y), -np.inf, y), op.mode), UNCLAMPED.lo, UNCLAMPED.hi + 1)
        return np.clip(rounded.astype(np.int64), UNCLAMPED.lo, UNCLAMPED.hi)
    lo, hi = y.dtype.type(type_.lo), y.dtype.type(type_.hi)
    y = np.where(y > hi, hi, y)
    y = np.where(y < lo, lo, y)
    codes = round_float(np.where(np.isnan(y), lo, y), op.mode).astype(np.int64)
    return np.clip(codes, type_.lo, type_.hi)


def decoding(op: Quantizer) -> Encoding:
    """The encoding of a quantizer's codes."""
    match op:
        case IntQuant() | SignedBit():
            return Affine(op.scale, op.zero_point)
        case Bipolar():
            rank = np.ndim(op.scale)
            return Affine(np.float32(2) * op.scale, np.full((1,) * rank, 0.5, np.float32))
        case Trunc():
            return Affine(op.out_scale, op.out_zero_point)
        case MultiThreshold():
            return ThresholdCount(op.out_scale, op.out_bias)
        case QuantizeLinear() | Requantize():
            return IntegerEncoding(op.dtype, np.zeros((1,) * np.ndim(op.zero_point), np.int64))
        case IntegerRatio():
            return IntegerEncoding(op.dtype, np.zeros((1,) * np.ndim(op.divisor), np.int64))
        case Pair() | FixedAdd() | IntegerActivation():
            return IntegerEncoding(op.dtype, np.zeros((), np.int64))
        case FloatQuant():
            return Affine(np.ldexp(op.scale, op.step), np.zeros((1,) * np.ndim(op.scale), np.float32))
        case _:
            assert_never(op)


def code_type(op: Quantizer) -> IntType:
    """The interval of all codes that a quantizer can produce."""
    match op:
        case IntQuant() | QuantizeLinear() | Requantize() | FloatQuant() | Pair() | FixedAdd():
            return op.type
        case IntegerActivation() | IntegerRatio():
            return op.type
        case Bipolar():
            return IntType(0, 1)
        case SignedBit():
            return IntType(-1, 1)
        case Trunc():
            return op.type or UNCLAMPED
        case MultiThreshold():
            return IntType(0, len(op.thresholds))
        case _:
            assert_never(op)


def decode(d: Encoding, codes: Array) -> Array:
    """int64 codes -> values: float32, or the integer dtype of an `IntegerEncoding`."""
    with np.errstate(all="ignore"):
        match d:
            case Affine():
                return ((codes.astype(np.float32) - d.zero_point) * d.scale).astype(np.float32)
            case ThresholdCount():
                scaled = codes.astype(np.float32) * np.float32(d.scale)
                return np.asarray(scaled + np.float32(d.bias))
            case Accumulator():
                return product_to_float32(codes * d.factor + d.offset, d.scale)
            case Fixed():
                return product_to_float32(codes, np.float64(2.0**-d.fraction))
            case FloatKey():
                return key_to_float(codes)
            case IntegerEncoding():
                return np.asarray((codes + d.offset).astype(d.dtype))
            case _:
                assert_never(d)


T = TypeVar("T", bound=Elementwise | Encoding)


def constants(item: Elementwise | Encoding) -> dict[str, Array]:
    """The per-element constants of an operation or encoding, by field name.

    A constant inside chain n of a BinaryOf or Where is named `n.position.field`.
    """
    if isinstance(item, BinaryOf | Where):
        operations = [(f"{n}.{i}", op) for n, ops in enumerate(item.ways) for i, op in enumerate(ops)]
        return {f"{path}.{name}": value for path, op in operations for name, value in constants(op).items()}
    values = {f.name: getattr(item, f.name) for f in fields(item)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def with_constants(item: T, new: dict[str, Array]) -> T:
    """A copy of `item` with the arrays of `new`, named as in `constants`."""
    if isinstance(item, BinaryOf | Where):

        def replaced(path: str, op: Elementwise) -> Elementwise:
            prefix = f"{path}."
            inner = {name.removeprefix(prefix): value for name, value in new.items() if name.startswith(prefix)}
            return with_constants(op, inner)

        chains = [tuple(replaced(f"{n}.{i}", op) for i, op in enumerate(ops)) for n, ops in enumerate(item.ways)]
        return replace(item, ways=tuple(chains))
    return replace(item, **new) if new else item  # type: ignore[arg-type]


def lead_axes(item: Elementwise | Encoding, name: str) -> int:
    """Number of axes of the named constant that precede the tensor's axes."""
    while isinstance(item, BinaryOf | Where):
        chain_number, position, name = name.split(".", 2)
        item = item.ways[int(chain_number)][int(position)]
    return 1 if isinstance(item, MultiThreshold | Lookup) else 0


def constant_shapes(item: Elementwise | Encoding) -> list[tuple[int, ...]]:
    """The shapes of the constants, without the axes that precede the tensor's axes."""
    return [value.shape[lead_axes(item, name) :] for name, value in constants(item).items()]
