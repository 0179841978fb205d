"""Vitis, where it is installed: synthesis of a build's C++, and co-simulation of what comes out with its own test bench."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping

from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.simulation.child_process import run_tool, work_folder
from hlsgen.simulation.core_copy import write_core
from hlsgen.simulation.verdict import SimulatorVerdict

#: The name of its verdict.
VITIS = "vitis"
#: Program, what it does, its arguments. They run in a copy of hls/, as the head of hls_config.cfg says.
_CONFIG = ("--config", "hls_config.cfg", "--work_dir", "work")
_STEPS = (
    ("v++", "synthesis", ("-c", "--mode", "hls", *_CONFIG)),
    ("vitis-run", "co-simulation", ("--mode", "hls", "--cosim", *_CONFIG)),
)
#: A step of a large network takes hours.
_SECONDS = 24 * 3600.0
_VECTORS = ("input", "expected")


def require_vitis() -> None:
    """Raises HG052 if one of its programs is not on PATH."""
    missing = [program for program, _, _ in _STEPS if shutil.which(program) is None]
    if missing:
        hint = "Source settings64.sh of Vitis first, or leave --cosim out."
        raise fail("HG052", "--cosim", f"{' and '.join(missing)} of Vitis not on PATH.", hint)


def cosimulate(build: Build, files: Mapping[str, bytes], progress: Callable[[str], None]) -> SimulatorVerdict:
    """Synthesizes the C++ in `files`, and sends the sample vectors of the build through the result. Raises HG052, HG053."""
    require_vitis()
    ends = build.cpp.inputs, build.cpp.outputs
    names = [f"tb/{kind}{end.label}.hex" for kind, side in zip(_VECTORS, ends, strict=True) for end in side]
    frames = len(build.files[names[0]].split()) // build.cpp.inputs[0].stream.beats
    with work_folder(VITIS) as work:
        vectors = {name: build.files[name] for name in names}
        core = write_core({name: data for name, data in files.items() if name.startswith("hls/")} | vectors, work)
        for program, what, arguments in _STEPS:
            progress(f"{VITIS}: {what}")
            command = [shutil.which(program) or program, *arguments]
            done = run_tool(command, core / "hls", os.environ, VITIS, _SECONDS, f"the {what}")
            if done.code:
                last = " ".join(done.log.strip().splitlines()[-3:])
                return SimulatorVerdict(frames, 0, None, [f"{what} ended with {done.code}: {last}"], None)
    return SimulatorVerdict(frames, 0, None, [], None)
