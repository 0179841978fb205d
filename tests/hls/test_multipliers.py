"""DSP blocks of a C++ core, against the factors in its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import ROOT, shared_model

import hlsgen
from hlsgen.hls.multipliers import dsp_of

DIGITS_MLP = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def sizes(text: bytes, function: str) -> list[tuple[int, int]]:
    """PE and SIMD of each call of a function."""
    pattern = rf"hg::{function}<[^;]*?(\d+) /\* PE \*/,\s+(\d+) /\* SIMD \*/"
    return [(int(pe), int(simd)) for pe, simd in re.findall(pattern, text.decode())]


def test_products_by_weights(tmp_path: Path) -> None:
    """One block for each weight of a cycle, and none for thresholds."""
    options = hlsgen.Options(target="hls", target_cycles=256, realize={"": "thresholds"})
    build = hlsgen.build(DIGITS_MLP, tmp_path / "out", options)
    calls = sizes(build.files["hls/digits_mlp.cpp"], "mvu")
    assert len(calls) == 3
    total = sum(pe * simd for pe, simd in calls)
    assert f"at most {total} DSP blocks" in build.notes[0]
    assert sum(dsp_of(part.node) for part in build.cpp.parts) == total


@pytest.mark.slow
def test_softmax_and_products_of_two_streams(tmp_path: Path) -> None:
    """A share is a product of two significands of 24 bits, in two blocks of 25 x 18 bits."""
    build = hlsgen.build(shared_model("attention/attn_w4a4_qonnx"), tmp_path / "out", hlsgen.Options(target="hls"))
    by_function = {part.call.function: dsp_of(part.node) for part in build.cpp.parts}
    softmax = next(part for part in build.cpp.parts if "softmax" in part.call.function)
    assert dsp_of(softmax.node) == 2 * softmax.node.source.lanes
    ((pe, simd),) = set(sizes(build.files["hls/attn_w4a4_qonnx.cpp"], "dynamic_mvu")) or {(0, 0)}
    assert by_function["hg::dynamic_mvu"] == pe * simd > 0
