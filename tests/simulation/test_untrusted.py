"""Builds of strangers: changed files are not executed; nothing runs forever or writes outside its folders."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import mlp, save
from paths import needs_icarus

import hlsgen
from hlsgen.diagnostics import Diagnostic, HlsgenError
from hlsgen.simulation import child_process, cocotb_runner, core_copy, verify

X = np.zeros((2, 4), np.float32)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    hlsgen.build(save(mlp().model(), folder / "m.onnx"), folder / "out", hlsgen.Options(input="fixed:8,4"))
    return folder / "out"


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def insert(core: Path, statement: str) -> None:
    """Puts a statement into the top module."""
    top = core / "rtl" / "m.v"
    top.write_text(top.read_text().replace("endmodule", f"{statement}\nendmodule"))


def evil(core: Path) -> Path:
    """Makes the top module write a file; returns that file."""
    proof = core.parent / "executed"
    insert(core, f'integer opened;\ninitial opened = $fopen("{proof}", "w");')
    return proof


@pytest.mark.sim
@needs_icarus
def test_changed_files_are_not_executed(core: Path) -> None:
    proof = evil(core)
    verdict = hlsgen.verify(core)
    assert (verdict.ok, verdict.changed, verdict.simulators) == (False, ["rtl/m.v"], {})
    for backend in ("icarus", "verilator"):
        for action in (hlsgen.run, hlsgen.layers):
            with pytest.raises(HlsgenError, match=r"HG051 rtl/m\.v.*--allow-changed"):
                action(core, X, backend)
    assert not proof.exists()
    hlsgen.run(core, X, "icarus", allow_changed=True)
    assert proof.exists()


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", ["files.f", "tb/run.py", "tb/test_top.py", "tb/Makefile", "tb/config.json", "rtl/new.vh"]
)
def test_every_file_stops_the_simulation(name: str, core: Path) -> None:
    with open(core / name, "a") as stream:
        stream.write("\n")
    verdict = hlsgen.verify(core, ["icarus"])
    assert (verdict.ok, verdict.changed, verdict.simulators) == (False, [name], {})
    with pytest.raises(HlsgenError, match="HG051"):
        hlsgen.run(core, X, "verilator")


def test_a_file_that_does_not_belong_to_the_build_stops_the_simulation(core: Path) -> None:
    (core / "rtl" / "notes.txt").write_text("mine")
    with pytest.raises(HlsgenError, match=r"HG051 rtl/notes\.txt: does not belong to the build\. Move it away"):
        hlsgen.run(core, X, "icarus")


@pytest.mark.sim
@needs_icarus
def test_a_file_changed_after_the_comparison_is_not_simulated(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated files are those that were compared."""
    proof, compare = core.parent / "executed", core_copy.changes

    def then_change(files: Mapping[str, bytes], directory: Path, hint: str = "") -> list[Diagnostic]:
        changed = compare(files, directory, hint)
        if not changed:
            evil(core)
        return changed if "executed" not in (core / "rtl" / "m.v").read_text() else []

    monkeypatch.setattr(core_copy, "changes", then_change)
    monkeypatch.setattr(verify, "changes", then_change)
    assert hlsgen.verify(core, ["icarus"], frames=4).simulators["icarus"].ok
    hlsgen.run(core, X, "icarus")
    assert "executed" in (core / "rtl" / "m.v").read_text()
    assert not proof.exists()


@pytest.mark.sim
@needs_icarus
def test_the_cut_of_a_layer_is_written_into_its_folder_only(core: Path) -> None:
    memory = next(iter(sorted((core / "rtl").glob("*.mem"))))
    words = memory.read_text().split()
    memory.write_text("\n".join(f"{int(word, 16) ^ 1:0{len(word)}x}" for word in words) + "\n")
    foreign, home = core.parent / "foreign", core.parent
    (foreign / "q0").mkdir(parents=True)
    (foreign / "q0" / "precious").write_text("mine")
    (core / "divergence").symlink_to(foreign)
    contents = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for folder in (foreign, core / "divergence", core / "files.f"):
        with pytest.raises(HlsgenError, match=r"HG040.*--cut"):
            hlsgen.verify(core, ["icarus"], allow_changed=True, cut=folder)
    divergence = hlsgen.verify(core, ["icarus"], 20, allow_changed=True, cut=home / "cut").first_divergence
    assert divergence
    assert divergence["layer"] == "q0"
    assert divergence["cut"] == str(home / "cut")
    assert {path: path.read_bytes() for path in contents} == contents
    command = [sys.executable, str(home / "cut" / "tb" / "run.py"), "--sim", "icarus"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "expected" in ended.stdout + ended.stderr


# --------------------------------------------------------------------------- simulations that do not end


def soon(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[int]:
    """Limits the time of every tool; returns the process groups that are started."""
    groups: list[int] = []

    class Recorded(subprocess.Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            groups.append(self.pid)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.setattr(cocotb_runner, "COMPILE_SECONDS", seconds)
    monkeypatch.setattr(cocotb_runner, "SECONDS_A_BYTE", 0)
    monkeypatch.setattr(cocotb_runner, "SLACK", 0)
    return groups


def assert_gone(groups: list[int]) -> None:
    """No process of these groups runs, after a moment in which killed processes end. Zombies do not count."""
    end = time.monotonic() + 10
    while (remaining := running(groups)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not remaining


def running(groups: list[int]) -> list[int]:
    """The groups with a process that is not a zombie."""
    running_groups = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(group) in groups and state != "Z":
                running_groups.append(int(group))
    return running_groups


@pytest.mark.sim
@needs_icarus
def test_a_simulation_without_end_is_ended(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(core, "initial while (1);")
    groups = soon(monkeypatch, 6)
    with pytest.raises(HlsgenError, match="HG053 icarus: the simulation did not end within 6 s"):
        hlsgen.verify(core, ["icarus"], 4, allow_changed=True)
    assert groups
    assert_gone(groups)


@pytest.mark.sim
def test_a_compiled_core_that_crashes_is_reported(core: Path) -> None:
    """It runs in a child process: this process continues."""
    insert(core, 'initial $c("abort();");')
    with pytest.raises(HlsgenError, match="HG053 verilator: the simulation failed"):
        hlsgen.run(core, X, "verilator", allow_changed=True)


def test_the_time_limit_follows_the_cycles(built: Path) -> None:
    build = hlsgen.check(built / "model.onnx")
    few, many = (
        cocotb_runner.time_limit(build.network, build.timing, build.files, frames, "icarus")
        for frames in (4, 1_000_000)
    )
    assert 1200 < few < 3600
    cycles = 1_000_000 * build.timing.interval
    assert many > cycles / 10_000  # no simulator is as slow as that on so small a core


SCRIPT = """
import os, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started without
from hlsgen.simulation.child_process import run_tool, work_folder
with work_folder("icarus") as work:
    command = ["sh", "-c", "sleep 1000 & echo $$ > group; sleep 1000"]
    run_tool(command, work, os.environ, "icarus", 1000, "it")
"""


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.sweep
def test_a_signal_ends_all_processes(number: signal.Signals, code: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.DEVNULL
    )
    group_files: list[Path] = []
    end = time.monotonic() + 60
    while not (group_files and group_files[0].read_text()) and time.monotonic() < end:
        time.sleep(0.05)
        group_files = list(tmp_path.glob("hlsgen-*/group"))
    group = int(group_files[0].read_text())
    process.send_signal(number)
    assert process.wait(30) in (code, -number)
    assert_gone([group])
    assert list(tmp_path.iterdir()) == []


def test_endless_output_is_not_kept(tmp_path: Path) -> None:
    command = ["sh", "-c", "head -c 30000000 /dev/zero; echo; echo the end"]
    ended = child_process.run_tool(command, tmp_path, os.environ, "icarus", 60, "it")
    assert ended.log.endswith("the end\n")
    assert len(ended.log) <= child_process.MAX_LOG


# --------------------------------------------------------------------------- tools that fail


def message(error: HlsgenError) -> str:
    (diagnostic,) = error.diagnostics
    assert "\n" not in diagnostic.message
    assert "Traceback" not in str(diagnostic)
    assert diagnostic.hint
    return str(diagnostic)


def tools(folder: Path, *names: str, **programs: str) -> str:
    """A PATH of these tools and of these scripts only."""
    folder.mkdir()
    for name in ("sh", "env", "perl", "make", "python3", "uname", *names):
        real = shutil.which(name)
        if real:
            (folder / name).symlink_to(real)
    for name, text in programs.items():
        script = folder / {"gxx": "g++", "cxx": "c++"}.get(name, name)
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    return str(folder)


def test_a_missing_vvp_is_reported(core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", iverilog="exit 0"))
    with pytest.raises(HlsgenError) as refused:
        hlsgen.run(core, X, "icarus")
    assert "HG052 icarus: vvp is not on PATH" in message(refused.value)


@pytest.mark.sim
@pytest.mark.parametrize(
    "text, shown",
    [
        ("echo 'x.cpp: error: out of ideas' >&2; exit 1", "error: out of ideas"),
        ("echo 'cannot write /tmp/x.o: No space left on device' >&2; exit 1", "Set TMPDIR"),
        ("exit 3", "HLSGEN_DEBUG=1"),
    ],
)
def test_a_broken_compiler_is_reported(
    text: str, shown: str, core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", gxx=text, cxx=text))
    monkeypatch.delenv("OBJCACHE", raising=False)
    with pytest.raises(HlsgenError) as refused:
        hlsgen.run(core, X, "verilator")
    assert "HG053 verilator" in message(refused.value)
    assert shown in message(refused.value)


@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("text", ["echo 'vvp: cannot allocate' >&2; exit 1", "kill -9 $$"])
def test_a_broken_simulator_is_reported(text: str, core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", "iverilog", vvp=text))
    with pytest.raises(HlsgenError) as refused:
        hlsgen.run(core, X, "icarus")
    assert "HG053 icarus" in message(refused.value)


@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_full_disk_is_reported(place: str, core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((tempfile, "mkdtemp", full) if place == "folder" else (Path, "write_bytes", full)))
    for backend in ("icarus", "verilator"):
        with pytest.raises(HlsgenError) as refused:
            hlsgen.run(core, X, backend)
        assert "No space left on device" in message(refused.value)
        assert "TMPDIR" in message(refused.value)


@pytest.mark.sweep
def test_a_temporary_folder_that_make_cannot_handle_is_reported(
    core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a b", "a:b", "a'b", 'a"b', "a\nb", "a#b", "a$b"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        with pytest.raises(HlsgenError) as refused:
            hlsgen.run(core, X, "verilator")
        assert "Set TMPDIR" in message(refused.value)


@pytest.mark.sim
def test_the_shipped_testbench_reports_a_folder_that_make_cannot_handle(core: Path, tmp_path: Path) -> None:
    core.rename(tmp_path / "a b'c")
    command = [sys.executable, str(tmp_path / "a b'c" / "tb" / "run.py"), "--sim", "verilator"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "move or rename the folder" in ended.stderr


@pytest.mark.sim
@needs_icarus
def test_a_build_may_have_any_name(core: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a b'c:d\"e\nf$(g)#h\\i"
    core.rename(odd)
    assert hlsgen.verify(odd, ["icarus"], 4).ok
    assert np.array_equal(hlsgen.run(odd, X, "verilator"), hlsgen.run(odd, X))
