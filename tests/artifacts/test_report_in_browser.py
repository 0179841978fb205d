"""report.html in Chromium, at the width of a desk and of a phone, light and dark: nothing overflows, overlaps or is
cut.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from models import mlp, save
from paths import ROOT

import hlsgen
from hlsgen.artifacts.report_html import page as html

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"),
]
CNN = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"
LONG = "a_layer_with_a_name_as_long_as_exporters_make_them_/model/encoder/block.12/attention/self/quant_" * 2
RESULTS: list[dict[str, Any]] = [
    {
        "ok": False,
        "notes": ["C++: not synthesized."],
        "model": {"ok": True, "frames": 200},
        "oracle": {
            "ok": True,
            "ran": "qonnx 1.0.0",
            "frames": 40,
            "unexplained": 0,
            "explained": {"rounding": 1110, "fused": 12},
        },
        "simulators": {
            "verilator": {"ok": False, "samples": 173, "mismatches": 12, "cycles": {"latency": 1588, "interval": 576}}
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
        "estimate": {"lut": 1938},
        "available": {"lut": 24288},
        "critical_path": [
            {"layer": "conv2", "module": "hg_conv", "instance": "conv8", "delay_ns": 5.25, "routing_ns": 3.5}
        ]
        * 4,
    },
]

#: What would be wrong on the page as it is drawn, in words.
LOOK = """() => {
  const wrong = [], page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) wrong.push(`the page is ${page.scrollWidth} wide`);
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e), inside = e.closest('.scroll');
    if (!box.width || e.closest('svg')) continue;
    if (!inside && (box.right > page.clientWidth + 1 || box.left < -1)) wrong.push(`${e.className || e.tagName} leaves the page`);
    if (style.overflowX == 'hidden' && e.scrollWidth > e.clientWidth + 1) wrong.push(`${e.className || e.tagName} is cut`);
  }
  for (const row of document.querySelectorAll('.u, tr, .figures')) {
    const boxes = [...row.children].map(e => e.getBoundingClientRect()).filter(b => b.width && b.height);
    for (let i = 0; i < boxes.length; ++i)
      for (let j = i + 1; j < boxes.length; ++j) {
        const a = boxes[i], b = boxes[j];
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
          wrong.push(`parts of ${row.className || row.tagName} overlap: ${row.innerText.slice(0, 60)}`);
      }
  }
  for (const e of document.querySelectorAll('.u > div, td, dd, dt'))
    for (const part of e.childNodes) {
      const range = document.createRange();
      range.selectNodeContents(part);
      const text = range.getBoundingClientRect(), box = e.getBoundingClientRect();
      if (text.width && text.right > box.right + 1 && !e.closest('.scroll')) wrong.push(`text runs out of its place: ${e.innerText.slice(0, 60)}`);
    }
  return wrong;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield found
        found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    cnn = hlsgen.check(CNN, hlsgen.Options(target_cycles=576))
    manifest, certificate = (json.loads(cnn.files[name]) for name in ("manifest.json", "certificate.json"))
    model = mlp().model()
    for node in model.graph.node:
        node.name = LONG + (node.name or node.output[0])
    named = hlsgen.check(save(model, folder / "m.onnx"), hlsgen.Options(input="fixed:8,4"))
    texts = {"cnn": html(manifest, certificate, RESULTS), "names": named.files["report.html"].decode()}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("name", ["cnn", "names"])
@pytest.mark.parametrize("width", [1280, 390])
def test_how_it_looks(name: str, width: int, browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request",
            lambda request: said.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
        )
        page.goto(pages[name].as_uri())
        assert page.evaluate(LOOK) == []
        page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert page.evaluate(LOOK) == []
        assert len(page.screenshot(path=tmp_path / f"{name}-{width}.png", full_page=True)) > 50_000
        assert said == []


def test_bars_have_the_lengths_of_their_numbers(browser: Any, pages: dict[str, Path]) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(pages["cnn"].as_uri())
        found = page.evaluate("""() => [...document.querySelectorAll('.u .cycles .bar')].map(e => [
            e.querySelector('i').getBoundingClientRect().width / e.querySelector('.track').getBoundingClientRect().width,
            parseInt(e.querySelector('.v').firstChild.data.replace(',', ''))])""")
    assert len(found) > 8
    assert max(share for share, _ in found) == pytest.approx(1, abs=0.01)
    for share, cycles in found:
        assert share == pytest.approx(cycles / 576, abs=0.02)


def test_dark_is_dark_and_can_be_read(browser: Any, pages: dict[str, Path]) -> None:
    lightness = """() => [document.body, document.querySelector('.soft')].map(e => {
        const of = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 765;
        return [of(getComputedStyle(e).color), of(getComputedStyle(document.body).backgroundColor)]; }).flat()"""
    for scheme in ("light", "dark"):
        with browser.new_context(color_scheme=scheme) as context:
            page = context.new_page()
            page.goto(pages["cnn"].as_uri())
            ink, paper, soft, _ = page.evaluate(lightness)
        assert (paper < 0.2) == (scheme == "dark")
        assert abs(ink - paper) > 0.7
        assert abs(soft - paper) > 0.4
