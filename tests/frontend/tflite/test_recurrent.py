"""Imported UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF: their integers against the runtimes, and refusals by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_random import RandomFile, random_file
from tflite_wheels import run

from hlsgen.diagnostics import Collector
from hlsgen.driver.compile import lowered
from hlsgen.driver.options import Options
from hlsgen.frontend import import_model
from hlsgen.interpreter.graph import encode_input, named_outputs, pack_inputs, run_output
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Delay, Model
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.passes.shared_loop_bodies import builds_once, lower_once

RUNTIMES = [runtime.value for runtime in Runtime]


def imported(data: bytes, directory: Path, runtime: str) -> tuple[Model | None, Collector]:
    path, problems = directory / "model.tflite", Collector()
    path.write_bytes(data)
    return import_model(path, problems, runtime=runtime), problems


def first_outputs(model: Model, file: RandomFile) -> list[np.ndarray]:
    """The first output of all frames, flat; states start with their zero points and go from frame to frame."""
    tensors = {tensor.name: tensor for tensor in file.writer.graphs[0].tensors}
    states = {
        part.name: np.full(part.shape, tensors[part.name].zero_point or 0)
        for part in model.all_inputs
        if tensors[part.name].is_variable
    }
    results = []
    for frame in file.frames:
        parts = [states.get(part.name, frame[0]) for part in model.all_inputs]
        x = np.concatenate([part.astype(np.float64).ravel() for part in parts])
        values = np.asarray(interpret(model, x.reshape(1, *model.input_shape))[-1].value).ravel()
        ends = np.cumsum([int(np.prod(part.shape)) for part in model.all_outputs])[:-1]
        first, *new = np.split(values, ends)
        results.append(first)
        states = {part.name: value for part, value in zip(model.all_outputs[1:], new, strict=True)}
    return results


@pytest.mark.sweep
@pytest.mark.oracle
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", ["LSTM", "SVDF"])
def test_codes_of_all_frames_are_those_of_the_runtime(kind: str, runtime: str, tmp_path: Path) -> None:
    files = [random_file(kind, seed) for seed in range(8)]
    for file, expected in zip(files, run(Runtime(runtime), files, tmp_path), strict=True):
        model, problems = imported(file.data, tmp_path, runtime)
        assert model is not None, problems.items
        assert np.array_equal(first_outputs(model, file), [codes.ravel() for codes in expected])


def changed(kind: str, change: Callable[[RandomFile], None], seed: int = 0) -> RandomFile:
    """A random file whose parts `change` alters."""
    file = random_file(kind, seed)
    change(file)
    return replace(file, data=file.writer.bytes())


def set_input(position: int, number: int) -> Callable[[RandomFile], None]:
    def change(file: RandomFile) -> None:
        file.writer.graphs[0].operators[0].inputs[position] = number

    return change


def set_cell_scale(scale: float) -> Callable[[RandomFile], None]:
    def change(file: RandomFile) -> None:
        graph = file.writer.graphs[0]
        graph.tensors[graph.operators[0].inputs[19]].scale = np.float32(scale)

    return change


def set_bias_scale(file: RandomFile) -> None:
    graph = file.writer.graphs[0]
    graph.tensors[graph.operators[0].inputs[3]].scale = np.float32(1e-4)


def set_activation(file: RandomFile) -> None:
    file.writer.graphs[0].operators[0].options["fused_activation_function"] = "NONE"


def fix_state(position: int) -> Callable[[RandomFile], None]:
    """A constant in place of a state."""

    def change(file: RandomFile) -> None:
        graph = file.writer.graphs[0]
        inputs = graph.operators[0].inputs
        state = graph.tensors[inputs[position]]
        inputs[position] = graph.tensor(state.shape, state.type, state.scale, data=np.zeros(state.shape))

    return change


def narrow_state(file: RandomFile) -> None:
    graph = file.writer.graphs[0]
    inputs = graph.operators[0].inputs
    shape, state = graph.tensors[inputs[2]].shape, graph.tensors[inputs[4]]
    weights = np.random.default_rng(0).integers(-127, 128, shape)
    inputs[2] = graph.tensor(shape, "int8", np.float32(2.0**-12), data=weights)
    state.type, state.scale = "int8", np.float32(2.0**-6)


def drop_intermediates(file: RandomFile) -> None:
    file.writer.graphs[0].operators[0].intermediates.clear()


def open_cell(file: RandomFile) -> None:
    """The cell becomes the gate g of the last step: i = o = 1 and f = 0, for any states before the frame."""
    graph = file.writer.graphs[0]
    inputs = graph.operators[0].inputs
    x, cell = (graph.tensors[inputs[n]] for n in (0, 19))
    for gate, real in ((0, 16), (1, -16), (2, 0), (3, 16)):
        weights, recurrent = (graph.tensors[inputs[n]] for n in (1 + gate, 5 + gate))
        inputs[5 + gate] = graph.tensor(recurrent.shape, "int8", recurrent.scale, data=np.zeros(recurrent.shape))
        if real:
            inputs[1 + gate] = graph.tensor(weights.shape, "int8", weights.scale, data=np.zeros(weights.shape))
            bias = np.full(weights.shape[0], int(real / (float(x.scale) * float(weights.scale))))
            inputs[12 + gate] = graph.tensor(bias.shape, "int32", np.float32(1), data=bias)
    cell.scale = np.float32(2.0**-15)


def keep_all(file: RandomFile) -> None:
    """Nothing is changed."""


@pytest.mark.sweep
@pytest.mark.oracle
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("kind", "change", "state"), [("LSTM", open_cell, 19), ("SVDF", keep_all, 4)])
def test_multipliers_hold_in_many_states_of_16_bits(
    kind: str, change: Callable[[RandomFile], None], state: int, runtime: str, tmp_path: Path
) -> None:
    """A product of scales in float32 and in float64 gives other codes once in 10,000."""
    count = 3000 if runtime == "tflm" else 500
    for seed in range(4):
        file = changed(kind, change, seed)
        model, problems = imported(file.data, tmp_path, runtime)
        assert model is not None, problems.items
        graph = file.writer.graphs[0]
        source, number = graph.tensors[graph.inputs[0]], graph.operators[0].inputs[state]
        x = np.random.default_rng(seed).integers(-128, 128, (count, *source.shape))
        graph.outputs = [number]
        frames = [[codes.astype(np.int8)] for codes in x]
        (expected,) = run(Runtime(runtime), [RandomFile(file.writer.bytes(), file.writer, frames)], tmp_path)
        padded = np.zeros((count, int(np.prod(model.input_shape))))
        padded[:, : x[0].size] = x.reshape(count, -1)
        values = np.asarray(interpret(model, padded.reshape(count, *model.input_shape))[-1].value).reshape(count, -1)
        ours = values[:, -np.stack(expected)[0].size :]
        memory = 1 if kind == "LSTM" else graph.tensors[graph.operators[0].inputs[2]].shape[1]
        newest = slice(memory - 1, None, memory)
        assert np.array_equal(ours[:, newest], np.stack(expected).reshape(count, -1)[:, newest])


@pytest.mark.oracle
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("exponent", [-15, -13])
def test_cells_of_a_small_scale_use_another_shift_of_tanh(exponent: int, runtime: str, tmp_path: Path) -> None:
    file = changed("LSTM", set_cell_scale(2.0**exponent))
    model, problems = imported(file.data, tmp_path, runtime)
    assert model is not None, problems.items
    (expected,) = run(Runtime(runtime), [file], tmp_path)
    assert np.array_equal(first_outputs(model, file), [codes.ravel() for codes in expected])


@pytest.mark.sweep
@pytest.mark.oracle
def test_svdf_with_a_state_of_8_bits_is_for_tflite_micro(tmp_path: Path) -> None:
    for seed in range(4):
        file = changed("SVDF", narrow_state, seed)
        model, problems = imported(file.data, tmp_path, "tflm")
        assert model is not None, problems.items
        (expected,) = run(Runtime.TFLM, [file], tmp_path)
        assert np.array_equal(first_outputs(model, file), [codes.ravel() for codes in expected])
    assert imported(file.data, tmp_path, "litert-ref")[1].errors[0].code == "HG013"


REFUSED = {
    "coupled gates": ("LSTM", set_input(1, -1), "tflm", "HG013", "coupled input and forget gates"),
    "peephole": ("LSTM", set_input(9, 0), "tflm", "HG013", "peepholes"),
    "no bias": ("LSTM", set_input(13, -1), "tflm", "HG013", "without a bias"),
    "cell scale": ("LSTM", set_cell_scale(3e-4), "tflm", "HG022", "power of two"),
    "coarse cell": ("LSTM", set_cell_scale(2.0**-8), "tflm", "HG022", "2^-15 to 2^-9"),
    "activation": ("LSTM", set_activation, "tflm", "HG013", "activation NONE"),
    "constant state": ("LSTM", fix_state(18), "tflm", "HG020", "not a variable"),
    "intermediates": ("LSTM", drop_intermediates, "litert", "HG013", "intermediate tensors"),
    "SVDF's state": ("SVDF", fix_state(4), "tflm", "HG020", "not a variable"),
    "SVDF's bias": ("SVDF", set_bias_scale, "tflm", "HG022", "a bias of scale"),
    "SVDF without a bias": ("SVDF", set_input(3, -1), "tflm", "HG013", "without a bias"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_forms_are_refused(case: str, tmp_path: Path) -> None:
    kind, change, runtime, code, text = REFUSED[case]
    model, problems = imported(changed(kind, change).data, tmp_path, runtime)
    assert model is None
    (problem,) = problems.errors
    assert problem.code == code
    assert text in str(problem)


def set_clip(file: RandomFile) -> None:
    file.writer.graphs[0].operators[0].options["cell_clip"] = 1.0


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("change", [keep_all, set_clip])
@pytest.mark.parametrize("seed", [2, 3])
def test_one_cell_has_the_codes_of_all_steps(
    seed: int, change: Callable[[RandomFile], None], runtime: str, tmp_path: Path
) -> None:
    """Rows come first in time-major files (seed 2), and after the batch in others (seed 3). Any state may begin."""
    path, problems = tmp_path / "model.tflite", Collector()
    path.write_bytes(changed("LSTM", change, seed).data)
    unrolled = import_model(path, problems, runtime=runtime)
    assert unrolled is not None
    assert unrolled.loops
    assert builds_once("auto", unrolled, False)
    assert not builds_once("unrolled", unrolled, False)
    assert not builds_once("auto", unrolled, True)
    graph = lower_once(unrolled, lambda c: import_model(path, c, once=True, runtime=runtime), None, problems)
    assert sum(isinstance(layer, Delay) for layer in graph.layers) == 2
    assert not problems.items
    rng = np.random.default_rng(seed)
    x = pack_inputs(
        graph,
        {
            part.name: rng.integers(
                np.iinfo(part.dtype).min, np.iinfo(part.dtype).max, (20, *part.shape[part.batched :]), endpoint=True
            )
            for part in unrolled.inputs
        },
    )
    outputs = named_outputs(graph, run_output(graph, encode_input(graph, x)))
    ours = np.concatenate([outputs[part.name].reshape(20, -1) for part in unrolled.outputs], axis=1)
    assert np.array_equal(ours, interpret(unrolled, x)[-1].value)


def test_steps_of_several_sequences_are_copies(tmp_path: Path) -> None:
    model, _ = imported(random_file("LSTM", 0).data, tmp_path, "tflm")
    assert model is not None
    assert not model.loops


@pytest.mark.parametrize("recurrence", ["auto", "unrolled"])
def test_a_clipped_cell_is_a_state(recurrence: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(changed("LSTM", set_clip, 2).data)
    graph = lowered(path, Options(recurrence=recurrence), Collector())[2]
    assert [state.name for state in graph.states] == [x.name for x in graph.model.variables]
