"""Sums, differences and products of two layers whose scales have nothing in common: joined in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from builds import assert_verified
from models import DOMAIN, Net, newer
from oracles import Qonnx

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import FloatBinary

pytestmark = pytest.mark.sim


def two_layers(
    op: str, *activations: str, scales: tuple[float, float] = (0.0123, 0.00457), bias: bool = True
) -> onnx.ModelProto:
    """Quantized input, two layers of 8-bit weights, one of them after another quantizer, `op`, a bias, a quantizer."""
    r = np.random.default_rng(len(op))
    net = Net((1, 6)).quant(0.031, bits=8.0)
    data, ends = net.last, []
    for n, scale in enumerate(scales):
        net.last = data
        if n:
            net.then("Tanh").quant(0.0079, bits=8.0)
        data_operand = net.last
        net.node("IntQuant", r.normal(0, 0.5, (6, 5)).astype(np.float32), scale, 0.0, 8.0, domain=DOMAIN)
        net.node("MatMul", data_operand, net.last)
        ends.append(net.last)
    net.node(op, *ends)
    if bias:
        net.then("Add", r.normal(0, 0.3, 5).astype(np.float32))
    for name in activations:
        net.then(name)
    return newer(net.quant(0.0371, bits=8.0, name="last").model())


@pytest.mark.cases(1)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("target", ["verilog", "hls"])
def test_the_file_and_the_hardware_agree(op: str, target: str, tmp_path: Path) -> None:
    model = two_layers(op, *(["Sigmoid"] if op == "Sub" else []))
    onnx.save(model, tmp_path / "m.onnx")
    out = tmp_path / "out"
    hlsgen.build(tmp_path / "m.onnx", out, hlsgen.Options(input="codes", target=target))
    text = "hg_f32_join" if target == "verilog" else "f32_join"
    assert any(text in f.read_text() for f in out.rglob("*") if f.suffix in (".v", ".cpp", ".hpp"))
    x = (np.random.default_rng(5).integers(-300, 300, (40, 6)) / 64).astype(np.float32)
    assert (hlsgen.run(out, x).reshape(40, -1) == Qonnx(model)(x)).all()
    assert hlsgen.certify(out).ok
    if target == "verilog":
        assert_verified(out, "icarus")
    else:
        assert hlsgen.verify(out, ["ap_types"], oracle="none").ok


def gate(kinds: tuple[str, str], activation: str = "Tanh") -> onnx.ModelProto:
    """Layers a, b and r, of which b and r follow a quantizer: kinds[1](kinds[0](r, b), a) without a quantizer
    between."""
    r = np.random.default_rng(7)
    net = Net((1, 6)).quant(0.031, bits=8.0)
    data, ends = net.last, []
    for scale in (0.0123, 0.00457, 0.0311):
        net.last = data
        if ends:
            net.then("Tanh").quant(0.0079, bits=8.0)
        data_operand = net.last
        net.node("IntQuant", r.normal(0, 0.5, (6, 5)).astype(np.float32), scale, 0.0, 8.0, domain=DOMAIN)
        net.node("MatMul", data_operand, net.last).then("Add", r.normal(0, 0.3, 5).astype(np.float32))
        ends.append(net.last)
    if kinds[0] == "Mul":
        net.then("Sigmoid").quant(0.0039, bits=8.0, signed=0)
        ends[2] = net.last
    net.node(kinds[0], ends[2], ends[1]).node(kinds[1], net.last, ends[0])
    return newer(net.then(activation).quant(0.0371, bits=8.0, name="last").model())


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "kinds, target",
    [
        (("Mul", "Add"), "verilog"),
        (("Add", "Mul"), "verilog"),
        (("Mul", "Sub"), "verilog"),
        (("Mul", "Add"), "hls"),
        (("Add", "Mul"), "hls"),
        (("Mul", "Sub"), "hls"),
    ],
)
def test_a_joint_of_a_joint(kinds: tuple[str, str], target: str, tmp_path: Path) -> None:
    """As a gate quantize(W x + r * (R h)): float32 goes from one joint to the next."""
    model = gate(kinds)
    onnx.save(model, tmp_path / "m.onnx")
    out = tmp_path / "out"
    build = hlsgen.build(tmp_path / "m.onnx", out, hlsgen.Options(input="codes", target=target))
    assert sum(isinstance(layer, FloatBinary) for layer in build.network.graph.layers) == 1
    x = (np.random.default_rng(5).integers(-300, 300, (40, 6)) / 64).astype(np.float32)
    assert (hlsgen.run(out, x).reshape(40, -1) == Qonnx(model)(x)).all()
    assert hlsgen.certify(out).ok
    if target == "hls":
        assert hlsgen.verify(out, ["ap_types"], oracle="none").ok
        return
    assert_verified(out, "icarus", 8)


def test_a_joint_of_a_joint_keeps_no_sign_of_zero(tmp_path: Path) -> None:
    """The joint is rejected, for any operator after it, which would get 0.0 for -0.0."""
    onnx.save(gate(("Mul", "Add"), "Reciprocal"), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG030 Add .* not quantized again"):
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="codes"))


def test_a_function_that_tells_zeros_apart_is_refused(tmp_path: Path) -> None:
    onnx.save(two_layers("Add", "Reciprocal", bias=False), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG037.*distinguishes -0.0 from 0.0"):
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="codes"))


def test_the_maximum_has_no_unit(tmp_path: Path) -> None:
    onnx.save(two_layers("Max"), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"no float32 unit for the max of two tensors"):
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="codes"))


@pytest.mark.slow
def test_an_unrolled_lstm(tmp_path: Path) -> None:
    """Against the golden outputs of qonnx."""
    from paths import shared_model

    path = shared_model("attention/lstm_unrolled_w8a8_qonnx")
    golden = np.load(path.with_suffix(".npz"))
    build = hlsgen.check(path)
    from hlsgen.interpreter.graph import evaluate

    y = evaluate(build.graph, golden["x"].reshape(-1, 4, 6))
    np.testing.assert_array_equal(y.reshape(golden["qonnx"].shape), golden["qonnx"])
