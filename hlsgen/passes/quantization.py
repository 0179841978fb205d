"""Exact scales, zero points and order of codes, for the layers that compute with them.

A layer that sums needs each input as scale * (code - zero point), exactly. A *grid* is a quantizer of that form that
reproduces the values after float operations: all codes are tried, and each value must come back unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount, Value
from hlsgen.ir.evaluate import apply, apply_binary, code_type, constants, decode, decoding, lead_axes, quantize
from hlsgen.ir.op_facts import Interval, chain_direction, decoded_interval, decoding_direction, range_of
from hlsgen.ir.ops import (
    Activation,
    Add,
    BinaryKind,
    Cast,
    Dequantize,
    Elementwise,
    IntegerActivation,
    IntegerRatio,
    IntQuant,
    Lookup,
    Max,
    Min,
    Mul,
    QuantizeLinear,
    Quantizer,
    Trunc,
)
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: Largest number of codes for which a function is checked exhaustively.
EXHAUSTIVE = 1 << 20
MAX_ACCUMULATOR_BITS = 48
#: Most codes of which `fixed_point` evaluates a function, and most bits of its results.
_FIXED_POINT_CODES, _FIXED_POINT_BITS = 1 << 12, 40
_ROUNDINGS = frozenset(("Ceil", "Floor", "Round"))
#: A quantizer that reproduces values exactly: floats as multiples of a scale, integers as themselves.
Grid = IntQuant | QuantizeLinear


def too_wide(name: str, bits: int) -> HlsgenError:
    """The error HG033 for an accumulator of that many bits."""
    return fail(
        "HG033",
        name,
        f"the accumulator needs {bits} bits.",
        f"At most {MAX_ACCUMULATOR_BITS} are supported: use narrower weights or activations.",
    )


def column_scales(name: str, value: Value, fixed: bool = False) -> tuple[Array, Array]:
    """(scale, zero point) of every column as float64; real = scale * (code - zero point) exactly."""
    columns = value.shape[-1]
    match value.encoding:
        case Affine(scale, zero_point):
            if (np.asarray(scale, np.float32) != scale).any():
                raise fail("HG022", name, "the input's scale is not a float32 value.", "Store it as float32.")
            scales = _by_column(name, np.asarray(scale, np.float64), "scale", columns)
            zeros = _by_column(name, np.asarray(zero_point, np.float64), "zero point", columns)
        case IntegerEncoding(_, offset):
            scales = np.ones(columns)
            zeros = _by_column(name, -offset.astype(np.float64), "offset", columns)
        case Fixed(fraction):
            scales, zeros = np.full(columns, 2.0**-fraction), np.zeros(columns)
        case ThresholdCount(scale_, bias):
            count_scale, start = float(np.float32(scale_)), float(np.float32(bias))
            count_zero = -start / count_scale
            if count_zero * count_scale != -start or count_scale < 0:
                raise fail("HG034", name, f"the input is {scale_} * count + {bias}, not a multiple of one scale.")
            scales, zeros = np.full(columns, count_scale), np.full(columns, count_zero)
        case Accumulator():
            unit_scale = value.encoding.scale
            is_power_of_two = float(np.frexp(unit_scale.ravel()[0])[0]) == 0.5 and bool(
                (unit_scale == unit_scale.ravel()[0]).all()
            )
            largest_sum = max(abs(value.type.lo), abs(value.type.hi)) * value.encoding.factor
            if not is_power_of_two or largest_sum + int(np.abs(value.encoding.offset).max()) > 1 << 24:
                raise fail(
                    "HG032",
                    name,
                    "the layer's input is a sum that is not quantized.",
                    "Put a quantizer between two linear layers.",
                )
            scales = np.full(columns, float(unit_scale.ravel()[0]) * value.encoding.factor)
            zeros = _by_column(name, -value.encoding.offset / value.encoding.factor, "offset", columns)
        case _:
            raise fail("HG032", name, "the layer's input is not quantized.", "Put a quantizer before it.")
    if value.type.bits > 25 and not isinstance(value.encoding, Accumulator) and not fixed:
        raise fail(
            "HG033",
            name,
            f"the layer's input has {value.type.bits} bits.",
            "At most 24 keep their value in float32: use a narrower quantizer.",
        )
    return scales, zeros


def _by_column(name: str, array: Array, label: str, columns: int) -> Array:
    """A constant that may differ along the last axis only, as (columns,). Raises HG034."""
    if array.size > 1 and array.shape[-1] != array.size:
        raise fail("HG034", name, f"the input's {label} differs between rows.", "Use one per tensor.")
    return np.broadcast_to(array.reshape(-1), (columns,))


def integer_offset(name: str, value: Value) -> Array:
    """int64 (columns,) or (1,): integer value = code + offset, for a layer that computes in integers."""
    match value.encoding:
        case IntegerEncoding(dtype, offset):
            info = np.iinfo(dtype)
            if value.type.lo + int(offset.min()) < info.min or value.type.hi + int(offset.max()) > info.max:
                raise fail("HG033", name, f"its input can leave {dtype}.", "Use narrower weights before it.")
            if (offset == offset.flat[0]).all():
                return np.asarray(offset.reshape(-1)[:1])
            if offset.shape[-1] != offset.size:
                raise fail("HG034", name, "the input's offset differs between rows.", "Use one per tensor.")
            return np.asarray(offset.reshape(-1))
        case Affine(scale, zero_point) if (np.asarray(scale) == 1).all() and (np.asarray(zero_point) == 0).all():
            return np.zeros(1, np.int64)
        case _:
            raise fail("HG032", name, "the layer's input is not an integer tensor.", "Quantize it with QuantizeLinear.")


def zero_shift(name: str, zero_points: Array) -> int:
    """The least number of fraction bits, at most 16, that represents all zero points exactly. Raises HG024."""
    for shift in range(17):
        if (np.round(zero_points * 2.0**shift) == zero_points * 2.0**shift).all():
            return shift
    raise fail("HG024", name, "the input's zero point is not a short binary fraction.", "Use an integer zero point.")


def _is_uniform(item: Elementwise | Encoding) -> bool:
    """True if the constants are the same for all elements."""
    by_element = [c.reshape(*c.shape[: lead_axes(item, name)], -1) for name, c in constants(item).items()]
    return all(bool((values == values[..., :1]).all()) for values in by_element)


def _all_codes(value: Value) -> Array | None:
    """All codes of a value, (codes, 1, ...), or None for floats and for more than `EXHAUSTIVE` codes."""
    count = value.type.hi - value.type.lo + 1
    if count > EXHAUSTIVE or isinstance(value.encoding, FloatKey):
        return None
    codes = np.arange(value.type.lo, value.type.hi + 1)
    return codes.reshape((-1,) + (1,) * len(value.shape))


def code_interval(value: Value, ops: Sequence[Elementwise], quantizer: Quantizer) -> IntType:
    """The interval of the quantizer's codes after operations on the value's codes.

    It is the quantizer's type, unless that type is wider than needed.
    """
    type_ = code_type(quantizer)
    open_ended = isinstance(quantizer, IntegerActivation | IntegerRatio)
    open_ended |= isinstance(quantizer, Trunc) and quantizer.type is None
    if not open_ended or isinstance(value.encoding, FloatKey):
        return type_
    codes = _all_codes(value)
    code_direction = decoding_direction(value.encoding, value.type)
    if code_direction.then(
        chain_direction([*ops, quantizer], decoded_interval(value.encoding, value.type))
    ).monotone.all():
        codes = np.array([value.type.lo, value.type.hi]).reshape((2,) + (1,) * len(value.shape))
    if codes is None:
        return type_
    x = decode(value.encoding, codes)
    for op in ops:
        x = apply(op, x)
    results = quantize(quantizer, x)
    return IntType(int(results.min()), int(results.max()))


def grid(value: Value, ops: list[Elementwise]) -> Grid | None:
    """A quantizer that reproduces the values after `ops` exactly for every code, or None if there is none."""
    codes, dtype = _all_codes(value), type_after(value, ops)
    by_channel = [op for op in ops if not _is_uniform(op)]
    has_tables = any(isinstance(op, Lookup) for op in by_channel)
    if dtype.kind == "b" or (dtype.kind in "iu" and (codes is None or has_tables) and dtype.itemsize < 8):
        return integer_quantizer(len(value.shape), dtype)
    if codes is None or by_channel or not _is_uniform(value.encoding):
        return _integer_grid(value, ops)
    x = decode(value.encoding, codes)
    for op in ops:
        x = apply(op, x)
    rank = len(value.shape)
    scales = [op.scale for op in ops if isinstance(op, Dequantize) and op.scale.dtype == np.float32]
    return _grid(x, value, [np.full((1,) * rank, scale.ravel()[0]) for scale in scales])


def fixed_point(value: Value, ops: Sequence[Elementwise]) -> IntQuant | None:
    """A quantizer whose scale is a power of two, which keeps all float32 values after `ops` exactly; else None.

    Its codes have up to `_FIXED_POINT_BITS` bits.
    """
    codes = _all_codes(value)
    if codes is None or len(codes) > _FIXED_POINT_CODES or type_after(value, ops) != np.float32:
        return None
    x = decode(value.encoding, codes)
    for op in ops:
        x = apply(op, x)
    x = x.astype(np.float64).ravel()
    if not np.isfinite(x).all():
        return None
    mantissas, exponents = np.frexp(x[x != 0])
    integers = np.ldexp(mantissas, 24).astype(np.int64)
    lowest = int((exponents - 24 + np.log2(integers & -integers)).min(initial=0))
    scaled = np.ldexp(x, -lowest)
    if lowest < -126 or np.abs(scaled).max() >= 2.0 ** (_FIXED_POINT_BITS - 1):
        return None
    rank = (1,) * len(value.shape)
    type_ = IntType(int(scaled.min()), int(scaled.max()))
    return IntQuant(np.full(rank, 2.0**lowest, np.float32), np.zeros(rank, np.float32), type_, Rounding.ROUND)


def _integer_grid(value: Value, ops: Sequence[Elementwise]) -> Grid | None:
    """A quantizer of scale 1 for floats that an operation has rounded to bounded integers, or None for others."""
    rounding = [i for i, op in enumerate(ops) if isinstance(op, Activation) and op.kind in _ROUNDINGS]
    if not rounding or not all(_keeps_integers(op) for op in ops[rounding[-1] + 1 :]):
        return None
    interval = range_after(value, ops)
    low, high = interval.low.astype(np.float64), interval.high.astype(np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all()) or max(-low.min(), high.max()) > 1 << 24:
        return None
    unit_scale = np.ones((1,) * len(value.shape), np.float32)
    return IntQuant(unit_scale, np.zeros_like(unit_scale), IntType(int(low.min()), int(high.max())), Rounding.ROUND)


def _keeps_integers(op: Elementwise) -> bool:
    if isinstance(op, Add | Mul | Max | Min):
        return bool((op.value == np.round(op.value)).all())
    return isinstance(op, Cast) and np.dtype(op.dtype).kind == "f"


def range_after(value: Value, ops: Sequence[Elementwise]) -> Interval:
    """Bounds of all numbers after operations on the codes of a value."""
    return _range_of_chain(decoded_interval(value.encoding, value.type), ops)


def range_of_pair(
    kind: BinaryKind,
    operand_a: tuple[Value, list[Elementwise]],
    operand_b: tuple[Value, list[Elementwise]],
    ops: Sequence[Elementwise],
) -> Interval:
    """Bounds of all numbers after `ops` on the combination of two values, each with its own operations."""
    operands = [range_after(*side) for side in (operand_a, operand_b)]
    corners = [
        apply_binary(kind, a, b)
        for a in (operands[0].low, operands[0].high)
        for b in (operands[1].low, operands[1].high)
    ]
    broadcast = np.broadcast_arrays(*corners)
    return _range_of_chain(Interval(np.minimum.reduce(broadcast), np.maximum.reduce(broadcast)), ops)


def _range_of_chain(interval: Interval, ops: Sequence[Elementwise]) -> Interval:
    for op in ops:
        interval = range_of(op, interval)
    return interval


def narrowed(quantizer: Quantizer, input_interval: Callable[[], Interval]) -> Quantizer:
    """The quantizer with the least type for its input interval, if its codes are wider than an accumulator.

    Any other quantizer is unchanged.
    """
    if not isinstance(quantizer, QuantizeLinear | IntegerRatio) or quantizer.type.bits <= MAX_ACCUMULATOR_BITS:
        return quantizer
    interval = input_interval()
    codes = [quantize(quantizer, np.atleast_1d(bound)) for bound in (interval.low, interval.high)]
    return replace(
        quantizer, type=IntType(min(int(code.min()) for code in codes), max(int(code.max()) for code in codes))
    )


def type_after(value: Value, ops: Sequence[Elementwise]) -> np.dtype[Any]:
    """The numpy dtype of a tensor after operations on its codes."""
    x = decode(value.encoding, np.full((1,) * len(value.shape), value.type.lo))
    for op in ops:
        x = apply(op, x)
    return x.dtype


def _identity_quantizer(rank: int, type_: IntType, dtype: str) -> QuantizeLinear:
    """The quantizer that does not change integers or booleans."""
    unit_scale = np.ones((1,) * rank, np.float32)
    return QuantizeLinear(unit_scale, np.zeros_like(unit_scale, np.int64), type_, dtype)


def integer_quantizer(rank: int, dtype: np.dtype[Any]) -> QuantizeLinear:
    """The identity quantizer for all integers of a dtype of at most 32 bits, or booleans."""
    if dtype.kind == "b":
        return _identity_quantizer(rank, IntType(0, 1), "uint8")
    info = np.iinfo(dtype)
    return _identity_quantizer(rank, IntType(int(info.min), int(info.max)), dtype.name)


def grid_of_channels(value: Value, one_scale: bool) -> Grid | None:
    """As `grid`, for values whose scale and zero point may differ; code 0 represents 0 everywhere.

    The scales stay, or become one scale.
    """
    codes, encoding = _all_codes(value), value.encoding
    if codes is None or not isinstance(encoding, Affine):
        return None
    rank = len(value.shape)
    scale, zero_point = (a.reshape((1,) * (rank - a.ndim) + a.shape) for a in (encoding.scale, encoding.zero_point))
    if np.broadcast(scale, zero_point).size * len(codes) > EXHAUSTIVE:
        return None
    shift = next((s for s in range(17) if (np.round(zero_point * 2.0**s) == zero_point * 2.0**s).all()), None)
    scales = [(scale * 2.0**-shift).astype(np.float32)] if shift is not None and not one_scale else []
    return _grid(decode(encoding, codes), value, scales)


def grid_of_pair(
    kind: BinaryKind,
    operand_a: tuple[Value, list[Elementwise]],
    operand_b: tuple[Value, list[Elementwise]],
    ops: list[Elementwise],
    unit: float | None = None,
) -> Grid | None:
    """As `grid`, for the combination of two tensors, tried on all pairs of codes.

    `unit`: a scale to try, unless it is a power of two.
    """
    values = []
    for (value, branch_ops), axis in ((operand_a, 0), (operand_b, 1)):
        codes = _all_codes(value)
        if codes is None or not all(_is_uniform(op) for op in branch_ops) or not _is_uniform(value.encoding):
            return None
        x = decode(value.encoding, codes)
        for op in branch_ops:
            x = apply(op, x)
        values.append(np.expand_dims(x, 1 - axis))
    if values[0].size * values[1].size > EXHAUSTIVE or not all(_is_uniform(op) for op in ops):
        return None
    combined = apply_binary(kind, *values)
    x = combined.reshape(-1, *combined.shape[2:])
    for op in ops:
        x = apply(op, x)
    units = (
        [] if unit is None or np.frexp(unit)[0] == 0.5 else [np.full((1,) * len(operand_a[0].shape), unit, np.float32)]
    )
    return _grid(x, operand_a[0], between=units)


def _grid(real: Array, value: Value, first: Sequence[Array] = (), between: Sequence[Array] = ()) -> Grid | None:
    """A quantizer that does not change the values `real`, or None if there is none.

    The scales are tried in this order: `first`, the value's own, `between`, a power of two, the smallest number.
    Integers stay integers of their type, since later operations may wrap.
    """
    if real.dtype.kind in "iub":
        type_ = IntType(int(real.min()), int(real.max()))
        if max(abs(type_.lo), abs(type_.hi)) > 1 << 24:
            return None
        return _identity_quantizer(len(value.shape), type_, "uint8" if real.dtype.kind == "b" else real.dtype.name)
    flat = real.astype(np.float64).ravel()
    if not np.isfinite(flat).all():
        return None
    encoding = value.encoding
    value_scales = [float(np.ravel(encoding.scale)[0])] if isinstance(encoding, (Affine, Accumulator)) else []
    candidates: list[float] = []
    nonzero = flat[flat != 0]
    mantissa, exponent = np.frexp(nonzero)
    if nonzero.size:
        bits = (mantissa * 2.0**53).astype(np.int64)
        lowest_bit = np.frexp((bits & -bits).astype(np.float64))[1] - 1
        candidates.append(2.0 ** float((exponent - 53 + lowest_bit).min()))
        candidates.append(float(np.abs(nonzero).min()))
    rank = len(value.shape)
    arrays = [
        [np.full((1,) * rank, candidate, np.float32) for candidate in scales] for scales in (value_scales, candidates)
    ]
    for scale in [*first, *arrays[0], *between, *arrays[1]]:
        if not ((scale > 0) & (scale < np.inf)).all():
            continue
        multiples = real.astype(np.float64) / scale
        lo, hi = float(np.round(multiples.min())), float(np.round(multiples.max()))
        if max(abs(lo), abs(hi)) > 1 << 24:
            continue
        quantizer = IntQuant(scale, np.zeros_like(scale), IntType(int(lo), int(hi)), Rounding.ROUND)
        if (decode(decoding(quantizer), quantize(quantizer, real)) == real).all():
            return quantizer
    return None


def order_kept(value: Value, ops: list[Elementwise]) -> bool:
    """True if the real values after `ops` rise strictly with the code, equally for all channels."""
    codes = _all_codes(value)
    if codes is None or not all(_is_uniform(op) for op in ops) or not _is_uniform(value.encoding):
        return False
    x = decode(value.encoding, codes)
    for op in ops:
        x = apply(op, x)
    return bool((np.diff(x.reshape(len(codes), -1)[:, 0]) > 0).all())
