"""Generated hardware in both simulators: values, cycles, stalls, reset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified
from image_models import Builder
from oracles import Qonnx
from paths import DATA, INPUT_TYPES, needs_icarus, shared_model
from random_graphs import datapath, perceptron

import hlsgen
from hlsgen.dataflow.units import Crop
from hlsgen.interpreter import graph as reference
from hlsgen.simulation.verilator_library import NativeCore
from hlsgen.testbench.stimuli import stimuli

pytestmark = pytest.mark.sim

SIMULATORS = [pytest.param("icarus", marks=needs_icarus), "verilator"]
INPUTS = [None, "fixed:12,5", "ufixed:16,3", "fixed:8,8", "fixed:32,10", "float32"]


REAL = {
    "public/zoo_tfc_1w1a": 64,
    "public/zoo_tfc_1w2a": 64,
    "public/zoo_tfc_2w2a": 64,
    "public/mlperf_kws_w3a3": 392,
    "public/chisel_bnn_simple": None,
    "public/chisel_sint_simple_noscale": None,
    "brevitas/jsc_mlp_w6a6_po2": 64,
    "brevitas/jsc_mlp_w4a4": 64,
}
#: Cases that `make test` omits: networks with the modules of others, and slow elaborations (half a minute) in Icarus.
LONG = {
    ("public/zoo_tfc_1w1a", "icarus"),
    ("public/zoo_tfc_1w2a", "icarus"),
    ("public/zoo_tfc_1w2a", "verilator"),
    ("public/zoo_tfc_2w2a", "icarus"),
    ("public/zoo_tfc_2w2a", "verilator"),
    ("public/mlperf_kws_w3a3", "icarus"),
    ("public/mlperf_kws_w3a3", "verilator"),
    ("brevitas/jsc_mlp_w6a6_po2", "icarus"),
    ("brevitas/jsc_mlp_w6a6_po2", "verilator"),
    ("brevitas/jsc_mlp_w4a4", "icarus"),
    ("brevitas/jsc_mlp_w4a4", "verilator"),
}


def _cases() -> Iterator[Any]:
    for (name, cycles), simulator in product(REAL.items(), ("icarus", "verilator")):
        marks = [pytest.mark.slow] if (name, simulator) in LONG else []
        yield pytest.param(name, cycles, simulator, marks=[*marks, *([needs_icarus] if simulator == "icarus" else [])])


@pytest.mark.cases(2)
@pytest.mark.parametrize("name,cycles,simulator", list(_cases()))
def test_real_models(name: str, cycles: int | None, simulator: str, tmp_path: Path) -> None:
    path = shared_model(name)
    options = hlsgen.Options(target_cycles=cycles, input=INPUT_TYPES.get(path.stem))
    build = hlsgen.build(path, tmp_path / "out", options)
    assert cycles is None or build.timing.interval <= cycles
    assert_verified(tmp_path / "out", simulator, 6 if "kws" in name else 40)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["bin_tern", "asym_channel_ts", "floor_ceil", "flatten_dropout_argmax"])
def test_brevitas_exports_end_to_end(name: str, tmp_path: Path) -> None:
    path = DATA / f"{name}.onnx"
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(target_cycles=40))
    x = np.random.default_rng(3).standard_normal((200, *build.graph.model.input_shape[1:])).astype(np.float32)
    result = hlsgen.run(tmp_path / "out", x, "verilator")
    assert np.array_equal(result.reshape(len(x), -1), Qonnx(onnx.load(path))(x))


@pytest.mark.cases(1)
@needs_icarus
@pytest.mark.parametrize("prefer", ["lut", "dsp"])
def test_products_in_blocks(prefer: str, tmp_path: Path) -> None:
    """Only if they are requested, with the same integers."""
    hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / "out", hlsgen.Options(prefer=prefer, target_cycles=40))
    assert (".DSP(25)" in (tmp_path / "out" / "rtl" / "floor_ceil.v").read_text()) == (prefer == "dsp")
    assert_verified(tmp_path / "out", "icarus", 12)
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.cases(1)
@needs_icarus
@pytest.mark.parametrize("seed", [4, *(seed for seed in range(24) if seed != 4)])
def test_random_datapaths(seed: int, tmp_path: Path) -> None:
    """Seed 4 has an input of which the highest code is no float32."""
    onnx.save(datapath(seed, 32 if seed % 2 else 8), tmp_path / "model.onnx")
    options = hlsgen.Options(input=INPUTS[seed % 6], lanes=1 + seed % 5)
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", options)
    assert_verified(tmp_path / "out", "icarus", 12, seed)


@pytest.mark.cases(1)
@needs_icarus
@pytest.mark.parametrize("seed", range(30))
def test_random_perceptrons_in_random_foldings(seed: int, tmp_path: Path) -> None:
    """Folding never changes a bit, and the cycles are always those predicted."""
    rng = np.random.default_rng(seed)
    onnx.save(perceptron(seed, powers=bool(seed % 2)), tmp_path / "model.onnx")
    layers = hlsgen.check(tmp_path / "model.onnx").network.folding["layers"]
    sizes = {r["name"]: (r["rows"], r["columns"]) for r in _rows(tmp_path) if "rows" in r}
    folding = {}
    for name in layers:
        pe, simd = (int(rng.choice([d for d in range(1, n + 1) if n % d == 0])) for n in sizes[name])
        folding[name] = {"pe": pe, "simd": simd}
    options = hlsgen.Options(
        folding=folding, reset_active_low=bool(seed % 3 == 0), input=INPUTS[(seed // 2) % 4] if seed % 4 else None
    )
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", options)
    assert_verified(tmp_path / "out", "icarus", 8, seed)


def _rows(tmp_path: Path) -> list[dict[str, object]]:
    build = hlsgen.check(tmp_path / "model.onnx")
    rows: list[dict[str, object]] = json.loads(build.files["manifest.json"])["layers"]
    return rows


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS[::-1])
def test_float32_input_of_a_network(simulator: str, tmp_path: Path) -> None:
    path = DATA / "bn_first_bn_last.onnx"
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="float32", target_cycles=30))
    assert_verified(tmp_path / "out", simulator, 12)
    x = np.random.default_rng(3).standard_normal((20, *build.graph.model.input_shape[1:])).astype(np.float32)
    assert np.array_equal(hlsgen.run(tmp_path / "out", x, simulator), Qonnx(onnx.load(path))(x))


@pytest.mark.slow
def test_backends_agree_on_special_floats(tmp_path: Path) -> None:
    onnx.save(datapath(0, 8), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(input="float32"))
    shape = build.graph.model.input_shape
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
    for value in values:
        x = np.full(shape, value, np.float32)
        assert np.array_equal(hlsgen.run(tmp_path / "out", x, "verilator"), hlsgen.run(tmp_path / "out", x))


def test_one_core_runs_twice(tmp_path: Path) -> None:
    """All beats of every frame are sent, also those after the last beat that the output needs."""
    b = Builder(0)
    x = b.quant(b.input(1, 1, 60, 6, symbolic=False), 4, channel=False)
    rows = (b.const([v], np.int64) for v in (0, 3, 2))
    b.conv(replace(x, name=b.node("Slice", x.name, *rows), shape=(1, 1, 3, 6)), 1, kernel_shape=[3, 3])
    onnx.save(b.model(replace(x, name=f"t{len(b.nodes) - 1}", shape=(1, 1, 1, 4))), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out")
    assert any(isinstance(node.unit, Crop) for node in build.network.nodes)
    codes = stimuli(build.network, 3, 1)
    with NativeCore(build, tmp_path / "out", tmp_path / "work") as core:
        first, second = core.run(codes), core.run(codes)
    assert np.array_equal(first, reference.run_layers(build.graph, codes)[-1])
    assert np.array_equal(first, second)
