"""`hlsgen report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.array_files import write_bytes
from hlsgen.cli.console import emit, out, plain, stop
from hlsgen.cli.options import DirArg, Json
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.results import save_result


def report(
    directory: DirArg,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="HTML file to write. Default: DIR/results/report.html.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    try:
        rendered = hlsgen.report(directory)
        page = rendered.html.encode()
        path = save_result(directory, "report.html", page) if output is None else output
        if output is not None:
            write_bytes(output, page)
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        emit({"ok": True, "output": str(path), "results": rendered.used, "outdated": rendered.outdated})
        return
    for name in rendered.used:
        out.print(f"with results/{plain(name)}")
    for name in rendered.outdated:
        out.print(f"without results/{plain(name)}, which is about an older build", soft_wrap=True)
    out.print(f"wrote {plain(str(path))}", soft_wrap=True)
