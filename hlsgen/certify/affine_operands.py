"""Proves functions of two tensors with too many pairs of codes to evaluate, if both operands are exact lines.

An operand is an exact line if every value before the join is code * slope + start, without rounding: the dtype holds
each of them. Then the join rounds at most once, and its result is a function of one integer, which the join sends. This
function is proven like any other. If an operation is not listed here, or may round, the operand is no line and the
proof fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.certify.netlist_reader import broken
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, IntegerEncoding, ThresholdCount
from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.evaluate import apply, constants, decode
from hlsgen.ir.ops import Activation, Add, BinaryKind, Cast, Dequantize, Div, Elementwise, Fma, Max, Min, Mul
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType

#: Maximum bits of a sum, and significant bits of a scale, with which decoding is rounded once.
_SUM_BITS, _SCALE_BITS = 53, 48
_SINGLE = np.dtype(np.float32)


@dataclass(frozen=True)
class AffineOperand:
    """slope * code + start for the codes lo..hi, in a dtype that holds all these values."""

    slope: Fraction
    start: Fraction
    lo: int
    hi: int
    dtype: np.dtype[Any]

    def then(
        self, dtype: np.dtype[Any], factor: Fraction = Fraction(1), add: Fraction = Fraction(0)
    ) -> AffineOperand | None:
        """x * factor + add in a dtype, or None if the dtype does not hold all of these values exactly."""
        operand = AffineOperand(self.slope * factor, self.start * factor + add, self.lo, self.hi, dtype)
        return operand if operand._is_exact() else None

    def _is_exact(self) -> bool:
        """True if the dtype holds every value: the steps are multiples of its unit, and both ends are in range."""
        ends = (self.slope * self.lo + self.start, self.slope * self.hi + self.start)
        unit = math.lcm(self.slope.denominator, self.start.denominator)
        if self.dtype.kind in "iu":
            info = np.iinfo(self.dtype)
            return unit == 1 and min(ends) >= info.min and max(ends) <= info.max
        # Multiples of 1 / unit, a power of two of the dtype, that fit its mantissa.
        float_info = np.finfo(self.dtype)
        largest = max(abs(end) for end in ends)
        has_unit = not unit & (unit - 1) and unit <= 1 << (float_info.nmant - int(float_info.minexp))
        return has_unit and largest * unit <= 1 << (float_info.nmant + 1) and largest <= int(float_info.max)


def as_function_of_join(f: BinaryFunction, operation: str, constants_: tuple[int, int]) -> StepFunction:
    """A BinaryMap as a function of the number t that the join sends. Raises HG055 if it is not such a function.

    operation "sum": t = a * FA + b * FB; "product": t = (a - ZA) * (b - ZB). constants_: (FA, FB) or (ZA, ZB).
    """
    if f.kind not in (BinaryKind.ADD, BinaryKind.SUB) if operation == "sum" else f.kind is not BinaryKind.MUL:
        raise _not_certified(f, f"a {f.kind.value} is not the sum or product of the hardware")
    zeros = np.array([0.0, -0.0], np.float32)
    if any(isinstance(op, Activation) and len(np.unique(apply(op, zeros))) > 1 for op in f.ops):
        raise _not_certified(f, "a later operation distinguishes -0.0 from 0.0")
    units, offsets, ends = [], [], []
    dtypes = set()
    for s in range(f.sets):
        of_set = f.take(np.array([s]))
        lines = [
            _line(of_set.sources[i], of_set.branches[i], int(of_set.lo[i, 0]), int(of_set.hi[i, 0])) for i in (0, 1)
        ]
        a, b = lines
        if a is None or b is None or a.dtype != b.dtype or (a.dtype.kind == "f" and a.dtype != _SINGLE):
            raise _not_certified(f, "an operand is rounded before the join")
        if f.kind is BinaryKind.SUB:
            b = AffineOperand(-b.slope, -b.start, b.lo, b.hi, b.dtype)
        unit, offset = (_sum if operation == "sum" else _product)(f, a, b, constants_)
        units.append(unit)
        offsets.append(offset)
        ends.append(interval(operation, constants_, (a.lo, a.hi), (b.lo, b.hi)))
        dtypes.add(a.dtype)
    if len(dtypes) > 1:
        raise _not_certified(f, "its channels are of different types")
    lo, hi = np.array(ends, np.int64).T
    meaning = _meaning(f, dtypes.pop(), units, offsets, max(abs(x) for pair in ends for x in pair))
    type_ = IntType(int(lo.min()), int(hi.max()))
    return StepFunction(f.name, meaning, f.ops, f.quantizer, f.index, lo, hi, type_, f.output_type)


def interval(operation: str, constants_: tuple[int, int], a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """(lowest, highest) t for operands in these intervals. They are at corners, because t is linear in each operand."""
    first, second = constants_
    if operation == "sum":
        corners = [first * x + second * y for x in a for y in b]
    else:
        corners = [(x - first) * (y - second) for x in a for y in b]
    return min(corners), max(corners)


def _not_certified(f: BinaryFunction, why: str) -> Exception:
    return broken(f.name, f"cannot be certified: its {f.pairs} pairs of codes are too many to try, and {why}.")


def _sum(f: BinaryFunction, a: AffineOperand, b: AffineOperand, factors: tuple[int, int]) -> tuple[Fraction, Fraction]:
    """(unit, offset) with a + b = (t + offset) * unit."""
    parts = zip((a.slope, b.slope), factors, strict=True)
    unit = next((slope / factor for slope, factor in parts if factor), Fraction(0))
    if not unit or (a.slope, b.slope) != (unit * factors[0], unit * factors[1]):
        raise broken(
            f.name,
            f"the operands have the factors {float(a.slope)} and {float(b.slope)} in the model, the factors of the "
            f"sum are {factors[0]} and {factors[1]}.",
        )
    return unit, (a.start + b.start) / unit


def _product(
    f: BinaryFunction, a: AffineOperand, b: AffineOperand, zeros: tuple[int, int]
) -> tuple[Fraction, Fraction]:
    if not a.slope or not b.slope or (a.start, b.start) != (-a.slope * zeros[0], -b.slope * zeros[1]):
        raise broken(f.name, f"the operands are 0 at other codes in the model than {zeros[0]} and {zeros[1]}.")
    return a.slope * b.slope, Fraction(0)


def _meaning(
    f: BinaryFunction, dtype: np.dtype[Any], units: list[Fraction], offsets: list[Fraction], max_t: int
) -> Encoding:
    """The Encoding that decodes t to (t + offset) * unit, rounded once."""
    if dtype.kind in "iu":
        if any(unit != 1 for unit in units):
            raise _not_certified(f, "its integers have a factor")
        return IntegerEncoding(dtype.name, np.array([int(offset) for offset in offsets], np.int64))
    denominator = math.lcm(*(offset.denominator for offset in offsets))
    integer_offsets = [int(offset * denominator) for offset in offsets]
    scale = [unit / denominator for unit in units]
    exact = all(Fraction(float(x)) == x and abs(x.numerator) < 1 << _SCALE_BITS and abs(x) > 2.0**-500 for x in scale)
    if not exact or (max_t * denominator + max(map(abs, integer_offsets))) >> _SUM_BITS:
        raise _not_certified(f, "its sums or scales have too many bits")
    return Accumulator(denominator, np.array(integer_offsets, np.int64), np.array([float(x) for x in scale]))


def _line(source: Encoding, ops: tuple[Elementwise, ...], lo: int, hi: int) -> AffineOperand | None:
    """The line of one operand of one set, or None if a value may round.

    The chain of operations is also evaluated at both ends, and must agree.
    """
    values = [value for item in (source, *ops) for value in constants(item).values()]
    if not all(np.isfinite(value).all() for value in values):
        return None
    line = _decoded(source, lo, hi)
    for op in ops:
        line = None if line is None else _applied(op, line)
    if line is None:
        return None
    codes = np.array([[lo], [hi]])
    x = decode(source, codes)
    for op in ops:
        x = apply(op, x)
    agrees = all(Fraction(v.item()) == line.slope * c + line.start for v, c in zip(x[:, 0], (lo, hi), strict=True))
    return line if agrees and x.dtype == line.dtype else None


def _number(value: Any) -> Fraction:
    return Fraction(np.asarray(value).reshape(-1)[0].item())


def _chain(x: AffineOperand | None, *steps: Callable[[AffineOperand], AffineOperand | None]) -> AffineOperand | None:
    for step in steps:
        x = None if x is None else step(x)
    return x


def _decoded(source: Encoding, lo: int, hi: int) -> AffineOperand | None:
    code = AffineOperand(Fraction(1), Fraction(0), lo, hi, _SINGLE)
    match source:
        case Affine(scale, zero):
            z, factor = _number(zero), _number(scale)
            return _chain(
                code, lambda x: x.then(_SINGLE), lambda x: x.then(_SINGLE, add=-z), lambda x: x.then(_SINGLE, factor)
            )
        case ThresholdCount(scale_, bias):
            factor, add = Fraction(float(np.float32(scale_))), Fraction(float(np.float32(bias)))
            return _chain(
                code, lambda x: x.then(_SINGLE), lambda x: x.then(_SINGLE, factor), lambda x: x.then(_SINGLE, add=add)
            )
        case Accumulator(multiplier, offset, scale):
            unit = _number(scale)
            return code.then(_SINGLE, unit * multiplier, unit * _number(offset))
        case Fixed(fraction):
            return code.then(_SINGLE, Fraction(2) ** -fraction)
        case IntegerEncoding(dtype, offset):
            return code.then(np.dtype(dtype), add=_number(offset))
        case _:
            return None


def _applied(op: Elementwise, x: AffineOperand) -> AffineOperand | None:
    match op:
        case Mul(value) if value.dtype == x.dtype:
            return x.then(x.dtype, _number(value))
        case Add(value) if value.dtype == x.dtype:
            return x.then(x.dtype, add=_number(value))
        case Div(value) if value.dtype == x.dtype and x.dtype.kind == "f" and value.all():
            return x.then(x.dtype, 1 / _number(value))
        case Fma(factor_, value):
            return x.then(_SINGLE, _number(factor_), _number(value))
        case Max(value) | Min(value) if value.dtype == x.dtype:
            ends = sorted((x.slope * x.lo + x.start, x.slope * x.hi + x.start))
            has_no_effect = _number(value) <= ends[0] if isinstance(op, Max) else _number(value) >= ends[1]
            return x if has_no_effect else None
        case Cast(dtype):
            return x.then(np.dtype(dtype))
        case Dequantize(scale, zero):
            z, factor = _number(zero), _number(scale)
            return _chain(
                x, lambda y: y.then(_SINGLE, add=-z), lambda y: y.then(_SINGLE, factor), lambda y: y.then(scale.dtype)
            )
        case _:
            return None
