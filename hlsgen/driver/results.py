"""Reads and writes results of `verify` and `synth` in the folder results/ of a build directory, and renders the report.

The files do not belong to the build. They hold the hashes of the files they describe; results of other builds are not
used.
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

#: Folder of a build directory for measured results. It does not belong to the build.
RESULTS = "results"
#: Most bytes of a result, most results that are read, most units in a report.
MAX_BYTES, MAX_RESULTS, MAX_UNITS = 1 << 22, 64, 20_000
_MALFORMED = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
    jinja2.TemplateError,
)


@dataclass(frozen=True)
class Report:
    """A page, the result files shown on it, and the result files that describe another build."""

    html: str
    used: list[str]
    outdated: list[str]


def save_result(directory: Path, name: str, data: bytes) -> Path:
    """Writes results/NAME of a build directory. Raises HG001."""
    write_files(directory / RESULTS, {name: data})
    return directory / RESULTS / name


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files into a folder, which is created, and replaces existing ones. Follows no link. Raises HG001."""
    try:
        folder.mkdir(exist_ok=True)
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, data in files.items():
                new = f".{name}.new-{os.getpid()}"
                try:
                    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder_fd)
                    with open(file, "wb") as stream:
                        stream.write(data)
                    os.replace(new, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
                finally:
                    with suppress(FileNotFoundError):
                        os.unlink(new, dir_fd=folder_fd)
        finally:
            os.close(folder_fd)
    except OSError as error:
        raise fail("HG001", str(folder), f"cannot be written: {error.strerror or error}.") from None


def manifest_hash(directory: Path) -> str:
    """SHA-256 of the manifest of a build directory; empty if there is no manifest."""
    data = read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def report_of(directory: Path) -> Report:
    """The report of a build directory with the results of this build. Raises HG050."""
    files = listed_files(directory)
    manifest = _json(directory / "manifest.json", MAX_MANIFEST_BYTES)
    texts = (_json(directory / name, MAX_MANIFEST_BYTES) for name in CERTIFICATES if name in files)
    certificate = next((content for content in texts if content), {})
    used, outdated, results = [], [], []
    for name in _names(directory / RESULTS):
        content = _json(directory / RESULTS / name, MAX_BYTES)
        if not {"simulators", "device"} & set(content):
            continue
        if _matches(content, files):
            used.append(name)
            results.append(content)
        else:
            outdated.append(name)
    try:
        if len(manifest["units"]) > MAX_UNITS:
            raise ValueError
        return Report(page(manifest, certificate, results), used, outdated)
    except _MALFORMED:
        text = "has a manifest.json, a certificate.json or results that are not of this version of hlsgen."
        raise fail("HG050", str(directory), text, "Build again; remove the files in results/.") from None


def _names(folder: Path) -> list[str]:
    """Sorted names of the result files of a folder."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))[:MAX_RESULTS]
    except OSError:
        return []


def _json(path: Path, limit: int) -> dict[str, Any]:
    """The JSON object in a file; empty if there is none."""
    try:
        parsed = json.loads(read_regular(path, limit) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _matches(result: Mapping[str, Any], files: Mapping[str, str]) -> bool:
    """True if a result describes files with these hashes: the manifest, or each file it names."""
    if "manifest_sha256" in result:
        return bool(result["manifest_sha256"] == files["manifest.json"])
    hashes = result.get("files_sha256")
    return isinstance(hashes, dict) and bool(hashes) and all(files.get(name) == value for name, value in hashes.items())
