"""Quantizers of QONNX with few codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Net, newer
from oracles import Qonnx
from qonnx.custom_op.general.quant import quant

import hlsgen
from hlsgen.interpreter import graph as reference

ONE_CODE = {"bits": 1.0, "signed": 0, "narrow": 1, "rounding_mode": "ROUND"}
OWN = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}


def before_a_layer(zero: float) -> onnx.ModelProto:
    net = Net().quant(**OWN).linear(3, 4, name="a")
    return net.quant(0.25, zero, **ONE_CODE).linear(2, 3, name="b").quant(0.5, **OWN).model()


def at_the_end(zero: float) -> onnx.ModelProto:
    return Net().quant(**OWN).linear(3, 4, name="a").quant(0.25, zero, **ONE_CODE).model()


def of_weights(zero: float) -> onnx.ModelProto:
    net = Net().quant(**OWN)
    data = net.last
    net.node(
        "IntQuant",
        np.ones((4, 3), np.float32),
        0.25,
        zero,
        1.0,
        domain="qonnx.custom_op.general",
        signed=0,
        narrow=1,
        rounding_mode="ROUND",
    )
    return net.node("MatMul", data, net.last).quant(0.5, **OWN).model()


def completed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the attributes that qonnx requires."""
    for node in model.graph.node:
        present = {a.name for a in node.attribute}
        if node.op_type == "IntQuant":
            node.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in OWN.items() if k not in present)
    return newer(model)


@pytest.mark.cases(3)
@pytest.mark.parametrize("zero", [0.0, -3.0])
@pytest.mark.parametrize("make", [before_a_layer, at_the_end, of_weights], ids=lambda make: make.__name__)
def test_one_code(make: Any, zero: float, tmp_path: Path) -> None:
    """One unsigned narrow bit is a constant, as in qonnx, also in hardware and its certificate."""
    model = completed(make(zero))
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    x = np.random.default_rng(0).normal(0, 2, (20, 1, 4)).astype(np.float32)
    codes = reference.run_layers(build.graph, reference.encode_input(build.graph, x))[-1]
    outputs = np.asarray(reference.decode_output(build.graph, codes))
    assert np.array_equal(outputs.reshape(20, -1), Qonnx(model)(x[:, 0]))
    assert hlsgen.certify(tmp_path / "m").ok


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_quantizers_of_integers(kind: str, tmp_path: Path) -> None:
    """Sums that wrap in the file's type, all of which float32 represents."""
    text = (
        f'<ir_version: 9, opset_import: ["" : 18, "qonnx.custom_op.general" : 1]> net ({kind}[1, 6] a, {kind}[1, 6] b) '
        "=> (float[1, 6] y) <float s = {0.75}, float z = {0.0}, float n = {7.0}> "
        "{ x = Add(a, b) "
        'y = qonnx.custom_op.general.Quant<signed = 1, narrow = 0, rounding_mode = "ROUND">(x, s, z, n) }'
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    info, rng = np.iinfo(kind), np.random.default_rng(0)
    x = {name: rng.integers(info.min, info.max, (50, 6), endpoint=True).astype(kind) for name in "ab"}
    x["a"][:25] >>= np.iinfo(kind).bits - 8
    x["b"][:25] = 3
    graph = hlsgen.check(tmp_path / "m.onnx").graph
    codes = reference.run_output(graph, reference.encode_input(graph, reference.pack_inputs(graph, x)))
    expected = quant(x["a"] + x["b"], np.float32(0.75), np.float32(0), np.float32(7), 1, 0, "ROUND")
    assert (reference.decode_output(graph, codes) == expected).all()
    assert len(np.unique(expected)) > 20


def test_quantizers_of_wide_integers_are_refused(tmp_path: Path) -> None:
    text = (
        '<ir_version: 9, opset_import: ["" : 18, "qonnx.custom_op.general" : 1]> '
        "net (int32[1, 6] a) => (float[1, 6] y) "
        "<float s = {0.75}, float z = {0.0}, float n = {7.0}> { y = qonnx.custom_op.general.Quant(a, s, z, n) }"
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match="HG026 Quant -> y: Quant of int32 data"):
        hlsgen.check(tmp_path / "m.onnx")
