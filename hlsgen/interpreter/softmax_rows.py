"""Softmax along rows of codes in integers, as hardware computes it: mantissas, exponents, exact fixed-point sums."""

from __future__ import annotations

import numpy as np

from hlsgen.ir import QLINEAR_FLOOR, SoftmaxRows
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.graph import MASK_KEPT, MASK_REMOVED
from hlsgen.numerics.fixed import Array

#: Bits of a float32 mantissa, the hidden one included; exponent of the lowest bit of a subnormal float32.
_MANTISSA, _LOWEST = 24, -149
#: Bits of each part of an exact sum; as many terms as int64 holds of it can be added.
_PART = 32
#: Bits of a quotient by a sum: enough that it is rounded as the exact one is.
_QUOTIENT = 74


def softmax_rows(layer: SoftmaxRows, codes: Array) -> Array:
    """Keys of float32 of codes (..., elements of a row), int64."""
    low = layer.source.type.lo
    rows = (codes if layer.mask is None else np.where(layer.mask == MASK_KEPT, codes, low)).reshape(-1, codes.shape[-1])
    differences = rows.max(axis=1, keepdims=True) - rows
    below = np.minimum(differences, len(layer.powers))  # the entry behind a table is 0
    if layer.mask is not None:
        below[np.broadcast_to(layer.mask == MASK_REMOVED, codes.shape).reshape(below.shape)] = len(layer.powers)
    values = _quotients(layer, below) if layer.in_order else _products(layer, below)
    return float_to_key(values).reshape(codes.shape)


def _taken(table: Array, below: Array) -> Array:
    """The entries of a table, and 0 for the one behind its last."""
    return np.asarray(np.append(table, np.float32(0))[below])


def _parts(values: Array) -> tuple[Array, Array]:
    """float32 numbers, not negative, as integer mantissa of 24 bits (0 for 0) and power of 2."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    mantissa = np.ldexp(fraction, _MANTISSA).astype(np.int64)
    return mantissa, np.where(mantissa > 0, exponent.astype(np.int64) - _MANTISSA, 0)


def _products(layer: SoftmaxRows, below: Array) -> Array:
    """fl(e * fl(1 / sum)) with the exact sum."""
    sums = _exact_sums(_taken(layer.powers, below))
    mantissa, exponent = _parts(_taken(layer.numerators, below))
    inverse = np.array([_reciprocal(*_rounded(total)) for total in sums], object)
    own = np.array([m for m, _ in inverse], np.int64), np.array([e for _, e in inverse], np.int64)
    return _float32(mantissa * own[0][:, None], exponent + own[1][:, None])


def _exact_sums(rows: Array) -> list[int]:
    """Sums of float32 along rows, in multiples of the smallest float32."""
    mantissa, exponent = _parts(rows)
    shift = exponent - _LOWEST
    part, left = np.divmod(np.maximum(shift, 0), _PART)
    words = mantissa >> np.maximum(-shift, 0) << left  # of two parts: this one and the next
    low, high = words & ((1 << _PART) - 1), words >> _PART
    totals = [0] * len(rows)
    for n in range(int(part.max()) + 2):
        sums = (np.where(part == n, low, 0) + np.where(part == n - 1, high, 0)).sum(axis=1)
        totals = [t + (s << (_PART * n)) for t, s in zip(totals, sums.tolist(), strict=True)]
    return totals


def _rounded(total: int) -> tuple[int, int]:
    """A whole number of smallest float32 as mantissa of 24 bits and power of 2, rounded to nearest even."""
    drop = total.bit_length() - _MANTISSA
    if drop <= 0:
        return total << -drop, _LOWEST + drop
    mantissa, rest, half = total >> drop, total & ((1 << drop) - 1), 1 << (drop - 1)
    mantissa += rest > half or (rest == half and mantissa & 1 == 1)
    if mantissa >> _MANTISSA:
        return mantissa >> 1, _LOWEST + drop + 1
    return mantissa, _LOWEST + drop


def _reciprocal(mantissa: int, exponent: int) -> tuple[int, int]:
    """fl(1 / (mantissa * 2^exponent)); the quotient is never the middle of two numbers of 24 bits."""
    whole, rest = divmod(1 << (2 * _MANTISSA - 1), mantissa)
    whole += 2 * rest > mantissa
    if whole >> _MANTISSA:
        return whole >> 1, 2 - 2 * _MANTISSA - exponent
    return whole, 1 - 2 * _MANTISSA - exponent


def _quotients(layer: SoftmaxRows, below: Array) -> Array:
    """fl(numerator / sum), the sum in float32 from the first element to the last; what is below the floor is 0."""
    terms = _taken(layer.powers, below)
    totals = np.zeros(len(below), np.float32)
    for place in range(below.shape[1]):
        totals = totals + terms[:, place]
    sums, powers = _parts(totals)
    inverse = np.array([(1 << _QUOTIENT) // int(m) for m in sums], object)
    mantissa, exponent = _parts(_taken(layer.numerators, below))
    product = mantissa.astype(object) * inverse[:, None]
    drop = _QUOTIENT - _MANTISSA - 10
    high = (product >> drop).astype(np.int64) | (product & ((1 << drop) - 1) != 0)  # none is the middle of two float32
    values = _float32(high, exponent - powers[:, None] + drop - _QUOTIENT)
    return np.asarray(np.where(values < QLINEAR_FLOOR, np.float32(0), values))


def _float32(product: Array, exponent: Array) -> Array:
    """Whole numbers below 2^62 times powers of 2, rounded to the nearest float32, ties to even."""
    bits = np.frexp(product.astype(np.float64))[1].astype(np.int64)
    bits -= (product >> np.maximum(bits - 1, 0) == 0) & (product > 0)  # float64 may have rounded up
    drop = np.maximum(np.maximum(bits - _MANTISSA, _LOWEST - exponent), 0)
    gone = drop > 62
    drop = np.minimum(drop, 62)
    mantissa, rest = product >> drop, product & ((np.int64(1) << drop) - 1)
    half = np.where(drop > 0, np.int64(1) << np.maximum(drop - 1, 0), 0)
    mantissa = mantissa + ((drop > 0) & ((rest > half) | ((rest == half) & (mantissa & 1 == 1))))
    values = np.ldexp(mantissa.astype(np.float64), exponent + drop).astype(np.float32)
    return np.asarray(np.where(gone, np.float32(0), values))
