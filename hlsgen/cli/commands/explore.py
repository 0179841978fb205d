"""`hlsgen explore`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hlsgen.cli.console import emit, err, out, plain, say_all, stop
from hlsgen.cli.exploration_text import print_exploration
from hlsgen.cli.options import BuildFlags, Json, ModelArg, takes_build_flags
from hlsgen.cli.progress import Bar
from hlsgen.diagnostics import HlsgenError
from hlsgen.explore.points import ANSWERED, VARIED
from hlsgen.explore.records import PICTURE, POINTS
from hlsgen.explore.running import NETWORKS, Exploration, Order, none_fits, place_of, run

#: Build options that an exploration varies, defines itself, or does not use.
WITHOUT = (*VARIED, *ANSWERED, "fps", "clock_mhz", "clock_name", "reset_name", "reset_active_low", "top")


@partial(takes_build_flags, without=WITHOUT)
def explore(
    model: ModelArg,
    flags: BuildFlags,
    device: Annotated[
        str | None,
        typer.Option(help="FPGA, as `hlsgen devices` lists them; networks must fit in 80 % of it.", show_default=False),
    ] = None,
    clock_mhz: Annotated[
        float | None,
        typer.Option(
            "--clock-mhz", help="Clock for rates. Default: the clock of the device, else 200.", show_default=False
        ),
    ] = None,
    points: Annotated[
        int, typer.Option(help="Largest number of networks; each is a point for every kind of weight memory.")
    ] = NETWORKS,
    synth: Annotated[bool, typer.Option("--synth", help="Synthesize the front, as `hlsgen synth` does.")] = False,
    timeout: Annotated[float, typer.Option(help="Time limit of each tool of --synth, in seconds.")] = 3600,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help=f"Folder for {POINTS} and {PICTURE}.", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes. Default: one for each processor.", show_default=False)
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Scheduler of dask.distributed whose workers do the work.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    exploration, code = Exploration(), 0
    try:
        place = place_of(device, clock_mhz)
        order = Order(place, points, synth, output, timeout, jobs, cluster)
        with Bar(as_json) as bar:
            run(model, flags.options(), order, None, bar.count, exploration)
        none_fits(exploration.points)
    except HlsgenError as error:
        raise stop(error, as_json) from None
    except KeyboardInterrupt:
        code = 130
        err.print("interrupted: the following points were complete")
    if as_json:
        emit(
            {
                "ok": not code,
                "model": str(model),
                "networks": exploration.networks,
                "known": exploration.stored,
                "output": None if output is None else str(output),
                "points": [point.as_dict() for point in exploration.points],
                "diagnostics": [d.as_dict() for d in exploration.warnings],
            }
        )
    else:
        say_all(exploration.warnings)
        print_exploration(exploration, place)
        if output is not None and exploration.points:
            out.print(f"wrote {plain(str(output))}: {POINTS}, {PICTURE}", soft_wrap=True)
    if code:
        raise typer.Exit(code)
