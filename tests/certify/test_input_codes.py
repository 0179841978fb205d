"""Codes that Min and Max before the input's quantizer exclude: the core, the checker, host code and stimuli agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified
from certified import messages
from host_code import self_tests
from models import Net
from paths import needs_icarus

import hlsgen
from hlsgen.certify.input_codes import input_codes
from hlsgen.certify.stream_contents import Elements
from hlsgen.dataflow import code_ranges
from hlsgen.interpreter.graph import encode_input
from hlsgen.ir.input_codes import input_ends
from hlsgen.simulation.directed import directed

pytestmark = pytest.mark.sweep

Array = Any
#: Bounds of five elements in units of the scale: inside, outside and between the codes -8..7.
LOW, HIGH = np.array([-8.0, -1.0, 0.0, -2.4, 3.0]), np.array([7.0, 2.0, 9.0, 2.6, 3.0])
LOWEST, HIGHEST = [-8, -1, 0, -2, 3], [7, 2, 7, 3, 3]


def bounded(scale: float = 0.5) -> onnx.ModelProto:
    rng = np.random.default_rng(7)
    net = Net((1, 5)).then("Min", (HIGH * scale).astype(np.float32)).then("Max", (LOW * scale).astype(np.float32))
    net.quant(scale=scale, bits=4.0, signed=1)
    net.linear(weight=rng.integers(-3, 4, (5, 6)).astype(np.float32), scale=1.0).then("Relu")
    net.quant(scale=2.0, bits=3.0, signed=0)
    return net.linear(weight=rng.integers(-3, 4, (6, 3)).astype(np.float32), scale=1.0, name="fc1").model()


def built(folder: Path, **options: Any) -> hlsgen.Build:
    onnx.save(bounded(), folder / "model.onnx")
    chosen = hlsgen.Options(**{"target_cycles": 1, "top": "top", **options})
    return hlsgen.build(folder / "model.onnx", folder / "core", chosen)


@pytest.mark.parametrize("scale", [0.5, 0.1, 3.0])
def test_codes_are_those_of_the_bounds(scale: float, tmp_path: Path) -> None:
    onnx.save(bounded(scale), tmp_path / "model.onnx")
    graph = hlsgen.check(tmp_path / "model.onnx").graph
    x = np.linspace(-12, 12, 4801, dtype=np.float32)[:, None].repeat(5, axis=1) * np.float32(scale)
    codes = encode_input(graph, x)
    for low, high in (input_ends(graph), input_codes(graph) or ()):
        assert (np.ravel(low) == codes.min(axis=0)).all()
        assert (np.ravel(high) == codes.max(axis=0)).all()
    if scale == 0.5:
        assert codes.min(axis=0).tolist() == LOWEST
        assert codes.max(axis=0).tolist() == HIGHEST


@pytest.mark.sim
@needs_icarus
def test_the_core_has_no_bits_for_other_codes(tmp_path: Path) -> None:
    build = built(tmp_path)
    manifest = json.loads((tmp_path / "core" / "manifest.json").read_text())
    assert manifest["input"]["element_ranges"] == {"low": LOWEST, "high": HIGHEST}
    low, high = Elements(build.graph).code_range(np.arange(5))
    assert (low.tolist(), high.tolist()) == (LOWEST, HIGHEST)
    codes = directed(build.graph, 60, 0).reshape(-1, 5)
    assert (codes >= LOWEST).all()
    assert (codes <= HIGHEST).all()
    assert_verified(tmp_path / "core", "icarus", 60)
    assert messages(tmp_path / "core") == []


@pytest.mark.parametrize("end", [0, 1])
def test_certify_sees_a_wrong_range(end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = code_ranges.input_range

    def narrower(graph: Any) -> Any:
        ends = right(graph)
        assert ends is not None
        return (ends[0] + np.array([3, 0, 0, 0, 0]) * (end == 0), ends[1] - np.array([3, 0, 0, 0, 0]) * (end == 1))

    monkeypatch.setattr(code_ranges, "input_range", narrower)
    built(tmp_path)
    assert messages(tmp_path / "core") != []


@pytest.mark.parametrize("key", ["low", "high"])
def test_certify_compares_the_stated_ranges(key: str, tmp_path: Path) -> None:
    built(tmp_path)
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["input"]["element_ranges"][key][1] += 1
    path.write_text(json.dumps(manifest))
    assert any("element_ranges" in message for message in messages(tmp_path / "core"))


def test_nan_is_the_lowest_code_of_its_element(tmp_path: Path) -> None:
    build = built(tmp_path)
    assert encode_input(build.graph, np.full((1, 5), np.nan, np.float32)).tolist() == [LOWEST]
    self_tests(tmp_path / "core", "top")
