"""Streams that are closed or full, and output files that cannot be written whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import mlp, save
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app

X = np.zeros((2, 4), np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    hlsgen.build(save(mlp().model(), folder / "m.onnx"), folder / "out", hlsgen.Options(input="fixed:8,4"))
    np.save(folder / "x.npy", X)
    return folder


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "redirected, code, shown",
    [
        (">&-", 0, ""),
        ("--json >&- 2>&- <&-", 0, ""),
        ("--json >/dev/full", 1, "HG001 stdout: cannot be written: No space left on device"),
    ],
)
@pytest.mark.sweep
def test_standard_streams(redirected: str, code: int, shown: str, made: Path) -> None:
    command = f"{sys.executable} -m hlsgen.cli check {made / 'm.onnx'} {redirected}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert shown in " ".join(done.stderr.split())


def run(made: Path, *arguments: object) -> Any:
    command = ["run", made / "out", "--input", made / "x.npy", *arguments]
    return CliRunner().invoke(app, [str(word) for word in command])


def half(stream: Any, *_: object, **__: object) -> None:
    stream.write(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["y.npy", "y.npz"])
@pytest.mark.parametrize("option", ["--output", "--dump-layers"])
def test_an_output_is_whole_or_as_before(
    option: str, name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    more = [option, path] + (["--output", tmp_path.parent / "other.npy"] if option != "--output" else [])
    for before in (None, b"precious"):
        if before is not None:
            path.write_bytes(before)
        with monkeypatch.context() as patch:
            if option == "--output":
                patch.setattr(np.lib.format, "write_array", half)
            else:
                patch.setattr("hlsgen.cli.commands.run.write_outputs", lambda *_: None)
                patch.setattr(np.lib.format, "write_array", half)
            found = run(made, *more)
        assert (found.exit_code, "HG001" in found.stderr) == (1, True)
        assert "No space left on device" in found.stderr
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == ({name: before} if before else {})
    assert run(made, *more).exit_code == 0
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_full_device(made: Path, tmp_path: Path) -> None:
    (tmp_path / "y.npy").symlink_to("/dev/full")
    found = run(made, "--output", tmp_path / "y.npy")
    assert (found.exit_code, "HG001" in found.stderr) == (1, True)
    assert os.readlink(tmp_path / "y.npy") == "/dev/full"
    assert Path("/dev/full").is_char_device()


def test_links_and_modes_of_outputs_stay(made: Path, tmp_path: Path) -> None:
    (tmp_path / "y.npy").symlink_to("real.npy")
    (tmp_path / "real.npy").write_text("")
    (tmp_path / "real.npy").chmod(0o640)
    assert run(made, "--output", tmp_path / "y.npy").exit_code == 0
    assert os.readlink(tmp_path / "y.npy") == "real.npy"
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o640
    assert np.load(tmp_path / "y.npy").shape == (2, 2)
    assert run(made, "--output", tmp_path / "new.npy").exit_code == 0
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "new.npy").stat().st_mode == (tmp_path / "plain").stat().st_mode
    same = run(made, "--output", tmp_path / "new.npz", "--dump-layers", tmp_path / "new.npz")
    assert (same.exit_code, "HG040" in same.stderr) == (2, True)


def test_a_manifest_without_output(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "out", tmp_path / "out")
    np.save(tmp_path / "x.npy", X)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for wrong in ({}, {"output": 3}, {"output": {"tensor": ["y"]}}):
        kept = {name: value for name, value in manifest.items() if name != "output"}
        (tmp_path / "out" / "manifest.json").write_text(json.dumps({**kept, **wrong}))
        found = run(tmp_path, "--output", tmp_path / "y.npz")
        assert (found.exit_code, "HG050" in found.stderr) == (1, True), found.stderr


@pytest.mark.sweep
@pytest.mark.parametrize("as_json", [False, True])
def test_verify_says_what_it_has_not_done(as_json: bool, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "out", tmp_path / "out")
    (tmp_path / "out" / "files.f").write_text("")
    found = CliRunner().invoke(app, ["verify", str(tmp_path / "out"), *(["--json"] if as_json else [])])
    assert found.exit_code == 1
    if as_json:
        data = json.loads(found.stdout)
        assert (data["changed_files"], data["simulators"]) == (["files.f"], {})
    else:
        assert "not simulated: files differ from the build; --allow-changed" in found.stdout
        assert "HG051 files.f" in found.stderr


def test_names_of_a_model_do_not_command_the_terminal(tmp_path: Path) -> None:
    model = mlp().model()
    for node in model.graph.node:
        node.name = f"\x1b]0;owned\x07\x9b2J{node.name or node.output[0]}"
    save(model, tmp_path / "m.onnx")
    for more in ([], ["--realize", "nobody=table"]):
        found = CliRunner().invoke(app, ["check", str(tmp_path / "m.onnx"), *more])
        assert "owned" in found.output
        assert not set(found.output) & {"\x1b", "\x07", "\x9b"}
