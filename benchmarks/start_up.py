"""How long `hlsgen` takes to start: seconds of processor time and of the clock, the best of several runs."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

RUNS = 7
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "hlsgen --help": ["-m", "hlsgen", "--help"],
    "hlsgen --version": ["-m", "hlsgen", "--version"],
    "hlsgen build --help": ["-m", "hlsgen", "build", "--help"],
}


def seconds(words: list[str]) -> tuple[float, float]:
    """Processor time and time of the clock of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - start


for name, words in COMMANDS.items():
    found = [seconds(words) for _ in range(RUNS)]
    print(f"{name:20} {min(cpu for cpu, _ in found):.2f} s CPU, {min(wall for _, wall in found):.2f} s")
