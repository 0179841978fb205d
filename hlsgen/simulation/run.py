"""Input codes through the hardware of a build: output codes, and those behind every layer."""

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


def run_hardware(
    build: Build, directory: Path, codes: Array, simulator: str, *, allow_changed: bool = False
) -> Array:  # fmt: skip
    """(frames, *shape) -> (frames, *shape), int64, through the Verilog of the build, or its C++.

    Raises HG040 if it has none, HG051 if a file in `directory` differs from the build's, HG052, HG053. allow_changed: what lies there runs.
    """
    if simulator in CPP:
        return _by_cpp(build, directory, codes, simulator, allow_changed, layers=False)[0]
    if simulator != "verilator":
        return _captured(build, directory, codes, simulator, allow_changed, layers=False)[0]
    files = core_files(build, directory, allow_changed=allow_changed)
    with work_folder(simulator) as work:
        return run_library(build, write_core(files, work), work, codes)


def run_layers(
    build: Build, directory: Path, codes: Array, simulator: str, *, allow_changed: bool = False
) -> list[Array | None]:
    """Codes (frames, *shape) behind every layer; None for those that only rename elements. As `run_hardware`."""
    observed = _by_cpp if simulator in CPP else _captured
    return observed(build, directory, codes, simulator, allow_changed, layers=True)[1]


def _by_cpp(
    build: Build, directory: Path, codes: Array, simulator: str, allow_changed: bool, *, layers: bool
) -> tuple[Array, list[Array | None]]:
    network, graph = build.network, build.graph
    files = core_files(build, directory, allow_changed=allow_changed)
    with work_folder(simulator) as work:
        simulated = CppCore(build, write_core(files, work), work, simulator).run(codes, layers=layers)
    found: list[Array | None] = [None] * len(graph.layers)
    for node in network.nodes:
        if node.position in simulated.layers:
            made, order = graph.layers[node.position].result, network.orders[node.position + 1]
            words = unpack(simulated.layers[node.position], order, node.result, made.shape)
            found[node.position] = from_wire(words, made.encoding)
    return output_codes(network, simulated.words), found


def _captured(
    build: Build, directory: Path, codes: Array, simulator: str, allow_changed: bool, *, layers: bool
) -> tuple[Array, list[Array | None]]:
    network, graph = build.network, build.graph
    files = core_files(build, directory, allow_changed=allow_changed)
    with work_folder(simulator) as work:
        core = write_core(files, work)
        bench = prepare(build, codes, work)
        seconds = time_limit(build, len(codes), simulator)
        outcome = simulate(
            core, bench, bench, work / "sim", simulator, ["capture"], monitor=layers, seconds=seconds
        )  # fmt: skip
        if not outcome.passed:
            raise fail("HG053", simulator, "; ".join(failures(outcome)))
        texts = [(bench / f"output{port.label}.hex").read_text() for port in network.outputs]
        ports = zip(texts, network.outputs, strict=True)
        output = output_codes(network, [from_text(text, port.layout.width) for text, port in ports])
        found: list[Array | None] = [None] * len(graph.layers)
        for node in network.nodes if layers else ():
            if node.position < 0:
                continue
            beats = len(codes) * node.result.beats
            data = from_text((bench / f"{node.name}.got.hex").read_text(), node.result.bits)[:beats]
            made = graph.layers[node.position].result
            words = unpack(data, network.orders[node.position + 1], node.result, made.shape)
            found[node.position] = from_wire(words, made.encoding)
    return output, found
