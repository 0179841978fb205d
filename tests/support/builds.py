"""Builds of test models, in memory and in simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx

import hlsgen


def checked(model: onnx.ModelProto, tmp_path: Path) -> hlsgen.Build:
    onnx.save(model, tmp_path / "m.onnx")
    return hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="codes"))


class LazyBuilds(dict[str, Path]):
    """Folders of builds by name; each is built when a test first asks for it."""

    def __init__(self, build: Callable[[str], Path]) -> None:
        super().__init__()
        self._build = build

    def __missing__(self, name: str) -> Path:
        self[name] = self._build(name)
        return self[name]


def assert_verified(directory: Path, simulator: str, frames: int | None = None, seed: int = 1) -> None:
    verdict = hlsgen.verify(directory, [simulator], frames, seed, oracle="none")
    found = verdict.simulators[simulator]
    assert verdict.ok, (verdict.model, verdict.changed, found, verdict.predicted)
    assert found.cycles == {name: value for name, value in verdict.predicted.items() if name != "fixed"}
    assert found.mismatches == 0
