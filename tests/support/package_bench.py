"""A module of a package in Icarus, with a bench of cocotb."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest


def run_bench(top: str, bench: str, package: Path, job: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the tests of `bench`, a Python module next to the calling tests. It finds `job` in the JSON file that the
    environment variable BENCH_JOB names. Skips without cocotbext-axi.
    """
    pytest.importorskip("cocotbext.axi", reason="cocotbext-axi is not installed: pip install cocotbext-axi")
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "packaging"))
    (package / "job.json").write_text(json.dumps(job))
    runner, rtl = get_runner("icarus"), package / "rtl"
    runner.build(
        sources=sorted(rtl.glob("*.v")),
        hdl_toplevel=top,
        build_dir=rtl,
        build_args=["-g2005"],
        timescale=("1ns", "1ps"),
        log_file=package / "build.log",
    )
    results = runner.test(
        hdl_toplevel=top,
        test_module=bench,
        build_dir=rtl,
        test_dir=rtl,
        extra_env={"BENCH_JOB": str(package / "job.json")},
        log_file=package / "test.log",
    )
    assert get_results(results) == (1, 0), (package / "test.log").read_text()


def complaints(top: str, package: Path) -> list[str]:
    """The warnings of Icarus about module `top` of a package; its files must compile."""
    command = ["iverilog", "-g2005", "-Wall", "-t", "null", "-s", top, *map(str, sorted((package / "rtl").glob("*.v")))]
    done = subprocess.run(command, cwd=package / "rtl", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if f"{top}.v" in line and "timescale" not in line]
