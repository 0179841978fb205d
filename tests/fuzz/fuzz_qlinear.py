"""onnxruntime's operators of 8-bit codes, by the formulas of its kernels in ort.py: for fuzz_oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import ort
from numpy.typing import NDArray

Array = NDArray[Any]


def run(op: str, i: list[Any], a: Mapping[str, Any]) -> Array:
    """The result of one operator; `i` are its inputs."""
    if op == "QLinearConcat":
        sy, zy = i[:2]
        parts = [_quantized(_real(*i[n : n + 3]), sy, zy) for n in range(2, len(i), 3)]
        return np.concatenate(parts, axis=a["axis"])
    x, sx, zx = i[:3]
    match op:
        case "QLinearMatMul":
            w, sw, zw, sy, zy = i[3:]
            acc = (x.astype(np.int64) - int(zx)) @ (w.astype(np.int64) - int(zw))
            return _requantized(acc, sx, sw, sy, zy)
        case "QLinearConv":
            from fuzz_oracle import _convolved

            w, sw, zw, sy, zy = i[3:8]
            acc = _convolved(x.astype(np.float64) - float(zx), w.astype(np.float64) - float(zw), a).astype(np.int64)
            if len(i) > 8:
                acc = acc + i[8].reshape(-1, *[1] * (x.ndim - 2))
            return _requantized(acc, sx, sw, sy, zy)
        case "QLinearAdd":
            b, sb, zb, sy, zy = i[3:]
            data = (1, *x.shape[1:]), (1, *b.shape[1:]) if b.shape[:1] == x.shape[:1] else b.shape
            swap = data[0][-1:] in ((), (1,)) and data[1][-1:] not in ((), (1,))
            y = ort.qlinear_add(x, sx, int(zx), b, sb, int(zb), sy, int(zy), *_ends(zy), swap=swap)
            return y.astype(zy.dtype)
        case "QLinearMul":
            b, sb, zb, sy, zy = i[3:]
            return ort.qlinear_mul(x, sx, int(zx), b, sb, int(zb), sy, int(zy), *_ends(zy)).astype(zy.dtype)
        case "QLinearLeakyRelu":
            real = _real(x, sx, zx)
            slope = np.float32(a.get("alpha", 0.01))
            return _quantized(np.where(real >= 0, real, real * slope).astype(np.float32), *i[3:])
        case "QLinearGlobalAveragePool":
            sy, zy = i[3:]
            count = np.float32(np.prod(x.shape[2:]))
            sums = (x.astype(np.int64) - int(zx)).sum(axis=tuple(range(2, x.ndim)), keepdims=True)
            y = np.rint(sums.astype(np.float32) * (np.float32(sx) / (np.float32(sy) * count))).astype(np.int64)
            return np.clip(y + int(zy), *_ends(zy)).astype(zy.dtype)
        case _:
            raise ValueError(op)


def _ends(zero: Array) -> tuple[int, int]:
    info = np.iinfo(zero.dtype)
    return int(info.min), int(info.max)


def _requantized(acc: Array, sx: Array, sw: Array, sy: Array, zy: Array) -> Array:
    return ort.requantize(acc, sx, sw, sy, zy, *_ends(zy)).astype(zy.dtype)


def _real(x: Array, scale: Array, zero: Array) -> Array:
    return ort.dequantize_linear(x, scale, int(zero))


def _quantized(x: Array, scale: Array, zero: Array) -> Array:
    return ort.quantize_linear(x, scale, int(zero), *_ends(zero)).astype(zero.dtype)
