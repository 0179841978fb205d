"""Operators that no executor has, computed by their publishers' definitions with numpy and Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.simulation.defined_rows import ROWS


def _number(attributes: Mapping[str, Any], *names: str, default: int | None = None) -> int:
    """The integer attribute with one of these names."""
    value = next((attributes[name] for name in names if name in attributes), default)
    return int(np.ravel(value)[0])  # type: ignore[arg-type]


def _elements(function: Callable[..., int | Fraction], *arrays: Array) -> Array:
    """The function of whole numbers, element by element, in the dtype of the first array. Arrays broadcast from the
    right."""
    columns = [part.ravel() for part in np.broadcast_arrays(*arrays)]
    rows, place = np.unique(np.stack([c.astype(np.float64) for c in columns], axis=1), axis=0, return_inverse=True)
    results = [int(function(*map(Fraction, row))) for row in rows.tolist()]
    return np.array(results, np.int64)[place.ravel()].reshape(arrays[0].shape).astype(arrays[0].dtype)


def requant_shift(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's RequantShift: y = clip((x * mul + add) / div), rounded to nearest, halves up.

    y has `n_levels` or `n_levels_out` (256) values, from -n / 2 on, or from 0 on if `signed` is 0. The constants
    broadcast
    from the right. The result has the dtype of x.
    """
    div, levels = _number(attributes, "div"), _number(attributes, "n_levels", "n_levels_out", default=256)
    low = -(levels // 2) if _number(attributes, "signed", default=1) else 0

    def requantized(data: Fraction, factor: Fraction, addend: Fraction) -> int:
        exact = (data * factor + addend) / div
        return min(max(math.floor(exact + Fraction(div // 2, div)), low), low + levels - 1)

    return _elements(requantized, *arrays)


def integer_gelu(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's iGELU: x * (one + sign(x) * (one - (min(|x|, -b) + b)^2)) / 2, where the half is rounded down."""
    b, unit = _number(attributes, "b"), _number(attributes, "one")

    def value(x: Fraction) -> int:
        top = unit - (min(abs(int(x)), -b) + b) ** 2
        return int(x) * ((unit + (top if x > 0 else -top if x < 0 else 0)) // 2)

    return _elements(value, arrays[0])


def integer_hardswish(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's iHardswish: x * min(max(x + three, 0), six) * one_over_six."""
    three, six, factor = (_number(attributes, key) for key in ("three", "six", "one_over_six"))
    return _elements(lambda x: x * min(max(x + three, 0), six) * factor, arrays[0])


def integer_no_norm(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's iNoNorm: (x * w + b) * mul / D, rounded down, as an int8 that wraps."""
    mul, d = _number(attributes, "mul"), _number(attributes, "D")
    return _elements(lambda x, w, b: (math.floor((x * w + b) * mul / d) + 128) % 256 - 128, *arrays)


def integer_division(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's IntegerDiv: Delta * eta * x / (eta * c + eps), rounded to nearest, halves away from zero.

    Half the divisor is added to the absolute value, which is then truncated.
    """
    delta, eta, eps = (_number(attributes, key, default=d) for key, d in (("Delta", 1), ("eta", 1), ("eps", 0)))

    def value(x: Fraction, c: Fraction) -> int:
        dividend, divisor = int(delta * eta * x), int(eta * c + eps)
        quotient = (abs(dividend) + divisor // 2) // divisor
        return quotient if dividend >= 0 else -quotient

    return _elements(value, *arrays)


def integer_mean(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's IntegerMean over `axes`, rounded to nearest, halves up."""
    (x,) = arrays
    axes = tuple(int(axis) for axis in np.ravel(attributes["axes"]))
    total = x.astype(np.int64).sum(axis=axes, keepdims=bool(_number(attributes, "keepdims", default=1)))
    count = math.prod(x.shape[axis] for axis in axes)
    return _elements(lambda s: math.floor(s / count + Fraction(1, 2)), total).astype(x.dtype)


#: By operator, in any domain: a function of a node's arrays and attributes that computes its result.
DEFINED: dict[str, Callable[[Sequence[Array], Mapping[str, Any]], Array]] = {
    "RequantShift": requant_shift,
    "iGELU": integer_gelu,
    "iHardswish": integer_hardswish,
    "iNoNorm": integer_no_norm,
    "IntegerDiv": integer_division,
    "TrueIntegerDiv": integer_division,
    "IntegerMean": integer_mean,
    **ROWS,
}
