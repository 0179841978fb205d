"""Keeps compiled cores in the user's cache folder, so that the next run of the same core does not compile it.

The folder is never part of a build directory: a library is a program, and build directories may come from strangers.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

#: Most libraries in the cache. The least recently used ones are removed.
MAX_LIBRARIES = 32


def cache_folder() -> Path:
    """$HLSGEN_CACHE, else hlsgen in $XDG_CACHE_HOME or in ~/.cache. Raises RuntimeError without a home folder."""
    if chosen := os.environ.get("HLSGEN_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hlsgen"


def key_of(parts: Iterable[bytes]) -> str:
    """A hash of everything that a library depends on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def program_version(name: str, path: str | None) -> bytes:
    """Path, size and time of a program's file on this PATH; another installation gives other bytes."""
    program = shutil.which(name, path=path)
    if program is None:
        return b""
    status = os.stat(program)
    return f"{os.path.realpath(program)} {status.st_size} {status.st_mtime_ns}".encode()


def cached_library(key: str) -> Path | None:
    """The library of this key, or None if there is none, or if another user could have written it."""
    with suppress(OSError, RuntimeError):
        library = cache_folder() / f"{key}.so"
        status = os.lstat(library)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
            os.utime(library)
            return library
    return None


def store_library(key: str, library: Path) -> None:
    """Copies a library into the cache; without effect if the folder cannot be written."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = folder / f".{key}.{os.getpid()}"
        try:
            shutil.copyfile(library, temporary)
            temporary.chmod(0o600)
            os.replace(temporary, folder / f"{key}.so")
        finally:
            temporary.unlink(missing_ok=True)
        libraries = sorted(folder.glob("*.so"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for outdated in libraries[MAX_LIBRARIES:]:
            outdated.unlink(missing_ok=True)
