"""Windows on images, and what is done in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Window:
    """The places of a kernel on an image; all pairs are (height, width), pads top, left, bottom, right.

    The size of the result is what fits: floor((size + pads - reach) / stride) + 1.
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
        """Rows and columns from the first to the last tap."""
        return (self.kernel[0] - 1) * self.dilations[0] + 1, (self.kernel[1] - 1) * self.dilations[1] + 1

    def size(self, height: int, width: int) -> tuple[int, int]:
        """(height, width) of the result; less than 1 if the kernel does not fit."""
        top, left, bottom, right = self.pads
        rows, columns = self.reach
        across = (width + left + right - columns) // self.strides[1] + 1
        return (height + top + bottom - rows) // self.strides[0] + 1, across

    def side_by_side(self, height: int, width: int) -> bool:
        """Whether the windows lie side by side from the first pixel on, without overlap, gap, or padding.

        Pixels behind the last window may be left over.
        """
        size = self.size(height, width)
        even = all(s == k or n == 1 for s, k, n in zip(self.strides, self.kernel, size, strict=True))
        whole = size == (height // self.kernel[0], width // self.kernel[1]) and self.reach == self.kernel
        return even and whole and not any(self.pads)


class Reduction(Enum):
    """What a pool does with the elements of a window."""

    MAX = "max"
    SUM = "sum"
