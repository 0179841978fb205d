"""Linear Resize of images for onnx's reference evaluator, in onnxruntime's float32 operations and their order.

onnx's own works in float64 and differs in the last places of most results. Pass `OPERATORS` to it as `new_ops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.ops import op_resize

from hlsgen.numerics.fixed import Array

#: Coordinates of pixels that are computed here; other modes are onnx's own.
_MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
_Neighbours = tuple[Array, Array, Array, Array]


class Resize(op_resize.Resize):
    """Of float32 images (batch, channels, rows, columns) in mode `linear`; everything else is onnx's."""

    op_domain = ""

    def _run(self, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None,  # type: ignore[override]
             **attributes: Any) -> tuple[Array]:  # fmt: skip
        mode = attributes.get("coordinate_transformation_mode") or "half_pixel"
        plain = attributes.get("axes") is None and not attributes.get("antialias") and mode in _MODES
        plain &= (attributes.get("keep_aspect_ratio_policy") or "stretch") == "stretch"
        plain &= x.ndim == 4 and x.dtype == np.float32 and attributes.get("mode") == "linear"
        if plain and sizes is not None and len(sizes) == x.ndim:
            result = [int(size) for size in sizes]
            factors = [np.float32(a) / np.float32(b) for a, b in zip(result, x.shape, strict=True)]
        elif plain and scales is not None and len(scales) == x.ndim:
            factors = [np.float32(scale) for scale in scales]
            result = [int(np.floor(np.float32(size) * factor)) for size, factor in zip(x.shape, factors, strict=True)]
        else:
            return super()._run(x, roi, scales, sizes, **attributes)  # type: ignore[no-any-return]
        if result[:2] != list(x.shape[:2]):
            return super()._run(x, roi, scales, sizes, **attributes)  # type: ignore[no-any-return]
        rows, columns = (_neighbours(x.shape[a], result[a], factors[a], mode) for a in (2, 3))
        return (_between(x, rows, columns),)


OPERATORS: list[Any] = [Resize]


def _neighbours(size: int, result: int, factor: np.float32, mode: str) -> _Neighbours:
    """For each result along an axis: the pixels before and behind it, and how far it is from each."""
    place, half = np.arange(result, dtype=np.float32), np.float32(0.5)
    if mode == "asymmetric":
        at = place / factor
    elif mode == "align_corners":
        at = place * np.float32(size - 1) / np.float32(max(1, result - 1))
    elif mode == "pytorch_half_pixel" and result == 1:
        at = np.zeros(1, np.float32)
    else:
        at = (place + half) / factor - half
    at = np.clip(at, np.float32(0), np.float32(size - 1))
    before = at.astype(np.int64)
    behind = np.minimum(before + 1, size - 1)
    from_before, from_behind = np.abs(at - before.astype(np.float32)), np.abs(at - behind.astype(np.float32))
    same = before == behind
    return before, behind, np.where(same, half, from_before), np.where(same, half, from_behind)


def _between(x: Array, rows: _Neighbours, columns: _Neighbours) -> Array:
    """The four pixels around each result, weighted with the distances on the other side."""
    (top, bottom, from_top, from_bottom), (left, right, from_left, from_right) = rows, columns
    from_top, from_bottom = from_top[:, None], from_bottom[:, None]
    upper, lower = x[:, :, top], x[:, :, bottom]
    total = from_right * from_bottom * upper[..., left] + from_left * from_bottom * upper[..., right]
    total = total + from_right * from_top * lower[..., left]
    return np.asarray(total + from_left * from_top * lower[..., right])
