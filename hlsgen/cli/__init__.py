"""The command line: parses arguments, calls the library, prints results.

Exit codes: 0: success; 1: a diagnostic, or a check that failed; 2: wrong usage. A command is a line in `COMMANDS` and a
function of that name in the module of that name in commands/. Modules are imported when their command is called: help,
version and completion do not wait for numpy and onnx.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import hlsgen
from hlsgen.cli.console import stop
from hlsgen.diagnostics import HlsgenError, fail

#: Commands in the order of `hlsgen --help`, with their descriptions.
COMMANDS = {
    "example": "Write a quantized model to try the other commands with.",
    "check": "Report every problem that prevents a build, or the hardware of each layer. Writes nothing.",
    "build": "Write Verilog or C++ for HLS, with testbench, host code, reports and manifest.",
    "quantize": "Quantize a float model with a sample of its inputs, or freeze dynamic scales.",
    "run": "Run inputs of the model through the hardware, the C++ or the reference, to outputs of the model.",
    "pack": "Convert inputs of the model to the bytes that a processor sends to the core.",
    "unpack": "Convert bytes from the core to outputs of the model.",
    "package": "Write project files for FuseSoC, Vivado, Quartus, Yosys, Verilator, PYNQ, Vitis or a CI service.",
    "verify": "Compare a build, its simulation and its model file in a runtime: integers must be equal.",
    "certify": "Prove without simulation that the files of a build compute the integers of its model.",
    "synth": "Synthesize a build with Yosys, place and route it with nextpnr: resources, clock and critical path.",
    "explore": "Try many foldings and memories, and list the networks on the Pareto front of rate and size.",
    "devices": "List the FPGAs that --device knows.",
    "report": "Write report.html again, with the results of `verify` and `synth`.",
}
_SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain text starts in half the time, and is readable in a log
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 120},
}
#: The base of BadParameter: errors in the arguments of a command line.
UsageError: Any = typer.BadParameter.__base__


class _Commands(TyperGroup):
    """All commands by name and help; a command is imported when it is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, text in COMMANDS.items():
            self.add_command(TyperCommand(name, help=text))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists all commands with their whole descriptions; the base class cuts them off."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, remaining = super().resolve_command(ctx, args)
        return name, _command(name) if name in COMMANDS else None, remaining

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command; prints wrong usage as a JSON object if --json is given."""
        arguments = sys.argv[1:] if args is None else list(args)
        if "--json" not in arguments or not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except UsageError as error:
            command = f"hlsgen {error.ctx.info_name}" if error.ctx is not None and error.ctx.parent else "hlsgen"
            hint = f"`{command} --help` lists commands and options."
            code = stop(fail("HG040", command, error.format_message(), hint), as_json=True).exit_code
        sys.exit(code or 0)


class _GroupedCommand(TyperCommand):
    """A command whose help lists options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, general options, then groups of options in the order of their declaration."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                title = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _command(name: str | None) -> Any:
    """The command of this name with its arguments, imported from its module."""
    single = typer.Typer(add_completion=False, **_SETTINGS)
    single.command(name, help=COMMANDS[name or ""], cls=_GroupedCommand)(
        getattr(importlib.import_module(f"hlsgen.cli.commands.{name}"), name or "")
    )
    return typer.main.get_command(single)


app = typer.Typer(
    cls=_Commands,
    help="Compiles quantized ONNX and TFLite models to fixed-point hardware, proven to equal the model's integers.",
    no_args_is_help=True,
    **_SETTINGS,
)


def _version(value: bool) -> None:
    if value:
        print(f"hlsgen {hlsgen.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _open_standard_streams() -> None:
    """Opens closed standard streams (`>&-`), so that no other file gets their number."""
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
    """Runs the command and flushes its output. Raises SystemExit, HG001, and the errors of the command."""
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
    """Entry point. An unexpected error is reported in one line; with HLSGEN_DEBUG=1 it is raised."""
    _open_standard_streams()
    try:
        _run_app()
    except KeyboardInterrupt:
        sys.exit(130)
    except HlsgenError as error:  # the output could not be written
        sys.exit(stop(error, as_json=False).exit_code)
    except Exception as error:
        if os.environ.get("HLSGEN_DEBUG") == "1":
            raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}."
        problem = fail("HG099", "hlsgen", text, "Please report it, with the output under HLSGEN_DEBUG=1.")
        sys.exit(stop(problem, "--json" in sys.argv).exit_code)
