"""Build directories: written, opened again, compared with what the model gives. Nothing in them is trusted."""

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

#: Larger files are no part of a build; larger manifests are none.
MAX_FILE_BYTES, MAX_MANIFEST_BYTES = 1 << 30, 1 << 28
#: What running the testbench leaves beside it, and what C simulation and synthesis leave in hls/.
_LEFT_BY_RUNS = (
    "tb/sim_build/", "tb/__pycache__/", "hls/csim.exe", "hls/csim_ac.exe", "hls/csim_catapult.exe", "hls/work", "hls/logs/",
    "hls/vitis_hls.log", "hls/vitis-run", "hls/.Xil/",
)  # fmt: skip
#: What is certified beside the files of rtl/.
_CERTIFIED = ("manifest.json", "certificate.json", "model.onnx", "files.f")
_HINT = "Give a directory that `hlsgen build` has written."


def write_build(build: Build, directory: Path) -> list[Diagnostic]:
    """Puts a build in the place of the one before, all at once. What else is in `directory` stays.

    Gives a warning HG063 for every file that the user changed in the moment in which it was replaced.
    Raises HG050 if there is something and no build, HG060 if files of the user are in the way, HG001.
    """
    overtaken = replace_files(build.files, directory, lambda: own_files(directory))
    notes = Collector()
    for place, name in sorted(overtaken.items(), key=lambda item: item[1]):
        text = f"was changed while the new build took its place. Your version is {place}."
        notes.warn("HG063", str(directory / name), text, "Take it from there, or remove it.")
    return notes.items


def own_files(directory: Path) -> dict[str, str]:
    """SHA-256 of the files that a build has written into `directory`, by relative path; of an empty one none.

    Raises HG050 if it is neither empty nor a build, HG001.
    """
    try:
        if not stat.S_ISDIR(os.lstat(directory).st_mode):
            raise _no_build(directory, "is no directory")
        if not any(directory.iterdir()):
            return {}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise fail("HG001", str(directory), f"cannot be written: {getattr(error, 'strerror', error)}.") from None
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    if data is None:
        raise _no_build(directory, "has files and no manifest.json")
    problem = _wrong(_parsed(data))
    if problem:
        raise _no_build(directory, f"has a manifest.json that is not of this version of hlsgen: {problem}")
    return _hashes(data)


def listed_files(directory: Path) -> dict[str, str]:
    """SHA-256 of the files of a build directory by its manifest, that of the manifest included. Raises HG050."""
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    if data is None:
        raise fail("HG050", str(directory), "has no readable manifest.json.", _HINT)
    problem = _wrong(_parsed(data))
    if problem:
        text = f"has a manifest.json that is not of this version of hlsgen: {problem}."
        raise fail("HG050", str(directory), text, _HINT)
    return _hashes(data)


def _hashes(manifest: bytes) -> dict[str, str]:
    return {**_parsed(manifest)["files"], "manifest.json": hashlib.sha256(manifest).hexdigest()}


def _no_build(directory: Path, why: str) -> Exception:
    text = f"exists and is not a build of hlsgen: it {why}. It is left as it is."
    return fail("HG050", str(directory), text, "Choose another -o, or remove it.")


def check_output(directory: Path) -> None:
    """Refuses what is there and is no build. Raises HG050, HG001."""
    own_files(directory)


def read_regular(path: Path, most: int = MAX_FILE_BYTES) -> bytes | None:
    """The content of a regular file. None for all else: links, pipes, devices, folders, nothing, more than `most` bytes.

    Never blocks, and follows no link in the last part of the path.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            now = os.fstat(stream.fileno())
            if not stat.S_ISREG(now.st_mode) or now.st_size > most:
                return None
            data = stream.read(most + 1)
            return data if len(data) <= most else None
    except (OSError, ValueError):
        return None


def _parsed(data: bytes) -> dict[str, Any]:
    """A manifest as it is; empty if it is no JSON object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _wrong(manifest: dict[str, Any]) -> str:
    """What a manifest has that no manifest of ours has; empty if nothing."""
    model, files = manifest.get("model"), manifest.get("files")
    if not isinstance(manifest.get("hlsgen"), str) or not isinstance(manifest.get("options"), dict):
        return "no version or no options"
    if not isinstance(model, dict) or model.get("file") != "model.onnx" or not _is_hash(model.get("sha256")):
        return "no model"
    if not isinstance(files, dict) or files.get("model.onnx") != model["sha256"]:
        return "no list of its files"
    for name, value in files.items():
        plain = all(part not in ("", ".", "..") for part in name.split("/")) and "\\" not in name and name.isprintable()
        if not plain or name == "manifest.json" or not _is_hash(value):
            return f"{name[:80]!r} in the list of its files"
    return ""


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def output_tensor(directory: Path) -> str:
    """The name of the model's output, or those of all, as the manifest of a build has them. Raises HG050."""
    return ", ".join(_of_outputs(directory, "tensor"))


def output_ports(directory: Path) -> list[str]:
    """The names of the output ports, if there are several. Raises HG050."""
    ports = _of_outputs(directory, "port")
    return ports if len(ports) > 1 else []


def _of_outputs(directory: Path, key: str) -> list[str]:
    """What the manifest of a build says of its output ports. Raises HG050."""
    manifest = _parsed(read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES) or b"")
    several = manifest.get("outputs")
    outputs = several if isinstance(several, list) and several else [manifest.get("output")]
    names = [output.get(key) if isinstance(output, dict) else None for output in outputs]
    found = [name for name in names if isinstance(name, str) and name.isprintable()]
    if len(found) < len(names):
        raise fail("HG050", str(directory), "has a manifest.json that names no output.", _HINT)
    return found


def reopen(directory: Path, progress: Progress | None = None) -> Build:
    """Compiles the model of a build again, with the options of its manifest. Raises HG050."""
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    options = from_manifest(_parsed(data or b"").get("options"))
    if options is None:
        raise fail("HG050", str(directory), "has no readable manifest.json.", _HINT)
    path = directory / "model.onnx"
    if not path.is_file() or path.is_symlink():
        raise fail("HG050", str(directory), "has no model.onnx.", _HINT)
    return compile_model(path, options, progress)


def changed_files(files: Mapping[str, bytes], directory: Path) -> list[str]:
    """Files of a build directory that are not what the model gives, or are missing or left over.

    Left over is what else lies in the folders of the build, but not in those that running its testbench makes.
    """
    there = files_in(directory, {name.split("/")[0] for name in files if "/" in name})
    wrong = [name for name, data in files.items() if name not in there or not _holds(directory / name, data)]
    more = {name for name in there if "/" in name and not left_by_runs(name)}
    return [*wrong, *sorted(more - set(files))]


def changes(
    files: Mapping[str, bytes], directory: Path, hint: str = "", skipped: Callable[[str], object] = lambda name: False
) -> list[Diagnostic]:
    """HG051 for each of `changed_files`: what is the matter with it and what to do, in the same words everywhere.

    A file that is none of the build's stays when it is built again: it has to be moved away. `hint`: what else can be done.
    skipped: whether a file of this name is left out.
    """
    found = []
    for name in (name for name in changed_files(files, directory) if not skipped(name)):
        there = os.path.lexists(directory / name)
        what = "differs from what the model gives." if there else "is missing."
        text, advice = (what, "Build again") if name in files else ("is no file of the build.", "Move it away")
        found.append(Diagnostic("HG051", name, text, f"{advice}; {hint}" if hint else f"{advice}."))
    return found


def left_by_runs(name: str) -> bool:
    """Whether a file of a build directory is one that its own testbenches and tools leave there."""
    return name.startswith(_LEFT_BY_RUNS)


def _holds(file: Path, data: bytes) -> bool:
    return read_regular(file, len(data)) == data


def files_in(directory: Path, folders: set[str]) -> set[str]:
    """Relative paths of what lies in a directory and, at any depth, in these folders of it; links are not followed."""
    found, open_ = set(), [""]
    while open_:
        below = open_.pop()
        try:
            with os.scandir(directory / below) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        found.add(below + entry.name)
                    elif below or entry.name in folders:
                        open_.append(f"{below}{entry.name}/")
        except OSError:
            continue
    return found


def refuse_special_files(directory: Path) -> None:
    """Refuses what would block its reader, or has no end: pipes, devices, files larger than any of a build; also links
    in place of single files, while those in rtl/ and hls/ are an error of the certificate.

    Raises HG050 with the first few.
    """
    cores = ("rtl/", "hls/")
    there = files_in(directory, {"rtl", "hls"})
    names = sorted(name for name in there if name in _CERTIFIED or (name.startswith(cores) and not left_by_runs(name)))
    wrong = []
    for name in names:
        try:
            found = os.stat(directory / name, follow_symlinks=name.startswith(cores))
        except OSError:
            continue
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            wrong.append(name)
    if wrong:
        raise fail("HG050", str(directory), f"has what no build has, not read: {', '.join(wrong[:5])}.", _HINT)
