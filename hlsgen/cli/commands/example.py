"""`hlsgen example`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hlsgen.cli.array_files import write_bytes
from hlsgen.cli.console import emit, out, plain, stop
from hlsgen.cli.options import Json
from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.library import EXAMPLE_MODEL, example_model


def example(
    output: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="File to write; must not exist.", show_default=True)
    ] = Path(EXAMPLE_MODEL),
    as_json: Json = False,
) -> None:
    try:
        if output.exists():
            raise fail("HG001", str(output), "exists.", "Name another file.")
        write_bytes(output, example_model())
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        emit({"ok": True, "output": str(output)})
        return
    out.print(f"wrote {plain(str(output))}, a network for 8x8 digits", soft_wrap=True)
    out.print(f"next: hlsgen build {plain(str(output))} -o digits", soft_wrap=True)
