"""`hlsgen synth`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.console import emit, say, stop
from hlsgen.cli.hardware import print_synthesis
from hlsgen.cli.options import DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError, fail

MAX_SECONDS = 7 * 86400


def synth(
    directory: DirArg,
    device: Annotated[str, typer.Option(help="FPGA, as `hlsgen devices` lists them.", show_default=False)],
    bitstream: Annotated[
        bool,
        typer.Option(
            "--bitstream", help="Make a bitstream of the core between three pins: ECP5, iCE40, Gowin, GateMate."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of placement.")] = 1,
    seeds: Annotated[
        int, typer.Option(help="Most placements, from --seed on, until the --clock-mhz of the build is reached.")
    ] = 3,
    timeout: Annotated[float, typer.Option(help="Time limit of each tool, in seconds.")] = 3600,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="Folder for netlist, report, log and bitstream.",
            show_default=False,
        ),
    ] = None,
    no_place: Annotated[bool, typer.Option("--no-place", help="Run Yosys only: resources, no clock.")] = False,
    as_json: Json = False,
) -> None:
    try:
        with Watch(as_json) as watch:
            if seed < 0:
                raise fail("HG040", "--seed", f"{seed}.", "Supported: 0 and greater.")
            if not 0 < timeout <= MAX_SECONDS:
                raise fail("HG040", "--timeout", f"{timeout:g}.", f"Supported: above 0, to {MAX_SECONDS}.")
            synthesis = hlsgen.synth(
                directory,
                device,
                bitstream=bitstream,
                seed=seed,
                seeds=seeds,
                timeout=timeout,
                output=output,
                place=not no_place,
                progress=watch.text,
            )
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        emit({"ok": synthesis.fits, **synthesis.as_dict(), "diagnostics": [d.as_dict() for d in synthesis.problems]})
    else:
        print_synthesis(synthesis)
        for problem in synthesis.problems:
            say(problem)
    if not synthesis.fits:
        raise typer.Exit(1)
