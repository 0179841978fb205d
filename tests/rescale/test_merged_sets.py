"""Channels with one scale have one function in hardware, however far each of them reaches."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from certified import messages
from models import Net

import hlsgen
from hlsgen import rescale
from hlsgen.certify import quantizers
from hlsgen.ir.step_function import StepFunction

ROWS, COLUMNS = 8, 6
#: The rows with weights other than 0. The others are constant, and need no hardware.
VARYING = np.arange(ROWS) % 4 > 0


def model(scale: object, folder: Path) -> Path:
    """Codes of four bits through a layer whose rows reach differently far, Relu, and codes of four bits again."""
    weight = (np.arange(COLUMNS * ROWS).reshape(COLUMNS, ROWS) % 7 - 3).astype(np.float32) * 0.25
    weight *= VARYING
    net = Net((1, COLUMNS)).quant(0.25).linear(ROWS, COLUMNS, weight).then("Relu")
    net.quant(scale, bits=4.0, signed=0, name="q").linear(2, ROWS, name="last")
    onnx.save(net.model(), folder / "model.onnx")
    return folder / "model.onnx"


def function(path: Path, **options: Any) -> StepFunction:
    choices = hlsgen.check(path, hlsgen.Options(**options)).network.choices
    (found,) = (choice.function for choice in choices.values())
    assert found is not None
    return found


def code(x: int, scale: Fraction) -> int:
    return max(0, min(15, round(Fraction(x, 16) / scale)))


def test_one_scale_is_one_function(tmp_path: Path) -> None:
    """Differences between beats would need memories; separate lanes keep the intervals that each of them reaches."""
    path = model(0.375, tmp_path)
    apart, f = function(path, target_cycles=1), function(path, target_cycles=24)
    assert apart.sets > f.sets == 1
    assert (f.lo[0], f.hi[0]) == (apart.lo.min(), apart.hi.max())
    assert (f.index == 0).all()
    x = np.arange(f.lo[0], f.hi[0] + 1)
    assert f.evaluate(x[:, None])[:, 0].tolist() == [code(int(n), Fraction(3, 8)) for n in x]


def test_other_scales_are_other_functions(tmp_path: Path) -> None:
    scales = np.array([[0.375, 0.75, 0.375, 0.375, 0.75, 0.375, 0.5, 0.5]], np.float32)
    f = function(model(scales, tmp_path), target_cycles=24)
    assert f.sets == 3
    for place, scale in zip(f.index.tolist(), scales[0, VARYING].tolist(), strict=True):
        x = np.arange(f.lo[place], f.hi[place] + 1)
        column = f.take(np.array([place]), f.lo[[place]], f.hi[[place]]).evaluate(x[:, None])[:, 0]
        assert column.tolist() == [code(int(n), Fraction(scale)) for n in x]


def test_what_is_possible_for_each_channel_alone(tmp_path: Path) -> None:
    """All channels together have over 4096 inputs, too many for a lookup table; each alone has at most 3061."""
    weight = np.full((COLUMNS, ROWS), 0.25, np.float32) * (1 + np.arange(ROWS) // 4)
    weight[:, ::2] *= -1
    net = Net((1, COLUMNS)).quant(0.25, bits=8.0, signed=0).linear(ROWS, COLUMNS, weight)
    net.node("LeakyRelu", net.last, alpha=0.5).quant(12.7, bits=5.0, name="q").linear(2, ROWS, name="last")
    onnx.save(net.model(), tmp_path / "model.onnx")
    assert function(tmp_path / "model.onnx", target_cycles=24, realize={"q": "table"}).sets == 4
    f = function(tmp_path / "model.onnx", target_cycles=24)
    assert f.sets == 1
    assert f.hi[0] - f.lo[0] > 4096


def test_certify_does_not_believe_in_one_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of channels with two scales, even if what joins them says so on both sides."""
    path = model(np.array([[0.375, 0.75] * 4], np.float32), tmp_path)

    def all_as_one(f: StepFunction) -> StepFunction:
        first, lo, hi = np.zeros(1, np.int64), f.lo.min(keepdims=True), f.hi.max(keepdims=True)
        return replace(f.take(first, lo, hi), index=np.zeros_like(f.index))

    hlsgen.build(path, tmp_path / "core", hlsgen.Options(target_cycles=24))
    assert not messages(tmp_path / "core")
    monkeypatch.setattr(rescale, "merge_equal_sets", all_as_one)
    monkeypatch.setattr(quantizers, "merge_equal_sets", all_as_one)
    hlsgen.build(path, tmp_path / "wrong", hlsgen.Options(target_cycles=24))
    assert "have different constants" in " ".join(messages(tmp_path / "wrong"))
