"""Lowers layers that only move elements: slices, borders, repetitions, concatenations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow import units
from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
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
    """The stream after Repeat, Pad or Slice. Raises HG034."""
    flow = b.input_stream(i, 0, name)
    match layer.op:
        case Repeat(rows, columns):
            return _repeat(b, i, layer, name, flow, rows, columns)
        case Pad(pads):
            height, width, channels = layer.source.shape[-3:]
            flow = b.converted(flow, min(flow.stream.lanes, channels), channels, f"{name}_width")
            _check_type(flow.stream.type, layer.result.type, name)
            unit = units.PadBorder(height, width, flow.stream.group_beats, pads, layer.pad)
            result = units.stream_of(layer.result.type, flow.stream.lanes, layer.result.size, channels)
            return b.append(name, unit, [flow], result, layer.name, i)
        case Slice(ranges):
            return _slice(b, i, layer, name, flow, ranges)
        case _:
            assert_never(layer.op)


def _check_type(source: IntType, result: IntType, name: str) -> None:
    """Raises HG034 if elements cannot pass unchanged."""
    if (source.bits, source.signed) != (result.bits, result.signed):
        raise fail("HG034", name, "the border's code is outside of the input's type.", "Pad with a quantized value.")


def _repeat(
    b: NetworkBuilder, i: int, layer: Rearrange, name: str, flow: NamedStream, rows: int, columns: int
) -> NamedStream:
    """Repeats rows by a buffer.

    Columns are repeated by a buffer too or, if the target needs it, as wires with several pixels in a beat.
    """
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
        result = units.Stream(layer.result.type, group, height * rows * beats, group)
        steps: list[tuple[units.Unit, units.Stream]] = []
        if rows > 1:
            steps.append((units.Reorder(beats, ((rows, 0), (beats, 1))), result))
        if columns > 1 or not steps:
            steps.append(
                (units.SelectLanes(tuple(places.tolist())), replace(result, lanes=len(places), group=len(places)))
            )
        for n, (part, sent_stream) in enumerate(steps):
            last = n == len(steps) - 1
            node_name = name if last else f"{name}_rows"
            flow = b.append(node_name, part, [flow], sent_stream, layer.name if last else "", i if last else -1)
        return flow
    flow = b.converted(flow, lanes, channels, f"{name}_width")
    folds = flow.stream.group_beats
    result = units.stream_of(layer.result.type, flow.stream.lanes, size, channels)
    if rows == 1:
        unit: units.Unit = units.Reorder(folds, ((columns, 0), (folds, 1)))
    else:
        unit = units.Reorder(width * folds, ((rows, 0), (width, folds), (columns, 0), (folds, 1)))
    return b.append(name, unit, [flow], result, layer.name, i)


def _slice(
    b: NetworkBuilder, i: int, layer: Rearrange, name: str, flow: NamedStream, ranges: tuple[tuple[int, int, int], ...]
) -> NamedStream:
    """A slice as a crop of beats, or of wires if the innermost axis is cut and the target needs it. Raises HG010."""
    shape = layer.source.shape
    axes = axes_of(b.layout.of_input(b.graph, i), shape)
    assert axes is not None
    levels = [(shape[a], *ranges[a]) for a in axes if shape[a] > 1]
    merged: list[tuple[int, int, int, int]] = []
    for size, start, stop, step in levels:
        if merged and (start, stop, step) == (0, size, 1):
            # The inner axis is complete: merge it with the outer one if that has a step of 1.
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
            return _slice_lanes(b, i, layer, name, flow, merged)
    flow = b.dense(flow, lanes, flow.elements, f"{name}_width")
    lanes = flow.stream.lanes
    merged[-1] = (size // lanes, start // lanes, stop // lanes, step)
    rows, columns, beats = ((m[1], m[2], m[3]) for m in merged)
    unit = units.Crop((merged[0][0], merged[1][0], merged[2][0]), rows, columns, beats)
    result = units.stream_of(layer.result.type, lanes, layer.result.size, layer.result.size)
    return b.append(name, unit, [flow], result, layer.name, i)


def _slice_lanes(
    b: NetworkBuilder, i: int, layer: Rearrange, name: str, flow: NamedStream, levels: list[tuple[int, int, int, int]]
) -> NamedStream:
    """A slice of the innermost level as wires, with several pieces in a beat if the target needs it."""
    size, *inner = levels[-1]
    outer, count = levels[:-1], flow.elements // size
    outer_uncut = all((start, stop, step) == (0, length, 1) for length, start, stop, step in outer)
    pieces = next(d for d in divisors(count) if count // d <= b.target) if outer_uncut else 1
    flow = b.converted(flow, pieces * size, pieces * size, f"{name}_width")
    if not outer_uncut:
        kept_sizes = [len(range(*level[1:])) for level in outer]
        cut = units.Crop((outer[0][0], outer[1][0], 1), outer[0][1:], outer[1][1:], (0, 1, 1))
        result = replace(flow.stream, beats=math.prod(kept_sizes))
        flow = b.append(f"{name}_rows", cut, [flow], result)
    places = np.arange(pieces * size).reshape(pieces, size)[:, slice(*inner)].ravel()
    result = units.Stream(layer.result.type, len(places), flow.stream.beats, len(places))
    return b.append(name, units.SelectLanes(tuple(places.tolist())), [flow], result, layer.name, i)


def concatenate(b: NetworkBuilder, i: int, layer: Concatenation, name: str) -> NamedStream:
    """Beats of one input after the beats of another; side by side in each beat if that is too slow."""
    shapes = [s.shape for s in layer.sources]
    orders = [b.layout.of_input(b.graph, i, n) for n in range(len(shapes))]
    axes = common_axes(orders, shapes)
    assert axes is not None
    inner = [math.prod(s[a] for a in axes[axes.index(layer.axis) :]) for s in shapes]
    flows = [b.input_stream(i, n, name) for n in range(len(shapes))]
    lanes = max(d for d in divisors(math.gcd(*inner)) if d <= max(f.stream.lanes for f in flows))
    if axes[-1] == layer.axis and layer.result.size // lanes > b.target:
        return _concat_channels(b, i, layer, name, flows, inner)
    flows = [
        b.buffered(b.converted(f, lanes, size, f"{name}_width{n}"), f"{name}_wait{n}")
        for n, (f, size) in enumerate(zip(flows, inner, strict=True))
    ]
    flow, joined_size = flows[0], inner[0]
    for n, (appended, size) in enumerate(zip(flows[1:], inner[1:], strict=True), 1):
        last = n == len(flows) - 1
        result = units.stream_of(layer.result.type, lanes, flow.elements + appended.elements, joined_size + size)
        unit = units.ConcatBeats((joined_size // lanes, size // lanes))
        node_name = name if last else f"{name}_part{n}"
        flow = b.append(node_name, unit, [flow, appended], result, layer.name, i if last else -1)
        joined_size += size
    return flow


def _concat_channels(
    b: NetworkBuilder, i: int, layer: Concatenation, name: str, flows: list[NamedStream], channels: list[int]
) -> NamedStream:
    """Whole pixels of all inputs in a beat, as many as the target needs."""
    places = layer.result.size // sum(channels)
    pixels = next(d for d in divisors(places) if places // d <= b.target)
    sides = [
        b.buffered(b.converted(f, pixels * count, pixels * count, f"{name}_width{n}"), f"{name}_wait{n}")
        for n, (f, count) in enumerate(zip(flows, channels, strict=True))
    ]
    flow, joined_channels = sides[0], channels[0]
    for n, (appended, count) in enumerate(zip(sides[1:], channels[1:], strict=True), 1):
        last, lanes = n == len(sides) - 1, pixels * (joined_channels + count)
        result = units.Stream(layer.result.type, lanes, places // pixels, lanes)
        at = (name, layer.name, i) if last else (f"{name}_part{n}", layer.name, -1)
        flow = b.append(
            at[0], units.ConcatChannels((joined_channels, count), pixels), [flow, appended], result, *at[1:]
        )
        joined_channels += count
    return flow
