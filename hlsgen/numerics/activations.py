"""Activation functions: the real function, correctly rounded to the dtype of its argument.

Libraries disagree in the last places (by up to 5 units in float32, and from one CPU to the next). The correctly
rounded result is the one definition that everybody can reproduce. Values are computed in float64 and rounded. If
the float64 result is too close to a rounding boundary to be sure (Ziv's test), they are computed again with at
least 60 decimal digits. LeakyRelu, HardSigmoid, HardSwish and the rounding functions are evaluated operation by
operation in the dtype, as ONNX defines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hlsgen.numerics.fixed import Array

#: Decimal digits computed in addition to the arguments' digits.
_GUARD = 60
#: A generous bound on the relative error of float64 evaluations; the tail of Gelu has the largest error.
_TRUST = 2.0**-40
#: For arguments of at least this magnitude, Gelu is below all float64 numbers, or the argument itself.
_SATURATED = 42
#: Smallest finite number of all float types, and the smallest number above 0.
_LOWEST, _TINY = float(np.finfo(np.float64).min), 5e-324
#: Largest number of bits of a power that is computed exactly.
_MAX_POWER_BITS = 1 << 17

Exact = Decimal | Fraction


@dataclass(frozen=True)
class Smooth:
    """A real function: in float64, in decimal, and the arguments where its direction or domain changes.

    At infinities it has its limit. `exact` works with the precision of the current context. `turns` is () if the
    function never turns.
    """

    fast: Callable[[Array, float, float], Array]
    exact: Callable[[Decimal, Decimal, Decimal], Exact]
    turns: tuple[float, ...]


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Extend a function of Python floats to arrays."""
    return lambda x: np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


_erfc, _erf = _each(math.erfc), _each(math.erf)


def _erf_decimal(x: Decimal) -> Decimal:
    """erf by its power series."""
    if abs(x) > _SATURATED:
        return Decimal(1).copy_sign(x)
    with localcontext() as context:
        context.prec += int(x * x)  # the series cancels as much as e^(x^2)
        term, total, n = x, x, 0
        while abs(term) > abs(x).scaleb(-context.prec):
            n += 1
            term = -term * x * x / n
            total += term / (2 * n + 1)
        return 2 * total / _pi(context.prec).sqrt()


@lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """Pi to `digits` digits, by Machin's formula."""

    def arctan_inverse(n: int) -> Decimal:
        term = total = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -(digits + 5):
            term = -term / (n * n)
            k += 2
            total += term / k
        return total

    with localcontext() as context:
        context.prec = digits + 5
        return 16 * arctan_inverse(5) - 4 * arctan_inverse(239)


def _gelu(x: Array, _a: float, _b: float) -> Array:
    return np.where(x == -np.inf, -0.0, 0.5 * x * _erfc(-x / math.sqrt(2)))


def _gelu_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    if abs(x) > _SATURATED:
        return x if x > 0 else Decimal(-1).scaleb(-400)
    with localcontext() as context:
        context.prec += int(x * x)
        return x * (1 + _erf_decimal(x / Decimal(2).sqrt())) / 2


def _gelu_tanh(x: Array, _a: float, _b: float) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    # 0.5 x (1 + tanh u) = x / (1 + e^(-2u)): no cancellation.
    return np.where(x == -np.inf, -0.0, x / (1 + np.exp(-2 * inner)))


def _gelu_tanh_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    inner = (2 / _pi(getcontext().prec)).sqrt() * (x + Decimal("0.044715") * x * x * x)
    return x / (1 + (-2 * inner).exp())


def _sigmoid_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    return 1 / (1 + (-x).exp())


def _tanh_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    e = (-2 * abs(x)).exp()
    return ((1 - e) / (1 + e)).copy_sign(x)


def _elu_decimal(x: Decimal, a: Decimal, _b: Decimal) -> Decimal:
    """Elu; arguments below -400 count as -400, which is nearly -a, but not -a."""
    if x >= 0:
        return x
    with localcontext() as context:
        context.prec += 200
        return a * (max(x, Decimal(-400)).exp() - 1)


def _celu(x: Array, a: float, _b: float) -> Array:
    return np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0) / a))


def _celu_decimal(x: Decimal, a: Decimal, b: Decimal) -> Decimal:
    return x if x >= 0 else _elu_decimal(x / a, a, b)


def _mish(x: Array, _a: float, _b: float) -> Array:
    # tanh(log(1 + w)) = n / (n + 2) with n = w (w + 2) avoids cancellation. Above 30 it is 1.
    w = np.exp(np.minimum(x, 30))
    n = w * (w + 2)
    return np.where(x == -np.inf, -0.0, x * (n / (n + 2)))


def _mish_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    if x > 0:
        e = (-x).exp()
        return x * (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
    w = x.exp()
    n = w * (w + 2)
    return x * n / (n + 2)


def _selu(x: Array, a: float, b: float) -> Array:
    if b == 0:
        return np.where(np.isnan(x), x, 0.0)
    return np.asarray(b * np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))))


def _selu_decimal(x: Decimal, a: Decimal, b: Decimal) -> Decimal:
    return b * x if x >= 0 else _elu_decimal(x, a * b, b)


def _softplus_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec += int(min(abs(x), Decimal(1000)))
        return max(x, Decimal(0)) + (1 + (-abs(x)).exp()).ln()


def _pow(x: Array, a: float, _b: float) -> Array:
    """x^a; NaN for a negative (also infinite) x unless a is an integer."""
    return np.where((x < 0) & (a != int(a)), np.nan, np.power(x, a))


def _pow_decimal(x: Decimal, a: Decimal, _b: Decimal) -> Exact:
    """x^a, as a fraction if it is rational and not too long, so that rounding ties are recognized."""
    root: Fraction | None = Fraction(x)
    power, roots = a.as_integer_ratio()
    while root is not None and roots > 1:
        root, roots = _exact_root(root), roots // 2
    if root is not None:
        bits = root.numerator.bit_length() + root.denominator.bit_length()
        if bits * abs(power) <= _MAX_POWER_BITS:
            return root**power
    return abs(x) ** a if x > 0 or power % 2 == 0 else -(abs(x) ** a)


def _exact_root(x: Fraction) -> Fraction | None:
    """The square root of x > 0 if it is rational, else None."""
    root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    return root if root * root == x else None


SMOOTH: dict[str, Smooth] = {
    "Exp": Smooth(lambda x, a, b: np.exp(x), lambda x, a, b: x.exp(), ()),
    "Log": Smooth(lambda x, a, b: np.log(x), lambda x, a, b: x.ln(), (0.0,)),
    "Tanh": Smooth(lambda x, a, b: np.tanh(x), _tanh_decimal, ()),
    "Sigmoid": Smooth(lambda x, a, b: 1 / (1 + np.exp(-x)), _sigmoid_decimal, ()),
    "Erf": Smooth(lambda x, a, b: _erf(x), lambda x, a, b: _erf_decimal(x), ()),
    "Gelu": Smooth(_gelu, _gelu_decimal, (-0.75179152469356446,)),
    "GeluTanh": Smooth(_gelu_tanh, _gelu_tanh_decimal, (-0.75246142207101626,)),
    "Elu": Smooth(lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), _elu_decimal, ()),
    "Selu": Smooth(_selu, _selu_decimal, ()),
    "Celu": Smooth(_celu, _celu_decimal, ()),
    "Mish": Smooth(_mish, _mish_decimal, (-1.1924312145154952,)),
    "Softplus": Smooth(lambda x, a, b: np.logaddexp(0, x), _softplus_decimal, ()),
    "Softsign": Smooth(
        lambda x, a, b: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
        lambda x, a, b: Fraction(x) / (1 + abs(Fraction(x))),
        (),
    ),
    # Both zeros form a separate piece: their reciprocals are the two infinities.
    "Reciprocal": Smooth(lambda x, a, b: 1 / x, lambda x, a, b: 1 / Fraction(x), (0.0, _TINY)),
    "Pow": Smooth(_pow, _pow_decimal, (0.0, _TINY)),
}

#: Functions evaluated in the dtype, operation by operation, with their turning points, or None if these are not known.
LITERAL: dict[str, tuple[float, ...] | None] = {
    "Abs": (0.0,),
    "Sqrt": (0.0,),
    "LeakyRelu": (),
    "HardSigmoid": (),
    "HardSwish": None,
    "Ceil": (),
    "Floor": (),
    "Round": (),
    "Sign": (),
}

KINDS = frozenset(SMOOTH) | frozenset(LITERAL)
#: Functions that are defined for integers as well.
OF_INTEGERS = frozenset(["Abs", "Sign"])


def evaluate(kind: str, x: Array, alpha: float, beta: float) -> Array:
    """The activation of every element, in x's dtype (float16, float32 or float64)."""
    if kind in LITERAL:
        return _literal(kind, x, alpha, beta)
    function = SMOOTH[kind]
    double = function.fast(x.astype(np.float64), alpha, beta)
    result = np.asarray(double.astype(x.dtype))
    unsure = np.isfinite(double) & np.isfinite(x) & (double != 0) & _near_boundary(double, x.dtype)
    if unsure.any():
        values, inverse = np.unique(x[unsure], return_inverse=True)
        exact = np.asarray([_evaluate_exactly(function, float(v), alpha, beta, x.dtype) for v in values], x.dtype)
        result[unsure] = exact[inverse]
    return result


def turning_points(kind: str, alpha: float, beta: float, dtype: np.dtype[Any]) -> tuple[float, ...] | None:
    """Arguments T between which the function is monotone in arithmetic of that dtype, or None if not known.

    The function is monotone on all x of one side of each x >= T; infinities are arguments as well. A correctly rounded
    monotone function is monotone; a composition of monotone operations is, too.
    """
    with np.errstate(over="ignore"):
        a, b = (dtype.type(v) if dtype.kind == "f" else v for v in (alpha, beta))
    match kind:
        case "Abs" if dtype.kind == "i":
            return (np.iinfo(dtype).min + 1, 0.0)  # the lowest integer has no opposite
        case "LeakyRelu" if a == 0:
            return (_LOWEST,)  # 0 times infinity
        case "LeakyRelu" | "Elu" | "Selu" if alpha < 0:
            return (0.0,)
        case "Celu" if not alpha > 0:
            return None
        case "HardSigmoid" if not np.isfinite([a, b]).all():
            return None
        case "HardSigmoid" if a == 0:
            return _LOWEST, math.inf
        case _:
            return LITERAL[kind] if kind in LITERAL else SMOOTH[kind].turns


def _literal(kind: str, x: Array, alpha: float, beta: float) -> Array:
    a, b, zero, unit = (x.dtype.type(v) for v in (alpha, beta, 0, 1))
    match kind:
        case "Abs":
            return np.abs(x)
        case "Sqrt":
            return np.asarray(np.sqrt(x))
        case "LeakyRelu":
            return np.where(x >= 0, x, a * x)
        case "HardSigmoid":
            return np.asarray(np.clip(a * x + b, zero, unit))
        case "HardSwish":
            return np.asarray(x * np.clip(x * x.dtype.type(1 / 6) + x.dtype.type(0.5), zero, unit))
        case "Ceil":
            return np.asarray(np.ceil(x))
        case "Floor":
            return np.asarray(np.floor(x))
        case "Round":
            return np.asarray(np.round(x))
        case "Sign":
            return np.asarray(np.sign(x))
        case _:
            raise AssertionError(f"LITERAL has {kind}, _literal has not")


def _near_boundary(double: Array, dtype: np.dtype[np.floating]) -> Array:
    """True if values within the trusted error of `double` round differently."""
    if dtype == np.float64:
        return np.ones(double.shape, np.bool_)
    with np.errstate(over="ignore"):
        return np.asarray((double * (1 - _TRUST)).astype(dtype) != (double * (1 + _TRUST)).astype(dtype))


def _evaluate_exactly(function: Smooth, x: float, alpha: float, beta: float, dtype: np.dtype[np.floating]) -> Array:
    """The exact value, rounded once.

    It is rounded to odd in float64 first, which does not change the result in narrower types. The number of digits
    makes products of the arguments exact, and differences of second order in x visible: m / 2^j has 0.7 j digits.
    """
    arguments = [Decimal(v) for v in (x, alpha, beta)]
    with localcontext() as context:
        context.prec = _GUARD + sum(len(v.as_tuple().digits) for v in arguments)
        value = function.exact(*arguments)
    try:
        double = float(value)
    except OverflowError:
        double = math.copysign(math.inf, value)
    if dtype != np.float64 and math.isfinite(double) and not np.float64(double).view(np.int64) & 1:
        exact = Fraction(value)
        if Fraction(double) != exact:
            double = math.nextafter(double, math.inf if exact > Fraction(double) else -math.inf)
    return np.asarray(double, dtype)
