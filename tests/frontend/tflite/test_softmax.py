"""SOFTMAX of imported TFLite files against the runtimes: all pairs of codes, long rows, equal and dominant codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_random import CODES, Choices, RandomFile, random_file
from tflite_wheels import run

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.host.plan import HostStep, Tensor, why_left_to_user
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model, RowStep
from hlsgen.numerics.tflite.multipliers import Runtime

#: Scale of the data, and beta. The smallest distances count, or only the largest code.
_FORMS = ((0.0039, 1.0), (0.05, 1.0), (0.11, 0.5), (0.25, 1.7), (8.0, 1.0))
_CASES = [(runtime, dtype) for runtime in Runtime for dtype in ("int8", "uint8")]


def softmax_file(
    rows: np.ndarray,
    scale: float,
    beta: float = 1.0,
    result: float = 1 / 256,
    zero: int | None = None,
    twice: bool = False,
) -> RandomFile:
    """A file with one SOFTMAX, and a frame of these rows. result, zero: scale and zero point of the result.

    twice: hardware concatenates two copies of the result.
    """
    choices = Choices("SOFTMAX", 0)
    choices.type = rows.dtype.name
    x = choices.tensor(rows.shape, np.float32(scale), 3)
    y = choices.tensor(rows.shape, np.float32(result), CODES[choices.type][0] if zero is None else zero)
    choices.graph.operator("SOFTMAX", [x], [y], beta=beta)
    if twice:
        y = choices.graph.operator("CONCATENATION", [y, y], [choices.like(y, (2 * len(rows), rows.shape[1]))], axis=0)
    return choices.finish([x], [y], [[rows]])


def imported(file: RandomFile, runtime: Runtime, directory: Path) -> tuple[Model | None, Collector]:
    path, problems = directory / "softmax.tflite", Collector()
    path.write_bytes(file.data)
    return import_model(path, problems, runtime=runtime.value), problems


def rows_of(runtime: Runtime, dtype: str, scale: float) -> list[np.ndarray]:
    """All pairs of codes; random rows of other lengths; rows of equal codes, and of one dominant code.

    Integer runtimes abort for rows whose exponentials have a sum of 512. A share of 1/512 is a tie in floats.
    """
    most_equals = 512 if runtime is Runtime.LITERT else 511
    rng, (low, high) = np.random.default_rng(1), CODES[dtype]
    codes = np.arange(low, high + 1)
    pairs = np.stack(np.meshgrid(codes, codes), -1).reshape(-1, 2)
    tensors = [pairs, codes.reshape(-1, 1)]
    for length in (3, 12, 100, most_equals):
        rows = rng.integers(low, high + 1, (24, length))
        rows[12:] = rng.integers(high - 20, high + 1, (12, length))
        rows[:2], rows[2], rows[3] = [[low], [high]], low, high
        rows[2, length // 2], rows[3, 0] = high, low
        tensors.append(rows)
    for length in (1000, 4096) if scale > 0.01 else ():
        rows = np.full((6, length), low)
        rows[:, 100:200] = rng.integers((low + high) // 2, high + 1, (6, 100))
        tensors.append(rows)
    return [tensor.astype(dtype) for tensor in tensors]


@pytest.mark.oracle
@pytest.mark.parametrize(("runtime", "dtype"), _CASES, ids=lambda value: getattr(value, "value", value))
def test_rows_have_the_codes_of_the_runtime(runtime: Runtime, dtype: str, tmp_path: Path) -> None:
    files = [softmax_file(rows, scale, beta) for scale, beta in _FORMS for rows in rows_of(runtime, dtype, scale)]
    if runtime is Runtime.TFLM and dtype == "uint8":
        assert [d.code for d in imported(files[0], runtime, tmp_path)[1].errors] == ["HG026"]
        return
    for file, expected in zip(files, run(runtime, files, tmp_path), strict=True):
        model, problems = imported(file, runtime, tmp_path)
        assert model is not None, problems.items
        result = interpret(model, file.frames[0][0][None])[-1].value
        assert result.dtype == dtype
        assert np.array_equal(np.asarray(result)[0], expected[0])


@pytest.mark.oracle
@pytest.mark.parametrize(("runtime", "dtype"), _CASES[:-2], ids=lambda value: getattr(value, "value", value))
def test_rows_in_hardware_have_the_codes_of_the_runtime(runtime: Runtime, dtype: str, tmp_path: Path) -> None:
    if runtime is Runtime.TFLM and dtype == "uint8":
        return
    files = [
        softmax_file(rows, scale, beta, twice=True)
        for scale, beta in _FORMS
        for rows in rows_of(runtime, dtype, scale)
        if rows.shape[1] < 512
    ]
    for file, expected in zip(files, run(runtime, files, tmp_path), strict=True):
        model, problems = imported(file, runtime, tmp_path)
        assert model is not None, problems.items
        assert sum(isinstance(step.op, RowStep) for step in model.steps) == 2
        result = interpret(model, file.frames[0][0][None])[-1].value
        assert np.array_equal(np.asarray(result)[0], expected[0])


def int16_file(rows: np.ndarray, scale: float, dequantize: bool = False) -> RandomFile:
    """A file with one SOFTMAX of these int8 or uint8 rows to int16 codes, and a DEQUANTIZE if wished."""
    choices = Choices("SOFTMAX", 0)
    x = choices.graph.tensor(rows.shape, rows.dtype.name, np.float32(scale), 3)
    y = choices.graph.tensor(rows.shape, "int16", np.float32(1 / 65536), -32768)
    choices.graph.operator("SOFTMAX", [x], [y], beta=1.0)
    if dequantize:
        y = choices.graph.operator("DEQUANTIZE", [y], [choices.graph.tensor(rows.shape, "float32")])
    return choices.finish([x], [y], [[rows]])


@pytest.mark.oracle
@pytest.mark.parametrize(("runtime", "dtype"), _CASES, ids=lambda value: getattr(value, "value", value))
def test_int16_shares_of_8_bit_codes(runtime: Runtime, dtype: str, tmp_path: Path) -> None:
    """The host's and the hardware's codes are those of the runtime, which has float32 sums in litert."""
    if runtime is Runtime.TFLM and dtype == "uint8":
        return
    tensors = [(rows[-3000:], scale) for scale in (0.021, 0.3) for rows in rows_of(runtime, dtype, scale)]
    files = [int16_file(rows, scale) for rows, scale in tensors]
    reals = [int16_file(rows, scale, True) for rows, scale in tensors[-2:] if runtime is Runtime.TFLM]
    path = tmp_path / "softmax.tflite"
    for file, expected in zip(files + reals, run(runtime, files + reals, tmp_path), strict=True):
        path.write_bytes(file.data)
        for last in (False, True):
            if last and (runtime is Runtime.LITERT or file.frames[0][0].shape[1] > 511):
                continue
            model = import_model(path, Collector(), runtime=runtime.value, softmax="hardware" if last else "host")
            assert model is not None
            assert any(isinstance(step.op, RowStep) for step in model.steps) == last
            result = interpret(model, file.frames[0][0][None])[-1].value
            assert np.array_equal(np.asarray(result)[0], expected[0])


def test_int16_data_in_hardware_is_refused(tmp_path: Path) -> None:
    path, problems = tmp_path / "softmax.tflite", Collector()
    path.write_bytes(random_file("SOFTMAX:int16", 0).data)
    assert import_model(path, problems, runtime="tflm", softmax="hardware") is None
    assert [d.code for d in problems.errors] == ["HG030"]
    assert "lines between the entries of two tables" in problems.errors[0].message


@pytest.mark.parametrize(
    ("runtime", "length", "code", "reason"),
    [
        (Runtime.TFLM, 512, "HG013", "aborts if their sum reaches 512"),
        (Runtime.LITERT_REF, 512, "HG013", "aborts if their sum reaches 512"),
        (Runtime.LITERT, 5, "HG030", "float32, in the order of the row"),
    ],
)
def test_forms_that_hardware_cannot_compute(
    runtime: Runtime, length: int, code: str, reason: str, tmp_path: Path
) -> None:
    if runtime is Runtime.LITERT:
        file = random_file("ATTENTION", 0)
    else:
        file = softmax_file(np.zeros((1, length), np.int8), 0.1, twice=True)
    model, problems = imported(file, runtime, tmp_path)
    assert model is None
    assert [d.code for d in problems.errors] == [code]
    assert reason in problems.errors[0].message


@pytest.mark.parametrize("runtime", list(Runtime), ids=lambda runtime: runtime.value)
def test_host_code_computes_softmax(runtime: Runtime, tmp_path: Path) -> None:
    model, _ = imported(softmax_file(np.zeros((2, 5), np.int8), 0.1), runtime, tmp_path)
    assert model is not None
    tensor = Tensor((2, 5), "int8")
    assert not why_left_to_user(HostStep(model.steps[-1], tensor, tensor))


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (softmax_file(np.zeros((1, 5), np.int8), 0.1, result=1 / 255), "scale 0.00392157"),
        (softmax_file(np.zeros((1, 5), np.int8), 0.1, zero=0), "zero point 0"),
        (softmax_file(np.zeros((1, 5), np.int8), 0.1, beta=0.0), "beta is 0"),
        (softmax_file(np.zeros((1, 4097), np.int8), 0.1), "[1, 4097]"),
        (softmax_file(np.zeros((1, 5), np.int8), 2.0**-26), "at most 2^-26"),
    ],
    ids=["scale", "zero point", "beta", "length", "tiny scale"],
)
def test_other_forms_are_refused(file: RandomFile, reason: str, tmp_path: Path) -> None:
    model, problems = imported(file, Runtime.TFLM, tmp_path)
    assert model is None
    assert [d.code for d in problems.errors] == ["HG013"]
    assert reason in problems.errors[0].message
