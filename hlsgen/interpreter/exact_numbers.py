"""Exact numbers, integers times one fraction: their sums over rows and windows, with one rounding to float32."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.evaluate import decode
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array

_INT64 = 1 << 62
#: Largest integer multiple that float32 represents exactly.
_MULTIPLE = 1 << 24
#: Scales are on one grid if each is at most this multiple of their common unit.
_GRID = 256


@dataclass(frozen=True, eq=False)
class Exact:
    """Real numbers integers * unit; `integers` is int64 or Python integers, of the tensor's shape.

    `slope`: the real difference of adjacent codes, if it is the same for all elements.
    """

    integers: Array
    unit: Fraction
    slope: Fraction | None


def common_unit(units: Iterable[Fraction]) -> Fraction:
    """The largest number of which all units are whole multiples; 1 for zeros."""
    nonzero = [abs(u) for u in units if u]
    denominator = math.lcm(*(u.denominator for u in nonzero))
    return Fraction(reduce(math.gcd, (int(u * denominator) for u in nonzero), 0) or 1, denominator)


def on_one_grid(slopes: Iterable[Fraction]) -> bool:
    """True if tensors with these slopes are on one grid."""
    magnitudes = [abs(s) for s in slopes]
    return max(magnitudes) / common_unit(magnitudes) <= _GRID


def _largest(integers: Array) -> int:
    """The largest magnitude."""
    return max(abs(int(integers.max(initial=0))), abs(int(integers.min(initial=0)))) if integers.size else 0


def narrow(integers: Array) -> Array:
    """The integers as int64 if it holds them."""
    return integers.astype(np.int64) if integers.dtype == object and _largest(integers) < _INT64 else integers


def exact_product(integers: Array, factor: int | Array) -> Array:
    """The exact product of integers."""
    largest_factor = max(abs(int(f)) for f in np.ravel(np.asarray(factor, object)))
    if integers.dtype != object and _largest(integers) * largest_factor < _INT64:
        return integers * np.asarray(factor, np.int64)
    return narrow(np.asarray(integers.astype(object) * np.asarray(factor, object)))


def fractions(values: Array) -> Array:
    """The same numbers as an array of Fractions."""
    flat = np.empty(np.size(values), object)
    flat[:] = [Fraction(v) for v in np.asarray(values).ravel().tolist()]
    return flat.reshape(np.shape(values))


def multiples(values: Array, unit: Fraction) -> Array:
    """Fractions as integer multiples of a unit."""
    integers = np.empty(np.size(values), object)
    integers[:] = [int(v / unit) for v in values.ravel()]
    return integers.reshape(values.shape)


def exact_integers(x: Array) -> Exact:
    """The integers of an array, as exact numbers."""
    return Exact(to_int64(x), Fraction(1), None)


def to_int64(x: Array) -> Array:
    return x.astype(np.int64)


def exact_codes(encoding: Encoding, codes: Array) -> Exact | None:
    """The exact real numbers of codes, or None if the encoding has none."""
    match encoding:
        case Affine(scale, zero_point):
            return exact_line(codes, fractions(scale), -fractions(scale) * fractions(zero_point))
        case ThresholdCount(scale_, bias):
            numbers = exact_line(
                codes, fractions(np.asarray(np.float32(scale_))), fractions(np.asarray(np.float32(bias)))
            )
            return replace(numbers, slope=None)
        case Fixed(fraction):
            return Exact(codes, Fraction(1, 1 << fraction), Fraction(1, 1 << fraction))
        case IntegerEncoding():
            return Exact(to_int64(decode(encoding, codes)), Fraction(1), Fraction(1))
        case FloatKey() | Accumulator():
            return None
        case _:
            assert_never(encoding)


def exact_line(codes: Array, slope: Array, start: Array) -> Exact:
    """codes * slope + start, exact."""
    unit = common_unit([*slope.ravel(), *start.ravel()])
    factors, offsets = multiples(slope, unit), multiples(np.asarray(start), unit)
    products = exact_product(codes, factors)
    unbounded = products.astype(object) if _largest(products) + _largest(offsets) >= _INT64 else products
    total = unbounded + (offsets if unbounded.dtype == object else offsets.astype(np.int64))
    slopes = set(slope.ravel())
    return Exact(narrow(np.asarray(total)), unit, slopes.pop() if len(slopes) == 1 else None)


def add_constants(exact: Exact, constants: Array) -> Exact:
    """The exact numbers with float constants added."""
    return exact_sum(
        exact, exact_line(np.zeros((1,) * exact.integers.ndim, np.int64), fractions(np.ones(1)), fractions(constants))
    )


def exact_sum(first: Exact, second: Exact, sign: int = 1) -> Exact:
    """left + sign * right, exact."""
    unit = common_unit([first.unit, second.unit])
    a, b = (
        exact_product(first.integers, int(first.unit / unit)),
        exact_product(second.integers, sign * int(second.unit / unit)),
    )
    exceeds_int64 = _largest(a) + _largest(b) >= _INT64
    total = np.asarray(a.astype(object) + b.astype(object) if exceeds_int64 else a + b)
    return Exact(narrow(total), unit, first.slope)


def to_float32(integers: Array, scales: list[Fraction]) -> Array:
    """integers * scale rounded once, to nearest even; one scale, or one for each position of the last axis.

    The float64 product decides the rounding. Products too near to the midpoint of two float32 numbers
    are rounded as fractions.
    """
    float_scales = np.array([float(s) for s in scales])
    product = np.asarray(integers.astype(np.float64) * float_scales)
    with np.errstate(over="ignore", invalid="ignore"):
        result = product.astype(np.float32)
        direction = np.where(product > result, np.inf, -np.inf).astype(np.float32)
        neighbour = np.nextafter(result, direction).astype(np.float64)
        to_result, to_neighbour = np.abs(product - result), np.abs(neighbour - product)
        unsure = np.abs(to_result - to_neighbour) <= np.abs(product) * 2.0**-49
    scale_of = np.broadcast_to(np.array(scales, object), integers.shape)
    for index in np.argwhere(unsure & (integers != 0)):
        position = tuple(index)
        result[position] = nearest_float32(int(integers[position]) * scale_of[position])
    return result


def nearest_float32(number: Fraction) -> np.float32:
    """The nearest float32, ties to even; infinite if the number is too large."""
    guess: np.float32 = np.float32(float(number))
    if not np.isfinite(guess):
        return guess
    neighbours: list[np.float32] = [
        guess,
        np.nextafter(guess, np.float32(np.inf)),
        np.nextafter(guess, np.float32(-np.inf)),
    ]
    finite = [f for f in neighbours if np.isfinite(f)]
    return min(finite, key=lambda f: (abs(Fraction(float(f)) - number), int(f.view(np.uint32)) & 1))


def normalized(rows: Exact, centered: bool, epsilon: Fraction) -> Array:
    """Vectors along the last axis, each divided by the root of its moment: float32.

    Rounding follows the numeric contract.
    """
    integers, length = rows.integers.astype(object), rows.integers.shape[-1]
    total = integers.sum(axis=-1, keepdims=True)
    moment = length * (integers * integers).sum(axis=-1, keepdims=True)
    if centered:
        moment = moment - total * total
    addend = length * length * epsilon / (rows.unit * rows.unit)
    roots = {m: reciprocal_root(m + addend) for m in set(moment.ravel())}
    root = np.frompyfunc(roots.__getitem__, 1, 1)(moment)
    element = length * integers - total if centered else length * integers
    result = np.frompyfunc(lambda a, r: nearest_float32(a * r), 2, 1)(element, root)
    return np.asarray(result.astype(np.float32))


def reciprocal_root(number: Fraction) -> Fraction:
    """1 / sqrt(number), rounded once to float32, by comparing squares of the midpoints around a guess."""
    guess = np.float32(1 / math.sqrt(number))
    while True:
        below, above = (np.nextafter(guess, np.float32(limit)) for limit in (0, np.inf))
        lower_midpoint, upper_midpoint = (
            (Fraction(float(guess)) + Fraction(float(neighbour))) / 2 for neighbour in (below, above)
        )
        if lower_midpoint * lower_midpoint * number > 1:
            guess = below
        elif upper_midpoint * upper_midpoint * number < 1:
            guess = above
        else:
            is_even = not int(guess.view(np.uint32)) & 1
            ties = lower_midpoint * lower_midpoint * number == 1, upper_midpoint * upper_midpoint * number == 1
            return Fraction(float(guess if is_even or not any(ties) else (below if ties[0] else above)))


def products(x: Array, weight: Array) -> Array:
    """x @ weight.T, exact."""
    bound = _largest(x) * int(np.abs(weight).sum(axis=-1).max(initial=0))
    if bound < 1 << 53:  # floats are exact up to this bound, and fast
        dtype = np.float32 if bound < 1 << 24 else np.float64
        rows = x.reshape(-1, x.shape[-1]).astype(dtype) @ weight.T.astype(dtype)
        return np.asarray(rows.astype(np.int64).reshape(*x.shape[:-1], len(weight)))
    return narrow(np.asarray(x.astype(object) @ weight.T.astype(object)))


def matrix_product(first: Array, second: Array) -> Array:
    """left @ right over the last two axes, exact."""
    if _largest(first) * _largest(second) * first.shape[-1] < 1 << 53:
        product = first.astype(np.float64) @ second.astype(np.float64)
        return np.asarray(product.astype(np.int64))
    return narrow(np.asarray(first.astype(object) @ second.astype(object)))


def convolved(x: Array, weight: Array, window: Window, groups: int) -> Array:
    """Exact sums over windows (frames, n, height, width, outputs), with 0 outside the image."""
    outputs, taps, channels = len(weight), window.kernel, weight.shape[-1]
    rows = weight.transpose(0, 3, 1, 2).reshape(groups, outputs // groups, -1)
    frames = []
    for frame in x:
        patches = windows(frame, window, 0)
        columns = patches.reshape(*patches.shape[:-3], groups, channels * taps[0] * taps[1])
        parts = [products(columns[..., g, :], rows[g]) for g in range(groups)]
        frames.append(np.concatenate(parts, axis=-1))
    return np.stack(frames)


def windows(x: Array, window: Window, filler: object) -> Array:
    """Every window of (..., height, width, channels): (..., height, width, channels, kernel height, kernel width)."""
    top_pad, left_pad, bottom_pad, right_pad = window.pads
    widths = [(0, 0)] * (x.ndim - 3) + [(top_pad, bottom_pad), (left_pad, right_pad), (0, 0)]
    image = np.pad(x, widths, constant_values=filler)  # type: ignore[call-overload]
    patches = np.lib.stride_tricks.sliding_window_view(image, window.reach, axis=(-3, -2))
    (row_step, column_step), (dy, dx) = window.strides, window.dilations
    return np.asarray(patches[..., ::row_step, ::column_step, :, ::dy, ::dx])


def lowest(x: Array) -> object:
    """The lowest element of integers of any size, else the lowest number of the dtype."""
    if x.dtype == object:
        return int(x.min())
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def one_scale(values: Array, preferred: Fraction | None) -> Fraction | None:
    """The first candidate scale of which all values are fl(k * scale), or None.

    Candidates are `preferred`, a power of two, and the smallest magnitude.
    """
    flat = values.astype(np.float64).ravel()
    if not np.isfinite(flat).all():
        return None
    magnitudes = np.unique(np.abs(flat[flat != 0]))
    candidates = [] if preferred is None else [float(preferred)]
    if magnitudes.size:
        candidates += [
            float(common_unit(map(Fraction, magnitudes.tolist())).denominator) ** -1,
            float(magnitudes.min()),
        ]
    for candidate in candidates:
        scale = Fraction(float(np.float32(candidate)))
        if scale > 0 and as_multiples(values, scale) is not None:
            return scale
    return None


def as_multiples(values: Array, scale: Fraction) -> Array | None:
    """k such that every value is fl(k * scale), or None."""
    step = np.float32(float(scale))
    integers = np.round(values.astype(np.float64) / float(step))
    if not np.isfinite(integers).all() or np.abs(integers).max(initial=0) > _MULTIPLE:
        return None
    exact = (integers.astype(np.float32) * step == values).all()
    return to_int64(integers) if exact else None
