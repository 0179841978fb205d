"""Elementwise operations and quantizers: frozen dataclasses over raw numbers.

Constants broadcast against their tensor by numpy's rules, and have its rank. Operations with several values
per element (thresholds, lookup tables) have these on the first axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import get_args

from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.numerics.quantized_add import Parameters


class BinaryKind(Enum):
    """An elementwise operation on two computed tensors, in their common dtype."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MAX = "max"
    MIN = "min"


# --------------------------------------------------------------------------- elementwise operations


@dataclass(frozen=True, eq=False)
class Mul:
    """x * value, in the dtype of both."""

    value: Array


@dataclass(frozen=True, eq=False)
class Add:
    """x + value, in the dtype of both; integers wrap."""

    value: Array


@dataclass(frozen=True, eq=False)
class Fma:
    """fl(x * factor + value), float32 with one rounding."""

    factor: Array
    value: Array


@dataclass(frozen=True, eq=False)
class Div:
    """x / value, correctly rounded."""

    value: Array


@dataclass(frozen=True)
class Cast:
    """Conversion to a numpy dtype, to the nearest value, ties to even; integers wrap."""

    dtype: str


@dataclass(frozen=True, eq=False)
class Dequantize:
    """ONNX DequantizeLinear: fl(fl(x - zero_point) * scale) in scale's dtype; zero_point int64."""

    scale: Array
    zero_point: Array


@dataclass(frozen=True)
class Activation:
    """A function of x alone, named by its ONNX operator, in x's dtype; see `hlsgen.numerics.activations`."""

    kind: str
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True, eq=False)
class Slope:
    """x >= 0 ? x : x * value: LeakyRelu whose slope differs from channel to channel (PRelu)."""

    value: Array


@dataclass(frozen=True, eq=False)
class Max:
    """maximum(x, value): Relu, lower bound of Clip."""

    value: Array


@dataclass(frozen=True, eq=False)
class Min:
    """minimum(x, value): upper bound of Clip."""

    value: Array


class Relation(Enum):
    """The relations that a `Compare` can test."""

    GREATER = "greater"
    LESS = "less"
    NOT_LESS = "not less"
    NOT_GREATER = "not greater"
    EQUAL = "equal"


@dataclass(frozen=True, eq=False)
class Compare:
    """x relation value, a boolean; false for NaN."""

    kind: Relation
    value: Array


@dataclass(frozen=True, eq=False)
class Constant:
    """The value, for any x."""

    value: Array


@dataclass(frozen=True, eq=False)
class Lookup:
    """values[x] along the first axis of `values`, x an integer of any numeric dtype.

    An x beyond the ends of the lookup table counts as the nearest end; NaN counts as 0.
    """

    values: Array


@dataclass(frozen=True, eq=False)
class BinaryOf:
    """`kind` applied to the results of two chains of operations on the same x, such as x * Sigmoid(x)."""

    kind: BinaryKind
    ways: tuple[tuple[Elementwise, ...], ...]


@dataclass(frozen=True, eq=False)
class Where:
    """Three chains of operations on the same x: the second where the first gives true, else the third."""

    ways: tuple[tuple[Elementwise, ...], ...]


# --------------------------------------------------------------------------- quantizers


class Convention(Enum):
    """How an integer x * multiplier is scaled back by `shift` bits; the value is its name in files.

    FLOOR  (x * multiplier + add) >> shift: Deeploy's RequantShift (add includes the half).
    SINGLE (x * multiplier + 2^(shift - 1)) >> shift: TOSA, TFLite with single rounding.
    DOUBLE gemmlowp, TFLite: x * multiplier / 2^31 to the nearest, ties up; then / 2^(shift - 31) to
           the nearest, ties away from zero (shift >= 31); below 31, x is shifted left first.
    FLOAT64 LiteRT's reference FULLY_CONNECTED: fl64(fl64(x + add) * (multiplier / 2^shift)) to the nearest,
           ties away from zero; the multiplier has at most 53 bits, so that the quotient is a float64.
    """

    FLOOR = "floor"
    SINGLE = "single"
    DOUBLE = "double"
    FLOAT64 = "float64"


@dataclass(frozen=True, eq=False)
class IntQuant:
    """QONNX IntQuant (Quant): code = round(clamp(x / scale + zero_point)).

    `scale` and `zero_point` keep their dtype. By numpy's promotion it decides whether the division is done in
    float32 or float64, as in the QONNX reference. NaN gives the lowest code.
    """

    scale: Array
    zero_point: Array
    type: IntType
    mode: Rounding


@dataclass(frozen=True, eq=False)
class Bipolar:
    """x / divisor >= 0 ? +scale : -scale; code 1 or 0. NaN gives 0.

    The divisor is 1 for BipolarQuant and the scale for IntQuant of one signed bit, where a tiny
    negative x can vanish in the float32 division.
    """

    scale: Array
    divisor: Array


@dataclass(frozen=True, eq=False)
class SignedBit:
    """IntQuant of 1 signed bit with a zero point: y = x / scale + zp; code +1 if y >= 0 else -1."""

    scale: Array
    zero_point: Array


@dataclass(frozen=True, eq=False)
class Trunc:
    """QONNX Trunc: code = round(clamp(round_half_even(x / scale + zp) / divisor)).

    `type` is None for version 1, which does not clamp. `out_zero_point` and `out_scale` decode the codes.
    """

    scale: Array
    zero_point: Array
    divisor: Array
    out_zero_point: Array
    out_scale: Array
    type: IntType | None
    mode: Rounding


@dataclass(frozen=True, eq=False)
class MultiThreshold:
    """code = count over n of (x >= thresholds[n]); real = out_scale * code + out_bias."""

    thresholds: Array
    out_scale: float
    out_bias: float


@dataclass(frozen=True, eq=False)
class QuantizeLinear:
    """ONNX QuantizeLinear: code = saturate(round(fl(x / scale)) + zero_point), half to even.

    zero_point int64; `dtype` is the ONNX type of the codes, `type` the interval of the codes (a following Clip
    narrows it). NaN gives the lowest code. A Cast to integers is the same with mode DOWN.
    """

    scale: Array
    zero_point: Array
    type: IntType
    dtype: str
    mode: Rounding = Rounding.ROUND


@dataclass(frozen=True, eq=False)
class Requantize:
    """Integer rescaling: code = clamp(zero_point + rounded(x * multiplier, shift)), see `Convention`.

    multiplier, add, shift, zero_point int64 arrays.
    """

    convention: Convention
    multiplier: Array
    add: Array
    shift: Array
    zero_point: Array
    type: IntType
    dtype: str


@dataclass(frozen=True, eq=False)
class FloatQuant:
    """QONNX FloatQuant: code = real / (scale * 2^step), a minifloat as an integer.

    `step`: exponent of the smallest subnormal. Values are rounded to `mantissa` bits after the leading one with
    `mode` and clamped to +-`largest` (a multiple of 2^step). `minimum_exponent` is the least exponent of normal
    numbers.
    """

    scale: Array
    mantissa: int
    minimum_exponent: int
    largest: float
    signed: bool
    mode: Rounding

    @property
    def step(self) -> int:
        return self.minimum_exponent - self.mantissa

    @property
    def type(self) -> IntType:
        top = int(self.largest * 2.0**-self.step)
        return IntType(-top if self.signed else 0, top)


class PairOp(Enum):
    """The operation of a `Pair`."""

    FIXED = "fixed"
    ADD = "add"
    MUL = "mul"


@dataclass(frozen=True)
class Pair:
    """Maps two 8-bit operands, packed as a + 256 * b (each in two's complement, or unsigned), to a code.

    FIXED: `hlsgen.numerics.quantized_add` with `fixed`. ADD, MUL: onnxruntime's QLinearAdd, QLinearMul with
    `scales` and `zeros` of a, b and the result.
    """

    kind: PairOp
    type: IntType
    dtype: str
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    fixed: Parameters | None = None


@dataclass(frozen=True, eq=False)
class FixedAdd:
    """`hlsgen.numerics.quantized_add` of an int8 tensor and a constant int8 operand `other`.

    `first`: the tensor is operand a, the constant operand b.
    """

    other: Array
    first: bool
    fixed: Parameters

    @property
    def type(self) -> IntType:
        return IntType(-128, 127)

    @property
    def dtype(self) -> str:
        return "int8"


class IntegerKind(Enum):
    """The function of an `IntegerActivation`, by the operator's name in files.

    GELU       parameters b, one: d = min(|x|, -b) + b, L = sign(x) * (one - d * d), then x * ((one + L) >> 1).
    HARDSWISH  parameters three, six, one_over_six: x * one_over_six * min(max(x + three, 0), six).
    """

    GELU = "iGELU"
    HARDSWISH = "iHardswish"


@dataclass(frozen=True)
class IntegerActivation:
    """An exact integer function of an integer; `>>` rounds down. `type` holds all its results."""

    kind: IntegerKind
    parameters: tuple[int, ...]
    type: IntType
    dtype: str


@dataclass(frozen=True, eq=False)
class IntegerRatio:
    """code = (x * multiplier + add) / divisor of integers, exact, rounded down, limited to `type`.

    `mirrored`: computed from |x * multiplier| and given its sign, so rounding is symmetric about 0.
    `wraps`: results outside `type` wrap. multiplier, add, divisor int64 arrays, divisor > 0.
    """

    multiplier: Array
    add: Array
    divisor: Array
    type: IntType
    dtype: str
    mirrored: bool = False
    wraps: bool = False


Float = (
    Mul
    | Add
    | Fma
    | Div
    | Max
    | Min
    | Cast
    | Dequantize
    | Activation
    | Slope
    | Compare
    | Constant
    | Lookup
    | BinaryOf
    | Where
)
Quantizer = (
    IntQuant
    | Bipolar
    | SignedBit
    | Trunc
    | MultiThreshold
    | QuantizeLinear
    | Requantize
    | FloatQuant
    | Pair
    | FixedAdd
    | IntegerActivation
    | IntegerRatio
)
Elementwise = Float | Quantizer

#: The classes in these unions, for isinstance.
FLOATS = get_args(Float)
QUANTIZERS = get_args(Quantizer)
