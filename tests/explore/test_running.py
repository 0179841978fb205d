"""A sweep: its numbers equal the estimates of builds, nothing is computed twice, and results survive any
interruption."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from models import quantizer, save
from paths import ROOT
from sweeps import Counting, network, told

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.devices import device
from hlsgen.driver.compile import device_estimate
from hlsgen.driver.summary import estimate
from hlsgen.explore import running, work, workers
from hlsgen.explore.running import place_of
from hlsgen.synthesis.result import Synthesis

CNN = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return network(tmp_path)


@pytest.mark.sweep
def test_numbers_are_those_of_builds(net: Path) -> None:
    points = hlsgen.explore(net, points=4, jobs=1)
    assert len(points) == 12
    for point in points:
        build = hlsgen.check(net, point.options)
        expected = estimate(build)
        assert (point.interval, point.latency) == (build.timing.interval, build.timing.latency)
        assert point.counts == {kind: expected[kind] for kind in ("lut", "ff", "bram", "dsp")}
        assert point.frames_per_second == 200e6 / point.interval
        words = point.flags.split()
        names = [name for name in ("target_cycles", "prefer", "weights") if name in point.as_dict()["options"]]
        flags = [(f"--{name.replace('_', '-')}", str(getattr(point.options, name))) for name in names]
        assert words == [word for flag in flags for word in flag]


@pytest.mark.sweep
def test_numbers_on_a_device_are_those_of_builds(net: Path) -> None:
    place = place_of("ice40-up5k", None)
    for point in hlsgen.explore(net, device="ice40-up5k", points=3, jobs=1):
        assert point.counts == device_estimate(hlsgen.check(net, point.options), device("ice40-up5k"))
        assert point.frames_per_second == place.clock_mhz * 1e6 / point.interval
        assert point.share == max(point.lut / 5280, point.ff / 5280, point.bram / 30, point.dsp / 8)
    assert place.clock_mhz == device("ice40-up5k").clock_mhz
    assert place_of("ice40-up5k", 33.0).clock_mhz == 33.0


def test_quantizers(tmp_path: Path) -> None:
    points = hlsgen.explore(save(quantizer().model(), tmp_path / "q.onnx"), jobs=1)
    assert {point.interval for point in points} == {1, 2, 4}


@pytest.mark.sweep
def test_results_do_not_depend_on_the_executor(net: Path, tmp_path: Path) -> None:
    """One process, threads, processes: the same points in the same order, and the same drawing."""
    expected = told(hlsgen.explore(net, points=5, jobs=1, output=tmp_path / "a"))
    with ThreadPoolExecutor(2) as pool:
        assert told(hlsgen.explore(net, pool, points=5)) == expected
    assert told(hlsgen.explore(net, points=5, jobs=2, output=tmp_path / "b")) == expected
    assert (tmp_path / "a" / "front.svg").read_bytes() == (tmp_path / "b" / "front.svg").read_bytes()
    lines = [sorted((tmp_path / folder / "points.jsonl").read_text().splitlines()) for folder in ("a", "b")]
    assert lines[0] == lines[1]


@pytest.mark.sweep
def test_nothing_is_computed_twice(net: Path, tmp_path: Path) -> None:
    first, same_sweep, larger_sweep, other_sweeps = Counting(), Counting(), Counting(), Counting()
    expected = told(hlsgen.explore(net, first, points=4, output=tmp_path / "out"))
    assert len(first.calls) == 4
    assert told(hlsgen.explore(net, same_sweep, points=4, output=tmp_path / "out")) == expected
    hlsgen.explore(net, larger_sweep, points=6, output=tmp_path / "out")
    assert (same_sweep.calls, len(larger_sweep.calls)) == ([], 2)
    # Another device, another option and another model give other points.
    hlsgen.explore(net, other_sweeps, points=4, output=tmp_path / "out", device="xc7a35t")
    hlsgen.explore(net, other_sweeps, points=4, output=tmp_path / "out", options=Options(realize={"q1": "compare"}))
    changed = onnx.load(net)
    changed.producer_name = "another"
    hlsgen.explore(save(changed, net), other_sweeps, points=4, output=tmp_path / "out")
    assert len(other_sweeps.calls) == 12


@pytest.mark.sweep
def test_an_interrupted_sweep_is_resumed(net: Path, tmp_path: Path) -> None:
    """After an exception, and after a kill in the middle of a line, only the remaining points are computed."""
    expected = told(hlsgen.explore(net, points=6, jobs=1))

    def interrupt(finished: int, total: int, name: str) -> None:
        if (finished, total, name) == (3, 6, "networks"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hlsgen.explore(net, Counting(), points=6, output=tmp_path / "out", progress=interrupt)
    file = tmp_path / "out" / "points.jsonl"
    assert len(file.read_text().splitlines()) == 9
    assert (tmp_path / "out" / "front.svg").exists()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:6]) + lines[6][:-20])
    resumed = Counting()
    assert told(hlsgen.explore(net, resumed, points=6, output=tmp_path / "out")) == expected
    assert len(resumed.calls) == 4
    assert told(hlsgen.explore(net, last := Counting(), points=6, output=tmp_path / "out")) == expected
    assert not last.calls


def have_ended(pids: list[int]) -> bool:
    def alive(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    until = time.monotonic() + 30
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_interrupted(number: int, tmp_path: Path) -> None:
    """The command with its processes, in mid-sweep: all of them end, and a second run computes only the remaining
    points. There are so many of them that a busy machine does not end the sweep before the signal arrives."""
    out, networks = tmp_path / "out", 40
    words = ["--points", str(networks), "-o", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "hlsgen", "explore", CNN, *words, "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    file = out / "points.jsonl"
    until = time.monotonic() + 120
    while not (file.exists() and file.stat().st_size) and time.monotonic() < until:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    # Ctrl-C reaches all processes of a terminal, kill one.
    os.kill(process.pid, number) if number == signal.SIGKILL else os.killpg(process.pid, number)
    text, _ = process.communicate(timeout=60)
    assert have_ended([int(child) for child in children])
    finished = file.read_bytes().count(b"\n") // 3
    assert 1 <= finished < networks
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert f"{networks} networks, {3 * finished} points" in text
        assert (out / "front.svg").exists()
    resumed = Counting()
    points = hlsgen.explore(CNN, resumed, points=networks, output=out)
    assert (len(points), len(resumed.calls)) == (3 * networks, networks - finished)


@pytest.mark.sweep
def test_a_worker_that_dies_is_reported(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "price", die)
    with pytest.raises(HlsgenError, match="HG075 worker: the process that did the work has ended"):
        hlsgen.explore(net, points=2, jobs=2)


def die(*_: object) -> None:
    os._exit(3)


def test_processes_end_at_once() -> None:
    with suppress(KeyboardInterrupt), workers.processes(1, b"") as pool:
        future = pool.submit(time.sleep, 100)
        while not future.running():
            time.sleep(0.01)
        children = [child.pid for child in multiprocessing.active_children()]
        raise KeyboardInterrupt
    assert children
    assert not {child.pid for child in multiprocessing.active_children()} & set(children)


def test_a_worker_of_another_version(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "tool_version", lambda: "0.0.1")
    with pytest.raises(HlsgenError, match=r"HG075 worker: a worker has hlsgen 0\.0\.1"):
        hlsgen.explore(net, points=1, jobs=1)


def test_impossible_networks(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An impossible network gives a warning; if all are impossible, their problems are errors."""
    plan = work.plan_smallest

    def refused(graph: Any, targets: Any, backend: Any) -> Any:
        if targets.prefer == "dsp" or refused.all:  # type: ignore[attr-defined]
            raise hlsgen.diagnostics.fail("HG035", "fc1", "no.")
        return plan(graph, targets, backend)

    monkeypatch.setattr(work, "plan_smallest", refused)
    refused.all = False  # type: ignore[attr-defined]
    points = hlsgen.explore(net, points=4, jobs=1)
    assert {point.options.prefer for point in points} == {"lut"}
    refused.all = True  # type: ignore[attr-defined]
    with pytest.raises(HlsgenError, match="HG035 fc1: no") as caught:
        hlsgen.explore(net, points=4, jobs=1)
    assert [d.severity for d in caught.value.diagnostics] == ["error"]


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"options": Options(target_cycles=3)}, "HG040 --target-cycles"),
        ({"options": Options(weights="bram", max_lut=3)}, "HG040 --weights, --max-lut: an exploration"),
        ({"points": 0}, "HG040 --points: 0"),
        ({"jobs": 0}, "HG040 --jobs: 0"),
        ({"jobs": 1, "cluster": "tcp://x:1"}, "HG040 --jobs: given together with --cluster"),
        ({"synth": True}, "HG040 --synth: needs a device"),
        ({"device": "xc7a36t"}, "HG040 --device: 'xc7a36t' is not known"),
        ({"clock_mhz": 0.0}, "HG040 --clock-mhz: 0.0"),
        ({"clock_mhz": float("nan")}, "HG040 --clock-mhz: nan"),
        ({"timeout": 0.0, "synth": True, "device": "xc7a35t"}, "HG040 --timeout: 0"),
        ({"options": Options(folding={"fc0": {"pe": 99, "simd": 1}})}, "HG041 fc0"),
    ],
)
def test_wrong_options(arguments: dict[str, Any], text: str, net: Path, tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match=text):
        hlsgen.explore(net, output=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


# --------------------------------------------------------------------------- synthesis of the front


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Options, float]]]:
    """Synthesis tools that report at once ten of everything, at a clock of 50 MHz."""
    requests: list[tuple[Options, float]] = []

    def synthesize(build: hlsgen.Build, files: Any, target: Any, order: Any, progress: Any) -> Any:
        assert files is build.files
        requests.append((build.options, order.seconds))
        versions = {"yosys": "1"}
        return Synthesis(target, 10, 10, 10, 10, {}, build.timing.interval, True, 50.0, (), 1.0, versions, {}, {}), {}

    monkeypatch.setattr(work, "synthesize", synthesize)
    return iter([requests])


@pytest.mark.sweep
def test_the_front_is_synthesized_once(net: Path, tools: Iterator[Any], tmp_path: Path) -> None:
    requests, out = next(tools), tmp_path / "out"
    arguments: dict[str, Any] = {"points": 4, "jobs": 1, "device": "xc7a35t", "output": out}
    estimated = hlsgen.explore(net, **arguments)
    points = hlsgen.explore(net, **arguments, synth=True, timeout=7.0)
    front = [point for point in points if point.front]
    assert [replace(point, measured=None) for point in points] == estimated
    assert len(requests) == len(front) > 1
    assert {seconds for _, seconds in requests} == {7.0}
    assert [(o.target_cycles, o.prefer, o.weights) for o, _ in requests] == [
        (p.options.target_cycles, p.options.prefer, p.options.weights) for p in front
    ]
    for point in points:
        assert (point.measured is not None) == point.front
        assert point.measured is None or (point.measured["lut"], point.measured["fmax_mhz"]) == (10, 50.0)
    repeated = hlsgen.explore(net, **arguments, synth=True)
    assert told(repeated) == told(points)
    assert len(requests) == len(front)
    assert len(
        [line for line in (out / "points.jsonl").read_text().splitlines() if "synthesis" in json.loads(line)]
    ) == len(front)


@pytest.mark.sweep
def test_tools_that_fail(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tools fail for one point, that is a warning; missing tools end the exploration."""

    def synthesize(*_: object) -> None:
        raise hlsgen.diagnostics.fail(code, "yosys", "no.")

    monkeypatch.setattr(work, "synthesize", synthesize)
    code = "HG053"
    points = hlsgen.explore(net, points=2, jobs=1, device="xc7a35t", synth=True)
    assert points
    assert not any(point.measured for point in points)
    code = "HG052"
    with pytest.raises(HlsgenError, match="HG052 yosys: no"):
        hlsgen.explore(net, points=2, jobs=1, device="xc7a35t", synth=True)


@pytest.mark.slow
@pytest.mark.sim
def test_real_tools(net: Path) -> None:
    points = hlsgen.explore(net, points=2, jobs=2, device="xc7a35t", synth=True)
    measured = [point.measured for point in points if point.measured is not None]
    assert len(measured) == sum(point.front for point in points) > 0
    assert all(synthesis["lut"] > 0 and not synthesis["placed"] for synthesis in measured)
