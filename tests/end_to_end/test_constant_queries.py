"""Decoders with constant queries: nodes of constants only, and constants times matrices of the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.certify import second_reading
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import MatMul

SCALES = (
    "float step = {0.05}, float share = {0.0039}, float other = {0.031}, int8 zero = {0}, uint8 low = {0}, "
    "float root = {0.5}"
)
#: Attention among the queries, with a normalization: of constants alone.
AMONG = """
    eq = QuantizeLinear(queries, step, zero)  e = DequantizeLinear(eq, step, zero)
    et = Transpose <perm = [0, 1, 3, 2]> (e)  ee = MatMul(e, et)  es = Mul(ee, root)  ep = Softmax <axis = -1> (es)
    epq = QuantizeLinear(ep, share, low)  epd = DequantizeLinear(epq, share, low)
    ev = MatMul(epd, e)  sum = Add(e, ev)  n = LayerNormalization <axis = -1> (sum, gamma, bias)
    nq = QuantizeLinear(n, other, zero)  q = DequantizeLinear(nq, other, zero)
"""
#: The queries as they are.
ALONE = "nq = QuantizeLinear(queries, other, zero)  q = DequantizeLinear(nq, other, zero)"


def decoder(
    heads: int, queries: int, tokens: int, size: int, shared: bool = False, first: str = AMONG
) -> onnx.ModelProto:
    """`shared`: one matrix of queries for all heads. `first`: the nodes that make the queries q."""
    proto = parse_model(f"""
      <ir_version: 9, opset_import: ["" : 19]>
      decoder (float[1, {heads}, {tokens}, {size}] x) => (float[1, {heads}, {queries}, {size}] y)
      <{SCALES}>
      {{
        {first}
        k = QuantizeLinear(x, step, zero)  a = DequantizeLinear(k, step, zero)
        t = Transpose <perm = [0, 1, 3, 2]> (a)  s = MatMul(q, t)
        sq = QuantizeLinear(s, other, zero)  sd = DequantizeLinear(sq, other, zero)  sm = Mul(sd, root)
        z = Softmax <axis = -1> (sm)  zq = QuantizeLinear(z, share, low)  p = DequantizeLinear(zq, share, low)
        w = MatMul(p, a)  y = Add(q, w)
      }}""")
    rng = np.random.default_rng(3)
    constants = {
        "queries": rng.normal(0, 1, (1 if shared else heads, queries, size)).astype(np.float32)[None],
        "gamma": rng.normal(1, 0.2, size).astype(np.float32),
        "bias": rng.normal(0, 0.3, size).astype(np.float32),
    }
    proto.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants.items())
    for number, node in enumerate(proto.graph.node):
        node.name = f"{node.op_type.lower()}{number}"
    del proto.graph.value_info[:]
    return proto


@pytest.mark.sweep
@pytest.mark.parametrize("form", [(1, 3, 5, 4), (2, 3, 4, 3), (3, 2, 2, 4, True)])
def test_against_executors(form: tuple[Any, ...], tmp_path: Path) -> None:
    """The scores equal the file's, except for explained roundings; the weights equal the file's."""
    onnx.save(decoder(*form), tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "core")
    verdict = hlsgen.verify(tmp_path / "core", [], frames=4)
    assert verdict.ok, verdict
    assert verdict.oracle.compared
    x = np.random.default_rng(1).normal(0, 1, (3, *build.graph.model.input_shape)).astype(np.float32)
    runs = ReferenceEvaluator(decoder(*form))
    expected = np.stack([runs.run(["y"], {"x": frame})[0] for frame in x])
    outputs = np.asarray(hlsgen.run(tmp_path / "core", x[:, 0])).reshape(expected.shape)
    assert (np.abs(outputs - expected) > 1e-5).mean() < 0.05  # a code may differ where a number is next to a threshold
    certified = hlsgen.certify(tmp_path / "core")
    assert certified.ok, [str(problem) for problem in certified.problems]


@pytest.mark.parametrize("form", [(2, 2, 3, 3), (2, 3, 2, 4, True)])
def test_weights_are_read_twice(form: tuple[Any, ...], tmp_path: Path) -> None:
    """Certifying with another file names the product with other numbers."""
    onnx.save(decoder(*form, first=ALONE), tmp_path / "m.onnx")
    model = hlsgen.check(tmp_path / "m.onnx").model
    product = next(step for step in model.steps if isinstance(step.op, MatMul))
    reading = second_reading.compare(tmp_path / "m.onnx", model)
    assert not reading.problems
    assert product.name not in reading.once
    assert isinstance(product.op, MatMul)
    changed = replace(product, op=replace(product.op, weight=product.op.weight[::-1]))
    steps = tuple(changed if step is product else step for step in model.steps)
    wrong = second_reading.compare(tmp_path / "m.onnx", replace(model, steps=steps)).problems
    assert [name for name, _ in wrong] == [product.name]


def test_matrices_that_do_not_fit(tmp_path: Path) -> None:
    proto = decoder(2, 3, 4, 3)
    queries = next(t for t in proto.graph.initializer if t.name == "queries")
    queries.CopyFrom(numpy_helper.from_array(np.ones((2, 1, 3, 3), np.float32), "queries"))
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG023 matmul.*on the left"):
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "core")
