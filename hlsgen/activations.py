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
from decimal import Decimal, localcontext

import numpy as np

from hlsgen.fixed import Array

_DIGITS = 50
#: Relative error that float64 library functions are trusted to stay below, generously.
_TRUST = 2.0**-44


@dataclass(frozen=True)
class Smooth:
    """A real function: in float64, in decimal, and where its direction or domain changes."""

    fast: Callable[[Array, float, float], Array]
    exact: Callable[[Decimal, Decimal, Decimal], Decimal]
    turns: tuple[float, ...] = ()


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python floats over an array."""
    return lambda x: np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


_erfc, _erf = _each(math.erfc), _each(math.erf)


def _erf_decimal(x: Decimal) -> Decimal:
    """erf by its power series (absolute error far below 10^-40 for |x| < 30)."""
    if abs(x) > 30:
        return Decimal(1).copy_sign(x)
    with localcontext() as context:
        context.prec = 50 + int(x * x)  # the series cancels as much as e^(x^2)
        term, total, n = x, x, 0
        while abs(term) > Decimal(10) ** -(context.prec + 5):
            n += 1
            term = -term * x * x / n
            total += term / (2 * n + 1)
        return 2 * total / _pi(context.prec).sqrt()


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

    return 16 * arctan_inverse(5) - 4 * arctan_inverse(239)


def _gelu_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = 60 + int(x * x)
        return x * (1 + _erf_decimal(x / Decimal(2).sqrt())) / 2


def _gelu_tanh(x: Array, _a: float, _b: float) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    # 0.5 x (1 + tanh u) = x / (1 + e^(-2u)): no cancellation.
    return np.asarray(x / (1 + np.exp(-2 * inner)))


def _gelu_tanh_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    inner = (2 / _pi(_DIGITS)).sqrt() * (x + Decimal("0.044715") * x * x * x)
    return x / (1 + (-2 * inner).exp())


def _sigmoid_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    return 1 / (1 + (-x).exp())


def _tanh_decimal(x: Decimal, _a: Decimal, _b: Decimal) -> Decimal:
    e = (-2 * abs(x)).exp()
    return ((1 - e) / (1 + e)).copy_sign(x)


def _elu_decimal(x: Decimal, a: Decimal, _b: Decimal) -> Decimal:
    return x if x >= 0 else a * (x.exp() - 1)


def _selu_decimal(x: Decimal, a: Decimal, b: Decimal) -> Decimal:
    return b * (x if x >= 0 else a * (x.exp() - 1))


def _pow_decimal(x: Decimal, a: Decimal, _b: Decimal) -> Decimal:
    if x == 0:
        return Decimal(1 if a == 0 else 0)
    return x**a if x > 0 or a != int(a) else (-x) ** a * (-1) ** (int(a) % 2)


SMOOTH: dict[str, Smooth] = {
    "Exp": Smooth(lambda x, a, b: np.exp(x), lambda x, a, b: x.exp()),
    "Log": Smooth(lambda x, a, b: np.log(x), lambda x, a, b: x.ln(), (0.0,)),
    "Tanh": Smooth(lambda x, a, b: np.tanh(x), _tanh_decimal),
    "Sigmoid": Smooth(lambda x, a, b: 1 / (1 + np.exp(-x)), _sigmoid_decimal),
    "Erf": Smooth(lambda x, a, b: _erf(x), lambda x, a, b: _erf_decimal(x)),
    "Gelu": Smooth(lambda x, a, b: 0.5 * x * _erfc(-x / math.sqrt(2)), _gelu_decimal, (-0.7517915524,)),
    "GeluTanh": Smooth(_gelu_tanh, _gelu_tanh_decimal, (-0.7524614220,)),
    "Elu": Smooth(lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), _elu_decimal),
    "Selu": Smooth(lambda x, a, b: b * np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), _selu_decimal),
    "Softplus": Smooth(lambda x, a, b: np.logaddexp(0, x), lambda x, a, b: (1 + x.exp()).ln()),
    "Softsign": Smooth(lambda x, a, b: x / (1 + np.abs(x)), lambda x, a, b: x / (1 + abs(x))),
    "Reciprocal": Smooth(lambda x, a, b: 1 / x, lambda x, a, b: 1 / x, (0.0,)),
    "Pow": Smooth(lambda x, a, b: np.power(x, a), _pow_decimal, (0.0,)),
}  # fmt: skip

#: Evaluated in the dtype, one operation after the other; None: its pieces are not known.
LITERAL: dict[str, tuple[float, ...] | None] = {
    "Abs": (0.0,), "Sqrt": (0.0,), "LeakyRelu": (), "HardSigmoid": (), "HardSwish": None,
    "Ceil": (), "Floor": (), "Round": (), "Sign": (),
}  # fmt: skip

KINDS = frozenset(SMOOTH) | frozenset(LITERAL)


def evaluate(kind: str, x: Array, alpha: float, beta: float) -> Array:
    """The activation of every element, in x's dtype (float16, float32 or float64)."""
    if kind in LITERAL:
        return _literal(kind, x, alpha, beta)
    function = SMOOTH[kind]
    wide = function.fast(x.astype(np.float64), alpha, beta)
    result = wide.astype(x.dtype)
    unsure = np.isfinite(wide) & np.isfinite(x) & (wide != 0) & _near_boundary(wide, x.dtype)
    if kind == "Pow" and alpha == int(alpha):
        unsure &= x != 0
    if unsure.any():
        values, where = np.unique(x[unsure], return_inverse=True)
        exact = np.asarray([_rounded(function, float(v), alpha, beta, x.dtype) for v in values], x.dtype)
        result[unsure] = exact[where]
    return np.asarray(result)


def turning_points(kind: str, alpha: float, beta: float) -> tuple[float, ...] | None:
    """Arguments between which the function is monotone in float arithmetic; None if not known.

    A correctly rounded monotone function is monotone. So is a composition of monotone operations.
    """
    if kind in ("LeakyRelu", "Elu", "Selu") and alpha < 0:
        return (0.0,)
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
        case _:
            return np.asarray(np.sign(x))


def _near_boundary(wide: Array, dtype: np.dtype[np.floating]) -> Array:
    """Whether values within the trusted error of `wide` round differently."""
    if dtype == np.float64:
        return np.ones(wide.shape, np.bool_)
    with np.errstate(over="ignore"):
        return np.asarray((wide * (1 - _TRUST)).astype(dtype) != (wide * (1 + _TRUST)).astype(dtype))


def _rounded(function: Smooth, x: float, alpha: float, beta: float, dtype: np.dtype[np.floating]) -> Array:
    """The exact value, rounded once (to odd in float64 first, which is innocuous for narrower ones)."""
    with localcontext() as context:
        context.prec = _DIGITS
        value = function.exact(Decimal(x), Decimal(alpha), Decimal(beta))
        near = float(value)
        if dtype != np.float64 and Decimal(near) != value and not np.float64(near).view(np.int64) & 1:
            near = math.nextafter(near, math.inf if value > Decimal(near) else -math.inf)
    return np.asarray(near, dtype)
