"""`hlsgen verify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import hlsgen
from hlsgen.cli.array_files import write_bytes
from hlsgen.cli.console import emit, err, stop
from hlsgen.cli.junit import junit as as_junit
from hlsgen.cli.options import AllowChanged, DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.cli.verdict_text import print_end, print_part
from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.driver.results import manifest_hash, save_result
from hlsgen.frontend.runtimes import ALIR, TFLITE
from hlsgen.simulation.oracles import PACKAGES
from hlsgen.simulation.simulators import SIMULATORS
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict

MAX_FRAMES = 1_000_000
MAX_SECONDS = 7 * 86400


def verify(
    directory: DirArg,
    sim: Annotated[
        str, typer.Option(help=f"{', '.join(SIMULATORS)}; all: those that the build has files for.")
    ] = "all",
    frames: Annotated[int | None, typer.Option(help="Number of frames of stimuli.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of stimuli and stalls.")] = 1,
    allow_changed: AllowChanged = False,
    cut: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="New folder for the first Verilog layer that differs, with a test of its own.",
            show_default=False,
        ),
    ] = None,
    oracle: Annotated[
        str,
        typer.Option(
            help="Runtime for the whole file: auto (the runtime of the build), none, or another one: "
            f"{', '.join(PACKAGES)} for ONNX files; {', '.join(TFLITE)} for TFLite files; {ALIR} for ALIR files."
        ),
    ] = "auto",
    cosim: Annotated[
        bool, typer.Option("--cosim", help="Synthesize the C++ with Vitis (v++, vitis-run) and simulate the result.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="JUnit file to write, for CI systems.", show_default=False),
    ] = None,
    waves: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Waveform file of the simulator that --sim names, .vcd or .fst.", show_default=False
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time limit for everything: fewer frames run. A part that does not end in time is not verified.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    parts: dict[str, Any] = {}
    try:
        with Watch(as_json) as watch:
            _check(frames, seed, budget)
            verdict = hlsgen.verify(
                directory,
                None if sim == "all" else [sim],
                frames,
                seed,
                watch.text,
                allow_changed=allow_changed,
                cut=cut,
                oracle=oracle,
                cosim=cosim,
                on_part=_part_reporter(parts, None if as_json else watch),
                budget=budget,
                waves=waves,
            )
        data = _save(directory, verdict, junit)
    except HlsgenError as error:
        raise stop(error, as_json, _so_far(parts)) from None
    except KeyboardInterrupt:
        raise _interrupted(parts, as_json) from None
    if as_json:
        emit(data)
    else:
        print_end(verdict)
    if not verdict.ok:
        raise typer.Exit(1)


def _part_reporter(parts: dict[str, Any], watch: Watch | None) -> Callable[[str, object], None]:
    """Keep each part of the verdict in `parts`; print it beside the progress line, if there is one."""

    def report(name: str, part: object) -> None:
        parts[name] = part
        if watch is not None:
            with watch.paused():
                print_part(name, part)

    return report


def _save(directory: Path, verdict: Verdict, junit: Path | None) -> dict[str, Any]:
    """The verdict as JSON, saved in the build and as a JUnit file. Raises HlsgenError if that cannot be written."""
    data = {"ok": verdict.ok, **_parts(verdict), "diagnostics": [d.as_dict() for d in verdict.diagnostics]}
    if junit is not None:
        write_bytes(junit, as_junit(verdict))
    with suppress(HlsgenError):  # a read-only directory is verified without saving the result
        record = {**data, "manifest_sha256": manifest_hash(directory)}
        save_result(directory, "verify.json", (json.dumps(record, indent=2) + "\n").encode())
    return data


def _interrupted(parts: dict[str, Any], as_json: bool) -> typer.Exit:
    """Print the results until an interrupt; return the end of the command."""
    if as_json:
        emit({"ok": False, "interrupted": True, **_so_far(parts)})
    else:
        err.print("[red]NOT verified[/]: interrupted. The results above are valid.")
    return typer.Exit(130)


def _check(frames: int | None, seed: int, budget: float | None) -> None:
    """Raises HG040 for numbers that are out of range."""
    if frames is not None and not 1 <= frames <= MAX_FRAMES:
        raise fail("HG040", "--frames", f"{frames}.", f"Supported: 1 to {MAX_FRAMES}.")
    if seed < 0:
        raise fail("HG040", "--seed", f"{seed}.", "Supported: 0 and greater.")
    if budget is not None and not 1 <= budget <= MAX_SECONDS:
        raise fail("HG040", "--budget", f"{budget}.", f"Supported: 1 to {MAX_SECONDS} seconds.")


def _parts(verdict: Verdict) -> dict[str, Any]:
    return {
        "model": _plain(verdict.model),
        "oracle": _plain(verdict.oracle),
        "host": _plain(verdict.host) if verdict.host else None,
        "predicted": verdict.predicted,
        "simulators": {name: _plain(part) for name, part in verdict.simulators.items()},
        "first_divergence": verdict.first_divergence,
        "notes": verdict.notes,
        "changed_files": verdict.changed,
    }


def _so_far(parts: dict[str, Any]) -> dict[str, Any]:
    """Results until now, in the form of a verdict."""
    checks = {name: parts[name] for name in ("model", "oracle", "host") if name in parts}
    simulators = {name: _plain(part) for name, part in parts.items() if isinstance(part, SimulatorVerdict)}
    return {
        **{name: _plain(part) for name, part in checks.items()},
        **({"simulators": simulators} if simulators else {}),
    }


def _plain(part: Any) -> dict[str, Any]:
    return {"ok": part.ok, **asdict(part)}
