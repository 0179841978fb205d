"""The example digits_lstm: PNG files of digits to classes."""

from __future__ import annotations

import importlib
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from paths import ROOT

EXAMPLE = ROOT / "examples" / "digits_lstm"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module classify.py of the example, with the module that it imports from its folder."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name in ("images", "classify"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("classify")


def test_filters_of_png(example: ModuleType, tmp_path: Path) -> None:
    """All five filters of PNG, row by row, undone: the file has differences of the pixels to the prediction."""
    pixels = np.random.default_rng(1).integers(0, 256, (28, 28))
    padded = np.pad(pixels, ((1, 0), (1, 0)))
    left, up, corner = padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    distances = [abs(left + up - corner - part) for part in (left, up, corner)]
    paeth = np.choose(np.argmin(distances, axis=0), (left, up, corner))
    kinds = np.arange(28) % 5
    predicted = np.choose(kinds[:, None], (0 * left, left, up, (left + up) // 2, paeth))
    rows = np.concatenate([kinds[:, None], (pixels - predicted) % 256], axis=1).astype(np.uint8)
    header = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    text = b"".join(struct.pack(">I", len(data)) + kind + data + bytes(4) for kind, data in chunks)
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + text)
    np.testing.assert_array_equal(example.read_png(tmp_path / "x.png"), pixels)


@pytest.mark.slow
def test_each_digit_is_recognized() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "HLSGEN_CHECK"}
    command = [sys.executable, str(EXAMPLE / "classify.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.splitlines()[1:] == [f"{digit}.png: {digit}, 100%" for digit in range(10)]
