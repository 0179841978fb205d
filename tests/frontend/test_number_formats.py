"""Weights of 2 bits, of float8 and float4, and with a scale per block, equal onnx's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.interpreter import graph as reference

Array = Any
FLOATS = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
ROWS, COLUMNS = 12, 5


def network(
    weight: onnx.TensorProto, scale: Array, zero: onnx.TensorProto | None = None, **attributes: int
) -> onnx.ModelProto:
    """int8 data, a MatMul with dequantized weights (ROWS, COLUMNS), float32 sums."""
    constants = [
        numpy_helper.from_array(np.float32(0.25), "sx"),
        weight,
        numpy_helper.from_array(np.asarray(scale, np.float32), "sw"),
        *([] if zero is None else [zero]),
    ]
    names = ["w", "sw", *([] if zero is None else ["zw"])]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx"], ["d"]),
        helper.make_node("DequantizeLinear", names, ["r"], **attributes),
        helper.make_node("MatMul", ["d", "r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, ROWS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, COLUMNS])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def tensor(values: Array, name: str = "w") -> onnx.TensorProto:
    return numpy_helper.from_array(values, name)


def agrees(model: onnx.ModelProto, folder: Path) -> hlsgen.Build:
    """The build equals onnx's evaluator, which rounds nothing, as all scales are powers of two."""
    onnx.save(model, folder / "m.onnx")
    build = hlsgen.check(folder / "m.onnx")
    x = np.random.default_rng(0).integers(-128, 128, (40, ROWS)).astype(np.int8)
    expected = np.concatenate([ReferenceEvaluator(model).run(None, {"x": row[None]})[0] for row in x])
    outputs = reference.evaluate(build.graph, x)
    assert (outputs == expected).all()
    assert len(np.unique(outputs)) > 20
    return build


@pytest.mark.parametrize("kind", FLOATS)
def test_float_weights(kind: str, tmp_path: Path) -> None:
    values = (np.random.default_rng(1).normal(size=(ROWS, COLUMNS)) * 2).astype(np.float32).astype(FLOATS[kind])
    agrees(network(tensor(values), 0.5), tmp_path)


@pytest.mark.parametrize("kind", [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4])
def test_narrow_weights(kind: Any, tmp_path: Path) -> None:
    info = ml_dtypes.iinfo(kind)
    values = np.random.default_rng(2).integers(info.min, info.max + 1, (ROWS, COLUMNS)).astype(kind)
    agrees(network(tensor(values), 0.125, tensor(np.array(1, kind), "zw")), tmp_path)


@pytest.mark.parametrize("kind", [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4])
def test_narrow_codes(kind: Any, tmp_path: Path) -> None:
    """QuantizeLinear and DequantizeLinear of data in narrow types."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(np.float32(0.3), "s"), tensor(np.array(1, kind), "z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="fixed:9,4"))
    x = (np.arange(-255, 255).reshape(-1, 3) / 32).astype(np.float32)
    expected = np.concatenate([ReferenceEvaluator(model).run(None, {"x": row[None]})[0] for row in x])
    assert (reference.evaluate(build.graph, x) == expected).all()


@pytest.mark.parametrize("size, axis", [(4, 0), (5, 0), (2, 1), (3, -2)])
def test_blocks(size: int, axis: int, tmp_path: Path) -> None:
    """Scales that are powers of two, along the summed axis and along the other one; the last block may be shorter."""
    rng = np.random.default_rng(size)
    values = rng.integers(-128, 128, (ROWS, COLUMNS)).astype(np.int8)
    shape = [-(-n // size) if i == axis % 2 else n for i, n in enumerate((ROWS, COLUMNS))]
    scale, zero = 2.0 ** rng.integers(-6, 0, shape), rng.integers(-9, 9, shape).astype(np.int8)
    agrees(network(tensor(values), scale, tensor(zero, "zw"), axis=axis, block_size=size), tmp_path)


def test_groups_of_floats(tmp_path: Path) -> None:
    """float4 with a power of two per group of summed weights."""
    rng = np.random.default_rng(3)
    values = (rng.normal(size=(ROWS, COLUMNS)) * 2).astype(np.float32).astype(ml_dtypes.float4_e2m1fn)
    agrees(network(tensor(values), 2.0 ** rng.integers(-4, 4, (3, COLUMNS)), axis=0, block_size=4), tmp_path)


def test_certified(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(-8, 8, (ROWS, COLUMNS)).astype(ml_dtypes.int4)
    model = network(tensor(values), 2.0 ** np.random.default_rng(5).integers(-4, 0, (4, COLUMNS)), axis=0, block_size=3)
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    certificate = hlsgen.certify(tmp_path / "out")
    assert certificate.ok, certificate.problems


@pytest.mark.parametrize(
    "scale, zero, attributes, code",
    [
        (np.ones((3, 4)), None, {"axis": 0, "block_size": 4}, "HG023"),
        (np.ones((3, 5)), None, {"axis": 2, "block_size": 4}, "HG013"),
        (np.tile([[0.1], [0.23], [0.3]], 5), None, {"axis": 0, "block_size": 4}, "HG034"),
    ],
)
def test_refused(scale: Array, zero: Any, attributes: dict[str, int], code: str, tmp_path: Path) -> None:
    values = np.random.default_rng(6).integers(-8, 8, (ROWS, COLUMNS)).astype(np.int8)
    onnx.save(network(tensor(values), scale, zero, **attributes), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "m.onnx")
    assert code in [d.code for d in error.value.diagnostics]


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("kind", ["INT4", "UINT8", "INT16"])
def test_a_lone_decoding(kind: str, tmp_path: Path) -> None:
    """Hardware forwards the codes, and the host decodes them."""
    type_ = getattr(TensorProto, kind)
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"])],
        "lone",
        [helper.make_tensor_value_info("x", type_, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor("s", TensorProto.FLOAT, [], [0.125]), helper.make_tensor("z", type_, [], [3])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    x = np.array([[-8, -1, 0, 1, 5, 7]], np.int16) + (8 if kind == "UINT8" else 0)
    assert np.array_equal(hlsgen.run(tmp_path / "out", x, "icarus"), (x - 3) * np.float32(0.125))
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_cast_keeps_the_low_bits(kind: str, tmp_path: Path) -> None:
    """Numbers out of the range of 4 bits, as in onnx's own tests."""
    type_ = getattr(TensorProto, kind)
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=type_)],
        "cast",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 40])],
        [helper.make_tensor_value_info("y", type_, [1, 40])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="fixed:6,6"))
    x = np.arange(-20, 20, dtype=np.float32)[None]
    low = x.astype(np.int64) & 15
    expected = low if kind == "UINT4" else np.where(low > 7, low - 16, low)
    assert np.array_equal(hlsgen.run(tmp_path / "out", x), expected)
    assert hlsgen.certify(tmp_path / "out").ok
