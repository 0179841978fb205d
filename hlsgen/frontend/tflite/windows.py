"""Windows of TFLite's operators along an axis."""

from __future__ import annotations


def window_along(padding: str, size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Pads (before, after) of an axis for padding SAME or VALID; the smaller half of an odd number is before."""
    if padding == "VALID":
        return 0, 0
    reach = (kernel - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2
