"""Imported int16x8 operators against the wheels, on random files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_random import Choices, RandomFile, random_file, residual
from tflite_wheels import run

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.tflite.file import read_file
from hlsgen.frontend.tflite.importer import import_tflite
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model
from hlsgen.numerics.tflite.multipliers import Runtime

LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
FUNCTIONS = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH")
KINDS = [f"{name}:int16" for name in (*LAYERS, "ADD", "SUB", "MUL", "MEAN", *FUNCTIONS, "PRELU", "DEQUANTIZE")]
KINDS += [
    "SOFTMAX:int16",
    "SOFTMAX:8to16",
    "QUANTIZE:16",
    "QUANTIZE:8to16",
    "QUANTIZE:16to16",
    "QUANTIZE:u16",
    "QUANTIZE:f16",
]
SEEDS = 4


def _imported(file: RandomFile, runtime: Runtime) -> Model:
    problems = Collector()
    options = ImportOptions(fixed_point=False, typed={}, once=False, pairs=False, runtime=runtime.value)
    model = import_tflite(read_file(file.data, "file"), "file", options, problems)
    problems.finish()
    assert model is not None
    return model


def _is_refused(kind: str, runtime: Runtime) -> bool:
    """True for kinds without a kernel in tflite-micro, and those that LiteRT rounds by the position in the tensor."""
    if runtime is Runtime.TFLM:
        return kind in ("PRELU:int16", "QUANTIZE:u16")
    return runtime is Runtime.LITERT and kind == "QUANTIZE:f16"


def residual_file() -> RandomFile:
    """An int16 convolution of 1 x 1 whose result is added to its input."""
    choices = Choices("NET:int16", 0)
    x = choices.tensor((1, 2, 2, 2))
    return choices.finish([x], [residual(choices, x)])


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", list(Runtime), ids=lambda runtime: runtime.value)
def test_codes_are_those_of_the_wheel(runtime: Runtime, tmp_path: Path) -> None:
    kinds = [kind for kind in KINDS for _ in range(SEEDS)]
    files = [random_file(kind, seed) for seed, kind in enumerate(kinds)]
    taken = [file for kind, file in zip(kinds, files, strict=True) if not _is_refused(kind, runtime)]
    results_of_taken = iter(run(runtime, taken, tmp_path))
    for kind, file in zip(kinds, files, strict=True):
        if _is_refused(kind, runtime):
            with pytest.raises(HlsgenError, match=r"HG013|HG026"):
                _imported(file, runtime)
            continue
        model = _imported(file, runtime)
        for frame, expected in zip(file.frames, next(results_of_taken), strict=True):
            packed = np.concatenate([codes.reshape(1, -1).astype(np.float64) for codes in frame], axis=1)
            codes = interpret(model, frame[0][None] if len(frame) == 1 else packed)[-1].value
            assert np.array_equal(codes.reshape(expected.shape), expected), kind


@pytest.mark.parametrize("runtime", [Runtime.TFLM, Runtime.LITERT], ids=lambda runtime: runtime.value)
def test_sums_of_a_layer_and_its_input_can_be_built(runtime: Runtime, tmp_path: Path) -> None:
    """ADD rescales int16 codes to 32 bits and the sum to int16: three formulas, none for two of them together."""
    path = tmp_path / "net.tflite"
    path.write_bytes(residual_file().data)
    build = hlsgen.check(path, hlsgen.Options(runtime=runtime.value))
    assert sorted(choice.name.split()[0] for choice in build.network.choices.values()) == ["scale"] * 4
