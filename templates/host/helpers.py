"""Helper functions of host code in Python; hlsgen/host/blocks.py selects the functions that are called.

Empty lines separate the functions.
"""

import numpy as np


def _rounded(x, mode):
    """Rounds to an integer in the dtype of x; 0.5 is added or subtracted in that dtype."""
    if mode == "HALF_UP":
        return np.sign(x) * np.floor(np.abs(x) + x.dtype.type(0.5))
    if mode == "HALF_DOWN":
        return np.sign(x) * np.ceil(np.abs(x) - x.dtype.type(0.5))
    if mode == "UP":
        return np.sign(x) * np.ceil(np.abs(x))
    return {"ROUND": np.round, "CEIL": np.ceil, "FLOOR": np.floor, "DOWN": np.trunc}[mode](x)


def _limited(whole, lo, hi):
    """Whole numbers as int64, limited to lo and hi; NaN becomes lo."""
    near = np.clip(np.where(np.isnan(whole), -np.inf, whole), -(2.0**62), 2.0**62)
    return np.clip(near.astype(np.int64), lo, hi)


def _to_codes(y, lo, hi, mode):
    """Limits in the dtype of y, rounds, and limits again; NaN becomes lo."""
    low, high = y.dtype.type(lo), y.dtype.type(hi)
    y = np.where(y > high, high, y)
    y = np.where(y < low, low, y)
    return _limited(_rounded(np.where(np.isnan(y), low, y), mode), lo, hi)


def _count(x, thresholds):
    """The number of thresholds, along their first axis, that x reaches."""
    count = np.zeros(np.broadcast_shapes(x.shape, thresholds.shape[1:]), np.int64)
    for threshold in thresholds:
        count += x >= threshold
    return count


def _minifloat(y, mantissa, minimum, largest, signed, mode):
    """Codes of minifloats: y rounded to the step of its binade, then limited; in units of 2^(minimum - mantissa)."""
    info = np.finfo(y.dtype)
    y = np.clip(np.where(np.isnan(y), -info.max, y), -info.max, info.max)
    part, power = np.frexp(np.abs(y) + info.tiny)
    whole = power.astype(y.dtype)
    gap = (whole - np.nextafter(whole, y.dtype.type(-np.inf))).astype(np.float64)
    binade = np.maximum(power - 1 + (-np.log2(part.astype(np.float64)) < gap / 2), minimum)
    step = np.ldexp(y.dtype.type(1), np.minimum(binade - mantissa, info.maxexp - 1))
    most = y.dtype.type(largest)
    near = np.clip(_rounded(y / step, mode) * step, -most if signed else y.dtype.type(0), most)
    return np.ldexp(near.astype(np.float64), mantissa - minimum).astype(np.int64)


def _lookup(values, x):
    """values[x] with a table for each element; the nearest end if x is outside, entry 0 for NaN."""
    place = np.clip(np.nan_to_num(x), 0, len(values) - 1).astype(np.int64)
    own = values.shape[1:]
    table = values.reshape(len(values), *(1,) * (x.ndim - len(own)), *own)
    table = np.broadcast_to(table, (len(values), *x.shape))
    return np.take_along_axis(table, place[None], axis=0)[0]


def _fma(x, factor, value):
    """x * factor + value in float32, rounded once: TwoSum in float64, rounded to odd first."""
    product, addend = np.broadcast_arrays(x.astype(np.float64) * factor.astype(np.float64), value.astype(np.float64))
    total = product + addend
    part = total - product
    return _rounded_once(total, (product - (total - part)) + (addend - part))


def _product(whole, scale):
    """Integers below 2^53 times a float64 with at most 48 bits, rounded once to float32 (Dekker)."""
    a, b = np.broadcast_arrays(whole.astype(np.float64), scale)
    product = a * b
    ah, bh = _high_half(a), _high_half(b)
    al, bl = a - ah, b - bh
    return _rounded_once(product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)


def _high_half(x):
    """The upper 26 bits of a float64 (Veltkamp)."""
    scaled = x * 134217729.0
    return scaled - (scaled - x)


def _rounded_once(value, error):
    """Rounds value + error, both float64, to float32 once: the float64 is rounded to odd first."""
    even = value.view(np.int64) % 2 == 0
    odd = np.where((error != 0) & even, np.nextafter(value, np.where(error > 0, np.inf, -np.inf)), value)
    return odd.astype(np.float32)


def _float_of_key(key):
    """The float32 with this position in the order of all float32 numbers."""
    bits = np.where(key >= 0x80000000, key - 0x80000000, 0xFFFFFFFF - key)
    return np.where(key < 0x007FFFFF, 0x7FC00000, bits).astype(np.uint32).view(np.float32)


def _shifted(x, multiplier, add, shift, convention):
    """x * multiplier / 2^shift: rounded down, to nearest, twice as gemmlowp does, or once in float64."""
    whole = np.floor(x)
    part = np.floor((x - whole).astype(np.float64) * multiplier).astype(np.int64)
    x = whole.astype(np.int64)
    if convention == "floor":
        return (x * multiplier + part + add) >> shift
    if convention == "single":
        half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
        return (x * multiplier + add + half) >> shift
    if convention == "float64":
        product = (x + add).astype(np.float64) * np.ldexp(multiplier.astype(np.float64), -shift)
        truncated = np.trunc(product)
        nearest = truncated + np.sign(product) * (np.abs(product - truncated) >= 0.5)
        return _limited(nearest, -(1 << 62), 1 << 62)
    lo, hi = -(1 << 31), (1 << 31) - 1
    product = np.clip((x + add) << np.maximum(31 - shift, 0), lo, hi) * multiplier
    total = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = np.clip(np.where(total >= 0, total >> 31, -(-total >> 31)), lo, hi)
    right = np.maximum(shift - 31, 0)
    limit = (((np.int64(1) << right) - 1) >> 1) + (high < 0)
    return (high >> right) + ((high & ((np.int64(1) << right) - 1)) > limit)


def _high_product(a, b):
    """a * b / 2^31 to the nearest integer, ties up, as gemmlowp computes it."""
    return (a * b + (1 << 30)) >> 31


def _divided_by_power(x, bits):
    """x / 2^bits to the nearest integer, ties away from zero."""
    power = np.int64(1) << bits
    return (x >> bits) + ((x & (power - 1)) > ((power - 1) >> 1) + (x < 0))


def _softmax_in_integers(x, exponentials, lowest, bits):
    """TFLite's SOFTMAX of codes along the last axis, with three Newton steps for the sum's reciprocal."""
    exponential = exponentials[x.max(axis=-1, keepdims=True) - x]
    total = _divided_by_power(exponential, 12).sum(axis=-1, keepdims=True)
    zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    half = (total << zeros) >> 1
    reciprocal = 1515870810 - _high_product(half, 1010580540)
    lo, hi = -(1 << 31), (1 << 31) - 1
    for _ in range(3):
        error = (1 << 29) - _high_product(half, reciprocal)
        reciprocal = reciprocal + np.clip(_high_product(reciprocal, error) * 4, lo, hi)
    share = _divided_by_power(_high_product(np.clip(reciprocal * 2, lo, hi), exponential), 43 - bits - zeros)
    return np.minimum(share, (1 << bits) - 1) + lowest


def _softmax_in_floats(x, exponentials, lowest, bits):
    """LiteRT's SOFTMAX of codes along the last axis: float32 sums in order; uint8 (lowest 0) adds 1/2 in float32."""
    exponential = exponentials[x.max(axis=-1, keepdims=True) - x]
    total = np.add.accumulate(exponential, axis=-1)[..., -1:]
    share = exponential * (np.float32(1) / (total * np.float32(2.0**-bits)))
    share = np.trunc(share + np.float32(0.5)) if lowest == 0 else _rounded(share.astype(np.float64), "HALF_UP")
    return np.clip(share.astype(np.int64), 0, (1 << bits) - 1) + lowest


def _on_line(table, x):
    """Codes on the lines between two of the 513 entries of a table, from -32768 on."""
    index = 256 + (x >> 7)
    return table[index] + (((table[index + 1] - table[index]) * (x & 127) + 64) >> 7)


def _softmax_of_int16(x, exponentials, reciprocals, multiplier, exponent):
    """TFLite's SOFTMAX of int16 codes along the last axis, with lines between the entries of tables."""
    below = (x - x.max(axis=-1, keepdims=True)) << max(exponent, 0)
    below = ((below + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)
    below = _divided_by_power(_high_product(below, multiplier), max(-exponent, 0)) + 32767
    exponential = _on_line(exponentials, np.clip(below, -32768, 32767))
    total = exponential.sum(axis=-1, keepdims=True)
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)
    fraction = ((total << (31 - bits)) + (1 << 13) >> 14) - (1 << 15) - (1 << 16)
    product = exponential * _on_line(reciprocals, np.clip(fraction, -32768, 32767))
    return np.clip((product + (1 << (bits - 2))) >> (bits - 1), 0, 32767)
