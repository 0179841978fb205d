"""Powers of e as products of two words: wrong files, and powers that the proof does not cover, are not certified."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import changed, messages, sign
from score_models import attention

import hlsgen


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    mask = np.triu(np.full((3, 3), -1e9, np.float32), 1)
    onnx.save(attention((1, 3, 2), 0.1, mask="m = Add(s, k)", k=mask), folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "out", hlsgen.Options(top="top"))
    return folder / "out"


@pytest.mark.sweep
def test_wrong_parameters(built: Path) -> None:
    """Every number is decreased by one."""
    assert messages(built) == []
    layers = json.loads((built / "certificate.json").read_text())["layers"]
    (unit,) = [x for layer in layers for x in layer["instances"] if x["module"].startswith("hg_softmax")]
    assert unit["parameters"]["LOW"] > 0
    for name, value in unit["parameters"].items():
        if isinstance(value, int):
            with changed(built, str(unit["instance"]), name, 1 - value if value in (0, 1) else value - 1):
                assert messages(built), (name, value)


@pytest.mark.sweep
@pytest.mark.parametrize("tail", ["high", "low"])
def test_wrong_words(built: Path, tail: str) -> None:
    """The last bit of a word, its top bit, a word that is 0."""
    (path,) = (built / "rtl").glob(f"*_{tail}.mem")
    text = path.read_text()
    lines = text.split()
    digits, place = len(lines[0]), len(lines) // 2
    for word in (int(lines[place], 16) ^ 1, int(lines[place], 16) ^ 1 << 36, 0):
        path.write_text("\n".join([*lines[:place], f"{word:0{digits}x}", *lines[place + 1 :]]) + "\n")
        sign(built, f"rtl/{path.name}")
        assert any(re.search(r"nearest|mantissa|1/2|not the|the power at", text) for text in messages(built)), word
    path.write_text(text)
    sign(built, f"rtl/{path.name}")
    assert messages(built) == []


def test_wrong_mask(built: Path) -> None:
    """The mask words of the first, the second and the last element are changed."""
    (path,) = (built / "rtl").glob("*_mask.mem")
    text = path.read_text()
    lines = text.split()
    for place, change in ((0, 2), (1, 1), (len(lines) - 1, 2)):
        wrong = f"{int(lines[place], 16) ^ change:0{len(lines[place])}x}"
        path.write_text("\n".join([*lines[:place], wrong, *lines[place + 1 :]]) + "\n")
        sign(built, f"rtl/{path.name}")
        assert any("the mask has" in text for text in messages(built)), place
    path.write_text(text)
    sign(built, f"rtl/{path.name}")
    assert messages(built) == []
