"""Parameters that several kinds of units share."""

from __future__ import annotations

from hlsgen.ir.window import Window
from hlsgen.verilog.binding.memory_files import Bits, Parameter


def code_bits(value: int, bits: int) -> Bits:
    """The two's complement of a code, as a constant of that many bits."""
    return Bits(bits, value & ((1 << bits) - 1))


def above_one(**counts: int) -> dict[str, Parameter]:
    """The parameters that are not 1: the module's default for them is 1."""
    return {name: count for name, count in counts.items() if count > 1}


def window_parameters(window: Window, height: int, width: int) -> dict[str, Parameter]:
    """Sizes of the image, its window and its result, under the names that hg_conv, hg_pool and hg_unfold use."""
    rows, columns = window.size(height, width)
    names = ("HEIGHT", "WIDTH", "KH", "KW", "SH", "SW", "DH", "DW", "PT", "PL", "OUT_H", "OUT_W")
    values = (height, width, *window.kernel, *window.strides, *window.dilations, *window.pads[:2], rows, columns)
    return dict(zip(names, values, strict=True))
