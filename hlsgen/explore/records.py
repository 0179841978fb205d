"""Results on disk, one line of JSON each, written as they arrive: a killed sweep can be resumed."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import fail

#: The files of an exploration.
POINTS, PICTURE = "points.jsonl", "front.svg"
#: First line of a drawing by hlsgen explore.
MADE = "<!-- made by hlsgen explore -->"
#: Larger files are not files of results.
MAX_BYTES = 1 << 28
#: The beginning of every line.
_START = b'{"key": "'
#: The numbers of a point; "estimated" is added if its cycles are estimates.
_NUMBERS = ("interval", "latency", "lut", "ff", "bram", "dsp")


class Records:
    """The results of a folder by their keys: `priced` for points, `measured` for syntheses.

    Holds a lock on the file until `close`, so that two sweeps do not write one file. Raises HG001, HG060.
    """

    def __init__(self, folder: Path | None) -> None:
        self.priced: dict[str, dict[str, Any]] = {}
        self.measured: dict[str, dict[str, Any]] = {}
        self._file: int | None = None
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_foreign_picture(folder / PICTURE)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.open(folder / POINTS, flags, 0o666)
            self._read(folder / POINTS, self._file)
        except OSError as error:
            self.close()
            raise fail("HG001", str(folder / POINTS), f"cannot be written: {error.strerror}.") from None
        except BaseException:
            self.close()
            raise

    def _read(self, path: Path, file: int) -> None:
        """Reads the stored results, and locks the file. Raises HG060."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = "another exploration writes it."
            raise fail("HG060", str(path), text, "Wait for its end, or choose another -o.") from None
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise fail("HG060", str(path), "is no file of results.", "Choose another -o, or move it.")
        with os.fdopen(os.dup(file), "rb") as stream:
            stream.seek(0)
            *lines, partial = stream.read(MAX_BYTES).split(b"\n")
        accepted = [self._keep(line) for line in lines]
        if not (any(accepted) if lines else _START.startswith(partial[: len(_START)])):
            raise fail("HG060", str(path), "is no file of results.", "Choose another -o, or move it.")
        if partial:  # the line that a killed sweep was writing
            os.write(file, b"\n")

    def _keep(self, line: bytes) -> bool:
        """Stores the line if it is a result; returns True if it is."""
        try:
            data: Any = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(data, dict) or not isinstance(key := data.get("key"), str):
            return False
        if is_synthesis(data.get("synthesis")):
            self.measured[key] = data["synthesis"]
            return True
        if all(type(data.get(name)) is int and 0 <= data[name] < 1 << 62 for name in _NUMBERS) and data["interval"]:
            self.priced[key] = {name: data[name] for name in _NUMBERS} | {"exact": not data.get("estimated")}
            return True
        return False

    def add(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Stores results, each with its key, and writes their lines at once. Raises HG001."""
        data = "".join(json.dumps(result) + "\n" for result in results).encode()
        for line in data.splitlines():
            self._keep(line)
        try:
            while data and self._file is not None:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise fail("HG001", POINTS, f"cannot be written: {error.strerror}.") from None

    def close(self) -> None:
        """Closes the file, which releases its lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_synthesis(data: object) -> bool:
    """True if it has the numbers of a synthesis."""
    if not isinstance(data, dict):
        return False
    counts = all(type(data.get(name)) is int and data[name] >= 0 for name in ("lut", "ff", "bram", "dsp"))
    clock = data.get("fmax_mhz")
    return counts and (clock is None or (isinstance(clock, int | float) and 0 < clock < 1e6))


def _refuse_foreign_picture(path: Path) -> None:
    """Raises HG060 if the file exists and is not a drawing of an exploration."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise fail("HG060", str(path), "is no file.", "Choose another -o, or move it.")
    if path.exists():
        with path.open("rb") as stream:
            if not stream.read(1 << 12).startswith(MADE.encode()):
                raise fail("HG060", str(path), "was not made by hlsgen explore.", "Choose another -o, or move it.")


def write_picture(folder: Path, text: str) -> None:
    """Replaces front.svg. Raises HG001."""
    new = folder / f".{PICTURE}.new-{os.getpid()}"
    try:
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            with open(file, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.replace(new, folder / PICTURE)
        except BaseException:
            os.unlink(new)
            raise
    except OSError as error:
        raise fail("HG001", str(folder / PICTURE), f"cannot be written: {error.strerror}.") from None
