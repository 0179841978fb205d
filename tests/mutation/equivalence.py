"""Equivalence of a changed module or core: ABC proves equal outputs from equal states, for inputs of any length."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "templates" / "rtl"

# Runs in a separate process, because an error of Yosys ends the process.
_TRANSLATE = """
import sys
from pyosys import libyosys as ys
folder, module, values, undefined, *sources = sys.argv[1:]
design = ys.Design()
run = lambda command: ys.run_pass(command, design)
for side, files in zip(("gold", "gate"), sources):
    run(f"read_verilog -defer {files}")
    run(f"hierarchy -check -top {module} {values}")
    run("setattr -mod -unset keep_hierarchy")
    run(f"proc; flatten; memory_map; opt -fast; setundef -zero; setundef -init -zero; rename -top {side}")
    run(f"design -stash {side}")
for side in ("gold", "gate"):
    run(f"design -copy-from {side} -as {side} {side}")
run("miter -equiv -flatten -make_assert gold gate top")
run(f"hierarchy -top top; flatten; async2sync; chformal -lower; setundef -undriven {undefined}; simplemap; techmap")
run(f"opt -fast; dffunmap; setundef {undefined}; simplemap; aigmap; opt_clean")
run(f"write_aiger -I -B -zinit -no-startoffset {folder}/top.aig")
print("DONE")
"""


sys.path[:0] = [str(ROOT / "rtl_tests"), str(ROOT / "tests" / "support")]


def sets(module: str) -> list[dict[str, object]]:
    """Parameter sets: the defaults, and the sets with which test_library.py lints the module."""
    from test_library import SETS

    return [{}, *SETS[module]]


def _constant(file: Path) -> bool:
    """True if all outputs of a binary AIGER file are 0, which ABC reports as undecided."""
    head, *lines = file.read_bytes().split(b"\n")
    latches, outputs = (int(head.split()[k]) for k in (3, 4))
    return lines[latches : latches + outputs] == [b"0"] * outputs


def closure(module: str, source: str) -> str:
    """Text of the module and all its submodules."""
    texts, todo = {}, [(module, source)]
    while todo:
        name, text = todo.pop()
        texts[name] = text
        todo += [
            (submodule, (RTL / f"{submodule}.v").read_text())
            for submodule in set(re.findall(r"^ *(hg_\w+) #\(", text, re.MULTILINE)) - set(texts)
        ]
    return "".join(texts.values())


def program(text: str) -> str:
    """Program compiled by Icarus Verilog, without addresses and without names and values of parameters."""
    numbers: dict[str, str] = {}
    text = re.sub(r"^P_.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"0x[0-9a-f]+", lambda m: numbers.setdefault(m[0], f"0x{len(numbers)}"), text)


def _compiles_equally(module: str, sources: Sequence[str], parameters: Mapping[str, object], folder: Path) -> bool:
    """True if Icarus Verilog compiles all sources to the same program."""
    values = [f"-P{module}.{name}={value}" for name, value in parameters.items()]
    programs = set()
    for source in sources:
        (folder / "side.v").write_text(source)
        command = ["iverilog", "-g2005", "-s", module, *values, "-o", "side.vvp", "side.v"]
        completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        programs.add(program((folder / "side.vvp").read_text()) if completed.returncode == 0 else source)
    return len(programs) == 1


def equivalent(module: str, changed: str, seconds: int = 60) -> str | None:
    """Objection to equivalence, or None if the change is proven equivalent at every parameter set.

    Data is compared even while its valid is 0. A mutant that changes only such data counts as different, and needs a
    reason.
    """
    from test_library import memories, reading

    for parameters in sets(module):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            gold, gate = (reading(closure(module, text)) for text in ((RTL / f"{module}.v").read_text(), changed))
            if _compiles_equally(module, (gold, gate), parameters, folder):
                continue
            (folder / "gold.v").write_text(gold)
            (folder / "gate.v").write_text(gate)
            memories(folder)
            values = " ".join(f"-chparam {name} {_written(value)}" for name, value in parameters.items())
            difference = _decide(folder, module, values, [folder / "gold.v"], [folder / "gate.v"], seconds)
            if difference:
                return f"{difference[0]} at {parameters or 'the defaults'}{difference[1]}"
    return None


def _written(value: object) -> object:
    """Parameter value for Yosys, which accepts no sign."""
    return f"32'h{value & 0xFFFFFFFF:x}" if isinstance(value, int) and value < 0 else value


def same_tops(gold: Path, gate: Path, top: str, seconds: int = 60) -> str | None:
    """Like `equivalent`, for the files in files.f of two build directories."""
    sides = [[side.resolve() / line for line in (side / "files.f").read_text().split()] for side in (gold, gate)]
    with tempfile.TemporaryDirectory() as scratch:
        difference = _decide(Path(scratch), top, "", *sides, seconds)
    return "".join(difference) if difference else None


def _decide(
    folder: Path, top: str, values: str, gold: Sequence[Path], gate: Sequence[Path], seconds: int
) -> tuple[str, str] | None:
    """Objection and its details, or None if both sides are proven equal.

    Undefined values, such as bits beyond a word, may differ between the sides. If gold then differs from itself, they
    are 0.
    """
    difference = _miter(folder, top, values, gold, gate, seconds, "-anyseq")
    if difference and difference[0] == "differs" and _miter(folder, top, values, gold, gold, seconds, "-anyseq"):
        return _miter(folder, top, values, gold, gate, seconds, "-zero")
    return difference


def _miter(
    folder: Path, top: str, values: str, gold: Sequence[Path], gate: Sequence[Path], seconds: int, undefined: str
) -> tuple[str, str] | None:
    """Like `_decide`, with `undefined` as the value of undefined bits."""
    import pyosys

    abc = Path(str(pyosys.__file__)).parent / "yosys-abc"
    sources = [" ".join(map(str, files)) for files in (gold, gate)]
    command = [sys.executable, "-c", _TRANSLATE, str(folder), top, values, undefined, *sources]
    try:
        completed = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=5 * seconds
        )
        if not completed.stdout.rstrip().endswith("DONE"):
            return "no netlist", f": {completed.stderr.strip()[-200:] or completed.stdout[-200:]}"
        # Merge the common logic of both sides first.
        script = (
            f"read_aiger {folder}/top.aig; fold; strash; lcorr; scorr; write_aiger {folder}/bad.aig; pdr -T {seconds}"
        )
        command = [str(abc), "-c", script]
        completed = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=5 * seconds
        )
    except subprocess.TimeoutExpired:
        return "not decided", ""
    if "Property proved" in completed.stdout or _constant(folder / "bad.aig"):
        return None
    return ("differs" if "was asserted in frame" in completed.stdout else "not decided"), ""
