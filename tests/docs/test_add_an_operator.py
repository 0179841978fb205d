"""docs/add-an-operator.md is followed to the letter, in a copy of the package: its examples build and are certified."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT, needs_icarus

PAGE = (ROOT / "docs" / "add-an-operator.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
PROGRAM = next(block for block in BLOCKS if "hlsgen.build(" in block)
#: (file, line, its replacement: {0} is the block of the page that contains the word, {1} the line itself, word).
COSH = (
    ("numerics/activations.py", "SMOOTH: dict[str, Smooth] = {", "{1}{0}", "Smooth("),
    ("frontend/rules.py", "RULES: dict[tuple[frozenset[str], str], Rule] = {", "{1}{0}", "Rule(activation())"),
    ("certify/monotone_ops.py", '    **dict.fromkeys(["Abs", "Sqrt",', "{0}", "TurningPoints(isolated=_ZERO)"),
)
FMOD = (
    ("ir/ops.py", "Float = (", "{0}\n\n{1}    Fmod |", "class Fmod"),
    ("ir/evaluate.py", "from hlsgen.ir.ops import (", "{1}    Fmod,\n", "np.fmod"),
    ("ir/evaluate.py", "            case Slope(value):", "{0}{1}", "np.fmod"),
    ("frontend/rules.py", "from hlsgen.ir.ops import", "from hlsgen.ir.ops import Fmod\n{1}", "Fmod)"),
    ("frontend/rules.py", '    (ONNX, "Mod"):', "{0}", "with_constant(Fmod)"),
)
OF_FMOD = (
    ("float step = {0.25}", "float step = {0.03125}, float value = {0.75}"),
    ("Cosh(d)", "Mod <fmod = 1> (d, value)"),
)


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("edits, program", [(COSH, ()), (FMOD, OF_FMOD)], ids=["Cosh", "Fmod"])
def test_the_examples_of_the_page(
    edits: tuple[tuple[str, str, str, str], ...], program: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    package, source = tmp_path / "hlsgen", PROGRAM
    shutil.copytree(ROOT / "hlsgen", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "templates", package / "templates")
    for name, line, pattern, word in edits:
        path = package / name
        (block,) = [block for block in BLOCKS if word in block]
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (place,) = [n for n, text in enumerate(lines) if text.startswith(line)]
        lines[place] = pattern.format(block, lines[place])
        path.write_text("".join(lines), encoding="utf-8")
    for old, new in (('verify("out")', 'verify("out", ["icarus"])'), *program):
        assert old in source
        source = source.replace(old, new)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.stdout == "True True True\n", run.stderr
