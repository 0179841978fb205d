"""`hlsgen synth`: synthesizes a build directory and saves the results in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hlsgen.devices import device
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.results import RESULTS, write_files
from hlsgen.simulation.core_copy import core_files
from hlsgen.synthesis.result import Synthesis
from hlsgen.synthesis.synthesize import Order, synthesize


def synth_directory(
    directory: Path, name: str, order: Order, output: Path | None, progress: Callable[[str], None]
) -> Synthesis:
    """Synthesizes the build in `directory`, if its files are those of the model; saves results/synth-NAME.json there.

    output: a folder for the files that the tools wrote: netlist, report, log, bitstream. If it is None, only the
    bitstream is kept, in results/. Raises HG001, HG040, HG050, HG051, HG052, HG053.
    """
    target = device(name)
    build = reopen(directory)
    synthesis, written = synthesize(
        build, core_files(build.files, directory, allow_changed=False), target, order, progress
    )
    folder = directory / RESULTS if output is None else output
    kept_files = {
        _with_device(file, name): data
        for file, data in written.items()
        if output is not None or file.endswith(_BITSTREAMS)
    }
    write_files(folder, kept_files)
    bitstream = next((file for file in kept_files if file.endswith(_BITSTREAMS)), None)
    synthesis = replace(synthesis, bitstream=None if bitstream is None else str(folder / bitstream))
    text = json.dumps(synthesis.as_dict(), indent=2) + "\n"
    write_files(directory / RESULTS, {f"synth-{name}.json": text.encode()})
    return synthesis


_BITSTREAMS = (".bit", ".bin", ".fs")


def _with_device(file: str, name: str) -> str:
    """The file name with the device's name before the suffix."""
    return f"{Path(file).stem}-{name}{Path(file).suffix}"
