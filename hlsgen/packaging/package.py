"""Puts a package together and writes it: a folder that stands alone, of sources, memories, host code and project files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hlsgen.devices import device as device_of
from hlsgen.devices import devices
from hlsgen.diagnostics import Collector, Diagnostic, fail
from hlsgen.driver.build_directory import MAX_MANIFEST_BYTES, changed_files, read_regular, reopen
from hlsgen.driver.compile import Build
from hlsgen.driver.replace_directory import replace_files
from hlsgen.driver.schedule import Progress
from hlsgen.library import tool_version
from hlsgen.packaging.kinds import KINDS, ONE_STREAM, common_files, core_of

#: Lists the files of a package, with their hashes.
LIST = "package.json"
#: The device of files that need one, where none is named, here or for the build.
DEFAULT_DEVICE = "ecp5-25k"


def package_files(build: Build, kinds: Sequence[str], device: str | None, clock_mhz: float | None) -> dict[str, bytes]:
    """Relative path -> content; the same for the same build and arguments. Raises HG040."""
    for kind in kinds or ("",):
        if kind not in KINDS:
            raise fail("HG040", "--for", f"{kind!r}.", f"Supported: {', '.join(KINDS)}; several with commas between.")
    if clock_mhz is not None and not 0 < clock_mhz <= 1e5:
        raise fail("HG040", "--clock-mhz", f"{clock_mhz:g}.", "Supported: a number greater than 0, in MHz.")
    several = len(build.design.inputs) + len(build.design.outputs) > 2
    if several and (unfit := [kind for kind in kinds if kind in ONE_STREAM]):
        text = f"a package for {unfit[0]} is made of a core with one input and one output port."
        others = ", ".join(kind for kind in KINDS if kind not in ONE_STREAM)
        raise fail("HG040", "--ports", text, f"Build with --ports packed, or make a package for {others}.")
    chosen = device_of(device) if device is not None else build.options.chosen_device or devices()[DEFAULT_DEVICE]
    core = core_of(build, chosen, clock_mhz or chosen.clock_mhz)
    files = common_files(core)
    for kind in dict.fromkeys(kinds):
        files |= KINDS[kind](core)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    about = {
        "hlsgen": tool_version(), "core": core.name, "model": core.model, "for": list(dict.fromkeys(kinds)),
        "device": chosen.name, "clock_mhz": core.clock_mhz, "files": hashes,
    }  # fmt: skip
    return {**files, LIST: (json.dumps(about, indent=2) + "\n").encode()}


def package_directory(
    directory: Path, output: Path, kinds: Sequence[str], device: str | None, clock_mhz: float | None,
    progress: Progress | None = None,
) -> tuple[dict[str, bytes], list[Diagnostic]]:  # fmt: skip
    """Packages the build in `directory` into `output`: its files, and what has to be said of them.

    A package that is there is replaced, and what else lies there stays. Raises HG040, HG050, HG051, HG060, HG001.
    """
    build = reopen(directory, progress)
    if changed := changed_files(build, directory):
        raise fail(
            "HG051", str(directory), f"{len(changed)} files differ from what the model gives: {', '.join(changed[:5])}.",
            "A package is made of what the model gives. Build again.",
        )  # fmt: skip
    files = package_files(build, kinds, device, clock_mhz)
    overtaken = replace_files(files, output, lambda: _own_files(output))
    notes = Collector()
    for place, name in sorted(overtaken.items(), key=lambda item: item[1]):
        text = f"was changed while the new package took its place. Your version is {place}."
        notes.warn("HG063", str(output / name), text, "Take it from there, or remove it.")
    return files, notes.items


def _own_files(output: Path) -> Mapping[str, str]:
    """SHA-256 of the files of a package that is there. Raises HG050 if there is something else."""
    try:
        if not output.exists() or (output.is_dir() and not any(output.iterdir())):
            return {}
    except OSError as error:
        raise fail("HG001", str(output), f"cannot be written: {error.strerror}.") from None
    data = read_regular(output / LIST, MAX_MANIFEST_BYTES)
    try:
        found = json.loads(data or b"")
        listed = {str(name): str(value) for name, value in found["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        listed = {}
    plain = all(part not in ("", ".", "..") for name in listed for part in name.split("/"))
    if data is None or not listed or not plain or LIST in listed:
        text = f"exists and is no package of hlsgen: it has no {LIST} of one. It is left as it is."
        raise fail("HG050", str(output), text, "Choose another -o, or remove it.")
    return {**listed, LIST: hashlib.sha256(data).hexdigest()}
