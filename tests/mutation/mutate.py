"""Does simulation find every mistake in the Verilog library? Mutants of its modules, run through rtl_tests.

    python tests/mutation/mutate.py                          all mutants of all modules of UNITS (hours)
    python tests/mutation/mutate.py hg_fifo hg_slice         of these
    python tests/mutation/mutate.py --sample 20 --seed 3     20 of them

The tests of a module run once on the library as it is, and the benches that they write are kept with what Icarus
Verilog printed. A mutant is killed if it does not compile, if a bench prints anything else, or if the tests that
drive Icarus from Python fail. What lives is compared with the module itself by ABC: equivalent is what never shows
a difference at any of the parameter sets of `equivalence.sets`, or has an entry with an explanation in reasons.json.
Exits with 1 if any other mutant survives.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from equivalence import equivalent
from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
#: Seconds and bytes of address space that a tool may take.
LIMIT, MEMORY = 300, 3 << 30
RTL = ROOT / "templates" / "rtl"
REASONS = Path(__file__).with_name("reasons.json")
#: The modules that every build needs and that `hlsgen certify` does not look into, with the tests of each.
UNITS = {
    "hg_axis_in": "test_axis.py", "hg_axis_out": "test_axis.py", "hg_beside": "test_plumbing.py",
    "hg_concat": "test_plumbing.py", "hg_fifo": "test_fifo.py", "hg_fork": "test_plumbing.py",
    "hg_gather": "test_gather.py", "hg_join": "test_plumbing.py", "hg_load": "test_load.py",
    "hg_pad": "test_plumbing.py", "hg_pick": "test_plumbing.py", "hg_replay": "test_replay.py",
    "hg_reset": "test_reset.py", "hg_rotate": "test_unfold.py", "hg_slice": "test_slice.py",
    "hg_take": "test_plumbing.py", "hg_unfold": "test_unfold.py", "hg_unfold_store": "test_unfold.py",
    "hg_unfold_walk": "test_unfold.py", "hg_weights": "test_weights.py", "hg_width": "test_width.py",
    "hg_window": "test_window_conv.py", "hg_window_flow": "test_window_conv.py",
    "hg_window_step": "test_window_conv.py", "hg_window_walk": "test_window_conv.py",
}  # fmt: skip
#: Tests that look at the text of modules, at Verilator, or at nothing that a mutant changes.
_LEFT_OUT = "not verilator and not test_rules and not test_synthesis and not lint"
_SETTINGS = """[pytest]
pythonpath = {root}/tests {root}/tests/support {rtl_tests}
addopts = --import-mode=importlib -p no:cacheprovider -p no:hypothesispytest
markers =
    sim: ignored
    sweep: ignored
    slow: ignored
    oracle: ignored
    cases(N): ignored
"""


class Bench:
    """Copies of rtl_tests and of the library, and recorded benches of each test file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.library = folder / "templates" / "rtl"
        shutil.copytree(RTL, self.library)
        shutil.copytree(ROOT / "rtl_tests", folder / "rtl_tests", ignore=shutil.ignore_patterns("__pycache__"))
        with (folder / "rtl_tests" / "conftest.py").open("a") as file:
            file.write('\nimport bench\n\nbench.simulate.__defaults__ = (500, ("icarus",))\n')
        settings = _SETTINGS.format(root=ROOT, rtl_tests=folder / "rtl_tests")
        (folder / "pytest.ini").write_text(settings)
        self.recorded: dict[str, list[tuple[Path, str]]] = {}  # of each test file: folder and what it shows
        self.driven: dict[str, list[str]] = {}

    def record(self, tests: str) -> None:
        """Run a test file on the library as it is; keep its benches, and the names of tests without one."""
        if tests in self.recorded:
            return
        base = self.folder / f"base_{tests}"
        done = self._pytest([f"rtl_tests/{tests}", "-v", f"--basetemp={base}", "-o", "tmp_path_retention_count=99"])
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        passed = [line.split(" PASSED")[0] for line in done.stdout.splitlines() if " PASSED" in line]
        self.recorded[tests] = []
        with_bench = set()
        for folder in sorted(base.iterdir()):
            if (folder / "bench.v").exists() and not folder.is_symlink():
                self.recorded[tests].append((folder, self._play(folder)))
                with_bench.add(folder.name.rstrip("0123456789"))
        # pytest names folders after tests, cut and with other characters replaced.
        stems = {test: test.split("::")[-1] for test in passed}
        self.driven[tests] = [
            test for test, stem in stems.items()
            if "".join(c if c.isalnum() else "_" for c in stem)[:30] not in with_bench
        ]  # fmt: skip

    def killer(self, mutant: Mutant) -> str | None:
        """What finds the mutant; None if nothing does."""
        tests = UNITS[mutant.module]
        self.record(tests)
        file = self.library / f"{mutant.module}.v"
        original = file.read_text()
        file.write_text(mutant.source)
        try:
            if self._run(["iverilog", "-g2005", "-t", "null", "-y", ".", file.name], self.library).returncode:
                return "does not compile"
            for folder, printed in self.recorded[tests]:
                if self._play(folder) != printed:
                    return folder.name
            for test in self.driven[tests]:
                if self._pytest([test, "-x", f"--basetemp={self.folder / 'driven'}"]).returncode:
                    return test
            return None
        finally:
            file.write_text(original)

    def _play(self, folder: Path) -> str:
        """What a bench shows, words that are not valid left out."""
        text = (folder / "bench.v").read_text()
        top = "clock" if "module clock;" in text else "bench"
        words = ["iverilog", "-g2005", "-y", str(self.library), "-s", top, "-o", "bench.vvp", "bench.v"]
        if self._run(words, folder).returncode:
            return "does not compile"
        done = self._run(["vvp", "-n", "bench.vvp"], folder)
        shown = [line for line in done.stdout.splitlines() if ".v:" not in line]
        for file in sorted(folder.glob("out*.txt")):
            # s_ready, m_valid, word; nothing is known before the first reset.
            lines = file.read_text().splitlines()[1:]
            shown += [line if line[1] == "1" else line[:2] for line in lines]
        return "\n".join(shown)

    def _pytest(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "--rootdir", ".", "-k", _LEFT_OUT, *words]
        return self._run(command, self.folder)

    def _run(self, words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Within bounds: the elaboration of some mutants, and the simulation of others, never ends."""
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=_bounded,
        ) as process:  # fmt: skip
            try:
                shown, errors = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return subprocess.CompletedProcess(words, 1, "", "timeout")
        return subprocess.CompletedProcess(words, process.returncode, shown, errors)


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def reasons() -> dict[str, str]:
    """Why a mutant that simulation does not find makes no difference, by "module: line -> line"."""
    found: dict[str, str] = json.loads(REASONS.read_text())
    return found


def key(mutant: Mutant) -> str:
    return f"{mutant.module}: {mutant.text} -> {mutant.changed}"


def judge(bench: Bench, chosen: Sequence[Mutant], show: bool = True) -> dict[str, Counter[str]]:
    """Counts of killed, equivalent and surviving mutants of each module."""
    counts: dict[str, Counter[str]] = {}
    known = reasons()
    for mutant in chosen:
        begun = time.time()
        killer = bench.killer(mutant)
        if killer:
            verdict, why = "killed", killer
        elif key(mutant) in known:
            verdict, why = "equivalent", known[key(mutant)]
        else:
            proof = equivalent(mutant.module, mutant.source)
            verdict, why = ("equivalent", "proven") if proof is None else ("surviving", proof)
        counts.setdefault(mutant.module, Counter())[verdict] += 1
        if show:
            print(f"{verdict:10} {mutant} | {why} {time.time() - begun:.1f} s", flush=True)
    return counts


def score(name: str, counts: Counter[str]) -> str:
    return (
        f"{name}: mutants {counts.total()}, killed {counts['killed']}, equivalent {counts['equivalent']}, "
        f"surviving {counts['surviving']}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(UNITS)}")
    parser.add_argument("--sample", type=int, metavar="N", help="that many of them")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.modules) - set(UNITS):
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    modules = options.modules or list(UNITS)
    chosen = [mutant for module in modules for mutant in mutants(module, (RTL / f"{module}.v").read_text())]
    if options.sample:
        picked = random.Random(options.seed).sample(range(len(chosen)), min(options.sample, len(chosen)))
        chosen = [chosen[k] for k in sorted(picked)]
    with tempfile.TemporaryDirectory() as folder:
        counts = judge(Bench(Path(folder) / "bench"), chosen)
    for module, own in counts.items():
        print(score(module, own))
    total = sum(counts.values(), Counter())
    print(score("all", total))
    return int(total["surviving"] > 0)


if __name__ == "__main__":
    sys.exit(main())
