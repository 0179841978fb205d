"""`hlsgen synth`: a build directory through the tools, and the result beside the files of the build."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hlsgen.devices import device
from hlsgen.diagnostics import fail
from hlsgen.driver.build_directory import reopen
from hlsgen.simulation.core_copy import core_files
from hlsgen.synthesis.result import Synthesis
from hlsgen.synthesis.synthesize import Order, synthesize

#: The folder of a build directory for what tools have measured: no part of the build, which is compared with its model.
RESULTS = "results"


def synth_directory(
    directory: Path, name: str, order: Order, output: Path | None, progress: Callable[[str], None]
) -> Synthesis:
    """Synthesizes what lies in `directory`, if it is what the model gives; saves results/synth-NAME.json there.

    output: a folder that takes what the tools wrote as well: netlist, report, log, bitstream. Without it the bitstream
    goes to results/. Raises HG001, HG040, HG050, HG051, HG052, HG053.
    """
    target = device(name)
    build = reopen(directory)
    found, written = synthesize(build, core_files(build, directory, allow_changed=False), target, order, progress)
    place = directory / RESULTS if output is None else output
    kept = {_named(n, name): data for n, data in written.items() if output is not None or n.endswith(_BITSTREAMS)}
    write_files(place, kept)
    stream = next((n for n in kept if n.endswith(_BITSTREAMS)), None)
    found = replace(found, bitstream=None if stream is None else str(place / stream))
    text = json.dumps(found.as_dict(), indent=2) + "\n"
    write_files(directory / RESULTS, {f"synth-{name}.json": text.encode()})
    return found


_BITSTREAMS = (".bit", ".bin", ".fs")


def _named(file: str, name: str) -> str:
    return f"{Path(file).stem}-{name}{Path(file).suffix}"


def write_files(folder: Path, files: dict[str, bytes]) -> None:
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
        raise fail("HG001", str(folder), f"cannot be written: {error.strerror}.") from None
