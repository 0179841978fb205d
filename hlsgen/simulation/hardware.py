"""Input codes through the RTL of a build directory, in either simulator."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hlsgen.compiler import Build
from hlsgen.errors import fail
from hlsgen.fixed import Array
from hlsgen.simulation.beats import from_text, unpack
from hlsgen.simulation.native import NativeCore
from hlsgen.simulation.simulate import simulate
from hlsgen.simulation.verdict import failures, prepare


def run_hardware(build: Build, directory: Path, codes: Array, simulator: str) -> Array:
    """(frames, *shape) -> (frames, *shape), int64. Raises HG052, HG053."""
    with tempfile.TemporaryDirectory(prefix="hlsgen-") as temporary:
        work = Path(temporary)
        if simulator == "verilator":
            with NativeCore(build, directory, work) as core:
                return core.run(codes)
        bench = prepare(build, codes, work)
        outcome = simulate(directory, bench, bench, work / "sim", simulator, ["capture"])
        if not outcome.passed:
            raise fail("HG053", simulator, "; ".join(failures(outcome)))
        data = from_text((bench / "output.hex").read_text(), build.design.output.bits)
    return unpack(data, build.schedule.orders[-1], build.design.output, build.graph.output.shape)
