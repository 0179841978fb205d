"""Layers of two to eight words of weights become distributed arithmetic: same integers, certified, predicted cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified
from image_models import Builder
from models import Net
from paths import needs_icarus

import hlsgen
from hlsgen.dataflow.units import MatVec, Node
from hlsgen.devices import devices
from hlsgen.verilog.sum_tables import SMALL_LUTS


def dense(signed: int = 1) -> onnx.ModelProto:
    rng = np.random.default_rng(5)
    net = Net((1, 12)).quant(signed=signed)
    net.linear(weight=rng.integers(-7, 8, (12, 10)).astype(np.float32), scale=1.0, bits=4.0)
    net.quant(scale=8.0, bits=3.0, signed=0)
    return net.linear(weight=rng.integers(-7, 8, (10, 4)).astype(np.float32), scale=1.0, name="fc1").model()


def windows() -> onnx.ModelProto:
    b = Builder(7)
    x = b.quant(b.input(1, 3, 6, 6, symbolic=False), 4)
    x = b.conv(x, 5, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return b.model(b.quant(x, 4))


def tables(build: hlsgen.Build) -> list[Node]:
    return [node for node in build.network.nodes if isinstance(node.unit, MatVec) and node.unit.sums is not None]


#: By words of weights: PE and SIMD of the layers. Two inputs at a time cost fewer six-input LUTs as products.
FOLDINGS = {2: ((5, 12), (2, 10)), 3: ((4, 12), (4, 4)), 5: ((2, 12), (4, 2)), 8: ((5, 3), (1, 5))}


@pytest.mark.sim
@needs_icarus
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "words, simulator, signed, options",
    [
        (2, "icarus", 1, {"device": "ecp5-25k"}),
        (3, "verilator", 0, {}),
        (5, "icarus", 0, {"device": "ecp5-25k", "clock_mhz": 150}),
        (8, "icarus", 1, {}),
    ],
)
def test_dense_layers(words: int, simulator: str, signed: int, options: dict[str, Any], tmp_path: Path) -> None:
    onnx.save(dense(signed), tmp_path / "model.onnx")
    names = ("fc", "fc1")
    folding = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in zip(names, FOLDINGS[words], strict=True)}
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(folding=folding, **options))
    units = [node.unit for node in tables(build)]
    assert [isinstance(unit, MatVec) and unit.folds for unit in units] == [words] * (
        1 if words == 5 and not options else 2
    )
    assert_verified(tmp_path / "out", simulator, 16)
    assert hlsgen.certify(tmp_path / "out").problems == []


def test_families_of_small_luts() -> None:
    """Families whose LUTs are counted by kind and have four inputs."""
    counted = {device.family for device in devices().values() if device.family.counted_as == device.family.name}
    assert {family.name for family in counted if family.lut_inputs == 4} == SMALL_LUTS


@pytest.mark.parametrize(
    "device, clock, words, inputs",
    [(None, 200, 2, 6), ("ecp5-25k", None, 2, 5), ("ecp5-25k", None, 8, 6), ("ecp5-25k", 150, 8, 6)],
)
def test_inputs_of_a_table(device: str | None, clock: float | None, words: int, inputs: int, tmp_path: Path) -> None:
    """As many inputs as a LUT has; for LUTs of four inputs the cheapest number. A target clock adds a register."""
    onnx.save(dense(), tmp_path / "model.onnx")
    folding = {name: {"pe": pe, "simd": simd} for name, (pe, simd) in zip(("fc", "fc1"), FOLDINGS[words], strict=True)}
    options = hlsgen.Options(folding=folding, device=device, clock_mhz=clock)
    units = [node.unit for node in tables(hlsgen.check(tmp_path / "model.onnx", options))]
    address = (words - 1).bit_length()
    shapes = {(unit.sums.first, unit.sums.cut) for unit in units if isinstance(unit, MatVec) and unit.sums}
    assert shapes == {(inputs - address, clock == 150)}


@pytest.mark.slow
@pytest.mark.sim
@needs_icarus
def test_windows(tmp_path: Path) -> None:
    onnx.save(windows(), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(target_cycles=180))
    assert len(tables(build)) == 1
    assert_verified(tmp_path / "out", "verilator", 8)
    assert hlsgen.certify(tmp_path / "out").problems == []


def test_tables_are_only_used_for_few_constant_words(tmp_path: Path) -> None:
    """No tables for loadable weights, for DSP blocks, or for many words."""
    onnx.save(dense(), tmp_path / "model.onnx")
    folding = {"fc": {"pe": 5, "simd": 6}, "fc1": {"pe": 1, "simd": 2}}
    without_tables: list[dict[str, object]] = [
        {"loadable": True},
        {"prefer": "dsp"},
        {"target": "hls"},
    ]
    for options in without_tables:
        build = hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(folding=folding, **options))  # type: ignore[arg-type]
        assert tables(build) == [], options
    nodes = tables(hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(folding=folding)))
    assert [node.layer for node in nodes] == ["fc"]
