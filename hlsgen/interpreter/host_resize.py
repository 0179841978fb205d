"""Linear Resize of images for onnx's reference evaluator, with onnxruntime's float32 operations in the same order.

onnx's own implementation works in float64 and differs in the last places of most results. Pass `OPERATORS` to the
evaluator as `new_ops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.ops import op_resize

from hlsgen.numerics.fixed import Array

#: Coordinate transformation modes implemented here; onnx implements the others.
_MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
_Neighbours = tuple[Array, Array, Array, Array]


class Resize(op_resize.Resize):
    """Resize of float32 images (batch, channels, rows, columns) in mode `linear`; onnx implements all others."""

    op_domain = ""

    def _run(  # type: ignore[override]
        self,
        x: Array,
        roi: Array | None = None,
        scales: Array | None = None,
        sizes: Array | None = None,
        **attributes: Any,
    ) -> tuple[Array]:
        mode = attributes.get("coordinate_transformation_mode") or "half_pixel"
        supported = attributes.get("axes") is None and not attributes.get("antialias") and mode in _MODES
        supported &= (attributes.get("keep_aspect_ratio_policy") or "stretch") == "stretch"
        supported &= x.ndim == 4 and x.dtype == np.float32 and attributes.get("mode") == "linear"
        if supported and sizes is not None and len(sizes) == x.ndim:
            result = [int(size) for size in sizes]
            factors = [np.float32(a) / np.float32(b) for a, b in zip(result, x.shape, strict=True)]
        elif supported and scales is not None and len(scales) == x.ndim:
            factors = [np.float32(scale) for scale in scales]
            result = [int(np.floor(np.float32(size) * factor)) for size, factor in zip(x.shape, factors, strict=True)]
        else:
            return super()._run(x, roi, scales, sizes, **attributes)  # type: ignore[no-any-return]
        if result[:2] != list(x.shape[:2]):
            return super()._run(x, roi, scales, sizes, **attributes)  # type: ignore[no-any-return]
        rows, columns = (_neighbours(x.shape[a], result[a], factors[a], mode) for a in (2, 3))
        return (_interpolate(x, rows, columns),)


OPERATORS: list[Any] = [Resize]


def _neighbours(size: int, result: int, factor: np.float32, mode: str) -> _Neighbours:
    """For each result along an axis: the pixels before and after it, and its distances from both."""
    position, half = np.arange(result, dtype=np.float32), np.float32(0.5)
    if mode == "asymmetric":
        coordinate = position / factor
    elif mode == "align_corners":
        coordinate = position * np.float32(size - 1) / np.float32(max(1, result - 1))
    elif mode == "pytorch_half_pixel" and result == 1:
        coordinate = np.zeros(1, np.float32)
    else:
        coordinate = (position + half) / factor - half
    coordinate = np.clip(coordinate, np.float32(0), np.float32(size - 1))
    lower = coordinate.astype(np.int64)
    after = np.minimum(lower + 1, size - 1)
    from_lower, from_after = (
        np.abs(coordinate - lower.astype(np.float32)),
        np.abs(coordinate - after.astype(np.float32)),
    )
    coincide = lower == after
    return lower, after, np.where(coincide, half, from_lower), np.where(coincide, half, from_after)


def _interpolate(x: Array, rows: _Neighbours, columns: _Neighbours) -> Array:
    """The four pixels around each result, weighted with the distances on the other side."""
    (top_row, bottom_row, from_top, from_bottom), (left_column, right_column, from_left, from_right) = rows, columns
    from_top, from_bottom = from_top[:, None], from_bottom[:, None]
    upper, lower = x[:, :, top_row], x[:, :, bottom_row]
    total = from_right * from_bottom * upper[..., left_column] + from_left * from_bottom * upper[..., right_column]
    total = total + from_right * from_top * lower[..., left_column]
    return np.asarray(total + from_left * from_top * lower[..., right_column])
