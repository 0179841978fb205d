"""Paths of models that tests use, and simulators that are installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "models"

#: Input types for models of which the file does not say any, by the stem of its name.
INPUT_TYPES = {"no_input_quant": "fixed:9,9", "chisel_bnn_simple": "fixed:9,9"}

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")


def shared_model(name: str) -> Path:
    """A model that does not ship with the project; skips the test where it is absent."""
    path = SHARED / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path
