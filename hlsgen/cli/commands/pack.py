"""`hlsgen pack`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.array_files import port_files, read_array, write_bytes
from hlsgen.cli.console import emit, out, plain, stop
from hlsgen.cli.options import DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError, counted, fail


def pack(
    directory: DirArg,
    x: Annotated[Path, typer.Argument(metavar="X", help="Model inputs, .npy (or .npz).", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File to write. Default: standard output.", show_default=False
        ),
    ] = None,
    round_input: Annotated[
        bool,
        typer.Option(
            "--round-input", help="Round values between two codes of a fixed-point input to the nearest code."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    try:
        if output is None and (as_json or sys.stdout.isatty()):
            raise fail("HG040", "--output", "missing, and standard output is a terminal or JSON.", "Give -o FILE.")
        with Watch(as_json) as watch:
            watch.text("packing")
            data = hlsgen.pack(directory, read_array(x), round_input=round_input)
        if isinstance(data, dict):
            if output is None:
                text = f"missing, and the core has {len(data)} input ports."
                raise fail("HG040", "--output", text, "Give -o FILE: each port gets a file of its own, FILE_NAME.")
            files = port_files(output, data)
        else:
            files, data = {"": output} if output is not None else {}, {"": data}
        for name, path in files.items():
            write_bytes(path, data[name])
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if output is None:
        sys.stdout.buffer.write(data[""])
    elif as_json:
        sizes = {name: len(content) for name, content in data.items()}
        paths = {name: str(path) for name, path in files.items()}
        emit({"ok": True, "output": paths.get("", paths), "bytes": sizes.get("", sizes)})
    else:
        for name, path in files.items():
            out.print(f"{counted(len(data[name]), 'byte')}, wrote {plain(str(path))}")
