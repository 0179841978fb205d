"""Activation operators and the real functions that they stand for, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
f32 = np.float32
_erf, _erfc = np.vectorize(math.erf), np.vectorize(math.erfc)

#: Name: operator, constants (and attributes), function in float64; None: exact in float32, operation by operation.
FUNCTIONS: dict[str, tuple[str, list[Any], Callable[[Array], Array] | None]] = {
    "Relu": ("Relu", [], None),
    "LeakyRelu": ("LeakyRelu", [], None),
    "Abs": ("Abs", [], None),
    "LeakyRelu 0.3": ("LeakyRelu", [{"alpha": 0.3}], None),
    "Elu 0.7": ("Elu", [{"alpha": 0.7}], None),
    "HardSigmoid 0.3, 0.4": ("HardSigmoid", [{"alpha": 0.3, "beta": 0.4}], None),
    "Sqrt": ("Sqrt", [], None),
    "HardSigmoid": ("HardSigmoid", [], None),
    "HardSwish": ("HardSwish", [], None),
    "Neg": ("Neg", [], None),
    "Clip": ("Clip", [f32(-1), f32(2)], None),
    "PRelu": ("PRelu", [f32(0.3)], None),
    "Floor": ("Floor", [], None),
    "Ceil": ("Ceil", [], None),
    "Round": ("Round", [], None),
    "Reciprocal": ("Reciprocal", [], None),
    "Tanh": ("Tanh", [], np.tanh),
    "Sigmoid": ("Sigmoid", [], lambda x: 1 / (1 + np.exp(-x))),
    "Elu": ("Elu", [], lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "Gelu": ("Gelu", [], lambda x: 0.5 * x * _erfc(-x / math.sqrt(2))),
    "Exp": ("Exp", [], np.exp),
    "Erf": ("Erf", [], _erf),
    "Log": ("Log", [], np.log),
    "Softplus": ("Softplus", [], lambda x: np.logaddexp(0, x)),
    "Pow 2": ("Pow", [f32(2)], lambda x: x**2),
    "Pow 3": ("Pow", [f32(3)], lambda x: x**3),
    "Pow 0.5": ("Pow", [f32(0.5)], np.sqrt),
}
#: Those of numbers that are not negative.
HALF = ("Sqrt", "Log", "Pow 0.5")
