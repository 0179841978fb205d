"""C simulation of a build's C++: compares every output bit and TLAST, and finds the first difference."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import Stream
from hlsgen.hls.core import Core
from hlsgen.interpreter import graph as reference
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.core_copy import write_core
from hlsgen.simulation.cpp_library import CppCore, Simulated
from hlsgen.simulation.verdict import SimulatorVerdict
from hlsgen.testbench.stream_codec import pack, unpack


def verify_cpp(
    cpp: Core,
    network: Network,
    files: Mapping[str, bytes],
    codes: Array,
    simulator: str,
    progress: Callable[[str], None],
) -> SimulatorVerdict:
    """Runs these frames through the C++ in `files`; if a beat differs, once more to find the place. Raises HG052,
    HG053.

    A few frames go through streams with the depths of their pragmas.
    """
    with work_folder(simulator) as work:
        core = CppCore(cpp, network, write_core(files, work), work, simulator)
        expected = reference.run_layers(network.graph, codes)
        output = expected[-1] if expected else codes
        simulated = core.run(codes)
        differing_beats, failures = _compare(network, simulated, output)
        if deadlock := core.deadlock(codes):
            failures.append(f"with the stream depths of the pragmas: {deadlock}")
        divergence = None
        if differing_beats:
            progress(f"{simulator}: locating the divergence")
            divergence = _first_divergence(network, core.run(codes, layers=True), [*expected, output])
    return SimulatorVerdict(len(codes), differing_beats, None, failures, divergence, asked=len(codes))


def _compare(network: Network, simulated: Simulated, expected: Array) -> tuple[int, list[str]]:
    """The number of differing output beats, and messages on other errors."""
    differing_beats, failures = 0, []
    for port, words, last in zip(network.outputs, simulated.words, simulated.last, strict=True):
        stream, of_port = port.stream, f" of {port.name}" if port.label else ""
        codes = unpack(words, port.order, stream, port.value.shape)
        differs = pack(codes, port.order, stream) != pack(port.part(expected), port.order, stream)
        differing_beats += int(differs.any(axis=1).sum())
        expected_last = np.arange(len(words)) % stream.beats == stream.beats - 1
        if len(wrong_last := np.flatnonzero((last != 0) != expected_last)):
            failures.append(f"TLAST{of_port} is wrong in {len(wrong_last)} beats, first in beat {wrong_last[0]}")
        if (_bits(words)[:, stream.bits :]).any():
            failures.append(f"the padding of TDATA{of_port} is not zero")
    return differing_beats, failures


def _bits(words: Array) -> Array:
    """Words as bits, the lowest bit first."""
    return np.unpackbits(words, axis=1, bitorder="little")


def _first_divergence(network: Network, simulated: Simulated, expected: list[Array]) -> dict[str, Any] | None:
    """The first differing element in the first layer that has one, else in the output. `expected` ends with the
    output."""
    graph = network.graph
    for node in network.nodes:
        if node.position in simulated.layers:
            order, shape = network.orders[node.position + 1], graph.layers[node.position].result.shape
            codes = unpack(simulated.layers[node.position], order, node.result, shape)
            divergence = _element(node.layer, node.result, order, codes, expected[node.position])
            if divergence:
                return divergence
    for port, words in zip(network.outputs, simulated.words, strict=True):
        codes = unpack(words, port.order, port.stream, port.value.shape)
        expected_output = port.part(expected[-1]).reshape(codes.shape)
        if divergence := _element(
            port.node.layer or _last_layer(network), port.stream, port.order, codes, expected_output
        ):
            return divergence
    return None


def _last_layer(network: Network) -> str:
    """Name of the last layer; "" without one."""
    return next((node.layer for node in reversed(network.nodes) if node.layer), "")


def _element(layer: str, stream: Stream, order: Array, codes: Array, expected: Array) -> dict[str, Any] | None:
    """The first difference, in the form of the Verilog testbench without a cycle, or None without a difference."""
    stream_codes, expected_stream_codes = (
        codes.reshape(len(codes), -1)[:, order],
        expected.reshape(len(expected), -1)[:, order],
    )
    different = np.argwhere(stream_codes != expected_stream_codes)
    if not len(different):
        return None
    frame, position = map(int, different[0])
    channels = expected.shape[-1] if expected.ndim > 1 else 1
    beat = position // stream.group * stream.group_beats + position % stream.group // stream.lanes
    return {
        "test": "c_simulation",
        "layer": layer,
        "frame": frame,
        "beat": beat,
        "element": int(order[position]),
        "channel": position % channels,
        "cycle": None,
        "expected": int(expected_stream_codes[frame, position]),
        "actual": int(stream_codes[frame, position]),
    }


def note_on_synthesis() -> str:
    """A sentence: g++ does not replace a synthesis by Vitis. If vitis-run is on PATH, it names --cosim."""
    hint = " vitis-run is on PATH: --cosim runs it." if shutil.which("vitis-run") else ""
    return f"C++: C simulation with g++; not synthesized by Vitis.{hint}"
