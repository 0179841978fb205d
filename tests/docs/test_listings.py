"""What the pages show of commands is what the commands print.

A page is a script: its commands run from top to bottom in one directory, those without a listing too. A line `...`
in a listing stands for any lines.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT, needs_icarus
from typer.testing import CliRunner

from hlsgen.cli import app

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
#: Commands that take seconds. The others simulate.
FAST = ("hlsgen check", "hlsgen build", "hlsgen certify", "hlsgen explore", "hlsgen pack", "python")
SLOW = ("hlsgen verify", "hlsgen run")
#: What is run with those that simulate: builds of half a minute.
LARGE = re.compile(r"examples/digits_sequences/|demo/vit")
#: What has to be there before the first command of a page that does not say how it is made.
MODELS = "python examples/prequantized/models.py"
CNN = "hlsgen build examples/digits_cnn/digits_cnn.onnx --target-cycles 576 -o cnn"
FIRST = {
    "rescaling.md": (f"{MODELS} F1 -o f1.onnx", f"{MODELS} F4 -o f4.onnx"),
    "certificate.md": ("hlsgen build examples/digits/digits_mlp.onnx -o digits",),
    "commands.md": (CNN,),
    "streaming.md": (CNN,),
}


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page shows of its output; None: nothing is shown."""

    text: str
    shown: str | None


def commands(page: Path) -> list[Command]:
    """In order, those that the fast tests and the slow ones can run."""
    found = [Command(text, None) for text in FIRST.get(page.name, ())]
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        if language:
            continue
        if block.startswith("$ "):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                text, _, shown = part.partition("\n")
                found.append(Command(text, shown.rstrip("\n") or None))
        else:
            found += [Command(re.sub(r"\s+#.*", "", line), None) for line in block.splitlines()]
    return [one for one in found if is_run(one.text)]


def is_run(text: str) -> bool:
    """Whether it is a command of ours with real arguments, or writes a model."""
    if re.search(r"\b(MODEL|DIR|COMMAND)\b|--all\b|--help", text):
        return False
    return text.startswith("hlsgen ") or bool(re.match(r"python \S*(models|make_model)\.py", text))


def pattern(shown: str) -> str:
    lines = [r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in shown.splitlines()]
    return "".join(lines)


def prepare(page: Path, text: str, folder: Path) -> None:
    """What the words of a page say is done by hand in front of a command."""
    if "broken" in text and not (folder / "broken").exists():
        shutil.copytree(folder / "digits", folder / "broken")
        memory = folder / "broken" / "rtl" / "digits_mlp_mv2.mem"
        first, rest = memory.read_text().split("\n", 1)
        memory.write_text(f"{first[:-1]}{int(first[-1], 16) ^ 1:x}\n{rest}")
    if page.name == "streaming.md" and text.startswith("hlsgen verify"):
        top = folder / "cnn" / "rtl" / "digits_cnn.v"
        lines = top.read_text().split(";\n")
        (wait,) = [n for n, line in enumerate(lines) if re.search(r"\badd7_wait0 \(", line)]
        assert ".DEPTH(63)" in lines[wait]
        lines[wait] = lines[wait].replace(".DEPTH(63)", ".DEPTH(62)")
        top.write_text(";\n".join(lines))
    if text.startswith(("hlsgen run", "hlsgen pack")):
        shape = (450, 1, 8, 8) if page.name == "commands.md" else (20, 64)
        np.save(folder / "x.npy", np.random.default_rng(1).random(shape).astype(np.float32))


def printed(text: str, page: Path) -> str:
    program, *arguments = shlex.split(text)
    if program == "python":
        script = Path(arguments[0])
        path = script if script.exists() else next(page.parent.rglob(script.name))
        done = subprocess.run([sys.executable, path, *arguments[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == (1 if "NOT" in result.output else 0), (text, result.output)
    return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())


def run_page(page: Path, folder: Path, simulating: bool) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    for one in commands(page):
        fast = one.text.startswith(FAST) and not LARGE.search(one.text)
        if fast or (simulating and one.text.startswith((*FAST, *SLOW))):
            prepare(page, one.text, folder)
            got = printed(one.text, page)
            if one.shown is not None:
                assert re.fullmatch(pattern(one.shown), got), f"{one.text}\n{got}"
            if one.text.startswith("hlsgen explore"):
                picture = (folder / one.text.split()[-1] / "front.svg").read_text()
                assert picture == (ROOT / "docs" / "images" / "front.svg").read_text()


def pages(simulating: bool) -> list[Path]:
    texts = {page: [one.text for one in commands(page)] for page in PAGES}
    if simulating:
        return [page for page in PAGES if any(not text.startswith(FAST) for text in texts[page])]
    return [page for page in PAGES if any(text.startswith(FAST) for text in texts[page])]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages(False), ids=name)
def test_listings(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, simulating=False)


@pytest.mark.sim
@needs_icarus
@pytest.mark.slow
@pytest.mark.parametrize("page", pages(True), ids=name)
def test_listings_of_simulations(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, simulating=True)


def test_the_listings_are_found() -> None:
    """Of every command that a page shows with its output, unless it is marked as text: what other tools measure."""
    for page in PAGES:
        text = re.sub(r"^```text\n.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        shown = re.findall(r"^\$ (hlsgen .*)", text, re.M)
        assert shown == [one.text for one in commands(page) if one.shown is not None and one.text.startswith("hlsgen")]
    assert pattern("a\n...\nb") == r"a\n(?:.*\n)*b\n"
