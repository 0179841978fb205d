"""The files to simulate: a private copy of the files that were compared with the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.driver.build_directory import changes, files_in, left_by_runs, read_regular

_TRUST = "or, if you trust the change, let `run` or `verify` simulate it with --allow-changed."


def core_files(files: Mapping[str, bytes], directory: Path, *, allow_changed: bool) -> dict[str, bytes]:
    """Verilog, its files.f, and C++, by relative path: the files of the build, if `directory` has the same.

    files: contents of the build's files. allow_changed: the files in `directory` instead, if they are regular files.
    Otherwise raises HG051 for every file that differs.
    """
    if allow_changed:
        present = files_in(directory, {"rtl", "hls"})
        names = sorted(name for name in present if _is_core(name) and (name in files or not left_by_runs(name)))
        contents = {name: read_regular(directory / name) for name in names}
        core = {name: data for name, data in contents.items() if data is not None}
        if "files.f" in files and not ("files.f" in core and core["files.f"].isascii()):
            raise fail("HG051", "files.f", "is not a list of files.", "Build again.")
        return core
    if changed := changes(files, directory, _TRUST):
        raise HlsgenError(changed)
    return {name: data for name, data in files.items() if _is_core(name)}


def _is_core(name: str) -> bool:
    return name == "files.f" or name.startswith(("rtl/", "hls/"))


def write_core(files: Mapping[str, bytes], work: Path) -> Path:
    """Writes these files into a folder below `work`; returns the folder."""
    core = work / "core"
    (core / "rtl").mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (core / name).parent.mkdir(parents=True, exist_ok=True)
        (core / name).write_bytes(data)
    return core
