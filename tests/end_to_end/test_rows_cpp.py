"""Softmax, normalizations and rows of integers in C++: against executors and kernels, in both dialects, certified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from integer_models import chain
from onnx import helper, numpy_helper
from row_models import CASES, expected
from score_models import attention

import hlsgen

pytestmark = pytest.mark.sim


def built(model: onnx.ModelProto, folder: Path, **options: Any) -> Path:
    onnx.save(model, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "out", hlsgen.Options(target="hls", **options))
    certified = hlsgen.certify(folder / "out")
    assert certified.ok, certified.problems
    return folder / "out"


def functions(out: Path) -> set[str]:
    """Headers of the functions that the core calls."""
    return {path.stem for path in (out / "hls" / "hg").iterdir()}


def successive(cases: list[str], rows: int) -> onnx.ModelProto:
    """Operators of Deeploy on rows of 12."""
    nodes, constants, last = [], [], "x"
    for case in cases:
        op, attributes, values, _ = CASES[case]
        names = [f"{case} {n}" for n in range(len(values))]
        constants += [numpy_helper.from_array(v.astype(np.float32), n) for v, n in zip(values, names, strict=True)]
        nodes.append(helper.make_node(op, [last, *names], [f"{case} y"], name=case, domain="Deeploy", **attributes))
        last = f"{case} y"
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, rows, 12]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "rows", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("Deeploy", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_rows_of_integers(tmp_path: Path) -> None:
    cases = ["rms", "layer", "softmax"]
    out = built(successive(cases, 3), tmp_path, input="int8", lanes=3)
    x = np.random.default_rng(5).integers(-128, 128, (20, 3, 12))
    x[3], x[4, 0], x[5] = 0, 127, x[5] // 30
    results = x.reshape(-1, 12)
    for case in cases:
        results = expected(case, results)
    assert np.array_equal(hlsgen.run(out, x, "cpp").reshape(results.shape), results)
    assert len(np.unique(results)) > 5


def test_raw_scores(tmp_path: Path) -> None:
    out = built(attention((1, 3, 2), 0.15), tmp_path)
    assert "hg::softmax_products" in next((out / "hls").glob("*.cpp")).read_text()
    verdict = hlsgen.verify(out, ["ap_types"], 12)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)


def test_softmax_and_normalization(tmp_path: Path) -> None:
    """onnxruntime's Softmax of one 8-bit type, LayerNormalization, Softmax by exact sums: differences are explained.

    The last Softmax has int8 codes at the graph's output and uint8 codes at its input: not one operator of onnxruntime.
    """
    low, zero = np.array(0, np.uint8), np.int8(0)
    gamma, beta = (np.random.default_rng(n).normal(1 - n, 0.3, 6).astype(np.float32) for n in (0, 1))
    ops: list[Any] = [("DequantizeLinear", np.float32(0.1), low), ("LeakyRelu",)]
    for op, scale, type_ in (
        (None, 0.02, low),
        (("Softmax", {"axis": -1}), 1 / 250, low),
        (("LayerNormalization", gamma, beta, {"axis": -1}), 0.03, zero),
        (("Softmax", {"axis": -1}), 1 / 255, zero),
    ):
        ops += [op] if op else []
        ops += [("QuantizeLinear", np.float32(scale), type_), ("DequantizeLinear", np.float32(scale), type_)]
    out = built(chain(*ops[:-1], source="uint8", shape=[3, 6], opset=17), tmp_path)
    text = next((out / "hls").glob("*.cpp")).read_text()
    assert "hg::exact_sum" in text
    assert "hg::sum_in_order" in text
    assert {"softmax", "norm"} <= functions(out)
    verdict = hlsgen.verify(out, ["ac_types"], 20)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
