"""Operators that no executor has, computed as their publishers define them, by numpy and Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.numerics.fixed import Array


def requant_shift(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Deeploy's RequantShift: y = clip((x * mul + add) / div), to the nearest number, halves up.

    y has `n_levels` values, or `n_levels_out` (256): from -n / 2 on, or from 0 on if `signed` is 0. The constants
    broadcast from the right. The result has the dtype of x.
    """
    x, mul, add = arrays

    def number(*names: str, default: int | None = None) -> int:
        given = next((attributes[name] for name in names if name in attributes), default)
        return int(np.ravel(given)[0])  # type: ignore[arg-type]

    div, levels = number("div"), number("n_levels", "n_levels_out", default=256)
    low = -(levels // 2) if number("signed", default=1) else 0
    columns = [part.ravel() for part in np.broadcast_arrays(x, mul, add)]
    rows, place = np.unique(np.stack([c.astype(np.float64) for c in columns], axis=1), axis=0, return_inverse=True)
    found = []
    for data, factor, addend in rows.tolist():
        exact = (Fraction(data) * int(factor) + int(addend)) / div
        nearest = math.floor(exact + Fraction(div // 2, div))
        found.append(min(max(nearest, low), low + levels - 1))
    return np.array(found, np.int64)[place.ravel()].reshape(x.shape).astype(x.dtype)


#: Operator, in any domain -> its result from the arrays and attributes of a node.
DEFINED: dict[str, Callable[[Sequence[Array], Mapping[str, Any]], Array]] = {"RequantShift": requant_shift}
