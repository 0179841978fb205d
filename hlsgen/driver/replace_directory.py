"""Replaces files of a directory in one step, and keeps all other files.

A working folder `.NAME.hlsgen-*` beside the directory holds a new tree: the new files, and hard links to the user's
files. Both trees are then exchanged in one step. At any time, also after a kill, the directory holds all old or all new
files, and all files of the user. The next process removes the working folder of a killed one; a lock on its marker file
shows if that process still runs. A file that the user changed while it was replaced stays in the working folder, and
the caller gets its path.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hlsgen.diagnostics import Collector, fail

#: File that marks a working folder of this module.
MARKER = "written-by-hlsgen"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@dataclass
class _Work:
    """A working folder.

    new: the new tree; after the exchange the replaced one. old: the replaced tree, if the system cannot exchange.

    fresh: paths of new files. replaced: SHA-256 of old files. inode: inode of the new tree. overtaken: where a file of
    the user is now -> its path in the directory, which a new file has.
    """

    folder: Path
    fresh: list[str] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    inode: int = 0
    overtaken: dict[Path, str] = field(default_factory=dict)

    @property
    def new(self) -> Path:
        return self.folder / "new"

    @property
    def old(self) -> Path:
        return self.folder / "old"


def replace_files(
    files: Mapping[str, bytes], directory: Path, replaceable: Callable[[], Mapping[str, str]]
) -> dict[Path, str]:
    """Writes `files`, by relative path, into `directory`, and removes the other replaceable ones.

    replaceable: returns SHA-256 of the files that may be replaced; a file with another content belongs to the user.
    Returns the files that the user changed meanwhile: where the user's version is now -> its relative path. Raises
    HG060 if a file of the user has the path of a new one, HG001, and errors of `replaceable`; nothing is changed then.
    """
    directory = Path(os.path.abspath(directory))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _working(directory) as work:
            replaced = {name: digest for name, digest in replaceable().items() if _sha256(directory / name) == digest}
            user_paths = list(_tree(directory, set(replaced)))
            _refuse_conflicts(directory, list(files), user_paths)
            _fill(work, files, replaced, directory, user_paths)
            _change_places(work, directory)
        return work.overtaken
    except OSError as error:
        path_text = f" ({error.filename})" if str(error.filename).startswith(f"{directory}{os.sep}") else ""
        linked = error.errno in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP)
        hint = (
            "Your files in it cannot be hard-linked. Choose another -o, or move them." if path_text and linked else ""
        )
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}{path_text}.", hint) from None


def _tree(directory: Path, excluded: set[str]) -> Iterator[str]:
    """Relative paths of files and folders (with a slash at the end) in a directory, without the excluded files."""
    open_ = [""]
    while open_:
        parent = open_.pop()
        try:
            entries = sorted(os.scandir(directory / parent), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        for entry in entries:
            name = parent + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield f"{name}/"
                open_.append(f"{name}/")
            elif name not in excluded:
                yield name


def _refuse_conflicts(directory: Path, files: list[str], user_paths: list[str]) -> None:
    """Raises HG060 for each of `user_paths` that is the path of a new file, or of a folder of one."""
    new_paths = set(files) | {f"{name}/" for name in files}
    folders = _folders_of(files)
    problems = Collector()
    for name in user_paths:
        if name in new_paths or name in folders:
            text = "was changed or added by you, and a new file has this path; nothing is written."
            problems.error("HG060", str(directory / name), text, "Move or remove it, or choose another -o.")
    problems.finish()


def _fill(
    work: _Work, files: Mapping[str, bytes], replaced: dict[str, str], directory: Path, user_paths: list[str]
) -> None:
    """Writes the new tree."""
    work.new.mkdir()
    work.fresh, work.replaced, work.inode = list(files), replaced, work.new.stat().st_ino
    state = {"new": work.fresh, "old": replaced, "inode": work.inode}
    (work.folder / MARKER).write_text(json.dumps(state), encoding="utf-8")
    for name, data in files.items():
        file = work.new / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    if not directory.exists():
        return
    for name in user_paths:
        if not name.endswith("/"):
            (work.new / name).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # removed by the user meanwhile
                os.link(directory / name, work.new / name, follow_symlinks=False)
    removed_folders = _folders_of(replaced) - _folders_of(name for name in user_paths if not name.endswith("/"))
    folders = [name for name in user_paths if name.endswith("/") and name[:-1] not in removed_folders]
    for name in folders:
        (work.new / name).mkdir(parents=True, exist_ok=True)
    for name in ["", *folders][::-1]:
        status = (directory / name).stat()
        with suppress(OSError):
            os.chown(work.new / name, status.st_uid, status.st_gid)
        (work.new / name).chmod(stat.S_IMODE(status.st_mode))


def _folders_of(names: Iterable[str]) -> set[str]:
    return {parent.as_posix() for name in names for parent in Path(name).parents}


def _change_places(work: _Work, directory: Path) -> None:
    """Makes `new` the directory, in one step if the system supports it."""
    if not directory.exists():
        os.rename(work.new, directory)
    elif not _exchanged(work.new, directory):
        os.rename(directory, work.old)
        try:
            os.rename(work.new, directory)
        except BaseException:
            os.rename(work.old, directory)
            raise


def _exchanged(first: Path, second: Path) -> bool:
    """Exchanges two folders; False if the system cannot do that in one step."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(second))


# --------------------------------------------------------------------------- working folders


@contextmanager
def _working(directory: Path) -> Iterator[_Work]:
    """A working folder beside `directory` for this process. Raises HG001 if another process writes the directory."""
    work, lock = _locked_folder(directory)
    try:
        for leftover in directory.parent.glob(f"{_prefix(directory)}*"):
            if leftover != work.folder:
                with suppress(FileNotFoundError):  # removed by its process meanwhile
                    work.overtaken |= _clean(leftover, directory)
        yield work
    finally:
        with suppress(OSError):
            work.overtaken |= _clear(work, directory)
        os.close(lock)


def _prefix(directory: Path) -> str:
    """Prefix of the names of its working folders, safe as a glob pattern and short enough for any file system."""
    digest = hashlib.sha256(os.fsencode(directory.name)).hexdigest()[:8]
    shown = "".join(c for c in directory.name if (c.isalnum() and c.isascii()) or c in "-_")[:40]
    return f".{shown}.hlsgen-{digest}-"


def _locked_folder(directory: Path) -> tuple[_Work, int]:
    for _ in range(100):
        folder = Path(tempfile.mkdtemp(prefix=_prefix(directory), dir=directory.parent))
        try:
            lock = os.open(folder / MARKER, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another process took it for a leftover and removed it
            continue
        if _lock(lock) is not False and os.fstat(lock).st_nlink:
            return _Work(folder), lock
        os.close(lock)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(directory))


def _clean(folder: Path, directory: Path) -> dict[Path, str]:
    """Removes the working folder of an ended process; leaves other folders and folders of other users.

    Returns the result of `_clear`. Raises HG001 if the process still runs.
    """
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return {}
    try:
        lock = os.open(folder / MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        return {}
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return {}
        locked = _lock(lock)
        if locked is False:
            raise fail("HG001", str(directory), "another process of hlsgen is writing it.", "Wait until it ends.")
        work = _read_marker(folder, lock) if locked else None
        if work is None:
            return {}
        with suppress(OSError):
            return _clear(work, directory)
        return {}
    finally:
        os.close(lock)


def _lock(file: int) -> bool | None:
    """Locks a file until it is closed; False if another process holds the lock, None without support for locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _read_marker(folder: Path, lock: int) -> _Work | None:
    """The working folder that a marker describes. If the marker is incomplete, removes the folder and returns None."""
    try:
        state = json.loads(os.pread(lock, 1 << 28, 0))
        return _Work(folder, [str(name) for name in state["new"]], dict(state["old"]), int(state["inode"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        with suppress(OSError):
            if os.path.lexists(folder / "new"):
                (folder / "new").rmdir()
            if os.listdir(folder) == [MARKER]:
                (folder / MARKER).unlink()
                folder.rmdir()
        return None


def _clear(work: _Work, directory: Path) -> dict[Path, str]:
    """Removes a working folder. The only copy of a user's file moves to `directory`, or stays if its path is in use.

    Returns the files that stay: where each is -> its relative path.
    """
    if work.old.is_dir() and not os.path.lexists(directory):
        os.rename(work.old, directory)
    fresh, remaining = set(work.fresh), dict[Path, str]()
    for tree in (work.new, work.old):
        coming = tree.is_dir() and tree.stat().st_ino == work.inode
        for folder, folders, names in os.walk(tree, topdown=False):
            os.chmod(folder, stat.S_IRWXU)
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in [*names, *links]:
                file = Path(folder) / name
                path = file.relative_to(tree).as_posix()
                if _same_file(file, directory / path) or (
                    path in fresh if coming else path in work.replaced and work.replaced[path] == _sha256(file)
                ):
                    file.unlink()
                elif not (directory.is_dir() and _bring_back(file, directory / path)):
                    remaining[file] = path
            with suppress(OSError):
                os.rmdir(folder)
    if not os.path.lexists(work.new) and not os.path.lexists(work.old):
        (work.folder / MARKER).unlink(missing_ok=True)
        work.folder.rmdir()
    return remaining


def _bring_back(file: Path, place: Path) -> bool:
    """Moves a file to its place if that is free; returns true if it was moved."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, place, follow_symlinks=False)
        file.unlink()
        return True
    return False


def _same_file(first: Path, second: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(first), os.lstat(second))
    except OSError:
        return False


def _sha256(file: Path) -> str:
    """SHA-256 of a regular file; empty for special and missing files."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return ""
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            digest = hashlib.sha256()
            while block := stream.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""
