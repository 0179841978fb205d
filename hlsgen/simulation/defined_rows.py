"""Deeploy's integer softmaxes and normalizations, row by row with Python's integers, as its kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlsgen.numerics.fixed import Array


def _number(attributes: Mapping[str, Any], key: str, default: int = 0) -> int:
    """An integer attribute."""
    return int(np.ravel(attributes.get(key, default))[0])


def _rows(function: Callable[[list[int]], list[int]], x: Array) -> Array:
    """The function of each vector along the last axis, in the dtype of x."""
    rows = [function([int(v) for v in row]) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return np.array(rows, np.int64).reshape(x.shape).astype(x.dtype)


def integer_softmax(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """iSoftmax with unsigned results."""
    a, b, c, log2 = (_number(attributes, key) for key in ("coeffA", "coeffB", "coeffC", "log2"))
    levels = _number(attributes, "n_levels", 256)

    def softmax_of(row: list[int]) -> list[int]:
        powers = []
        for x in row:
            t = x - max(row)
            z = min(max(-t // log2, 0), 31)
            p = t + z * log2
            powers.append((a * (p + b) ** 2 + c) >> z)
        return [y * (levels - 1) // sum(powers) for y in powers]

    return _rows(softmax_of, arrays[0])


def ita_max(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """ITAMax, and ITAPartialMax with the whole row as its group."""
    levels = _number(attributes, "n_levels", 256)
    largest_result = levels // 2 - 1 if "group_width" in attributes else levels - 1

    def ita_max_of(row: list[int]) -> list[int]:
        shifts = [(max(row) - x + 16) >> 5 for x in row]
        inverse = largest_result * 256 // sum(256 >> s for s in shifts)
        return [inverse >> s for s in shifts]

    return _rows(ita_max_of, arrays[0])


def _truncated(a: int, b: int) -> int:
    """a / b, rounded toward 0, for a positive b."""
    return a // b if a >= 0 else -(-a // b)


def layer_norm(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """iLayerNorm; the result wraps to 8 bits."""
    x, weight, bias = (np.asarray(a) for a in arrays)
    shift, count = _number(attributes, "D").bit_length() - 1, x.shape[-1]
    w, b = ([int(v) for v in np.broadcast_to(np.ravel(part), count)] for part in (weight, bias))

    def normalized(row: list[int]) -> list[int]:
        mean = _truncated(sum(row), count)
        root = math.isqrt(sum((v - mean) ** 2 for v in row) // count + 1)
        results = [(_truncated((v - mean) * w[j], root) + b[j]) >> shift for j, v in enumerate(row)]
        return [(y + 128) % 256 - 128 for y in results]

    return _rows(normalized, x)


def rms_norm(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """iRMSNorm; the result saturates at 8 bits."""
    x, weight = (np.asarray(a) for a in arrays)
    shift, count = _number(attributes, "D").bit_length() - 1, x.shape[-1]
    w = [int(v) for v in np.broadcast_to(np.ravel(weight), count)]

    def normalized(row: list[int]) -> list[int]:
        root = math.isqrt(sum(v * v for v in row) // count + 1)
        results = [_truncated(v * w[j], root) >> shift for j, v in enumerate(row)]
        return [min(max(y, -128), 127) for y in results]

    return _rows(normalized, x)


ROWS: dict[str, Callable[[Sequence[Array], Mapping[str, Any]], Array]] = {
    "iSoftmax": integer_softmax,
    "ITAMax": ita_max,
    "ITAPartialMax": ita_max,
    "iLayerNorm": layer_norm,
    "iRMSNorm": rms_norm,
}
