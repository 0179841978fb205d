"""Random QDQ files equal onnxruntime's default session, and cover all features that affect its fusions."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz_qdq_files import OPSETS, judged, random_file
from onnx import TensorProto

#: Seeds of files in one test.
CHUNK = 8


def equal_files(first: int) -> int:
    """The number of equal files among CHUNK, of which none differs."""
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        outcome, text = judged(*random_file(seed))
        assert outcome not in ("differs", "crash"), f"seed {seed}: {text}"
        outcomes[outcome] += 1
    return outcomes["equal"]


@pytest.mark.sweep
def test_random_files() -> None:
    assert equal_files(8) >= CHUNK * 0.7


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1800, CHUNK))
def test_many_random_files(first: int) -> None:
    equal_files(first)


def test_what_files_have() -> None:
    """Both signs, all opsets, codes at both ends, and DequantizeLinear with several users or one for each user."""
    features: Counter[str] = Counter()
    for seed in range(200):
        model, _ = random_file(seed)
        graph = model.graph
        makers = {node.output[0]: node for node in graph.node}
        users = Counter(name for node in graph.node for name in node.input)
        features[f"opset {model.opset_import[0].version}"] += 1
        features["codes in"] += graph.input[0].type.tensor_type.elem_type != TensorProto.FLOAT
        features["codes out"] += any(o.type.tensor_type.elem_type != TensorProto.FLOAT for o in graph.output)
        features["several outputs"] += len(graph.output) > 1
        for constant in graph.initializer:
            features[f"constant {TensorProto.DataType.Name(constant.data_type)}"] += 1
        dequantized = [node for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] in makers]
        features["shared"] += any(users[node.output[0]] > 1 for node in dequantized)
        features["pair for each user"] += max(Counter(node.input[0] for node in dequantized).values(), default=0) > 1
        for node in graph.node:
            features[node.op_type] += 1
            if node.op_type == "QuantizeLinear" and node.input[0] in makers:
                features["pair after pair"] += makers[node.input[0]].op_type == "DequantizeLinear"
    expected_features = {f"opset {version}" for version in OPSETS}
    expected_features |= {"codes in", "codes out", "several outputs", "shared", "pair for each user", "pair after pair"}
    expected_features |= {"constant INT8", "constant UINT8", "constant INT32", "constant FLOAT"}
    expected_features |= {
        "Add",
        "Mul",
        "MatMul",
        "Gemm",
        "Conv",
        "Relu",
        "Softmax",
        "GlobalAveragePool",
        "MaxPool",
        "Transpose",
    }
    assert {name for name in expected_features if features[name] < 5} == set()
