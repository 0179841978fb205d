"""`hlsgen package`: project files in the tools that are here, one core and two; the others' scripts against
stand-ins.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml
from ecp5_netlists import module
from end_cases import inner_output
from host_code import module_of
from models import Net, mlp, save
from paths import needs_icarus
from tcl import in_tcl
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.diagnostics import HlsgenError
from hlsgen.interpreter.graph import run_output
from hlsgen.packaging.kinds import KINDS
from hlsgen.packaging.package import package_files
from hlsgen.packaging.ports import vhdl_name
from hlsgen.simulation.verilator_library import SPLIT, tool_environment
from hlsgen.testbench.sample_vectors import port_words

CORE = "hlsgen:cores:"
#: For Verilator; the second one is needed for several files where a wheel was built by another compiler than the one
#: that is here.
FAST_TO_COMPILE = ["-MAKEFLAGS", "OPT_FAST=-O0", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include", *SPLIT]
#: All that a port can have beside the defaults, which `first` has.
SECOND = {
    "reset_active_low": True,
    "bus_width": "32",
    "tkeep": True,
    "control": True,
    "clock_name": "aclk",
    "reset_name": "aresetn",
}
#: Flows for a single input port and a single output port of a width that memory has.
MEMORY_FLOWS = ["dma", "soc", "litex"]
needs_fusesoc = pytest.mark.skipif(importlib.util.find_spec("fusesoc") is None, reason="fusesoc is not installed")
needs_tcl = pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")
needs_ghdl = pytest.mark.skipif(shutil.which("ghdl") is None, reason="ghdl is not installed")


def image() -> Any:
    scale = np.array([0.5, 0.25, 0.1], np.float32).reshape(1, 3, 1, 1)
    net = Net((1, 3, 4, 4)).quant(scale=scale, bits=5.0, name="q").then("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    return net.then("Mul", np.float32(0.3)).quant(scale=np.float32(0.07), bits=4.0, name="r").model()


@pytest.fixture(scope="module")
def cores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages of three cores of different models for all flows, the third one with a port for each of its inputs and
    outputs; their builds in build-NAME.
    """
    folder = tmp_path_factory.mktemp("cores")
    for name, model, options in [
        ("first", mlp().model(), {"target_cycles": 4, "prefer": "dsp"}),
        ("second", image(), SECOND),
        ("third", inner_output().proto(), {"ports": "separate", "bus_width": "32", "tkeep": True, "control": True}),
    ]:
        save(model, folder / f"{name}.onnx")
        hlsgen.build(folder / f"{name}.onnx", folder / f"build-{name}", hlsgen.Options(**options))
        unsupported = ["vitis", *(["pynq", *MEMORY_FLOWS] if name == "first" else [])]  # vitis: AXI4-Lite, or no memory
        kinds = [kind for kind in KINDS if kind not in unsupported]
        files, notes = hlsgen.package(folder / f"build-{name}", folder / "cores" / name, kinds)
        assert not notes
        assert {f"{name}.core", "package_ip.tcl", f"{name}.qip", "Makefile", f"rtl/{name}.v", "package.json"} <= set(
            files
        )
    return folder


def fusesoc(root: Path, work: Path, *arguments: str, fails: bool = False) -> str:
    """Runs FuseSoC on the cores below `root`. fusesoc is a module of the environment that runs the tests."""
    env = tool_environment()
    command = [sys.executable, "-c", "from fusesoc.main import main; main()", f"--cores-root={root}", "run", *arguments]
    done = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == fails, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.sweep
@needs_fusesoc
def test_setup_of_vendors_tools(cores: Path, tmp_path: Path) -> None:
    """Every source is in their project, every memory in the folder that they run in, or in the project."""
    for target, listed in [("synth", ".tcl"), ("synth_quartus", ".tcl")]:
        fusesoc(cores / "cores", tmp_path, "--setup", f"--target={target}", f"{CORE}first")
        (work,) = (tmp_path / "build").glob(f"*/{target}*")
        text = "".join(path.read_text() for path in work.glob(f"*{listed}"))
        for path in (cores / "cores" / "first" / "rtl").iterdir():
            assert (
                path.suffix == ".mem" and (work / path.name).read_bytes() == path.read_bytes()
            ) or f"rtl/{path.name}" in text, path
            assert target != "synth" or path.suffix != ".mem" or f"read_mem {{{path.name}}}" in text, path
        assert re.search(r"first\.(xdc|sdc)", text)


def project_of_two(cores: Path, tmp_path: Path) -> Path:
    """A FuseSoC project `pair` with both cores in one design, and a simulation of both benches."""
    pair = tmp_path / "pair"
    pair.mkdir()
    ports = {
        name: re.findall(
            r"^    \.(\w+)\(\w+\),?  // (input|output)(?: \[(\d+):0\])?",
            (cores / "cores" / name / f"{name}_instance.v").read_text(),
            re.M,
        )
        for name in ("first", "second")
    }
    outer = [(f"{name}_{port}", way, high) for name, own in ports.items() for port, way, high in own]
    declared = ",\n".join(f"    {way} wire {f'[{high}:0] ' if high else ''}{port}" for port, way, high in outer)
    placed = [
        f"    {name} {name}_core (\n"
        + ",\n".join(f"        .{port}({name}_{port})" for port, _, _ in own)
        + "\n    );\n"
        for name, own in ports.items()
    ]
    (pair / "pair.v").write_text(f"module pair (\n{declared}\n);\n{''.join(placed)}endmodule\n")
    (pair / "both.sv").write_text(
        "module both;\n    first_tb #(.FINISH(0)) a ();\n    second_tb #(.FINISH(0)) b ();\n"
        '    always @(posedge a.clk) if (a.done && b.done) begin $display("both done"); $finish; end\nendmodule\n'
    )
    vectors = [f"../cores/{name}/tb/{name}_{which}.hex" for name in ports for which in ("input", "expected", "mask")]
    for path in vectors:
        shutil.copy(cores / path.removeprefix("../"), pair)
    for name in ports:
        shutil.copy(cores / "cores" / name / "tb" / f"{name}_tb.sv", pair)
    core = {
        "name": "::pair:1.0",
        "filesets": {
            "rtl": {"files": ["pair.v"], "file_type": "verilogSource", "depend": [f"{CORE}first", f"{CORE}second"]},
            "tb": {"files": ["first_tb.sv", "second_tb.sv", "both.sv"], "file_type": "systemVerilogSource"},
            "hex": {"files": [{Path(p).name: {"copyto": Path(p).name}} for p in vectors], "file_type": "user"},
        },
        "targets": {
            "default": {"filesets": ["rtl"]},
            "lint": {
                "flow": "lint",
                "flow_options": {"tool": "verilator", "verilator_options": ["-Wall"]},
                "filesets": ["rtl"],
                "toplevel": "pair",
            },
            "sim": {
                "flow": "sim",
                "flow_options": {"tool": "icarus", "iverilog_options": ["-g2012"]},
                "filesets": ["rtl", "tb", "hex"],
                "toplevel": "both",
            },
            "binary": {
                "flow": "sim",
                "flow_options": {
                    "tool": "verilator",
                    "mode": "binary",
                    "verilator_options": ["--timing", "-CFLAGS", "-std=c++20", *FAST_TO_COMPILE],
                },
                "filesets": ["rtl", "tb", "hex"],
                "toplevel": "both",
            },
        },
    }
    (pair / "pair.core").write_text("CAPI=2:\n" + yaml.safe_dump(core))
    shutil.copytree(cores / "cores", pair / "cores")
    return pair


def both_pass(pair: Path, folder: Path, target: str) -> None:
    printed = fusesoc(pair, folder, f"--target={target}", "::pair")
    assert "both done" in printed
    assert printed.count(" frames, 0 wrong words, frame_error 0") == 2


@pytest.mark.slow
@pytest.mark.sim
@needs_icarus
@needs_fusesoc
def test_two_cores_in_one_project(cores: Path, tmp_path: Path) -> None:
    """FuseSoC takes both cores into one design: lint in Verilator, both benches in one simulation, the names in
    Yosys.
    """
    pair = project_of_two(cores, tmp_path)
    assert "%Warning" not in fusesoc(pair, tmp_path, "--target=lint", "::pair")
    both_pass(pair, tmp_path, "sim")
    (work,) = (tmp_path / "build").glob("*/lint")
    sources = sorted(str(path) for path in pair.glob("cores/*/rtl/*.v"))
    script = "import sys, json\nfrom pyosys import libyosys as ys\nd = ys.Design()\nfor n in json.loads(sys.argv[1]): ys.run_pass('read_verilog -defer ' + n, d)\nys.run_pass('hierarchy -check -top pair', d)\nprint('passed')"
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([str(pair / "pair.v"), *sources])],
        cwd=work,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("passed\n"), (done.stdout + done.stderr)[-2000:]


@pytest.mark.slow
@pytest.mark.sim
@needs_fusesoc
def test_two_cores_in_verilator(cores: Path, tmp_path: Path) -> None:
    """The same simulation in Verilator, whose run-time takes half a minute to compile."""
    both_pass(project_of_two(cores, tmp_path), tmp_path, "binary")


@pytest.mark.sim
@needs_icarus
@needs_fusesoc
def test_the_bench_fails_on_a_changed_memory(cores: Path, tmp_path: Path) -> None:
    shutil.copytree(cores / "cores" / "first", tmp_path / "first")
    assert "8 frames, 0 wrong words" in fusesoc(tmp_path / "first", tmp_path, "--target=sim", f"{CORE}first")
    memory = max((tmp_path / "first" / "rtl").glob("*.mem"), key=lambda path: path.stat().st_size)
    words = memory.read_text().split("\n")
    memory.write_text("\n".join([f"{int(words[0], 16) ^ 1:0{len(words[0])}x}", *words[1:]]))
    printed = fusesoc(tmp_path / "first", tmp_path, "--target=sim", f"{CORE}first", fails=True)
    assert re.search(r"frames, [1-9]\d* wrong words", printed)


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("name", ["first", "second", "third"])
def test_benches_by_make(name: str, cores: Path, tmp_path: Path) -> None:
    """tb/Makefile: the C++ bench in Verilator (of one core), the other one in Icarus."""
    shutil.copytree(cores / "cores" / name, tmp_path / "core")
    for goal in ["icarus", *(["verilator"] if name != "first" else [])]:
        flags = [f"FLAGS={' '.join(FAST_TO_COMPILE)}"] if goal == "verilator" else []
        done = subprocess.run(
            ["make", "-s", "-C", str(tmp_path / "core" / "tb"), goal, *flags],
            env=tool_environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert f"{name}: 8 frames, 0 wrong words, frame_error 0" in done.stdout
    for which in {"first": [], "second": ["expected"], "third": ["expected_s", "expected_p"]}[name]:
        vectors = tmp_path / "core" / "tb" / "run" / f"{name}_{which}.hex"
        before = vectors.read_text()
        vectors.write_text(f"{int(before[0], 16) ^ 15:x}{before[1:]}")
        for command in (["./obj/V" + name], ["vvp", "-n", "bench"]):
            again = subprocess.run(command, cwd=vectors.parent, capture_output=True, text=True)
            assert again.returncode == 1
            assert "1 wrong words" in again.stdout
        vectors.write_text(before)


@needs_tcl
@pytest.mark.parametrize(
    "script", ["package_ip.tcl", "out_of_context.tcl", "first.qip", "first.sdc", "first.xdc", "block_design.tcl"]
)
def test_tcl(script: str, tmp_path: Path) -> None:
    """The scripts run in Tcl with stand-ins for the tools' commands; they name files that are there, and nothing
    runs.
    """
    net = Net((1, 4)).quant(name="q", bits=8.0).linear(2, 4).then("Relu").quant(name="r", bits=8.0)
    save(net.model(), tmp_path / "first.onnx")
    title = 'x"; exec touch /tmp/hlsgen_was_here [exit 3] $nothing } {\n# \\'
    build = hlsgen.check(tmp_path / "first.onnx", hlsgen.Options(name=title, folding={"fc": {"pe": 1, "simd": 1}}))
    kinds = ["vivado", "quartus"] + (["pynq"] if "block" in script else [])
    for path, data in package_files(build, kinds, None, 125.0).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    said = in_tcl(script, tmp_path)
    named = set(re.findall(r"(rtl/[\w.]+)", said))
    if script in ("package_ip.tcl", "out_of_context.tcl", "first.qip"):
        assert named == {f"rtl/{path.name}" for path in (tmp_path / "rtl").iterdir()}
    assert "8.000" in said or script[-3:] not in ("xdc", "sdc")


@pytest.mark.sim
@needs_icarus
@needs_fusesoc
def test_a_port_each_in_fusesoc(cores: Path, tmp_path: Path) -> None:
    """Lint and simulation of a core with a port for each of its inputs and outputs."""
    assert "%Warning" not in fusesoc(cores / "cores" / "third", tmp_path, "--target=lint", f"{CORE}third")
    assert "0 wrong words" in fusesoc(cores / "cores" / "third", tmp_path, "--target=sim", f"{CORE}third")


@needs_tcl
def test_a_port_each_in_vivado(cores: Path, tmp_path: Path) -> None:
    """It is told of every stream, and gives each a DMA engine."""
    core = tmp_path / "core"
    hlsgen.package(cores / "build-third", core, ["pynq"])
    said = in_tcl("package_ip.tcl", core)
    design = in_tcl("block_design.tcl", core)
    for stream, pin in [
        ("s_axis_a", "dma_0/M_AXIS_MM2S"),
        ("s_axis_b", "dma_1/M_AXIS_MM2S"),
        ("m_axis_s", "dma_0/S_AXIS_S2MM"),
        ("m_axis_p", "dma_1/S_AXIS_S2MM"),
    ]:
        assert f"ipx::associate_bus_interfaces -busif {stream} -clock clk" in said
        assert (
            f"{stream} xilinx.com:interface:axis_rtl:1.0 {{{stream}_tdata {stream}_tvalid"
            in (core / "package_ip.tcl").read_text()
        )
        assert f".{stream}_tdata(" in (core / "third_instance.v").read_text()
        both = [f"[get_bd_intf_pins {pin}]", f"[get_bd_intf_pins core/{stream}]"]
        ends = both if stream[0] == "s" else both[::-1]
        assert f"connect_bd_intf_net {' '.join(ends)}" in (core / "block_design.tcl").read_text()
    assert design.count("CONFIG.c_include_mm2s 1 CONFIG.c_include_s2mm 1") == 2


def test_names_of_a_stranger_stay_data(tmp_path: Path) -> None:
    """A title with quotes, brackets and line ends is in comments and strings alone, without them."""
    save(mlp().model(), tmp_path / "m.onnx")
    plainly = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(name="plain"))
    title = '"]\n}; rm -rf $HOME `id` $(id) */ """ %> {{x}} \\" # é'
    oddly = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(name=title))
    kinds = [kind for kind in KINDS if kind not in ("pynq", "vitis", *MEMORY_FLOWS)]
    one, other = (package_files(build, kinds, None, None) for build in (plainly, oddly))
    assert set(one) == set(other)
    core = yaml.safe_load(other["m.core"].decode().split("\n", 1)[1])
    assert core["name"] == "hlsgen:cores:m:1.0"
    assert re.fullmatch(r"Core of the model [\w (),.:+=/-]*, AXI4-Stream in and out", core["description"])
    for path, data in other.items():
        if path.startswith(("rtl/", "host/")) or path.endswith((".bin", "package.json")):
            continue
        lines = [line for line in data.decode().split("\n") if line not in set(one[path].decode().split("\n"))]
        assert all(not re.search(r'[`\\é]|\$\(|\$H|"\]|%>', line) for line in lines), (path, lines)


@pytest.mark.sweep
def test_a_package_again(cores: Path, tmp_path: Path) -> None:
    """The same bytes; files of the user stay, those of the package before go; what is no package is left as it is."""
    out, runner = tmp_path / "out", CliRunner()

    def run(*more: str) -> Any:
        return runner.invoke(app, ["package", str(cores / "build-first"), "-o", str(out), "--json", *more])

    done = run("--for", "fusesoc,vivado")
    assert done.exit_code == 0, done.output
    listed = json.loads(done.stdout)["files"]
    assert sorted(listed) == sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file())
    before = {name: (out / name).read_bytes() for name in listed}
    (out / "mine.txt").write_text("mine")
    assert run("--for", "quartus", "--clock-mhz", "50").exit_code == 0
    assert (out / "mine.txt").read_text() == "mine"
    assert not (out / "first.core").exists()
    assert "-period 20.000" in (out / "first.sdc").read_text()
    assert run("--for", "fusesoc,vivado").exit_code == 0
    assert {name: (out / name).read_bytes() for name in listed} == before
    (out / "first.core").write_text("changed")
    assert json.loads(run("--for", "fusesoc").stdout)["diagnostics"][0]["code"] == "HG060"
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "a").write_text("a")
    with pytest.raises(HlsgenError, match="HG050"):
        hlsgen.package(cores / "build-first", tmp_path / "foreign", ["vivado"])
    assert [p.name for p in (tmp_path / "foreign").iterdir()] == ["a"]


def test_each_flow_has_a_device_of_its_vendor(cores: Path, tmp_path: Path) -> None:
    """That of the build if it is one, else a default that is said; none of another vendor with another's clock."""
    save(mlp().model(), tmp_path / "m.onnx")
    lattice = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(device="ecp5-25k"))
    amd = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(device="xc7a35t"))

    def chosen(build: Any, kinds: list[str], device: str | None = None) -> Any:
        found = json.loads(package_files(build, kinds, device, None)["package.json"])["devices"]
        return {kind: [(one["device"], one["clock_mhz"]) for one in devices] for kind, devices in found.items()}

    assert chosen(amd, ["vivado", "yosys"]) == {"vivado": [("xc7a35t", 100.0)], "yosys": [("xc7a35t", 100.0)]}
    assert chosen(lattice, ["yosys", "ci"]) == {"yosys": [("ecp5-25k", 80.0)], "ci": []}
    assert chosen(lattice, ["vivado"], "zu3eg") == {"vivado": [("zu3eg", 200.0)]}
    assert chosen(lattice, ["fusesoc"]) == {"fusesoc": [("xc7z020", 100.0), ("cyclonev-5csema5", 100.0)]}
    assert b"-period 10.000" in package_files(lattice, ["fusesoc"], None, None)["m.xdc"]
    for build, kind, device, text in [
        (lattice, "vivado", None, "the build is for ecp5-25k, of Lattice. Give --device with one of xc7a35t, "),
        (lattice, "pynq", None, "the build is for ecp5-25k"),
        (amd, "quartus", None, "needs a device of Intel"),
        (amd, "vivado", "max10-10m50", "--device names max10-10m50, of Intel"),
    ]:
        with pytest.raises(HlsgenError, match=f"HG040 --for {kind}: .*{text}"):
            package_files(build, [kind], device, None)
    done = CliRunner().invoke(
        app, ["package", str(cores / "build-first"), "-o", str(tmp_path / "o"), "--for", "vivado,quartus,ci"]
    )
    assert "vivado: xc7z020 at 100 MHz\nquartus: cyclonev-5csema5 at 100 MHz\nwrote" in done.stdout
    readme = (tmp_path / "o" / "README.md").read_text()
    assert all(word in readme for word in ("package_ip.tcl", "first.qip", "xc7z020 at 100 MHz", "host/"))


@pytest.mark.parametrize(
    "changes, code, exit_code",
    [
        ({"--for": "vivado,spreadsheet"}, "HG040", 2),
        ({"--for": ""}, "HG040", 2),
        ({"--device": "nothing"}, "HG040", 2),
        ({"--clock-mhz": "-1"}, "HG040", 2),
    ],
)
def test_refused(changes: dict[str, str], code: str, exit_code: int, cores: Path, tmp_path: Path) -> None:
    words = {"--for": "vivado", "-o": str(tmp_path / "out"), **changes}
    done = CliRunner().invoke(
        app, ["package", str(cores / "build-first"), "--json", *(w for pair in words.items() for w in pair)]
    )
    assert (done.exit_code, json.loads(done.stdout)["diagnostics"][0]["code"]) == (exit_code, code)
    assert not (tmp_path / "out").exists()


@pytest.mark.sweep
def test_refused_builds(cores: Path, tmp_path: Path) -> None:
    shutil.copytree(cores / "build-first", tmp_path / "changed")
    (tmp_path / "changed" / "rtl" / "first.v").write_text("module first; endmodule\n")
    (tmp_path / "changed" / "rtl" / "notes.txt").write_text("mine")
    with pytest.raises(HlsgenError) as error:
        hlsgen.package(tmp_path / "changed", tmp_path / "out", ["vivado"])
    said = [
        "HG051 rtl/first.v: differs from a new build of the model. Build again.",
        "HG051 rtl/notes.txt: does not belong to the build. Move it away.",
    ]
    assert [str(problem) for problem in error.value.diagnostics] == said
    assert [str(problem) for problem in hlsgen.verify(tmp_path / "changed", []).diagnostics] == said
    save(image(), tmp_path / "m.onnx")
    wide = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="float32", lanes=3))
    with pytest.raises(HlsgenError, match=r"HG040 --for pynq: s_axis_tdata has 96 bits"):
        package_files(wide, ["pynq"], None, None)
    with pytest.raises(HlsgenError, match="HG040 --for pynq: the block design is for Zynq-7000; xc7a35t is"):
        package_files(wide, ["pynq"], "xc7a35t", None)
    cpp = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(target="hls"))
    with pytest.raises(HlsgenError, match="has no Verilog"):
        package_files(cpp, ["vivado"], None, None)


@pytest.mark.parametrize(("target", "extras"), [("verilog", "sim,oracle"), ("verilog,hls", "sim,oracle,csim")])
def test_the_workflow_installs_what_verify_needs(target: str, extras: str, tmp_path: Path) -> None:
    save(image(), tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(target=target))
    workflow = package_files(build, ["ci"], None, None)[".github/workflows/m.yml"].decode()
    wheel = f"hlsgen-{hlsgen.__version__}-py3-none-any.whl"
    assert f"pip install './wheels/{wheel}[{extras}]'" in workflow
    assert "pip wheel" in workflow
    assert yaml.safe_load(workflow)["jobs"]


def test_the_workflow_of_an_installed_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip can install the same commit again: no wheel is needed."""
    save(image(), tmp_path / "m.onnx")
    url = {"url": "https://host/hlsgen", "vcs_info": {"vcs": "git", "commit_id": "12ab"}}
    monkeypatch.setattr("hlsgen.installation._direct_url", lambda: url)
    workflow = package_files(hlsgen.check(tmp_path / "m.onnx"), ["ci"], None, None)[".github/workflows/m.yml"].decode()
    assert "pip install 'hlsgen[sim,oracle] @ git+https://host/hlsgen@12ab'" in workflow
    assert "wheel" not in workflow


@needs_ghdl
def test_vhdl(cores: Path, tmp_path: Path) -> None:
    """Component and instance, in an architecture with a signal for each port."""
    component, instance = (cores / "cores" / "second" / "second_instance.vhd").read_text().split("end component;")
    signals = re.findall(r"^ +(\S+) : (?:in|out) (.*?);?$", component, re.M)
    declared = "".join(f"signal {name} : {type_};\n" for name, type_ in signals)
    text = f"library ieee;\nuse ieee.std_logic_1164.all;\nentity w is end entity;\narchitecture a of w is\n{component}end component;\n{declared}begin\n{instance}end architecture;\n"
    (tmp_path / "w.vhd").write_text(text)
    done = subprocess.run(["ghdl", "-a", "--std=93", "w.vhd"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("first", "first"),
        ("Top", "\\Top\\"),
        ("a__b", "\\a__b\\"),
        ("_a", "\\_a\\"),
        ("a_", "\\a_\\"),
        ("entity", "\\entity\\"),
    ],
)
def test_vhdl_names(name: str, wanted: str) -> None:
    assert vhdl_name(name) == wanted


@pytest.mark.parametrize("prefix", ["", "yowasp-"])
def test_makefile_of_yosys(prefix: str, cores: Path, tmp_path: Path) -> None:
    """With stand-ins for the tools: each gets what the one before wrote, and finds sources and memories.

    They are taken from PATH, also under the names that `pip install` of YoWASP's packages gives them. Between Yosys and
    the placer, registers move into blocks.
    """
    make = shutil.which("make")
    shutil.copytree(cores / "cores" / "first", tmp_path / "core")
    tools = {
        "yosys": "test -f first.v && test -f hg_harness.v && ls *.mem >/dev/null && for f in $(sed -n 's/^read_verilog -defer //p' ../synth.ys); do test -f $f || exit 1; done && cp ../../netlist.json .",
        "nextpnr-ecp5": "grep -q OUTREG netlist.json && echo routed > routed",
        "ecppack": 'test -f routed && for last; do :; done && echo bits > "$last"',
    }
    (tmp_path / "bin").mkdir()
    for name, text in tools.items():
        (tmp_path / "bin" / f"{prefix}{name}").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / f"{prefix}{name}").chmod(0o755)
    (tmp_path / "netlist.json").write_text(json.dumps({"modules": {"hg_harness": module(18)}}))
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "PYTHON": sys.executable}
    if prefix and any(shutil.which(name, path="/usr/bin:/bin") for name in tools):
        pytest.skip("the system has tools of these names")
    done = subprocess.run(["sh", "-c", f"{make} -s"], cwd=tmp_path / "core", env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "core" / "build" / "first.bit").read_text() == "bits\n"


class _Channel:
    def __init__(self, act: Any) -> None:
        self.act = act

    def transfer(self, buffer: Any) -> None:
        self.buffer = buffer

    def wait(self) -> None:
        self.act(self.buffer)


@pytest.mark.parametrize("name", ["first", "third"])
def test_pynq_driver_with_stand_ins(name: str, cores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DMA engines answer with the integers of the reference: the driver gives what `run` gives."""
    options = {"bus_width": "32"} if name == "first" else {"bus_width": "32", "ports": "separate"}
    build = hlsgen.build(cores / f"{name}.onnx", tmp_path / "build", hlsgen.Options(**options))
    hlsgen.package(tmp_path / "build", tmp_path / "out", ["pynq"])
    host = module_of(tmp_path / "out", name)
    stand_in = ModuleType("pynq")
    stand_in.Overlay = stand_in.allocate = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynq", stand_in)
    monkeypatch.setitem(sys.modules, name, host)
    driver = module_of(tmp_path / "out", f"{name}_pynq")
    frames = build.graph.streamed_inputs
    codes = np.random.default_rng(3).integers(-3, 3, (7, *build.graph.input.shape))
    answers = run_output(build.graph, codes)
    sent = {port.name: port_words(port, codes) for port in build.network.inputs}
    wanted = {port.name: port_words(port, answers) for port in build.network.outputs}
    assert len(sent) == len(frames)
    waited = []

    def engine(into: Any, out: Any) -> Any:
        def came(buffer: Any) -> None:
            assert buffer.tobytes() == sent[into].reshape(7, -1)[len(waited) // len(sent)].tobytes()
            waited.append(into)

        def answer(buffer: Any) -> None:
            frame = wanted[out].reshape(7, -1)[len(waited) // len(sent) - 1]
            buffer[:] = frame

        made = ModuleType("dma")
        made.sendchannel, made.recvchannel = _Channel(came), _Channel(answer)  # type: ignore[attr-defined]
        return made

    pairs = list(zip(sent, wanted, strict=True))
    engines = {f"dma_{n}": engine(*pair) for n, pair in enumerate(pairs)} if len(pairs) > 1 else engine(*pairs[0])
    made = driver.Driver(dma=engines, allocate=lambda shape, dtype: np.zeros(shape, dtype))
    np.testing.assert_array_equal(made.codes(codes), answers)


class _Memory:
    """Buffers at addresses, and registers of hg_dma that answer a job with `answer`(bytes by port, number of frames)."""

    def __init__(self, channels: Any, answer: Any) -> None:
        self.channels, self.answer = channels, answer
        self.buffers: dict[int, Any] = {}
        self.words: dict[int, int] = {}

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> Any:
        buffer = np.zeros(shape, dtype).view(_Buffer)
        buffer.physical_address = (1 << 33) + 4096 * len(self.buffers)
        self.buffers[buffer.physical_address] = buffer
        return buffer

    def read(self, address: int) -> int:
        return self.words[address]

    def write(self, address: int, word: int) -> None:
        self.words[address] = word
        if address % 4096 == 0 and word & 1 and address == self.channels[-1][0]:
            jobs = [(self._at(base + 8), self._at(base + 16), source, sink) for base, source, sink in self.channels]
            results = self.answer({source: buffer for buffer, _, source, _ in jobs if source})
            for base, (_, buffer, _, sink) in zip([base for base, *_ in self.channels], jobs, strict=True):
                assert self.words[base + 24] == 7
                if sink:
                    buffer[:] = results[sink]
                self.words[base + 4] = 2

    def _at(self, register: int) -> Any:
        return self.buffers.get(self.words[register] | self.words[register + 4] << 32)


class _Buffer(np.ndarray):  # type: ignore[type-arg]
    physical_address: int

    def flush(self) -> None: ...

    def invalidate(self) -> None: ...


@pytest.mark.parametrize("name", ["first", "third"])
def test_pynq_driver_of_hg_dma(name: str, cores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One job for all frames, with the integers of the reference; the design has hg_dma and no engine of the vendor."""
    options = {"bus_width": "32"} if name == "first" else {"bus_width": "32", "ports": "separate"}
    build = hlsgen.build(cores / f"{name}.onnx", tmp_path / "build", hlsgen.Options(**options))
    hlsgen.package(tmp_path / "build", tmp_path / "out", ["pynq", "dma"])
    host = module_of(tmp_path / "out", name)
    stand_in = ModuleType("pynq")
    stand_in.Overlay = stand_in.allocate = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynq", stand_in)
    monkeypatch.setitem(sys.modules, name, host)
    driver = module_of(tmp_path / "out", f"{name}_pynq")
    codes = np.random.default_rng(3).integers(-3, 3, (7, *build.graph.input.shape))
    answers = run_output(build.graph, codes)

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        for port in build.network.inputs:
            assert sent[port.name].tobytes() == port_words(port, codes).tobytes()
        return {port.name: port_words(port, answers).ravel() for port in build.network.outputs}

    memory = _Memory(driver.CHANNELS, answer)
    made = driver.Driver(registers=memory, allocate=memory.allocate)
    np.testing.assert_array_equal(made.codes(codes), answers)
    design = (tmp_path / "out" / "block_design.tcl").read_text()
    assert "axi_dma" not in design
    assert all(
        f"Master /core/m_axi{'' if name == 'first' else f'_{n}'} " in design for n in range(len(driver.CHANNELS))
    )
    if shutil.which("tclsh"):
        packaged = in_tcl("package_ip.tcl", tmp_path / "out")
        assert set(re.findall(r"(rtl/[\w.]+)", packaged)) == {f"rtl/{p.name}" for p in (tmp_path / "out/rtl").iterdir()}
        assert f"set_property top {name}_dma" in packaged
        in_tcl("block_design.tcl", tmp_path / "out")
