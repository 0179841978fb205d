"""The models of `integer_models.py` in onnxruntime, onnx.reference and by the formulas of `ort.py`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import FIGURES, codes, multiplier_and_shift, prequantized, quantize_mlp, same
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

Array = Any


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("figures", [*FIGURES, ("F1", "F2", "F4"), ("F3", "F3")])
def test_prequantized_models_run(figures: str | Sequence[str], dtype: str) -> None:
    """In onnxruntime and onnx.reference alike, but for the float16 sigmoid."""
    sizes = [16, 12, 8, 8][: 2 if isinstance(figures, str) else len(figures) + 1]
    for two_muls, relu_first in product([False, True], repeat=2):
        made = prequantized(figures, sizes, dtype=dtype, two_muls=two_muls, relu_first=relu_first, rows="N", opset=19)
        x = codes(made, 200)
        y = ort.run(made, {"x": x})[0]
        assert len(np.unique(y)) > 20
        assert figures == "F6" or same(y, ReferenceEvaluator(made).run(None, {"x": x})[0])
    multiplier, shift = multiplier_and_shift(1 / 3)
    assert (multiplier, shift) == (11184811, 2.0**-25)


def replay(made: onnx.ModelProto, x: Array) -> Array:
    """A model of QOperator form by the formulas."""
    values = {i.name: numpy_helper.to_array(i) for i in made.graph.initializer} | {"x": x}
    types = {k: v.dtype for k, v in values.items()}
    for n in made.graph.node:
        v = [values[i].astype(np.int64) if values[i].dtype.kind in "iu" else values[i] for i in n.input]
        kind = np.iinfo(types[n.input[-1]])
        bounds = kind.min, kind.max
        match n.op_type:
            case "QuantizeLinear":
                y = ort.quantize_linear(v[0], v[1], v[2], *bounds)
            case "DequantizeLinear":
                y = ort.dequantize_linear(v[0], v[1], v[2])
            case "QLinearMatMul":
                y = ort.requantize(ort.matmul_integer(v[0], v[3], v[2], v[5]), v[1], v[4], v[6], v[7], *bounds)
            case "QGemm":
                weight = v[3].T if any(a.name == "transB" and a.i for a in n.attribute) else v[3]
                acc = ort.matmul_integer(v[0], weight, v[2], v[5]) + v[6]
                y = ort.requantize(acc, v[1], v[4], v[7], v[8], *bounds)
            case "QLinearAdd":
                y = ort.qlinear_add(*v, *bounds)
        values[n.output[0]], types[n.output[0]] = y, types[n.input[-1]]
    return values[made.graph.output[0].name]


@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("gemm", [False, True])
@pytest.mark.parametrize(("activation", "weight"), [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
def test_quantized_mlps(tmp_path: Path, activation: str, weight: str, gemm: bool, per_channel: bool, form: str) -> None:
    """The formulas give onnxruntime's result; a QDQ model runs as the same integer operators (those of int8 on ARM)."""
    path, x = quantize_mlp(tmp_path, form, activation, weight, per_channel, gemm=gemm)
    y = ort.run(path, {"x": x}, arm=True)[0]
    made = ort.optimized_graph(path, arm=True) if form == "QDQ" else onnx.load(path)
    layer = {"ms.QGemm"} if gemm else {"QLinearMatMul", "ms.QLinearAdd"}
    assert set(ort.operators(made)) == {"QuantizeLinear", "DequantizeLinear"} | layer
    assert len(np.unique(y)) > 50
    assert same(replay(made, x), y)
