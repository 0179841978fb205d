"""`simulate`: one module of the library, built and tested in a simulator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator, get_runner
from streams import RTL, Pipeline, Stream
from verilated import POWER_UP, tool_environment

from hlsgen.simulation.verilator_library import SPLIT

HERE = Path(__file__).resolve().parent
#: Arguments of a Verilator program that randomize registers at power-up.
RANDOM = ["+verilator+rand+reset+2", "+verilator+seed+11"]
#: Checks the Model after every pass, and every Graph (docs/diagnostics.md, HG098). Subprocesses inherit it.
os.environ["HLSGEN_CHECK"] = "1"
Simulate = Callable[..., None]


class TopVerilator(Verilator):
    """cocotb's runner, with only the ports and signals of the top module visible."""

    def _build_command(self):  # type: ignore[no-untyped-def]
        commands = super()._build_command()
        return [[word for word in command if word != "--public-flat-rw"] for command in commands]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as simulations."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("sim")


@pytest.fixture
def simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Fixture: a function that builds `module` and runs stream_cocotb.py on it. It fails with the log."""
    environment = tool_environment()
    for name in ("PATH", "OBJCACHE", "MAKEFLAGS"):
        if name in environment:
            monkeypatch.setenv(name, environment[name])
    monkeypatch.syspath_prepend(str(HERE))

    def run(
        simulator: str,
        module: str,
        parameters: Mapping[str, object],
        job: Stream | Pipeline,
        memories: Mapping[str, str] | None = None,
    ) -> None:
        """`memories`: files for the folder of the simulation. They may include a module outside the library."""
        for name, text in (memories or {}).items():
            (tmp_path / name).write_text(text)
        config = tmp_path / "job.json"
        config.write_text(json.dumps(job.job()))
        generated_module = tmp_path / f"{module}.v"
        sources = [generated_module if generated_module.name in (memories or {}) else RTL / generated_module.name]
        options = ["-y", str(RTL)]
        if simulator == "verilator":
            control = tmp_path / "visible.vlt"
            control.write_text(f'`verilator_config\npublic_flat_rw -module "{module}" -var "*"\n')
            sources.insert(0, control)
            options += ["-Wno-fatal", *POWER_UP, *SPLIT, "-CFLAGS", "-O1"]
        else:
            options.append("-g2005")
        runner = TopVerilator() if simulator == "verilator" else get_runner(simulator)
        log = tmp_path / "log"
        try:
            runner.build(
                sources=sources,
                hdl_toplevel=module,
                parameters=parameters,
                build_dir=tmp_path / "build",
                build_args=options,
                timescale=("1ns", "1ps"),
                log_file=log,
            )
            log = tmp_path / "test.log"
            results = runner.test(
                hdl_toplevel=module,
                test_module="stream_cocotb",
                build_dir=tmp_path / "build",
                test_dir=tmp_path,
                plusargs=RANDOM if simulator == "verilator" else [],
                extra_env={"STREAM_JOB": str(config)},
                log_file=log,
            )
            tests, failed = get_results(results)
        except (SystemExit, RuntimeError) as error:
            pytest.fail(f"{error}\n{log.read_text()}")
        if failed or not tests:
            pytest.fail(log.read_text())

    return run


@pytest.fixture
def cocotb_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Fixture: a function that builds a module and runs its *_cocotb.py on it, or the one named `bench`."""
    for name in ("PATH", "OBJCACHE", "MAKEFLAGS"):
        if name in (env := tool_environment()):
            monkeypatch.setenv(name, env[name])
    monkeypatch.syspath_prepend(str(HERE))

    def run(
        simulator: str,
        module: str,
        parameters: Mapping[str, object],
        job: Mapping[str, Any],
        tests: int,
        bench: str | None = None,
        text: str | None = None,
    ) -> None:
        """`text`: Verilog of a module outside the library. `bench`: the Python module with the tests."""
        (tmp_path / "job.json").write_text(json.dumps(job))
        source = RTL / f"{module}.v"
        if text is not None:
            source = tmp_path / f"{module}.v"
            source.write_text(text)
        runner = get_runner(simulator)
        options = ["-Wno-fatal", *POWER_UP, *SPLIT, "-CFLAGS", "-O1"] if simulator == "verilator" else ["-g2005"]
        log = tmp_path / "build.log"
        try:
            runner.build(
                sources=[source],
                hdl_toplevel=module,
                parameters=parameters,
                build_dir=tmp_path / "build",
                build_args=["-y", str(RTL), *options],
                timescale=("1ns", "1ps"),
                log_file=log,
            )
            log = tmp_path / "test.log"
            results = runner.test(
                hdl_toplevel=module,
                test_module=bench or f"{module.removeprefix('hg_').removesuffix('_axi')}_cocotb",
                build_dir=tmp_path / "build",
                test_dir=tmp_path,
                plusargs=RANDOM if simulator == "verilator" else [],
                extra_env={"AXI_JOB": str(tmp_path / "job.json")},
                log_file=log,
            )
        except (SystemExit, RuntimeError) as error:
            pytest.fail(f"{error}\n{log.read_text()}")
        text = log.read_text()
        assert get_results(results)[1] == 0, text
        assert f"PASS={tests} " in text, text

    return run
