"""Assembles and writes a package: a self-contained folder of sources, memories, host code and project files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hlsgen.devices import device as device_of
from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.driver.build_directory import MAX_MANIFEST_BYTES, changes, read_regular, reopen
from hlsgen.driver.compile import Build
from hlsgen.driver.replace_directory import replace_files
from hlsgen.driver.schedule import Progress
from hlsgen.library import licence_line, render, tool_version
from hlsgen.packaging.core import core_of
from hlsgen.packaging.kinds import KINDS, PLAIN_KINDS, common_files, cores_of, device_for

#: File that lists the files of a package with their hashes.
LIST = "package.json"


def package_files(build: Build, kinds: Sequence[str], device: str | None, clock_mhz: float | None) -> dict[str, bytes]:
    """Relative path -> content; equal builds and arguments give equal files. Raises HG040."""
    for kind in kinds or ("",):
        if kind not in KINDS:
            raise fail("HG040", "--for", f"{kind!r}.", f"Supported: {', '.join(KINDS)}; several separated by commas.")
    if clock_mhz is not None and not 0 < clock_mhz <= 1e5:
        raise fail("HG040", "--clock-mhz", f"{clock_mhz:g}.", "Supported: a number greater than 0, in MHz.")
    if build.design.plain and (streaming := [kind for kind in kinds if kind not in PLAIN_KINDS]):
        text, hint = "needs streams, but the build has --ports plain.", f"Supported: {', '.join(PLAIN_KINDS)}."
        raise fail("HG040", f"--for {streaming[0]}", text, f"{hint} Or build with --ports packed.")
    named = None if device is None else device_of(device)
    cores = {
        kind: replace(core_of(build, device_for(kind, build, named), clock_mhz), has_dma="dma" in kinds)
        for kind in kinds
    }
    core = next(iter(cores.values()))
    files = common_files(core)
    for kind, core_for_kind in cores.items():
        files |= KINDS[kind](core_for_kind)
    for path, data in files.items():
        line = licence_line(path).encode()
        files[path] = data if data.startswith(line) else line + data
    files["README.md"] = render("project/README.md.j2", core=core, cores=cores).encode()
    chosen = {
        kind: [
            {"device": device_core.device.name, "clock_mhz": device_core.clock_mhz}
            for device_core in cores_of(kind, core_for_kind)
        ]
        for kind, core_for_kind in cores.items()
    }
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    contents = {
        "hlsgen": tool_version(),
        "core": core.name,
        "model": core.model,
        "for": list(cores),
        "devices": chosen,
        "files": hashes,
    }
    return {**files, LIST: (json.dumps(contents, indent=2) + "\n").encode()}


def package_directory(
    directory: Path,
    output: Path,
    kinds: Sequence[str],
    device: str | None,
    clock_mhz: float | None,
    progress: Progress | None = None,
) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """Packages the build in `directory` into `output`; returns the files of the package, and warnings.

    An existing package in `output` is replaced; other files in it stay. Raises HG040, HG050, HG051, HG060, HG001.
    """
    build = reopen(directory, progress)
    if changed := changes(build.files, directory):
        raise HlsgenError(changed)
    files = package_files(build, kinds, device, clock_mhz)
    overtaken = replace_files(files, output, lambda: _replaceable_files(output))
    notes = Collector()
    for place, name in sorted(overtaken.items(), key=lambda item: item[1]):
        text = f"was changed while the new package replaced it. Your version is {place}."
        notes.warn("HG063", str(output / name), text, "Move it back, or remove it.")
    return files, notes.items


def _replaceable_files(output: Path) -> Mapping[str, str]:
    """SHA-256 of the files of an existing package. Raises HG050 if the folder holds anything else."""
    try:
        if not output.exists() or (output.is_dir() and not any(output.iterdir())):
            return {}
    except OSError as error:
        raise fail("HG001", str(output), f"cannot be written: {error.strerror}.") from None
    data = read_regular(output / LIST, MAX_MANIFEST_BYTES)
    try:
        parsed = json.loads(data or b"")
        listed = {str(name): str(value) for name, value in parsed["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        listed = {}
    plain = all(part not in ("", ".", "..") for name in listed for part in name.split("/"))
    if data is None or not listed or not plain or LIST in listed:
        text = f"exists and is not a package of hlsgen: it has no valid {LIST}. Nothing was changed."
        raise fail("HG050", str(output), text, "Choose another -o, or remove it.")
    return {**listed, LIST: hashlib.sha256(data).hexdigest()}
