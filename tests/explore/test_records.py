"""The folder of a sweep: foreign files stay, and damaged results are not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sweeps import Counting, network

import hlsgen
from hlsgen import HlsgenError
from hlsgen.explore.records import Records


def sweep(folder: Path, out: Path, executor: Counting | None = None) -> list[hlsgen.Point]:
    return hlsgen.explore(network(folder), executor or Counting(), points=2, output=out)


@pytest.mark.parametrize("name", ["points.jsonl", "front.svg"])
def test_foreign_files_stay(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for text in ("mine\n", '{"key": 3}\n', "<svg/>"):
        (out / name).write_text(text)
        with pytest.raises(HlsgenError, match=f"HG060 .*{name}"):
            sweep(tmp_path, out)
        assert (out / name).read_text() == text
    (out / name).unlink()
    (out / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HlsgenError, match=f"HG0(01|60) .*{name}"):
        sweep(tmp_path, out)
    assert not (tmp_path / "elsewhere").exists()


def test_other_files_of_the_folder_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    sweep(tmp_path, out)
    assert sorted(path.name for path in out.iterdir()) == ["front.svg", "notes.txt", "points.jsonl"]
    assert (out / "notes.txt").read_text() == "mine"


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    first = Records(tmp_path / "out")
    with pytest.raises(HlsgenError, match=r"HG060 .*another exploration writes it"):
        sweep(tmp_path, tmp_path / "out")
    first.close()
    assert sweep(tmp_path, tmp_path / "out")


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HlsgenError, match="HG001"):
        sweep(tmp_path, tmp_path / "file")


@pytest.mark.parametrize(
    "change",
    [
        {"interval": 0},
        {"interval": "5"},
        {"lut": -1},
        {"lut": True},
        {"dsp": 1.0},
        {"bram": None},
        {"latency": 1 << 70},
        {"key": "other"},
        {"key": None},
    ],
)
def test_damaged_lines_are_computed_again(change: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    expected = sweep(tmp_path, out)
    lines = (out / "points.jsonl").read_text().splitlines()
    data = {**json.loads(lines[0]), **change}
    (out / "points.jsonl").write_text("\n".join([json.dumps(data), "[" * 5000, "null", *lines[1:]]) + "\n")
    executor = Counting()
    assert sweep(tmp_path, out, executor) == expected
    assert len(executor.calls) == 1


@pytest.mark.parametrize("change", [{"lut": None}, {"fmax_mhz": "x"}, {"fmax_mhz": 0}, {"dsp": -1}])
def test_damaged_syntheses_are_ignored(change: dict[str, Any], tmp_path: Path) -> None:
    good = {"lut": 1, "ff": 1, "bram": 1, "dsp": 1, "fmax_mhz": 1.5}
    file = tmp_path / "points.jsonl"
    first = Records(tmp_path)
    first.add([{"key": "a", "synthesis": good}])
    first.close()
    file.write_text(file.read_text() + json.dumps({"key": "b", "synthesis": {**good, **change}}) + "\n")
    reopened = Records(tmp_path)
    reopened.close()
    assert reopened.measured == {"a": good}
