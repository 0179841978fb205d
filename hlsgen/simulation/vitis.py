"""Vitis, if it is installed: synthesizes a build's C++, and co-simulates the result with the build's test bench."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping

from hlsgen.diagnostics import fail
from hlsgen.hls.core import Core
from hlsgen.simulation.child_process import run_tool, work_folder
from hlsgen.simulation.core_copy import write_core
from hlsgen.simulation.verdict import SimulatorVerdict

#: The name of its verdict.
VITIS = "vitis"
#: (program, activity, arguments); run in a copy of hls/, as the comment in hls_config.cfg says.
_CONFIG = ("--config", "hls_config.cfg", "--work_dir", "work")
_STEPS = (
    ("v++", "synthesis", ("-c", "--mode", "hls", *_CONFIG)),
    ("vitis-run", "co-simulation", ("--mode", "hls", "--cosim", *_CONFIG)),
)
#: Time limit: a step takes hours for a large network.
_SECONDS = 24 * 3600.0
_VECTORS = ("input", "expected")


def require_vitis() -> None:
    """Raises HG052 if one of the programs is not on PATH."""
    missing = [program for program, _, _ in _STEPS if shutil.which(program) is None]
    if missing:
        hint = "Source settings64.sh of Vitis first, or leave --cosim out."
        raise fail("HG052", "--cosim", f"{' and '.join(missing)} of Vitis not on PATH.", hint)


def cosimulate(
    cpp: Core, build_files: Mapping[str, bytes], core: Mapping[str, bytes], progress: Callable[[str], None]
) -> SimulatorVerdict:
    """Synthesizes the C++ in `core`, and sends the sample vectors in `build_files` through the result. Raises HG052,
    HG053."""
    require_vitis()
    ports = cpp.inputs, cpp.outputs
    names = [
        f"tb/{kind}{port.label}.hex" for kind, side_ports in zip(_VECTORS, ports, strict=True) for port in side_ports
    ]
    frames = len(build_files[names[0]].split()) // cpp.inputs[0].stream.beats
    with work_folder(VITIS) as work:
        vectors = {name: build_files[name] for name in names}
        folder = write_core({name: data for name, data in core.items() if name.startswith("hls/")} | vectors, work)
        for program, activity, arguments in _STEPS:
            progress(f"{VITIS}: {activity}")
            command = [shutil.which(program) or program, *arguments]
            ended = run_tool(command, folder / "hls", os.environ, VITIS, _SECONDS, f"the {activity}")
            if ended.code:
                last = " ".join(ended.log.strip().splitlines()[-3:])
                return SimulatorVerdict(
                    frames, 0, None, [f"{activity} failed with exit code {ended.code}: {last}"], None
                )
    return SimulatorVerdict(frames, 0, None, [], None)
