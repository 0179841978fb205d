"""Input codes through the hardware of a build: output codes, and those behind every layer."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.cocotb_runner import simulate
from hlsgen.simulation.verify import failures, prepare
from hlsgen.simulation.verilator_library import NativeCore
from hlsgen.testbench.stream_codec import from_text, unpack


def run_hardware(build: Build, directory: Path, codes: Array, simulator: str) -> Array:
    """(frames, *shape) -> (frames, *shape), int64. Raises HG052, HG053."""
    if simulator == "verilator":
        with (
            tempfile.TemporaryDirectory(prefix="hlsgen-") as temporary,
            NativeCore(build, directory, Path(temporary)) as core,
        ):
            return core.run(codes)
    return _captured(build, directory, codes, simulator, layers=False)[0]


def run_layers(build: Build, directory: Path, codes: Array, simulator: str) -> list[Array | None]:
    """Codes (frames, *shape) behind every layer; None for those that only rename elements."""
    return _captured(build, directory, codes, simulator, layers=True)[1]


def _captured(
    build: Build, directory: Path, codes: Array, simulator: str, *, layers: bool
) -> tuple[Array, list[Array | None]]:  # fmt: skip
    network, graph = build.network, build.graph
    with tempfile.TemporaryDirectory(prefix="hlsgen-") as temporary:
        work = Path(temporary)
        bench = prepare(build, codes, work)
        outcome = simulate(directory, bench, bench, work / "sim", simulator, ["capture"], monitor=layers)
        if not outcome.passed:
            raise fail("HG053", simulator, "; ".join(failures(outcome)))
        data = from_text((bench / "output.hex").read_text(), build.design.output.bits)
        output = unpack(data, network.orders[-1], build.design.output, graph.output.shape)
        found: list[Array | None] = [None] * len(graph.layers)
        for node in network.nodes if layers else ():
            if node.position < 0:
                continue
            beats = len(codes) * node.result.beats
            data = from_text((bench / f"{node.name}.got.hex").read_text(), node.result.bits)[:beats]
            shape = graph.layers[node.position].result.shape
            found[node.position] = unpack(data, network.orders[node.position + 1], node.result, shape)
    return output, found
