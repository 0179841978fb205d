"""Chooses input frames: extreme codes, random codes, and both sides of every threshold of the first quantizer."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import FloatUnit, RescaleUnit
from hlsgen.ir import FloatKey, Map, Value, View
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.input_codes import input_ends
from hlsgen.numerics.fixed import Array

#: Largest number of stimulus elements for the thresholds of an input quantizer.
MAX_EDGE_ELEMENTS = 1 << 16

SPECIAL_FLOATS = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        -2.5,
        1e-45,
        -1e-45,
        1.1754944e-38,
        -1.1754944e-38,
        3.4028235e38,
        -3.4028235e38,
        np.inf,
        -np.inf,
        np.nan,
        0.49999997,
        -0.49999997,
        8388609.0,
        -8388609.0,
    ],
    np.float32,
)


def stimuli(network: Network, frames: int, seed: int) -> Array:
    """Input codes int64 (>= frames, *shape), determined by the seed. Each port has codes of its own type."""
    graph, rng = network.graph, np.random.default_rng(seed)
    size = graph.input.size
    edges = _edges(network)
    frames = max(frames, -(-len(edges) // size) if len(edges) else 0)
    low, high = input_ends(graph)
    codes = np.concatenate(
        [
            _of_port(value, low[offset : offset + value.size], high[offset : offset + value.size], rng, frames)
            for _, offset, value in graph.streamed_inputs
        ],
        axis=1,
    )
    if len(edges):
        _place(codes, edges, network)
    return codes.reshape(-1, *graph.input.shape)


def _of_port(value: Value, low: Array, high: Array, rng: np.random.Generator, frames: int) -> Array:
    """Random codes (frames, elements) from low to high, with extreme codes in the first frames."""
    size = value.size
    if isinstance(value.encoding, FloatKey):
        return _floats(rng, frames, size)
    lo = value.type.lo
    codes: Array = low + (rng.integers(lo, value.type.hi + 1, (frames, size)) - lo) % (high - low + 1)
    corners = [low, high, np.clip(0, low, high), np.where(np.arange(size) % 2 == 0, low, high)]
    for i, corner in enumerate(corners[: frames - 1]):
        codes[i] = corner
    return codes


def _floats(rng: np.random.Generator, frames: int, size: int) -> Array:
    bits = rng.integers(0, 1 << 32, (frames, size), dtype=np.uint32)
    wild = bits.view(np.float32)
    tame = (rng.standard_normal((frames, size)) * 8).astype(np.float32)
    values = np.where(rng.random((frames, size)) < 0.5, wild, tame)
    special = rng.random((frames, size)) < 0.1
    return float_to_key(np.where(special, rng.choice(SPECIAL_FLOATS, (frames, size)), values))


def _edges(network: Network) -> Array:
    """Inputs on either side of every threshold of a first quantizer, as (channel set, input), int64 (points, 2)."""
    inputs = network.graph.streamed_inputs
    first = (
        next((layer for layer in network.graph.layers if not isinstance(layer, View)), None)
        if len(inputs) == 1
        else None
    )
    steps = network.choices[first.name].steps if isinstance(first, Map) else None
    if steps is None:
        return np.zeros((0, 2), np.int64)
    table = steps.table
    if table.size * 2 > MAX_EDGE_ELEMENTS:
        table = table[:: -(-table.size * 2 // MAX_EDGE_ELEMENTS)]
    points = np.clip(np.concatenate([table, table - 1]), steps.lo, steps.hi)
    index = np.broadcast_to(np.arange(steps.sets), points.shape)
    return np.stack([index.ravel(), points.ravel()], axis=1)


def _place(codes: Array, edges: Array, network: Network) -> None:
    """Write the edge points to elements that use their channel set, starting at the last frame."""
    unit = next(s.unit for s in network.nodes if isinstance(s.unit, (RescaleUnit, FloatUnit)))
    order, table = network.orders[0], unit.table
    lanes = table.shape[1]
    position = np.arange(len(order))
    used = table[(position // lanes) % len(table), position % lanes]
    for number in np.unique(edges[:, 0]):
        values = edges[edges[:, 0] == number, 1]
        elements = order[used == number]
        frames = -(-len(values) // len(elements))
        slots = [(len(codes) - 1 - f, e) for f in range(min(frames, len(codes))) for e in elements]
        for (frame, element), value in zip(slots, values, strict=False):
            codes[frame, element] = value
