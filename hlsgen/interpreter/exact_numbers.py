"""Exact numbers: integers times one fraction. Sums of them over rows and windows, and one rounding to float32."""

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
#: Largest whole number of a multiple that float32 has exactly.
_MULTIPLE = 1 << 24
#: Scales are on one grid if each is at most so many times the largest number of which all are whole multiples.
_GRID = 256


@dataclass(frozen=True, eq=False)
class Exact:
    """Real numbers whole * unit, `whole` int64 or Python integers of the tensor's shape.

    `slope`: what one code is worth, if that is the same for all elements.
    """

    whole: Array
    unit: Fraction
    slope: Fraction | None


def common(units: Iterable[Fraction]) -> Fraction:
    """The largest number of which all are whole multiples; 1 for zeros."""
    known = [abs(u) for u in units if u]
    denominator = math.lcm(*(u.denominator for u in known))
    return Fraction(reduce(math.gcd, (int(u * denominator) for u in known), 0) or 1, denominator)


def on_one_grid(slopes: Iterable[Fraction]) -> bool:
    """Whether tensors whose codes are worth that much are on one grid."""
    known = [abs(s) for s in slopes]
    return max(known) / common(known) <= _GRID


def _largest(whole: Array) -> int:
    return max(abs(int(whole.max(initial=0))), abs(int(whole.min(initial=0)))) if whole.size else 0


def narrow(whole: Array) -> Array:
    """As int64 where that holds them."""
    return whole.astype(np.int64) if whole.dtype == object and _largest(whole) < _INT64 else whole


def times(whole: Array, factor: int | Array) -> Array:
    """The product, exact."""
    most = max(abs(int(f)) for f in np.ravel(np.asarray(factor, object)))
    if whole.dtype != object and _largest(whole) * most < _INT64:
        return whole * np.asarray(factor, np.int64)
    return narrow(np.asarray(whole.astype(object) * np.asarray(factor, object)))


def fractions(values: Array) -> Array:
    """The same numbers as an array of Fractions."""
    flat = np.empty(np.size(values), object)
    flat[:] = [Fraction(v) for v in np.asarray(values).ravel().tolist()]
    return flat.reshape(np.shape(values))


def multiples(values: Array, unit: Fraction) -> Array:
    """Fractions as whole multiples of a unit."""
    whole = np.empty(np.size(values), object)
    whole[:] = [int(v / unit) for v in values.ravel()]
    return whole.reshape(values.shape)


def integers(x: Array) -> Exact:
    return Exact(int64(x), Fraction(1), None)


def int64(x: Array) -> Array:
    return x.astype(np.int64)


def exact_codes(meaning: Encoding, codes: Array) -> Exact | None:
    """The real numbers that codes mean, exactly."""
    match meaning:
        case Affine(scale, zero):
            return line(codes, fractions(scale), -fractions(scale) * fractions(zero))
        case ThresholdCount(scale_, bias):
            made = line(codes, fractions(np.asarray(np.float32(scale_))), fractions(np.asarray(np.float32(bias))))
            return replace(made, slope=None)
        case Fixed(fraction):
            return Exact(codes, Fraction(1, 1 << fraction), Fraction(1, 1 << fraction))
        case IntegerEncoding():
            return Exact(int64(decode(meaning, codes)), Fraction(1), Fraction(1))
        case FloatKey() | Accumulator():
            return None
        case _:
            assert_never(meaning)


def line(codes: Array, slope: Array, start: Array) -> Exact:
    """codes * slope + start."""
    unit = common([*slope.ravel(), *start.ravel()])
    factors, offsets = multiples(slope, unit), multiples(np.asarray(start), unit)
    whole = times(codes, factors)
    wide = whole.astype(object) if _largest(whole) + _largest(offsets) >= _INT64 else whole
    total = wide + (offsets if wide.dtype == object else offsets.astype(np.int64))
    slopes = set(slope.ravel())
    return Exact(narrow(np.asarray(total)), unit, slopes.pop() if len(slopes) == 1 else None)


def shifted(exact: Exact, constants_: Array) -> Exact:
    """With constants added."""
    return added(exact, line(np.zeros((1,) * exact.whole.ndim, np.int64), fractions(np.ones(1)), fractions(constants_)))


def added(left: Exact, right: Exact, sign: int = 1) -> Exact:
    unit = common([left.unit, right.unit])
    a, b = times(left.whole, int(left.unit / unit)), times(right.whole, sign * int(right.unit / unit))
    wide = _largest(a) + _largest(b) >= _INT64
    total = np.asarray(a.astype(object) + b.astype(object) if wide else a + b)
    return Exact(narrow(total), unit, left.slope)


def to_float32(whole: Array, scales: list[Fraction]) -> Array:
    """whole * scale rounded once, to nearest even; one scale, or one for each place of the last axis.

    The float64 product decides it, but for products too near to the middle of two float32 numbers: these
    are rounded as fractions.
    """
    near = np.array([float(s) for s in scales])
    product = np.asarray(whole.astype(np.float64) * near)
    with np.errstate(over="ignore", invalid="ignore"):
        result = product.astype(np.float32)
        toward = np.where(product > result, np.inf, -np.inf).astype(np.float32)
        other = np.nextafter(result, toward).astype(np.float64)
        to_result, to_other = np.abs(product - result), np.abs(other - product)
        unsure = np.abs(to_result - to_other) <= np.abs(product) * 2.0**-49
    every = np.broadcast_to(np.array(scales, object), whole.shape)
    for place in np.argwhere(unsure & (whole != 0)):
        at = tuple(place)
        result[at] = nearest_float32(int(whole[at]) * every[at])
    return result


def nearest_float32(number: Fraction) -> np.float32:
    """The nearest float32, ties to even."""
    guess: np.float32 = np.float32(float(number))
    if not np.isfinite(guess):
        return guess
    around: list[np.float32] = [
        guess,
        np.nextafter(guess, np.float32(np.inf)),
        np.nextafter(guess, np.float32(-np.inf)),
    ]
    finite = [f for f in around if np.isfinite(f)]
    return min(finite, key=lambda f: (abs(Fraction(float(f)) - number), int(f.view(np.uint32)) & 1))


def normalized(rows: Exact, centered: bool, epsilon: Fraction) -> Array:
    """Rows along the last axis, each divided by the root of its moment: float32, rounded as the contract says."""
    whole, length = rows.whole.astype(object), rows.whole.shape[-1]
    total = whole.sum(axis=-1, keepdims=True)
    moment = length * (whole * whole).sum(axis=-1, keepdims=True)
    if centered:
        moment = moment - total * total
    addend = length * length * epsilon / (rows.unit * rows.unit)
    roots = {m: reciprocal_root(m + addend) for m in set(moment.ravel())}
    root = np.frompyfunc(roots.__getitem__, 1, 1)(moment)
    element = length * whole - total if centered else length * whole
    result = np.frompyfunc(lambda a, r: nearest_float32(a * r), 2, 1)(element, root)
    return np.asarray(result.astype(np.float32))


def reciprocal_root(number: Fraction) -> Fraction:
    """1 / sqrt(number), rounded once to float32: found by comparing squares with the middles around a guess."""
    guess = np.float32(1 / math.sqrt(number))
    while True:
        below, above = (np.nextafter(guess, np.float32(end)) for end in (0, np.inf))
        low, high = ((Fraction(float(guess)) + Fraction(float(n))) / 2 for n in (below, above))
        if low * low * number > 1:
            guess = below
        elif high * high * number < 1:
            guess = above
        else:
            even = not int(guess.view(np.uint32)) & 1
            ties = low * low * number == 1, high * high * number == 1
            return Fraction(float(guess if even or not any(ties) else (below if ties[0] else above)))


def products(x: Array, weight: Array) -> Array:
    """x @ weight.T, exact."""
    bound = _largest(x) * int(np.abs(weight).sum(axis=-1).max(initial=0))
    if bound < 1 << 53:  # then floats are exact, and fast
        dtype = np.float32 if bound < 1 << 24 else np.float64
        rows = x.reshape(-1, x.shape[-1]).astype(dtype) @ weight.T.astype(dtype)
        return np.asarray(rows.astype(np.int64).reshape(*x.shape[:-1], len(weight)))
    return narrow(np.asarray(x.astype(object) @ weight.T.astype(object)))


def matrix_product(left: Array, right: Array) -> Array:
    """left @ right over the last two axes, exact."""
    if _largest(left) * _largest(right) * left.shape[-1] < 1 << 53:
        both = left.astype(np.float64) @ right.astype(np.float64)
        return np.asarray(both.astype(np.int64))
    return narrow(np.asarray(left.astype(object) @ right.astype(object)))


def convolved(x: Array, weight: Array, window: Window, groups: int) -> Array:
    """Exact sums over windows (frames, n, height, width, outputs); outside of the image is 0."""
    outputs, taps, channels = len(weight), window.kernel, weight.shape[-1]
    rows = weight.transpose(0, 3, 1, 2).reshape(groups, outputs // groups, -1)
    frames = []
    for frame in x:
        seen = windows(frame, window, 0)
        columns = seen.reshape(*seen.shape[:-3], groups, channels * taps[0] * taps[1])
        parts = [products(columns[..., g, :], rows[g]) for g in range(groups)]
        frames.append(np.concatenate(parts, axis=-1))
    return np.stack(frames)


def windows(x: Array, window: Window, filler: object) -> Array:
    """Every window of (..., height, width, channels): (..., height, width, channels, kernel height, kernel width)."""
    top, left, bottom, right = window.pads
    widths = [(0, 0)] * (x.ndim - 3) + [(top, bottom), (left, right), (0, 0)]
    image = np.pad(x, widths, constant_values=filler)  # type: ignore[call-overload]
    seen = np.lib.stride_tricks.sliding_window_view(image, window.reach, axis=(-3, -2))
    (down, across), (dy, dx) = window.strides, window.dilations
    return np.asarray(seen[..., ::down, ::across, :, ::dy, ::dx])


def lowest(x: Array) -> object:
    if x.dtype == object:
        return int(x.min())
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def one_scale(values: Array, own: Fraction | None) -> Fraction | None:
    """The first scale of which all values are fl(k * scale)."""
    flat = values.astype(np.float64).ravel()
    if not np.isfinite(flat).all():
        return None
    magnitudes = np.unique(np.abs(flat[flat != 0]))
    candidates = [] if own is None else [float(own)]
    if magnitudes.size:
        candidates += [float(common(map(Fraction, magnitudes.tolist())).denominator) ** -1, float(magnitudes.min())]
    for candidate in candidates:
        scale = Fraction(float(np.float32(candidate)))
        if scale > 0 and as_multiples(values, scale) is not None:
            return scale
    return None


def as_multiples(values: Array, scale: Fraction) -> Array | None:
    """k where every value is fl(k * scale), else None."""
    step = np.float32(float(scale))
    whole = np.round(values.astype(np.float64) / float(step))
    if not np.isfinite(whole).all() or np.abs(whole).max(initial=0) > _MULTIPLE:
        return None
    same = (whole.astype(np.float32) * step == values).all()
    return int64(whole) if same else None
