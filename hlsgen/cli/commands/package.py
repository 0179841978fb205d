"""`hlsgen package`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.console import emit, out, plain, say, stop
from hlsgen.cli.options import DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError, counted


def package(
    directory: DirArg,
    kinds: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="FLOW,...",
            help="fusesoc, vivado, quartus, yosys, verilator, pynq, dma, soc, litex, vitis, ci; several with commas "
            "between.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write.", show_default=False)
    ],
    device: Annotated[
        str | None,
        typer.Option(
            help="FPGA, as `hlsgen devices` lists them. Default: the device of the build, else xc7z020 for vivado, "
            "pynq and vitis, cyclonev-5csema5 for quartus, ecp5-25k for yosys.",
            show_default=False,
        ),
    ] = None,
    clock_mhz: Annotated[
        float | None,
        typer.Option("--clock-mhz", help="Clock of the constraints. Default: that of the device.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    try:
        with Watch(as_json) as watch:
            files, notes = hlsgen.package(
                directory, output, kinds.split(","), device=device, clock_mhz=clock_mhz, progress=watch.layer
            )
    except HlsgenError as error:
        raise stop(error, as_json) from None
    chosen = json.loads((output / "package.json").read_text(encoding="utf-8"))["devices"]
    if as_json:
        answer = {"ok": True, "output": str(output), "files": files, "devices": chosen}
        emit({**answer, "diagnostics": [d.as_dict() for d in notes]})
        return
    for note in notes:
        say(note)
    for kind, devices in chosen.items():
        if devices:
            named = (f"{device['device']} at {device['clock_mhz']:g} MHz" for device in devices)
            out.print(f"{kind}: {', '.join(named)}")
    out.print(f"wrote {plain(str(output))}: {counted(len(files), 'file')}; README.md says what they are")
