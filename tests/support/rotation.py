"""The rotating share of tests: for each commit other slow tests and other cases that its gate would leave out.

`pytest --rotate` runs the share of the commit that is checked out, `--rotate SEED` repeats the share of another one.
Costs are processor seconds of one case, in SECONDS; `pytest --record` writes them.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from paths import ROOT

SECONDS = ROOT / "tests" / "data" / "seconds.json"
#: Processor seconds of a share. A test that takes longer is for `make test-all` alone.
BUDGET = 60.0
#: Assumed for a case of a test that has no cost yet, and of which some cases run in every gate.
USUAL = 10.0
#: Processor seconds that the cases of one test may take together, if more than one case fits.
STINT = 5.0


def commit() -> str:
    """The commit that is checked out, shortened; "none" outside of a repository."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return result.stdout.strip()


def draw(cases: Mapping[str, Sequence[str]], seconds: Mapping[str, float], seed: str) -> list[str]:
    """A choice of `cases`, which are by test, that takes at most BUDGET if a case of each test takes its `seconds`.

    The order in which tests and cases are tried depends on the seed and their names alone.
    """

    def rank(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    chosen: list[str] = []
    remaining = BUDGET
    for test in sorted(cases, key=rank):
        cost = max(seconds[test], 0.1)
        count = min(max(1, int(STINT / cost)), int(remaining / cost), len(cases[test]))
        chosen += sorted(cases[test], key=rank)[:count]
        remaining -= count * cost
    return chosen


def load(path: Path = SECONDS) -> dict[str, float]:
    """Processor seconds of the longest case, by test."""
    seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    return seconds


def save(measured: Mapping[str, float], path: Path = SECONDS) -> None:
    """Replaces the costs of the tests in `measured`, and keeps the others."""
    seconds = {**load(path), **{test: round(cost, 1) for test, cost in measured.items()}}
    path.write_text(json.dumps(dict(sorted(seconds.items())), indent=0) + "\n")
