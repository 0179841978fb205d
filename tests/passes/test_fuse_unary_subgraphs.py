"""Activations that the file writes with several operators: the codes of the qonnx executor, in one function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified, checked
from models import DOMAIN, Net, newer, samples
from numpy.typing import NDArray
from oracles import Qonnx
from random_ops import random_op, random_quant
from small_models import const, evaluate, frames, model_of, quant

import hlsgen
from hlsgen import ir
from hlsgen.diagnostics import HlsgenError
from hlsgen.interpreter import graph as reference
from hlsgen.ir import BinaryMap, Linear, Map
from hlsgen.ir.ops import BinaryKind, Compare, Mul, MultiThreshold, Relation
from hlsgen.passes import fuse_unary_subgraphs
from hlsgen.rescale import StepFunction, ThresholdTable, specialize
from hlsgen.rescale import extract as module
from hlsgen.rescale.extract import trace

Array = NDArray[Any]
Part = Callable[[Net], object]


def silu(n: Net) -> None:
    x = n.last
    n.then("Sigmoid").node("Mul", x, n.last)


def mish(n: Net) -> None:
    x = n.last
    n.then("Softplus").then("Tanh").node("Mul", n.last, x)


def gelu(n: Net) -> None:
    """As TorchScript writes it."""
    x = n.last
    n.then("Div", 1.4142135).then("Erf").then("Add", 1.0).node("Mul", x, n.last).then("Mul", 0.5)


def gelu_first_half(n: Net) -> None:
    """As torch.export writes it."""
    x = n.last
    half = n.then("Mul", 0.5).last
    n.node("Div", x, 1.4142135).then("Erf").then("Add", 1.0).node("Mul", half, n.last)


def gelu_tanh(n: Net) -> None:
    x = n.last
    n.then("Pow", 3.0).then("Mul", 0.044715).node("Add", x, n.last).then("Mul", 0.7978846).then("Tanh").then("Add", 1.0)
    right = n.last
    n.node("Mul", x, 0.5).node("Mul", n.last, right)


def gelu_cube(n: Net) -> None:
    """The cube as products of the tensor with itself."""
    x = n.last
    n.node("Mul", x, x).node("Mul", n.last, x).then("Mul", 0.044715).node("Add", x, n.last).then("Mul", 0.7978846)
    n.then("Tanh").then("Add", 1.0).node("Mul", x, n.last).then("Mul", 0.5)


def hard_swish(n: Net) -> None:
    x = n.last
    n.then("Add", 3.0).then("Clip", 0.0, 6.0).node("Mul", x, n.last).then("Div", 6.0)


def hard_swish_sigmoid(n: Net) -> None:
    x = n.last
    n.then("HardSigmoid", alpha=1 / 6, beta=0.5).node("Mul", x, n.last)


def tanhshrink(n: Net) -> None:
    x = n.last
    n.then("Tanh").node("Sub", x, n.last)


def softplus(n: Net) -> None:
    """torch's, with its threshold."""
    x = n.last
    soft = n.then("Softplus").last
    n.node("Greater", x, 1.0).node("Where", n.last, x, soft)


def hardshrink(n: Net) -> None:
    x = n.last
    above = n.then("Greater", 0.5).last
    n.node("Less", x, -0.5).node("Or", above, n.last).node("Where", n.last, x, 0.0)


def hardshrink_inside(n: Net) -> None:
    x = n.last
    below = n.then("LessOrEqual", 0.5).last
    n.node("GreaterOrEqual", x, -0.5).node("And", below, n.last).node("Where", n.last, 0.0, x)


def threshold(n: Net) -> None:
    x = n.last
    n.then("Greater", 0.5).then("Not").node("Where", n.last, -0.25, x)


def constants_only(n: Net) -> None:
    n.node("Less", 0.25, n.last).then("Where", 0.75, -0.5)


def mask(n: Net) -> None:
    x = n.last
    n.then("Less", 0.0).then("Cast", to=onnx.TensorProto.FLOAT).node("Mul", x, n.last)


def quantized_gate(n: Net) -> None:
    x = n.last
    n.then("Sigmoid").quant(2.0**-6, bits=6.0, signed=0).node("Mul", x, n.last)


PARTS: dict[str, Part] = {
    f.__name__: f
    for f in (
        silu,
        mish,
        gelu,
        gelu_first_half,
        gelu_tanh,
        gelu_cube,
        hard_swish,
        hard_swish_sigmoid,
        tanhshrink,
        softplus,
        hardshrink,
        hardshrink_inside,
        threshold,
        constants_only,
        mask,
        quantized_gate,
    )
} | {
    "celu": lambda n: n.then("Celu", alpha=0.5),
    "mish_operator": lambda n: n.then("Mish"),
    "shrink": lambda n: n.then("Shrink", lambd=0.5, bias=0.25),
    "thresholded": lambda n: n.then("ThresholdedRelu", alpha=0.25),
}


def network(part: Part, columns: int = 6, rows: int = 3, bits: float = 5.0) -> onnx.ModelProto:
    """A sum, the activation, a quantizer; all scales are powers of two."""
    r = np.random.default_rng(columns)
    n = Net((1, columns)).quant(2.0**-3, bits=bits)
    data = n.last
    n.node("IntQuant", np.float32(r.integers(-7, 8, (columns, rows)) / 8), 0.125, 0.0, 4.0, domain=DOMAIN)
    n.node("MatMul", data, n.last, name="fc").then("Add", np.float32(r.integers(-9, 9, rows) / 16))
    part(n)
    return newer(n.quant(2.0**-4, bits=7.0, name="last").model())


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", PARTS)
def test_codes_of_the_executor(name: str, tmp_path: Path) -> None:
    model = network(PARTS[name])
    build = checked(model, tmp_path)
    assert [type(layer) for layer in build.graph.layers] == [Linear, Map]
    x = samples(60)
    outputs = reference.evaluate(build.graph, x).reshape(len(x), -1)
    assert np.array_equal(outputs, Qonnx(model)(x))


@pytest.mark.parametrize("name", ["silu", "hardshrink"])
def test_before_the_first_and_after_the_last_quantizer(name: str, tmp_path: Path) -> None:
    """The host computes these operations."""
    n = Net((1, 6))
    PARTS[name](n)
    n.quant(2.0**-3, bits=5.0).then("Relu").quant(2.0**-2, bits=4.0)
    PARTS[name](n)
    build = checked(newer(n.model()), tmp_path)
    assert len(build.graph.head) == len(build.graph.tail) == 1
    x = samples(40)
    outputs = reference.evaluate(build.graph, x).reshape(len(x), -1)
    assert np.allclose(outputs, Qonnx(newer(n.model()))(x), rtol=1e-6, atol=0)


def function(build: hlsgen.Build) -> StepFunction:
    layer = build.graph.layers[-1]
    assert isinstance(layer, Map)
    linear = build.graph.layers[0]
    assert isinstance(linear, Linear)
    return specialize(layer, np.arange(layer.result.size), linear.lo, linear.hi)


@pytest.mark.parametrize("name", PARTS)
def test_steps_of_wide_sums(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by intervals: the same as on every input."""
    monkeypatch.setattr(module, "MAX_EVALUATIONS", 0)
    build = checked(network(PARTS[name], 40, 2, 10.0), tmp_path)
    f = function(build)
    assert (f.hi - f.lo).min() > 1 << 16
    steps = trace(f)
    assert isinstance(steps, ThresholdTable)
    x = np.minimum(np.arange(int((f.hi - f.lo).max()) + 1)[:, None] + f.lo, f.hi)
    assert np.array_equal(steps.apply(x), f.evaluate(x))


@pytest.mark.parametrize("name", ["silu", "gelu_tanh", "hardshrink", "quantized_gate"])
def test_wide_sums_are_certified(name: str, tmp_path: Path) -> None:
    model = network(PARTS[name], 40, 2, 10.0)
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    layers = hlsgen.certify(tmp_path / "m").layers
    assert layers[-1].evaluated < 1000 < layers[-1].inputs


@pytest.mark.sim
@pytest.mark.parametrize("name", ["silu", "hardshrink"])
def test_hardware(name: str, tmp_path: Path) -> None:
    onnx.save(network(PARTS[name]), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    assert_verified(tmp_path / "m", "icarus", 8)


def test_two_quantized_branches_stay_two(tmp_path: Path) -> None:
    n = Net((1, 6)).quant(2.0**-3, bits=5.0)
    x = n.last
    branch = n.then("Relu").quant(2.0**-2, bits=4.0).last
    n.node("Tanh", x).quant(2.0**-3, bits=4.0).node("Add", branch, n.last).quant(2.0**-2, bits=4.0)
    build = checked(newer(n.model()), tmp_path)
    assert any(isinstance(layer, BinaryMap) for layer in build.graph.layers)


def test_where_of_two_tensors_is_refused(tmp_path: Path) -> None:
    n = Net((1, 4)).quant(2.0**-3, bits=5.0)
    x = n.last
    n.linear(rows=4).then("Greater", 0.0).node("Where", n.last, x, 0.0, name="where").quant(0.5)
    with pytest.raises(HlsgenError, match="HG015 where: Where of tensors"):
        checked(newer(n.model()), tmp_path)


# --------------------------------------------------------------------------- random Models


def test_random_models_keep_their_values() -> None:
    """Two chains on one tensor, combined or selected, before a quantizer."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shape = (1, 3, 4)
        steps: list[tuple[ir.Op, ir.Shape, tuple[int, ...]]] = []
        ends = []
        for _ in range(2):
            value = 0
            for _ in range(int(rng.integers(1, 4))):
                steps.append((random_op(rng, 3, 4), shape, (value,)))
                value = len(steps)
            ends.append(value)
        if seed % 2:
            steps.append((ir.Binary(list(BinaryKind)[seed % len(BinaryKind)]), shape, (ends[0], ends[1])))
        else:
            steps.append((Compare(Relation.LESS, const(0.5, 3)), shape, (0,)))
            fixed = (None, None, const(2, 3)) if seed % 4 else (None, None, None)
            inputs = (len(steps), ends[0]) if seed % 4 else (len(steps), *ends)
            steps.append((ir.Select(fixed), shape, inputs))
        steps.append((random_quant(rng, 3, 4), shape, (len(steps),)))
        model = ir.Model(
            "m",
            "x",
            shape,
            "float32",
            True,
            None,
            tuple(ir.Step(f"s{n}", *step) for n, step in enumerate(steps)),
            "y",
            "float32",
        )
        fused = fuse_unary_subgraphs.fuse_unary(model)
        assert len(fused.steps) == 2
        assert not any(isinstance(step.op, ir.Binary | ir.Select) for step in fused.steps)
        x = frames(model, seed)
        assert (evaluate(fused, x) == evaluate(model, x)).all(), seed


V = (1, 4)
MUL = Mul(const(1.5, 2))
ADDED = ir.Binary(BinaryKind.ADD)


@pytest.mark.parametrize(
    "model",
    [
        model_of(V, (quant(2), V, (0,)), (quant(2, 0.5), V, (0,)), (ADDED, V, (1, 2)), (quant(2), V, (3,))),
        model_of(
            V, (ir.Reshape(), (4, 1), (0,)), (ir.Transpose((1, 0)), V, (1,)), (ADDED, V, (0, 2)), (quant(2), V, (3,))
        ),
        model_of(
            V,
            (MultiThreshold(const([1, 2], 2).reshape(2, 1, 1), 1.0, 0.0), V, (0,)),
            (ADDED, V, (0, 1)),
            (quant(2), V, (2,)),
        ),
        model_of(
            V,
            (ir.MatMul(np.eye(4, dtype=np.int64), np.ones(4, np.float32)), V, (0,)),
            (ADDED, V, (0, 1)),
            (quant(2), V, (2,)),
        ),
    ],
    ids=["two quantized operands", "elements in another place", "thresholds on the way", "no elementwise operation"],
)
def test_it_does_not_fire(model: ir.Model) -> None:
    assert fuse_unary_subgraphs.fuse_unary(model) is model
