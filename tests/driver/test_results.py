"""Results beside a build: they go into its report if they are about its files, and lead nowhere else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from models import mlp, save
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.driver.build_directory import changed_files, reopen
from hlsgen.driver.results import manifest_hash, save_result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    hlsgen.build(save(mlp().model(), folder / "m.onnx"), folder / "out", hlsgen.Options(input="fixed:8,4"))
    return folder / "out"


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "out"))


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, words)])


def verified(out: Path, **more: object) -> bytes:
    simulators = {"icarus": {"ok": True, "samples": 7, "mismatches": 0, "cycles": None}}
    return json.dumps({"ok": True, "simulators": simulators, "manifest_sha256": manifest_hash(out), **more}).encode()


def test_a_report_with_results(out: Path, tmp_path: Path) -> None:
    assert call(out).exit_code == 0
    assert (out / "results" / "report.html").read_bytes() == (out / "report.html").read_bytes()
    save_result(out, "verify.json", verified(out))
    save_result(
        out, "synth-old.json", json.dumps({"device": "old", "lut": 1, "files_sha256": {"rtl/m.v": "0" * 64}}).encode()
    )
    hashes = json.loads((out / "manifest.json").read_text())["files"]
    save_result(
        out,
        "synth-new.json",
        json.dumps({"device": "new", "lut": 1, "files_sha256": {"rtl/m.v": hashes["rtl/m.v"]}}).encode(),
    )
    data = json.loads(call(out, "-o", tmp_path / "r.html", "--json").stdout)
    assert data == {
        "ok": True,
        "output": str(tmp_path / "r.html"),
        "results": ["synth-new.json", "verify.json"],
        "outdated": ["synth-old.json"],
    }
    text = (tmp_path / "r.html").read_text()
    assert "Synthesized for new" in text
    assert "Synthesized for old" not in text
    assert "icarus" in text
    assert "without results/synth-old.json" in call(out).stdout
    assert changed_files(reopen(out).files, out) == []
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    assert hlsgen.report(out).outdated == ["synth-old.json", "verify.json"]


def test_a_link_leads_nowhere(out: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (out / "results").symlink_to(tmp_path / "elsewhere")
    found = call(out)
    assert (found.exit_code, "HG001" in found.stderr) == (1, True)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (out / "results").unlink()
    (out / "results").mkdir()
    (tmp_path / "precious").write_text("x")
    (out / "results" / "report.html").symlink_to(tmp_path / "precious")
    assert call(out).exit_code == 0
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"simulators": 3, "manifest_sha256": "%s"}',
        b'{"device": 3, "lut": "x", "files_sha256": {}}',
        b"[" * 100_000,
        b'{"simulators": {"a": {"cycles": 3}}, "manifest_sha256": "%s"}',
    ],
)
def test_results_may_be_anything(data: bytes, out: Path) -> None:
    save_result(out, "x.json", data.replace(b"%s", manifest_hash(out).encode()))
    found = call(out)
    assert found.exit_code == 0 or (found.exit_code == 1 and "HG050" in found.stderr), found.output


def told(out: Path) -> str:
    """The report, or why there is none."""
    try:
        return hlsgen.report(out).html
    except hlsgen.HlsgenError as error:
        return str(error)


PLACES = [
    ("units",),
    ("units", 0),
    ("units", 0, "inputs"),
    ("units", 0, "bits"),
    ("units", 0, "lut"),
    ("layers",),
    ("layers", 0),
    ("layers", 1, "tried"),
    ("cycles", "interval"),
    ("input", "range"),
    ("input", "lanes"),
    ("host",),
    ("host", "head"),
    ("top",),
    ("estimate",),
    ("fifos",),
    ("warnings",),
]


@pytest.mark.sweep
@pytest.mark.parametrize("value", [None, -1, "<x>", {}, 1e308])
def test_manifests_may_be_anything(value: object, out: Path) -> None:
    """No traceback, and no markup of a stranger."""
    path = out / "manifest.json"
    original = path.read_text()
    for place in PLACES:
        part = manifest = json.loads(original)
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value
        path.write_text(json.dumps(manifest))
        text = told(out)
        assert "HG050" in text or (text.lstrip().startswith("<!DOCTYPE") and "<x>" not in text), place
    path.write_text(original)


def test_no_build(tmp_path: Path) -> None:
    found = call(tmp_path)
    assert (found.exit_code, "HG050" in found.stderr) == (1, True)
