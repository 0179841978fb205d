"""`hlsgen synth`: a build directory through the tools, and the result beside the files of the build."""

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
