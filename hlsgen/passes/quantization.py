"""What codes mean for the layers that compute with them: exact scales, zero points, order.

A layer that sums needs each input as scale * (code - zero point), exactly. A *grid* is a quantizer of that form that
reproduces the values behind float operations: all codes are tried, and each value must come back unchanged.
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
    Max,
    Min,
    Mul,
    QuantizeLinear,
    Quantizer,
    Trunc,
)
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: Most codes for which a function is checked by trying them all.
EXHAUSTIVE = 1 << 20
MAX_ACCUMULATOR_BITS = 48
_ROUNDINGS = frozenset(("Ceil", "Floor", "Round"))
#: What reproduces values exactly: floats as multiples of a scale, integers as themselves.
Grid = IntQuant | QuantizeLinear


def too_wide(name: str, bits: int) -> HlsgenError:
    return fail(
        "HG033", name, f"the accumulator needs {bits} bits.",
        f"At most {MAX_ACCUMULATOR_BITS} are supported: use narrower weights or activations.",
    )  # fmt: skip


def column_meaning(name: str, value: Value) -> tuple[Array, Array]:
    """(scale, zero point) of every column as float64, real = scale * (code - zero point) exactly."""
    columns = value.shape[-1]
    match value.encoding:
        case Affine(scale, zero):
            parts = []
            if (np.asarray(scale, np.float32) != scale).any():
                raise fail("HG022", name, "the input's scale is no float32 value.", "Store it as float32.")
            for part, what in ((scale, "scale"), (zero, "zero point")):
                parts.append(_by_column(name, np.asarray(part, np.float64), what, columns))
            scales, zeros = parts
        case IntegerEncoding(_, offset):
            scales = np.ones(columns)
            zeros = _by_column(name, -offset.astype(np.float64), "offset", columns)
        case Fixed(fraction):
            scales, zeros = np.full(columns, 2.0**-fraction), np.zeros(columns)
        case ThresholdCount(scale_, bias):
            unit, start = float(np.float32(scale_)), float(np.float32(bias))
            zero_ = -start / unit
            if zero_ * unit != -start or unit < 0:
                raise fail("HG034", name, f"the input is {scale_} * count + {bias}, no multiple of one scale.")
            scales, zeros = np.full(columns, unit), np.full(columns, zero_)
        case Accumulator():
            exact = value.encoding.scale
            two = float(np.frexp(exact.ravel()[0])[0]) == 0.5 and bool((exact == exact.ravel()[0]).all())
            wide = max(abs(value.type.lo), abs(value.type.hi)) * value.encoding.factor
            if not two or wide + int(np.abs(value.encoding.offset).max()) > 1 << 24:
                raise fail(
                    "HG032", name, "the layer's input is a sum that no quantizer made.",
                    "Put a quantizer between two linear layers.",
                )  # fmt: skip
            scales = np.full(columns, float(exact.ravel()[0]) * value.encoding.factor)
            zeros = _by_column(name, -value.encoding.offset / value.encoding.factor, "offset", columns)
        case _:
            raise fail("HG032", name, "the layer's input is not quantized.", "Put a quantizer in front of it.")
    if value.type.bits > 25 and not isinstance(value.encoding, Accumulator):
        raise fail(
            "HG033", name, f"the layer's input has {value.type.bits} bits.",
            "At most 24 keep their value in float32: use a narrower quantizer.",
        )  # fmt: skip
    return scales, zeros


def _by_column(name: str, array: Array, what: str, columns: int) -> Array:
    """(columns,) of what may differ along the last axis only. Raises HG034."""
    if array.size > 1 and array.shape[-1] != array.size:
        raise fail("HG034", name, f"the input's {what} differs between rows.", "Use one per tensor.")
    return np.broadcast_to(array.reshape(-1), (columns,))


def whole_zero(name: str, value: Value) -> Array:
    """int64 (columns,) or (1,): integer value = code + this, for a layer that computes in integers."""
    match value.encoding:
        case IntegerEncoding(dtype, offset):
            info = np.iinfo(dtype)
            if value.type.lo + int(offset.min()) < info.min or value.type.hi + int(offset.max()) > info.max:
                raise fail("HG033", name, f"its input can leave {dtype}.", "Use narrower weights in front of it.")
            if offset.size > 1 and offset.shape[-1] != offset.size:
                raise fail("HG034", name, "the input's offset differs between rows.", "Use one per tensor.")
            return np.asarray(offset.reshape(-1))
        case Affine(scale, zero) if (np.asarray(scale) == 1).all() and (np.asarray(zero) == 0).all():
            return np.zeros(1, np.int64)
        case _:
            raise fail("HG032", name, "the layer's input is no integer tensor.", "Quantize it with QuantizeLinear.")


def zero_shift(name: str, zero: Array) -> int:
    for shift in range(17):
        if (np.round(zero * 2.0**shift) == zero * 2.0**shift).all():
            return shift
    raise fail("HG024", name, "the input's zero point is not a short binary fraction.", "Use an integer zero point.")


def _uniform(item: Elementwise | Encoding) -> bool:
    """Whether constants are the same for all elements."""
    tables = [c.reshape(*c.shape[: lead_axes(item, name)], -1) for name, c in constants(item).items()]
    return all(bool((table == table[..., :1]).all()) for table in tables)


def _all_codes(value: Value) -> Array | None:
    count = value.type.hi - value.type.lo + 1
    if count > EXHAUSTIVE or isinstance(value.encoding, FloatKey):
        return None
    codes = np.arange(value.type.lo, value.type.hi + 1)
    return codes.reshape((-1,) + (1,) * len(value.shape))


def code_interval(value: Value, ops: Sequence[Elementwise], quantizer: Quantizer) -> IntType:
    """What the quantizer can give behind operations on the codes, where its own type does not say it."""
    type_ = code_type(quantizer)
    open_ended = isinstance(quantizer, IntegerActivation | IntegerRatio)
    open_ended |= isinstance(quantizer, Trunc) and quantizer.type is None
    if not open_ended or isinstance(value.encoding, FloatKey):
        return type_
    codes = _all_codes(value)
    own = decoding_direction(value.encoding, value.type)
    if own.then(chain_direction([*ops, quantizer], decoded_interval(value.encoding, value.type))).monotone.all():
        codes = np.array([value.type.lo, value.type.hi]).reshape((2,) + (1,) * len(value.shape))
    if codes is None:
        return type_
    real = decode(value.encoding, codes)
    for op in ops:
        real = apply(op, real)
    found = quantize(quantizer, real)
    return IntType(int(found.min()), int(found.max()))


def grid(value: Value, ops: list[Elementwise]) -> Grid | None:
    """A quantizer that reproduces the values behind `ops` exactly for every code, if there is one."""
    codes, kind = _all_codes(value), type_behind(value, ops)
    if kind.kind == "b" or (kind.kind in "iu" and codes is None and kind.itemsize < 8):
        return whole_quantizer(len(value.shape), kind)
    if codes is None or not all(_uniform(op) for op in ops) or not _uniform(value.encoding):
        return _whole_grid(value, ops)
    real = decode(value.encoding, codes)
    for op in ops:
        real = apply(op, real)
    rank = len(value.shape)
    scales = [op.scale for op in ops if isinstance(op, Dequantize) and op.scale.dtype == np.float32]
    return _grid(real, value, [np.full((1,) * rank, scale.ravel()[0]) for scale in scales])


def _whole_grid(value: Value, ops: Sequence[Elementwise]) -> Grid | None:
    """A quantizer of scale 1 for floats that an operation has rounded to whole numbers, between bounds that hold them."""
    rounding = [i for i, op in enumerate(ops) if isinstance(op, Activation) and op.kind in _ROUNDINGS]
    if not rounding or not all(_keeps_whole(op) for op in ops[rounding[-1] + 1 :]):
        return None
    numbers = range_behind(value, ops)
    low, high = (end.astype(np.float64) for end in (numbers.low, numbers.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()) or max(-low.min(), high.max()) > 1 << 24:
        return None
    one = np.ones((1,) * len(value.shape), np.float32)
    return IntQuant(one, np.zeros_like(one), IntType(int(low.min()), int(high.max())), Rounding.ROUND)


def _keeps_whole(op: Elementwise) -> bool:
    if isinstance(op, Add | Mul | Max | Min):
        return bool((op.value == np.round(op.value)).all())
    return isinstance(op, Cast) and np.dtype(op.dtype).kind == "f"


def range_behind(value: Value, ops: Sequence[Elementwise]) -> Interval:
    """Bounds of all numbers that operations on the codes of a value give."""
    return _range_of_chain(decoded_interval(value.encoding, value.type), ops)


def range_of_pair(
    kind: BinaryKind, left: tuple[Value, list[Elementwise]], right: tuple[Value, list[Elementwise]],
    ops: Sequence[Elementwise],
) -> Interval:  # fmt: skip
    """Bounds of all numbers that operations give behind the sum, product ... of two values with operations of their own."""
    sides = [range_behind(*side) for side in (left, right)]
    ends = [apply_binary(kind, a, b) for a in (sides[0].low, sides[0].high) for b in (sides[1].low, sides[1].high)]
    shaped = np.broadcast_arrays(*ends)
    return _range_of_chain(Interval(np.minimum.reduce(shaped), np.maximum.reduce(shaped)), ops)


def _range_of_chain(numbers: Interval, ops: Sequence[Elementwise]) -> Interval:
    for op in ops:
        numbers = range_of(op, numbers)
    return numbers


def narrowed(quantizer: Quantizer, numbers: Callable[[], Interval]) -> Quantizer:
    """A quantizer to 64-bit integers with the type that it needs for its input `numbers`; any other one as it is."""
    if not isinstance(quantizer, QuantizeLinear | IntegerRatio) or quantizer.type.bits <= MAX_ACCUMULATOR_BITS:
        return quantizer
    interval = numbers()
    ends = [quantize(quantizer, np.atleast_1d(end)) for end in (interval.low, interval.high)]
    return replace(quantizer, type=IntType(min(int(end.min()) for end in ends), max(int(end.max()) for end in ends)))


def type_behind(value: Value, ops: Sequence[Elementwise]) -> np.dtype[Any]:
    """The numpy type of a tensor behind operations on its codes."""
    x = decode(value.encoding, np.full((1,) * len(value.shape), value.type.lo))
    for op in ops:
        x = apply(op, x)
    return x.dtype


def _integers(rank: int, type_: IntType, dtype: str) -> QuantizeLinear:
    """The quantizer that leaves integers, and booleans, what they are."""
    one = np.ones((1,) * rank, np.float32)
    return QuantizeLinear(one, np.zeros_like(one, np.int64), type_, dtype)


def whole_quantizer(rank: int, dtype: np.dtype[Any]) -> QuantizeLinear:
    """The same for all integers of a type of at most 32 bits, or booleans."""
    if dtype.kind == "b":
        return _integers(rank, IntType(0, 1), "uint8")
    info = np.iinfo(dtype)
    return _integers(rank, IntType(int(info.min), int(info.max)), dtype.name)


def grid_of_channels(value: Value, one_scale: bool) -> Grid | None:
    """The same for values whose scale and zero point may differ; code 0 means 0 everywhere.

    Scales stay what they are, or become one.
    """
    codes, meaning = _all_codes(value), value.encoding
    if codes is None or not isinstance(meaning, Affine):
        return None
    rank = len(value.shape)
    scale, zero = (a.reshape((1,) * (rank - a.ndim) + a.shape) for a in (meaning.scale, meaning.zero_point))
    if np.broadcast(scale, zero).size * len(codes) > EXHAUSTIVE:
        return None
    shift = next((s for s in range(17) if (np.round(zero * 2.0**s) == zero * 2.0**s).all()), None)
    own = [(scale * 2.0**-shift).astype(np.float32)] if shift is not None and not one_scale else []
    return _grid(decode(meaning, codes), value, own)


def grid_of_pair(
    kind: BinaryKind, left: tuple[Value, list[Elementwise]], right: tuple[Value, list[Elementwise]],
    ops: list[Elementwise], unit: float | None = None,
) -> Grid | None:  # fmt: skip
    """The same for what two tensors give together, tried on all pairs of codes; `unit`: a scale to try, if it is short."""
    values = []
    for (value, own), axis in ((left, 0), (right, 1)):
        codes = _all_codes(value)
        if codes is None or not all(_uniform(op) for op in own) or not _uniform(value.encoding):
            return None
        real = decode(value.encoding, codes)
        for op in own:
            real = apply(op, real)
        values.append(np.expand_dims(real, 1 - axis))
    if values[0].size * values[1].size > EXHAUSTIVE or not all(_uniform(op) for op in ops):
        return None
    both = apply_binary(kind, *values)
    real = both.reshape(-1, *both.shape[2:])
    for op in ops:
        real = apply(op, real)
    units = [] if unit is None or np.frexp(unit)[0] == 0.5 else [np.full((1,) * len(left[0].shape), unit, np.float32)]
    return _grid(real, left[0], between=units)


def _grid(real: Array, value: Value, first: Sequence[Array] = (), between: Sequence[Array] = ()) -> Grid | None:
    """A quantizer with which nothing changes; scales that are tried are `first`, the value's, those `between`, a power of
    two, the smallest number. Integers stay integers of their type: what follows may wrap."""
    if real.dtype.kind in "iub":
        type_ = IntType(int(real.min()), int(real.max()))
        if max(abs(type_.lo), abs(type_.hi)) > 1 << 24:
            return None
        return _integers(len(value.shape), type_, "uint8" if real.dtype.kind == "b" else real.dtype.name)
    flat = real.astype(np.float64).ravel()
    if not np.isfinite(flat).all():
        return None
    meaning = value.encoding
    own = [float(np.ravel(meaning.scale)[0])] if isinstance(meaning, (Affine, Accumulator)) else []
    candidates: list[float] = []
    nonzero = flat[flat != 0]
    mantissa, exponent = np.frexp(nonzero)
    if nonzero.size:
        bits = (mantissa * 2.0**53).astype(np.int64)
        low = np.frexp((bits & -bits).astype(np.float64))[1] - 1
        candidates.append(2.0 ** float((exponent - 53 + low).min()))
        candidates.append(float(np.abs(nonzero).min()))
    rank = len(value.shape)
    full = [[np.full((1,) * rank, candidate, np.float32) for candidate in part] for part in (own, candidates)]
    for scale in [*first, *full[0], *between, *full[1]]:
        if not ((scale > 0) & (scale < np.inf)).all():
            continue
        grid = real.astype(np.float64) / scale
        lo, hi = float(np.round(grid.min())), float(np.round(grid.max()))
        if max(abs(lo), abs(hi)) > 1 << 24:
            continue
        quantizer = IntQuant(scale, np.zeros_like(scale), IntType(int(lo), int(hi)), Rounding.ROUND)
        if (decode(decoding(quantizer), quantize(quantizer, real)) == real).all():
            return quantizer
    return None


def order_kept(value: Value, ops: list[Elementwise]) -> bool:
    """Whether the real values behind `ops` rise strictly with the code, alike for all channels."""
    codes = _all_codes(value)
    if codes is None or not all(_uniform(op) for op in ops) or not _uniform(value.encoding):
        return False
    real = decode(value.encoding, codes)
    for op in ops:
        real = apply(op, real)
    return bool((np.diff(real.reshape(len(codes), -1)[:, 0]) > 0).all())
