"""report.html: what it says is what the manifest says, nothing of a model gets into its markup, and its lines meet."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from end_cases import inner_output
from models import mlp, save
from paths import ROOT

import hlsgen
from hlsgen.artifacts.report_drawing import Row, dataflow
from hlsgen.artifacts.report_html import page

CNN = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Tags, attributes and text; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "

    def of_class(self, name: str) -> int:
        return sum(name in (attributes.get("class") or "").split() for _, attributes in self.tags)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return hlsgen.check(CNN, hlsgen.Options(target_cycles=576)).files


@pytest.fixture(scope="module")
def manifest(files: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files["manifest.json"])
    return found


@pytest.fixture(scope="module")
def certificate(files: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files["certificate.json"])
    return found


@pytest.mark.sweep
def test_units_and_their_estimate(manifest: dict[str, Any]) -> None:
    """Every unit once, connected as the network is; the parts of the estimate make the whole but for ports."""
    build = hlsgen.check(CNN, hlsgen.Options(target_cycles=576))
    nodes = build.network.nodes
    units = manifest["units"]
    assert [unit["instance"] for unit in units] == [node.name for node in nodes[1:-1]]
    streams = {node.name: set(node.outputs) for node in nodes}
    for unit, node in zip(units, nodes[1:-1], strict=True):
        assert len(unit["inputs"]) == len(node.inputs)
        assert all(stream in streams[sender] for sender, stream in zip(unit["inputs"], node.inputs, strict=True))
        assert (unit["bits"], unit["beats"]) == (node.result.bits, node.result.beats)
    for kind in ("lut", "dsp", "bram"):
        ports = manifest["estimate"][kind] - sum(unit[kind] for unit in units)
        assert 0 <= ports <= 40 + len(units) / 2, kind
    summary = {layer["name"]: layer for layer in manifest["layers"] if layer["instance"]}
    own = {unit["instance"]: unit for unit in units}
    assert all(own[layer["instance"]]["cycles"] <= layer["cycles"] for layer in summary.values())
    assert manifest["frames_per_second_per_mhz"] == pytest.approx(1e6 / manifest["cycles"]["interval"], abs=1e-3)


def test_the_page_says_what_the_manifest_says(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    text = files["report.html"].decode()
    shown = Page(text)
    assert shown.of_class("u") == len(manifest["units"]) + 3  # ports, and the head of the columns
    words = " ".join(shown.words.split())
    for layer in manifest["layers"]:
        assert layer["kind"] == "rename" or layer["name"] in words
    for fifo in manifest["fifos"]:
        assert f"FIFO, {fifo['depth']} deep" in words
    for unit in manifest["units"]:
        assert f"{unit['lanes']} × {unit['bits'] // unit['lanes']} bit" in words
    assert f"{manifest['cycles']['latency']:,}" in words
    for layer in manifest["layers"]:
        if "accumulator" in layer:
            assert all(f"{end:,}" in words for end in layer["accumulator"])
        for trial in layer.get("tried", ()):
            assert trial["why"] in words
    assert manifest["input"]["meaning"] in words
    assert "http" not in text.replace("http-equiv", "")
    assert not any(tag == "script" for tag, _ in shown.tags)


def test_the_page_is_one_of_the_build_and_reproducible(
    files: dict[str, bytes], manifest: dict[str, Any], certificate: dict[str, Any]
) -> None:
    assert page(manifest, certificate).encode() == files["report.html"]
    assert hlsgen.check(CNN, hlsgen.Options(target_cycles=576)).files["report.html"] == files["report.html"]


EVIL = "</style><script>alert(1)</script>\"' onload='x"


def test_every_port_is_drawn_as_an_end(tmp_path: Path) -> None:
    """Also the second of two inputs."""
    onnx.save(inner_output().proto(), tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(ports="separate"))
    assert build.files["report.html"].count(b'<div class="u end">') == 4


def test_names_of_a_stranger_are_text(tmp_path: Path) -> None:
    model = mlp().model()
    for node in model.graph.node:
        node.name = f"{EVIL}{node.name or node.output[0]}"
    build = hlsgen.check(save(model, tmp_path / "m.onnx"), hlsgen.Options(input="fixed:8,4"))
    shown = Page(build.files["report.html"].decode())
    assert not any(tag == "script" or any(name.startswith("on") for name in a) for tag, a in shown.tags)
    assert EVIL in shown.words


def test_results_of_a_stranger_are_text(manifest: dict[str, Any], certificate: dict[str, Any]) -> None:
    results = [
        {
            "ok": True,
            "notes": [EVIL],
            "oracle": {"ok": True, "ran": EVIL, "explained": {EVIL: 1}},
            "simulators": {EVIL: {"ok": True, "samples": 1, "mismatches": 0, "cycles": None}},
        },
        {
            "device": EVIL,
            "lut": 10,
            "fmax_mhz": 80.0,
            "frames_per_second": 9.5,
            "placed": True,
            "why_not_placed": EVIL,
            "critical_path": [{"layer": EVIL, "module": "m", "instance": "i", "delay_ns": 1.0}, EVIL],
            "estimate": {"lut": 9},
        },
    ]
    shown = Page(page(manifest, certificate, results))
    assert not any(tag == "script" for tag, _ in shown.tags)
    assert shown.words.count(EVIL) >= 7


def test_results_are_on_the_page(manifest: dict[str, Any], certificate: dict[str, Any]) -> None:
    simulator = {"ok": True, "samples": 123, "mismatches": 0, "cycles": {"latency": 1588, "interval": 576}}
    results = [
        {
            "ok": True,
            "notes": [],
            "simulators": {"verilator": simulator},
            "oracle": {
                "ok": True,
                "ran": "qonnx 1.0.0",
                "frames": 40,
                "unexplained": 0,
                "explained": {"bias added in another order": 1110, "last place of Tanh": 2},
            },
        },
        {
            "device": "ecp5-25k",
            "lut": 2345,
            "ff": 1111,
            "bram": 3,
            "dsp": 0,
            "fmax_mhz": 81.25,
            "placed": True,
            "frames_per_second": 141059.0,
            "estimate": {"lut": 1938, "bram": 0, "dsp": 0},
            "critical_path": [{"layer": "conv2", "module": "hg_conv", "instance": "conv8", "delay_ns": 5.25}],
        },
        {"device": "xc7a35t", "lut": 1777, "fmax_mhz": None, "placed": False, "frames_per_second": None},
    ]
    words = " ".join(Page(page(manifest, certificate, results)).words.split())
    for text in (
        "Equal",
        "the file in qonnx 1.0.0 equal, explained: 1,110 (bias added in another order), 2 (last place of Tanh) 40 0",
        "verilator equal 123 0 1,588 576",
        "Synthesized for ecp5-25k",
        "81.2 MHz, 141,059 frames a second",
        "LUT 2,345 1,938",
        "FF 1,111",
        "conv2, hg_conv: 5.25 ns",
        "Synthesized for xc7a35t",
        "Not placed",
    ):
        assert text in words, text
    assert "NaN" not in words


def test_resources_are_shares_of_the_device(manifest: dict[str, Any], certificate: dict[str, Any]) -> None:
    """A build for a device has bars against the device; another one has bars against its largest unit."""
    text = page({**manifest, "options": {**manifest["options"], "device": "xc7a35t"}}, certificate)
    assert f"{manifest['estimate']['lut']:,} of 20,800, " in " ".join(Page(text).words.split())
    for unit in manifest["units"]:
        assert not unit["lut"] or f'width:{100 * unit["lut"] / 20800:.2f}%"></i></span><span class="v">' in text
    assert "of 20,800" not in page(manifest, certificate)


def ends(svg: str, y: int) -> list[float]:
    """Where lines meet the top (0) or the bottom (100) of a row."""
    found = []
    for path in re.findall(r'd="([^"]+)"', svg):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", path)]
        first, last = (numbers[0], numbers[1]), (numbers[-2] if "C" in path else numbers[0], numbers[-1])
        found += [point[0] for point in (first, last) if point[1] == y]
    return sorted(found)


@pytest.mark.parametrize("seed", range(12))
def test_every_line_goes_on_in_the_next_row(seed: int) -> None:
    """Random networks: as many lines as streams, and none that ends in the air."""
    rng = np.random.default_rng(seed)
    open_, rows, count = ["in"], [Row("in", (), False)], 1
    while len(rows) < 40:
        take = [open_.pop(int(rng.integers(len(open_)))) for _ in range(min(len(open_), int(rng.integers(1, 3))))]
        name = f"u{len(rows)}"
        rows.append(Row(name, tuple((sender, 8) for sender in take), False))
        open_ += [name] * int(rng.integers(1, 4 if len(open_) < 6 else 2))
        count += len(take)
    rows.append(Row("out", tuple((sender, 8) for sender in open_), False))
    loops = [sorted(rng.integers(1, 40, 2).tolist()) for _ in range(seed % 3)]
    for first, last in loops:
        rows[first] = replace(rows[first], inputs=(*rows[first].inputs, (rows[last].name, 8)))
    cells = dataflow(rows)["cells"]
    assert isinstance(cells, list)
    assert sum(cell["svg"].count('class="loop"') for cell in cells) == sum(last - first + 1 for first, last in loops)
    for cell in cells:
        here = float(cell["x"])
        assert ends(cell["svg"], 50).count(here) == len(ends(cell["svg"], 50))
    for cell, following in pairwise(cells):
        assert ends(cell["svg"], 100) == ends(following["svg"], 0)
        assert len(set(ends(cell["svg"], 100))) == len(ends(cell["svg"], 100)), "two streams on one line"
    assert not ends(cells[0]["svg"], 0)
    assert not ends(cells[-1]["svg"], 100)


@pytest.mark.sweep
def test_large_networks_stay_below_a_megabyte(manifest: dict[str, Any], certificate: dict[str, Any]) -> None:
    """Two hundred and fifty layers, with the quantizers of the largest kind that this one has."""
    copies = 250 // len(certificate["layers"]) + 1
    large = json.loads(json.dumps(manifest))
    for part, key in (("units", "instance"), ("layers", "name"), ("fifos", "instance")):
        large[part] = []
        for copy in range(copies):
            for row in json.loads(json.dumps(manifest[part])):
                for name in {key, "instance"}:
                    row[name] = row[name] and f"{row[name]}_{copy}"
                if part == "units":
                    row["inputs"] = [
                        f"{i}_{copy}" if i != "s_axis" else "s_axis" if not copy else f"dense_{copy - 1}"
                        for i in row["inputs"]
                    ]
                large[part].append(row)
    proofs = [
        {**layer, "layer": f"{layer['layer']}_{copy}"} for copy in range(copies) for layer in certificate["layers"]
    ]
    text = page(large, {**certificate, "layers": proofs})
    assert Page(text).of_class("u") > 500
    assert 300_000 < len(text.encode()) < 1_000_000
