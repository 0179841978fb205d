"""What only moves elements becomes units: slices, borders, repetitions, concatenations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.units import (
    ConcatBeats,
    ConcatChannels,
    Crop,
    PadBorder,
    Reorder,
    SelectLanes,
    Stream,
    Unit,
    stream_of,
)
from hlsgen.dataflow.workload import divisors
from hlsgen.diagnostics import fail
from hlsgen.ir import (
    Concatenation,
    Pad,
    Rearrange,
    Repeat,
    Slice,
)
from hlsgen.ir.stream_order import axes_of, common_axes
from hlsgen.numerics.fixed import IntType


def rearrange(b: NetworkBuilder, i: int, layer: Rearrange, name: str) -> NamedStream:
    """Repeat, Pad or Slice. Raises HG034."""
    flow = b.take(i, 0, name)
    match layer.op:
        case Repeat(rows, columns):
            return _repeat(b, i, layer, name, flow, rows, columns)
        case Pad(pads):
            height, width, channels = layer.source.shape[-3:]
            flow = b.converted(flow, min(flow.stream.lanes, channels), channels, f"{name}_width")
            _check_type(flow.stream.type, layer.result.type, name)
            unit = PadBorder(height, width, flow.stream.group_beats, pads, layer.pad)
            result = stream_of(layer.result.type, flow.stream.lanes, layer.result.size, channels)
            return b.append(name, unit, [flow], result, layer.name, i)
        case Slice(ranges):
            return _slice(b, i, layer, name, flow, ranges)
        case _:
            assert_never(layer.op)


def _check_type(given: IntType, wanted: IntType, name: str) -> None:
    """Whether elements pass as they are. Raises HG034."""
    if (given.bits, given.signed) != (wanted.bits, wanted.signed):
        raise fail("HG034", name, "the border's code is outside of the input's type.", "Pad with a quantized value.")


def _repeat(
    b: NetworkBuilder, i: int, layer: Rearrange, name: str, flow: NamedStream, rows: int, columns: int
) -> NamedStream:
    """Rows from a buffer; columns too, or as wires, of several pixels in a beat, if the target needs it."""
    (height, width, channels), size = layer.source.shape[-3:], layer.result.size
    lanes = min(flow.stream.lanes, channels)
    if size // channels * -(-channels // lanes) > b.target:
        lanes = channels
    if size // channels > b.target:
        pixels = next((p for p in divisors(width) if height * rows * width // p <= b.target), width)
        group = pixels * channels
        flow = b.converted(flow, group, group, f"{name}_width")
        places = np.arange(group).reshape(pixels, channels).repeat(columns, axis=0).ravel()
        beats = width // pixels
        result = Stream(layer.result.type, group, height * rows * beats, group)
        steps: list[tuple[Unit, Stream]] = []
        if rows > 1:
            steps.append((Reorder(beats, ((rows, 0), (beats, 1))), result))
        if columns > 1 or not steps:
            steps.append((SelectLanes(tuple(places.tolist())), replace(result, lanes=len(places), group=len(places))))
        for n, (part, sent) in enumerate(steps):
            last = n == len(steps) - 1
            own = name if last else f"{name}_rows"
            flow = b.append(own, part, [flow], sent, layer.name if last else "", i if last else -1)
        return flow
    flow = b.converted(flow, lanes, channels, f"{name}_width")
    folds = flow.stream.group_beats
    result = stream_of(layer.result.type, flow.stream.lanes, size, channels)
    if rows == 1:
        unit: Unit = Reorder(folds, ((columns, 0), (folds, 1)))
    else:
        unit = Reorder(width * folds, ((rows, 0), (width, folds), (columns, 0), (folds, 1)))
    return b.append(name, unit, [flow], result, layer.name, i)


def _slice(
    b: NetworkBuilder, i: int, layer: Rearrange, name: str, flow: NamedStream, ranges: tuple[tuple[int, int, int], ...]
) -> NamedStream:  # fmt: skip
    shape = layer.source.shape
    axes = axes_of(b.layout.of_input(b.graph, i), shape)
    assert axes is not None
    levels = [(shape[a], *ranges[a]) for a in axes if shape[a] > 1]
    merged: list[tuple[int, int, int, int]] = []
    for size, start, stop, step in levels:
        if merged and (start, stop, step) == (0, size, 1):
            # Full in the inner axis: whole pieces of the outer one, if that keeps neighbours.
            outer = merged[-1]
            if outer[3] == 1:
                merged[-1] = (outer[0] * size, outer[1] * size, outer[2] * size, 1)
                continue
        merged.append((size, start, stop, step))
    if len(merged) > 3:
        raise fail("HG010", layer.name, "it cuts in more than three axes.", "Cut in several steps.")
    merged = [(1, 0, 1, 1)] * (3 - len(merged)) + merged
    size, start, stop, step = merged[-1]
    common = math.gcd(size, start, stop) if step == 1 else 1
    lanes = math.gcd(common, flow.stream.lanes)
    if flow.elements // lanes > b.target:
        lanes = next((d for d in divisors(common) if flow.elements // d <= b.target), common)
        if flow.elements // lanes > b.target and size == shape[axes[-1]]:
            return _picked(b, i, layer, name, flow, merged)
    flow = b.dense(flow, lanes, flow.elements, f"{name}_width")
    lanes = flow.stream.lanes
    merged[-1] = (size // lanes, start // lanes, stop // lanes, step)
    rows, columns, beats = ((m[1], m[2], m[3]) for m in merged)
    unit = Crop((merged[0][0], merged[1][0], merged[2][0]), rows, columns, beats)
    result = stream_of(layer.result.type, lanes, layer.result.size, layer.result.size)
    return b.append(name, unit, [flow], result, layer.name, i)


def _picked(
    b: NetworkBuilder, i: int, layer: Rearrange, name: str, flow: NamedStream, levels: list[tuple[int, int, int, int]]
) -> NamedStream:  # fmt: skip
    """A slice of the innermost level as wires, of several pieces in a beat if the target needs it."""
    size, *inner = levels[-1]
    outer, count = levels[:-1], flow.elements // size
    whole = all((start, stop, step) == (0, length, 1) for length, start, stop, step in outer)
    pieces = next(d for d in divisors(count) if count // d <= b.target) if whole else 1
    flow = b.converted(flow, pieces * size, pieces * size, f"{name}_width")
    if not whole:
        kept = [len(range(*level[1:])) for level in outer]
        cut = Crop((outer[0][0], outer[1][0], 1), outer[0][1:], outer[1][1:], (0, 1, 1))
        result = replace(flow.stream, beats=math.prod(kept))
        flow = b.append(f"{name}_rows", cut, [flow], result)
    places = np.arange(pieces * size).reshape(pieces, size)[:, slice(*inner)].ravel()
    result = Stream(layer.result.type, len(places), flow.stream.beats, len(places))
    return b.append(name, SelectLanes(tuple(places.tolist())), [flow], result, layer.name, i)


def concatenate(b: NetworkBuilder, i: int, layer: Concatenation, name: str) -> NamedStream:
    """Beats of the one, then of the other; side by side in each beat if that is too slow."""
    shapes = [s.shape for s in layer.sources]
    orders = [b.layout.of_input(b.graph, i, n) for n in range(len(shapes))]
    axes = common_axes(orders, shapes)
    assert axes is not None
    inner = [math.prod(s[a] for a in axes[axes.index(layer.axis) :]) for s in shapes]
    flows = [b.take(i, n, name) for n in range(len(shapes))]
    lanes = max(d for d in divisors(math.gcd(*inner)) if d <= max(f.stream.lanes for f in flows))
    if axes[-1] == layer.axis and layer.result.size // lanes > b.target:
        return _beside(b, i, layer, name, flows, inner)
    flows = [
        b.waiting(b.converted(f, lanes, size, f"{name}_width{n}"), f"{name}_wait{n}")
        for n, (f, size) in enumerate(zip(flows, inner, strict=True))
    ]
    flow, done = flows[0], inner[0]
    for n, (other, size) in enumerate(zip(flows[1:], inner[1:], strict=True), 1):
        last = n == len(flows) - 1
        result = stream_of(layer.result.type, lanes, flow.elements + other.elements, done + size)
        unit = ConcatBeats((done // lanes, size // lanes))
        own = name if last else f"{name}_{n}"
        flow = b.append(own, unit, [flow, other], result, layer.name, i if last else -1)
        done += size
    return flow


def _beside(
    b: NetworkBuilder, i: int, layer: Concatenation, name: str, flows: list[NamedStream], channels: list[int]
) -> NamedStream:
    """Whole pixels of both sides in a beat, as many as the target needs."""
    places = layer.result.size // sum(channels)
    pixels = next(d for d in divisors(places) if places // d <= b.target)
    sides = [
        b.waiting(b.converted(f, pixels * own, pixels * own, f"{name}_width{n}"), f"{name}_wait{n}")
        for n, (f, own) in enumerate(zip(flows, channels, strict=True))
    ]
    flow, done = sides[0], channels[0]
    for n, (other, own) in enumerate(zip(sides[1:], channels[1:], strict=True), 1):
        last, both = n == len(sides) - 1, pixels * (done + own)
        result = Stream(layer.result.type, both, places // pixels, both)
        at = (name, layer.name, i) if last else (f"{name}_{n}", layer.name, -1)
        flow = b.append(at[0], ConcatChannels((done, own), pixels), [flow, other], result, *at[1:])
        done += own
    return flow
