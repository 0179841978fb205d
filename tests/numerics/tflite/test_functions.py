"""Functions of one code against the wheels: all 256 codes of random scales and zero points, or random int16 codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tflite_random import RandomFile, random_file, steep_function
from tflite_wheels import run

from hlsgen.frontend.tflite.file import TfliteTensor, read_file
from hlsgen.numerics.tflite.functions import CodeFunction, CodeType, UnsupportedFunction, quantize_reals
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.numerics.tflite.softmax import (
    exponentials_in_floats,
    exponentials_in_integers,
    softmax_codes,
)
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax

FILES = 25


def _code_type(tensor: TfliteTensor) -> CodeType:
    quantization = tensor.quantization
    assert quantization is not None
    return CodeType(tensor.type, float(quantization.scale[0]), int(quantization.zero_point[0]))


def _codes(file: RandomFile, runtime: Runtime) -> list[Any]:
    graph = read_file(file.data, "file").graphs[0]
    operator = graph.operators[0]
    data, result = (graph.tensors[n] for n in (operator.inputs[0], operator.outputs[0]))
    if data.quantization is None:
        return [quantize_reals(runtime, frame[0], _code_type(result)) for frame in file.frames]
    if operator.name == "SOFTMAX":
        rows = [frame[0].astype(np.int64) for frame in file.frames]
        return [_softmax(runtime, row, _code_type(data), _code_type(result), operator.options["beta"]) for row in rows]
    alpha = float(operator.options.get("alpha", 0.0))
    function = CodeFunction(operator.name, runtime, _code_type(data), _code_type(result), alpha)
    return [function.codes(frame[0].astype(np.int64)) for frame in file.frames]


def _softmax(runtime: Runtime, x: Any, data: CodeType, result: CodeType, beta: float) -> Any:
    if data.dtype == "int16":
        return Int16Softmax.of(runtime, data.scale, beta).codes(x)
    exponentials_of = exponentials_in_floats if runtime is Runtime.LITERT else exponentials_in_integers
    return softmax_codes(exponentials_of(data.scale, beta), x, result)


def _kinds(runtime: Runtime) -> list[str]:
    """The kinds of random files that the runtime takes."""
    kinds = [
        f"{name}{form}" for name in ("LOGISTIC", "TANH", "LEAKY_RELU", "RELU", "SOFTMAX") for form in ("", ":int16")
    ]
    kinds += ["RELU6", "HARD_SWISH", "QUANTIZE", "QUANTIZE:f", "QUANTIZE:16", "QUANTIZE:8to16", "SOFTMAX:8to16"]
    if runtime is not Runtime.LITERT:
        kinds += ["QUANTIZE:u8", "QUANTIZE:8u", "QUANTIZE:f16"]
    if runtime is not Runtime.TFLM:
        kinds += ["RELU_N1_TO_1"]
        kinds += [f"{name}:uint8" for name in ("LOGISTIC", "TANH", "LEAKY_RELU", "RELU", "HARD_SWISH", "SOFTMAX")]
    return kinds


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", list(Runtime), ids=lambda runtime: runtime.value)
def test_codes_are_those_of_the_wheel(runtime: Runtime, tmp_path: Path) -> None:
    kinds = [kind for kind in _kinds(runtime) for _ in range(FILES)]
    files = [random_file(kind, seed) for seed, kind in enumerate(kinds)]
    for kind, file, results in zip(kinds, files, run(runtime, files, tmp_path), strict=True):
        for codes, expected in zip(_codes(file, runtime), results, strict=True):
            assert np.array_equal(codes, expected), kind


@pytest.mark.parametrize("runtime", list(Runtime), ids=lambda runtime: runtime.value)
def test_codes_of_large_scales_are_those_of_the_wheel(runtime: Runtime, tmp_path: Path) -> None:
    """In tflite-micro, scales from 8 on leave no code within the range of its fixed point."""
    files = [steep_function(kind, scale) for kind in ("LOGISTIC", "TANH") for scale in (3.9, 8.0, 100.0)]
    for file, results in zip(files, run(runtime, files, tmp_path), strict=True):
        assert np.array_equal(_codes(file, runtime)[0], results[0])


def test_a_scale_beyond_the_shifts_of_tflite_micro_is_refused() -> None:
    data, result = CodeType("int8", 1e30, 0), CodeType("int8", 1 / 256, -128)
    with pytest.raises(UnsupportedFunction, match="127 bits"):
        CodeFunction("LOGISTIC", Runtime.TFLM, data, result).codes(data.all_codes)


def test_rounding_by_position_is_refused() -> None:
    signed, unsigned = CodeType("int8", 0.1, 0), CodeType("uint8", 0.1, 128)
    codes = signed.all_codes
    assert np.array_equal(CodeFunction("QUANTIZE", Runtime.LITERT, signed, unsigned).codes(codes), codes + 128)
    coarser = CodeType("uint8", 0.125, 128)
    with pytest.raises(UnsupportedFunction):
        CodeFunction("QUANTIZE", Runtime.LITERT, signed, coarser).codes(codes)
    with pytest.raises(UnsupportedFunction):
        CodeFunction("RELU_N1_TO_1", Runtime.TFLM, signed, signed).codes(codes)
    with pytest.raises(UnsupportedFunction):
        quantize_reals(Runtime.LITERT, np.zeros(3), CodeType("int16", 0.1, 0))
