"""Markers, `--sample` and `--all-cases`. `oracle` is set here, from what a test module imports; others at the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

#: Every Model behind every pass, and every Graph, is checked (docs/diagnostics.md, HG098). Subprocesses inherit it.
os.environ["HLSGEN_CHECK"] = "1"
#: Executors of ONNX models that are not ours, and helper modules that call them.
ORACLES = {"image_steps", "onnx.reference", "onnxruntime", "oracles", "ort", "qonnx"}
SIMULATORS = {"ccache", "g++", "iverilog", "make", "verilator", "vvp"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, metavar="N", help="at most N cases of each parametrized test, evenly spread")
    parser.addoption("--all-cases", action="store_true", help="all cases of tests that are marked cases(N), too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks every test of a module that imports an executor as `oracle`; leaves out cases that are not wanted.

    Of a test that is marked cases(N) at most N run without --all-cases, and of every test at most --sample.
    """
    sample, every = config.getoption("--sample"), config.getoption("--all-cases")
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and _origins(item.module) & ORACLES:
            item.add_marker("oracle")
        groups.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept: set[int] = set()
    for group in groups.values():
        marker = group[0].get_closest_marker("cases")
        limits = [sample, marker.args[0] if marker and not every else None]
        kept |= {id(item) for item in _spread(group, min((n for n in limits if n), default=len(group)))}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def _spread(cases: list[pytest.Item], count: int) -> list[pytest.Item]:
    """`count` of the cases, the first and middle ones among them; all where there are no more."""
    return [cases[k * len(cases) // count] for k in range(count)] if len(cases) > count else cases


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
