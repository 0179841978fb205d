"""Linear Resize of images for onnx's reference evaluator, with onnxruntime's float32 operations in the same order.

onnx's own implementation works in float64 and differs in the last places of most results. Pass `OPERATORS` to the
evaluator as `new_ops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.ops import op_resize

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.linear_resize import MODES, Neighbours, factors_and_sizes, neighbours


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
        supported = attributes.get("axes") is None and not attributes.get("antialias") and mode in MODES
        supported &= (attributes.get("keep_aspect_ratio_policy") or "stretch") == "stretch"
        supported &= x.ndim == 4 and x.dtype == np.float32 and attributes.get("mode") == "linear"
        resized = factors_and_sizes(x.shape, scales, sizes) if supported else None
        if resized is None:
            return super()._run(x, roi, scales, sizes, **attributes)  # type: ignore[no-any-return]
        factors, result = resized
        if result[:2] != list(x.shape[:2]):
            return super()._run(x, roi, scales, sizes, **attributes)  # type: ignore[no-any-return]
        rows, columns = (neighbours(x.shape[a], result[a], factors[a], mode) for a in (2, 3))
        return (_interpolate(x, rows, columns),)


OPERATORS: list[Any] = [Resize]


def _interpolate(x: Array, rows: Neighbours, columns: Neighbours) -> Array:
    """The four pixels around each result, weighted with the distances on the other side."""
    from_top, from_bottom = rows.from_lower[:, None], rows.from_upper[:, None]
    from_left, from_right = columns.from_lower, columns.from_upper
    above, below = x[:, :, rows.lower], x[:, :, rows.upper]
    total = from_right * from_bottom * above[..., columns.lower] + from_left * from_bottom * above[..., columns.upper]
    total = total + from_right * from_top * below[..., columns.lower]
    return np.asarray(total + from_left * from_top * below[..., columns.upper])
