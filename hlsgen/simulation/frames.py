"""Frames of a verification: how many, and which."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.workload import works_of
from hlsgen.interpreter.frame_sequence import in_sequence
from hlsgen.interpreter.frame_states import as_sequence, drawn_starts, starts_of
from hlsgen.ir import Graph
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.directed import affordable_frames
from hlsgen.testbench.stimuli import stimuli

#: Most frames that run in an executor of ONNX models.
ORACLE_FRAMES = 40
#: Fewest frames that show the interval.
MIN_FRAMES = 4
#: Multiplications that a simulator computes in about ten seconds.
_BUDGET = {"verilator": 200_000_000, "icarus": 3_000_000, "ap_types": 200_000_000, "ac_types": 1_000_000_000}


def default_frames(graph: Graph, timing: Timing, simulator: str) -> int:
    """Frames for a verification: many small ones, a few large ones."""
    macs = sum(work.macs for work in works_of(graph).values())
    by_cycles = 100_000 // max(1, timing.interval)
    return max(6, min(200, by_cycles, _BUDGET[simulator] // max(1, macs)))


def frames_of(network: Network, aimed: Array, count: int, seed: int, starts_by: str = "") -> Array:
    """The frames to simulate: random ones, then directed frames from `aimed`, at most a quarter.

    In a build with states they are one sequence or, if tuser starts one (`starts_by`), several.
    """
    directed_frames = spread(aimed, count // 4)
    codes = np.concatenate([stimuli(network, count - len(directed_frames), seed), directed_frames])
    starts = drawn_starts(len(codes), seed) if starts_by == "tuser" else starts_of(None, len(codes))
    return as_sequence(network.graph, codes, starts)


def sequence_of(network: Network, aimed: Array, count: int, seed: int) -> Array | None:
    """Such frames in any order, as one sequence, of a file with variables. Other files have none.

    The file runs all of them, a simulator the first ones.
    """
    if not network.graph.model.variables or network.graph.states:
        return None
    frames = frames_of(network, aimed, max(count, oracle_frames(network.graph)), seed)
    return in_sequence(network.graph, np.random.default_rng(seed).permutation(frames))


def oracle_frames(graph: Graph) -> int:
    """The number of frames for an executor of the file."""
    return min(affordable_frames(graph), ORACLE_FRAMES)


def spread(frames: Array, count: int) -> Array:
    """At most `count` of the frames, evenly spaced from the first to the last."""
    if not len(frames) or not count:
        return frames[:0]
    places = np.unique(np.linspace(0, len(frames) - 1, count).astype(int))
    return np.asarray(frames[places])
