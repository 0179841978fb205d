"""Layers of one beat a frame become adders: the same integers in hardware, certified, in the predicted cycles."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from builds import assert_verified
from image_models import Builder
from models import Net
from paths import DATA, needs_icarus

import hlsgen


def dense(bits: float = 4.0, signed: int = 1) -> onnx.ModelProto:
    rng = np.random.default_rng(5)
    net = Net((1, 12)).quant(signed=signed)
    net.linear(weight=rng.integers(-7, 8, (12, 9)).astype(np.float32), scale=1.0, bits=bits)
    net.quant(scale=8.0, bits=3.0, signed=0)
    return net.linear(weight=rng.integers(-7, 8, (9, 4)).astype(np.float32), scale=1.0, name="fc1").model()


def windows() -> onnx.ModelProto:
    b = Builder(7)
    x = b.quant(b.input(1, 3, 6, 6, symbolic=False), 4)
    x = b.conv(x, 5, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return b.model(b.quant(x, 4))


def modules(folder: Path) -> list[str]:
    """The modules that are written for a layer."""
    return sorted(path.stem for path in (folder / "rtl").glob("*_adders.v"))


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("simulator", ["icarus", "verilator"])
@pytest.mark.parametrize("signed", [0, 1])
def test_dense_layers(simulator: str, signed: int, tmp_path: Path) -> None:
    onnx.save(dense(signed=signed), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(target_cycles=1, top="net"))
    assert build.timing.interval == 1
    assert modules(tmp_path / "out") == ["net_fc1_adders", "net_fc_adders"]
    assert_verified(tmp_path / "out", simulator, 16)
    assert hlsgen.certify(tmp_path / "out").problems == []


@pytest.mark.sim
@needs_icarus
def test_windows(tmp_path: Path) -> None:
    onnx.save(windows(), tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(target_cycles=36))
    assert len(modules(tmp_path / "out")) == 1
    assert_verified(tmp_path / "out", "icarus", 8)
    assert hlsgen.certify(tmp_path / "out").problems == []


@pytest.mark.sweep
def test_adders_are_only_used_for_constant_layers_of_one_beat(tmp_path: Path) -> None:
    """No adders for loadable weights, for DSP blocks, or if a vector has several beats."""
    onnx.save(dense(), tmp_path / "model.onnx")
    for n, (options, module_count) in enumerate(
        [
            (hlsgen.Options(target_cycles=1), 2),
            (hlsgen.Options(target_cycles=1, loadable=True), 0),
            (hlsgen.Options(target_cycles=1, prefer="dsp"), 0),
            (hlsgen.Options(folding={"fc": {"pe": 3, "simd": 12}}), 0),
        ]
    ):
        out = tmp_path / f"out{n}"
        hlsgen.build(tmp_path / "model.onnx", out, options)
        if n == 3:
            assert "model_fc_adders" not in modules(out)
        else:
            assert len(modules(out)) == module_count
        assert hlsgen.certify(out).ok


@pytest.mark.sweep
def test_the_same_bytes(tmp_path: Path) -> None:
    options = hlsgen.Options(target_cycles=1)
    first, second = (hlsgen.check(DATA / "floor_ceil.onnx", options).files for _ in range(2))
    assert any(re.fullmatch(r"rtl/floor_ceil_node_linear\w*_adders\.v", name) for name in first)
    assert first == second


def bits() -> onnx.ModelProto:
    """Windows of bits: a border is no bit."""
    b = Builder(3)
    x = b.bipolar(b.input(1, 2, 5, 5, symbolic=False))
    x = b.bipolar(b.conv(x, 16, kind="bipolar", kernel_shape=[3, 3], pads=[0, 0, 0, 0]))
    return b.model(b.conv(x, 3, kind="bipolar", kernel_shape=[1, 1]))


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("simulator, clock", [("icarus", None), ("verilator", None), ("icarus", 300)])
def test_windows_of_bits(simulator: str, clock: int | None, tmp_path: Path) -> None:
    """Agreements are counted, with a register after every counter too."""
    onnx.save(bits(), tmp_path / "model.onnx")
    # All of a window in a beat, which the search need not take.
    folding = {"Conv_2": {"pe": 16, "simd": 18}}
    options = hlsgen.Options(target_cycles=25, folding=folding, top="net", clock_mhz=clock)
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", options)
    assert len(list((tmp_path / "out" / "rtl").glob("*_counts.v"))) == 2
    assert build.timing.interval == 25
    assert_verified(tmp_path / "out", simulator, 12)
    assert hlsgen.certify(tmp_path / "out").problems == []
