"""Functions that a model defines itself are inlined with their attributes, within bounds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import integer_models
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper, parser

import hlsgen

Array = NDArray[Any]
HEAD = '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>\n'
QDQ = (
    '<domain: "my", opset_import: ["" : 17]> qdq (x, s, z) => (y) '
    "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"
)
#: A function that calls another one, with an attribute that has a default, and one without.
NESTED = f"""{HEAD}g (float[1,6] x) => (float[1,6] y) <float s = {{0.05}}, uint8 z = {{128}}>
    {{ a = my.twice<low = -1.0>(x, s, z) y = my.qdq(a, s, z) }}
    {QDQ}
    <domain: "my", opset_import: ["" : 17, "my" : 1]> twice <low: float = 0.0, alpha: float = 0.5> (x, s, z) => (y)
    {{ a = my.qdq(x, s, z) b = LeakyRelu<alpha: float = @alpha>(a)
       c = Constant<value_float: float = @low>() d = Max(b, c)
       y = my.qdq(d, s, z) }}"""
LAYER = f"""{HEAD}g (float[1,6] x) => (float[1,4] y) <float s = {{0.05}}, uint8 z = {{128}}, float t = {{0.01}}>
    {{ y = my.linear(x, s, z, w, t) }}
    {QDQ}
    <domain: "my", opset_import: ["" : 17, "my" : 1]> linear (x, s, z, w, t) => (y)
    {{ a = my.qdq(x, s, z) b = DequantizeLinear(w, t) c = MatMul(a, b) y = my.qdq(c, s, z) }}"""


def parsed(text: str, **constants: Array) -> onnx.ModelProto:
    model = parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return model


def samples() -> Array:
    return np.random.default_rng(0).normal(0, 3, (64, 6)).astype(np.float32)


def test_nested_functions_with_attributes(tmp_path: Path) -> None:
    """onnx's inliner ignores the default of `alpha`."""
    model, x = parsed(NESTED), samples()
    assert (integer_models.evaluated(model, x, tmp_path) == integer_models.frames(model, x)).all()


def test_layer_within_a_function(tmp_path: Path) -> None:
    """The certificate's independent reader of the file also finds the layer's weights."""
    weights = np.random.default_rng(1).integers(-99, 99, (6, 4)).astype(np.int8)
    model, x = parsed(LAYER, w=weights), samples()
    assert (integer_models.evaluated(model, x, tmp_path) == integer_models.frames(model, x)).all()
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "build")
    assert hlsgen.certify(tmp_path / "build").ok


def test_function_of_an_older_opset(tmp_path: Path) -> None:
    """Its operators mean the same in the model's opset."""
    older = parsed(NESTED.replace('"my", opset_import: ["" : 17]> qdq', '"my", opset_import: ["" : 13]> qdq'))
    x = samples()
    assert (integer_models.evaluated(older, x, tmp_path) == integer_models.frames(parsed(NESTED), x)).all()


def test_function_with_other_operator_versions_is_refused(tmp_path: Path) -> None:
    older = parsed(NESTED.replace('"my", opset_import: ["" : 17]> qdq', '"my", opset_import: ["" : 10]> qdq'))
    with pytest.raises(hlsgen.HlsgenError, match=r"qdq: it uses QuantizeLinear of opset 10"):
        integer_models.compiled(older, tmp_path)


def test_functions_that_double_are_not_expanded(tmp_path: Path) -> None:
    """60 functions, each of which calls the next one twice."""
    calls = "".join(
        f'<domain: "my", opset_import: ["" : 17, "my" : 1]> f{i} (x) => (y) '
        f"{{ a = my.f{i + 1}(x) y = my.f{i + 1}(a) }}\n"
        for i in range(60)
    )
    text = f"{HEAD}g (float[1,6] x) => (float[1,6] y) {{ y = my.f0(x) }}\n{calls}"
    model = parsed(f'{text}<domain: "my", opset_import: ["" : 17]> f60 (x) => (y) {{ y = Relu(x) }}')
    start = time.monotonic()
    integer_models.refused(model, tmp_path, "HG004")
    assert time.monotonic() - start < 5


def test_function_that_calls_itself(tmp_path: Path) -> None:
    recursion = "".join(
        f'<domain: "my", opset_import: ["" : 17, "my" : 1]> f{i} (x) => (y) {{ y = my.f{1 - i}(x) }}\n' for i in (0, 1)
    )
    integer_models.refused(
        parsed(f"{HEAD}g (float[1,6] x) => (float[1,6] y) {{ y = my.f0(x) }}\n{recursion}"), tmp_path, "HG015"
    )
