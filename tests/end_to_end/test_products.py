"""Products of two computed tensors: against onnxruntime, certified, and in simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import ort
import pytest
from builds import assert_verified
from paths import shared_model
from product_models import model, some

import hlsgen
from hlsgen.cycle_model.units import busy
from hlsgen.dataflow.workload import divisors
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Graph
from hlsgen.ir.evaluate import decode

rng = np.random.default_rng(8)


def layers_of(graph: Graph, x: np.ndarray) -> np.ndarray:
    """What the layers of the graph give, with the host's tail."""
    values = [reference.encode_input(graph, x)]
    for layer in graph.layers:
        values.append(reference.run_layer(layer, [values[i] for i in layer.inputs]))
    y = decode(graph.output.encoding, values[-1])
    for step in graph.tail:
        y = reference.run_step(step, y)
    return y


@pytest.mark.cases(12)
@pytest.mark.parametrize("seed", range(100))
def test_integers(tmp_path: Path, seed: int) -> None:
    """The Model and the Graph give what onnxruntime gives, to the last bit; HLSGEN_CHECK checks both forms."""
    made = model(*some(np.random.default_rng(seed), 64 if seed % 6 == 0 else 16))
    onnx.save(made, tmp_path / "m.onnx")
    x = rng.normal(0, 3, (8, made.graph.input[0].type.tensor_type.shape.dim[1].dim_value)).astype(np.float32)
    wanted = np.stack([ort.run(made, {"x": frame[None]})[0] for frame in x])
    build = hlsgen.check(tmp_path / "m.onnx")
    assert np.array_equal(np.asarray(interpret(build.model, x[:, None])[-1].value), wanted)
    assert np.array_equal(layers_of(build.graph, x[:, None]), wanted)


@pytest.mark.sim
@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", range(30))
def test_hardware(tmp_path: Path, seed: int) -> None:
    """At a random folding: certified, equal in simulation, with stalls, in the cycles that were predicted."""
    own = np.random.default_rng(seed)
    made = model(*some(own, 8))
    onnx.save(made, tmp_path / "m.onnx")
    layer = next(x for x in hlsgen.check(tmp_path / "m.onnx").graph.layers if type(x).__name__ == "MatrixProduct")
    pe, simd = (int(own.choice(divisors(n))) for n in (layer.result.shape[-1], layer.sources[0].shape[-1]))
    options = hlsgen.Options(folding={layer.name: {"pe": pe, "simd": simd}})
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", options)
    assert build.timing.interval == max(busy(node) for node in build.network.nodes)  # nothing waits for the product
    assert hlsgen.certify(tmp_path / "out").ok
    assert_verified(tmp_path / "out", ("icarus", "verilator")[seed % 2], 12)


def test_eegformer(tmp_path: Path) -> None:
    """Attention of 8 heads without Softmax, as Deeploy has it: golden integers, and a proof of the files."""
    path = shared_model("attention/deeploy_eegformer")
    golden = np.load(path.with_suffix(".npz"))
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="ufixed:8,8"))
    found = hlsgen.run(tmp_path / "out", golden["x_input_0"].astype(np.float32))
    assert np.array_equal(found, golden["golden_output_0"])
    assert build.timing.interval == 528  # of the busiest unit: nothing waits for the products
    assert hlsgen.certify(tmp_path / "out").ok
