"""The kinds of units: a new unit cannot be forgotten anywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT


@pytest.mark.slow
def test_a_new_unit_needs_all_its_decisions(tmp_path: Path) -> None:
    """mypy names every file in which it has to be handled."""
    shutil.copytree(ROOT / "hlsgen", tmp_path / "hlsgen", ignore=shutil.ignore_patterns("__pycache__"))
    units = tmp_path / "hlsgen" / "dataflow" / "units.py"
    text = units.read_text()
    assert text.count("Unit = (\n    Port\n") == 1
    new = "@dataclass(frozen=True)\nclass Stranger:\n    pass\n\n\nUnit = (\n    Port\n    | Stranger\n"
    units.write_text(text.replace("Unit = (\n    Port\n", new))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "-p", "hlsgen"]
    mypy = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    unhandled = re.findall(r"^hlsgen/(\S+):\d+: error: .*\"Stranger\"; expected \"Never\"", mypy.stdout, re.MULTILINE)
    assert set(unhandled) == {
        "dataflow/units.py",
        "dataflow/flow.py",
        "verilog/unit_table.py",
        "hls/binding/units.py",
    }, mypy.stdout + mypy.stderr
    assert len(unhandled) == 4
