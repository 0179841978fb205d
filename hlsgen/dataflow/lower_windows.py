"""Lowers convolutions and pools: tap by tap, all taps at once, or several windows at once."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow import units
from hlsgen.dataflow.adders import append_matrix
from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.folding import at_once
from hlsgen.dataflow.weighted_units import product_of
from hlsgen.dataflow.workload import divisors, is_depthwise, pixels_at_once, work_of
from hlsgen.ir import Convolution, Pooling
from hlsgen.ir.stream_order import vector_layout
from hlsgen.numerics.fixed import Array


def convolution(b: NetworkBuilder, i: int, layer: Convolution, name: str) -> NamedStream:
    """A convolution tap by tap, or with all taps at once if the folding says so."""
    pe, simd = b.folding[layer.name]
    height, width, channels = layer.source.shape[-3:]
    rows, columns = len(layer.weight) // layer.groups, layer.weight.shape[3]
    vector_orders = vector_layout(b.layout.of_input(b.graph, i), layer.source.shape)
    assert vector_orders is not None
    flow = b.input_stream(i, 0, name)
    if work_of(layer).at_once(pe, simd):
        return _unrolled(b, i, layer, name, flow, vector_orders[1])
    depthwise = is_depthwise(layer)
    if depthwise:
        product, simd, rows = product_of(layer), pe, channels
        flow = b.converted(flow, pe, channels, f"{name}_width")
    else:
        # Outside of the image every lane has the pad's code, even a lane without an element.
        product = product_of(layer, empty_zero=not (layer.pad and columns % simd))
        flow = b.converted(flow, simd, columns, f"{name}_width", zeros=product is not units.Product.INTEGER)
    unit = units.ConvUnit(
        weight=_by_taps(layer),
        order=vector_orders[1] if layer.groups == 1 else np.arange(columns),
        product=product,
        window=layer.window,
        height=height,
        width=width,
        groups=-(-channels // pe) if depthwise else layer.groups,
        folds=1 if depthwise else -(-columns // simd),
        repeat=1 if depthwise else -(-rows // pe),
        pe=pe,
        simd=simd,
        depthwise=depthwise,
        pad=layer.pad,
        depth=0,
    )
    result = units.stream_of(layer.result.type, pe, layer.result.size, rows)
    return b.append(name, unit, [flow], result, layer.name, i)


def _unrolled(b: NetworkBuilder, i: int, layer: Convolution, name: str, flow: NamedStream, order: Array) -> NamedStream:
    """All taps of a window at once, or of several windows; `order`: order of the channels in a pixel."""
    (pe, simd), work = b.folding[layer.name], work_of(layer)
    channels, lanes, windows = layer.source.shape[-1], work.elements(pe, simd), work.windows(pe)
    grouped = layer.groups > 1
    product = product_of(layer, empty_zero=grouped or not (layer.pad and channels % lanes))
    zeros = product is not units.Product.INTEGER and not grouped
    flow = _unfolded(b, name, layer, flow, lanes, windows, pixels_in_a_beat(b, layer), zeros=zeros)
    if grouped:
        rows = len(layer.weight) // layer.groups
        unit: units.Unit = units.GroupedMatVec(weight=_by_taps(layer), product=product, pe=pe, rows=rows)
    else:
        unit = units.MatVec(
            weight=_by_taps(layer),
            order=order,
            product=product,
            pe=pe // windows,
            simd=simd,
            vectors=layer.result.size // work.rows,
            windows=windows,
        )
    result = _side_by_side(layer, pe, windows)
    if isinstance(unit, units.MatVec):
        return append_matrix(b, name, unit, flow, result, i)
    return b.append(name, unit, [flow], result, layer.name, i)


def pixels_in_a_beat(b: NetworkBuilder, layer: Convolution) -> int:
    """Pixels of a row in a beat, as many as the target needs."""
    pe, simd = b.folding[layer.name]
    work = work_of(layer)
    if not (work.at_once(pe, simd) and work.does_window_a_cycle(pe, simd)):
        return 1
    return _fitting(b, layer, work.side_by_side(work.windows(pe)))


def _fitting(b: NetworkBuilder, layer: Convolution | Pooling, pixels: list[int]) -> int:
    """The fewest `pixels` with which an image arrives fast enough, or else the most."""
    height, width, _ = layer.source.shape[-3:]
    return next((p for p in pixels if height * -(-width // p) <= b.target), pixels[-1])


def _side_by_side(layer: Convolution | Pooling, lanes: int, windows: int) -> units.Stream:
    """The stream of results with `windows` windows of a row in a beat."""
    across, channels = layer.result.shape[-2:]
    group = channels * (windows if across % windows == 0 else across)
    return units.stream_of(layer.result.type, lanes, layer.result.size, group)


def _unfolded(
    b: NetworkBuilder,
    name: str,
    layer: Convolution | Pooling,
    flow: NamedStream,
    lanes: int,
    windows: int,
    pixels: int,
    *,
    zeros: bool = False,
) -> NamedStream:
    """Beats of all taps of a word of `lanes` elements; or of several windows, with all channels in one beat."""
    height, width, channels = layer.source.shape[-3:]
    group = channels * (pixels if width % pixels == 0 else width)
    flow = b.converted(flow, pixels * lanes, group, f"{name}_width", zeros=zeros)
    folds = -(-channels // lanes)
    unit = units.SlidingWindow(layer.window, height, width, folds, layer.pad, 0, 0, pixels, windows)
    down, across = layer.result.shape[-3:-1]
    beat = layer.window.taps * windows * lanes
    result = units.Stream(flow.stream.type, beat, down * -(-across // windows) * folds, beat * folds)
    return b.append(f"{name}_windows", unit, [flow], result)


def pooling(b: NetworkBuilder, i: int, layer: Pooling, name: str) -> NamedStream:
    """The pool with the fewest lanes that is fast enough."""
    height, width, channels = layer.source.shape[-3:]
    flow = b.input_stream(i, 0, name)
    tiled = layer.window.is_tiling(height, width)
    places = height * width if tiled else layer.result.size // channels * layer.window.taps
    lanes = [flow.stream.lanes, *divisors(channels)]
    fits = [x for x in lanes if places * -(-channels // x) <= b.target and x <= channels]
    if not fits and (counts := at_once(layer)):
        return _pooled_at_once(b, i, layer, name, flow, lanes, counts)
    flow = b.converted(flow, fits[0] if fits else channels, channels, f"{name}_width")
    folds = flow.stream.group_beats
    if tiled:
        unit: units.Unit = units.TiledPool(layer.kind, layer.window.kernel, height, width, folds)
    else:
        unit = units.PoolUnit(layer.kind, layer.window, height, width, folds, layer.pad, 0)
    result = units.stream_of(layer.result.type, flow.stream.lanes, layer.result.size, channels)
    return b.append(name, unit, [flow], result, layer.name, i)


def _pooled_at_once(
    b: NetworkBuilder, i: int, layer: Pooling, name: str, flow: NamedStream, lanes: list[int], counts: list[int]
) -> NamedStream:
    """All taps of a window at once, or of several windows if the target needs it."""
    (height, width, channels), (down, across, _) = layer.source.shape[-3:], layer.result.shape[-3:]
    places = max(down * across, height * width)
    fits = [x for x in lanes if places * -(-channels // x) <= b.target and x <= channels]
    lane, windows, pixels = fits[0] if fits else channels, 1, 1
    for windows in counts if not fits else ():
        pixels = _fitting(b, layer, pixels_at_once(layer.window, height, width, windows))
        if max(down * -(-across // windows), height * -(-width // pixels)) <= b.target:
            break
    flow = _unfolded(b, name, layer, flow, lane, windows, pixels)
    result = _side_by_side(layer, lane * windows, windows)
    return b.append(name, units.ReduceTree(layer.kind, layer.window.taps), [flow], result, layer.name, i)


def _by_taps(layer: Convolution) -> Array:
    """The layer's weights as int64 (outputs, taps, columns)."""
    outputs, height, width, columns = layer.weight.shape
    return layer.weight.reshape(outputs, height * width, columns)
