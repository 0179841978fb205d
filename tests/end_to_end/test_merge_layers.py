"""Merged layers: one program with the model's integers, in fewer LUTs or cycles than a module for each layer."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import Net

import hlsgen
from hlsgen import ir
from hlsgen.diagnostics import HlsgenError
from hlsgen.interpreter.graph import run_layer
from hlsgen.ir.input_codes import input_ends

SEEDS = range(6)


def dense(seed: int, sizes: tuple[int, ...] = (7, 9, 6, 4), *, fine: bool = False) -> onnx.ModelProto:
    """Dense layers with a scale and a width for each input, biases and Relu, or uniform scales and signed codes."""
    rng = np.random.default_rng(seed)
    net = Net((1, sizes[0]))
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        bits = rng.integers(2, 6, (1, columns)).astype(np.float32)
        scale = 2.0 ** -rng.integers(0, 9 if fine else 3, (1, columns)).astype(np.float32)
        mixed = bool(seed % 2)
        net.quant(scale if mixed else 0.25, 0.0, bits if mixed else 4.0, signed=int(not n), narrow=0)
        weight = rng.integers(-7, 8, (columns, rows)) * (rng.random((columns, rows)) < 0.5)
        net.linear(weight=(weight * 0.25).astype(np.float32), scale=0.25, bits=5.0, name=f"fc{n}")
        if n < len(sizes) - 2:
            net.then("Add", rng.normal(0, 1, rows).astype(np.float32))
            net.then("Relu")
    return net.model()


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.sim
@pytest.mark.parametrize("seed", SEEDS)
def test_a_merged_core_has_the_model_s_integers(seed: int, tmp_path: Path) -> None:
    path = saved(dense(seed), tmp_path)
    ports = "plain" if seed % 3 else "packed"
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="codes", merge_layers=True, ports=ports))
    (layer,) = build.graph.layers
    assert isinstance(layer, ir.IntegerRows)
    assert layer.merged[0] == "fc0"
    assert hlsgen.certify(tmp_path / "out").ok
    oracle = "none" if seed % 2 else "auto"  # qonnx does not run a width for each element
    assert hlsgen.verify(tmp_path / "out", ["verilator" if seed == 1 else "icarus"], frames=60, oracle=oracle).ok


@pytest.mark.parametrize("seed", SEEDS)
def test_merged_layers_compute_what_the_layers_compute(seed: int, tmp_path: Path) -> None:
    """Sums of more than 2^15 values as well, whose low bits are left out before the table."""
    path = saved(dense(seed, (9, 8, 5), fine=True), tmp_path)
    graphs = [hlsgen.check(path, hlsgen.Options(input="codes", merge_layers=merges)).graph for merges in (False, True)]
    low, high = input_ends(graphs[0])
    codes = np.random.default_rng(seed).integers(low, high + 1, (500, len(low)))
    results = []
    for graph in graphs:
        values = codes
        for layer in graph.layers:
            values = run_layer(layer, [values])
        results.append(values)
    assert (results[0] == results[1]).all()


@pytest.mark.sim
def test_a_quantizer_before_the_dense_layers_is_merged(tmp_path: Path) -> None:
    path = saved(dense(2), tmp_path)
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="fixed:7,4", merge_layers=True))
    assert len(build.graph.layers) == 1
    assert hlsgen.certify(tmp_path / "out").ok
    assert hlsgen.verify(tmp_path / "out", ["icarus"], frames=40).ok


def test_layers_that_cannot_be_merged_are_named(tmp_path: Path) -> None:
    net = Net((1, 2, 6, 6))
    net.quant(0.25, 0.0, 4.0)
    net.then("MaxPool", kernel_shape=[2, 2], name="pool")
    path = saved(net.model(), tmp_path)
    with pytest.raises(HlsgenError) as caught:
        hlsgen.check(path, hlsgen.Options(input="codes", merge_layers=True))
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.node) == ("HG040", "pool")
    assert "dense layers and quantizers only" in problem.message


def test_cpp_has_no_merged_layers(tmp_path: Path) -> None:
    path = saved(dense(0), tmp_path)
    with pytest.raises(HlsgenError, match="--merge-layers"):
        hlsgen.check(path, hlsgen.Options(input="codes", merge_layers=True, target="hls"))


def test_a_large_program_is_refused(tmp_path: Path) -> None:
    """Its sums would not be derived again, and cost more than those of a module for each layer."""
    weight = np.random.default_rng(0).integers(-120, 121, (128, 64)).astype(np.float32)
    net = Net((1, 128)).quant(0.25, 0.0, 4.0, narrow=0).linear(weight=weight, scale=1.0, bits=8.0)
    with pytest.raises(HlsgenError, match="at most 20000 operations"):
        hlsgen.check(saved(net.model(), tmp_path), hlsgen.Options(input="codes", merge_layers=True))
