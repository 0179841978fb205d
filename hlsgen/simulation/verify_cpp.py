"""C simulation of a build's C++: every output bit, TLAST, and where the first difference is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import Stream
from hlsgen.driver.compile import Build
from hlsgen.interpreter import graph as reference
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.core_copy import write_core
from hlsgen.simulation.cpp_library import CppCore, Simulated
from hlsgen.simulation.verdict import SimulatorVerdict
from hlsgen.testbench.stream_codec import pack, unpack


def verify_cpp(
    build: Build, files: Mapping[str, bytes], codes: Array, simulator: str, seed: int, progress: Callable[[str], None]
) -> SimulatorVerdict:
    """These frames through the C++ in `files`; if a beat differs, once more to find where. Raises HG052, HG053.

    In every second frame streams seem empty at random to processes that look. A few frames go through streams that
    hold what their pragmas say.
    """
    with work_folder(simulator) as work:
        core = CppCore(build, write_core(files, work), work, simulator)
        expected = reference.run_layers(build.graph, codes)
        output = expected[-1] if expected else codes
        pauses = seed % (1 << 31) + 1
        simulated = core.run(codes, seed=pauses)
        wrong, failures = _compare(build, simulated, output)
        if waits := core.deadlock(codes):
            failures.append(f"with streams of the depths that their pragmas say: {waits}")
        where = None
        if wrong:
            progress(f"{simulator}: locating the divergence")
            where = _first_divergence(build, core.run(codes, layers=True, seed=pauses), [*expected, output])
    return SimulatorVerdict(len(codes), wrong, None, failures, where, asked=len(codes))


def _compare(build: Build, simulated: Simulated, expected: Array) -> tuple[int, list[str]]:
    """How many output beats differ, and what else is wrong."""
    wrong, failures = 0, []
    for port, words, last in zip(build.network.outputs, simulated.words, simulated.last, strict=True):
        stream, named = port.stream, f" of {port.name}" if port.label else ""
        got = unpack(words, port.order, stream, port.value.shape)
        differing = pack(got, port.order, stream) != pack(port.part(expected), port.order, stream)
        wrong += int(differing.any(axis=1).sum())
        ends = np.arange(len(words)) % stream.beats == stream.beats - 1
        if len(places := np.flatnonzero((last != 0) != ends)):
            failures.append(f"TLAST{named} is wrong in {len(places)} beats, first in beat {places[0]}")
        if (_bits(words)[:, stream.bits :]).any():
            failures.append(f"the padding of TDATA{named} is not zero")
    return wrong, failures


def _bits(words: Array) -> Array:
    """Words as bits, the lowest first."""
    return np.unpackbits(words, axis=1, bitorder="little")


def _first_divergence(build: Build, simulated: Simulated, expected: list[Array]) -> dict[str, Any] | None:
    """The first element that differs, in the first layer that has one; else in the output. `expected` ends with that."""
    network, graph = build.network, build.graph
    for node in network.nodes:
        if node.position in simulated.layers:
            order, shape = network.orders[node.position + 1], graph.layers[node.position].result.shape
            got = unpack(simulated.layers[node.position], order, node.result, shape)
            found = _element(node.layer, node.result, order, got, expected[node.position])
            if found:
                return found
    for port, words in zip(network.outputs, simulated.words, strict=True):
        got = unpack(words, port.order, port.stream, port.value.shape)
        right = port.part(expected[-1]).reshape(got.shape)
        if found := _element(port.node.layer or _last_layer(network), port.stream, port.order, got, right):
            return found
    return None


def _last_layer(network: Network) -> str:
    return next((node.layer for node in reversed(network.nodes) if node.layer), "")


def _element(layer: str, stream: Stream, order: Array, got: Array, expected: Array) -> dict[str, Any] | None:
    """What the testbench of Verilog says of the first difference; there is no cycle."""
    sent, right = (codes.reshape(len(codes), -1)[:, order] for codes in (got, expected))
    different = np.argwhere(sent != right)
    if not len(different):
        return None
    frame, position = map(int, different[0])
    channels = expected.shape[-1] if expected.ndim > 1 else 1
    beat = position // stream.group * stream.group_beats + position % stream.group // stream.lanes
    return {
        "test": "c_simulation", "layer": layer, "frame": frame, "beat": beat, "element": int(order[position]),
        "channel": position % channels, "cycle": None, "expected": int(right[frame, position]),
        "actual": int(sent[frame, position]),
    }  # fmt: skip


def note_on_synthesis() -> str:
    """What C simulation with g++ leaves open, in a sentence, and the program that can go on, if it is there."""
    more = " vitis-run is on PATH: --cosim runs it." if shutil.which("vitis-run") else ""
    return f"C++: C simulation with g++; not synthesized by Vitis.{more}"
