"""`hlsgen unpack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.array_files import port_files, read_bytes, write_outputs
from hlsgen.cli.console import emit, out, plain, stop
from hlsgen.cli.options import DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import output_ports, output_tensor


def unpack(
    directory: DirArg,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Bytes of whole frames from the core.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="Y", help="Model outputs, .npy (or .npz).", show_default=False)
    ],
    codes: Annotated[bool, typer.Option("--codes", help="Integer codes instead of the model's outputs.")] = False,
    as_json: Json = False,
) -> None:
    try:
        with Watch(as_json) as watch:
            watch.text("unpacking")
            ports = output_ports(directory)
            content = (
                {port: read_bytes(path) for port, path in port_files(data, ports).items()}
                if ports
                else read_bytes(data)
            )
            y = hlsgen.unpack(directory, content, codes=codes)
            write_outputs(output, y, output_tensor(directory))
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        shape = {name: list(array.shape) for name, array in y.items()} if isinstance(y, dict) else list(y.shape)
        emit({"ok": True, "output": str(output), "output_shape": shape})
    else:
        parts = (
            [f"{name} {list(array.shape)}" for name, array in y.items()]
            if isinstance(y, dict)
            else [str(list(y.shape))]
        )
        out.print(f"{plain(', '.join(parts))}, wrote {plain(str(output))}")
