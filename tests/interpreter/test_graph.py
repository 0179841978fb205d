"""The integer graph against qonnx's executor, on whole models and on random graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from oracles import Qonnx
from paths import DATA, INPUT_TYPES, ROOT, shared_model
from random_graphs import datapath, perceptron

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Accumulator
from hlsgen.ir.evaluate import key_to_float
from hlsgen.testbench.stimuli import stimuli

Array = NDArray[Any]
EXACT = [
    "asym_channel_ts",
    "asym_tensor",
    "bin_tern",
    "bn_first_bn_last",
    "flatten_dropout_argmax",
    "floor_ceil",
    "hardtanh_clip",
    "hardtanh_po2_outq",
    "mixed_relu_then_identity",
]
ROUNDED = [
    "dyn_softmax",
    "dynaxes_sigmoid_int32bias_ts",
    "int16bias_dynamo",
    "no_input_quant",
    "pc_float_int16bias_ts",
    "ternary_acts_ts",
]


def inputs(build: hlsgen.Build, count: int) -> Array:
    """Random inputs of a range that exercises the first quantizer."""
    rng = np.random.default_rng(5)
    shape = build.graph.model.input_shape
    if build.graph.encode is None:
        return rng.integers(-9, 10, (count, *shape[1:])).astype(np.float32)
    return (
        rng.standard_normal((count, *shape[1:])) * rng.choice([0.2, 1, 4], (count, *(1 for _ in shape[1:])))
    ).astype(np.float32)


@pytest.mark.sweep
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", EXACT)
def test_brevitas_export_equals_qonnx(name: str) -> None:
    path = DATA / f"{name}.onnx"
    build = hlsgen.check(path)
    x = inputs(build, 100)
    expected = Qonnx(onnx.load(path))(x)
    assert np.array_equal(reference.evaluate(build.graph, x).reshape(len(x), -1), expected)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ROUNDED)
def test_only_the_last_rounding_differs(name: str) -> None:
    """Float scales: executors round the final sums differently, by units of the last place."""
    path = DATA / f"{name}.onnx"
    build = hlsgen.check(path, hlsgen.Options(input=INPUT_TYPES.get(name)))
    x = inputs(build, 100)
    expected = Qonnx(onnx.load(path))(x)
    result = reference.evaluate(build.graph, x).reshape(len(x), -1)
    assert np.abs(result - expected).max() <= 4e-6 * np.abs(expected).max()
    assert isinstance(build.graph.output.encoding, Accumulator)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.sweep
@pytest.mark.parametrize(
    "model,scale",
    [
        ("public/zoo_tfc_1w1a", 1),
        ("public/zoo_tfc_1w2a", 1),
        ("public/zoo_tfc_2w2a", 1),
        ("brevitas/jsc_mlp_w6a6_po2", 0.5),
    ],
)
def test_real_models_equal_qonnx(model: str, scale: float) -> None:
    path = shared_model(model)
    build = hlsgen.check(path)
    rng = np.random.default_rng(1)
    shape = build.graph.model.input_shape[1:]
    x = (rng.random((300, *shape)) if "tfc" in model else rng.normal(0, scale, (300, *shape))).astype(np.float32)
    assert np.array_equal(reference.evaluate(build.graph, x), Qonnx(onnx.load(path))(x))


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("model,spread", [("public/mlperf_kws_w3a3", 15.0), ("brevitas/jsc_mlp_w4a4", 0.5)])
def test_codes_of_models_with_float_scales(model: str, spread: float) -> None:
    """qonnx's float outputs come from exact accumulators in these samples."""
    path = shared_model(model)
    build = hlsgen.check(path)
    x = np.random.default_rng(2).normal(0, spread, (200, *build.graph.model.input_shape[1:])).astype(np.float32)
    exact, executed = reference.evaluate(build.graph, x), Qonnx(onnx.load(path))(x)
    step = float(np.asarray(build.graph.output.encoding.scale).min())  # type: ignore[union-attr]
    assert (np.abs(exact - executed) > step / 2).sum() == 0


@pytest.mark.parametrize("input_,x", [("BIPOLAR", [[1, -1, 1], [-1, -1, 1]]), ("fixed:3,3", [[3, -4, 0], [1, 1, 1]])])
def test_chisel_binary_network(input_: str, x: list[list[int]]) -> None:
    path = shared_model("public/chisel_bnn_simple")
    build = hlsgen.check(path, hlsgen.Options(input=input_))
    data = np.array(x, np.float32)
    assert np.array_equal(reference.evaluate(build.graph, data), Qonnx(onnx.load(path))(data))


@pytest.mark.sweep
def test_chisel_integer_network() -> None:
    path = shared_model("public/chisel_sint_simple_noscale")
    data = np.random.default_rng(0).uniform(-3, 20, (200, 3)).astype(np.float32)
    assert np.array_equal(reference.evaluate(hlsgen.check(path).graph, data), Qonnx(onnx.load(path))(data))


@pytest.mark.cases(10)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("max_bits", [8, 32])
def test_random_datapaths_equal_qonnx(seed: int, max_bits: int, tmp_path: Path) -> None:
    model = datapath(seed, max_bits)
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.check(tmp_path / "model.onnx")
    oracle = Qonnx(model)
    samples = key_to_float(stimuli(build.network, 40, seed))[:80]
    samples = np.where(np.isfinite(samples), samples, np.float32(1))
    if any(node.op_type == "Trunc" for node in model.graph.node):
        # Version 1 does not clamp; codes saturate at 32 bits.
        samples = np.clip(samples, -1000, 1000)
    for x in samples:
        assert np.array_equal(reference.evaluate(build.graph, x), oracle.one(x)), x


@pytest.mark.cases(5)
@pytest.mark.parametrize("seed", range(60))
def test_random_perceptrons_equal_qonnx(seed: int, tmp_path: Path) -> None:
    model = perceptron(seed)
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.check(tmp_path / "model.onnx")
    rng = np.random.default_rng(seed)
    x = rng.uniform(-8, 8, (30, *build.graph.model.input_shape[1:])).astype(np.float32)
    assert np.array_equal(reference.evaluate(build.graph, x), Qonnx(model)(x))


@pytest.mark.cases(10)
@pytest.mark.parametrize("seed", range(40))
def test_realizations_equal_the_float_chain(seed: int, tmp_path: Path) -> None:
    """Thresholds and shifts of random perceptrons with float scales, at random reachable codes."""
    from hlsgen.ir import Linear, Map
    from hlsgen.rescale import FloatUnits, specialize
    from hlsgen.rescale.realize.neuron_table import NeuronTable

    onnx.save(perceptron(seed, powers=False), tmp_path / "model.onnx")
    network = hlsgen.check(tmp_path / "model.onnx").network
    rng = np.random.default_rng(seed)
    for i, layer in enumerate(network.graph.layers):
        if isinstance(layer, Map):
            producer = network.graph.layers[i - 1]
            ends = (producer.lo, producer.hi) if isinstance(producer, Linear) else ()
            f = specialize(layer, network.orders[i], *ends)
            choice = network.choices[layer.name]
            realization, function = choice.realization, choice.function
            if isinstance(realization, NeuronTable):  # it computes the matrix, too: tests/certify/test_neurons.py
                continue
            assert not isinstance(realization, FloatUnits)
            assert function is not None
            # Channels with the same constants may have one set of the hardware, for the codes that can occur.
            sets = function.index[[int(np.argmax(f.index == s)) for s in range(f.sets)]]
            lo, hi = np.maximum(f.lo, function.lo[sets]), np.minimum(f.hi, function.hi[sets])
            codes = rng.integers(lo, hi + 1, (5000, f.sets))
            expected = f.evaluate(codes)
            for s, function_set in enumerate(sets):
                x = np.tile(function.lo, (len(codes), 1))
                x[:, function_set] = codes[:, s]
                assert np.array_equal(realization.apply(x)[:, function_set], expected[:, s])


@pytest.mark.parametrize("at_a_time", [1, 100])
def test_output_alone_and_in_parts(at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last codes of all layers, however many frames and places are computed at a time."""
    graph = hlsgen.check(ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx").graph
    type_ = graph.input.type
    codes = np.random.default_rng(3).integers(type_.lo, type_.hi + 1, (5, *graph.input.shape))
    layer_codes = reference.run_layers(graph, codes)
    monkeypatch.setattr(reference, "_CHUNK", at_a_time)
    monkeypatch.setattr(reference, "_FRAMES", at_a_time * 20)
    assert np.array_equal(reference.run_output(graph, codes), layer_codes[-1])
    for codes_in_parts, expected in zip(reference.run_layers(graph, codes), layer_codes, strict=True):
        assert np.array_equal(codes_in_parts, expected)
