"""Whether a changed module ever shows another output: decided by ABC from equal states, for inputs of any length."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "templates" / "rtl"

# Runs in a process of its own: an error of Yosys ends the process.
_TRANSLATE = """
import sys
from pyosys import libyosys as ys
folder, module, values = sys.argv[1:4]
design = ys.Design()
run = lambda command: ys.run_pass(command, design)
for side in ("gold", "gate"):
    run(f"read_verilog {folder}/{side}.v")
    run(f"hierarchy -check -top {module} {values}")
    run(f"proc; flatten; memory_map; opt -fast; setundef -zero; setundef -init -zero; rename -top {side}")
    run(f"design -stash {side}")
for side in ("gold", "gate"):
    run(f"design -copy-from {side} -as {side} {side}")
run("miter -equiv -flatten -make_assert gold gate top")
run("hierarchy -top top; flatten; async2sync; chformal -lower; setundef -undriven -anyseq; simplemap; techmap")
run("opt -fast; dffunmap; setundef -anyseq; simplemap; aigmap; opt_clean")
run(f"write_aiger -I -B -zinit -no-startoffset {folder}/top.aig")
print("DONE")
"""


sys.path[:0] = [str(ROOT / "rtl_tests"), str(ROOT / "tests" / "support")]


def sets(module: str) -> list[dict[str, object]]:
    """The defaults, and the parameters at which test_library.py lints the module."""
    from test_library import SETS

    return [{}, *SETS[module]]


def _constant(file: Path) -> bool:
    """Whether all outputs of a binary AIGER file are 0: ABC calls that undecided."""
    head, *lines = file.read_bytes().split(b"\n")
    latches, outputs = (int(head.split()[k]) for k in (3, 4))
    return lines[latches : latches + outputs] == [b"0"] * outputs


def closure(module: str, source: str) -> str:
    """The module with all modules under it."""
    texts, todo = {}, [(module, source)]
    while todo:
        name, text = todo.pop()
        texts[name] = text
        todo += [
            (under, (RTL / f"{under}.v").read_text())
            for under in set(re.findall(r"^ *(hg_\w+) #\(", text, re.MULTILINE)) - set(texts)
        ]
    return "".join(texts.values())


def program(text: str) -> str:
    """What Icarus Verilog has compiled, without its addresses and without names and values of parameters."""
    numbers: dict[str, str] = {}
    text = re.sub(r"^P_.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"0x[0-9a-f]+", lambda m: numbers.setdefault(m[0], f"0x{len(numbers)}"), text)


def _same(module: str, sources: Sequence[str], parameters: Mapping[str, object], folder: Path) -> bool:
    """Whether Icarus Verilog compiles all of them to the same."""
    values = [f"-P{module}.{name}={value}" for name, value in parameters.items()]
    programs = set()
    for source in sources:
        (folder / "side.v").write_text(source)
        command = ["iverilog", "-g2005", "-s", module, *values, "-o", "side.vvp", "side.v"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        programs.add(program((folder / "side.vvp").read_text()) if done.returncode == 0 else source)
    return len(programs) == 1


def equivalent(module: str, changed: str, seconds: int = 60) -> str | None:
    """None if it is proven at every parameter set; else what stands against it.

    Data beside a valid of the same name that is 0 is compared, too: a mutant that changes only such data is found
    to differ, and needs a reason.
    """
    import pyosys
    from test_library import memories

    abc = Path(str(pyosys.__file__)).parent / "yosys-abc"
    for parameters in sets(module):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            gold, gate = closure(module, (RTL / f"{module}.v").read_text()), closure(module, changed)
            if _same(module, (gold, gate), parameters, folder):
                continue
            (folder / "gold.v").write_text(gold)
            (folder / "gate.v").write_text(gate)
            memories(module, parameters, folder)
            values = " ".join(f"-chparam {name} {value}" for name, value in parameters.items())
            command = [sys.executable, "-c", _TRANSLATE, str(folder), module, values]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if not done.stdout.rstrip().endswith("DONE"):
                return f"no netlist at {parameters}: {done.stderr.strip()[-200:] or done.stdout[-200:]}"
            script = f"read_aiger {folder}/top.aig; fold; strash; write_aiger {folder}/bad.aig; pdr -T {seconds}"
            done = subprocess.run([str(abc), "-c", script], cwd=folder, capture_output=True, text=True, check=False)
            if "Property proved" not in done.stdout and not _constant(folder / "bad.aig"):
                differs = "was asserted in frame" in done.stdout
                return f"{'differs' if differs else 'not decided'} at {parameters or 'the defaults'}"
    return None
