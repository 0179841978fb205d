"""What was found out about a build, in the folder results/ of its directory: read, written, and put into a report.

Files in it are no part of the build. They name the files that they are about; of another build they are not used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from hlsgen.artifacts.project_files import CERTIFICATES
from hlsgen.artifacts.report_html import page
from hlsgen.diagnostics import fail
from hlsgen.driver.build_directory import MAX_MANIFEST_BYTES, listed_files, read_regular

#: The folder of a build directory for what tools have measured: no part of the build, which is compared with its model.
RESULTS = "results"
#: Larger files are no results, and more of them are not read; reports of more units are not drawn.
MAX_BYTES, MAX_RESULTS, MAX_UNITS = 1 << 22, 64, 20_000
_MALFORMED = (
    ArithmeticError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, jinja2.TemplateError,
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """A page, and the names of the files of results/ that are on it, and of those that are about other files."""

    html: str
    used: list[str]
    outdated: list[str]


def save_result(directory: Path, name: str, data: bytes) -> Path:
    """Writes results/NAME of a build directory. Raises HG001."""
    write_files(directory / RESULTS, {name: data})
    return directory / RESULTS / name


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files into a folder, which is made, each in the place of one before. Follows no link. Raises HG001."""
    try:
        folder.mkdir(exist_ok=True)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, data in files.items():
                new = f".{name}.new-{os.getpid()}"
                try:
                    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=place)
                    with open(file, "wb") as stream:
                        stream.write(data)
                    os.replace(new, name, src_dir_fd=place, dst_dir_fd=place)
                finally:
                    with suppress(FileNotFoundError):
                        os.unlink(new, dir_fd=place)
        finally:
            os.close(place)
    except OSError as error:
        raise fail("HG001", str(folder), f"cannot be written: {error.strerror or error}.") from None


def manifest_hash(directory: Path) -> str:
    """SHA-256 of the manifest of a build directory, which names all its files; empty if there is none."""
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def report_of(directory: Path) -> Report:
    """The report of a build directory, with the results that are about this build. Raises HG050."""
    files = listed_files(directory)
    manifest = _json(directory / "manifest.json", MAX_MANIFEST_BYTES)
    texts = (_json(directory / name, MAX_MANIFEST_BYTES) for name in CERTIFICATES if name in files)
    certificate = next((found for found in texts if found), {})
    used, outdated, results = [], [], []
    for name in _names(directory / RESULTS):
        found = _json(directory / RESULTS / name, MAX_BYTES)
        if not {"simulators", "device"} & set(found):
            continue
        if _about(found, files):
            used.append(name)
            results.append(found)
        else:
            outdated.append(name)
    try:
        if len(manifest["units"]) > MAX_UNITS:
            raise ValueError
        return Report(page(manifest, certificate, results), used, outdated)
    except _MALFORMED:
        text = "has a manifest.json, a certificate.json or results that are not of this version of hlsgen."
        raise fail("HG050", str(directory), text, "Build again; remove what is in results/.") from None


def _names(folder: Path) -> list[str]:
    """The result files of a folder, by name."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))[:MAX_RESULTS]
    except OSError:
        return []


def _json(path: Path, most: int) -> dict[str, Any]:
    """The object in a file; empty if there is none."""
    try:
        found = json.loads(read_regular(path, most) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _about(result: Mapping[str, Any], files: Mapping[str, str]) -> bool:
    """Whether a result is about files with these hashes: about the manifest, or each that it names."""
    if "manifest_sha256" in result:
        return bool(result["manifest_sha256"] == files["manifest.json"])
    named = result.get("files_sha256")
    return isinstance(named, dict) and bool(named) and all(files.get(name) == value for name, value in named.items())
