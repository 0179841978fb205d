"""The pages of docs/ and examples/: links resolve, tables list every module and parameter, and drawings match the
code.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        if not name.startswith("http"):
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.sweep
def test_predicted_cycles_are_those_of_today() -> None:
    """In listings of `verify` and the like, which take too long to be run as a rule."""
    mlp, cnn = ROOT / "examples/digits/digits_mlp.onnx", ROOT / "examples/digits_cnn/digits_cnn.onnx"
    options = hlsgen.Options(target_cycles=576), hlsgen.Options(target_cycles=576, target="hls")
    builds = [hlsgen.check(mlp), *(hlsgen.check(cnn, each) for each in options)]
    cycles = {(build.timing.latency, build.timing.interval) for build in builds}
    form = r"(?:predicted latency|measured: latency) (\d+)(?: cycles)?, interval (\d+)"
    shown = [
        (page, tuple(map(int, pair))) for page in PAGES for pair in re.findall(form, page.read_text(encoding="utf-8"))
    ]
    assert len(shown) > 4
    assert [(page, pair) for page, pair in shown if pair not in cycles] == []


def test_library_page_has_every_module_and_parameter() -> None:
    rows = {}
    for line in (ROOT / "docs" / "library.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| `(hg_\w+)` \|", line):
            rows[row[1]] = line.split(" | ")[2]
    for path in sorted((ROOT / "templates" / "rtl").glob("*.v")):
        head = path.read_text(encoding="utf-8").split("module ", 1)[1].split(");", 1)[0]
        names = set(re.findall(r"^    parameter .*?(\w+)\s*=", head, re.M))
        listed = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", rows[path.stem]))
        assert listed <= names, path.stem
        assert listed == names or re.search("those of|as there|as in", rows[path.stem]), (path.stem, names - listed)


def test_modules_have_at_most_ten_parameters_or_a_reason() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    section = page.split("## More than ten parameters", 1)[1].split("\n## ", 1)[0]
    exceptions = re.findall(r"`(hg_\w+)`", section)
    heads = {
        path.stem: path.read_text(encoding="utf-8").split("module ", 1)[1].split(");", 1)[0]
        for path in (ROOT / "templates" / "rtl").glob("*.v")
    }
    longer = [name for name, head in heads.items() if len(re.findall(r"^    parameter ", head, re.M)) > 10]
    assert sorted(exceptions) == sorted(longer)


@pytest.mark.parametrize(
    "page, model, options",
    [
        ("streaming.md", "digits_cnn/digits_cnn.onnx", ["--target-cycles", "576"]),
        ("getting-started.md", "digits/digits_mlp.onnx", []),
    ],
)
def test_the_table_of_layers_is_what_is_printed(page: str, model: str, options: list[str]) -> None:
    printed = CliRunner().invoke(app, ["check", str(ROOT / "examples" / model), *options]).output
    lines = [line.rstrip() for line in printed.splitlines()]
    table = lines[: next(n for n, line in enumerate(lines) if line.startswith("estimate")) + 1]
    assert "\n".join(table) in (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.sweep
def test_the_table_of_foldings() -> None:
    """Foldings, interval, latency and estimate for several targets, in docs/streaming.md."""
    page = (ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|((?: \d+ x \d+ \|){4}) (\d+) \| (\d+) \| (\d+) LUT \|$", page, re.M)
    assert len(rows) > 3
    for target, foldings, *numbers in rows:
        build = hlsgen.check(ROOT / "examples/digits_cnn/digits_cnn.onnx", hlsgen.Options(target_cycles=int(target)))
        manifest = json.loads(build.files["manifest.json"])
        layers = {layer["name"]: layer for layer in manifest["layers"] if "pe" in layer}
        names = ("conv1", "depthwise", "pointwise", "conv2")
        assert re.findall(r"\d+ x \d+", foldings) == [f"{layers[n]['pe']} x {layers[n]['simd']}" for n in names]
        expected = [build.timing.interval, build.timing.latency, manifest["estimate"]["lut"]]
        assert [int(number) for number in numbers] == expected


def test_the_example_of_fifo_depths(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python example of docs/streaming.md prints its comments; its last line raises ValueError."""
    page = (ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "measure" in block]
    monkeypatch.chdir(ROOT)
    with pytest.raises(ValueError, match="waits for"):
        exec(code, {})
    comments = re.findall(r"print\(.*\)  # (.*)", code)
    assert capsys.readouterr().out.splitlines() == comments[:-1]


@pytest.mark.sweep
def test_drawings_are_those_of_the_network(tmp_path: Path) -> None:
    folder = ROOT / "docs" / "images"
    subprocess.run([sys.executable, folder / "draw.py", "--out", tmp_path], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in folder.glob("*.svg")} - {
        "benchmarks.svg",
        "front.svg",
        "house.svg",
    }
    for path in tmp_path.iterdir():
        assert path.read_text() == (folder / path.name).read_text(), path.name


@pytest.mark.sweep
def test_the_house_is_drawn_from_the_code(tmp_path: Path) -> None:
    """`python docs/house.py` would change neither the drawing nor the table of docs/architecture.md."""
    subprocess.run([sys.executable, ROOT / "docs" / "house.py", "--out", tmp_path], check=True)
    assert (tmp_path / "house.svg").read_text() == (ROOT / "docs" / "images" / "house.svg").read_text()
    assert (tmp_path / "architecture.md").read_text() == (ROOT / "docs" / "architecture.md").read_text()
