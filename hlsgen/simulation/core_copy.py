"""The files that are simulated: a copy of what was compared with the model, which nobody else can change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.driver.build_directory import changes, files_in, left_by_runs, read_regular
from hlsgen.driver.compile import Build

_TRUST = "or, if you trust whoever changed it, let `run` or `verify` simulate it with --allow-changed."


def core_files(build: Build, directory: Path, *, allow_changed: bool) -> dict[str, bytes]:
    """Verilog, its files.f, and C++, by relative path: those of the build, if `directory` has the same.

    allow_changed: those that lie in `directory`, regular files only. Else raises HG051 for every file that differs.
    """
    if allow_changed:
        there = files_in(directory, {"rtl", "hls"})
        names = sorted(n for n in there if _is_core(n) and (n in build.files or not left_by_runs(n)))
        read = {name: read_regular(directory / name) for name in names}
        found = {name: data for name, data in read.items() if data is not None}
        if "files.f" in build.files and not ("files.f" in found and found["files.f"].isascii()):
            raise fail("HG051", "files.f", "is no list of files.", "Build again.")
        return found
    if changed := changes(build, directory, _TRUST):
        raise HlsgenError(changed)
    return {name: data for name, data in build.files.items() if _is_core(name)}


def _is_core(name: str) -> bool:
    return name == "files.f" or name.startswith(("rtl/", "hls/"))


def write_core(files: Mapping[str, bytes], work: Path) -> Path:
    """Writes these files into a folder below `work`; gives the folder."""
    core = work / "core"
    (core / "rtl").mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (core / name).parent.mkdir(parents=True, exist_ok=True)
        (core / name).write_bytes(data)
    return core
