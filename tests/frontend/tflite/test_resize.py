"""RESIZE_BILINEAR of imported TFLite files against the runtimes, and through the hardware's arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_random import Choices, random_file
from tflite_wheels import run

from hlsgen.certify.second_reading.tflite import compare as second_reading
from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter.equivalence import compare
from hlsgen.interpreter.graph import encode_input
from hlsgen.interpreter.model import interpret
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.passes.lower import lower

_KINDS = [
    (Runtime.TFLM, "RESIZE_BILINEAR"),
    (Runtime.LITERT_REF, "RESIZE_BILINEAR"),
    (Runtime.LITERT, "RESIZE_BILINEAR"),
    (Runtime.LITERT, "RESIZE_BILINEAR:uint8"),
]


@pytest.mark.sweep
@pytest.mark.oracle
@pytest.mark.parametrize(("runtime", "kind"), _KINDS, ids=lambda value: getattr(value, "value", value))
def test_images_have_the_codes_of_the_runtime(runtime: Runtime, kind: str, tmp_path: Path) -> None:
    files = [random_file(kind, seed) for seed in range(60)]
    for file, expected in zip(files, run(runtime, files, tmp_path), strict=True):
        path, problems = tmp_path / "resize.tflite", Collector()
        path.write_bytes(file.data)
        model = import_model(path, problems, runtime=runtime.value)
        assert model is not None, problems.items
        images = np.stack([frame[0] for frame in file.frames])
        assert np.array_equal(interpret(model, images)[-1].value, np.stack(expected))
        graph = lower(model, None, problems)
        assert compare(model, graph, encode_input(graph, images)).ok


@pytest.mark.sweep
@pytest.mark.oracle
def test_uint8_is_computed_in_floats(tmp_path: Path) -> None:
    """By the reference kernels of LiteRT. Files whose float32 products are rounded are refused."""
    files = [random_file("RESIZE_BILINEAR:uint8", seed) for seed in range(200)]
    taken = 0
    for file, expected in zip(files, run(Runtime.LITERT_REF, files, tmp_path), strict=True):
        path, problems = tmp_path / "resize.tflite", Collector()
        path.write_bytes(file.data)
        model = import_model(path, problems, runtime="litert-ref")
        if model is None:
            assert [d.code for d in problems.errors] == ["HG013"]
            assert "float32" in problems.errors[0].message
            continue
        taken += 1
        images = np.stack([frame[0] for frame in file.frames])
        assert np.array_equal(interpret(model, images)[-1].value, np.stack(expected))
        graph = lower(model, None, problems)
        assert compare(model, graph, encode_input(graph, images)).ok
        assert second_reading(file.data, model).problems == ()
    assert taken >= 30


def test_both_kinds_of_centers_are_refused(tmp_path: Path) -> None:
    path, problems = tmp_path / "resize.tflite", Collector()
    choices = Choices("RESIZE_BILINEAR", 0)
    x = choices.tensor((1, 2, 2, 1))
    options = {"align_corners": 1, "half_pixel_centers": 1}
    y = choices.graph.operator(
        "RESIZE_BILINEAR", [x, choices.graph.integers([3, 3])], [choices.like(x, (1, 3, 3, 1))], **options
    )
    path.write_bytes(choices.finish([x], [y]).data)
    assert import_model(path, problems) is None
    assert [d.code for d in problems.errors] == ["HG013"]


@pytest.mark.parametrize(("size", "is_taken"), [(512, True), (513, False)])
def test_large_images_are_refused_with_the_bound(size: int, is_taken: bool, tmp_path: Path) -> None:
    choices, path, problems = Choices("RESIZE_BILINEAR", 0), tmp_path / "m.tflite", Collector()
    x = choices.tensor((1, 2, 512, 1))
    y = choices.like(x, (1, 2, size, 1))
    choices.graph.operator("RESIZE_BILINEAR", [x, choices.graph.integers((2, size))], [y])
    path.write_bytes(choices.finish([x], [y]).data)
    assert (import_model(path, problems, runtime="tflm") is not None) == is_taken
    assert [error.code for error in problems.errors] == ([] if is_taken else ["HG004"])
