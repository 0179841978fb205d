"""Cores of two models fit into one project: they share no module name and no memory file name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import certified_images
import image_nets
import onnx
import pytest
from certified import CASES
from paths import DATA, needs_icarus

import hlsgen
from hlsgen.simulation.verilator_library import tool_environment

#: Reads all files that lie in this folder, without -defer.
_YOSYS = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
ys.run_pass("read_verilog *.v", design)
ys.run_pass("hierarchy -check -top " + sys.argv[1], design)
ys.run_pass("proc; flatten; opt_clean; check -assert", design)
for name in sys.argv[2:]:
    ys.run_pass("select -assert-min 1 w:" + name + ".*", design)
print("DONE")
"""


def read_by_yosys(folder: Path, top: str, *inside: str) -> str:
    """Yosys' output, which ends in DONE; `inside`: instances that are in the flat netlist."""
    command = [sys.executable, "-c", _YOSYS, top, *inside]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return (ended.stdout + ended.stderr).rstrip()


def instance(build: hlsgen.Build, name: str) -> str:
    """An instance of a core; all ports but clock and reset are ports of the project."""
    design = build.design
    ports = {
        "s_axis_tdata": ("input", design.inputs[0].stream.port_bits),
        "s_axis_tvalid": ("input", 1),
        "s_axis_tlast": ("input", 1),
        "m_axis_tready": ("input", 1),
        "m_axis_tdata": ("output", design.outputs[0].stream.port_bits),
        "m_axis_tvalid": ("output", 1),
        "m_axis_tlast": ("output", 1),
        "s_axis_tready": ("output", 1),
        "frame_error": ("output", 1),
    }
    declared = "".join(
        f"    {direction} wire [{bits - 1}:0] {name}_{port},\n" for port, (direction, bits) in ports.items()
    )
    tied = "".join(
        f", .s_axil_{port}({bits}'d0)"
        for port, bits in (
            ("awaddr", 4),
            ("awvalid", 1),
            ("wdata", 32),
            ("wstrb", 4),
            ("wvalid", 1),
            ("bready", 1),
            ("araddr", 4),
            ("arvalid", 1),
            ("rready", 1),
        )
        if design.loads
    )
    bound = "".join(f", .{port}({name}_{port})" for port in ports)
    return f"{declared}|    {design.top} {name} (.clk(clk), .{design.reset}(rst){bound}{tied});\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """All files of two cores in one folder: adders and folded layers, memories that can be written and that cannot."""
    onnx.save(image_nets.network("grouped", 3), tmp_path / "net.onnx")
    shutil.copyfile(DATA / "floor_ceil.onnx", tmp_path / "floor ceil.onnx")
    fast = hlsgen.build(tmp_path / "floor ceil.onnx", tmp_path / "fast", hlsgen.Options(target_cycles=1))
    slow = hlsgen.build(tmp_path / "net.onnx", tmp_path / "slow", hlsgen.Options(loadable=True, target_cycles=2000))
    folder = tmp_path / "project"
    folder.mkdir()
    for build in (fast, slow):
        for name in (name for name in build.files if name.startswith("rtl/")):
            place = folder / name.removeprefix("rtl/")
            assert not place.exists(), name
            place.write_bytes(build.files[name])
    assert {"floor_ceil_node_linear_adders.v", "floor_ceil_hg_axis_in.v", "net_hg_axis_in.v", "net_Conv_10.mem"} <= {
        path.name for path in folder.iterdir()
    }
    ports, cores = zip(*(text.split("|") for text in (instance(fast, "a"), instance(slow, "b"))), strict=True)
    text = "module project (\n" + "".join(ports) + "    input wire clk,\n    input wire rst\n);\n" + "".join(cores)
    (folder / "project.v").write_text(text + "endmodule\n")
    return folder


@pytest.mark.sim
@needs_icarus
def test_icarus(project: Path) -> None:
    """Every memory file is found, and has as many words as are read."""
    sources = sorted(path.name for path in project.glob("*.v"))
    for command in (
        ["iverilog", "-g2005", "-Wall", "-s", "project", "-o", "out.vvp", *sources],
        ["vvp", "-n", "out.vvp"],
    ):
        ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "timescale" not in line]
        assert (ended.returncode, lines) == (0, [])
    (project / "net_Conv_10.mem").unlink()
    ended = subprocess.run(["vvp", "-n", "out.vvp"], cwd=project, capture_output=True, text=True, check=False)
    assert "net_Conv_10.mem" in ended.stdout + ended.stderr


@pytest.mark.sim
def test_verilator(project: Path) -> None:
    sources = sorted(path.name for path in project.glob("*.v"))
    command = [
        "verilator",
        "--lint-only",
        "-Wall",
        "-Wno-DECLFILENAME",
        "-Wno-PINCONNECTEMPTY",
        "-Wno-PINMISSING",
        "--quiet",
        "--top-module",
        "project",
        *sources,
    ]
    ended = subprocess.run(command, cwd=project, env=tool_environment(), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


@pytest.mark.sweep
def test_yosys(project: Path) -> None:
    pytest.importorskip("pyosys")
    said = read_by_yosys(project, "project", "a", "b")
    assert said.endswith("DONE"), said[-2000:]


#: Builds that together have all modules that read memory files.
READERS = ["network", "rank", "table", "compare", "shift", "scale", "product of float32", "correct", "float", "keys"]


@pytest.mark.cases(3)
@pytest.mark.sweep
@pytest.mark.parametrize("name", [*READERS, "padded", "padded whole", "pools", "grouped whole"])
def test_yosys_reads_all_files_of_a_build(name: str, tmp_path: Path) -> None:
    """As many tools document it: files in any order, each module read separately, then the top level."""
    pytest.importorskip("pyosys")
    if name in CASES:
        core = CASES[name].build(tmp_path / "core")
    else:
        core = certified_images.build(name.split()[0], tmp_path / "core", fold=True, whole="whole" in name)
    said = read_by_yosys(core / "rtl", "top")
    assert said.endswith("DONE"), said[-2000:]
