"""`hlsgen run`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import hlsgen
from hlsgen.cli.array_files import read_array, write_arrays, write_outputs
from hlsgen.cli.console import emit, out, plain, stop
from hlsgen.cli.options import AllowChanged, DirArg, Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError, counted, fail
from hlsgen.driver.build_directory import output_tensor
from hlsgen.simulation.simulators import BACKENDS


def run(
    directory: DirArg,
    input_: Annotated[
        Path, typer.Option("-i", "--input", metavar="X", help="Model inputs, .npy (or .npz).", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="Y", help="Model outputs, .npy (or .npz).", show_default=False)
    ],
    backend: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(BACKENDS)}; cpp: C simulation. "
            "verilator keeps the compiled core in the user's cache folder."
        ),
    ] = "reference",
    dump_layers: Annotated[
        Path | None,
        typer.Option(
            metavar="Z",
            help="Codes and values at the output of each layer, .npz, compared with the reference.",
            show_default=False,
        ),
    ] = None,
    round_input: Annotated[
        bool,
        typer.Option(
            "--round-input", help="Round values between two codes of a fixed-point input to the nearest code."
        ),
    ] = False,
    starts: Annotated[
        str | None,
        typer.Option(
            metavar="N,M,...",
            help="Samples that start a sequence, counted from 0, in a build with --state. The first one always does.",
            show_default=False,
        ),
    ] = None,
    allow_changed: AllowChanged = False,
    as_json: Json = False,
) -> None:
    try:
        with Watch(as_json) as watch:
            watch.text(f"running on {backend}")
            if dump_layers and os.path.realpath(dump_layers) == os.path.realpath(output):
                raise fail("HG040", "--dump-layers", "the same file as --output.", "Name another file.")
            tensor = output_tensor(directory)
            x = read_array(input_)
            settings: dict[str, Any] = {
                "allow_changed": allow_changed,
                "round_input": round_input,
                "starts": _numbers(starts),
            }
            y = hlsgen.run(directory, x, backend, **settings)
            layers = hlsgen.layers(directory, x, backend, **settings) if dump_layers else []
        write_outputs(output, y, tensor)
        if dump_layers:
            parts = {layer.name: layer.codes for layer in layers}
            write_arrays(dump_layers, parts | {f"{layer.name}.values": layer.values for layer in layers})
    except HlsgenError as error:
        raise stop(error, as_json) from None
    differing = {layer.name: layer.differing for layer in layers if layer.differing}
    if as_json:
        names = {"layers": [layer.name for layer in layers], "differing": differing} if dump_layers else {}
        shapes = {"input_shape": _shape(x), "output_shape": _shape(y)}
        emit({"ok": not differing, "backend": backend, **shapes, **names})
    else:
        out.print(f"{backend}: {_in_words(x)} -> {_in_words(y)}, wrote {plain(str(output))}")
        if dump_layers:
            _print_layers(len(layers), differing, dump_layers)
    if differing:
        raise typer.Exit(1)


def _print_layers(count: int, differing: Mapping[str, int], path: Path) -> None:
    """`differing`: the number of codes that differ, by layer."""
    out.print(f"{counted(count, 'layer')}, {len(differing)} differ from the reference, wrote {plain(str(path))}")
    for name, codes in differing.items():
        out.print(f"{plain(name)}: {counted(codes, 'code')} differ")


def _numbers(text: str | None) -> list[int] | None:
    """The numbers in a text, separated by commas. Raises HG040."""
    if text is None:
        return None
    if not all(part.isdecimal() for part in text.split(",")):
        raise fail("HG040", "--starts", f"{text!r}.", "Give numbers of samples, separated by commas.")
    return [int(part) for part in text.split(",")]


def _shape(x: Any) -> Any:
    """The shape of an array, or of several by name."""
    return {name: list(array.shape) for name, array in x.items()} if isinstance(x, dict) else list(x.shape)


def _in_words(x: Any) -> str:
    shape = _shape(x)
    return plain(", ".join(f"{n} {s}" for n, s in shape.items()) if isinstance(shape, dict) else str(shape))
