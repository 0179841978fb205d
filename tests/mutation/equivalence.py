"""Whether a changed module or core ever shows another output: decided by ABC from equal states, for inputs of any length."""

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
    from test_library import memories, reading

    for parameters in sets(module):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            gold, gate = (reading(closure(module, text)) for text in ((RTL / f"{module}.v").read_text(), changed))
            if _same(module, (gold, gate), parameters, folder):
                continue
            (folder / "gold.v").write_text(gold)
            (folder / "gate.v").write_text(gate)
            memories(folder)
            values = " ".join(f"-chparam {name} {_written(value)}" for name, value in parameters.items())
            stands = _decide(folder, module, values, [folder / "gold.v"], [folder / "gate.v"], seconds)
            if stands:
                return f"{stands[0]} at {parameters or 'the defaults'}{stands[1]}"
    return None


def _written(value: object) -> object:
    """As Yosys takes it: no sign."""
    return f"32'h{value & 0xFFFFFFFF:x}" if isinstance(value, int) and value < 0 else value


def same_tops(gold: Path, gate: Path, top: str, seconds: int = 60) -> str | None:
    """The same of two build directories, whose files.f say what they consist of."""
    sides = [[side.resolve() / line for line in (side / "files.f").read_text().split()] for side in (gold, gate)]
    with tempfile.TemporaryDirectory() as scratch:
        stands = _decide(Path(scratch), top, "", *sides, seconds)
    return "".join(stands) if stands else None


def _decide(
    folder: Path, top: str, values: str, gold: Sequence[Path], gate: Sequence[Path], seconds: int
) -> tuple[str, str] | None:
    """What stands against it, and more about it; None if both sides are proven the same.

    What is undefined, such as bits beyond a word, may differ between the sides; is it the reason why gold differs from
    itself, it is 0.
    """
    stands = _miter(folder, top, values, gold, gate, seconds, "-anyseq")
    if stands and stands[0] == "differs" and _miter(folder, top, values, gold, gold, seconds, "-anyseq"):
        return _miter(folder, top, values, gold, gate, seconds, "-zero")
    return stands


def _miter(
    folder: Path, top: str, values: str, gold: Sequence[Path], gate: Sequence[Path], seconds: int, undefined: str
) -> tuple[str, str] | None:
    """The same, with one meaning of what is undefined."""
    import pyosys

    abc = Path(str(pyosys.__file__)).parent / "yosys-abc"
    sources = [" ".join(map(str, files)) for files in (gold, gate)]
    command = [sys.executable, "-c", _TRANSLATE, str(folder), top, values, undefined, *sources]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=5 * seconds)
        if not done.stdout.rstrip().endswith("DONE"):
            return "no netlist", f": {done.stderr.strip()[-200:] or done.stdout[-200:]}"
        # What both sides have in common is merged first.
        script = (
            f"read_aiger {folder}/top.aig; fold; strash; lcorr; scorr; write_aiger {folder}/bad.aig; pdr -T {seconds}"
        )
        command = [str(abc), "-c", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=5 * seconds)
    except subprocess.TimeoutExpired:
        return "not decided", ""
    if "Property proved" in done.stdout or _constant(folder / "bad.aig"):
        return None
    return ("differs" if "was asserted in frame" in done.stdout else "not decided"), ""
