"""Directed stimuli: extremes of every input channel, and frames that bring sums to both sides of thresholds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.dataflow.workload import works_of
from hlsgen.interpreter import graph as reference
from hlsgen.ir import BinaryMap, FloatKey, Graph, Map
from hlsgen.numerics.fixed import Array

#: Work for one search, and one comparison: products, and elements that functions are evaluated on.
_PRODUCTS, _ELEMENTS = 400_000_000, 3_000_000
#: Fewest and most frames, and how many are tried at a time.
_LEAST, _MOST, _BATCH = 6, 100, 8


def affordable_frames(graph: Graph) -> int:
    """Frames that a few seconds of numpy are enough for."""
    products = sum(work.macs for work in works_of(graph).values())
    elements = graph.input.size + sum(layer.result.size for layer in graph.layers)
    return max(_LEAST, min(_MOST, _PRODUCTS // max(1, products), _ELEMENTS // elements))


def directed(graph: Graph, frames: int, seed: int) -> Array:
    """Input codes (<= frames, *shape), int64; extremes first, then what a search has found. The same for the same seed."""
    rng = np.random.default_rng(seed)
    corners = _extremes(graph, rng, max(2, frames // 3))
    return np.concatenate([corners, _searched(graph, rng, corners, frames - len(corners))])


def _extremes(graph: Graph, rng: np.random.Generator, limit: int) -> Array:
    """All elements at the lowest, the highest code; each channel alone at both, the others at the code nearest 0.

    Where there are more channels than frames, channels are drawn, and every second frame has all channels at a
    random end.
    """
    shape = graph.input.shape
    lo, hi = _ends(graph)
    if any(isinstance(value.encoding, FloatKey) for _, _, value in graph.streamed_inputs):
        return np.zeros((0, *shape), np.int64)
    found = [lo, hi]
    channels, middle = shape[-1], np.clip(0, lo, hi)
    every = [(c, end[..., c]) for c in range(channels) for end in (lo, hi)]
    crowded = len(every) + 2 > limit
    for number, at in enumerate(rng.permutation(len(every))):
        if len(found) >= limit:
            break
        channel, end = every[at]
        frame = middle.copy()
        frame[..., channel] = end
        found.append(np.where(rng.random(shape) < 0.5, lo, hi) if crowded and number % 2 else frame)
    return np.stack(found[:limit])


def _ends(graph: Graph) -> tuple[Array, Array]:
    """The least and the greatest code of every element of the input."""
    types = [
        np.array([[value.type.lo], [value.type.hi]]).repeat(value.size, 1) for _, _, value in graph.streamed_inputs
    ]
    lo, hi = np.concatenate(types, axis=1).reshape(2, *graph.input.shape)
    return lo, hi


def _searched(graph: Graph, rng: np.random.Generator, start: Array, count: int) -> Array:
    """Frames of which each brings an element of some function to a side of a threshold where no frame before did.

    Random frames, then changes of those that were kept, four times as many as the frames that are wanted.
    """
    shape = graph.input.shape
    seen: set[int] = set()
    kept: list[tuple[int, Array]] = []
    for frame, sides in _sides(graph, start):
        seen.update(sides)
        kept.append((0, frame))
    fresh: list[tuple[int, Array]] = []
    for _ in range(-(-4 * count // _BATCH)):
        tried = np.stack([_changed(graph, rng, [f for _, f in kept]) for _ in range(_BATCH)])
        for frame, sides in _sides(graph, tried):
            new = sides - seen
            if new:
                seen |= new
                kept.append((len(new), frame))
                fresh.append((len(new), frame))
    best = sorted(fresh, key=lambda found: -found[0])[:count]
    return np.stack([frame for _, frame in best]) if best else np.zeros((0, *shape), np.int64)


def _changed(graph: Graph, rng: np.random.Generator, kept: list[Array]) -> Array:
    """A random frame, or one that was kept with a few elements drawn again or moved by one."""
    (lo, hi), shape = _ends(graph), graph.input.shape
    drawn = rng.integers(lo, hi + 1, shape)
    if not kept or rng.random() < 0.3:
        spread = rng.random()
        return np.where(rng.random(shape) < spread, drawn, np.clip(0, lo, hi))
    frame = kept[int(rng.integers(len(kept)))]
    chosen = rng.random(shape) < rng.choice([0.02, 0.1, 0.5])
    chosen.flat[rng.integers(chosen.size)] = True
    moved = np.clip(frame + rng.choice([-1, 1], shape), lo, hi)
    return np.where(chosen, drawn if rng.random() < 0.5 else moved, frame)


def _sides(graph: Graph, codes: Array) -> Iterator[tuple[Array, set[int]]]:
    """Every frame, and the sides of thresholds that it reaches: numbers of a layer, a channel, a code and a side."""
    for at in range(0, len(codes), _BATCH):
        part = codes[at : at + _BATCH]
        values = [part, *reference.run_layers(graph, part)]
        reached: list[set[int]] = [set() for _ in part]
        for number, layer in enumerate(graph.layers):
            if not isinstance(layer, Map | BinaryMap):
                continue
            sources = [values[i] for i in layer.inputs]
            result = values[number + 1]
            for side in (-1, 1):
                type_ = (layer.source if isinstance(layer, Map) else layer.sources[0]).type
                beside = reference.run_layer(layer, [np.clip(sources[0] + side, type_.lo, type_.hi), *sources[1:]])
                channel = np.broadcast_to(np.arange(result.shape[-1]), result.shape)
                key = ((number * result.shape[-1] + channel) * 2 + (side > 0)) * (1 << 24) + (result & 0xFFFFFF)
                for frame, changes in enumerate(beside != result):
                    reached[frame].update(np.unique(key[frame][changes]).tolist())
        yield from zip(part, reached, strict=True)
