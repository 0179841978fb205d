"""Directed stimuli: extremes of every input channel, and frames that bring sums to both sides of thresholds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.dataflow.workload import works_of
from hlsgen.interpreter import graph as reference
from hlsgen.ir import BinaryMap, FloatKey, Graph, Map
from hlsgen.ir.input_codes import input_ends
from hlsgen.numerics.fixed import Array

#: Work of one search or comparison: products, and elements that functions are evaluated on.
_PRODUCTS, _ELEMENTS = 400_000_000, 3_000_000
#: Fewest and most frames, and frames that are tried at a time.
_LEAST, _MOST, _BATCH = 6, 100, 8


def affordable_frames(graph: Graph) -> int:
    """The number of frames that numpy computes in a few seconds."""
    products = sum(work.macs for work in works_of(graph).values())
    elements = graph.input.size + sum(layer.result.size for layer in graph.layers)
    return max(_LEAST, min(_MOST, _PRODUCTS // max(1, products), _ELEMENTS // elements))


def directed(graph: Graph, frames: int, seed: int) -> Array:
    """Input codes (<= frames, *shape), int64: extremes first, then results of a search. Deterministic for a seed."""
    rng = np.random.default_rng(seed)
    corners = _extremes(graph, rng, max(2, frames // 3))
    return np.concatenate([corners, _searched(graph, rng, corners, frames - len(corners))])


def _extremes(graph: Graph, rng: np.random.Generator, limit: int) -> Array:
    """Frames with all elements at the lowest or highest code, then with one channel there and the others at the code
    near 0.

    If there are more channels than frames, channels are drawn at random, and in every second frame each element is at a
    random end.
    """
    shape = graph.input.shape
    lo, hi = _ends(graph)
    if any(isinstance(value.encoding, FloatKey) for _, _, value in graph.streamed_inputs):
        return np.zeros((0, *shape), np.int64)
    frames = [lo, hi]
    channels, middle = shape[-1], np.clip(0, lo, hi)
    channel_ends = [(c, end[..., c]) for c in range(channels) for end in (lo, hi)]
    too_many_channels = len(channel_ends) + 2 > limit
    for number, index in enumerate(rng.permutation(len(channel_ends))):
        if len(frames) >= limit:
            break
        channel, end = channel_ends[index]
        frame = middle.copy()
        frame[..., channel] = end
        frames.append(np.where(rng.random(shape) < 0.5, lo, hi) if too_many_channels and number % 2 else frame)
    return np.stack(frames[:limit])


def _ends(graph: Graph) -> tuple[Array, Array]:
    """The lowest and the highest code of each input element."""
    low, high = input_ends(graph)
    return low.reshape(graph.input.shape), high.reshape(graph.input.shape)


def _searched(graph: Graph, rng: np.random.Generator, start: Array, count: int) -> Array:
    """Frames that each bring an element of some function to a side of a threshold where no earlier frame was.

    The search tries random frames and changes of useful frames, four times as many as are requested.
    """
    shape = graph.input.shape
    seen_sides: set[int] = set()
    useful: list[tuple[int, Array]] = []
    for frame, sides in _sides(graph, start):
        seen_sides.update(sides)
        useful.append((0, frame))
    new_frames: list[tuple[int, Array]] = []
    for _ in range(-(-4 * count // _BATCH)):
        candidates = np.stack([_changed(graph, rng, [f for _, f in useful]) for _ in range(_BATCH)])
        for frame, sides in _sides(graph, candidates):
            new_sides = sides - seen_sides
            if new_sides:
                seen_sides |= new_sides
                useful.append((len(new_sides), frame))
                new_frames.append((len(new_sides), frame))
    best_frames = sorted(new_frames, key=lambda scored: -scored[0])[:count]
    return np.stack([frame for _, frame in best_frames]) if best_frames else np.zeros((0, *shape), np.int64)


def _changed(graph: Graph, rng: np.random.Generator, useful_frames: list[Array]) -> Array:
    """A random frame, or a useful frame with a few elements drawn again or moved by one."""
    (lo, hi), shape = _ends(graph), graph.input.shape
    drawn = rng.integers(lo, hi + 1, shape)
    if not useful_frames or rng.random() < 0.3:
        spread = rng.random()
        return np.where(rng.random(shape) < spread, drawn, np.clip(0, lo, hi))
    frame = useful_frames[int(rng.integers(len(useful_frames)))]
    chosen = rng.random(shape) < rng.choice([0.02, 0.1, 0.5])
    chosen.flat[rng.integers(chosen.size)] = True
    moved = np.clip(frame + rng.choice([-1, 1], shape), lo, hi)
    return np.where(chosen, drawn if rng.random() < 0.5 else moved, frame)


def _sides(graph: Graph, codes: Array) -> Iterator[tuple[Array, set[int]]]:
    """Each frame with the sides of thresholds that it reaches. A side is a number for layer, channel, code and
    direction."""
    for start in range(0, len(codes), _BATCH):
        batch = codes[start : start + _BATCH]
        values = [batch, *reference.run_layers(graph, batch)]
        reached: list[set[int]] = [set() for _ in batch]
        for number, layer in enumerate(graph.layers):
            if not isinstance(layer, Map | BinaryMap):
                continue
            sources = [values[i] for i in layer.inputs]
            result = values[number + 1]
            for side in (-1, 1):
                type_ = (layer.source if isinstance(layer, Map) else layer.sources[0]).type
                moved_result = reference.run_layer(
                    layer, [np.clip(sources[0] + side, type_.lo, type_.hi), *sources[1:]]
                )
                channel = np.broadcast_to(np.arange(result.shape[-1]), result.shape)
                key = ((number * result.shape[-1] + channel) * 2 + (side > 0)) * (1 << 24) + (result & 0xFFFFFF)
                for frame, changes in enumerate(moved_result != result):
                    reached[frame].update(np.unique(key[frame][changes]).tolist())
        yield from zip(batch, reached, strict=True)
