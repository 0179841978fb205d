"""Matrix products of other operators, and with fewer matrices on the left, equal executors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import compare
from hlsgen.passes import lower

Array = Any
#: Inputs and their shapes, nodes as (operator, inputs, attributes), where "w" is a constant of the given shape.
CASES: dict[str, tuple[list[int], list[int], dict[str, Any]]] = {
    "scores": ([1, 3, 2, 4], [1, 5, 2, 4], {"equation": "bqhd,bkhd->bhqk"}),
    "values": ([1, 2, 3, 5], [1, 5, 2, 4], {"equation": "bhqk,bkhd->bqhd"}),
    "implicit": ([3, 4], [4, 5], {"equation": "ij, jk"}),
    "two summed": ([1, 3, 2, 4], [1, 2, 4, 5], {"equation": "bihd,bhde->bie"}),
    "other way": ([4, 3], [4, 5], {"equation": "km,kn->nm"}),
    "fused": ([1, 2, 3, 4], [1, 2, 5, 4], {"transB": 1, "alpha": 0.5}),
    "fused both": ([1, 2, 4, 3], [1, 2, 5, 4], {"transA": 1, "transB": 1}),
    "left repeated": ([1, 3, 4], [2, 4, 5], {}),
    "left of lower rank": ([3, 4], [1, 2, 4, 5], {}),
}
WEIGHTS: dict[str, tuple[list[int], list[int], dict[str, Any]]] = {
    "projection": ([1, 3, 4], [4, 5], {"equation": "btd,de->bte"}),
    "to heads": ([1, 3, 4], [4, 2, 5], {"equation": "btd,dhe->bhte"}),
    "from heads": ([1, 2, 3, 4], [2, 4, 5], {"equation": "bhte,hed->btd"}),
    "fused weights": ([1, 3, 4], [5, 4], {"transB": 1, "alpha": 2.0}),
    "fused data": ([1, 4, 3], [4, 5], {"transA": 1}),
}


def model(case: tuple[list[int], list[int], dict[str, Any]], weights: bool) -> onnx.ModelProto:
    """A product of two quantized tensors, the second one constant if `weights`, quantized again."""
    first, second, attributes = case
    op_type = "Einsum" if "equation" in attributes else "FusedMatMul" if attributes else "MatMul"
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        *([] if weights else [helper.make_node("QuantizeLinear", ["y", "s", "z2"], ["yq"])]),
        helper.make_node("DequantizeLinear", ["yq", "s", "z0" if weights else "z2"], ["yd"]),
        helper.make_node(
            op_type, ["xd", "yd"], ["p"], domain="com.microsoft" if op_type == "FusedMatMul" else "", **attributes
        ),
        helper.make_node("Relu", ["p"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "s3", "z0"], ["o"]),
    ]
    rng = np.random.default_rng(4)
    constants = {"s": np.float32(0.125), "z": np.int8(3), "z2": np.int8(-2), "z0": np.int8(0), "s3": np.float32(0.25)}
    if weights:
        constants["yq"] = rng.integers(-100, 100, second).astype(np.int8)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, first)]
    inputs += [] if weights else [helper.make_tensor_value_info("y", TensorProto.FLOAT, second)]
    graph = helper.make_graph(
        nodes,
        "product",
        inputs,
        [helper.make_tensor_value_info("o", TensorProto.INT8, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("name", [*CASES, *WEIGHTS])
def test_equals_the_executor(name: str, tmp_path: Path) -> None:
    """All numbers are exact in float32, so that every executor gives the same result."""
    proto = model({**CASES, **WEIGHTS}[name], name in WEIGHTS)
    onnx.save(proto, tmp_path / "m.onnx")
    problems = Collector()
    imported_model = import_model(tmp_path / "m.onnx", problems)
    problems.finish()
    assert imported_model is not None
    graph = lower(imported_model, None, problems)
    problems.finish()
    rng = np.random.default_rng(1)
    for _ in range(5):
        frame = {
            i.name: (rng.normal(0, 4, [d.dim_value for d in i.type.tensor_type.shape.dim])).astype(np.float32)
            for i in proto.graph.input
        }
        (expected,) = ort.run(proto, frame, ort.OFF)
        x = reference.pack_inputs(graph, frame)
        codes = reference.run_output(graph, reference.encode_input(graph, x))
        assert np.array_equal(reference.decode_output(graph, codes).reshape(expected.shape), expected)
    assert compare(imported_model, graph, reference.encode_input(graph, x)).ok


@pytest.mark.parametrize("equation", ["bij,bjk->bik...", "bii,bij->bj", "bij,bjk->bk", "ij,kl->ijkl", "ij"])
def test_other_sums_are_refused(equation: str, tmp_path: Path) -> None:
    case = ([1, 3, 3], [1, 3, 3], {"equation": equation})
    onnx.save(model(case, False), tmp_path / "m.onnx")
    problems = Collector()
    import_model(tmp_path / "m.onnx", problems)
    with pytest.raises(HlsgenError) as caught:
        problems.finish()
    assert {d.code for d in caught.value.diagnostics} & {"HG013", "HG023"}
