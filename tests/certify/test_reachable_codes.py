"""Codes that elements can have: carried from layer to layer with a frame a cycle, and derived again by the checker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified
from certified import messages
from models import Net, newer
from paths import needs_icarus

import hlsgen
from hlsgen.certify import checker
from hlsgen.certify.reachable_codes import limit_codes, reachable_sums
from hlsgen.certify.stream_contents import Elements
from hlsgen.dataflow import adders, builder
from hlsgen.dataflow.code_ranges import code_ranges
from hlsgen.driver.schedule import plan
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Linear, Map

Array = Any


def narrow(seed: int = 3, dead: int = 3, activation: str = "Relu") -> onnx.ModelProto:
    """Two layers: channels with bounds of their own, of which some are always 0 and one is always 3."""
    rng = np.random.default_rng(seed)
    bounds = rng.integers(1, 15, 9).astype(np.float32)
    bounds[:dead] = 0
    net = Net((1, 8)).quant(scale=1.0, bits=4.0, signed=1)
    net.linear(weight=rng.integers(-3, 4, (8, 9)).astype(np.float32), scale=1.0, bits=4.0)
    net.then(activation)
    net.then("Min", bounds * 8)
    net.then("Max", np.where(np.arange(9) == 4, 24, 0).astype(np.float32))
    net.quant(scale=8.0, bits=4.0, signed=0)
    return net.linear(weight=rng.integers(-3, 4, (9, 5)).astype(np.float32), scale=1.0, name="fc1").model()


@pytest.fixture(autouse=True)
def _with_all_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead channels stay, whose codes have narrow ranges."""
    monkeypatch.setattr("hlsgen.driver.compile.plan_smallest", plan)


def built(model: onnx.ModelProto, folder: Path) -> hlsgen.Build:
    onnx.save(model, folder / "model.onnx")
    return hlsgen.build(folder / "model.onnx", folder / "core", hlsgen.Options(target_cycles=1, top="top"))


@pytest.mark.sim
@needs_icarus
def test_adders_have_the_bits_of_their_columns(tmp_path: Path) -> None:
    build = built(narrow(), tmp_path)
    text = (tmp_path / "core" / "rtl" / "top_fc1_adders.v").read_text()
    widths = {int(n): int(top) + 1 for top, n in re.findall(r"wire \[(\d+):0\] n(\d+)_0 = s_data", text)}
    position = next(i for i, layer in enumerate(build.graph.layers) if layer.name == "fc1")
    high = code_ranges(build.graph)[build.graph.layers[position].inputs[0]]
    assert high is not None
    bits = [int(v).bit_length() for v in high[1].ravel()]
    assert not {0, 1, 2} & set(widths)
    assert widths == {n: bits[n] for n in widths}
    assert min(widths.values()) < 4
    assert_verified(tmp_path / "core", "icarus", 16)
    assert messages(tmp_path / "core") == []


@pytest.mark.parametrize("seed", range(4))
def test_both_derivations_contain_every_code(seed: int, tmp_path: Path) -> None:
    build = built(narrow(seed, seed), tmp_path)
    graph, rng = build.graph, np.random.default_rng(seed)
    elements, ranges = Elements(graph), code_ranges(graph)
    codes = rng.integers(graph.input.type.lo, graph.input.type.hi + 1, (400, *graph.input.shape))
    values = reference.run_layers(graph, codes)
    for i, layer in enumerate(graph.layers):
        if isinstance(layer, Linear):
            elements.limit(i + 1, *reachable_sums(layer, elements))
        elif isinstance(layer, Map):
            limit_codes(layer, elements, i + 1)
        low, high = elements.code_range(elements.numbers[i + 1])
        reach = ranges[i + 1]
        assert reach is not None
        assert (np.broadcast_to(reach[0], layer.result.shape).ravel() == low).all()
        assert (np.broadcast_to(reach[1], layer.result.shape).ravel() == high).all()
        codes_of_layer = values[i].reshape(len(codes), -1)
        assert (codes_of_layer.min(axis=0) >= low).all()
        assert (codes_of_layer.max(axis=0) <= high).all()


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("module", [adders, builder])
def test_certify_sees_a_range_without_some_code(
    module: Any, end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong range in the generator, of columns or of functions: the checker has its own."""
    name = "column_ranges" if module is adders else "code_ranges"
    right = getattr(module, name)

    def moved(bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        half = (high - low + 1) // 2
        return (low + half * (end == 0), high - half * (end == 1))

    def wrong(*arguments: Any) -> Any:
        result = right(*arguments)
        return moved(result) if module is adders else [r and moved(r) for r in result]

    monkeypatch.setattr(module, name, wrong)
    built(narrow(), tmp_path)
    said = " ".join(messages(tmp_path / "core"))
    assert "does not fit" in said or "proven for" in said, said


def test_certify_reads_the_stated_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The codes of the type do not fit the build, if the checker's ranges are gone."""
    built(narrow(), tmp_path)
    monkeypatch.setattr(checker, "limit_codes", lambda *_: None)
    assert messages(tmp_path / "core")


@pytest.mark.parametrize("activation", ["Relu", "Elu", "Mish"])
def test_sums_are_at_least_0_if_a_column_is_constant(activation: str, tmp_path: Path) -> None:
    """A row is generated in two's complement for ranges that contain 0, but the constant 3 keeps it positive."""
    built(newer(narrow(1, 1, activation)), tmp_path)
    assert "{2{n29_1[7]}}, n29_1[6:0]" in (tmp_path / "core" / "rtl" / "top_fc1_adders.v").read_text()
    assert messages(tmp_path / "core") == []


def test_codes_of_a_function_that_is_not_known_to_be_monotone(tmp_path: Path) -> None:
    """A comparison gives 0 and 1 of 16 codes: the checker evaluates all inputs, as the generator knows its range."""
    rng = np.random.default_rng(5)
    net = Net((1, 8)).quant(scale=1.0, bits=4.0, signed=1)
    net.then("Greater", np.float32(2)).then("Cast", to=onnx.TensorProto.FLOAT).quant(scale=1.0, bits=4.0, signed=1)
    build = built(net.linear(weight=rng.integers(-3, 4, (8, 5)).astype(np.float32), scale=1.0).model(), tmp_path)
    assert build.graph.layers[0].result.type.bits == 4
    assert "wire [0:0] n0_0 = s_data[0];" in (tmp_path / "core" / "rtl" / "top_fc_adders.v").read_text()
    assert messages(tmp_path / "core") == []
