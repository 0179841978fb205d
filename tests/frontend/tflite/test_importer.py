"""Imported TFLite files: their integers against the runtimes, and refusals with the operator's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_random import KINDS_UINT8, Choices, RandomFile, prelu_before_layer, random_file
from tflite_wheels import run

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.driver.compile import lowered
from hlsgen.driver.options import Options
from hlsgen.frontend import import_model, self_contained
from hlsgen.frontend.tflite.file import read_file
from hlsgen.frontend.tflite.initial_values import initial_value
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.simulation.file_oracle import compare_file

KINDS = (
    "FULLY_CONNECTED CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV ADD SUB MUL AVERAGE_POOL_2D MAX_POOL_2D MEAN "
    "CONCATENATION PAD PADV2 STRIDED_SLICE SPLIT SPLIT_V TRANSPOSE RESHAPE RESIZE_NEAREST_NEIGHBOR SLICE GATHER PACK "
    "UNPACK "
    "LOGISTIC PRELU QUANTIZE QUANTIZE:f DEQUANTIZE SOFTMAX"
).split()
SEEDS = range(4)


def imported(data: bytes, directory: Path, runtime: str = "tflm") -> tuple[Model | None, Collector]:
    path, problems = directory / "model.tflite", Collector()
    path.write_bytes(data)
    return import_model(path, problems, runtime=runtime), problems


def results(model: Model, frames: list[list[np.ndarray]]) -> np.ndarray:
    """The outputs of frames, flat; the interpreter concatenates several inputs as float64."""
    if model.inputs:
        x = np.stack([np.concatenate([part.astype(np.float64).ravel() for part in frame]) for frame in frames])
    else:
        x = np.stack([frame[0] for frame in frames])
    return np.asarray(interpret(model, x)[-1].value).reshape(len(frames), -1)


@pytest.mark.oracle
@pytest.mark.parametrize("runtime", [runtime.value for runtime in Runtime])
@pytest.mark.parametrize("kind", KINDS)
def test_operators_give_the_integers_of_the_runtime(kind: str, runtime: str, tmp_path: Path) -> None:
    compared: list[tuple[RandomFile, Model]] = []
    for seed in SEEDS:
        file = random_file(kind, seed)
        model, problems = imported(file.data, tmp_path, runtime)
        if model is None:
            assert [d.code for d in problems.errors] == ["HG013"], problems.items
        else:
            compared.append((file, model))
    assert compared
    expected = run(Runtime(runtime), [file for file, _ in compared], tmp_path)
    for (file, model), frames in zip(compared, expected, strict=True):
        first = np.stack([frame.ravel() for frame in frames])
        assert (results(model, file.frames)[:, : first.shape[1]] == first).all()


@pytest.mark.oracle
def test_a_table_for_each_channel_comes_before_a_layer(tmp_path: Path) -> None:
    path, file = tmp_path / "model.tflite", prelu_before_layer()
    path.write_bytes(file.data)
    _, model, graph = lowered(path, Options(), Collector())
    codes = np.stack([frame[0] for frame in file.frames]).astype(np.int64)
    verdict = compare_file(path, model, graph, codes, "tflm")
    assert (verdict.reason, verdict.outputs_differ) == ("", 0)
    assert verdict.outputs


@pytest.mark.oracle
@pytest.mark.parametrize("runtime", ["litert-ref", "litert"])
def test_uint8_files_give_the_integers_of_the_runtime(runtime: str, tmp_path: Path) -> None:
    compared: list[tuple[str, RandomFile, Model]] = []
    for kind in KINDS_UINT8:
        for seed in range(3):
            file = random_file(kind, seed)
            model, problems = imported(file.data, tmp_path, runtime)
            if model is None:
                assert {d.code for d in problems.errors} <= {"HG013", "HG015", "HG030"}, (kind, problems.items)
            else:
                compared.append((kind, file, model))
    missing = set(KINDS_UINT8) - {kind for kind, _, _ in compared}
    by_position = {"DEPTHWISE_CONV_2D:uint8", "ATTENTION:uint8", "QUANTIZE:u8", "QUANTIZE:8u"}
    assert missing <= ({"RESIZE_BILINEAR:uint8"} if runtime == "litert-ref" else by_position)
    expected = run(Runtime(runtime), [file for _, file, _ in compared], tmp_path)
    for (kind, file, model), frames in zip(compared, expected, strict=True):
        first = np.stack([frame.ravel() for frame in frames])
        assert (results(model, file.frames)[:, : first.shape[1]] == first).all(), kind


@pytest.mark.oracle
@pytest.mark.parametrize("runtime", [runtime.value for runtime in Runtime])
@pytest.mark.parametrize("kind", ["MAX_POOL_2D", "FULLY_CONNECTED", "ADD", "MUL"])
def test_bounds_at_a_tie_are_those_of_the_runtime(kind: str, runtime: str, tmp_path: Path) -> None:
    """6 / 4 + 1 is 2.5: XNNPACK's bound is 2, the other kernels' is 3."""
    choices = Choices(kind, 0)
    x, scale = choices.tensor((1, 4, 4, 1), np.float32(4), 1), np.float32(4)
    result = choices.tensor((1, 4, 4, 1), scale, 1)
    sources = [x]
    options: dict[str, object] = {"fused_activation_function": "RELU6"}
    if kind == "MAX_POOL_2D":
        options |= {"filter_height": 1, "filter_width": 1, "stride_h": 1, "stride_w": 1, "padding": 1}
    elif kind == "FULLY_CONNECTED":
        result = choices.tensor((4, 4), scale, 1)
        sources += [choices.graph.tensor((4, 4), "int8", np.float32(1), data=np.eye(4)), -1]
    else:
        sources.append(choices.tensor((1, 4, 4, 1), np.float32(1), 0, np.ones((1, 4, 4, 1), np.int8)))
    choices.graph.operator(kind, sources, [result], **options)
    file = choices.finish([x], [result])
    model, problems = imported(file.data, tmp_path, runtime)
    assert model is not None, problems.items
    (expected,) = run(Runtime(runtime), [file], tmp_path)
    ours = results(model, file.frames)
    assert (ours == np.stack([codes.ravel() for codes in expected])).all()
    assert ours.max() == (2 if runtime == "litert" else 3)


@pytest.mark.oracle
@pytest.mark.parametrize("runtime", [runtime.value for runtime in Runtime])
def test_variables_are_inputs_and_outputs(runtime: str, tmp_path: Path) -> None:
    file = random_file("STATE", 1)
    model, _ = imported(file.data, tmp_path, runtime)
    assert model is not None
    assert [part.name for part in model.all_inputs][1:] == [part.name for part in model.all_outputs][1:] == ["s0"]
    (expected,) = run(Runtime(runtime), [file], tmp_path)
    zero = int(np.max(file.writer.graphs[0].tensors[0].zero_point))
    state = np.full(model.inputs[1].shape, zero, np.int8)
    for frame, codes in zip(file.frames, expected, strict=True):
        flat = results(model, [[*frame, state]])[0]
        assert (flat[: codes.size] == codes.ravel()).all()
        state = flat[codes.size :].astype(np.int8)


def test_a_variable_that_starts_outside_its_type_is_refused(tmp_path: Path) -> None:
    file = read_file(random_file("STATE", 1).data, "file")
    graph = file.graphs[0]
    tensors = [
        replace(tensor, quantization=replace(tensor.quantization, zero_point=np.array([1 << 62])))
        if tensor.quantization is not None
        else tensor
        for tensor in graph.tensors
    ]
    operators = [operator for operator in graph.operators if operator.name != "CALL_ONCE"]
    changed = replace(file, graphs=(replace(graph, tensors=tuple(tensors), operators=tuple(operators)),))
    with pytest.raises(HlsgenError, match="HG024 variables: variable 's0' of type int8 has zero point 4611"):
        initial_value(changed, "s0", (1,), "int8")


def test_all_problems_are_reported_with_their_operators(tmp_path: Path) -> None:
    choices = Choices("EXP", 0)
    x = choices.tensor((1, 4))
    exponential = choices.graph.operator("EXP", [x], [choices.like(x, (1, 4))])
    softmax = choices.graph.operator("CUSTOM", [exponential], [choices.like(x, (1, 4))])
    file = choices.finish([x], [softmax], [[choices.codes((1, 4))]])
    model, problems = imported(file.data, tmp_path)
    assert model is None
    assert [(d.code, d.message.split(" is")[0]) for d in problems.errors] == [
        ("HG010", "EXP"),
        ("HG010", "custom operator "),
    ]


def test_uint8_is_refused_for_tflite_micro(tmp_path: Path) -> None:
    _, problems = imported(random_file("CONV_2D:uint8", 0).data, tmp_path)
    assert [d.code for d in problems.errors] == ["HG026"]


def test_numbers_just_below_a_half_are_rounded_down(tmp_path: Path) -> None:
    choices = Choices("QUANTIZE", 0)
    x = choices.graph.tensor((1, 2), "float32")
    codes = choices.graph.operator("QUANTIZE", [x], [choices.graph.tensor((1, 2), "int8", np.float32(1))])
    below = np.nextafter(np.float32(0.5), np.float32(0))
    file = choices.finish([x], [codes], [[np.array([[below, -below]])]])
    model, _ = imported(file.data, tmp_path)
    assert model is not None
    assert not results(model, file.frames).any()


def test_outputs_cut_a_file(tmp_path: Path) -> None:
    file = random_file("NET", 1)
    path, problems = tmp_path / "net.tflite", Collector()
    path.write_bytes(file.data)
    graph = file.writer.graphs[0]
    name = graph.tensors[graph.operators[0].outputs[0]].name
    model = import_model(path, problems, outputs=[name])
    assert model is not None, problems.items
    (tmp_path / "cut.tflite").write_bytes(self_contained(path, [name]))
    again = import_model(tmp_path / "cut.tflite", problems)
    assert again is not None
    assert model.output_name == again.output_name == name
    assert import_model(path, problems, outputs=["nothing"]) is None
    assert [d.code for d in problems.errors] == ["HG040"]
