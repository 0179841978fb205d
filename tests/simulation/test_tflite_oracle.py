"""Comparison of builds with their TFLite files in the runtimes' wheels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hlsgen.diagnostics import Collector
from hlsgen.driver.compile import compile_model
from hlsgen.driver.options import Options
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.runtimes import TFLITE
from hlsgen.frontend.tflite.file import read_file
from hlsgen.frontend.tflite.importer import import_tensors, import_tflite
from hlsgen.interpreter.frame_sequence import in_sequence
from hlsgen.interpreter.graph import split_inputs
from hlsgen.ir import Model
from hlsgen.simulation import oracles, tflite_oracle
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_quantizer import check_head
from hlsgen.simulation.oracles import Unable
from hlsgen.testbench.stimuli import stimuli
from tests.support.tflite_random import random_file

FILE = random_file("FULLY_CONNECTED", 1).data
TENSORS = read_file(FILE, "file").graphs[0]
SHAPE = TENSORS.tensors[TENSORS.inputs[0]].shape
NET = random_file("NET", 12).data
CODES = np.random.default_rng(5).integers(-128, 128, (7, *SHAPE)).astype(np.int8)


def _quiet(text: str) -> None:
    """No progress."""


def _model(data: bytes, runtime: str) -> Model:
    model = import_tflite(read_file(data, "net"), "net", ImportOptions(False, {}, False, False, runtime), Collector())
    assert model is not None
    return model


@pytest.fixture(autouse=True, params=TFLITE)
def runtime(request: pytest.FixtureRequest) -> str:
    why = tflite_oracle.missing(request.param)
    if why:
        pytest.skip(why)
    return str(request.param)


@pytest.mark.sweep
def test_equal_outputs_are_equal_and_each_other_code_is_reported(runtime: str) -> None:
    (outputs,) = tflite_oracle.run_file(FILE, runtime, [CODES], 1)
    assert len(outputs) == len(CODES)
    assert len(np.unique(outputs)) > 2
    equal, other = OracleVerdict(runtime), OracleVerdict(runtime)
    model = _model(FILE, runtime)
    source, target = model.input_name, model.output_name
    tflite_oracle.compare(FILE, model, {source: CODES}, {target: outputs}, _quiet, equal)
    assert equal.ok
    assert equal.outputs == outputs.size
    assert runtime in equal.ran
    changed = outputs.astype(int)
    changed.flat[3] += 1
    tflite_oracle.compare(FILE, model, {source: CODES}, {target: changed}, _quiet, other)
    assert not other.ok
    assert other.outputs_differ == other.unexplained == 1
    assert {d.code for d in other.diagnostics} == {"HG058"}
    assert "no operator differs from the model's steps" in other.diagnostics[0].message


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["CONV_2D", "FULLY_CONNECTED"])
def test_the_first_operator_that_differs_is_named(kind: str, runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = read_file(NET, "net")
    graph = file.graphs[0]
    wrong = [operator for operator in graph.operators if operator.name == kind][-1]
    weights = graph.tensors[wrong.inputs[1]].data
    assert weights is not None
    changed = NET.replace(weights.tobytes(), (-weights).tobytes())
    assert changed != NET
    shape = graph.tensors[graph.inputs[0]].shape
    codes = np.random.default_rng(2).integers(-128, 128, (5, *shape)).astype(np.int8)
    model, verdict = _model(NET, runtime), OracleVerdict(runtime)
    (outputs,) = tflite_oracle.run_file(NET, runtime, [codes], 1)
    monkeypatch.setattr(tflite_oracle, "import_tensors", lambda other, *names: import_tensors(file, *names))
    tflite_oracle.compare(changed, model, {model.input_name: codes}, {model.output_name: outputs}, _quiet, verdict)
    first = verdict.cases["unexplained"][0]
    assert first.node == wrong.node
    assert f"{kind} is the first operator that differs" in verdict.diagnostics[0].message


@pytest.mark.sweep
def test_frames_of_a_file_with_variables_are_one_sequence(runtime: str, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("STATE", 3).data)
    build = compile_model(path, Options(runtime=runtime))
    frames = stimuli(build.network, 20, 1)
    assert compare_file(path, build.model, build.graph, frames).ok
    codes = in_sequence(build.graph, frames)
    assert len(np.unique(codes, axis=0)) == len(codes)
    (variable,) = build.model.variables
    other = replace(variable, initial=variable.initial + np.int8(1))
    started_wrong = replace(build.graph, model=replace(build.model, variables=(other,)))
    kept = replace(build.graph, model=replace(build.model, variables=()))
    for graph in (started_wrong, kept):
        verdict = compare_file(path, build.model, graph, frames)
        assert not verdict.ok
        assert verdict.outputs_differ


@pytest.mark.sweep
def test_a_wrong_value_of_a_variable_is_found_in_its_frame(runtime: str, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("STATE", 3).data)
    build = compile_model(path, Options(runtime=runtime))
    codes = in_sequence(build.graph, stimuli(build.network, 6, 1)[:6])
    feeds = dict(zip((x.name for x in build.model.inputs), split_inputs(build.model.inputs, codes), strict=True))
    right = tflite_oracle.first_difference(path.read_bytes(), build.model, feeds, runtime, 5, _quiet)
    assert "no operator differs" in right.why
    (name,) = (variable.name for variable in build.model.variables)
    feeds[name][3:] ^= 1
    wrong = tflite_oracle.first_difference(path.read_bytes(), build.model, feeds, runtime, 5, _quiet)
    assert wrong.frame == 3
    assert wrong.why.startswith("READ_VARIABLE")


def test_refused_file_is_no_success(runtime: str) -> None:
    damaged = FILE[: len(FILE) // 2]
    with pytest.raises(Unable):
        tflite_oracle.run_file(damaged, runtime, [CODES], 1)


def test_late_child_is_no_success(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracles, "_SECONDS", 0.01)
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
