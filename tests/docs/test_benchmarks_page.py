"""docs/benchmarks.md and its picture show benchmarks/data, and the data belongs to existing workloads."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

DATA = ROOT / "benchmarks" / "data"


def load(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def rows(mark: str) -> list[list[str]]:
    """Cells of the table between two marks of the page."""
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    lines = text.split(f"<!-- {mark} -->")[1].split(f"<!-- end of {mark} -->")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def workload(label: str) -> str:
    """The name of a row without the notes after it."""
    return re.sub(r"(, by pieces|, earlier|, stale)+$", "", label)


@pytest.mark.sweep
def test_page_and_picture_are_those_of_the_data(tmp_path: Path) -> None:
    """`python benchmarks/page.py` would change neither."""
    subprocess.run([sys.executable, ROOT / "benchmarks" / "page.py", "--out", tmp_path], check=True)
    assert (tmp_path / "benchmarks.md").read_text() == (ROOT / "docs" / "benchmarks.md").read_text()
    assert (tmp_path / "benchmarks.svg").read_text() == (ROOT / "docs" / "images" / "benchmarks.svg").read_text()


def test_every_measured_row_is_on_the_page() -> None:
    for mark, data, at in (("figures", load("hardware"), 1), ("routed", load("routed"), 4)):
        shown = {workload(row[0]): row for row in rows(mark)}
        assert list(shown) == list(data)
        for name, row in data.items():
            assert shown[name][at].replace(",", "") == str(row["lut"])
            assert (", earlier" in shown[name][0]) == (not row.get("rtl"))


@pytest.mark.sweep
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", load("hardware"))
def test_rows_of_other_verilog_are_named(name: str) -> None:
    """Today's compiler writes the Verilog that was measured, or the page says that the row is stale."""
    command = [sys.executable, ROOT / "benchmarks" / "hardware.py", "--digests", name]
    result = subprocess.run(command, capture_output=True, text=True)
    if "FileNotFoundError" in result.stderr:
        pytest.skip(f"the model of {name} is not there: {result.stderr.splitlines()[-1]}")
    assert result.returncode == 0, result.stderr
    for data, digest in json.loads(result.stdout)[name].items():
        mark = {"hardware": "figures", "routed": "routed"}[data]
        label = next(row[0] for row in rows(mark) if workload(row[0]) == name)
        assert digest == load(data)[name]["rtl"] or label.endswith(", stale"), (
            f"{data}: {name} is stale and docs/benchmarks.md does not say so: python benchmarks/hardware.py --stale"
        )


def test_stale_rows_are_those_whose_digests_differ() -> None:
    for data, mark in (("hardware", "figures"), ("routed", "routed")):
        built = load("built")[data]
        stale = {
            name for name, row in load(data).items() if row.get("rtl") and built.get(name, row["rtl"]) != row["rtl"]
        }
        assert {workload(row[0]) for row in rows(mark) if row[0].endswith(", stale")} == stale


def test_the_spread_between_seeds() -> None:
    """The largest clock of a design over its smallest one."""
    spread = max(max(row["mhz"].values()) / min(row["mhz"].values()) for row in load("routed").values()) - 1
    text = " ".join((ROOT / "docs" / "benchmarks.md").read_text().split())
    assert f"between seeds of the placement the clock differs by up to {100 * spread:.0f} %" in text
    shown = {workload(row[0]): row[2].split(", ") for row in rows("routed")}
    assert all(
        int(mhz) <= row["mhz"][seed]
        for name, row in load("routed").items()
        for seed, mhz in zip(row["mhz"], shown[name], strict=True)
    )


def test_ratios_are_quotients_of_what_is_in_the_data() -> None:
    sizes, row_by_peer = load("hardware"), {(row["workload"], row["tool"]): row for row in load("peers")}
    shown = {(row[0], row[4]): row[10] for row in rows("peers")}
    assert set(shown) == set(row_by_peer)
    for (name, tool), ratio in shown.items():
        has_both = name in sizes and "lut" in row_by_peer[name, tool]
        assert bool(ratio) == has_both
        assert not has_both or abs(float(ratio) - sizes[name]["lut"] / row_by_peer[name, tool]["lut"]) <= 0.005


def test_figures_of_others_say_where_they_are_from() -> None:
    origins = {row["from"] for row in load("peers")}
    assert origins <= {"measured", "measured before", "reported, not checked", "cycles alone"}
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    assert all(f"*{origin}*:" in text for origin in origins)


@pytest.mark.sweep
def test_list_prints_every_workload() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "hardware.py", "--list"], capture_output=True, text=True, check=True
    )
    names = re.findall(r'^    "([^"]+)": Workload\(', (ROOT / "benchmarks" / "workloads.py").read_text(), re.M)
    lines = result.stdout.splitlines()
    assert len(names) > 15
    assert [line.split(": ")[0] for line in lines] == names
    assert {*load("hardware"), *load("routed"), *(row["workload"] for row in load("peers"))} <= set(names)


def test_mlperf_tiny_on_the_page_is_that_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python benchmarks/mlperf_tiny.py FOLDER --write` would change only rows that it measures."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    mlperf_tiny = importlib.import_module("mlperf_tiny")
    assert mlperf_tiny.page_with(mlperf_tiny.recorded()) == mlperf_tiny.PAGE.read_text()


def test_clocks_on_the_page_are_those_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python benchmarks/clocks.py --page` would change nothing."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    clocks = importlib.import_module("clocks")
    assert len(clocks.recorded()) >= 20
    assert clocks.page_with(clocks.recorded()) == clocks.PAGE.read_text()


def test_the_clocks_are_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of sixty routes are slower than asked, and the best seed of every network is not."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    clocks = importlib.import_module("clocks")
    mhz = [list(row["mhz"].values()) for row in clocks.recorded().values()]
    assert "Three of the sixty routes stay below 150 MHz" in clocks.PAGE.read_text()
    assert (sum(map(len, mhz)), sum(value < clocks.CLOCK_MHZ for row in mhz for value in row)) == (60, 3)
    assert all(max(row) >= clocks.CLOCK_MHZ for row in mhz)
