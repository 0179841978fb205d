"""Runs a vendor's program: found on PATH, run with a script in a folder, it leaves two reports."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from hlsgen.simulation.child_process import failed, run_tool
from hlsgen.synthesis.nextpnr import Routed


def route_by(
    tool: str,
    program: str,
    arguments: Sequence[str],
    folder: Path,
    seconds: float,
    reports: tuple[str, str],
    read: Callable[[str, str], Routed],
) -> Routed:
    """Runs the program in the folder and reads its reports on utilization and timing. Raises HG052, HG053."""
    command = [shutil.which(program) or program, *arguments]
    ended = run_tool(command, folder, os.environ, tool, seconds, tool, "If it is only slow: a larger --timeout.")
    try:
        if ended.code:
            raise ValueError(f"{program} ended with exit code {ended.code}")
        utilization, timing = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in reports)
        return read(utilization, timing)
    except (OSError, ValueError) as error:
        raise failed(tool, str(error), ended.log) from None
