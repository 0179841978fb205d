"""Paths of models that tests use, and simulators that are installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "models"

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")


def shared_model(name: str) -> Path:
    """A model that does not ship with the project; skips the test where it is absent."""
    path = SHARED / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path
