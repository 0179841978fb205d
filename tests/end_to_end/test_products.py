"""Products of two computed tensors: against onnxruntime, certified, and in simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import ort
import pytest
from builds import assert_verified
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator
from paths import shared_model
from product_models import model, some

import hlsgen
from hlsgen.cycle_model.timing_models import busy
from hlsgen.dataflow.workload import divisors
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.host_steps import run_step
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Graph
from hlsgen.ir.evaluate import decode

rng = np.random.default_rng(8)


def layers_of(graph: Graph, x: np.ndarray) -> np.ndarray:
    """Results of the graph's layers and the host's tail."""
    values = [reference.encode_input(graph, x)]
    for layer in graph.layers:
        values.append(reference.run_layer(layer, [values[i] for i in layer.inputs]))
    y = decode(graph.output.encoding, values[-1])
    for step in graph.tail:
        y = run_step(step, y)
    return y


@pytest.mark.cases(6)
@pytest.mark.parametrize("seed", range(100))
def test_integers(tmp_path: Path, seed: int) -> None:
    """The Model and the Graph are bit-identical to onnxruntime. HLSGEN_CHECK checks both forms."""
    proto = model(*some(np.random.default_rng(seed), 64 if seed % 6 == 0 else 16))
    onnx.save(proto, tmp_path / "m.onnx")
    x = rng.normal(0, 3, (8, proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value)).astype(np.float32)
    expected = np.stack([ort.run(proto, {"x": frame[None]})[0] for frame in x])
    build = hlsgen.check(tmp_path / "m.onnx")
    assert np.array_equal(np.asarray(interpret(build.model, x[:, None])[-1].value), expected)
    assert np.array_equal(layers_of(build.graph, x[:, None]), expected)


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(30))
def test_hardware(tmp_path: Path, seed: int) -> None:
    """At a random folding: certified, equal in simulation, with stalls, in the cycles that were predicted."""
    rng = np.random.default_rng(seed)
    proto = model(*some(rng, 8))
    onnx.save(proto, tmp_path / "m.onnx")
    layer = next(x for x in hlsgen.check(tmp_path / "m.onnx").graph.layers if type(x).__name__ == "MatrixProduct")
    pe, simd = (int(rng.choice(divisors(n))) for n in (layer.result.shape[-1], layer.sources[0].shape[-1]))
    options = hlsgen.Options(folding={layer.name: {"pe": pe, "simd": simd}})
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", options)
    assert build.timing.interval == max(busy(node) for node in build.network.nodes)  # nothing waits for the product
    assert hlsgen.certify(tmp_path / "out").ok
    assert_verified(tmp_path / "out", ("icarus", "verilator")[seed % 2], 12)


@pytest.mark.sweep
def test_eegformer(tmp_path: Path) -> None:
    """Attention of 8 heads without Softmax, as Deeploy has it: golden integers, and a proof of the files."""
    path = shared_model("attention/deeploy_eegformer")
    golden = np.load(path.with_suffix(".npz"))
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="ufixed:8,8", target_cycles=528))
    outputs = hlsgen.run(tmp_path / "out", golden["x_input_0"].astype(np.float32))
    assert np.array_equal(outputs, golden["golden_output_0"])
    assert build.timing.interval == 528  # of the busiest unit: nothing waits for the products
    assert hlsgen.certify(tmp_path / "out").ok


def _form(body: str, result: str) -> onnx.ModelProto:
    """A model with the int8 codes a (1, 3, 4, 6), in steps of 1/8, and the nodes of `body`; its output is `real`."""
    return parse_model(f"""
      <ir_version: 9, opset_import: ["" : 19]>
      form (float[1, 3, 4, 6] x) => (float[{result}] y)
      <float step = {{0.125}}, float wide = {{2.0}}, int8 zero = {{0}}, int8 odd = {{5}}, int64[2] last = {{12, 6}},
       int64[3] flat = {{1, 12, 6}}, float[12] row = {{0,1,2,3,4,5,6,7,8,9,10,11}}, int64[1] from = {{0}},
       int64[1] to = {{1}}, int64[1] heads = {{1}}>
      {{
        q = QuantizeLinear(x, step, odd)
        a = DequantizeLinear(q, step, odd)
        {body}
        r = QuantizeLinear(real, wide, zero)
        y = DequantizeLinear(r, wide, zero)
      }}""")


FORMS = {
    "with itself": ("t = Transpose <perm = [0, 1, 3, 2]> (a)  real = MatMul(a, t)", "1, 3, 4, 4"),
    "one matrix for all heads": (
        "s = Slice(a, from, to, heads)  t = Transpose <perm = [0, 1, 3, 2]> (s)  real = MatMul(a, t)",
        "1, 3, 4, 4",
    ),
    "a matrix without heads": (
        "h = Reshape(a, flat)  t = Transpose <perm = [0, 2, 1]> (h)  real = MatMul(h, t)",
        "1, 12, 12",
    ),
    "Gemm": ("m = Reshape(a, last)  real = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (m, m, row)", "12, 12"),
    "Gemm of the transposed": ("m = Reshape(a, last)  real = Gemm <transA = 1> (m, m)", "6, 6"),
    "of sums": (
        "t = Transpose <perm = [0, 1, 3, 2]> (a)  s = MatMul(a, t)  real = MatMul(s, a)",
        "1, 3, 4, 6",
    ),
    "of a product": (
        "t = Transpose <perm = [0, 1, 3, 2]> (a)  s = MatMul(a, t)  p = QuantizeLinear(s, wide, zero)"
        "  d = DequantizeLinear(p, wide, zero)  real = MatMul(d, a)",
        "1, 3, 4, 6",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(tmp_path: Path, name: str) -> None:
    """Steps are powers of two, so that float32 rounds nothing, in any order of sums."""
    proto = _form(*FORMS[name])
    onnx.save(proto, tmp_path / "m.onnx")
    x = rng.normal(0, 4, (20, 1, 3, 4, 6)).astype(np.float32)
    x[0], x[1] = 16, -17
    expected = np.concatenate([ReferenceEvaluator(proto).run(None, {"x": frame})[0][None] for frame in x])
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    assert np.array_equal(np.asarray(interpret(build.model, x)[-1].value), expected)
    assert np.array_equal(layers_of(build.graph, x), expected)
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.sim
def test_a_tensor_that_waits_for_itself(tmp_path: Path) -> None:
    """One branch of a fork has to wait until the other one is stored, twice."""
    onnx.save(_form(*FORMS["of a product"]), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(target_cycles=40))
    assert_verified(tmp_path / "out", "icarus", 8)


@pytest.mark.parametrize(
    "body, result, code",
    [
        ("t = Transpose <perm = [1, 0, 3, 2]> (a)  real = MatMul(a, t)", "3, 3, 4, 4", "HG023"),
        ("t = Transpose <perm = [0, 1, 3, 2]> (a)  e = Exp(t)  real = MatMul(a, e)", "1, 3, 4, 4", "HG030"),
    ],
)
def test_refused(tmp_path: Path, body: str, result: str, code: str) -> None:
    onnx.save(_form(body, result), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "m.onnx")
    assert [d.code for d in error.value.diagnostics] == [code]
