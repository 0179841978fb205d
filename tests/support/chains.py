"""Random chains of elementwise operations between integers, as `StepFunction`s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount, ops
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, apply, code_type, decode, quantize
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.activations import KINDS, LITERAL
from hlsgen.numerics.fixed import IntType, Rounding, int_type

Array = NDArray[Any]
Random = np.random.Generator
DECODES = ("Affine", "CountScale", "Accumulator", "Whole", "Fixed", "FloatBits")
FLOATS = ("Mul", "Add", "Fma", "Div", "Max", "Min", "Cast", "Activation")
QUANTIZERS = (
    "IntQuant",
    "Bipolar",
    "SignedBit",
    "Trunc",
    "MultiThreshold",
    "QuantizeLinear",
    "Requantize",
    "FloatQuant",
)


def pick(r: Random, *values: Any) -> Any:
    return values[int(r.integers(len(values)))]


def size_of(x: Array) -> float:
    """The size that values mostly have."""
    finite = np.abs(x[np.isfinite(x)].astype(np.float64)) if x.dtype.kind == "f" else np.abs(x.astype(np.float64))
    return float(np.median(finite[finite > 0])) if (finite > 0).any() else 1.0


def real(r: Random, sets: int, dtype: Any = np.float32, size: float = 1.0) -> Array:
    """Numbers of about a size, of both signs, some of them special; the same in all sets in half of the cases."""
    count = 1 if r.random() < 0.5 else sets
    value = r.normal(size=count) * size * 10 ** r.uniform(-1, 0.5)
    if r.random() < 0.3:
        value = np.sign(value) * 2.0 ** np.round(np.log2(np.abs(value)))
    if r.random() < 0.1:
        value = value * (r.random(count) < 0.5)
    with np.errstate(over="ignore"):
        return np.broadcast_to(np.clip(value, -60000, 60000).astype(dtype), (sets,)).copy()


def positive(r: Random, sets: int, dtype: Any = np.float32, size: float = 1.0) -> Array:
    value = np.abs(real(r, sets, dtype, size))
    return np.where(value > 0, value, dtype(0.125)).astype(dtype)


def whole(r: Random, sets: int, low: int, high: int) -> Array:
    """int64, the same in all sets in half of the cases."""
    count = 1 if r.random() < 0.5 else sets
    return np.broadcast_to(r.integers(low, high + 1, count), (sets,)).copy()


def decoding(r: Random, kind: str, sets: int) -> Encoding:
    match kind:
        case "Affine":
            return Affine(positive(r, sets), np.float32(pick(r, 1, 0.5)) * whole(r, sets, -9, 9).astype(np.float32))
        case "CountScale":
            return ThresholdCount(float(r.normal()), float(pick(r, 0.0, r.normal())))
        case "Accumulator":
            exact = positive(r, sets).astype(np.float64) * positive(r, sets).astype(np.float64)
            return Accumulator(int(pick(r, 1, 2, 8)), whole(r, sets, -999, 999), exact)
        case "Whole":
            dtype = str(pick(r, "int8", "uint8", "int16", "uint16", "int32", "uint32"))
            near = int(pick(r, 0, np.iinfo(dtype).min, np.iinfo(dtype).max))
            return IntegerEncoding(dtype, whole(r, sets, near - 300, near + 300))
        case "Fixed":
            return Fixed(int(r.integers(0, 12)))
        case _:
            return FloatKey()


def interval(r: Random, source: Encoding, sets: int, most: int) -> tuple[Array, Array]:
    """lo and hi of each set, at most `most` inputs, often around zero or the special floats."""
    length = whole(r, sets, 0, int(pick(r, 20, 600, most - 1)))
    if isinstance(source, FloatKey):
        key = pick(r, 0, KEY_NEG_INF, 0x80000000, KEY_POS_INF, int(r.integers(KEY_NEG_INF, KEY_POS_INF)))
        lo = np.clip(key - whole(r, sets, 0, most), 0, KEY_POS_INF)
        return lo, np.minimum(lo + length, KEY_POS_INF)
    lo = whole(r, sets, -most, most // 4) if r.random() < 0.8 else whole(r, sets, -(1 << 36), 1 << 36)
    return lo, lo + length


def middle(r: Random, x: Array, sets: int) -> ops.Elementwise:
    """An operation on values like x."""
    dtype, size = x.dtype, size_of(x)
    if dtype.kind in "iu":
        kind = pick(r, "Add", "Mul", "Max", "Min", "Cast", "Cast", "Dequantize", "Dequantize", "Activation")
        info = np.iinfo(dtype)
        value = whole(r, sets, *pick(r, (-100, 100), (0, 3), (int(info.min), int(info.max)))).astype(dtype)
        match kind:
            case "Add":
                return ops.Add(value)
            case "Mul":
                return ops.Mul(value)
            case "Max" | "Min":
                return ops.Max(value) if kind == "Max" else ops.Min(value)
            case "Dequantize":
                return ops.Dequantize(positive(r, sets, pick(r, np.float32, np.float16)), whole(r, sets, -300, 300))
            case "Activation":
                return ops.Activation(str(pick(r, "Abs", "Sign")))
            case _:
                return ops.Cast(str(pick(r, "float32", "float16", "float64", "int8", "int32", "uint16")))
    if r.random() < 0.15:
        return quantizer(r, str(pick(r, *QUANTIZERS[:-2], "FloatQuant")), sets, x)
    scalar: Callable[..., Any] = dtype.type
    kind = pick(r, *(k for k in FLOATS if k != "Fma" or dtype == np.float32))
    if kind == "Activation" and size > 30 and r.random() < 0.8:
        kind = "Div"
    match kind:
        case "Mul":
            return ops.Mul(real(r, sets, scalar, float(pick(r, 1, 1 / size))))
        case "Add" | "Max" | "Min":
            return {"Add": ops.Add, "Max": ops.Max, "Min": ops.Min}[kind](real(r, sets, scalar, size))
        case "Fma":
            factor = real(r, sets)
            return ops.Fma(factor, real(r, sets, np.float32, size * float(np.abs(factor).max())))
        case "Div":
            return ops.Div(real(r, sets, scalar) if r.random() < 0.1 else positive(r, sets, scalar, size))
        case "Cast":
            return ops.Cast(str(pick(r, "float32", "float32", "float16", "float64")))
        case _:
            # Correct rounding to float64 takes long.
            return activation(r, str(pick(r, *sorted(LITERAL if dtype == np.float64 else KINDS))))


def activation(r: Random, kind: str) -> ops.Activation:
    alpha, beta = (float(np.float32(v)) for v in pick(r, r.normal(size=2), np.abs(r.normal(size=2)), (0, 0), (1, 1)))
    if kind == "Pow":
        alpha = float(pick(r, 0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 0.7, -3.3))
    return ops.Activation(kind, alpha, beta)


def quantizer(r: Random, kind: str, sets: int, x: Array) -> ops.Quantizer:
    """A quantizer that values like x mostly do not saturate."""
    size = float(pick(r, size_of(x), size_of(x.astype(np.float64) - np.median(x))))
    scale, mode = positive(r, sets, np.float32, size * 10 ** r.uniform(-2.5, 0.3)), Rounding(int(r.integers(7)))
    codes = int_type(int(r.integers(2, 11)), bool(r.integers(2)), bool(r.integers(2)))
    zero = np.float32(pick(r, 0, 1, 0.25)) * whole(r, sets, -20, 20).astype(np.float32)
    if kind == "SignedBit":
        zero = -(np.float32(np.nan_to_num(np.median(x))) / scale).astype(np.float32)
    match kind:
        case "IntQuant":
            if r.random() < 0.1:
                scale = scale.astype(np.float64)
            return ops.IntQuant(scale, zero, codes, mode)
        case "Bipolar":
            return ops.Bipolar(scale, scale if r.random() < 0.5 else np.ones(sets, np.float32))
        case "SignedBit":
            return ops.SignedBit(scale, zero)
        case "Trunc":
            divisor = np.full(sets, 2.0 ** int(r.integers(-2, 5)), np.float32)
            return ops.Trunc(scale, zero, divisor, zero / divisor, scale, codes if r.random() < 0.7 else None, mode)
        case "MultiThreshold":
            thresholds = np.stack([real(r, sets, np.float32, size) for _ in range(int(r.integers(1, 40)))])
            thresholds += np.float32(np.median(x) if r.random() < 0.5 and np.isfinite(np.median(x)) else 0)
            return ops.MultiThreshold(
                thresholds, float(pick(r, 1.0, -0.5, r.normal())), float(pick(r, 0.0, r.normal()))
            )
        case "QuantizeLinear":
            dtype = str(pick(r, "int8", "uint8", "int16"))
            info = np.iinfo(dtype)
            type_ = IntType(int(info.min), int(info.max))
            both = {"scale": scale.astype(pick(r, np.float32, np.float16)), "zero_point": whole(r, sets, -9, 9)}
            return ops.QuantizeLinear(**both, type=type_, dtype=dtype, mode=pick(r, Rounding.ROUND, Rounding.DOWN))
        case "Requantize":
            convention = pick(r, *ops.Convention)
            shift = np.maximum(whole(r, sets, 26, 34) + int(np.log2(size)), int(r.integers(0, 4)))
            multiplier = whole(r, sets, 1 << 30, (1 << 31) - 1) * pick(r, 1, 1, -1)
            if convention != ops.Convention.DOUBLE:
                less = int(r.integers(0, 31))
                multiplier, shift = multiplier >> less, np.maximum(shift - less, 0)
            add = whole(r, sets, -5000, 5000)
            return ops.Requantize(convention, multiplier, add, shift, whole(r, sets, -9, 9), codes, "int32")
        case _:
            return minifloat(r, scale, size, mode)


def minifloat(r: Random, scale: Array, size: float, mode: Rounding) -> ops.FloatQuant:
    exponent, mantissa = int(r.integers(1, 5)), int(r.integers(0, 5))
    bias = int(pick(r, (1 << (exponent - 1)) - 1, 0, r.integers(-90, 90)))
    largest = (2 - 2.0**-mantissa) * 2.0 ** ((1 << exponent) - 1 - bias)
    if r.random() < 0.5:
        largest -= int(r.integers(0, 5)) * 2.0 ** (1 - bias - mantissa) if largest > 6 * 2.0 ** (1 - bias) else 0
    scale = (scale / size * 10 ** r.uniform(0, 2) / largest * size).astype(np.float32)
    return ops.FloatQuant(np.clip(scale, 1e-30, 1e30), mantissa, 1 - bias, largest, True, mode)


@np.errstate(all="ignore")
def chain(r: Random, source: str, end: str, most: int) -> StepFunction:
    """A random function of one to four sets, its quantizer of kind `end`, intervals of at most `most` inputs."""
    sets = int(r.integers(1, 5))
    decode_ = decoding(r, source, sets)
    lo, hi = interval(r, decode_, sets, most)
    operations: list[ops.Elementwise] = []
    x = decode(decode_, (lo + np.linspace(0, 1, 50)[:, None] ** 2 * (hi - lo)).astype(np.int64))
    for _ in range(int(r.integers(0, 6))):
        op = middle(r, x, sets)
        after = apply(op, x)
        if r.random() < 0.9 and len(np.unique(x)) > 3 and len(np.unique(after)) <= 3:
            continue
        operations.append(op)
        x = after
    if end == "Requantize" and x.dtype.kind == "f":
        operations.append(quantizer(r, "QuantizeLinear", sets, x))
        x = apply(operations[-1], x)
    tries = 1 if r.random() < 0.1 else 30
    last = quantizer(r, end, sets, x)
    while tries and len(np.unique(quantize(last, x)[:, 0])) < 2:
        last, tries = quantizer(r, end, sets, x), tries - 1
    type_ = IntType(int(lo.min()), int(hi.max()))
    return StepFunction("f", decode_, tuple(operations), last, np.arange(sets), lo, hi, type_, code_type(last))
