"""Builds of TFLite files: name and bytes of the model file, and directories that are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hlsgen.certify import certify
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import reopen, write_build
from hlsgen.driver.compile import compile_model
from hlsgen.driver.options import Options
from tests.support.tflite_random import random_file


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of a fully connected layer."""
    folder = tmp_path_factory.mktemp("tflite")
    path = folder / "net.tflite"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    write_build(compile_model(path, Options()), folder / "out")
    return folder / "out"


def test_build_holds_the_file_itself(directory: Path) -> None:
    assert (directory / "model.tflite").read_bytes() == (directory.parent / "net.tflite").read_bytes()
    assert not (directory / "model.onnx").exists()
    assert certify(directory, directory.parent / "net.tflite").problems == []


@pytest.mark.parametrize(
    ("kind", "seed"), [("AVERAGE_POOL_2D", 9), ("AVERAGE_POOL_2D:uint8", 3), ("TRANSPOSE_CONV", 1)]
)
def test_windows_of_several_images_are_certified(kind: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file(kind, seed).data)
    write_build(compile_model(path, Options(runtime="litert-ref")), tmp_path / "out")
    assert "hg_unfold" in (tmp_path / "out" / "certificate.json").read_text()
    assert certify(tmp_path / "out").problems == []


@pytest.mark.parametrize("case", ["both", "renamed", "link", "none"])
def test_other_model_files_are_refused(directory: Path, tmp_path: Path, case: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(directory, out)
    model, other = out / "model.tflite", out / "model.onnx"
    if case == "both":
        other.write_bytes(b"an ONNX file")
    elif case == "renamed":
        model.rename(other)
    elif case == "link":
        model.rename(out / "away")
        model.symlink_to(out / "away")
    else:
        model.unlink()
    for read in (reopen, certify):
        with pytest.raises(HlsgenError) as raised:
            read(out)
        assert raised.value.diagnostics[0].code == "HG050"
