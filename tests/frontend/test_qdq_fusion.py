"""QDQ and QLinear models of onnxruntime's quantizer and of Brevitas have onnxruntime's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import (
    Graph,
    agrees,
    chain,
    codes,
    compiled,
    dequantized,
    evaluated,
    finished,
    frames,
    in_hardware,
    quantize_mlp,
    same,
)
from models import Net
from onnx import helper, numpy_helper
from paths import needs_icarus, shared_model

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Accumulator, Map, PackBytes

Array = Any
f32 = np.float32
TYPES = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")]
SIMULATORS = [pytest.param("icarus", marks=needs_icarus), "verilator"]


def any_code(rng: np.random.Generator, dtype: str, shape: Any = ()) -> Array:
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max + 1, shape)).astype(dtype)


# --------------------------------------------------------------------------- networks of onnxruntime's quantizer


@pytest.mark.cases(4)
@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("gemm", [False, True])
@pytest.mark.parametrize("activation, weight", TYPES)
def test_quantized_networks(
    form: str, activation: str, weight: str, gemm: bool, per_channel: bool, tmp_path: Path
) -> None:
    for seed, layers in enumerate([(16, 24, 12, 5), (40, 10)]):
        path, x = quantize_mlp(tmp_path, form, activation, weight, per_channel, seed, layers, gemm=gemm, samples=300)
        assert len(np.unique(agrees(path, x, tmp_path))) > 50


@pytest.mark.cases(3)
@pytest.mark.sweep
@pytest.mark.parametrize(
    "option",
    [
        "ActivationSymmetric",
        "QDQKeepRemovableActivations",
        "AddQDQPairToWeight",
        "UseQDQContribOps",
        "WeightSymmetric",
    ],
)
@pytest.mark.parametrize("gemm", [False, True])
def test_options_of_the_quantizer(option: str, gemm: bool, tmp_path: Path) -> None:
    """Relu between DequantizeLinear and QuantizeLinear, float weights before Q and DQ, Q and DQ of com.microsoft,
    weights with zero points."""
    for activation, weight in TYPES:
        extra = {option: option != "WeightSymmetric"}
        path, x = quantize_mlp(tmp_path, "QDQ", activation, weight, gemm=gemm, samples=300, extra=extra)
        agrees(path, x, tmp_path)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(
    "form, activation, weight, gemm",
    [
        ("QDQ", "int8", "int8", True),
        ("QOperator", "uint8", "uint8", False),
    ],
)
def test_hardware_of_quantized_networks(
    form: str, activation: str, weight: str, gemm: bool, simulator: str, tmp_path: Path
) -> None:
    path, x = quantize_mlp(tmp_path, form, activation, weight, not gemm, 2, (8, 6, 4), gemm=gemm, samples=40)
    in_hardware(path, x, ort.run(path, {"x": x})[0], tmp_path, simulator, target_cycles=24)


# --------------------------------------------------------------------------- biases


def layer(
    bias: Callable[[Any, Array], str], activation: str = "uint8", *then: str, zero_point: int | None = None
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """DQ Gemm Q of 20 x 16 with int8 weights; `bias` adds the bias to the graph, given the weights' scales."""
    rng = np.random.default_rng(7)
    zero = np.array(120 if activation == "uint8" else -8, activation)
    if zero_point is None:
        zero_point = 131 if activation == "uint8" else 3
    parameters = {
        "sa": f32(0.0173),
        "za": zero,
        "sb": np.exp(rng.uniform(-6, -4, 16)).astype(f32),
        "sy": f32(0.0437),
        "zy": np.array(zero_point, activation),
        "weight": rng.integers(-128, 128, (20, 16)).astype(np.int8),
    }
    graph = Graph()
    graph.then("DequantizeLinear", parameters["sa"], zero)
    weight = dequantized(graph, parameters["weight"], parameters["sb"], np.zeros(16, np.int8), axis=1)
    graph.nodes.append(helper.make_node("Gemm", [graph.last, weight, bias(graph, parameters["sb"])], ["sum"]))
    graph.last = "sum"
    for op in then:
        graph.then(op)
    graph.then("QuantizeLinear", parameters["sy"], parameters["zy"])
    return finished(graph, activation, ["N", 20]), parameters


BIAS = np.random.default_rng(8).normal(size=16).astype(f32)


def test_a_float_bias(tmp_path: Path) -> None:
    """onnxruntime rounds the bias to multiples of fl(sa * sb), which explains all differences, of one code.

    The runtime `onnx` adds the unrounded bias to the exact sum times the scales, rounded to float32.
    """
    model, parameters = layer(lambda graph, _: graph.const(BIAS))
    x = codes(model, 3000)
    sums = ort.matmul_integer(x, parameters["weight"], parameters["za"])
    exact = (sums * (np.float64(parameters["sa"]) * parameters["sb"].astype(np.float64))).astype(f32) + BIAS
    y, z = evaluated(model, x, tmp_path, runtime="onnx"), agrees(model, x, tmp_path)
    assert same(y, ort.quantize_linear(exact, parameters["sy"], int(parameters["zy"]), 0, 255))
    rounded = ort.integer_bias(BIAS, parameters["sa"], parameters["sb"])
    scales = parameters["sa"], parameters["sb"], parameters["sy"], int(parameters["zy"])
    assert same(z, ort.requantize(sums + rounded, *scales, 0, 255))
    assert np.abs(y.astype(int) - z).max() == 1
    assert 0 < (y != z).mean() < 0.002
    assert (y != ort.run(model, {"x": x}, ort.OFF)[0]).mean() < 1e-4  # float32 sums of products


@pytest.mark.parametrize("activation", ["uint8", "int8"])
def test_an_integer_bias_in_units_of_the_sum(activation: str, tmp_path: Path) -> None:
    values = np.round(BIAS * 5000).astype(np.int32)
    model, _ = layer(lambda graph, sb: dequantized(graph, values, f32(0.0173) * sb, axis=0), activation)
    agrees(model, codes(model, 3000), tmp_path)


@pytest.mark.parametrize("activation, lowest", [("uint8", 0), ("int8", -128)])
def test_relu_after_a_layer(activation: str, lowest: int, tmp_path: Path) -> None:
    """A Relu is dropped if saturation does the same. Otherwise onnxruntime has no integer layer: the file's own
    operations are imported, and onnxruntime's float32 sums may round a tie differently."""
    values = np.round(BIAS * 5000).astype(np.int32)

    def bias(graph: Any, sb: Array) -> str:
        return dequantized(graph, values, f32(0.0173) * sb, axis=0)

    model, _ = layer(bias, activation, "Relu", zero_point=lowest)
    agrees(model, codes(model, 3000), tmp_path)
    model, parameters = layer(bias, activation, "Relu", zero_point=lowest + 50)
    x = codes(model, 3000)
    sums = ort.matmul_integer(x, parameters["weight"], int(parameters["za"]))
    product = f32(parameters["sa"]) * parameters["sb"]
    real = (sums * (np.float64(parameters["sa"]) * parameters["sb"].astype(np.float64))).astype(f32)
    real = np.maximum(real + values.astype(f32) * product, 0)
    y = evaluated(model, x, tmp_path)
    assert same(y, ort.quantize_linear(real, parameters["sy"], lowest + 50, lowest, lowest + 255))
    assert (y != ort.run(model, {"x": x})[0]).mean() < 1e-4


def test_an_integer_bias_with_a_scale_of_its_own(tmp_path: Path) -> None:
    """onnxruntime's fused layer ignores the scale of the bias; the runtime `onnx` applies it."""
    values = np.round(BIAS * 5000).astype(np.int32)
    model, _ = layer(lambda graph, sb: dequantized(graph, values, f32(0.0173) * sb * f32(2), axis=0))
    x = codes(model, 3000)
    y, z = evaluated(model, x, tmp_path, runtime="onnx"), agrees(model, x, tmp_path)
    assert (y != ort.run(model, {"x": x}, ort.OFF)[0]).mean() < 1e-4
    assert np.abs(y.astype(int) - z).max() > 10


def test_weights_with_a_scale_for_each_input(tmp_path: Path) -> None:
    """Scales have whole ratios along the summed axis, for which onnxruntime cannot run an integer layer.

    The exact sum is rounded once and divided, as in the file; onnxruntime's float32 sums round some ties differently.
    """
    rng = np.random.default_rng(16)
    graph, weight = Graph(), any_code(rng, "int8", (12, 5))
    scale = f32(0.02) * 2.0 ** rng.integers(0, 3, 12).astype(f32)
    graph.then("DequantizeLinear", f32(0.05), np.int8(0))
    name = dequantized(graph, weight, scale, np.zeros(12, np.int8), axis=0)
    graph.nodes.append(helper.make_node("MatMul", [graph.last, name], ["sum"]))
    graph.last = "sum"
    model = finished(graph.then("QuantizeLinear", f32(0.31), np.int8(0)), "int8", ["N", 12])
    x = codes(model, 3000) // np.int8(4)
    sums = x.astype(np.int64) @ (weight * np.round(scale / f32(0.02)).astype(np.int64)[:, None])
    real = (sums * (np.float64(f32(0.05)) * np.float64(f32(0.02)))).astype(f32)
    y = evaluated(model, x, tmp_path)
    assert same(y, ort.quantize_linear(real, f32(0.31), 0, -128, 127))
    assert 0 < (y != ort.run(model, {"x": x}, ort.OFF)[0]).mean() < 0.003


# --------------------------------------------------------------------------- moves between quantizer and layer

MOVES: list[tuple[list[tuple[Any, ...]], tuple[int, ...], int]] = [
    ([("Reshape", np.array([0, 12], np.int64))], (3, 4), 12),
    ([("Reshape", np.array([-1, 2, 6], np.int64))], (3, 4), 6),
    ([("Squeeze", np.array([2], np.int64))], (12, 1), 12),
    ([("Transpose", {"perm": [0, 2, 1]})], (3, 4), 3),
    ([("Transpose", {"perm": [0, 2, 1]}), ("Flatten",)], (3, 4), 12),
    ([("Flatten",)], (3, 4), 12),
]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("moves, shape, columns", MOVES)
def test_rearranged_data(
    moves: list[tuple[Any, ...]], shape: tuple[int, ...], columns: int, dtype: str, tmp_path: Path
) -> None:
    """Scales with many ties. After a Flatten onnxruntime computes in float, with rounded partial sums and a division.

    hlsgen evaluates the file's own operations on the exact sum, so that some ties differ.
    """
    rng, info = np.random.default_rng(12), np.iinfo(dtype)
    graph, zero, weight = Graph(), any_code(rng, dtype), any_code(rng, "int8", (columns, 5))
    graph.then("QuantizeLinear", f32(0.05), zero).then("DequantizeLinear", f32(0.05), zero)
    for op, *operands in moves:
        attributes = operands.pop() if operands and isinstance(operands[-1], dict) else {}
        graph.then(op, *operands, **attributes)
    name = dequantized(graph, weight, f32(0.02), np.int8(0))
    graph.nodes.append(helper.make_node("MatMul", [graph.last, name], ["sum"]))
    graph.last = "sum"
    graph.then("QuantizeLinear", f32(0.31), zero).then("DequantizeLinear", f32(0.31), zero)
    model = finished(graph, "float32", ["N", *shape])
    x = (rng.normal(size=(1000, *shape)) * 3).astype(f32)
    if moves[-1] != ("Flatten",):
        agrees(model, x, tmp_path)
        return
    x_codes = ort.quantize_linear(x, f32(0.05), int(zero), info.min, info.max)
    x_codes = (x_codes.transpose(0, 2, 1) if len(moves) > 1 else x_codes).reshape(len(x), -1)
    sums = ort.matmul_integer(x_codes, weight, int(zero))
    real = (sums * (np.float64(f32(0.05)) * np.float64(f32(0.02)))).astype(f32)
    q = ort.quantize_linear(real, f32(0.31), int(zero), info.min, info.max)
    y = evaluated(model, x, tmp_path)
    assert same(y, ort.dequantize_linear(q, f32(0.31), int(zero)))
    assert 0 < (y != ort.run(model, {"x": x})[0]).mean() < 0.003


def test_quantizers_in_a_row(tmp_path: Path) -> None:
    """Q DQ Q DQ of two scales: onnxruntime merges them to one pair; the runtime `onnx` keeps both."""
    model = chain(
        ("QuantizeLinear", f32(0.1), np.int8(0)),
        ("DequantizeLinear", f32(0.1), np.int8(0)),
        ("QuantizeLinear", f32(0.2), np.int8(0)),
        ("DequantizeLinear", f32(0.2), np.int8(0)),
        source="float32",
        shape=["N", 4],
    )
    x = (np.random.default_rng(13).normal(size=(500, 4)) * 9).astype(f32)
    y = agrees(model, x, tmp_path, ort.OFF, runtime="onnx")
    assert not same(y, agrees(model, x, tmp_path))


# --------------------------------------------------------------------------- Brevitas


@pytest.mark.sweep
def test_brevitas_qcdq(tmp_path: Path) -> None:
    """Q, Clip, DQ of 4 bits, Gemm and BatchNormalization in float.

    onnxruntime rounds partial sums, hlsgen does not. In 1000 samples no code of a layer differs, nor an unscaled sum
    of the last layer.
    """
    path = shared_model("brevitas/jsc_mlp_w4a4_qcdq")
    proto = onnx.load(path)
    constants = {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer}
    made_by = {o: n for n in proto.graph.node for o in n.output}
    ends = [n.input[0] for n in proto.graph.node if n.op_type == "DequantizeLinear"]
    ends = [
        e for e in ends if made_by[made_by[e].input[0] if made_by[e].op_type == "Clip" else e].input[0] not in constants
    ]
    y_name = proto.graph.output[0].name
    proto.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in ends)
    session, source = ort.session(proto), proto.graph.input[0].name
    x = np.random.default_rng(14).normal(size=(1000, 16)).astype(f32)
    runs = [session.run([y_name, *ends], {source: row[None]}) for row in x]
    theirs = [np.concatenate(part) for part in zip(*runs, strict=True)]

    graph = compiled(path, tmp_path).graph
    input_codes = reference.encode_input(graph, reference.frames_of(graph, x))
    layers = zip(graph.layers, reference.run_layers(graph, input_codes), strict=True)
    values = [input_codes, *(out for layer_, out in layers if isinstance(layer_, Map))]
    assert len(values) == len(ends) == 4
    for layer_codes, expected in zip(values, theirs[1:], strict=True):
        assert same(layer_codes[:, 0], expected)
    last = graph.output.encoding
    assert isinstance(last, Accumulator)
    sums = reference.run_layers(graph, input_codes)[-1][:, 0]
    bias = constants[made_by[y_name].input[2]].astype(np.float64)
    assert same(np.rint((theirs[0] - bias) / last.scale.reshape(-1)), sums)
    y = evaluated(path, x, tmp_path)
    assert 0 < (y != theirs[0]).mean() < 0.8  # the last places of the float32 results
    assert np.abs(y - theirs[0]).max() < 3e-7
    assert same(y.argmax(axis=1), theirs[0].argmax(axis=1))


@pytest.mark.slow
@pytest.mark.sim
@needs_icarus
def test_hardware_of_brevitas_qcdq(tmp_path: Path) -> None:
    """The simulated hardware gives the sums that onnxruntime's results are made of."""
    path = shared_model("brevitas/jsc_mlp_w4a4_qcdq")
    x = np.random.default_rng(15).normal(size=(20, 16)).astype(f32)
    hlsgen.build(path, tmp_path / "build")
    assert hlsgen.verify(tmp_path / "build", ["icarus"], 3).ok
    y = hlsgen.run(tmp_path / "build", x, "icarus")
    assert same(y, hlsgen.run(tmp_path / "build", x))
    assert np.abs(y - frames(path, x)).max() < 3e-7


def clipped(net: Net, scale: float, bits: int) -> Net:
    """QuantizeLinear, Clip, DequantizeLinear of a signed type of few bits."""
    zero, low, high = (np.asarray(n, np.int8) for n in (0, -(1 << (bits - 1)), (1 << (bits - 1)) - 1))
    net.then("QuantizeLinear", f32(scale), zero).then("Clip", low, high)
    return net.then("DequantizeLinear", f32(scale), zero)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("scales, bits", [((0.25, 0.5, 0.5), 5), ((0.3, 0.17, 0.41), 4), ((0.1, 0.1, 0.2), 6)])
def test_an_addition_of_few_bits(scales: tuple[float, float, float], bits: int, tmp_path: Path) -> None:
    """A residual addition of codes of less than 8 bits: for onnxruntime a QLinearAdd of bytes, followed by a Clip."""
    rng = np.random.default_rng(bits)
    net = Net((1, 6))
    clipped(net, 0.25, 6)
    source = net.last
    kernel = net.const((rng.integers(-3, 4, (6, 6)) * 0.125).astype(f32))
    sums = net.node("MatMul", source, kernel).last
    clipped(net, scales[0], bits)
    first_term = net.last
    net.node("Identity", sums).then("Mul", f32(-0.5))
    clipped(net, scales[1], bits).node("Add", first_term, net.last)
    clipped(net, scales[2], bits)
    if bits == 5:  # powers of two: exact in float32 too
        net.then("MatMul", kernel)
    x = (rng.normal(size=(300, 6)) * 4).astype(f32)
    net.inputs[0].type.tensor_type.shape.dim[0].dim_param = "N"
    model = net.model()
    expected = agrees(model, x, tmp_path)
    if bits == 4:
        in_hardware(model, x[:20], expected[:20], tmp_path, "verilator")
    assert any(isinstance(layer_, PackBytes) for layer_ in compiled(model, tmp_path).graph.layers)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("opset", [12, 13])
def test_softmax(dtype: str, opset: int, tmp_path: Path) -> None:
    """A head with Softmax between DequantizeLinear and QuantizeLinear runs as QLinearSoftmax."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sx, sy, low = f32(rng.uniform(0.02, 0.2)), f32(1 / rng.uniform(200, 255)), np.array(np.iinfo(dtype).min, dtype)
        codes = [("DequantizeLinear", f32(0.1), low), ("LeakyRelu",), ("QuantizeLinear", sx, any_code(rng, dtype))]
        head = [("DequantizeLinear", sx, codes[-1][2]), ("Softmax", {"axis": 1}), ("QuantizeLinear", sy, low)]
        x = any_code(rng, dtype, (50, 12))
        y = agrees(chain(*codes, *head, source=dtype, shape=[50, 12], opset=opset), x, tmp_path)
        assert len(np.unique(y)) > 20
