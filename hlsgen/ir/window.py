"""Windows on images, and their reductions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Window:
    """The positions of a kernel on an image; all pairs are (height, width), pads top, left, bottom, right.

    The result has as many positions as fit: floor((size + pads - reach) / stride) + 1.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns spanned from the first to the last tap."""
        return (self.kernel[0] - 1) * self.dilations[0] + 1, (self.kernel[1] - 1) * self.dilations[1] + 1

    def size(self, height: int, width: int) -> tuple[int, int]:
        """(height, width) of the result; less than 1 if the kernel does not fit."""
        top_pad, left_pad, bottom_pad, right_pad = self.pads
        rows, columns = self.reach
        result_width = (width + left_pad + right_pad - columns) // self.strides[1] + 1
        return (height + top_pad + bottom_pad - rows) // self.strides[0] + 1, result_width

    def is_tiling(self, height: int, width: int) -> bool:
        """True if the windows tile the image from the first pixel on, without overlap, gap or padding.

        Pixels after the last window may be unused.
        """
        size = self.size(height, width)
        adjacent = all(s == k or n == 1 for s, k, n in zip(self.strides, self.kernel, size, strict=True))
        fills_image = size == (height // self.kernel[0], width // self.kernel[1]) and self.reach == self.kernel
        return adjacent and fills_image and not any(self.pads)


class Reduction(Enum):
    """How a pool reduces the elements of a window."""

    MAX = "max"
    SUM = "sum"
