"""Writes a file completely or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hlsgen.diagnostics import fail


@contextmanager
def replaced_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content replaces the file `path` at the end of the block; after an error the old file stays.

    A device or a pipe is written directly. Raises HG001.
    """
    target, temporary = Path(os.path.realpath(path)), None
    try:
        status = target.stat() if target.exists() else None
        if status is not None and not stat.S_ISREG(status.st_mode):
            with target.open("wb") as stream:
                yield stream
            return
        number, temporary = tempfile.mkstemp(prefix=".hlsgen-", dir=target.parent)
        with open(number, "wb") as stream:
            yield stream
        os.chmod(temporary, stat.S_IMODE(status.st_mode) if status else 0o666 & ~_umask())
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise fail("HG001", str(path), f"cannot be written: {error.strerror or error}.") from None
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _umask() -> int:
    """The process's mask of permissions."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
