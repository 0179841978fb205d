"""docs/own-testbench.md: its files, written as they are on the page, pass in Icarus Verilog."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT, needs_icarus

pytest.importorskip("cocotbext.axi", reason="cocotbext-axi is not installed: pip install cocotbext-axi")
PAGE = (ROOT / "docs" / "own-testbench.md").read_text(encoding="utf-8")


@pytest.mark.sim
@needs_icarus
@pytest.mark.slow
def test_the_bench_of_the_page(tmp_path: Path) -> None:
    vectors, bench, run = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    (system,) = re.findall(r"^```verilog\n(.*?)^```$", PAGE, re.M | re.S)
    files = {"vectors.py": vectors, "bench.py": bench, "run_bench.py": run, "system.v": system}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    builds = re.findall(r"^hlsgen (build .*)$", PAGE, re.M)
    assert len(builds) == 2
    for command in (*(f"-m hlsgen {build}" for build in builds), "vectors.py", "run_bench.py icarus"):
        result = subprocess.run(
            [sys.executable, *command.split()], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr
