"""Binds line buffers and pools to functions of the C++ library."""

from __future__ import annotations

from hlsgen.dataflow.units import Node, PoolUnit, ReduceTree, SlidingWindow, TiledPool
from hlsgen.hls.process import Process, process
from hlsgen.ir.window import Reduction, Window

_REDUCTIONS = {Reduction.MAX: "hg::maximum", Reduction.SUM: "hg::total"}


def window_text(window: Window, height: int, width: int) -> str:
    """C++ type with the geometry of the windows of an image."""
    names = ("HEIGHT", "WIDTH", "KH", "KW", "SH", "SW", "DH", "DW", "PT", "PL", "OUT_H", "OUT_W")
    pairs = ((height, width), window.kernel, window.strides, window.dilations, window.pads[:2])
    values = (*(value for pair in pairs for value in pair), *window.size(height, width))
    return f"hg::window<{', '.join(f'{value} /* {name} */' for name, value in zip(names, values, strict=True))}>"


def bind_sliding(unit: SlidingWindow) -> Process:
    """Call of a line buffer that emits all taps at once."""
    summary = f"windows of {unit.window.kernel[0]} x {unit.window.kernel[1]}, all taps at once"
    return process(
        "sliding",
        summary,
        WINDOW=window_text(unit.window, unit.height, unit.width),
        FOLDS=unit.folds,
        ROWS=unit.rows,
        COLUMNS=unit.columns,
        PAD=unit.pad,
        PIXELS=unit.pixels,
        WINDOWS=unit.windows,
    )


def bind_pool(unit: PoolUnit) -> Process:
    """Call of a pool, tap by tap."""
    summary = f"{unit.kind.value} of {unit.window.kernel[0]} x {unit.window.kernel[1]}"
    return process(
        "pool",
        summary,
        REDUCE=_REDUCTIONS[unit.kind],
        WINDOW=window_text(unit.window, unit.height, unit.width),
        GROUPS=unit.folds,
        DEPTH=unit.depth,
        PAD=unit.pad,
    )


def bind_tiled(unit: TiledPool) -> Process:
    """Call of a pool over adjacent windows."""
    summary = f"{unit.kind.value} of {unit.kernel[0]} x {unit.kernel[1]}, adjacent windows"
    return process(
        "reduce",
        summary,
        REDUCE=_REDUCTIONS[unit.kind],
        HEIGHT=unit.height,
        WIDTH=unit.width,
        KH=unit.kernel[0],
        KW=unit.kernel[1],
        OUT_H=unit.size[0],
        OUT_W=unit.size[1],
        FOLDS=unit.folds,
    )


def bind_tree(node: Node, unit: ReduceTree) -> Process:
    """Call of a pool over all taps at once."""
    summary = f"{unit.kind.value} of {unit.taps} taps"
    return process("pool_tree", summary, REDUCE=_REDUCTIONS[unit.kind], TAPS=unit.taps, BEATS=node.source.beats)
