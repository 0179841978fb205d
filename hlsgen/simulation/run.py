"""Sends input codes through the hardware of a build; returns output codes, and the codes after every layer."""

from __future__ import annotations

from pathlib import Path

from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.cocotb_runner import simulate, time_limit
from hlsgen.simulation.core_copy import core_files, write_core
from hlsgen.simulation.cpp_library import CppCore
from hlsgen.simulation.simulators import CPP
from hlsgen.simulation.verify_verilog import failures, prepare
from hlsgen.simulation.verilator_library import run_library
from hlsgen.testbench.sample_vectors import output_codes
from hlsgen.testbench.stream_codec import from_text, from_wire, unpack


def run_hardware(build: Build, directory: Path, codes: Array, simulator: str, *, allow_changed: bool = False) -> Array:
    """Output codes (frames, *shape), int64, of the build's Verilog or C++ for input codes (frames, *shape).

    allow_changed: the files in `directory` are simulated even if they differ from the build's. Raises HG040 if the
    build has no code for the simulator, HG051 if a file differs, HG052, HG053.
    """
    if simulator in CPP:
        return _by_cpp(build, directory, codes, simulator, allow_changed, layers=False)[0]
    if simulator != "verilator":
        return _captured(build, directory, codes, simulator, allow_changed, layers=False)[0]
    files = core_files(build.files, directory, allow_changed=allow_changed)
    with work_folder(simulator) as work:
        return run_library(build, write_core(files, work), work, codes)


def run_layers(
    build: Build, directory: Path, codes: Array, simulator: str, *, allow_changed: bool = False
) -> list[Array | None]:
    """Codes (frames, *shape) after each layer, or None for layers that only rename elements. Errors as for
    `run_hardware`."""
    observed = _by_cpp if simulator in CPP else _captured
    return observed(build, directory, codes, simulator, allow_changed, layers=True)[1]


def _by_cpp(
    build: Build, directory: Path, codes: Array, simulator: str, allow_changed: bool, *, layers: bool
) -> tuple[Array, list[Array | None]]:
    """Output codes, and codes after each layer if `layers`, by C simulation."""
    network, graph = build.network, build.graph
    files = core_files(build.files, directory, allow_changed=allow_changed)
    with work_folder(simulator) as work:
        simulated = CppCore(build.cpp, network, write_core(files, work), work, simulator).run(codes, layers=layers)
    layer_codes: list[Array | None] = [None] * len(graph.layers)
    for node in network.nodes:
        if node.position in simulated.layers:
            value, order = graph.layers[node.position].result, network.orders[node.position + 1]
            words = unpack(simulated.layers[node.position], order, node.result, value.shape)
            layer_codes[node.position] = from_wire(words, value.encoding)
    return output_codes(network, simulated.words), layer_codes


def _captured(
    build: Build, directory: Path, codes: Array, simulator: str, allow_changed: bool, *, layers: bool
) -> tuple[Array, list[Array | None]]:
    """Output codes, and codes after each layer if `layers`, recorded by the testbench."""
    network, graph = build.network, build.graph
    files = core_files(build.files, directory, allow_changed=allow_changed)
    with work_folder(simulator) as work:
        core = write_core(files, work)
        bench = prepare(build.design, network, build.timing, codes, work)
        seconds = time_limit(network, build.timing, files, len(codes), simulator)
        outcome = simulate(core, bench, bench, work / "sim", simulator, ["capture"], monitor=layers, seconds=seconds)
        if not outcome.passed:
            raise fail("HG053", simulator, "; ".join(failures(outcome)))
        texts = [(bench / f"output{port.label}.hex").read_text() for port in network.outputs]
        ports = zip(texts, network.outputs, strict=True)
        output = output_codes(network, [from_text(text, port.layout.width) for text, port in ports])
        layer_codes: list[Array | None] = [None] * len(graph.layers)
        for node in network.nodes if layers else ():
            if node.position < 0:
                continue
            beats = len(codes) * node.result.beats
            data = from_text((bench / f"{node.name}.got.hex").read_text(), node.result.bits)[:beats]
            value = graph.layers[node.position].result
            words = unpack(data, network.orders[node.position + 1], node.result, value.shape)
            layer_codes[node.position] = from_wire(words, value.encoding)
    return output, layer_codes
