"""Simulations that tests of the Verilog library make, played again on a library with a mistake."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from equivalence import ROOT, RTL, closure, program
from mutants import Mutant
from units import UNITS

#: Seconds of processor time and bytes of address space that a tool may take; seconds of simulation before a proof is tried.
LIMIT, MEMORY, FIRST = 300, 3 << 30, 10.0
#: Small parts find most mutants sooner than the whole.
UNITS_OF_A_PART = 8
#: Tests that look at the text of modules, at Verilator, or at nothing that a mutant changes.
_LEFT_OUT = "not verilator and not test_rules and not test_synthesis and not lint and not every_float"
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


#: Behind the copy of conftest.py: keeps the folder of every simulation of Icarus Verilog with what starts it.
_RECORDER = """

import itertools
import resource
import shutil
import subprocess

_count, _run, _builds = itertools.count(), subprocess.run, []
__import__("bench").simulate.__defaults__ = (500, ("icarus",))


def _recorded(words, *rest, **options):
    tool = Path(str(words[0])).name
    if tool == "iverilog":
        _builds.append(words)
    if tool == "vvp":
        test, folder = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0], str(options["cwd"])
        kept = Path({kept!r}) / f"{{os.getpid()}}_{{next(_count):04d}}"
        shutil.copytree(folder, kept)
        for file in kept.glob("*.v"):
            file.write_text(file.read_text().replace(folder, str(kept)))
        environment = {{name: value.replace(folder, str(kept)) for name, value in options["env"].items()}}
        commands = [[str(word).replace(folder, str(kept)) for word in command] for command in (_builds[-1], words)]
        told = dict(test=test, build=commands[0], words=commands[1], environment=environment)
        begun = _used()
        done = _run(words, *rest, **options)
        (kept / "run.json").write_text(json.dumps(told | {{"seconds": _used() - begun}}))
        return done
    return _run(words, *rest, **options)


def _used():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


subprocess.run = _recorded
"""


@dataclass
class Run:
    """A simulation that a test made: commands that compile and run it, and what it printed.

    With `results`, the file that cocotb writes, that file says whether the test passed, and `printed` is empty.
    """

    test: str
    folder: Path
    build: list[str]
    words: list[str]
    environment: dict[str, str]
    results: Path | None
    modules: set[str]
    compiled: str
    printed: list[str] = field(default_factory=list)
    seconds: float = LIMIT / 10  # of processor time that it takes if it finds nothing
    repeated: bool = False  # it found nothing in the library as it is a second time

    @property
    def limit(self) -> int:
        """Seconds that it may take: what needs as many never ends."""
        return int(2 + 3 * self.seconds)


class Bench:
    """Copies of rtl_tests and of the library, and the simulations of each test file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.library = folder / "templates" / "rtl"
        shutil.copytree(RTL, self.library)
        shutil.copytree(ROOT / "rtl_tests", folder / "rtl_tests", ignore=shutil.ignore_patterns("__pycache__"))
        with (folder / "rtl_tests" / "conftest.py").open("a") as file:
            file.write(_RECORDER.format(kept=str(folder / "kept")))
        settings = _SETTINGS.format(root=ROOT, rtl_tests=folder / "rtl_tests")
        (folder / "pytest.ini").write_text(settings)
        (folder / "kept").mkdir()
        self.names: dict[str, list[str]] = {}  # tests of each test file
        self.recorded: set[str] = set()  # of these
        self.runs: dict[str, list[Run]] = {}  # of each test file
        self.driven: dict[str, list[str]] = {}  # tests that no simulation is known of
        self.pieces: dict[str, list[Run]] = {}  # of each module
        self.taken: Counter[tuple[str, str]] = Counter()  # runs of a test file that are in the pieces of a module
        self.kills: Counter[tuple[str, str]] = Counter()  # by module and what killed

    def record(self, tests: str, cases: int | None = None) -> None:
        """Run a test file, or so many cases of each test, on the library as it is, if that was not done before.

        Kept are its simulations, and the names of tests without one.
        """
        if tests not in self.names:
            shown = self._pytest([f"rtl_tests/{tests}", "--collect-only", "-q"]).stdout
            self.names[tests] = [line for line in shown.splitlines() if "::" in line]
            assert self.names[tests], shown[-3000:]
            self.runs[tests], self.driven[tests] = [], []
        wanted = [test for test in _spread(self.names[tests], cases) if test not in self.recorded]
        if not wanted:
            return
        self.recorded.update(wanted)
        base = self.folder / f"base_{tests}"
        known = set((self.folder / "kept").iterdir())
        done = self._pytest([*wanted, "-v", f"--basetemp={base}"])
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        passed = [line.split(" PASSED")[0] for line in done.stdout.splitlines() if " PASSED" in line]
        new = [self._kept(folder) for folder in sorted(set((self.folder / "kept").iterdir()) - known)]
        self.runs[tests] += new
        simulated = {run.test for run in new}
        self.driven[tests] += [test for test in passed if test not in simulated]
        shutil.rmtree(base)

    def _kept(self, folder: Path) -> Run:
        told = json.loads((folder / "run.json").read_text())
        environment = told["environment"]
        results = Path(environment["COCOTB_RESULTS_FILE"]) if "COCOTB_RESULTS_FILE" in environment else None
        run = Run(told["test"], folder, told["build"], told["words"], environment, results, set(), "")
        run.seconds = told["seconds"]
        run.compiled = self._compiled(run)
        run.modules = set(re.findall(r'^S_\w+ \.scope module, "[^"]*" "(\w+)"', run.compiled, re.MULTILINE))
        return run

    def _compiled(self, run: Run) -> str:
        """What Icarus Verilog runs, empty if it takes nothing."""
        if self._spawn(run.build, run.folder, run.environment, run.limit).returncode:
            return ""
        return program((run.folder / run.build[run.build.index("-o") + 1]).read_text())

    def _pieces(self, tests: str, module: str) -> list[Run]:
        """The new simulations in which the module is; a bench of many units is taken to pieces of some of those."""
        pieces = []
        known, self.taken[tests, module] = self.taken[tests, module], len(self.runs[tests])
        for run in self.runs[tests][known:]:
            if module not in run.modules:
                continue
            if run.results is not None:
                pieces.append(run)
                continue
            parts = _parts((run.folder / "bench.v").read_text(), module)
            for n, text in enumerate(parts):
                (run.folder / f"{module}_{n}.v").write_text(text)
                build = [{"bench.v": f"{module}_{n}.v", "bench.vvp": f"{module}_{n}.vvp"}.get(w, w) for w in run.build]
                words = [{"bench.vvp": f"{module}_{n}.vvp"}.get(w, w) for w in run.words]
                seconds = run.seconds / len(parts)
                pieces.append(
                    replace(run, test=f"{run.test} {n}", build=build, words=words, compiled="", seconds=seconds)
                )
        return pieces

    def _play(self, piece: Run) -> None:
        """What it prints of the library as it is, and how long that takes."""
        piece.compiled = self._compiled(piece)
        begun = _processor_time()
        shown = self._spawn(piece.words, piece.folder, piece.environment).stdout
        piece.seconds = _processor_time() - begun
        piece.printed = [_shown(line) for line in shown.splitlines()]

    def killer(self, mutant: Mutant, cases: int | None = None) -> str | None:
        """What finds the mutant; None if nothing does. With so many cases of each test, and the soonest of these, only."""
        pieces = self.pieces.setdefault(mutant.module, [])
        for tests in UNITS[mutant.module].split():
            self.record(tests, cases)
            pieces.extend(self._pieces(tests, mutant.module))
        file = self.library / f"{mutant.module}.v"
        original = file.read_text()
        file.write_text(mutant.source)
        try:
            alone = ["iverilog", "-g2005", "-t", "null", "-y", ".", file.name]
            if self._spawn(alone, self.library, limit=10).returncode:
                return "does not compile"
            found = self._killer(mutant, original, FIRST if cases else None)
        finally:
            file.write_text(original)
        self.kills[mutant.module, found or ""] += 1
        for run in pieces:
            if run.test == found and run.compiled and not run.repeated:
                assert not self._finds(run, itself=True), f"{found} differs from run to run"
                run.repeated = True
        return found

    def _killer(self, mutant: Mutant, original: str, seconds: float | None) -> str | None:
        """Of the changed library; what found most mutants of the module in its time comes first. Ends after so long."""
        module, file, spent = mutant.module, self.library / f"{mutant.module}.v", 0.0
        for run in sorted(
            self.pieces[module], key=lambda run: -(1 + self.kills[module, run.test]) / max(run.seconds, 0.01)
        ):
            if seconds is not None and spent > seconds:
                return None
            if not run.compiled:
                file.write_text(original)
                self._play(run)
                file.write_text(mutant.source)
            if self._finds(run):
                return run.test
            spent += run.seconds
        for tests in UNITS[module].split():
            if self.driven[tests]:
                order = sorted(self.driven[tests], key=lambda test: -self.kills[module, test])
                done = self._pytest([*order, "-x", f"--basetemp={self.folder / 'driven'}"])
                if done.returncode:
                    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
                    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else order[0]
        return None

    def _finds(self, run: Run, itself: bool = False) -> str | None:
        """How a simulation of the library as it stands differs from that of the library as it was."""
        compiled = self._compiled(run)
        if not compiled:
            return "does not compile"
        if compiled == run.compiled and not itself:
            return None
        if run.results is None:
            return self._differs(run)
        run.results.unlink(missing_ok=True)
        _, stopped = self._lines(run, lambda count, line: re.search(r"\.\w+ +failed", line) is not None)
        if stopped or not run.results.exists():
            return "stops"
        return "fails" if re.search("<(failure|error)", run.results.read_text()) else None

    def _differs(self, run: Run) -> str | None:
        printed = run.printed
        count, stopped = self._lines(run, lambda n, line: n >= len(printed) or _shown(line) != printed[n])
        return "prints" if stopped or count != len(printed) else None

    def _lines(self, run: Run, stop: Callable[[int, str], bool]) -> tuple[int, bool]:
        """So many lines of a simulation, that ends with the first one at which `stop` says so."""
        with self._process(run.words, run.folder, run.environment, run.limit) as process:
            assert process.stdout is not None
            count = 0
            for line in process.stdout:
                if stop(count, line):
                    os.killpg(process.pid, signal.SIGKILL)
                    return count, True
                count += 1
            return count, False

    def _pytest(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "--rootdir", ".", "-k", _LEFT_OUT, *words]
        return self._spawn(command, self.folder)

    def _process(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, limit: int = LIMIT
    ) -> subprocess.Popen[str]:
        """Within bounds: the elaboration of some mutants, and the simulation of others, never ends."""

        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

        environment = {**(environment or os.environ), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTEST_ADDOPTS", None)  # of the caller, which would change what is printed
        return subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, preexec_fn=bound,
        )  # fmt: skip

    def _spawn(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, limit: int = LIMIT
    ) -> subprocess.CompletedProcess[str]:
        with self._process(words, folder, environment, limit) as process:
            shown, _ = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, shown, "")


def _spread(tests: Sequence[str], cases: int | None) -> list[str]:
    """So many cases of each test, evenly spread; all without a number."""
    chosen: list[str] = []
    for test in dict.fromkeys(name.split("[")[0] for name in tests):
        own = [name for name in tests if name.split("[")[0] == test]
        count = min(cases or len(own), len(own))
        chosen += [own[k * len(own) // count] for k in range(count)]
    return chosen


def _processor_time() -> float:
    """Seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(line: str) -> str:
    """Without names of files: messages of $finish and of memories."""
    return "" if ".v:" in line else line.rstrip("\n")


def _under(module: str) -> set[str]:
    """The module and all modules in it."""
    return {module, *re.findall(r"^ *module (\w+)", closure(module, (RTL / f"{module}.v").read_text()), re.MULTILINE)}


def _parts(text: str, module: str) -> list[str]:
    """The text of a bench with some of the units in which the module is, and no others; each is in one of the parts.

    bench.py writes a line for each unit; players.py a module player_N with the unit in it, and an instance of that.
    """
    played = dict(re.findall(r"^module (player_\d+) .*?^    (hg_\w+) #\(", text, re.MULTILINE | re.DOTALL))
    found = list(re.finditer(r"^(hg_\w+) #\(.*|\b(player_\d+) p\d+\(clk, .*", text, re.MULTILINE))
    own = [n for n, unit in enumerate(found) if module in _under(unit[1] or played[unit[2]])]
    parts = []
    for first in range(0, len(own), UNITS_OF_A_PART):
        kept, place = "", 0
        for n, unit in enumerate(found):
            kept += text[place : unit.end() if n in own[first : first + UNITS_OF_A_PART] else unit.start()]
            place = unit.end()
        parts.append(kept + text[place:])
    return parts
