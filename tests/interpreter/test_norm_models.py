"""Networks with normalizations and attention, compared with executors of their files, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from paths import shared_model

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.ir import NormRows
from hlsgen.passes.lower import lower

#: Models, the executor whose results count, and how many normalizations each has.
MODELS = [
    ("mlp_layernorm_gelu_w4a4_qonnx", "qonnx", 1),
    ("block_rmsnorm_w4a4_qcdq", "ort_noopt", 2),
    ("block_layernorm_w8a8_qonnx", "qonnx", 2),
    ("block_ort_qdq_s8", "ort", 2),
    ("vit_ort_qdq_u8", "ort", 5),
]

#: Whose integers an executor gives.
RUNTIMES = {"qonnx": "qonnx", "ort_noopt": "onnx", "ort": "onnxruntime"}


@pytest.mark.parametrize(("name", "executor", "count"), MODELS)
def test_results_of_executors(name: str, executor: str, count: int) -> None:
    path = shared_model(f"attention/{name}")
    problems = Collector()
    model = import_model(path, problems, runtime=RUNTIMES[executor])
    assert model is not None, problems.errors
    graph = lower(model, None, problems)
    assert sum(isinstance(layer, NormRows) for layer in graph.layers) == count
    golden = np.load(path.with_suffix(".npz"))
    x = golden["x"] if "x" in golden else golden[next(iter(golden))]
    y = reference.evaluate(graph, x.reshape(-1, *model.input_shape[1:]))
    np.testing.assert_array_equal(y, golden[executor].reshape(y.shape))
