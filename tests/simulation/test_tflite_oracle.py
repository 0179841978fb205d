"""Comparison of builds with their TFLite files in the runtimes' wheels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlsgen.driver.compile import compile_model
from hlsgen.driver.options import Options
from hlsgen.frontend.runtimes import TFLITE
from hlsgen.frontend.tflite.file import read_file
from hlsgen.simulation import tflite_oracle
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_quantizer import check_head
from hlsgen.simulation.oracles import Unable
from tests.support.tflite_random import random_file

FILE = random_file("FULLY_CONNECTED", 1).data
TENSORS = read_file(FILE, "file").graphs[0]
SHAPE = TENSORS.tensors[TENSORS.inputs[0]].shape
CODES = np.random.default_rng(5).integers(-128, 128, (7, *SHAPE)).astype(np.int8)


@pytest.fixture(autouse=True, params=TFLITE)
def runtime(request: pytest.FixtureRequest) -> str:
    why = tflite_oracle.missing(request.param)
    if why:
        pytest.skip(why)
    return str(request.param)


def test_equal_outputs_are_equal_and_each_other_code_is_reported(runtime: str) -> None:
    (outputs,) = tflite_oracle.run_file(FILE, runtime, [CODES], 1)
    assert len(outputs) == len(CODES)
    assert len(np.unique(outputs)) > 2
    equal, other = OracleVerdict(runtime), OracleVerdict(runtime)
    tflite_oracle.compare(FILE, {"x": CODES}, {"y": outputs}, equal)
    assert equal.ok
    assert equal.outputs == outputs.size
    assert runtime in equal.ran
    changed = outputs.astype(int)
    changed.flat[3] += 1
    tflite_oracle.compare(FILE, {"x": CODES}, {"y": changed}, other)
    assert not other.ok
    assert other.outputs_differ == other.unexplained == 1
    assert [d.code for d in other.diagnostics] == ["HG058"]


def test_refused_file_is_no_success(runtime: str) -> None:
    damaged = FILE[: len(FILE) // 2]
    with pytest.raises(Unable):
        tflite_oracle.run_file(damaged, runtime, [CODES], 1)


def test_late_child_is_no_success(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tflite_oracle, "_SECONDS", 0.01)
    with pytest.raises(Unable, match="did not end"):
        tflite_oracle.run_file(FILE, runtime, [CODES], 1)


def test_crash_of_the_child_is_no_success(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "child.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setattr(tflite_oracle.tflite_child, "__file__", str(program))
    with pytest.raises(Unable, match="signal 11"):
        tflite_oracle.run_file(FILE, runtime, [CODES], 1)


def test_other_runtimes_and_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "does not run TFLite files" in tflite_oracle.missing("onnxruntime")
    monkeypatch.setattr(tflite_oracle, "version", lambda name: "0.1")
    assert "is 0.1, not" in tflite_oracle.missing("tflm")


def test_the_head_of_a_tflite_file_is_left_to_the_whole_file(tmp_path: Path, runtime: str) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(FILE)
    build = compile_model(path, Options(runtime=runtime))
    assert not check_head(build.model, build.graph, path, 1, "onnxruntime").executor
