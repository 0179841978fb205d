"""Listings on the pages equal the output of their commands.

A page is a script: its commands run from top to bottom in one directory, also commands without a listing. A line `...`
in a listing matches any lines.
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
#: Builds of half a minute; they run together with the simulations.
LARGE = re.compile(r"examples/digits_sequences/|demo/vit")
#: Commands that prepare a page whose first command needs files.
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
    """A command of a page, and the output that the page shows; None: the page shows no output."""

    text: str
    shown: str | None


def commands(page: Path) -> list[Command]:
    """Commands of a page in order, as far as the fast and the slow tests can run them."""
    listed = [Command(text, None) for text in FIRST.get(page.name, ())]
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        if language:
            continue
        if block.startswith("$ "):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                text, _, shown = part.partition("\n")
                listed.append(Command(text, shown.rstrip("\n") or None))
        else:
            listed += [Command(re.sub(r"\s+#.*", "", line), None) for line in block.splitlines()]
    return [command for command in listed if is_run(command.text)]


def is_run(text: str) -> bool:
    """True for a command of hlsgen with real arguments, and for a script that writes a model."""
    if re.search(r"\b(MODEL|DIR|COMMAND)\b|--all\b|--help", text):
        return False
    return text.startswith("hlsgen ") or bool(re.match(r"python \S*(models|make_model)\.py", text))


def pattern(shown: str) -> str:
    lines = [r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in shown.splitlines()]
    return "".join(lines)


def prepare(page: Path, text: str, folder: Path) -> None:
    """Do the manual steps that a page describes before a command."""
    if "broken" in text and not (folder / "broken").exists():
        shutil.copytree(folder / "digits", folder / "broken")
        memory = folder / "broken" / "rtl" / "digits_mlp_node_linear_1.mem"
        first, remainder = memory.read_text().split("\n", 1)
        memory.write_text(f"{first[:-1]}{int(first[-1], 16) ^ 1:x}\n{remainder}")
    if page.name == "streaming.md" and text.startswith("hlsgen verify"):
        top = folder / "cnn" / "rtl" / "digits_cnn.v"
        lines = top.read_text().split(";\n")
        (wait,) = [n for n, line in enumerate(lines) if re.search(r"\bresidual_quant_wait0 \(", line)]
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
        run = subprocess.run([sys.executable, path, *arguments[1:]], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == (1 if "NOT" in result.output else 0), (text, result.output)
    return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())


def run_page(page: Path, folder: Path, simulating: bool) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    for command in commands(page):
        fast = command.text.startswith(FAST) and not LARGE.search(command.text)
        if fast or (simulating and command.text.startswith((*FAST, *SLOW))):
            prepare(page, command.text, folder)
            output = printed(command.text, page)
            if command.shown is not None:
                assert re.fullmatch(pattern(command.shown), output), f"{command.text}\n{output}"
            if command.text.startswith("hlsgen explore"):
                picture = (folder / command.text.split()[-1] / "front.svg").read_text()
                assert picture == (ROOT / "docs" / "images" / "front.svg").read_text()


def pages(simulating: bool) -> list[Path]:
    texts = {page: [command.text for command in commands(page)] for page in PAGES}
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
    """Every command that a page shows with its output is tested, except blocks marked as text (output of other
    tools).
    """
    for page in PAGES:
        text = re.sub(r"^```text\n.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        shown = re.findall(r"^\$ (hlsgen .*)", text, re.M)
        assert shown == [
            command.text
            for command in commands(page)
            if command.shown is not None and command.text.startswith("hlsgen")
        ]
    assert pattern("a\n...\nb") == r"a\n(?:.*\n)*b\n"
