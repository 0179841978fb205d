"""`hlsgen certify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.console import emit, err, out, plain, say, stop
from hlsgen.cli.options import DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError, counted


def certify(
    directory: DirArg,
    model: Annotated[
        Path | None,
        typer.Option(help="The model file that the build must have been made from, byte by byte.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    try:
        with Watch(as_json) as watch:
            watch.text("certifying")
            certified = hlsgen.certify(directory, model)
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        diagnostics = [d.as_dict() for d in certified.problems]
        parts = {name: [asdict(x) for x in getattr(certified, name)] for name in ("layers", "proven", "assumed")}
        emit({"ok": certified.ok, **parts, "diagnostics": diagnostics})
    else:
        for layer in certified.layers:
            kind = "functions" if layer.inputs else "rows" if layer.kind in ("linear", "convolution") else "results"
            results = f"{layer.functions} {kind}"
            proof = f" of {counted(layer.inputs, 'input')}, {layer.evaluated} evaluated" if layer.inputs else ""
            out.print(plain(f"{layer.layer}: {layer.module}, {results}{proof}"), soft_wrap=True)
        for problem in certified.problems[:20]:
            say(problem)
        if len(certified.problems) > 20:
            err.print(f"... and {len(certified.problems) - 20} more problems.")
        if certified.ok:
            for name, statements in (("proven", certified.proven), ("assumed", certified.assumed)):
                out.print(f"{name}: {', '.join(x.name for x in statements)}", soft_wrap=True)
        out.print("[green]certified[/]" if certified.ok else "[red]NOT certified[/]")
    if not certified.ok:
        raise typer.Exit(1)
