"""Frames as a sequence: the codes of states, which each frame leaves for the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.interpreter.graph import run_output
from hlsgen.ir import Graph, Shape
from hlsgen.numerics.fixed import Array


def starts_of(flags: Sequence[int] | Sequence[bool] | Array | None, frames: int) -> Array:
    """bool (frames,): the frames that start a sequence, from such flags, or from positions of frames. Raises HG054.

    Frame 0 always starts one. For None no other frame does.
    """
    starts = np.zeros(frames, bool)
    if flags is not None and len(flags):
        numbers = np.asarray(flags)
        if numbers.dtype == bool and numbers.shape == (frames,):
            starts = numbers.copy()
        elif numbers.dtype.kind in "iu" and numbers.ndim == 1 and numbers.min() >= 0 and numbers.max() < frames:
            starts[numbers] = True
        else:
            hint = "Give numbers of frames, or a flag for each frame."
            raise fail("HG054", "starts", f"not frames of a sequence of {frames}.", hint)
    starts[:1] = True
    return starts


def as_sequence(graph: Graph, codes: Array, starts: Array) -> Array:
    """Input codes int64 (frames, elements) with states: the codes of a graph without states stay as they are.

    `codes` (frames, ...): codes of the input, without states or with any states, which are replaced. `starts`: bool
    (frames,).
    """
    if not graph.states:
        return codes
    sizes = [state.initial.size for state in graph.states]
    own_size = graph.input.size - sum(sizes)
    outputs = graph.output.size - sum(sizes)
    initial = np.concatenate([state.initial for state in graph.states])
    moved = np.concatenate([outputs + sum(sizes[:n]) + state.moved for n, state in enumerate(graph.states)])
    complete: Array = np.empty((len(codes), graph.input.size), np.int64)
    complete[:, :own_size] = codes.reshape(len(codes), -1)[:, :own_size]
    complete[:, own_size:] = initial
    # The first frames of all sequences together, then the second ones.
    frames = np.arange(len(codes))
    first = np.maximum.accumulate(np.where(starts, frames, 0))
    following = np.argsort(frames - first, kind="stable")
    for row in np.split(following, np.cumsum(np.bincount(frames - first))[:-1]) if len(codes) else ():
        followed = row[(row + 1 < len(codes)) & ~starts[np.minimum(row + 1, len(codes) - 1)]]
        if len(followed):
            next_states = run_output(graph, complete[followed]).reshape(len(followed), -1)
            complete[followed + 1, own_size:] = next_states[:, moved]
    return complete


def without_states(codes: Array, shape: Shape) -> Array:
    """The first codes of each frame, (frames, *shape), of an input or output whose last codes are states."""
    return codes.reshape(len(codes), -1)[:, : math.prod(shape)].reshape(-1, *shape)


def fresh(graph: Graph, codes: Array) -> Array:
    """bool (frames,): the frames whose states in these complete codes are the initial ones, so that starting changes
    nothing."""
    if not graph.states:
        return np.zeros(len(codes), bool)
    initial = np.concatenate([state.initial for state in graph.states])
    return np.asarray((codes.reshape(len(codes), -1)[:, -len(initial) :] == initial).all(axis=1))


def drawn_starts(frames: int, seed: int) -> Array:
    """bool (frames,): starts for a test, determined by the seed: the first, two in a row, and about one in eight."""
    starts = np.random.default_rng(seed).random(frames) < 1 / 8
    starts[:1] = True
    starts[frames // 2 : frames // 2 + 2] = True
    return starts
