"""Tables of sums of weights: no bit of them can be changed unnoticed, nor the parameters that say how wide they are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from certified import CASES, messages, sign

import hlsgen


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return CASES["tables of sums"].build(tmp_path_factory.mktemp("builds") / "tables")


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def files(core: Path) -> list[Path]:
    layers = json.loads((core / "certificate.json").read_text())["layers"]
    units = (x for layer in layers for x in layer["instances"] if x["module"] == "hg_mvu_words")
    return sorted(core / "rtl" / name for unit in units for name in unit["memories"])


@pytest.mark.slow
def test_every_bit(core: Path) -> None:
    """Also bits of words and of codes that do not exist."""
    rng, certificate = np.random.default_rng(6), (core / "certificate.json").read_text()
    assert messages(core) == []
    assert len(files(core)) > 1
    for path in files(core)[:: len(files(core)) - 1]:
        text = path.read_text()
        lines = text.splitlines()
        for _ in range(40):
            line = int(rng.integers(len(lines)))
            bit = int(rng.integers(4 * len(lines[line])))
            word = int(lines[line], 16) ^ (1 << bit)
            changed = [*lines[:line], f"{word:0{len(lines[line])}x}", *lines[line + 1 :]]
            path.write_text("\n".join(changed) + "\n")
            sign(core, f"rtl/{path.name}")
            said = "\n".join(messages(core))
            row = int(path.stem[-4:])
            assert (
                f"rtl/{path.name}, table " in said and f"of row {row}, columns" in said
            ) or "row (channel)" in said, said
            (core / "certificate.json").write_text(certificate)
        path.write_text(text)


def test_other_weights(core: Path) -> None:
    """Tables that agree among themselves, of a weight that is not the model's: row and column are named."""
    path, bits = files(core)[0], _parameter(core, "T_W")
    first, address = _parameter(core, "FIRST"), 6 - _parameter(core, "FIRST")
    lines = [int(line, 16) for line in path.read_text().splitlines()]
    entries = [sum((lines[n] >> e & 1) << n for n in range(bits)) for e in range(1 << (first + address))]
    with_first = [e for e in range(1 << first) if e & 1]
    for e in with_first:  # of word 0, with its first code
        entries[e] = (entries[e] + (1 if entries[1] != 1 else -1)) % (1 << bits)
    digits = len(path.read_text().splitlines()[0])
    new = [sum((value >> n & 1) << e for e, value in enumerate(entries)) for n in range(bits)] + lines[bits:]
    path.write_text("".join(f"{line:0{digits}x}\n" for line in new))
    sign(core, f"rtl/{path.name}")
    said = "\n".join(messages(core))
    assert (
        re.search(r"row \(channel\) 0, column \d+: the model's weight is", said) or "no sum of the weights" in said
    ), said


@pytest.mark.parametrize("name, step", [("T_W", 1), ("S_W", -1), ("S_W", -3), ("FIRST", -1), ("FIRST", 1)])
def test_parameters(core: Path, name: str, step: int) -> None:
    top = core / "rtl" / "top.v"
    value = _parameter(core, name)
    text = re.sub(rf"\.{name}\({value}\)", f".{name}({value + step})", top.read_text(), count=1)
    top.write_text(text)
    sign(core, "rtl/top.v")
    assert messages(core) != []


@pytest.mark.parametrize("name, value", [("CUT", 2), ("CUT", -1), ("DSP", 1), ("MODE", 1), ("WINDOWS", 2)])
def test_parameters_that_tables_cannot_be_with(core: Path, name: str, value: int) -> None:
    """In top level and certificate."""
    top, path = core / "rtl" / "top.v", core / "certificate.json"
    text, first = top.read_text(), f".FIRST({_parameter(core, 'FIRST')})"
    instance = re.findall(r"\) (\w+) \(", text[text.index(first) :])[0]
    top.write_text(text.replace(first, f"{first}, .{name}({value})", 1))
    certificate = json.loads(path.read_text())
    for unit in (unit for layer in certificate["layers"] for unit in layer["instances"]):
        if unit["instance"] == instance:
            unit["parameters"][name] = value
    path.write_text(json.dumps(certificate))
    sign(core, "rtl/top.v")
    expected = "CUT of hg_mvu_words" if name == "CUT" else f"other parameters than its model: {name}"
    assert any(expected in said for said in messages(core)), messages(core)


def _parameter(core: Path, name: str) -> int:
    match = re.search(rf"\.{name}\((\d+)\)", (core / "rtl" / "top.v").read_text())
    assert match is not None
    return int(match[1])


def test_the_unchanged_build_is_certified(core: Path) -> None:
    assert hlsgen.certify(core).ok
