"""Puts files in the place of others, all at once, and keeps what else is in the directory.

A folder `.NAME.hlsgen-*` beside the directory takes a whole new tree: the new files, and hard links to what is the
user's. Then both trees change places in one step. So whoever looks, and whenever the process is killed, sees the old
files or the new ones, and always the user's. What a killed process leaves is removed by the next one; a lock on its
marker file tells whether it still runs. What the user changed in the last moment, with a new file in its place, stays in
the folder, and the caller is told.
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

#: File that says that a folder is a working folder of this module.
MARKER = "written-by-hlsgen"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@dataclass
class _Work:
    """A working folder: `new` is the tree to come, or what was replaced; `old` what was replaced in two steps.

    fresh: paths of the new files. replaced: SHA-256 of the old ones. inode: of the tree to come.
    overtaken: files of the user whose place in the directory is taken -> their path in it.
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


def replace_files(files: Mapping[str, bytes], directory: Path, own: Callable[[], Mapping[str, str]]) -> dict[Path, str]:
    """Writes `files`, by relative path, into `directory`, and removes those of `own` that are not among them.

    own: gives SHA-256 of the files that may be replaced; a file with another content is the user's.
    Gives what the user changed while it was replaced: where the user's version is now -> its relative path.
    Raises HG060 if something of the user's is in the way, HG001, and what `own` raises. Then nothing is changed.
    """
    directory = Path(os.path.abspath(directory))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _working(directory) as work:
            replaced = {name: found for name, found in own().items() if _sha256(directory / name) == found}
            kept = list(_tree(directory, set(replaced)))
            _refuse_conflicts(directory, list(files), kept)
            _fill(work, files, replaced, directory, kept)
            _change_places(work, directory)
        return work.overtaken
    except OSError as error:
        about = f" ({error.filename})" if str(error.filename).startswith(f"{directory}{os.sep}") else ""
        linked = error.errno in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP)
        hint = "Files of yours in it cannot be linked to. Choose another -o, or move them." if about and linked else ""
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}{about}.", hint) from None


def _tree(directory: Path, without: set[str]) -> Iterator[str]:
    """Relative paths of all that is in a directory, folders with a slash at the end, but not of these files."""
    open_ = [""]
    while open_:
        below = open_.pop()
        try:
            entries = sorted(os.scandir(directory / below), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        for entry in entries:
            name = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield f"{name}/"
                open_.append(f"{name}/")
            elif name not in without:
                yield name


def _refuse_conflicts(directory: Path, files: list[str], kept: list[str]) -> None:
    """Raises HG060 for each of `kept` that has the path of a new file, or of a folder of one."""
    taken = set(files) | {f"{name}/" for name in files}
    folders = _folders_of(files)
    problems = Collector()
    for name in kept:
        if name in taken or name in folders:
            text = "is not as hlsgen wrote it, and a new file would take its place; nothing is written."
            problems.error("HG060", str(directory / name), text, "Move or remove it, or choose another -o.")
    problems.finish()


def _fill(work: _Work, files: Mapping[str, bytes], replaced: dict[str, str], directory: Path, kept: list[str]) -> None:
    """Writes the tree to come."""
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
    for name in kept:
        if not name.endswith("/"):
            (work.new / name).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # the user has just removed it
                os.link(directory / name, work.new / name, follow_symlinks=False)
    gone = _folders_of(replaced) - _folders_of(name for name in kept if not name.endswith("/"))
    folders = [name for name in kept if name.endswith("/") and name[:-1] not in gone]
    for name in folders:
        (work.new / name).mkdir(parents=True, exist_ok=True)
    for name in ["", *folders][::-1]:
        found = (directory / name).stat()
        with suppress(OSError):
            os.chown(work.new / name, found.st_uid, found.st_gid)
        (work.new / name).chmod(stat.S_IMODE(found.st_mode))


def _folders_of(names: Iterable[str]) -> set[str]:
    return {parent.as_posix() for name in names for parent in Path(name).parents}


def _change_places(work: _Work, directory: Path) -> None:
    """`new` becomes `directory`, in one step where the system can do that."""
    if not directory.exists():
        os.rename(work.new, directory)
    elif not _exchanged(work.new, directory):
        os.rename(directory, work.old)
        try:
            os.rename(work.new, directory)
        except BaseException:
            os.rename(work.old, directory)
            raise


def _exchanged(one: Path, other: Path) -> bool:
    """Lets two folders change places; False where the system cannot do that in one step."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(other))


# --------------------------------------------------------------------------- working folders


@contextmanager
def _working(directory: Path) -> Iterator[_Work]:
    """A working folder beside `directory`, for this process alone. Raises HG001 if another one writes it."""
    work, lock = _locked_folder(directory)
    try:
        for other in directory.parent.glob(f"{_prefix(directory)}*"):
            if other != work.folder:
                with suppress(FileNotFoundError):  # its own process has just removed it
                    work.overtaken |= _clean(other, directory)
        yield work
    finally:
        with suppress(OSError):
            work.overtaken |= _clear(work, directory)
        os.close(lock)


def _prefix(directory: Path) -> str:
    """What the names of its working folders begin with, as a pattern of glob; short enough for any file system."""
    digest = hashlib.sha256(os.fsencode(directory.name)).hexdigest()[:8]
    shown = "".join(c for c in directory.name if (c.isalnum() and c.isascii()) or c in "-_")[:40]
    return f".{shown}.hlsgen-{digest}-"


def _locked_folder(directory: Path) -> tuple[_Work, int]:
    for _ in range(100):
        folder = Path(tempfile.mkdtemp(prefix=_prefix(directory), dir=directory.parent))
        try:
            lock = os.open(folder / MARKER, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another process has taken it for one that was left
            continue
        if _lock(lock) is not False and os.fstat(lock).st_nlink:
            return _Work(folder), lock
        os.close(lock)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(directory))


def _clean(folder: Path, directory: Path) -> dict[Path, str]:
    """Removes a working folder of a process that has ended; leaves all that is none, or is of another user.

    Gives what `_clear` does. Raises HG001 if the process still runs.
    """
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
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
            raise fail("HG001", str(directory), "another process of hlsgen is writing it.", "Wait for that.")
        work = _read_marker(folder, lock) if locked else None
        if work is None:
            return {}
        with suppress(OSError):
            return _clear(work, directory)
        return {}
    finally:
        os.close(lock)


def _lock(file: int) -> bool | None:
    """Locks a file until it is closed; False if another process has locked it, None where there are no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _read_marker(folder: Path, lock: int) -> _Work | None:
    """The working folder that a marker describes; None if it is not of this module, or was only begun: then it goes."""
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
    """Removes a working folder. What is the user's and nowhere else goes to `directory`; without place there, it stays.

    Gives what stays: where it is -> its relative path.
    """
    if work.old.is_dir() and not os.path.lexists(directory):
        os.rename(work.old, directory)
    fresh, stays = set(work.fresh), dict[Path, str]()
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
                    stays[file] = path
            with suppress(OSError):
                os.rmdir(folder)
    if not os.path.lexists(work.new) and not os.path.lexists(work.old):
        (work.folder / MARKER).unlink(missing_ok=True)
        work.folder.rmdir()
    return stays


def _bring_back(file: Path, place: Path) -> bool:
    """Moves a file to its place, if that is free; whether it was."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, place, follow_symlinks=False)
        file.unlink()
        return True
    return False


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def _sha256(file: Path) -> str:
    """SHA-256 of a regular file; empty for all else, and where there is nothing."""
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
