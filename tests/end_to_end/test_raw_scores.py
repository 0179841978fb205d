"""Softmax of raw scores, sums of products: against executors, certified, and in simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from builds import assert_verified
from paths import shared_model
from score_models import attention

import hlsgen
from hlsgen.dataflow.softmax_unit import TABLE
from hlsgen.dataflow.units import SoftmaxUnit


def unit_of(build: hlsgen.Build) -> SoftmaxUnit:
    return next(node.unit for node in build.network.nodes if isinstance(node.unit, SoftmaxUnit))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attn_w8a8_rawscore_qonnx", "mha_brevitas_w8a8_qonnx"])
def test_as_brevitas_exports_it(name: str, tmp_path: Path) -> None:
    """Unmodified: built and certified, and all codes equal qonnx's, or are explained."""
    build = hlsgen.build(shared_model(f"attention/{name}"), tmp_path / "out")
    assert len(unit_of(build).powers) == 261121
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", [], 12)
    assert verdict.ok
    assert verdict.oracle is not None
    assert verdict.oracle.ran.startswith("qonnx")


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", [7, *(seed for seed in range(40) if seed != 7)])
def test_against_executors(seed: int, tmp_path: Path) -> None:
    """Seed 7 has a difference that only exact scores explain, after a factor and a node that moves them.

    Differences are explained with the exact number. Some powers are 0, or subnormal, in every other case."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 4)), int(rng.integers(2, 9)), int(rng.choice([2, 4, 8, 16]))
    proto = attention(
        shape,
        float(rng.uniform(0.01, 0.05)) * (8 if seed % 2 else 1),
        str(rng.choice(["Mul", "Div"])),
        quant=("QDQ", "QONNX")[seed // 2 % 2],
        share=float(rng.uniform(0.5, 2)) / 255,
    )
    onnx.save(proto, tmp_path / "m.onnx")
    unit = unit_of(hlsgen.build(tmp_path / "m.onnx", tmp_path / "out"))
    assert (unit.factors is not None) == (len(unit.powers) + unit.closed > TABLE)
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", [], 24, seed)
    assert verdict.ok, verdict.oracle


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(4))
def test_hardware(seed: int, tmp_path: Path) -> None:
    """Equal in simulation, with stalls, in the cycles that were predicted."""
    onnx.save(attention((2, 3, 2), (0.15, 0.05)[seed // 2]), tmp_path / "m.onnx")
    folding = {"matmul3": {"pe": (1, 3)[seed % 2], "simd": 2}}
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(folding=folding))
    assert_verified(tmp_path / "out", ("icarus", "verilator")[seed % 2], 8)
