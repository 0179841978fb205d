"""Activation functions: the real function, correctly rounded to the dtype of its argument.

Libraries disagree in the last places (by up to 5 units in float32, and from one CPU to the next), so
the one meaning that everybody can reproduce is taken. Values are computed in float64 and rounded;
where the float64 result is too close to a rounding boundary to be sure (Ziv's test), they are
computed again with 50 decimal digits. LeakyRelu, HardSigmoid, HardSwish and the rounding functions
are evaluated operation by operation in the dtype, as ONNX defines them.
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

#: Decimal digits beyond those that the arguments have.
_GUARD = 60
#: Relative error that float64 evaluations stay below, generously; the tail of Gelu has the largest.
_TRUST = 2.0**-40
#: Arguments from here on give a Gelu below all float64 numbers, or the argument itself.
_FAR = 42
#: Smallest finite number of all float types, and the smallest number above 0.
_LOWEST, _TINY = float(np.finfo(np.float64).min), 5e-324
#: Most bits of a power that is computed exactly.
_MAX_POWER_BITS = 1 << 17

Exact = Decimal | Fraction


@dataclass(frozen=True)
class Smooth:
    """A real function: in float64, in decimal, and where its direction or domain changes, () if nowhere.

    At infinities it has its limit. `exact` works with the precision of the current context.
    """

    fast: Callable[[Array, float, float], Array]
    exact: Callable[[Decimal, Decimal, Decimal], Exact]
    turns: tuple[float, ...]


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python floats over an array."""
    return lambda x: np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


_erfc, _erf = _each(math.erfc), _each(math.erf)


def _erf_decimal(x: Decimal) -> Decimal:
    """erf by its power series."""
    if abs(x) > _FAR:
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
    """Machin's formula."""

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
    if abs(x) > _FAR:
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
    """Below -400 it is as good as -a, but not -a."""
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
    # tanh(log(1 + w)) = n / (n + 2) with n = w (w + 2): no cancellation. Above 30 it is 1.
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
    """Of a negative number, also the infinite one, only whole powers."""
    return np.where((x < 0) & (a != int(a)), np.nan, np.power(x, a))


def _pow_decimal(x: Decimal, a: Decimal, _b: Decimal) -> Exact:
    """x^a; as a fraction where it is rational and not too long, so that ties are seen."""
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
    """The square root of x > 0, if it is rational."""
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
    # Both zeros are a piece of their own: their reciprocals are the two infinities.
    "Reciprocal": Smooth(lambda x, a, b: 1 / x, lambda x, a, b: 1 / Fraction(x), (0.0, _TINY)),
    "Pow": Smooth(_pow, _pow_decimal, (0.0, _TINY)),
}  # fmt: skip

#: Evaluated in the dtype, one operation after the other; None: its pieces are not known.
LITERAL: dict[str, tuple[float, ...] | None] = {
    "Abs": (0.0,), "Sqrt": (0.0,), "LeakyRelu": (), "HardSigmoid": (), "HardSwish": None,
    "Ceil": (), "Floor": (), "Round": (), "Sign": (),
}  # fmt: skip

KINDS = frozenset(SMOOTH) | frozenset(LITERAL)
#: Those that integers have as well.
OF_INTEGERS = frozenset(["Abs", "Sign"])


def evaluate(kind: str, x: Array, alpha: float, beta: float) -> Array:
    """The activation of every element, in x's dtype (float16, float32 or float64)."""
    if kind in LITERAL:
        return _literal(kind, x, alpha, beta)
    function = SMOOTH[kind]
    wide = function.fast(x.astype(np.float64), alpha, beta)
    result = np.asarray(wide.astype(x.dtype))
    unsure = np.isfinite(wide) & np.isfinite(x) & (wide != 0) & _near_boundary(wide, x.dtype)
    if unsure.any():
        values, where = np.unique(x[unsure], return_inverse=True)
        exact = np.asarray([_rounded(function, float(v), alpha, beta, x.dtype) for v in values], x.dtype)
        result[unsure] = exact[where]
    return result


def turning_points(kind: str, alpha: float, beta: float, dtype: np.dtype[Any]) -> tuple[float, ...] | None:
    """Arguments T between which the function is monotone in arithmetic of that dtype; None if not known.

    It is so on all x of one side of each x >= T; infinities are arguments as well. A correctly rounded
    monotone function is monotone. So is a composition of monotone operations.
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
    a, b, zero, one = (x.dtype.type(v) for v in (alpha, beta, 0, 1))
    match kind:
        case "Abs":
            return np.abs(x)
        case "Sqrt":
            return np.asarray(np.sqrt(x))
        case "LeakyRelu":
            return np.where(x >= 0, x, a * x)
        case "HardSigmoid":
            return np.asarray(np.clip(a * x + b, zero, one))
        case "HardSwish":
            return np.asarray(x * np.clip(x * x.dtype.type(1 / 6) + x.dtype.type(0.5), zero, one))
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


def _near_boundary(wide: Array, dtype: np.dtype[np.floating]) -> Array:
    """Whether values within the trusted error of `wide` round differently."""
    if dtype == np.float64:
        return np.ones(wide.shape, np.bool_)
    with np.errstate(over="ignore"):
        return np.asarray((wide * (1 - _TRUST)).astype(dtype) != (wide * (1 + _TRUST)).astype(dtype))


def _rounded(function: Smooth, x: float, alpha: float, beta: float, dtype: np.dtype[np.floating]) -> Array:
    """The exact value, rounded once (to odd in float64 first, which is innocuous for narrower ones).

    So many digits that products of the arguments are exact, and differences of second order in x are seen:
    m / 2^j has 0.7 j digits.
    """
    arguments = [Decimal(v) for v in (x, alpha, beta)]
    with localcontext() as context:
        context.prec = _GUARD + sum(len(v.as_tuple().digits) for v in arguments)
        value = function.exact(*arguments)
    try:
        near = float(value)
    except OverflowError:
        near = math.copysign(math.inf, value)
    if dtype != np.float64 and math.isfinite(near) and not np.float64(near).view(np.int64) & 1:
        exact = Fraction(value)
        if Fraction(near) != exact:
            near = math.nextafter(near, math.inf if exact > Fraction(near) else -math.inf)
    return np.asarray(near, dtype)
