"""Sums of three and more tensors without a quantizer between: exact, rounded once."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from branches import network
from builds import assert_verified, checked
from models import samples
from numpy.typing import NDArray
from oracles import Qonnx
from small_models import const, model_of, quant

import hlsgen
from hlsgen import ir
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.interpreter import graph as reference
from hlsgen.ir.ops import Activation, Add, BinaryKind, Mul
from hlsgen.passes import InputMode, lower

Array = NDArray[Any]


CASES: dict[str, tuple[list[float], str]] = {
    "powers of two": ([0.25, 0.125, 0.5], "Add Add"),
    "sums of layers": ([0, 0, 0], "Add Sub"),
    "a layer and two": ([0, 0.25, 0.125], "Add Add"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_codes_of_the_executor(name: str, tmp_path: Path) -> None:
    scales, ops = CASES[name]
    model = network(scales, ops, 0.5)
    x = samples(60)
    outputs = reference.evaluate(checked(model, tmp_path).graph, x).reshape(len(x), -1)
    assert np.array_equal(outputs, Qonnx(model)(x))


@pytest.mark.cases(1)
@pytest.mark.sweep
@pytest.mark.parametrize("ops", ["Add Add", "Sub Add", "Add Add Sub"])
def test_one_float_scale(ops: str, tmp_path: Path) -> None:
    """The exact sum, rounded once; the executor's may differ where it rounds a partial sum."""
    scale = np.float32(0.3)
    model = network([0.3] * (len(ops.split()) + 1), ops)
    parts = onnx.ModelProto()
    parts.CopyFrom(model)
    joint = [node for node in parts.graph.node if node.op_type in ("Add", "Sub")]
    names = [joint[0].input[0], *(node.input[1] for node in joint)]
    x = samples(60)
    signs = [1, *(-1 if op == "Sub" else 1 for op in ops.split())]
    codes = []
    for name in names:
        parts.graph.output[0].name = name
        codes.append(np.rint(Qonnx(parts)(x) / scale).astype(np.int64))
    total = sum(sign * code for sign, code in zip(signs, codes, strict=True))
    real = np.array([np.float32(float(Fraction(int(t)) * Fraction(float(scale)))) for t in total.ravel()], np.float32)
    want = np.clip(np.rint(real / np.float32(0.4)), -64, 63).astype(np.float32) * np.float32(0.4)
    outputs = reference.evaluate(checked(model, tmp_path).graph, x).reshape(len(x), -1)
    assert np.array_equal(outputs.ravel(), want)


@pytest.mark.sim
def test_hardware_and_proof(tmp_path: Path) -> None:
    onnx.save(network([0.3, 0.3, 0.3], "Add Sub"), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    assert_verified(tmp_path / "m", "icarus", 8)
    assert [layer.kind for layer in hlsgen.certify(tmp_path / "m").layers].count("merge") == 2


@pytest.mark.sweep
@pytest.mark.parametrize("scales, ops", [([0.3, 0.17, 0.41], "Add Sub"), ([0.3, 0.17, 0.41, 0.113], "Add Add Add")])
def test_scales_without_a_common_unit_are_added_in_float32(scales: list[float], ops: str, tmp_path: Path) -> None:
    model, x = network(scales, ops), samples(60)
    graph = checked(model, tmp_path).graph
    assert sum(isinstance(layer, ir.FloatBinary) for layer in graph.layers) == len(scales) - 2
    assert np.array_equal(reference.evaluate(graph, x).reshape(len(x), -1), Qonnx(model)(x))


# --------------------------------------------------------------------------- random Models

Steps = list[tuple[ir.Op, ir.Shape, tuple[int, ...]]]
V = (1, 4)


def sum_of(scales: list[Any], *, between: list[ir.Op] | None = None, extra_ops_on: int = 1) -> ir.Model:
    """Quantized tensors added up, the third and fifth subtracted; operations after one of them, a quantizer at the end."""
    steps: Steps = [(quant(2, scale), V, (0,)) for scale in scales]
    terms = list(range(1, len(scales) + 1))
    for op in between or []:
        steps.append((op, V, (terms[extra_ops_on - 1],)))
        terms[extra_ops_on - 1] = len(steps)
    total = terms[0]
    for n, value in enumerate(terms[1:], 2):
        kind = BinaryKind.SUB if n > 2 and n % 2 else BinaryKind.ADD
        steps.append((ir.Binary(kind), V, (total, value)))
        total = len(steps)
    return model_of(V, *steps, (quant(2, 0.5), V, (total,)))


def lowered(model: ir.Model) -> ir.Graph:
    return lower(model, InputMode("float32"), Collector())


def exact_sums(graph: ir.Graph) -> int:
    """Layers that add integers up."""
    return sum(
        isinstance(layer, ir.BinaryMap) and isinstance(layer.result.encoding, ir.IntegerEncoding)
        for layer in graph.layers
    )


def test_random_models_are_exact_sums() -> None:
    """Against fractions: all terms are summed exactly, and the sum is rounded once."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        unit = float(np.float32(rng.uniform(0.1, 0.2)))
        scales = [unit * 2.0 ** int(n) for n in rng.integers(0, 3, int(rng.integers(3, 6)))]
        added = float(rng.integers(-9, 9)) / 16
        graph = lowered(
            sum_of(scales, between=[Add(const(added, 2))] if seed % 2 else [], extra_ops_on=3 if seed % 4 == 1 else 1)
        )
        assert exact_sums(graph) == len(scales) - 1
        x = rng.normal(0, 4, (16, *V)).astype(np.float32)
        codes = reference.encode_input(graph, x)
        outputs = reference.decode_output(graph, reference.run_layers(graph, codes)[-1]).ravel()
        for number, input_value in enumerate(x.ravel()):
            total = Fraction((-added if seed % 4 == 1 else added) if seed % 2 else 0)
            for n, scale in enumerate(scales, 1):
                code = max(-128, min(127, int(np.round(np.float32(input_value) / np.float32(scale)))))
                total += (-1 if n > 2 and n % 2 else 1) * code * Fraction(scale)
            expected = max(-128, min(127, round(float(np.float32(float(total))) / 0.5))) * 0.5
            assert outputs[number] == expected, (seed, number)


def test_it_fires_for_inner_sums() -> None:
    assert exact_sums(lowered(sum_of([0.3, 0.6, 1.2]))) == 2
    assert exact_sums(lowered(sum_of([0.25, 0.5, 1.0]))) == 1  # a float32 sum of two of three is exact as it is


@pytest.mark.parametrize(
    "model",
    [
        sum_of([0.3, 0.6]),
        sum_of([0.25, 0.5]),
        sum_of([0.3, [0.6, 0.6, 0.6, 1.2], 1.2]),
        sum_of([0.3, 0.6, 1.2], between=[Mul(const(3, 2))]),
        sum_of([0.3, 0.6, 1.2], between=[Activation("Abs")]),
    ],
    ids=["two tensors", "codes of one scale", "a scale for each channel", "a product", "a function"],
)
def test_it_does_not_fire(model: ir.Model) -> None:
    try:
        graph = lowered(model)
    except HlsgenError as error:  # a sum that is no exact one cannot go into another
        assert [d.code for d in error.diagnostics] == ["HG030"]  # noqa: PT017
        return
    assert exact_sums(graph) == 0
