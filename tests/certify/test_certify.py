"""`hlsgen certify`: an independent checker certifies right builds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
import random_graphs
from builds import LazyBuilds
from certified import CASES, messages
from integer_models import FIGURES, prequantized
from paths import DATA, INPUT_TYPES
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilds:
    folder = tmp_path_factory.mktemp("builds")
    return LazyBuilds(lambda name: CASES[name].build(folder / name))


@pytest.mark.parametrize("name", list(CASES))
def test_builds_are_certified(built: LazyBuilds, name: str) -> None:
    certified = hlsgen.certify(built[name])
    assert certified.ok, certified.problems
    text = (built[name] / "certificate.json").read_text()
    assert all(f'"{module}"' in text for module in CASES[name].modules), CASES[name].modules
    rows = [row for row in json.loads((built[name] / "manifest.json").read_text())["layers"] if row["kind"] != "rename"]
    assert [layer.layer for layer in certified.layers] == [row["name"] for row in rows]


@pytest.mark.cases(5)
@pytest.mark.parametrize("path", sorted(DATA.glob("*.onnx")), ids=lambda path: path.stem)
def test_networks_are_certified(path: Path, tmp_path: Path) -> None:
    for number, cycles in enumerate((None, 300)):
        options = hlsgen.Options(target_cycles=cycles, input=INPUT_TYPES.get(path.stem))
        hlsgen.build(path, tmp_path / str(number), options)
        assert messages(tmp_path / str(number)) == []


@pytest.mark.sweep
@pytest.mark.parametrize("figure", FIGURES)
def test_integer_networks_are_certified(figure: str, tmp_path: Path) -> None:
    for dtype in ("int8", "uint8"):
        onnx.save(prequantized(figure, (24, 5), dtype=dtype, opset=19), tmp_path / "m.onnx")
        hlsgen.build(tmp_path / "m.onnx", tmp_path / dtype)
        assert messages(tmp_path / dtype) == []


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_are_certified(seed: int, tmp_path: Path) -> None:
    for name, make in (("path", random_graphs.datapath), ("net", random_graphs.perceptron)):
        onnx.save(make(seed), tmp_path / f"{name}.onnx")
        for kind in (None, "float-units") if name == "path" else (None,):
            options = hlsgen.Options(realize={"": kind} if kind else {})
            hlsgen.build(tmp_path / f"{name}.onnx", tmp_path / f"{name}_{kind}", options)
            assert messages(tmp_path / f"{name}_{kind}") == []


def test_the_certificate_is_the_same_every_time(built: LazyBuilds, tmp_path: Path) -> None:
    second_build = CASES["network"].build(tmp_path / "again")
    assert (second_build / "certificate.json").read_bytes() == (built["network"] / "certificate.json").read_bytes()


def test_command(built: LazyBuilds, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["certify", str(built["network"]), "--json"])
    data = json.loads(result.stdout)
    assert (result.exit_code, data["ok"], data["diagnostics"]) == (0, True, [])
    assert all(
        row["functions"] and row["evaluated"] <= row["inputs"] for row in data["layers"] if row["kind"] == "quantizer"
    )
    shutil.copytree(built["network"], tmp_path / "core")
    memory = tmp_path / "core" / "rtl" / "top_node_linear.mem"
    memory.write_text(memory.read_text()[::-1].lstrip())
    result = CliRunner().invoke(app, ["certify", str(tmp_path / "core")])
    assert result.exit_code == 1
    assert "NOT certified" in result.stdout
    result = CliRunner().invoke(app, ["certify", str(tmp_path / "core"), "--json"])
    data = json.loads(result.stdout)
    assert (result.exit_code, data["ok"], data["diagnostics"][0]["code"]) == (1, False, "HG055")
    assert CliRunner().invoke(app, ["certify", str(tmp_path / "none")]).exit_code == 1


def test_a_long_parameter_is_shown_where_it_differs(built: LazyBuilds, tmp_path: Path) -> None:
    """One entry of a lookup table of many digits is changed: it is found, and the message stays short."""
    core = shutil.copytree(built["lane table"], tmp_path / "core")
    top = core / "rtl" / "top.v"
    head, entry, digits = top.read_text().partition(".TABLES(")
    size, mark, value = digits.partition("'h")
    top.write_text(head + entry + size + mark + format(int(value[0], 16) ^ 1, "x") + value[1:])
    (message,) = [text for text in messages(core) if "TABLES" in text]
    assert len(value.partition(")")[0]) > 60
    assert "(from character 0 on)" in message
    assert len(message) < 300
