"""Transposes that cancel each other, with quantizers between, held against onnxruntime's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import ort
import pytest
from onnx import TensorProto, helper
from qdq_graphs import QdqGraph

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter.model import interpret

SHAPE = (1, 3, 2, 4)
ORDERS = ([0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3])


def chain(seed: int) -> onnx.ModelProto:
    """Pairs of quantizers and elementwise operators, some between two Transposes."""
    rng = np.random.default_rng(seed)
    g = QdqGraph(rng)
    kind = str(rng.choice(["int8", "uint8"]))

    def pair(name: str) -> str:
        zero = int(rng.integers(-20, 20)) + (128 if kind == "uint8" else 0)
        return g.pair(name, (float(rng.choice([0.02, 0.031, 0.047])), zero, kind))

    def elementwise(name: str) -> str:
        match int(rng.integers(0, 6)):
            case 0:
                return g.node(str(rng.choice(["Relu", "Neg", "Abs", "LeakyRelu", "HardSigmoid", "Ceil"])), name)
            case 4:
                return g.node(str(rng.choice(["Sub", "Max", "Min"])), name, g.node("Neg", name))
            case 5:
                return g.node(str(rng.choice(["Sub", "Div", "Max", "Min"])), name, g.const(0.7))
            case 1:
                return g.node("Mul", name, g.const(0.6))
            case 2:
                return g.node("Add", name, name)
            case _:
                return g.node("Mul", name, g.node("Relu", name))

    order = ORDERS[int(rng.integers(0, 3))]
    back = np.argsort(order).tolist() if rng.random() < 0.8 else order
    name = g.node("Transpose", pair("x"), perm=order)
    for _ in range(int(rng.integers(1, 3))):
        name = pair(elementwise(name))
    name = g.node("Transpose", name, perm=back)
    if rng.random() < 0.3:
        name = elementwise(name)
    name = pair(name)
    shape = [SHAPE[axis] for axis in np.array(order)[back]]
    graph = helper.make_graph(
        g.nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
        g.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", ["onnxruntime", "onnxruntime-arm"])
@pytest.mark.parametrize("block", range(6))
def test_results_of_onnxruntime(block: int, runtime: str, tmp_path: Path) -> None:
    for seed in range(block * 25, block * 25 + 25):
        model = chain(seed)
        x = np.random.default_rng(seed).normal(0, 2, (8, *SHAPE[1:])).astype(np.float32)
        expected = np.concatenate([ort.run(model, {"x": f[None]}, arm=runtime == "onnxruntime-arm")[0] for f in x])
        declared = onnx.shape_inference.infer_shapes(model) if seed % 2 else model
        onnx.save(declared, tmp_path / "chain.onnx")
        problems = Collector()
        imported = import_model(tmp_path / "chain.onnx", problems, runtime=runtime)
        problems.finish()
        assert imported is not None
        result = np.asarray(interpret(imported, x.reshape(len(x), *imported.input_shape))[-1].value).reshape(
            expected.shape
        )
        np.testing.assert_array_equal(result, expected, err_msg=str(seed))
