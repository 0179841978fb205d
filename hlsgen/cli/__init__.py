"""The command line: parses, calls the library, prints. Exit code 0: what it says holds; 1: it does
not, or a diagnostic; 2: wrong usage."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import hlsgen
from hlsgen.cli.array_files import read_array, write_array, write_arrays
from hlsgen.cli.console import err, out, plain, print_choices, print_summary, print_verdict
from hlsgen.cli.hardware import print_devices, print_synthesis
from hlsgen.cli.options import AllowChanged, BuildFlags, DirArg, Json, ModelArg, takes_build_flags
from hlsgen.devices import devices as known_devices
from hlsgen.diagnostics import Diagnostic, HlsgenError, fail
from hlsgen.driver import summary as report
from hlsgen.driver.build_directory import check_output, output_tensor
from hlsgen.simulation.simulators import BACKENDS, SIMULATORS

app = typer.Typer(
    help="Quantized ONNX models to fixed-point hardware that equals the model's integers, proven in simulation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

MAX_FRAMES = 1_000_000
MAX_SECONDS = 7 * 86400


class _Watch:
    """A progress line on a terminal, nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err, transient=True,
            disable=quiet or not err.is_terminal,
        )  # fmt: skip

    def __enter__(self) -> _Watch:
        self.progress.start()
        self.task = self.progress.add_task("reading")
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def layer(self, done: int, total: int, name: str) -> None:
        self.progress.update(self.task, description=f"layer {done + 1} of {total}: {plain(name)}")

    def text(self, text: str) -> None:
        self.progress.update(self.task, description=plain(text))


def _emit(data: dict[str, Any]) -> None:
    print(json.dumps(data, indent=2))


def _stop(error: HlsgenError, as_json: bool) -> typer.Exit:
    """Prints all diagnostics; the exit to raise."""
    if as_json:
        _emit({"ok": False, "diagnostics": [d.as_dict() for d in error.diagnostics]})
    else:
        for diagnostic in error.diagnostics:
            _say(diagnostic)
        count = sum(d.severity == "error" for d in error.diagnostics)
        err.print(f"{count} problem{'s' if count != 1 else ''}.")
    usage = all(d.code == "HG040" for d in error.diagnostics if d.severity == "error")
    return typer.Exit(2 if usage else 1)


def _say(diagnostic: Diagnostic) -> None:
    colour = "yellow" if diagnostic.severity == "warning" else "red"
    err.print(f"[{colour}]{diagnostic.severity}[/] {escape(str(diagnostic))}", soft_wrap=True)


@app.command()
@takes_build_flags
def check(model: ModelArg, flags: BuildFlags, as_json: Json = False) -> None:
    """Say what stands in the way of a build, all of it; or what becomes of each layer."""
    try:
        options = flags.options()
        with _Watch(as_json) as watch:
            result = hlsgen.check(model, options, watch.layer)
    except HlsgenError as error:
        raise _stop(error, as_json) from None
    summary = report.summary(result, flags.clock_mhz)
    if as_json:
        _emit({"ok": True, **summary, "diagnostics": [d.as_dict() for d in result.warnings]})
        return
    for warning in result.warnings:
        _say(warning)
    print_summary(summary)
    print_choices(summary)


@app.command()
@takes_build_flags
def build(
    model: ModelArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Directory to write.", show_default=False)
    ],
    flags: BuildFlags,
    as_json: Json = False,
) -> None:
    """Write Verilog or C++ for HLS, testbench and manifest."""
    try:
        options = flags.options()
        check_output(output)
        with _Watch(as_json) as watch:
            result = hlsgen.build(model, output, options, watch.layer)
    except HlsgenError as error:
        raise _stop(error, as_json) from None
    summary = report.summary(result, flags.clock_mhz)
    if as_json:
        _emit(
            {
                "ok": True,
                "output": str(output),
                **summary,
                "diagnostics": [d.as_dict() for d in result.warnings],
            }
        )
        return
    for warning in result.warnings:
        _say(warning)
    print_summary(summary)
    tops = [f"top {kind} {name}" for kind, name in result.tops.items()]
    out.print(f"wrote {plain(str(output))}: {', '.join([f'{len(result.files)} files', *tops])}")


@app.command()
def run(
    directory: DirArg,
    input_: Annotated[Path, typer.Option("--input", metavar="X", help="Model inputs, .npy (or .npz).", show_default=False)],
    output: Annotated[Path, typer.Option("--output", metavar="Y", help="Model outputs, .npy (or .npz).", show_default=False)],
    backend: Annotated[str, typer.Option(help=f"{', '.join(BACKENDS)}; cpp: C simulation.")] = "reference",
    dump_layers: Annotated[
        Path | None,
        typer.Option(metavar="Z", help="Codes and values behind every layer, .npz, compared with the reference.", show_default=False),
    ] = None,
    round_input: Annotated[
        bool, typer.Option("--round-input", help="Round values between two codes of a fixed-point input to the nearest.")
    ] = False,
    allow_changed: AllowChanged = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The model's own inputs to the model's own outputs, through the hardware."""
    try:
        with _Watch(as_json) as watch:
            watch.text(f"running on {backend}")
            if dump_layers and os.path.realpath(dump_layers) == os.path.realpath(output):
                raise fail("HG040", "--dump-layers", "the same file as --output.", "Name another file.")
            tensor = output_tensor(directory)
            x = read_array(input_)
            how = {"allow_changed": allow_changed, "round_input": round_input}
            y = hlsgen.run(directory, x, backend, **how)
            layers = hlsgen.layers(directory, x, backend, **how) if dump_layers else []
        write_array(output, y, tensor)
        if dump_layers:
            parts = {layer.name: layer.codes for layer in layers}
            write_arrays(dump_layers, parts | {f"{layer.name}.values": layer.values for layer in layers})
    except HlsgenError as error:
        raise _stop(error, as_json) from None
    different = {layer.name: layer.differing for layer in layers if layer.differing}
    if as_json:
        _emit(
            {
                "ok": not different,
                "backend": backend,
                "input_shape": _shape(x),
                "output_shape": list(y.shape),
                **({"layers": [layer.name for layer in layers], "differing": different} if dump_layers else {}),
            }
        )
    else:
        out.print(f"{backend}: {_shape(x)} -> {list(y.shape)}, wrote {plain(str(output))}")
        if dump_layers:
            out.print(
                f"{len(layers)} layers, {len(different)} differ from the reference, wrote {plain(str(dump_layers))}"
            )
        for name, count in different.items():
            out.print(f"{plain(name)}: {count} codes differ")
    if different:
        raise typer.Exit(1)


@app.command()
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
    """Hold a build against its model and its ONNX file: its integers, every file, and the hardware in simulation."""
    try:
        with _Watch(as_json) as watch:
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
        raise _stop(error, as_json) from None
    if as_json:
        _emit(
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


@app.command()
def certify(
    directory: DirArg,
    model: Annotated[
        Path | None, typer.Option(help="The model that the build must be of, byte by byte.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove from the files alone, without simulation, that a build computes what its model does."""
    try:
        with _Watch(as_json) as watch:
            watch.text("certifying")
            found = hlsgen.certify(directory, model)
    except HlsgenError as error:
        raise _stop(error, as_json) from None
    if as_json:
        diagnostics = [d.as_dict() for d in found.problems]
        parts = {name: [asdict(x) for x in getattr(found, name)] for name in ("layers", "proven", "assumed")}
        _emit({"ok": found.ok, **parts, "diagnostics": diagnostics})
    else:
        for layer in found.layers:
            of = "functions" if layer.inputs else "rows" if layer.kind in ("linear", "convolution") else "results"
            what = f"{layer.functions} {of}"
            proof = f" of {layer.inputs} inputs, {layer.evaluated} evaluated" if layer.inputs else ""
            out.print(plain(f"{layer.layer}: {layer.module}, {what}{proof}"), soft_wrap=True)
        for problem in found.problems[:20]:
            _say(problem)
        if len(found.problems) > 20:
            err.print(f"... and {len(found.problems) - 20} more problems.")
        if found.ok:
            for name, statements in (("proven", found.proven), ("assumed", found.assumed)):
                out.print(f"{name}: {', '.join(x.name for x in statements)}", soft_wrap=True)
        out.print("[green]certified[/]" if found.ok else "[red]NOT certified[/]")
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def synth(
    directory: DirArg,
    device: Annotated[str, typer.Option(help="FPGA, as `hlsgen devices` lists them.", show_default=False)],
    bitstream: Annotated[
        bool, typer.Option("--bitstream", help="Make one, of the core between three pins: ECP5, iCE40, Gowin.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of placement.")] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds that each tool may take.")] = 3600,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Takes netlist, report, log and bitstream as well.", show_default=False),
    ] = None,
    no_place: Annotated[bool, typer.Option("--no-place", help="Yosys only: counts, no clock.")] = False,
    as_json: Json = False,
) -> None:
    """Synthesize a build with Yosys, place and route it with nextpnr: what it takes, and the clock that it reaches."""
    try:
        with _Watch(as_json) as watch:
            if seed < 0:
                raise fail("HG040", "--seed", f"{seed}.", "Supported: 0 and greater.")
            if not 0 < timeout <= MAX_SECONDS:
                raise fail("HG040", "--timeout", f"{timeout:g}.", f"Supported: above 0, to {MAX_SECONDS}.")
            found = hlsgen.synth(
                directory, device, bitstream=bitstream, seed=seed, timeout=timeout, output=output, place=not no_place,
                progress=watch.text,
            )  # fmt: skip
    except HlsgenError as error:
        raise _stop(error, as_json) from None
    if as_json:
        _emit({"ok": found.fits, **found.as_dict(), "diagnostics": [d.as_dict() for d in found.problems]})
    else:
        print_synthesis(found)
        for problem in found.problems:
            _say(problem)
    if not found.fits:
        raise typer.Exit(1)


@app.command()
def devices(as_json: Json = False) -> None:
    """List the FPGAs that --device knows."""
    if as_json:
        _emit({"ok": True, "devices": [one.as_dict() for one in known_devices().values()]})
    else:
        print_devices(list(known_devices().values()))


def _shape(x: Any) -> list[int]:
    return list(next(iter(x.values())).shape if isinstance(x, dict) else x.shape)


def _version(value: bool) -> None:
    if value:
        print(f"hlsgen {hlsgen.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:  # fmt: skip
    pass


def _open_standard_streams() -> None:
    """Gives closed streams (`>&-`) a place, before a file that is opened takes their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run_app() -> None:
    """Runs the command, and writes out all that it prints. Raises SystemExit, HlsgenError with HG001, and more."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.EPIPE:
            sys.exit(1)
        raise fail("HG001", "stdout", f"cannot be written: {error.strerror}.") from None


def main() -> None:
    """Entry point. The last resort for what should not happen: one line, the rest with HLSGEN_DEBUG=1."""
    _open_standard_streams()
    try:
        _run_app()
    except KeyboardInterrupt:
        sys.exit(130)
    except HlsgenError as error:  # of the output itself
        sys.exit(_stop(error, as_json=False).exit_code)
    except Exception as error:
        if os.environ.get("HLSGEN_DEBUG") == "1":
            raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}."
        problem = fail("HG099", "hlsgen", text, "Please report it, with the output under HLSGEN_DEBUG=1.")
        sys.exit(_stop(problem, "--json" in sys.argv).exit_code)
