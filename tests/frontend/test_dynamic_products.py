"""Products for which onnxruntime quantizes floats at run time, held against its optimized graph."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend.dynamic_products import dynamic_products

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int4": TensorProto.INT4, "int16": TensorProto.INT16}
#: The node before the product, what follows, the scales of the weights.
BEFORE = ("nothing", "quantizers", "Mul", "Relu", "two quantizers and Mul")
AFTER = (
    *("nothing", "bias", "Relu", "quantizers", "bias and quantizers", "Relu and quantizers"),
    *("bias and Relu and quantizers", "row", "row and quantizers", "tensor", "tensor and quantizers"),
    "tensor and Relu and quantizers",
)
SCALES = ("tensor", "columns", "rows", "blocks of 16", "blocks of 8")


def product(operator: str, before: str, after: str, kind: str, scales: str, rank: int = 2) -> onnx.ModelProto:
    """x (5, 32) or (1, 5, 32) times quantized weights (32, 3); v is added to the result."""
    rng = np.random.default_rng(4)
    shape = {"tensor": (), "columns": (3,), "rows": (32,), "blocks of 16": (2, 3), "blocks of 8": (4, 3)}[scales]
    axis = {"axis": 1 if scales == "columns" else 0} if shape else {}
    block = {"block_size": int(scales.split()[-1])} if scales.startswith("blocks") else {}
    codes = rng.integers(0 if kind == "uint8" else -7, 8, (32, 3)).ravel().tolist()
    constants = [
        helper.make_tensor("w", TYPES[kind], (32, 3), codes),
        *(
            numpy_helper.from_array(array, name)
            for name, array in {
                "ws": np.full(shape, 0.25, np.float32),
                "s": np.float32(0.5),
                "z": np.uint8(9),
                "k": np.float32(0.5),
                "b": np.arange(3, dtype=np.float32),
                "row": np.arange(3, dtype=np.float32).reshape(1, 3),
            }.items()
        ),
    ]
    nodes, data = [helper.make_node("DequantizeLinear", ["w", "ws"], ["wd"], **axis, **block)], "x"

    def then(operator: str, *constants: str) -> None:
        nonlocal data
        nodes.append(helper.make_node(operator, [data, *constants], [f"t{len(nodes)}"]))
        data = nodes[-1].output[0]

    def quantized() -> None:
        then("QuantizeLinear", "s", "z")
        then("DequantizeLinear", "s", "z")

    if "quantizers" in before:
        quantized()
    if before.split()[-1] in ("Mul", "Relu"):
        then(before.split()[-1], *["k"][: before.endswith("Mul")])
    then(operator, "wd")
    for name, term in (("bias", "b"), ("row", "row"), ("tensor", "v")):
        if name in after:
            then("Add", term)
    if "Relu" in after:
        then("Relu")
    if "quantizers" in after:
        quantized()
    lead = [1] * (rank - 2)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [*lead, 5, n])
        for name, n in (("x", 32), *[("v", 3)] * ("tensor" in after), (data, 3))
    ]
    graph = helper.make_graph(nodes, "product", ends[:-1], ends[-1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", ["onnxruntime", "onnxruntime-arm"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("operator, rank", [("MatMul", 2), ("MatMul", 3), ("Gemm", 2)])
def test_those_of_the_optimized_graph(operator: str, rank: int, kind: str, runtime: str) -> None:
    for case in itertools.product(BEFORE, AFTER, SCALES):
        model = product(operator, *case[:2], kind, case[2], rank)
        optimized = ort.optimized_graph(model, arm=runtime == "onnxruntime-arm")
        expected = any(node.op_type == "MatMulNBits" for node in optimized.graph.node)
        assert bool(dynamic_products(model, 21, runtime)) is expected, case


@pytest.mark.parametrize("place", range(3))
def test_incomplete_nodes_are_reported(place: int, tmp_path: Path) -> None:
    """DequantizeLinear, MatMul and Add without their second input."""
    model = product("MatMul", "nothing", "bias", "int8", "tensor")
    del model.graph.node[place].input[1:]
    onnx.save(model, tmp_path / "product.onnx")
    with pytest.raises(HlsgenError, match="HG014"):
        hlsgen.check(tmp_path / "product.onnx")


@pytest.mark.sim
def test_a_file_with_one(tmp_path: Path) -> None:
    """By default it has the integers of the operators' definitions; onnxruntime's are refused."""
    path = tmp_path / "product.onnx"
    onnx.save(product("MatMul", "quantizers", "nothing", "int8", "tensor"), path)
    assert hlsgen.build(path, tmp_path / "quantized").model.runtime == "onnxruntime"
    onnx.save(product("MatMul", "two quantizers and Mul", "nothing", "int8", "tensor"), path)
    build = hlsgen.build(path, tmp_path / "defined")
    assert build.model.runtime == "onnx"
    assert any("HG090" in note and "has the integers of --runtime onnx" in note for note in build.graph.notes)
    verdict = hlsgen.verify(tmp_path / "defined", ["icarus"], 2)
    assert verdict.ok, verdict
    with pytest.raises(HlsgenError, match=r"HG010 .*quantizes the input of this product at run time"):
        hlsgen.build(path, tmp_path / "out", hlsgen.Options(runtime="onnxruntime"))
