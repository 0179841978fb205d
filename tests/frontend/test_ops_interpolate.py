"""Linear Resize, and nearest Resize of uneven rows and columns, between quantizers: onnxruntime's integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from builds import assert_verified
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.frontend.index_runs import repeated_runs
from hlsgen.interpreter import graph as reference
from hlsgen.passes import InputMode, lower

Array = Any

HALF = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}


def resized(
    shape: tuple[int, ...], numbers: Any, *, opset: int = 19, last: bool = False, after: float = 0.05, **attrs: Any
) -> onnx.ModelProto:
    """QuantizeLinear, DequantizeLinear, Resize of `shape` to sizes (int64) or by scales, and both again."""
    constants = {"scale": np.float32(0.05), "zero": np.int8(3), "out": np.float32(after), "n": np.asarray(numbers)}
    sizes = constants["n"].dtype == np.int64
    if opset < 13:
        constants["empty"] = np.zeros(0, np.float32)
    names = ["real", "empty" if opset < 13 else "", *(["", "n"] if sizes else ["n"])]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["real"]),
        helper.make_node("Resize", names, ["resized"], name="resize", **attrs),
        helper.make_node("QuantizeLinear", ["resized", "out", "zero"], ["new codes"]),
        helper.make_node("DequantizeLinear", ["new codes", "out", "zero"], ["y"]),
    ]
    source, result = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", None)))
    if last:
        nodes, result.name = nodes[:3], "resized"
        del constants["out"]
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "resized", [source], [result], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def differences(model: onnx.ModelProto, outputs: Callable[[Array], Array], frames: int = 20) -> int:
    """Results of `outputs` for random frames that a default session of onnxruntime does not have."""
    shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)
    x = (np.random.default_rng(3).integers(-140, 140, (frames, *shape)) / 20).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = np.concatenate([session.run(None, {"x": frame})[0] for frame in x])
    return int((outputs(x).reshape(expected.shape) != expected).sum())


def of_graph(model: onnx.ModelProto, tmp_path: Path) -> Callable[[Array], Array]:
    """The outputs of the integer graph."""
    onnx.save(model, tmp_path / "m.onnx")
    problems = Collector()
    imported = import_model(tmp_path / "m.onnx", problems)
    problems.finish()
    assert imported is not None
    graph = lower(imported, InputMode("codes"), problems)
    return lambda x: reference.evaluate(graph, x[:, 0])


@pytest.mark.parametrize(
    "shape, numbers, options",
    [
        ((1, 1, 3, 3), np.float32([1, 1, 2, 2]), HALF),
        ((1, 2, 4, 4), np.float32([1, 1, 2, 2]), {**HALF, "opset": 11}),
        ((1, 2, 4, 4), np.float32([1, 1, 2, 2]), {**HALF, "after": 0.0731}),
        ((1, 2, 3, 5), np.float32([1, 1, 2, 2]), {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}),
        ((1, 2, 6, 6), np.float32([1, 1, 0.5, 0.5]), HALF),
        ((1, 2, 4, 5), np.int64([1, 2, 7, 6]), HALF),
        ((1, 2, 4, 5), np.int64([1, 2, 5, 9]), {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        ((1, 2, 4, 5), np.int64([1, 2, 1, 9]), {**HALF, "coordinate_transformation_mode": "pytorch_half_pixel"}),
    ],
)
def test_linear(shape: tuple[int, ...], numbers: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """Quantizers of one scale before and after it have many ties, which the order of float32 operations decides."""
    model = resized(shape, numbers, **options)
    assert differences(model, of_graph(model, tmp_path)) == 0


@pytest.mark.slow
@pytest.mark.sim
def test_linear_in_hardware(tmp_path: Path) -> None:
    onnx.save(model := resized((1, 2, 3, 3), np.float32([1, 1, 2, 2]), **HALF), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(target="verilog"))
    assert differences(model, lambda x: hlsgen.run(tmp_path / "out", x[:, 0], "reference")) == 0
    assert hlsgen.certify(tmp_path / "out").ok
    assert_verified(tmp_path / "out", "icarus", 4)


@pytest.mark.parametrize(
    "sizes, mode, nearest",
    [
        ((7, 9), "asymmetric", "floor"),
        ((8, 8), "half_pixel", "floor"),
        ((3, 5), "half_pixel", "round_prefer_ceil"),
        ((9, 6), "align_corners", "round_prefer_floor"),
    ],
)
def test_uneven_rows_and_columns(sizes: tuple[int, int], mode: str, nearest: str, tmp_path: Path) -> None:
    attrs = {"mode": "nearest", "coordinate_transformation_mode": mode, "nearest_mode": nearest}
    model = resized((1, 2, 4, 4), np.int64([1, 2, *sizes]), **attrs)
    assert differences(model, of_graph(model, tmp_path)) == 0


def test_after_the_last_layer(tmp_path: Path) -> None:
    """The host resizes, with onnxruntime's float32 operations."""
    model = resized((1, 2, 4, 4), np.float32([1, 1, 2, 2]), last=True, **HALF)
    assert differences(model, of_graph(model, tmp_path)) == 0


def test_cubic_is_refused(tmp_path: Path) -> None:
    onnx.save(resized((1, 2, 4, 4), np.float32([1, 1, 2, 2]), mode="cubic"), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG010 resize: Resize with mode 'cubic'"):
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")


@pytest.mark.parametrize(
    "indices, parts", [([0, 0, 0, 1, 1, 2, 2, 3], 2), ([0, 1, 1, 2, 2, 3, 3, 3], 2), ([2, 2, 0, 5, 5, 8, 1, 1], 4)]
)
def test_repeated_runs(indices: list[int], parts: int) -> None:
    found = repeated_runs(np.array(indices))
    assert len(found) == parts
    pieces = []
    for run in found:
        values = [*chain.from_iterable(repeat(value, run.times) for value in range(run.first, run.end, run.step))]
        pieces += values[run.skipped : run.skipped + run.length]
    assert pieces == indices


def test_random_repeated_runs() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        indices = np.sort(rng.integers(0, 9, rng.integers(1, 20))) if rng.random() < 0.7 else rng.integers(0, 4, 9)
        pieces: list[int] = []
        for run in repeated_runs(indices):
            values = np.repeat(np.arange(run.first, run.end, run.step), run.times)
            assert run.skipped + run.length <= len(values)
            pieces += values[run.skipped : run.skipped + run.length].tolist()
        assert pieces == indices.tolist()
