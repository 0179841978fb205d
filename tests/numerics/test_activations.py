"""Activations against mpmath: correctly rounded, and monotone between turning points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray

from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, key_to_float
from hlsgen.numerics.activations import KINDS, LITERAL, SMOOTH, evaluate, turning_points

Array = NDArray[Any]
Function = Callable[[Any, Any, Any], Any]
Long = np.longdouble


def erfc(x: Array) -> Array:
    return np.array([math.erfc(v) for v in x.astype(np.float64)])


#: Kind -> the real function in mpmath; the same in numpy's longest float, as far as it goes.
REAL: dict[str, tuple[Function, Function]] = {
    "Exp": (lambda x, a, b: mp.exp(x), lambda x, a, b: np.exp(x)),
    "Log": (lambda x, a, b: mp.log(x), lambda x, a, b: np.log(x)),
    "Tanh": (lambda x, a, b: mp.tanh(x), lambda x, a, b: np.tanh(x)),
    "Sigmoid": (lambda x, a, b: 1 / (1 + mp.exp(-x)), lambda x, a, b: 1 / (1 + np.exp(-x))),
    "Erf": (lambda x, a, b: mp.erf(x), lambda x, a, b: np.array([math.erf(v) for v in x])),
    "Gelu": (lambda x, a, b: x * mp.erfc(-x / mp.sqrt(2)) / 2, lambda x, a, b: x * erfc(-x / np.sqrt(Long(2))) / 2),
    "GeluTanh": (
        lambda x, a, b: x / (1 + mp.exp(-mp.sqrt(8 / mp.pi) * (x + mpf("0.044715") * x**3))),
        lambda x, a, b: x / (1 + np.exp(-np.sqrt(8 / Long(math.pi)) * (x + x**3 * 44715 / 1000000))),
    ),
    "Elu": (
        lambda x, a, b: x if x >= 0 else a * mp.expm1(max(x, -1000)),
        lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x)),
    ),
    "Celu": (
        lambda x, a, b: x if x >= 0 else a * mp.expm1(max(x / a, -1000)),
        lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x / Long(a))),
    ),
    "Mish": (
        lambda x, a, b: x * mp.tanh(mp.log1p(mp.exp(x))) if x < 99 else x,
        lambda x, a, b: np.where(x < 40, x * np.tanh(np.log1p(np.exp(np.minimum(x, 40)))), x),
    ),
    "Selu": (
        lambda x, a, b: b * (x if x >= 0 else a * mp.expm1(max(x, -1000))),
        lambda x, a, b: b * np.where(x >= 0, x, a * np.expm1(x)),
    ),
    "Softplus": (
        lambda x, a, b: mp.log1p(mp.exp(x)) if x < 99 else x,
        lambda x, a, b: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    ),
    "Softsign": (lambda x, a, b: x / (1 + abs(x)), lambda x, a, b: x / (1 + np.abs(x))),
    "Reciprocal": (lambda x, a, b: 1 / x, lambda x, a, b: 1 / x),
    "Pow": (lambda x, a, b: mp.power(x, a), lambda x, a, b: np.power(x, a)),
}
#: Limits at minus and plus infinity; alpha and beta are positive.
LIMITS: dict[str, Callable[[float, float], tuple[float, float]]] = {
    "Exp": lambda a, b: (0, np.inf),
    "Log": lambda a, b: (np.nan, np.inf),
    "Tanh": lambda a, b: (-1, 1),
    "Sigmoid": lambda a, b: (0, 1),
    "Erf": lambda a, b: (-1, 1),
    "Gelu": lambda a, b: (0, np.inf),
    "GeluTanh": lambda a, b: (0, np.inf),
    "Elu": lambda a, b: (-a, np.inf),
    "Selu": lambda a, b: (-a * b, np.inf),
    "Celu": lambda a, b: (-a, np.inf),
    "Mish": lambda a, b: (0, np.inf),
    "Softplus": lambda a, b: (0, np.inf),
    "Softsign": lambda a, b: (-1, 1),
    "Reciprocal": lambda a, b: (0, 0),
    "Pow": lambda a, b: (math.pow(-math.inf, a) if a == int(a) else math.nan, math.pow(math.inf, a)),
}
#: Halfway between two float16; the even one is above.
TIE = 1 + 3 * 2.0**-11
PARAMETERS: dict[str, list[tuple[float, float]]] = {
    "Celu": [(1.0, 0.0), (0.5, 0.0), (1.5, 0.0)],
    "Elu": [(1.0, 0.0), (TIE, 0.0), (1.5, 0.0)],
    "Selu": [(1.67326319217681884765625, 1.05070102214813232421875), (TIE, 1.5)],
    "Pow": [(float(np.float32(a)), 0.0) for a in (2, 3, -1, -2, 0.5, -0.5, 1.5, 0.75, 0.1, 5, 0, 1, -75, 12.5)],
}
CASES = [(kind, a, b) for kind in sorted(SMOOTH) for a, b in PARAMETERS.get(kind, [(0.0, 0.0)])]


def all_halves() -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def singles(seed: int, count: int) -> Array:
    """Random bits, numbers of common sizes, numbers of few bits (whose powers are ties), special ones."""
    r = np.random.default_rng(seed)
    bits = r.integers(0, 1 << 32, count // 4, dtype=np.uint64).astype(np.uint32).view(np.float32)
    usual = r.normal(size=count // 4) * 10 ** r.uniform(-4, 2, count // 4)
    short = r.integers(-(1 << 13), 1 << 13, count // 4) * 2.0 ** r.integers(-70, 40, count // 4)
    square = r.integers(0, 1 << 12, count // 8) ** 2 * 4.0 ** r.integers(-40, 30, count // 8)
    tiny = r.integers(-(1 << 20), 1 << 20, count // 8) * 2.0**-149
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2.0**-149, 2.0**-126, 3.4028235e38, -3.4028235e38]
    ends = np.array([*special, 88.72283, 88.72284, -103.97208, -103.97209, -87.33655, 2.0**-75, 2.0**75, 2.0**-150])
    with np.errstate(all="ignore"):
        return np.concatenate([part.astype(np.float32) for part in (bits, usual, short, square, tiny, ends)])


def values(kind: str, x: Array, alpha: float, beta: float) -> Array:
    with np.errstate(all="ignore"):
        return evaluate(kind, x, alpha, beta)


def middles(y: Array) -> tuple[Array, Array]:
    """Halfway from y to the number below, and above; beyond the largest one goes on as if there were no end."""
    with np.errstate(over="ignore"):
        below, above = (np.nextafter(y, y.dtype.type(end)).astype(Long) for end in (-np.inf, np.inf))
    largest, long_values = Long(np.finfo(y.dtype).max), y.astype(Long)
    step = largest - Long(np.nextafter(np.finfo(y.dtype).max, y.dtype.type(0)))
    long_values, below, above = (
        np.where(np.isinf(v), np.sign(v) * (largest + step), v) for v in (long_values, below, above)
    )
    low, high = (long_values + below) / 2, (long_values + above) / 2
    return np.where(y == -np.inf, -np.inf, low), np.where(y == np.inf, np.inf, high)


def wrong(kind: str, x: Array, y: Array, alpha: float, beta: float, exactly: int) -> Array:
    """Finite x where y is not the real value rounded to nearest, ties to even.

    If the longest float does not decide, and at `exactly` others, mpmath decides.
    """
    low, high = middles(y)
    with np.errstate(all="ignore"):
        reference = np.asarray(REAL[kind][1](x.astype(Long), Long(alpha), Long(beta)))
        margin = np.abs(reference) * Long(2.0**-40)
        good = (reference - margin > low) & (reference + margin < high)
    good[np.random.default_rng(len(x)).choice(len(x), min(exactly, len(x)), replace=False)] = False
    even = y.view(f"u{y.dtype.itemsize}") & 1 == 0
    mp.prec = 1600  # e^-1000 beside 1
    for i in np.flatnonzero(~good):
        value = REAL[kind][0](mpf(float(x[i])), mpf(alpha), mpf(beta))
        ends = [mpf(float(end)) for end in (low[i], high[i])]
        good[i] = ends[0] < value < ends[1] or (bool(even[i]) and value in ends)
    return x[~good]


def defined(kind: str, x: Array, alpha: float) -> Array:
    """True where the real function has a value."""
    if kind in ("Log", "Reciprocal"):
        return x > 0 if kind == "Log" else x != 0
    if kind == "Pow":
        is_integer = alpha == int(alpha)
        return (x > 0) | ((x < 0) & is_integer) | ((x == 0) & (alpha >= 0))
    return np.ones(x.shape, np.bool_)


@pytest.mark.cases(8)
@pytest.mark.parametrize(("kind", "alpha", "beta"), CASES)
def test_correctly_rounded(kind: str, alpha: float, beta: float) -> None:
    """Every float16, and float32 at random."""
    for x, exactly in ((all_halves()[:: 8 if alpha == TIE else 1], 100), (singles(3, 100_000), 100)):
        y = values(kind, x, alpha, beta)
        assert y.dtype == x.dtype
        nan = np.isnan(x)
        assert np.isnan(y[nan]).all() or (kind, alpha) == ("Pow", 0)
        limits = LIMITS[kind](alpha, beta)
        with np.errstate(over="ignore"):
            for end, limit in zip((-np.inf, np.inf), limits, strict=True):
                results = y[x == end]
                assert len(results)
                assert np.array_equal(results, np.full(len(results), limit, x.dtype), equal_nan=True)
        real = np.isfinite(x)
        inside = real & defined(kind, x, alpha)
        assert not np.isfinite(y[real & ~inside]).any()
        assert not np.isnan(y[inside]).any()
        assert not len(bad := wrong(kind, x[inside], y[inside], alpha, beta, exactly)), bad


@pytest.mark.sweep
def test_float64() -> None:
    """Rounded from decimals, always."""
    mp.prec = 700
    x = singles(5, 400).astype(np.float64)
    x = np.concatenate([x[np.isfinite(x)], [1e-300, 5e-324, -1e-300, 700.5, -700.5, 1e200, -1e4, 1e4, 0.1]])
    for kind, alpha, beta in CASES:
        y = values(kind, x, alpha, beta)
        inside = defined(kind, x, alpha) & np.isfinite(y)
        for argument, result in zip(x[inside][::7], y[inside][::7], strict=True):
            value = REAL[kind][0](mpf(float(argument)), mpf(alpha), mpf(beta))
            unit = mpf(float(np.spacing(np.abs(result))))
            assert abs(value - mpf(float(result))) <= unit / 2, (kind, alpha, argument)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_monotone_between_turning_points(kind: str) -> None:
    """On every float16, and on float32 at random, near turning points and around zero and infinity."""
    r = np.random.default_rng(11)
    centers = [0x80000000, KEY_NEG_INF + 40, KEY_POS_INF - 40]
    centers += [
        (p := np.float32(t).view(np.int32), 0x7FFFFFFF - (p & 0x7FFFFFFF))[1] for t in (-0.75179154, -0.75246143)
    ]
    keys = np.concatenate(
        [r.integers(KEY_NEG_INF, KEY_POS_INF + 1, 40000), *(n + np.arange(-2000, 2000) for n in centers)]
    )
    single = key_to_float(np.unique(np.clip(keys, KEY_NEG_INF, KEY_POS_INF)))
    half = np.sort(all_halves()[~np.isnan(all_halves())])
    varied = ("Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid")
    pairs = [(0.0, 0.0), (0.7, 0.4), (-0.7, 0.4), (2.0, -1.5), (-1.0, 0.3), (3.0, 0.0), (1e-9, 1e9), (-1e-9, 0.5)]
    for x in (half, single):
        for alpha, beta in PARAMETERS[kind] if kind == "Pow" else pairs if kind in varied else [(0, 0)]:
            turns = turning_points(kind, alpha, beta, x.dtype)
            if turns is None:
                expected_unknown = kind == "HardSwish" or (kind, x.dtype, beta) == ("HardSigmoid", np.float16, 1e9)
                assert expected_unknown or (kind == "Celu" and not alpha > 0)
                continue
            y = values(kind, x, alpha, beta)
            piece = sum((x >= np.float64(t)).astype(int) for t in turns) if turns else np.zeros(len(x), int)
            for number in np.unique(piece):
                part = y[piece == number]
                if np.isnan(part).any():
                    assert np.isnan(part).all(), (alpha, beta, number)
                    continue
                with np.errstate(invalid="ignore"):
                    up, down = (part[1:] >= part[:-1]).all(), (part[1:] <= part[:-1]).all()
                assert up or down, (alpha, beta, number)


def test_every_kind_is_tested() -> None:
    assert set(REAL) == set(LIMITS) == set(SMOOTH)
    assert set(SMOOTH) | set(LITERAL) == KINDS
    assert turning_points("Abs", 0, 0, np.dtype(np.int8)) == (-127, 0.0)
