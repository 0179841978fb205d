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

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.interpreter import graph as reference

Array = NDArray[Any]


CASES: dict[str, tuple[list[float], str]] = {
    "powers of two": ([0.25, 0.125, 0.5], "Add Add"), "sums of layers": ([0, 0, 0], "Add Sub"),
    "a layer and two": ([0, 0.25, 0.125], "Add Add"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_codes_of_the_executor(name: str, tmp_path: Path) -> None:
    scales, ops = CASES[name]
    model = network(scales, ops, 0.5)
    x = samples(60)
    got = reference.evaluate(checked(model, tmp_path).graph, x).reshape(len(x), -1)
    assert np.array_equal(got, Qonnx(model)(x))


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
    got = reference.evaluate(checked(model, tmp_path).graph, x).reshape(len(x), -1)
    assert np.array_equal(got.ravel(), want)


@pytest.mark.sim
def test_hardware_and_proof(tmp_path: Path) -> None:
    onnx.save(network([0.3, 0.3, 0.3], "Add Sub"), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    assert_verified(tmp_path / "m", "icarus", 20)
    assert [layer.kind for layer in hlsgen.certify(tmp_path / "m").layers].count("merge") == 2


def test_scales_without_a_common_unit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match=r"HG030 .* without a quantizer"):
        checked(network([0.3, 0.17, 0.41], "Add Add"), tmp_path)
