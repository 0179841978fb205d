"""`hlsgen verify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.console import emit, stop
from hlsgen.cli.options import AllowChanged, DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.cli.verdict_text import print_verdict
from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.simulation.simulators import SIMULATORS

MAX_FRAMES = 1_000_000


def verify(
    directory: DirArg,
    sim: Annotated[str, typer.Option(help=f"{', '.join(SIMULATORS)}, or all that the build has.")] = "all",
    frames: Annotated[int | None, typer.Option(help="Frames of stimuli.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of stimuli and stalls.")] = 1,
    allow_changed: AllowChanged = False,
    cut: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="New folder for the first layer of Verilog that differs, with a test of its own.",
            show_default=False,
        ),
    ] = None,
    oracle: Annotated[
        str,
        typer.Option(help="What runs the ONNX file itself: qonnx, onnxruntime, onnx, none, or auto: by its operators."),
    ] = "auto",
    cosim: Annotated[
        bool, typer.Option("--cosim", help="Synthesize the C++ by Vitis, and simulate the result; v++ and vitis-run.")
    ] = False,
    as_json: Json = False,
) -> None:
    try:
        with Watch(as_json) as watch:
            simulators = None if sim == "all" else [sim]
            if frames is not None and not 1 <= frames <= MAX_FRAMES:
                raise fail("HG040", "--frames", f"{frames}.", f"Supported: 1 to {MAX_FRAMES}.")
            if seed < 0:
                raise fail("HG040", "--seed", f"{seed}.", "Supported: 0 and greater.")
            verdict = hlsgen.verify(
                directory,
                simulators,
                frames,
                seed,
                watch.text,
                allow_changed=allow_changed,
                cut=cut,
                oracle=oracle,
                cosim=cosim,
            )
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        emit(
            {
                "ok": verdict.ok,
                "model": {"ok": verdict.model.ok, **asdict(verdict.model)},
                "oracle": {"ok": verdict.oracle.ok, **asdict(verdict.oracle)},
                "predicted": verdict.predicted,
                "simulators": {name: {"ok": v.ok, **asdict(v)} for name, v in verdict.simulators.items()},
                "first_divergence": verdict.first_divergence,
                "notes": verdict.notes,
                "changed_files": verdict.changed,
                "diagnostics": [d.as_dict() for d in verdict.diagnostics],
            }
        )
    else:
        print_verdict(verdict)
    if not verdict.ok:
        raise typer.Exit(1)
