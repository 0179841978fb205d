"""Recorded simulations of the Verilog library's tests, replayed on a library with a mistake."""

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

#: Limits of a tool: processor seconds and bytes of address space. FIRST: seconds of simulation before the proof.
LIMIT, MEMORY, FIRST = 300, 3 << 30, 10.0
#: Units per part of a bench: small parts find most mutants sooner than the whole bench.
UNITS_OF_A_PART = 8
#: Deselects tests of module texts, of Verilator, or of code that no mutant changes.
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


#: Appended to the copy of conftest.py: keeps the folder and commands of every simulation of Icarus Verilog.
_RECORDER = """

import itertools
import resource
import shutil
import subprocess

_count, _run, _builds = itertools.count(), subprocess.run, []
_simulate = __import__("bench").simulate
_simulate.__defaults__ = (500, ("icarus",), *_simulate.__defaults__[2:])


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
    """A simulation run by a test: the commands that compile and run it, and its output.

    `results`: the result file of cocotb, if any. It then decides whether the test passed, and `printed` is empty.
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
    seconds: float = LIMIT / 10  # processor time of the simulation if it finds nothing
    repeated: bool = False  # a repetition on the original library found nothing

    @property
    def limit(self) -> int:
        """Time limit in seconds: a simulation that exceeds it never ends."""
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
        self.recorded: set[str] = set()  # tests that have run
        self.runs: dict[str, list[Run]] = {}  # by test file
        self.driven: dict[str, list[str]] = {}  # tests without a recorded simulation
        self.pieces: dict[str, list[Run]] = {}  # by module
        self.pieces_done: Counter[tuple[str, str]] = Counter()  # runs of a test file already split for a module
        self.kills: Counter[tuple[str, str]] = Counter()  # by module and killing test

    def record(self, tests: str, cases: int | None = None) -> None:
        """Run a test file, or `cases` cases of each test, on the original library, unless they ran before.

        Records the simulations, and the names of tests without one.
        """
        if tests not in self.names:
            shown = self._pytest([f"rtl_tests/{tests}", "--collect-only", "-q"]).stdout
            self.names[tests] = [line for line in shown.splitlines() if "::" in line]
            assert self.names[tests], shown[-3000:]
            self.runs[tests], self.driven[tests] = [], []
        new_tests = [test for test in _spread(self.names[tests], cases) if test not in self.recorded]
        if not new_tests:
            return
        self.recorded.update(new_tests)
        base = self.folder / f"base_{tests}"
        known_folders = set((self.folder / "kept").iterdir())
        completed = self._pytest([*new_tests, "-v", f"--basetemp={base}"])
        assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-1000:]
        passed = [line.split(" PASSED")[0] for line in completed.stdout.splitlines() if " PASSED" in line]
        new = [self._load_run(folder) for folder in sorted(set((self.folder / "kept").iterdir()) - known_folders)]
        self.runs[tests] += new
        simulated = {run.test for run in new}
        self.driven[tests] += [test for test in passed if test not in simulated]
        shutil.rmtree(base)

    def _load_run(self, folder: Path) -> Run:
        record = json.loads((folder / "run.json").read_text())
        environment = record["environment"]
        results = Path(environment["COCOTB_RESULTS_FILE"]) if "COCOTB_RESULTS_FILE" in environment else None
        run = Run(record["test"], folder, record["build"], record["words"], environment, results, set(), "")
        run.seconds = record["seconds"]
        run.compiled = self._compiled(run)
        run.modules = set(re.findall(r'^S_\w+ \.scope module, "[^"]*" "(\w+)"', run.compiled, re.MULTILINE))
        return run

    def _compiled(self, run: Run) -> str:
        """Program compiled by Icarus Verilog, empty if compilation fails."""
        if self._spawn(run.build, run.folder, run.environment, run.limit).returncode:
            return ""
        return program((run.folder / run.build[run.build.index("-o") + 1]).read_text())

    def _pieces(self, tests: str, module: str) -> list[Run]:
        """New simulations that contain the module. A bench of many units is split into parts with some of them."""
        pieces = []
        first_new, self.pieces_done[tests, module] = self.pieces_done[tests, module], len(self.runs[tests])
        for run in self.runs[tests][first_new:]:
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
        """Run a part on the original library, and record its output and time."""
        piece.compiled = self._compiled(piece)
        start = _processor_time()
        shown = self._spawn(piece.words, piece.folder, piece.environment).stdout
        piece.seconds = _processor_time() - start
        piece.printed = [_shown(line) for line in shown.splitlines()]

    def killer(self, mutant: Mutant, cases: int | None = None) -> str | None:
        """Test that finds the mutant, or None. `cases`: run only the fastest of that many cases of each test."""
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
            killing_test = self._killer(mutant, original, FIRST if cases else None)
        finally:
            file.write_text(original)
        self.kills[mutant.module, killing_test or ""] += 1
        for run in pieces:
            if run.test == killing_test and run.compiled and not run.repeated:
                assert not self._finds(run, itself=True), f"{killing_test} differs from run to run"
                run.repeated = True
        return killing_test

    def _killer(self, mutant: Mutant, original: str, seconds: float | None) -> str | None:
        """Test that fails on the changed library. Tests with most kills per second run first, within `seconds`."""
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
                completed = self._pytest([*order, "-x", f"--basetemp={self.folder / 'driven'}"])
                if completed.returncode:
                    failed = [line for line in completed.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
                    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else order[0]
        return None

    def _finds(self, run: Run, itself: bool = False) -> str | None:
        """How a simulation of the changed library differs from the recorded one, or None."""
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
        """Number of output lines of a simulation, and True if `stop` ended it at a line."""
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
        """Start a process with limits, because elaboration or simulation of some mutants never ends."""

        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

        environment = {**(environment or os.environ), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTEST_ADDOPTS", None)  # options of the caller would change the output
        return subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=bound,
        )

    def _spawn(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, limit: int = LIMIT
    ) -> subprocess.CompletedProcess[str]:
        with self._process(words, folder, environment, limit) as process:
            shown, _ = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, shown, "")


def _spread(tests: Sequence[str], cases: int | None) -> list[str]:
    """`cases` cases of each test, evenly spread, or all if None."""
    chosen: list[str] = []
    for test in dict.fromkeys(name.split("[")[0] for name in tests):
        cases_of_test = [name for name in tests if name.split("[")[0] == test]
        count = min(cases or len(cases_of_test), len(cases_of_test))
        chosen += [cases_of_test[k * len(cases_of_test) // count] for k in range(count)]
    return chosen


def _processor_time() -> float:
    """Processor seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(line: str) -> str:
    """Output line without messages that name files, such as those of $finish and memories."""
    return "" if ".v:" in line else line.rstrip("\n")


def _under(module: str) -> set[str]:
    """The module and all its submodules."""
    return {module, *re.findall(r"^ *module (\w+)", closure(module, (RTL / f"{module}.v").read_text()), re.MULTILINE)}


def _parts(text: str, module: str) -> list[str]:
    """Bench texts, each with only some of the units that contain the module. Every such unit is in one part.

    bench.py writes a line for each unit. players.py writes a module player_N with the unit, and an instance of it.
    """
    played = dict(re.findall(r"^module (player_\d+) .*?^    (hg_\w+) #\(", text, re.MULTILINE | re.DOTALL))
    instances = list(re.finditer(r"^(hg_\w+) #\(.*|\b(player_\d+) p\d+\(clk, .*", text, re.MULTILINE))
    matching = [n for n, unit in enumerate(instances) if module in _under(unit[1] or played[unit[2]])]
    parts = []
    for first in range(0, len(matching), UNITS_OF_A_PART):
        part, position = "", 0
        for n, unit in enumerate(instances):
            part += text[position : unit.end() if n in matching[first : first + UNITS_OF_A_PART] else unit.start()]
            position = unit.end()
        parts.append(part + text[position:])
    return parts
