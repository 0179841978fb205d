"""Tensors of higher rank: rows of vectors, per-channel quantizers before a Flatten, transposes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from oracles import Qonnx
from paths import needs_icarus
from random_graphs import DOMAIN, Graph

import hlsgen

pytestmark = pytest.mark.sim


def assert_equal(g: Graph, output: tuple[int, ...], tmp_path: Path, **options: object) -> None:
    """Builds, verifies in Icarus, and compares 40 samples with qonnx."""
    model = g.model(output)
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(**options))  # type: ignore[arg-type]
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], 8)
    assert verdict.ok, verdict
    shape = build.graph.model.input_shape
    x = (np.random.default_rng(1).integers(-40, 40, (40, *shape[1:])) / 8).astype(np.float32)
    expected = Qonnx(model)(x)
    assert np.array_equal(hlsgen.run(tmp_path / "out", x, "icarus").reshape(40, -1), expected)


@pytest.mark.cases(1)
@needs_icarus
@pytest.mark.parametrize("input_", [None, "fixed:10,7"])
def test_linear_layers_over_rows(input_: str | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    g = Graph((1, 5, 8))
    g.quant(0.25, 0.0, 5.0, signed=1, narrow=0)
    g.then("MatMul", rng.integers(-3, 4, (8, 6)))
    g.then("Add", rng.integers(-9, 9, (1, 1, 6)) / 4)
    g.quant(np.array([0.5, 1, 2, 0.3, 0.7, 1.1]).reshape(1, 1, 6)[..., :1], 0.0, 3.0, signed=0, narrow=0)
    g.then("MatMul", rng.integers(-3, 4, (6, 3)))
    assert_equal(g, (1, 5, 3), tmp_path, input=input_, target_cycles=20)


@pytest.mark.cases(1)
@needs_icarus
@pytest.mark.parametrize("input_", [None, "fixed:10,7", "float32"])
def test_channels_before_a_flatten(input_: str | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    g = Graph((1, 3, 2, 4))
    g.then("BatchNormalization", [1.0, -2.0, 0.5], [0.1, 0.2, -0.3], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    g.quant(0.25, 0.0, 4.0, signed=1, narrow=1)
    g.then("Flatten", axis=1)
    g.then("MatMul", rng.integers(-3, 4, (24, 5)))
    g.then("BipolarQuant", 1.0, domain=DOMAIN)
    g.then("MatMul", rng.choice([-1, 1], (5, 2)))
    assert_equal(g, (1, 2), tmp_path, input=input_, target_cycles=16)


@needs_icarus
def test_transposes_cost_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    g = Graph((1, 4, 6))
    g.then("Transpose", perm=[0, 2, 1])
    g.quant(0.5, 0.0, 4.0, signed=1, narrow=0)
    g.then("Reshape")
    g.nodes[-1].input.append(g.const([1, 24], np.int64))
    g.then("MatMul", rng.integers(-2, 3, (24, 6)))
    g.quant(np.full((1, 6), 0.5), 0.0, 4.0, signed=1, narrow=0)
    g.then("Unsqueeze")
    g.nodes[-1].input.append(g.const([2], np.int64))
    g.then("Transpose", perm=[0, 2, 1])
    g.then("MatMul", rng.integers(-2, 3, (6, 2)))
    assert_equal(g, (1, 1, 2), tmp_path, input="fixed:8,5", target_cycles=24)


def test_a_transpose_that_needs_a_buffer(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    g = Graph((1, 4, 6))
    g.quant(0.5, 0.0, 4.0, signed=1, narrow=0)
    g.then("MatMul", rng.integers(-2, 3, (6, 6)))
    g.quant(0.5, 0.0, 4.0, signed=1, narrow=0)
    g.then("Transpose", perm=[0, 2, 1])
    g.then("MatMul", rng.integers(-2, 3, (4, 2)))
    assert_equal(g, (1, 6, 2), tmp_path, input="fixed:8,5", target_cycles=24)
