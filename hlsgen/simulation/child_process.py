"""Tools in processes of their own: ended with all that they started, after a time, and never longer than this process."""

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

#: Bytes of a tool's text that are kept: the last ones.
MAX_LOG = 4 << 20
#: What to do about a simulation that takes too long.
_SLOWER = "If it only is slow: fewer --frames."
#: What make, the C++ compiler, or a simulator's file of commands cannot have in a path.
BAD_IN_PATHS = set(" \t\n\r:;#$%&*?|<>()[]{}!=,~`\\'\"")


@dataclass(frozen=True)
class Ended:
    """A process that has ended: its exit code, negative for a signal, and the last of its text; whether its time was up."""

    code: int
    log: str
    late: bool = False


def run_tool(
    command: Sequence[str], work: Path, env: Mapping[str, str], tool: str, seconds: float, what: str, slower: str = _SLOWER,
    *, tick: Callable[[], None] = lambda: None, may_be_late: bool = False,
) -> Ended:  # fmt: skip
    """Runs a command in the folder `work`; `what` says in the message what has not ended after `seconds`, `slower`
    what to do then; if it `may_be_late`, the result says so instead. tick: called twice a second meanwhile.

    The command and all its children are ended when this function ends, for whatever reason: SIGTERM and SIGHUP too,
    which then become SystemExit, unless the program handles them itself. Raises HG052, HG053.
    """
    kept: deque[bytes] = deque()
    process = reader = None
    with _signals_raise():
        try:
            with _signals_wait():
                process = _started(command, work, env, tool)
                reader = threading.Thread(target=_read, args=(process, kept), daemon=True)
                reader.start()
            code = _wait(process, time.monotonic() + seconds, tick)
        finally:
            if process is not None:
                _end(process)
            if reader is not None:
                reader.join(10)
    if code is None and not may_be_late:
        raise fail("HG053", tool, f"{what} did not end within {seconds:.0f} s; it was ended.", slower)
    log = b"".join(kept)[-MAX_LOG:].decode(errors="replace")
    return Ended(process.returncode if code is None else code, log, late=code is None)


def _started(command: Sequence[str], work: Path, env: Mapping[str, str], tool: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, cwd=work, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise fail("HG052", tool, f"{Path(command[0]).name} cannot be started: {error.strerror}.") from None


def _wait(process: subprocess.Popen[bytes], end: float, tick: Callable[[], None]) -> int | None:
    """The exit code; None if the process has not ended at `end` of the clock."""
    while (left := end - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(0.5, left))
        tick()
    return process.poll()


def _read(process: subprocess.Popen[bytes], kept: deque[bytes]) -> None:
    """Reads all that the process writes, and keeps the last of it."""
    assert process.stdout is not None
    size = 0
    with process.stdout:
        while block := process.stdout.read1(1 << 16):  # type: ignore[attr-defined]
            kept.append(block)
            size += len(block)
            while size - len(kept[0]) > MAX_LOG:
                size -= len(kept.popleft())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group, also what the process itself has left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit, where they would end this process at once and leave its children."""

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
    """Signals that come meanwhile are raised behind it: what is half started, nobody could end."""
    came: list[int] = []
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for late in came:
        signal.raise_signal(late)


def trouble(log: str, fallback: str) -> tuple[str, str]:
    """What a tool's text says went wrong, in a line, and what to do."""
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    for text, hint in _REMEDIES:
        for line in lines:
            if text in line:
                return line[:400], hint
    lines = [line for line in lines if not line.startswith(_SAY_NOTHING)]
    for mark in ("%Error", "ERROR:", " error:", "rror:", "No such file", "not found", "annot ", "rror"):
        for line in lines:
            if mark in line:
                return line[:400], _MORE
    return (lines[-1][:400] if lines else fallback), _MORE


_FST = (
    "FST of Verilator needs headers (on Debian or Ubuntu: apt-get install liblz4-dev zlib1g-dev); a file .vcd does not."
)
_MORE = "HLSGEN_DEBUG=1 shows all that the tools say."
#: Lines that only say that another tool has failed.
_SAY_NOTHING = (
    "Traceback", "subprocess.", "%Error: 'make", "%Error: Command Failed", "make: ***", "make: Entering", "make: Leaving",
    "... See the manual", "ERROR: Process",
)  # fmt: skip
_REMEDIES = (
    (os.strerror(errno.ENOSPC), "Set TMPDIR to a folder with more room."),
    (os.strerror(errno.EDQUOT), "Set TMPDIR to a folder with more room."),
    ("lz4.h: No such file", _FST),
    ("zlib.h: No such file", _FST),
    ("Cannot allocate memory", "Close other programs, or choose the other simulator with --sim."),
)


def failed(tool: str, what: str, log: str) -> HlsgenError:
    """HG053 for a tool that has failed: what it did, and the line of its text that says why."""
    why, hint = trouble(log, "it said nothing")
    tail = "\n" + "\n".join(log.strip().splitlines()[-60:]) if os.environ.get("HLSGEN_DEBUG") == "1" else ""
    return fail("HG053", tool, f"{what}: {why}{tail}", hint)


@contextmanager
def work_folder(tool: str) -> Iterator[Path]:
    """A temporary folder for a tool, removed at the end. Raises HG053 if it cannot be written."""
    where = os.environ.get("TMPDIR", "TMPDIR")
    try:
        with _signals_raise(), tempfile.TemporaryDirectory(prefix="hlsgen-", ignore_cleanup_errors=True) as name:
            where = str(Path(name).parent)
            if set(os.path.realpath(name)) & BAD_IN_PATHS:
                hint = "Set TMPDIR to a folder without blanks, quotes and other signs in its path."
                raise fail("HG053", tool, f"temporary files in {where!r}: make cannot have such a path.", hint)
            yield Path(name)
    except OSError as error:
        hint = "Set TMPDIR to a folder with more room that can be written."
        text = f"temporary files cannot be written to {where}: {error.strerror or error}."
        raise fail("HG053", tool, text, hint) from None
