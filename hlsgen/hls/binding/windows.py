"""Binds line buffers and pools to functions of the C++ library."""

from __future__ import annotations

from hlsgen.dataflow.units import Node, PoolUnit, ReduceTree, SlidingWindow, TiledPool
from hlsgen.hls.process import Process, process
from hlsgen.ir.window import Reduction, Window

_REDUCTIONS = {Reduction.MAX: "hg::maximum", Reduction.SUM: "hg::total"}


def window_shape(window: Window, height: int, width: int, pad: int, **sizes: int) -> tuple[dict[str, int], ...]:
    """Named constants of a process with windows: image, kernel, its own `sizes`, code of the border."""
    out_height, out_width = window.size(height, width)
    kernel = zip(("K", "S", "D"), (window.kernel, window.strides, window.dilations), strict=True)
    return (
        {"HEIGHT": height, "WIDTH": width, "OUT_H": out_height, "OUT_W": out_width},
        {f"{name}{axis}": value for name, values in kernel for axis, value in zip("HW", values, strict=True)}
        | {"PT": window.pads[0], "PL": window.pads[1]},
        sizes,
        {"PAD": pad},
    )


def bind_sliding(unit: SlidingWindow) -> Process:
    """Call of a line buffer that emits all taps at once."""
    summary = f"windows of {unit.window.kernel[0]} x {unit.window.kernel[1]}, all taps at once"
    return process(
        "sliding",
        summary,
        None,
        window_shape(
            unit.window,
            unit.height,
            unit.width,
            unit.pad,
            FOLDS=unit.folds,
            ROWS=unit.rows,
            COLUMNS=unit.columns,
            PIXELS=unit.pixels,
            WINDOWS=unit.windows,
        ),
    )


def bind_pool(unit: PoolUnit) -> Process:
    """Call of a pool, tap by tap."""
    summary = f"{unit.kind.value} of {unit.window.kernel[0]} x {unit.window.kernel[1]}"
    return process(
        "pool",
        summary,
        None,
        window_shape(unit.window, unit.height, unit.width, unit.pad, GROUPS=unit.folds, DEPTH=unit.depth),
        REDUCE=_REDUCTIONS[unit.kind],
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
