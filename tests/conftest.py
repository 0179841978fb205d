"""Markers, and options that choose tests. `oracle` is set here, from what a test module imports; others at the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import rotation

#: Every Model behind every pass, and every Graph, is checked (docs/diagnostics.md, HG098). Subprocesses inherit it.
os.environ["HLSGEN_CHECK"] = "1"
#: Executors of ONNX models that are not ours, and helper modules that call them.
ORACLES = {"image_steps", "onnx.reference", "onnxruntime", "oracles", "ort", "qonnx"}
SIMULATORS = {"ccache", "g++", "iverilog", "make", "verilator", "vvp"}


#: Tests of the rotating share, and slow tests whose cost is not recorded.
DRAWN, UNKNOWN = pytest.StashKey[list[str]](), pytest.StashKey[list[str]]()
#: Processor seconds of the longest case that passed, by test, of tests marked slow or cases(N).
MEASURED = pytest.StashKey[dict[str, float]]()
START = pytest.StashKey[float]()
ITEM_PASSED = pytest.StashKey[bool]()


@pytest.fixture(scope="session", autouse=True)
def compiled_cores(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`run --backend verilator` keeps compiled cores here, not in the user's cache."""
    os.environ["HLSGEN_CACHE"] = str(tmp_path_factory.mktemp("compiled_cores"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, metavar="N", help="at most N cases of each parametrized test, evenly spread")
    parser.addoption("--all-cases", action="store_true", help="all cases of tests that are marked cases(N), too")
    parser.addoption(
        "--rotate",
        nargs="?",
        const="HEAD",
        metavar="SEED",
        help="a share of the slow tests and of the cases that are left out, too: that of this commit, or of SEED",
    )
    parser.addoption("--rotated-only", action="store_true", help="with --rotate: nothing but that share")
    parser.addoption("--record", action="store_true", help=f"write what tests cost to {rotation.SECONDS.name}")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.rotate == "HEAD":
        config.option.rotate = rotation.commit()
    config.stash[MEASURED], config.stash[DRAWN], config.stash[UNKNOWN] = {}, [], []
    config.pluginmanager.register(Costs())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks every test of a module that imports an executor as `oracle`; leaves out cases that are not wanted.

    Of a test that is marked cases(N) at most N run without --all-cases, and of every test at most --sample. With
    --rotate, some of the slow tests and of these other cases run before all others.
    """
    sample, every = config.getoption("--sample"), config.getoption("--all-cases")
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and _origins(item.module) & ORACLES:
            item.add_marker("oracle")
        groups.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept: set[str] = set()
    for group in groups.values():
        marker = group[0].get_closest_marker("cases")
        limits = [sample, marker.args[0] if marker and not every else None]
        chosen = _spread(group, min((n for n in limits if n), default=len(group)))
        kept |= {item.nodeid for item in chosen}
    if config.option.rotate:
        kept = _rotated(config, groups, kept)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    drawn = {*config.stash[DRAWN]}
    items[:] = sorted((item for item in items if item.nodeid in kept), key=lambda item: item.nodeid not in drawn)


def _rotated(config: pytest.Config, groups: Mapping[str, list[pytest.Item]], kept: set[str]) -> set[str]:
    """The tests of `kept` that are not slow, and the rotating share of all others."""
    slow = {item.nodeid for group in groups.values() for item in group if item.get_closest_marker("slow")}
    usual = kept - slow
    others = {test: [item.nodeid for item in group if item.nodeid not in usual] for test, group in groups.items()}
    measured = rotation.load()
    config.stash[UNKNOWN] = [
        test for test, cases in others.items() if test not in measured and slow.intersection(cases)
    ]
    known = {test: cases for test, cases in others.items() if test not in config.stash[UNKNOWN]}
    seconds = {test: measured.get(test, rotation.USUAL) for test in known}
    config.stash[DRAWN] = rotation.draw(known, seconds, config.option.rotate)
    if config.option.markexpr == "not slow":
        config.option.markexpr = ""
    return {*config.stash[DRAWN]} if config.option.rotated_only else {*usual, *config.stash[DRAWN]}


def _is_left_out(item: pytest.Item) -> bool:
    """Whether a usual run leaves the test or some of its cases out."""
    return any(item.get_closest_marker(name) for name in ("slow", "cases"))


def _processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


class Costs:
    """Measures tests of all folders; hooks of a conftest.py see those of its own folder alone."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[START] = _processor_seconds()

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "call":
            item.stash[ITEM_PASSED] = call.excinfo is None
        elif call.when == "teardown" and item.stash.get(ITEM_PASSED, False) and _is_left_out(item):
            measured, test = item.config.stash[MEASURED], item.nodeid.split("[")[0]
            measured[test] = max(_processor_seconds() - item.stash[START], measured.get(test, 0.0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output |= {"measured": config.stash[MEASURED], "drawn": config.stash[DRAWN], "unknown": config.stash[UNKNOWN]}
    elif config.option.record:
        rotation.save(config.stash[MEASURED])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over what a process of -n N has measured."""
    output, stash = getattr(node, "workeroutput", {}), node.config.stash
    stash[DRAWN], stash[UNKNOWN] = output.get("drawn", []), output.get("unknown", [])
    for test, cost in output.get("measured", {}).items():
        stash[MEASURED][test] = max(cost, stash[MEASURED].get(test, 0.0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says which tests the rotating share was, and how to repeat it."""
    if config.option.rotate:
        for nodeid in config.stash[DRAWN]:
            terminalreporter.write_line(f"rotating share: {nodeid}")
        if count := len(config.stash[UNKNOWN]):
            terminalreporter.write_line(
                f"rotating share: without {count} slow tests whose cost --record has not written"
            )
        command = f".venv/bin/python -m pytest --rotate {config.option.rotate} --rotated-only"
        terminalreporter.write_line(f"rotating share of {config.option.rotate}; to repeat it: {command}")


def _spread(cases: list[pytest.Item], count: int) -> list[pytest.Item]:
    """`count` of the cases, the first and middle ones among them; all where there are no more."""
    return [cases[k * len(cases) // count] for k in range(count)] if len(cases) > count else cases


@cache
def _origins(module: ModuleType) -> set[str]:
    """The modules that the names of a module come from, and the packages they are in."""
    named = (v.__name__ if isinstance(v, ModuleType) else getattr(v, "__module__", None) for v in vars(module).values())
    names = {name for name in named if isinstance(name, str)}
    return names | {name.split(".")[0] for name in names}


class _Popen(subprocess.Popen[Any]):
    """Starts everything but simulators."""

    def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
        words = [args] if isinstance(args, (str, Path)) else [str(word) for word in args]
        if _simulates(words):
            pytest.fail(f"this test starts a simulator: mark it with @pytest.mark.sim ({' '.join(words)[:200]})")
        super().__init__(args, *rest, **options)


def _simulates(words: Sequence[str]) -> bool:
    """Whether a command is a simulator, a compiler of one, or the testbench of a build."""
    return Path(words[0]).name in SIMULATORS or "--sim" in words


@pytest.fixture(autouse=True)
def _simulators_are_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make quick` leaves tests out by the marker `sim`: one that lacks it fails, wherever it runs."""
    if request.node.get_closest_marker("sim") is None:
        monkeypatch.setattr(subprocess, "Popen", _Popen)
