"""Measures `hlsgen check` and `hlsgen build` of files: seconds of processor time and the peak of memory.

python benchmarks/file_speed.py [FILE ...]; the default is the TFLite files in the folder that FILES names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: Folder of public TFLite files (MLPerf Tiny, micro_speech, wake words), beside this repository.
FILES = Path(__file__).parents[2] / "shared" / "tflite" / "models"
#: Longest time of one command, in seconds.
LONGEST = 600


def measure(words: list[str]) -> tuple[int, float, float]:
    """(exit code, seconds of processor time, most memory in MB) of `hlsgen` with these words."""
    command = ["timeout", str(LONGEST), sys.executable, "-m", "hlsgen", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    # The child is gone: Popen must not wait for it again.
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Prints a line for each file."""
    files = [Path(word) for word in sys.argv[1:]] or sorted(FILES.glob("*.tflite"))
    if not files:
        sys.exit(f"no file given, and no TFLite file in {FILES}")
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            results = {
                "check": measure(["check", str(file)]),
                "build": measure(["build", str(file), "--target", "verilog", "-o", f"{folder}/build"]),
            }
        columns = (
            f"{name} {seconds:6.1f} s {memory:5.0f} MB" + (f" (exit {code})" if code else "")
            for name, (code, seconds, memory) in results.items()
        )
        print(f"{file.name:36}", *columns, flush=True)


if __name__ == "__main__":
    main()
