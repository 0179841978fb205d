"""Softmax of rows of codes in integers, as hardware computes it: mantissas, exponents, exact fixed-point sums."""

from __future__ import annotations

import numpy as np

from hlsgen.ir import QLINEAR_FLOOR, SoftmaxRows
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.graph import MASK_KEPT, MASK_REMOVED
from hlsgen.numerics.fixed import Array

#: Bits of a float32 mantissa, the hidden one included; exponent of the lowest bit of a subnormal float32.
_MANTISSA, _LOWEST = 24, -149
#: Bits of each part of an exact sum; int64 bounds the number of terms.
_PART = 32
#: Bits of a quotient by a sum: enough that it is rounded like the exact quotient.
_QUOTIENT = 74


def softmax_rows(layer: SoftmaxRows, codes: Array) -> Array:
    """Softmax of codes (..., elements of a row), as int64 keys of float32."""
    low = layer.source.type.lo
    rows = (codes if layer.mask is None else np.where(layer.mask == MASK_KEPT, codes, low)).reshape(-1, codes.shape[-1])
    differences = rows.max(axis=1, keepdims=True) - rows
    table_indices = np.minimum(differences, len(layer.powers))  # the entry after the table is 0
    if layer.mask is not None:
        table_indices[np.broadcast_to(layer.mask == MASK_REMOVED, codes.shape).reshape(table_indices.shape)] = len(
            layer.powers
        )
    values = _quotients(layer, table_indices) if layer.in_order else _products(layer, table_indices)
    return float_to_key(values).reshape(codes.shape)


def _look_up(table: Array, indices: Array) -> Array:
    """The entries of a lookup table, and 0 for the index after its last."""
    return np.asarray(np.append(table, np.float32(0))[indices])


def _split_float32(values: Array) -> tuple[Array, Array]:
    """Nonnegative float32 numbers as (integer mantissa of 24 bits, power of 2); the mantissa of 0 is 0."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    mantissa = np.ldexp(fraction, _MANTISSA).astype(np.int64)
    return mantissa, np.where(mantissa > 0, exponent.astype(np.int64) - _MANTISSA, 0)


def _products(layer: SoftmaxRows, indices: Array) -> Array:
    """fl(e * fl(1 / sum)) with the exact sum."""
    sums = _exact_sums(_look_up(layer.powers, indices))
    mantissa, exponent = _split_float32(_look_up(layer.numerators, indices))
    inverse = np.array([_reciprocal(*_round_total(total)) for total in sums], object)
    reciprocals = np.array([m for m, _ in inverse], np.int64), np.array([e for _, e in inverse], np.int64)
    return _float32(mantissa * reciprocals[0][:, None], exponent + reciprocals[1][:, None])


def _exact_sums(rows: Array) -> list[int]:
    """Exact sums of float32 numbers along rows, in multiples of the smallest float32."""
    mantissa, exponent = _split_float32(rows)
    shift = exponent - _LOWEST
    part, left_shift = np.divmod(np.maximum(shift, 0), _PART)
    words = mantissa >> np.maximum(-shift, 0) << left_shift  # spans two parts: this one and the next
    low, high = words & ((1 << _PART) - 1), words >> _PART
    totals = [0] * len(rows)
    for n in range(int(part.max()) + 2):
        sums = (np.where(part == n, low, 0) + np.where(part == n - 1, high, 0)).sum(axis=1)
        totals = [t + (s << (_PART * n)) for t, s in zip(totals, sums.tolist(), strict=True)]
    return totals


def _round_total(total: int) -> tuple[int, int]:
    """A multiple of the smallest float32 as (mantissa of 24 bits, power of 2), rounded to nearest even."""
    drop = total.bit_length() - _MANTISSA
    if drop <= 0:
        return total << -drop, _LOWEST + drop
    mantissa, remainder, half = total >> drop, total & ((1 << drop) - 1), 1 << (drop - 1)
    mantissa += remainder > half or (remainder == half and mantissa & 1 == 1)
    if mantissa >> _MANTISSA:
        return mantissa >> 1, _LOWEST + drop + 1
    return mantissa, _LOWEST + drop


def _reciprocal(mantissa: int, exponent: int) -> tuple[int, int]:
    """fl(1 / (mantissa * 2^exponent)); the quotient is never the midpoint of two numbers of 24 bits."""
    quotient, remainder = divmod(1 << (2 * _MANTISSA - 1), mantissa)
    quotient += 2 * remainder > mantissa
    if quotient >> _MANTISSA:
        return quotient >> 1, 2 - 2 * _MANTISSA - exponent
    return quotient, 1 - 2 * _MANTISSA - exponent


def _quotients(layer: SoftmaxRows, indices: Array) -> Array:
    """fl(numerator / sum), with the sum in float32 from the first element to the last; 0 below the floor."""
    terms = _look_up(layer.powers, indices)
    totals = np.zeros(len(indices), np.float32)
    for position in range(indices.shape[1]):
        totals = totals + terms[:, position]
    sums, powers = _split_float32(totals)
    inverse = np.array([(1 << _QUOTIENT) // int(m) for m in sums], object)
    mantissa, exponent = _split_float32(_look_up(layer.numerators, indices))
    product = mantissa.astype(object) * inverse[:, None]
    drop = _QUOTIENT - _MANTISSA - 10
    high = (product >> drop).astype(np.int64) | (product & ((1 << drop) - 1) != 0)  # never the midpoint of two float32
    values = _float32(high, exponent - powers[:, None] + drop - _QUOTIENT)
    return np.asarray(np.where(values < QLINEAR_FLOOR, np.float32(0), values))


def _float32(product: Array, exponent: Array) -> Array:
    """Integers below 2^62 times powers of 2, rounded to the nearest float32, ties to even."""
    bits = np.frexp(product.astype(np.float64))[1].astype(np.int64)
    bits -= (product >> np.maximum(bits - 1, 0) == 0) & (product > 0)  # float64 may have rounded up
    drop = np.maximum(np.maximum(bits - _MANTISSA, _LOWEST - exponent), 0)
    vanishes = drop > 62
    drop = np.minimum(drop, 62)
    mantissa, remainder = product >> drop, product & ((np.int64(1) << drop) - 1)
    half = np.where(drop > 0, np.int64(1) << np.maximum(drop - 1, 0), 0)
    mantissa = mantissa + ((drop > 0) & ((remainder > half) | ((remainder == half) & (mantissa & 1 == 1))))
    values = np.ldexp(mantissa.astype(np.float64), exponent + drop).astype(np.float32)
    return np.asarray(np.where(vanishes, np.float32(0), values))
