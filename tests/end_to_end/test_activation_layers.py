"""Activation functions between QONNX quantizers, and after a linear layer: the codes of the QONNX executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from functions import FUNCTIONS, HALF
from integer_models import in_hardware, same
from numpy.typing import NDArray
from onnx import helper
from oracles import Qonnx
from random_graphs import DOMAIN, Graph

import hlsgen
from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
f32 = np.float32
ACTIVATIONS = [
    "Tanh",
    "Sigmoid",
    "Gelu",
    "Elu",
    "LeakyRelu 0.3",
    "HardSigmoid",
    "HardSwish",
    "Exp",
    "Sqrt",
    "Abs",
    "Pow 2",
    "Pow 3",
    "Pow 0.5",
]
ROUNDINGS = ["ROUND", "FLOOR", "CEIL", "HALF_UP"]


def quant(g: Graph, scale: float, bits: int, signed: bool, zero: float = 0.0, rounding: str = "ROUND") -> None:
    g.quant(scale, zero, float(bits), signed=int(signed), narrow=0, rounding_mode=rounding)


def activate(g: Graph, name: str) -> None:
    op, constants, _ = FUNCTIONS[name]
    attributes = constants[-1] if constants and isinstance(constants[-1], dict) else {}
    if name in HALF:
        g.then("Relu")
    g.then(op, *(c for c in constants if c is not attributes), **attributes)


def model_of(g: Graph, shape: tuple[int, ...]) -> onnx.ModelProto:
    """The model, in an opset that has all activations."""
    model = g.model(shape)
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)])
    model.ir_version = 9
    return model


def linear(g: Graph, rng: np.random.Generator, columns: int, rows: int) -> None:
    """4-bit weights of scale 1/8: exact in the executor's float32."""
    weight = [rng.integers(-8, 8, (columns, rows)) / 8, 0.125, 0.0, 4.0]
    attributes = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", "domain": DOMAIN}
    g.last = g.node("MatMul", g.last, g.node("IntQuant", *(g.const(w) for w in weight), **attributes))
    g.then("Add", rng.integers(-40, 40, rows) / 64)


def reach(name: str, low: float, high: float) -> float:
    """The largest absolute result for arguments from low to high."""
    exact = FUNCTIONS[name][2]
    x = np.linspace(max(low, 0.0) if name in HALF else low, high, 999)
    literal = {
        "Abs": np.abs,
        "Sqrt": np.sqrt,
        "HardSigmoid": lambda x: np.clip(x / 5 + 0.5, 0, 1),
        "LeakyRelu 0.3": lambda x: np.where(x > 0, x, 0.3 * x),
        "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    }
    return float(np.abs((exact or literal[name])(x)).max())


def results(model: onnx.ModelProto, x: Array, directory: Path) -> tuple[Array, Array]:
    """Results of hlsgen and of qonnx for a single sample."""
    onnx.save(model, directory / "model.onnx")
    build = hlsgen.check(directory / "model.onnx")
    return reference.evaluate(build.graph, x), np.asarray(Qonnx(model).one(x))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_between_quantizers(name: str, tmp_path: Path) -> None:
    """All codes of 6 bits. Functions are correctly rounded. The executor's rounding errors change no code."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scale, signed = float(f32(np.exp(rng.uniform(-3.5, -2)))), bool(seed % 2)
        codes = np.arange(-32, 32) if signed else np.arange(64)
        top = reach(name, codes[0] * scale, codes[-1] * scale)
        g = Graph((1, 64))
        quant(g, scale, 6, signed)
        activate(g, name)
        quant(g, top / rng.uniform(10, 20), 5, True, float(rng.integers(-3, 4)), ROUNDINGS[seed])
        y, z = results(model_of(g, (1, 64)), (codes * f32(scale)).astype(f32)[None], tmp_path)
        assert len(np.unique(y)) > 4
        assert same(y, z)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_after_a_layer(name: str, tmp_path: Path) -> None:
    """Sums that are exact in float32; 100 vectors at once."""
    rng = np.random.default_rng(7)
    g = Graph((100, 12))
    quant(g, 1 / 16, 5, True)
    linear(g, rng, 12, 9)
    activate(g, name)
    quant(g, reach(name, -4, 4) / 14, 5, True, 1.0)
    x = (rng.normal(size=(100, 12)) / 2).astype(f32)
    y, z = results(model_of(g, (100, 9)), x, tmp_path)
    assert len(np.unique(y)) > 4
    assert same(y, z)


@pytest.mark.slow
@pytest.mark.sim
def test_slopes_of_channels(tmp_path: Path) -> None:
    """PRelu with a slope for each channel, one of them negative, one 0: between quantizers, and in a circuit."""
    slopes = np.array([0.3, -0.7, 0.0, 1.5], f32).reshape(4, 1, 1)
    g = Graph((1, 4, 2, 32))
    quant(g, 1 / 16, 6, True)
    g.then("PRelu", slopes)
    quant(g, 0.17, 5, True, 1.0)
    x = np.tile(np.arange(-32, 32) / 16, 4).astype(f32).reshape(1, 4, 2, 32)
    y, z = results(model_of(g, (1, 4, 2, 32)), x, tmp_path)
    assert same(y, z)
    assert len({tuple(channel.ravel()) for channel in y[0]}) == 4
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out")
    assert len(build.graph.layers)
    assert hlsgen.certify(tmp_path / "out").ok
    assert hlsgen.verify(tmp_path / "out", ["verilator"], frames=3).ok


@pytest.mark.slow
@pytest.mark.sim
def test_all_of_them_in_one_circuit(tmp_path: Path) -> None:
    """A chain of quantizers with every activation once, on fixed-point input, simulated."""
    g = Graph((1, 4))
    quant(g, 1 / 16, 6, True)
    for k, name in enumerate(ACTIVATIONS):
        activate(g, name)
        quant(g, reach(name, -2, 2) / 31, 6, True, float(k % 3), ROUNDINGS[k % 4])
        g.then("Mul", f32(1.9 / (31 * float(f32(reach(name, -2, 2) / 31)))))
    model = model_of(g, (1, 4))
    x = np.random.default_rng(1).integers(-32, 32, (60, 4)).astype(f32) / 16
    assert len(np.unique(Qonnx(model)(x))) > 1
    in_hardware(model, x, Qonnx(model)(x), tmp_path, "verilator", input="fixed:8,4", lanes=2)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("names", [("Tanh", "HardSwish", "Gelu"), ("Pow 2", "Sigmoid", "Elu")])
def test_networks_in_hardware(names: tuple[str, ...], tmp_path: Path) -> None:
    """Three small layers with different activations."""
    rng = np.random.default_rng(2)
    g = Graph((1, 6))
    quant(g, 1 / 16, 5, True)
    for name in names:
        linear(g, rng, 6, 6)
        activate(g, name)
        quant(g, 1 / 16, 6, True)
    model = model_of(g, (1, 6))
    x = (rng.normal(size=(40, 6)) / 2).astype(f32)
    in_hardware(model, x, Qonnx(model)(x), tmp_path, "verilator", target_cycles=12)
