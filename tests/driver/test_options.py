"""Each option of a build, from the command line to the manifest and back; what is refused; the page that lists them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import mlp, quantizer, save
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.cli import app
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.declaration import conforms, declared
from hlsgen.driver.options import check_options, from_manifest

FOLDING = {"fc": {"pe": 2, "simd": 1}}
#: What is written for an option, and the value that it means, which is not the default where there is a choice.
WRITTEN: dict[str, tuple[list[str], Any]] = {
    "target": (["--target", "verilog"], "verilog"),
    "input": (["--input", "fixed:8,4"], "fixed:8,4"),
    "source": (["--source", "uint8:1/16"], "uint8:1/16"),
    "lanes": (["--lanes", "3"], 3),
    "target_cycles": (["--target-cycles", "77"], 77),
    "latency_cycles": (["--latency-cycles", "9"], 9),
    "folding": (["--folding", "FILE"], FOLDING),
    "recurrence": (["--recurrence", "once"], "once"),
    "reset_active_low": (["--reset", "low"], True),
    "clock_name": (["--clock-name", "aclk"], "aclk"),
    "reset_name": (["--reset-name", "aresetn"], "aresetn"),
    "bus_width": (["--bus-width", "64"], "64"),
    "ports": (["--ports", "separate"], "separate"),
    "state": (["--state", "h=h_out", "--state", "c=c_out:-1.5"], ["h=h_out", "c=c_out:-1.5"]),
    "state_start": (["--state-start", "reset"], "reset"),
    "tkeep": (["--tkeep"], True),
    "control": (["--control"], True),
    "top": (["--top", "core"], "core"),
    "prefer": (["--prefer", "dsp"], "dsp"),
    "realize": (["--realize", "rank", "--realize", "a=b=table"], {"": "rank", "a=b": "table"}),
    "add": (["--add", "fixed-point"], "fixed-point"),
    "outputs": (["--outputs", "a", "--outputs", "b,c"], ["a", "b", "c"]),
    "runtime": (["--runtime", "onnxruntime-arm"], "onnxruntime-arm"),
    "softmax": (["--softmax", "hardware"], "hardware"),
    "merge_layers": (["--merge-layers"], True),
    "weights": (["--weights", "bram"], "bram"),
    "device": (["--device", "ecp5-25k"], "ecp5-25k"),
    "clock_mhz": (["--clock-mhz", "150"], 150.0),
    "max_lut": (["--max-lut", "1000"], 1000),
    "max_dsp": (["--max-dsp", "0"], 0),
    "max_bram": (["--max-bram", "7"], 7),
    "loadable": (["--loadable-weights"], True),
}
#: Values that are not legal, by themselves.
ILLEGAL: dict[str, Any] = {
    "target": "vhdl",
    "input": "fixed:0,0",
    "source": "uint8:0",
    "lanes": 10000,
    "target_cycles": 0,
    "latency_cycles": 0,
    "folding": {"fc": {"pe": 2}},
    "recurrence": "rolled",
    "outputs": ["a", "a"],
    "runtime": "tensorrt",
    "softmax": "core",
    "clock_name": "always",
    "reset_name": "a b",
    "bus_width": "24",
    "ports": "shared",
    "state_start": "tlast",
    "top": "module",
    "prefer": "bram",
    "realize": {"fc": "magic"},
    "add": "float",
    "weights": "uram",
    "device": "ecp6",
    "clock_mhz": 0.0,
    "max_lut": -1,
    "max_dsp": -1,
    "max_bram": -1,
}
FLAGS = {one.name: one.declaration.flag for one in declared(Options)}


def told(arguments: list[str], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """The options that the library gets from a command."""
    (tmp_path / "folding.yaml").write_text(json.dumps({"layers": FOLDING}))
    arguments = [str(tmp_path / "folding.yaml") if text == "FILE" else text for text in arguments]
    got: list[Options] = []

    def stop(*given: Any) -> None:
        got.extend(one for one in given if isinstance(one, Options))
        raise HlsgenError([])

    monkeypatch.setattr(hlsgen, command, stop)
    more = ["-o", str(tmp_path / "out")] if command == "build" else []
    shown = CliRunner().invoke(app, [command, "model.onnx", *more, *arguments])
    assert len(got) == 1, shown.output
    return got[0]


def test_every_option_is_tried() -> None:
    assert list(WRITTEN) == [name for name, flag in FLAGS.items() if flag]
    assert [name for name, flag in FLAGS.items() if not flag] == ["name"]


@pytest.mark.parametrize("command", ["check", "build"])
def test_defaults_agree(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told([], command, tmp_path, monkeypatch) == Options()
    check_options(Options())


@pytest.mark.parametrize("command", ["check", "build"])
@pytest.mark.parametrize("name", WRITTEN)
def test_from_the_command_line_to_the_manifest_and_back(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, value = WRITTEN[name]
    options = told(arguments, command, tmp_path, monkeypatch)
    assert asdict(options) == asdict(Options()) | {name: value}
    check_options(options)
    assert from_manifest(json.loads(json.dumps(asdict(options)))) == options


def test_a_build_is_opened_with_its_options(tmp_path: Path) -> None:
    """All options that go together, in a real manifest."""
    options = Options(
        input="fixed:8,4",
        folding={"fc0": {"pe": 1, "simd": 2}},
        reset_active_low=True,
        top="core",
        name="title",
        prefer="dsp",
        realize={"": "compare"},
        add="fixed-point",
        weights="lutram",
        max_lut=90000,
        max_dsp=50,
        max_bram=9,
        loadable=True,
        clock_name="aclk",
        reset_name="aresetn",
        bus_width="auto",
        tkeep=True,
        control=True,
    )
    path = save(mlp().model(), tmp_path / "m.onnx")
    build = hlsgen.build(path, tmp_path / "out", options)
    assert build.options == options
    assert list(json.loads((tmp_path / "out" / "manifest.json").read_text())["options"]) == [
        f.name for f in fields(Options)
    ]
    again = reopen(tmp_path / "out")
    assert again.options == options
    assert again.files == build.files


@pytest.mark.sweep
def test_another_type_is_refused_in_every_field() -> None:
    """Of a manifest, which may hold anything, and of a caller."""
    samples = [None, True, 3, 2.5, "x", [], ["x"], {}, {"a": 1}, {"a": {"pe": "x", "simd": 1}}, {"a": {"pe": True}}]
    for name, default in asdict(Options()).items():
        legal = {type(default), type(WRITTEN[name][1] if name in WRITTEN else "title")}
        legal |= {dict} if name in ("input", "source") else set()  # one for each input
        legal |= {int} if float in legal else set()
        for value in samples:
            right = type(value) in legal and not (isinstance(value, dict) and value)
            assert (from_manifest({name: value}) is not None) == right, (name, value)
            if not right:
                with pytest.raises(HlsgenError, match=f"HG04[01] {FLAGS[name] or name}: "):
                    Options(**{name: value})
    assert from_manifest({"nothing": 1}) is None
    assert from_manifest([]) is None
    assert from_manifest({}) == Options()


def test_types() -> None:
    assert conforms(3, int | None)
    assert conforms(None, int | None)
    assert not conforms(True, int)
    assert not conforms(3.0, int)
    assert conforms({"a": {"b": 1}}, dict[str, dict[str, int]])
    assert not conforms({1: {"b": 1}}, dict[str, dict[str, int]])


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_value(name: str) -> None:
    with pytest.raises(HlsgenError) as caught:
        check_options(Options(**{name: ILLEGAL[name]}))
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.node) == ("HG041" if name == "folding" else "HG040", FLAGS[name])
    assert problem.hint


def test_all_problems_at_once() -> None:
    with pytest.raises(HlsgenError) as caught:
        check_options(Options(**ILLEGAL))
    assert sorted(d.node for d in caught.value.diagnostics) == sorted(
        [*(FLAGS[name] or "" for name in ILLEGAL), "--max-lut"]
    )


def test_all_problems_of_the_command_line_at_once(tmp_path: Path) -> None:
    (tmp_path / "folding.yaml").write_text("layers: 3")
    wrong = {
        "--reset": "up",
        "--clock-mhz": "0",
        "--fps": "nan",
        "--top": "hg_x",
        "--prefer": "bram",
        "--max-lut": "-1",
    }
    arguments = [text for pair in wrong.items() for text in pair]
    shown = CliRunner().invoke(
        app, ["check", "absent.onnx", "--json", "--folding", str(tmp_path / "folding.yaml"), *arguments]
    )
    assert shown.exit_code == 1
    found = [d["node"] for d in json.loads(shown.stdout)["diagnostics"]]
    assert sorted(found) == sorted([str(tmp_path / "folding.yaml"), *wrong])


def test_problems_of_options_and_model_at_once(tmp_path: Path) -> None:
    path = save(quantizer(scale=0.0).model(), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError) as caught:
        hlsgen.check(path, Options(prefer="bram", max_lut=-1, target_cycles=0, input="nothing"))
    assert [d.code for d in caught.value.diagnostics] == ["HG040"] * 5 + ["HG022"]


def test_all_problems_with_the_graph_at_once(tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    options = Options(
        lanes=2, folding={"no": {"pe": 1, "simd": 1}, "fc0": {"pe": 99, "simd": 1}}, realize={"no": "rank"}
    )
    with pytest.raises(HlsgenError) as caught:
        hlsgen.check(path, options)
    found = [(d.code, d.node) for d in caught.value.diagnostics]
    assert found == [("HG040", "--realize"), ("HG040", "--lanes"), ("HG041", "no"), ("HG041", "fc0")]
    path = save(quantizer().model(), tmp_path / "q.onnx")
    with pytest.raises(HlsgenError, match="HG040 --loadable-weights: the model has no layer with weights"):
        hlsgen.check(path, Options(loadable=True))


@pytest.mark.parametrize("arguments", [["--target-cycles", "9"], ["--fps", "1e6"]])
def test_budget_and_rate(arguments: list[str], tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    shown = CliRunner().invoke(app, ["check", str(path), "--json", "--max-lut", "9999", *arguments])
    assert shown.exit_code == 2
    assert [d["message"] for d in json.loads(shown.stdout)["diagnostics"]] == ["given together with a target rate."]


def test_frames_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(["--fps", "3e6", "--clock-mhz", "100"], "check", tmp_path, monkeypatch)
    assert found == Options(target_cycles=33, clock_mhz=100.0)


@pytest.mark.parametrize("command", ["check", "build"])
def test_help_of_every_option(command: str) -> None:
    shown = "".join(CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output.split())
    for one in declared(Options):
        assert one.declaration.help
        if one.declaration.flag:
            assert one.declaration.flag in shown
            assert "".join(one.declaration.help.split()) in shown  # lines break at spaces and hyphens


def test_the_page_lists_every_option() -> None:
    """With its default; and the manifest's list of names is theirs."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    table = page.split("## hlsgen build", 1)[1].split("## ", 1)[0]
    rows = [line.split("|") for line in table.replace("\\|", "/").splitlines() if line.startswith("| `-")]
    listed = {flag: row[2].strip() for row in rows for flag in re.findall(r"--[\w-]+", row[1])}
    for one in declared(Options):
        flag, spelling = one.declaration.flag, one.declaration.spelling
        if flag:
            assert flag in listed
            default = spelling.default if spelling else one.default
            if isinstance(default, str):
                assert listed[flag] == f"`{default}`"
            elif default is False:
                assert listed[flag] == "off"
    (names,) = re.findall(r"^\| `options` \| the options of the build: `(.*)` \|$", page, re.M)
    assert names.split(", ") == [f.name for f in fields(Options)]


def test_a_manifest_names_no_files(tmp_path: Path) -> None:
    """An initial state that a caller reads from a file is numbers in the manifest."""
    np.save(tmp_path / "h.npy", np.zeros(2))
    written = f"h=y:{tmp_path}/h.npy"
    assert Options(state=[written]).state == ["h=y:[0.0, 0.0]"]
    assert from_manifest({"state": [written]}) is None
    assert from_manifest({"state": ["h=y:[0.0, 0.0]"]}) is not None
