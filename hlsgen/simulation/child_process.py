"""Runs tools in child processes, and ends them with all their children after a time or with this process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hlsgen.diagnostics import HlsgenError, fail

#: Bytes of a tool's output that are kept: the last ones.
MAX_LOG = 4 << 20
#: Hint for a simulation that takes too long.
_SLOWER = "If it is only slow: fewer --frames."
#: Characters that paths must not have for make, the C++ compiler and simulators' command files.
BAD_IN_PATHS = set(" \t\n\r:;#$%&*?|<>()[]{}!=,~`\\'\"")


@dataclass(frozen=True)
class Ended:
    """An ended process.

    code: its exit code, negative for a signal. log: the end of its output. late: it was ended because its time was up.
    """

    code: int
    log: str
    late: bool = False


def run_tool(
    command: Sequence[str],
    work: Path,
    env: Mapping[str, str],
    tool: str,
    seconds: float,
    activity: str,
    hint_if_slow: str = _SLOWER,
    *,
    tick: Callable[[], None] = lambda: None,
    may_be_late: bool = False,
) -> Ended:
    """Runs a command in the folder `work`, for at most `seconds`.

    activity, hint_if_slow: for the message of HG053 if the time is up. may_be_late: the result reports this instead.
    tick: called twice a second meanwhile. The command and all its children are ended when this function ends, for any
    reason. SIGTERM and SIGHUP are included: they become SystemExit, unless the program handles them itself. Raises
    HG052, HG053.
    """
    log_blocks: deque[bytes] = deque()
    process = reader = None
    with _signals_raise():
        try:
            with _signals_wait():
                process = _started(command, work, env, tool)
                reader = threading.Thread(target=_read, args=(process, log_blocks), daemon=True)
                reader.start()
            code = _wait(process, time.monotonic() + seconds, tick)
        finally:
            if process is not None:
                _end(process)
            if reader is not None:
                reader.join(10)
    if code is None and not may_be_late:
        raise fail("HG053", tool, f"{activity} did not end within {seconds:.0f} s; it was ended.", hint_if_slow)
    log = b"".join(log_blocks)[-MAX_LOG:].decode(errors="replace")
    return Ended(process.returncode if code is None else code, log, late=code is None)


def _started(command: Sequence[str], work: Path, env: Mapping[str, str], tool: str) -> subprocess.Popen[bytes]:
    """Starts the process in a session of its own. Raises HG052."""
    try:
        return subprocess.Popen(
            command,
            cwd=work,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise fail("HG052", tool, f"{Path(command[0]).name} cannot be started: {error.strerror}.") from None


def _wait(process: subprocess.Popen[bytes], end: float, tick: Callable[[], None]) -> int | None:
    """The exit code, or None if the process is still running when the clock reaches `end`."""
    while (remaining := end - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(0.5, remaining))
        tick()
    return process.poll()


def _read(process: subprocess.Popen[bytes], log_blocks: deque[bytes]) -> None:
    """Reads all output of the process, and keeps the last MAX_LOG bytes."""
    assert process.stdout is not None
    size = 0
    with process.stdout:
        while block := process.stdout.read1(1 << 16):  # type: ignore[attr-defined]
            log_blocks.append(block)
            size += len(block)
            while size - len(log_blocks[0]) > MAX_LOG:
                size -= len(log_blocks.popleft())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the whole process group, including children that the process left running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit. By default they would end this process at once and leave its children
    running."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    changed = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, leave)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Delays signals until the end, so that no process is half started: nobody could end it."""
    pending_signals: list[int] = []
    previous_handlers: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                previous_handlers[number] = signal.signal(number, lambda number, _: pending_signals.append(number))
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
    for pending in pending_signals:
        signal.raise_signal(pending)


def trouble(log: str, fallback: str) -> tuple[str, str]:
    """The line of a tool's output that names the cause of its failure, and a hint for the user."""
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    for text, hint in _REMEDIES:
        for line in lines:
            if text in line:
                return line[:400], hint
    lines = [line for line in lines if not line.startswith(_WITHOUT_CAUSE)]
    for mark in ("%Error", "ERROR:", " error:", "rror:", "No such file", "not found", "annot ", "rror"):
        for line in lines:
            if mark in line:
                return line[:400], _MORE
    return (lines[-1][:400] if lines else fallback), _MORE


_FST = "FST files need headers (on Debian or Ubuntu: apt-get install liblz4-dev zlib1g-dev); .vcd files do not."
_MORE = "HLSGEN_DEBUG=1 shows the whole output of the tools."
#: Beginnings of lines that only report the failure of another tool.
_WITHOUT_CAUSE = (
    "Traceback",
    "subprocess.",
    "%Error: 'make",
    "%Error: Command Failed",
    "make: ***",
    "make: Entering",
    "make: Leaving",
    "... See the manual",
    "ERROR: Process",
)
_REMEDIES = (
    (os.strerror(errno.ENOSPC), "Set TMPDIR to a folder with more space."),
    (os.strerror(errno.EDQUOT), "Set TMPDIR to a folder with more space."),
    ("lz4.h: No such file", _FST),
    ("zlib.h: No such file", _FST),
    ("Cannot allocate memory", "Close other programs, or choose the other simulator with --sim."),
)


def failed(tool: str, failure: str, log: str) -> HlsgenError:
    """HG053 for a failed tool: `failure`, and the line of the log that names the cause."""
    why, hint = trouble(log, "it printed nothing")
    tail = "\n" + "\n".join(log.strip().splitlines()[-60:]) if os.environ.get("HLSGEN_DEBUG") == "1" else ""
    return fail("HG053", tool, f"{failure}: {why}{tail}", hint)


@contextmanager
def work_folder(tool: str) -> Iterator[Path]:
    """A temporary folder for a tool, removed at the end. Raises HG053 if it cannot be written."""
    parent = os.environ.get("TMPDIR", "TMPDIR")
    try:
        with _signals_raise(), tempfile.TemporaryDirectory(prefix="hlsgen-", ignore_cleanup_errors=True) as name:
            parent = str(Path(name).parent)
            if set(os.path.realpath(name)) & BAD_IN_PATHS:
                hint = "Set TMPDIR to a folder whose path has no blanks, quotes or other special characters."
                raise fail("HG053", tool, f"temporary files in {parent!r}: make cannot handle this path.", hint)
            yield Path(name)
    except OSError as error:
        hint = "Set TMPDIR to a writable folder with enough space."
        text = f"temporary files cannot be written to {parent}: {error.strerror or error}."
        raise fail("HG053", tool, text, hint) from None
