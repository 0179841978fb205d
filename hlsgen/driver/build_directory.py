"""Writes, opens and compares build directories. No file in them is trusted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import Collector, Diagnostic, fail
from hlsgen.driver.compile import Build, compile_model
from hlsgen.driver.options import from_manifest
from hlsgen.driver.replace_directory import replace_files
from hlsgen.driver.schedule import Progress
from hlsgen.frontend.file_kind import BUILD_FILES, model_file_of

#: Largest file of a build, and largest manifest.
MAX_FILE_BYTES, MAX_MANIFEST_BYTES = 1 << 30, 1 << 28
#: Files that the testbench, C simulation and synthesis leave in a build directory.
_LEFT_BY_RUNS = (
    "tb/sim_build/",
    "tb/__pycache__/",
    "hls/csim.exe",
    "hls/csim_ac.exe",
    "hls/csim_catapult.exe",
    "hls/work",
    "hls/logs/",
    "hls/vitis_hls.log",
    "hls/vitis-run",
    "hls/.Xil/",
)
#: Files that are certified, besides rtl/.
_CERTIFIED = ("manifest.json", "certificate.json", *BUILD_FILES, "files.f")
_HINT = "Give a directory written by `hlsgen build`."


def write_build(build: Build, directory: Path) -> list[Diagnostic]:
    """Replaces the build in `directory` in one step; other files in it stay.

    Returns a warning HG063 for each file that the user changed while it was replaced. Raises HG050 if the directory
    holds files but no build, HG060 if a file of the user has the path of a new file, HG001.
    """
    overtaken = replace_files(build.files, directory, lambda: written_files(directory))
    notes = Collector()
    for place, name in sorted(overtaken.items(), key=lambda item: item[1]):
        text = f"was changed while the new build replaced it. Your version is {place}."
        notes.warn("HG063", str(directory / name), text, "Move it back, or remove it.")
    return notes.items


def written_files(directory: Path) -> dict[str, str]:
    """SHA-256 of the files that a build has written into `directory`, by relative path; empty for an empty directory.

    Raises HG050 if it is neither empty nor a build, HG001.
    """
    try:
        if not stat.S_ISDIR(os.lstat(directory).st_mode):
            raise _no_build(directory, "is not a directory")
        if not any(directory.iterdir()):
            return {}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise fail("HG001", str(directory), f"cannot be written: {getattr(error, 'strerror', error)}.") from None
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    if data is None:
        raise _no_build(directory, "has files and no manifest.json")
    problem = _manifest_problem(_parsed(data))
    if problem:
        raise _no_build(directory, f"has a manifest.json that is not of this version of hlsgen: {problem}")
    return _hashes(data)


def listed_files(directory: Path) -> dict[str, str]:
    """SHA-256 of the manifest and of each file it lists, by relative path. Raises HG050."""
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    if data is None:
        raise fail("HG050", str(directory), "has no readable manifest.json.", _HINT)
    problem = _manifest_problem(_parsed(data))
    if problem:
        text = f"has a manifest.json that is not of this version of hlsgen: {problem}."
        raise fail("HG050", str(directory), text, _HINT)
    return _hashes(data)


def _hashes(manifest: bytes) -> dict[str, str]:
    return {**_parsed(manifest)["files"], "manifest.json": hashlib.sha256(manifest).hexdigest()}


def _no_build(directory: Path, why: str) -> Exception:
    text = f"exists and is not a build of hlsgen: it {why}. Nothing was changed."
    return fail("HG050", str(directory), text, "Choose another -o, or remove it.")


def check_output(directory: Path) -> None:
    """Refuses a directory that holds anything but a build. Raises HG050, HG001."""
    written_files(directory)


def read_regular(path: Path, limit: int = MAX_FILE_BYTES) -> bytes | None:
    """Content of a regular file; None for links, pipes, devices, folders, missing and larger files.

    Never blocks, and follows no link in the last part of the path.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return None
            data = stream.read(limit + 1)
            return data if len(data) <= limit else None
    except (OSError, ValueError):
        return None


def _parsed(data: bytes) -> dict[str, Any]:
    """A manifest as a dictionary; empty if it is not a JSON object."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _manifest_problem(manifest: dict[str, Any]) -> str:
    """A problem with the form of a manifest; empty if there is none."""
    model, files = manifest.get("model"), manifest.get("files")
    if not isinstance(manifest.get("hlsgen"), str) or not isinstance(manifest.get("options"), dict):
        return "no version or no options"
    if not isinstance(model, dict) or model.get("file") not in BUILD_FILES or not _is_hash(model.get("sha256")):
        return "no model"
    if not isinstance(files, dict) or files.get(model["file"]) != model["sha256"]:
        return "no list of its files"
    for name, value in files.items():
        plain = all(part not in ("", ".", "..") for part in name.split("/")) and "\\" not in name and name.isprintable()
        if not plain or name == "manifest.json" or not _is_hash(value):
            return f"{name[:80]!r} in the list of its files"
    return ""


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def output_tensor(directory: Path) -> str:
    """Names of the model's outputs from the manifest of a build, separated by commas. Raises HG050."""
    return ", ".join(_of_outputs(directory, "tensor"))


def output_ports(directory: Path) -> list[str]:
    """Names of the output ports; empty if there is only one. Raises HG050."""
    ports = _of_outputs(directory, "port")
    return ports if len(ports) > 1 else []


def _of_outputs(directory: Path, key: str) -> list[str]:
    """One field of each output port in the manifest of a build. Raises HG050."""
    manifest = _parsed(read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES) or b"")
    entries = manifest.get("outputs")
    outputs = entries if isinstance(entries, list) and entries else [manifest.get("output")]
    names = [output.get(key) if isinstance(output, dict) else None for output in outputs]
    known_names = [name for name in names if isinstance(name, str) and name.isprintable()]
    if len(known_names) < len(names):
        raise fail("HG050", str(directory), "has a manifest.json that names no output.", _HINT)
    return known_names


def reopen(directory: Path, progress: Progress | None = None) -> Build:
    """Compiles the model of a build again, with the options of its manifest. Raises HG050."""
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    options = from_manifest(_parsed(data or b"").get("options"))
    if options is None:
        raise fail("HG050", str(directory), "has no readable manifest.json.", _HINT)
    return compile_model(model_file_of(directory), options, progress)


def changed_files(files: Mapping[str, bytes], directory: Path) -> list[str]:
    """Files of a build directory that differ from a new build of its model, are missing, or do not belong to it.

    Other files in the folders of the build do not belong to it, except those that its testbench and tools leave.
    """
    present = files_in(directory, {name.split("/")[0] for name in files if "/" in name})
    differing = [name for name, data in files.items() if name not in present or not _holds(directory / name, data)]
    extra = {name for name in present if "/" in name and not left_by_runs(name)}
    return [*differing, *sorted(extra - set(files))]


def changes(
    files: Mapping[str, bytes], directory: Path, hint: str = "", skipped: Callable[[str], object] = lambda name: False
) -> list[Diagnostic]:
    """HG051 for each of `changed_files`.

    A file that does not belong to the build stays when it is built again, so the user must move it away. hint: another
    way out. skipped: true for names that are left out.
    """
    diagnostics = []
    for name in (name for name in changed_files(files, directory) if not skipped(name)):
        exists = os.path.lexists(directory / name)
        difference = "differs from a new build of the model." if exists else "is missing."
        text, advice = (
            (difference, "Build again") if name in files else ("does not belong to the build.", "Move it away")
        )
        diagnostics.append(Diagnostic("HG051", name, text, f"{advice}; {hint}" if hint else f"{advice}."))
    return diagnostics


def left_by_runs(name: str) -> bool:
    """True for files that testbenches and tools of a build leave in its directory."""
    return name.startswith(_LEFT_BY_RUNS)


def _holds(file: Path, data: bytes) -> bool:
    return read_regular(file, len(data)) == data


def files_in(directory: Path, folders: set[str]) -> set[str]:
    """Relative paths of files in a directory and, at any depth, in these of its folders. Follows no links."""
    paths, open_ = set(), [""]
    while open_:
        parent = open_.pop()
        try:
            with os.scandir(directory / parent) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        paths.add(parent + entry.name)
                    elif parent or entry.name in folders:
                        open_.append(f"{parent}{entry.name}/")
        except OSError:
            continue
    return paths


def refuse_special_files(directory: Path) -> None:
    """Refuses files that would block a reader or have no end: pipes, devices, and files larger than any of a build.

    Links are refused in place of single files; in rtl/ and hls/ the certificate reports them. Raises HG050 with the
    first few.
    """
    cores = ("rtl/", "hls/")
    present = files_in(directory, {"rtl", "hls"})
    names = sorted(
        name for name in present if name in _CERTIFIED or (name.startswith(cores) and not left_by_runs(name))
    )
    special = []
    for name in names:
        try:
            status = os.stat(directory / name, follow_symlinks=name.startswith(cores))
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            special.append(name)
    if special:
        raise fail(
            "HG050",
            str(directory),
            f"holds special or too large files, which were not read: {', '.join(special[:5])}.",
            _HINT,
        )
