"""The command line: parses, calls the library, prints. Exit code 0: what it says holds; 1: it does
not, or a diagnostic; 2: wrong usage.

A command is a line in `COMMANDS` and a function of its name in the module of its name in commands/. The modules are
imported when they are called, so that help, version and completion do not wait for numpy and onnx.
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

#: What `hlsgen --help` says of every command, in its order.
COMMANDS = {
    "check": "Say what stands in the way of a build, all of it; or what becomes of each layer.",
    "build": "Write Verilog or C++ for HLS, testbench and manifest.",
    "quantize": "Quantize a float model with a sample of its inputs, or freeze the scales of a dynamically quantized one.",
    "run": "The model's own inputs to the model's own outputs, through the hardware.",
    "pack": "The model's inputs as the bytes that a processor sends to the core.",
    "unpack": "The bytes that the core sends as the model's outputs.",
    "package": "Project files: FuseSoC, Vivado, Quartus, Yosys, Verilator, PYNQ, continuous integration.",
    "verify": "Hold a build against its model and its ONNX file: its integers, every file, and the hardware in simulation.",
    "certify": "Prove from the files alone, without simulation, that a build computes what its model does.",
    "synth": "Synthesize a build with Yosys, place and route it with nextpnr: what it takes, and the clock that it reaches.",
    "explore": "Try many foldings, weight memories, and DSP or not: which networks no other one beats in rate and size.",
    "devices": "List the FPGAs that --device knows.",
    "report": "Write report.html once more, with what `verify` and `synth` have found.",
}
_HOW: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain text: it starts in half the time, and reads well in a log
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 120},
}
#: The base of BadParameter: what is wrong with the words of a command line.
UsageError: Any = typer.BadParameter.__base__


class _Commands(TyperGroup):
    """The commands, which are known by name and help until one of them is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, text in COMMANDS.items():
            self.add_command(TyperCommand(name, help=text))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """As that of the base class, which cuts texts off."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, _command(name) if name in COMMANDS else None, rest

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, complete_var: str | None = None,
        standalone_mode: bool = True, windows_expand_args: bool = True, **extra: Any,
    ) -> Any:  # fmt: skip
        """As that of the base class; but with --json wrong usage is a JSON object, too."""
        words = sys.argv[1:] if args is None else list(args)
        if "--json" not in words or not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except UsageError as error:
            where = f"hlsgen {error.ctx.info_name}" if error.ctx is not None and error.ctx.parent else "hlsgen"
            hint = f"`{where} --help` lists what there is."
            code = stop(fail("HG040", where, error.format_message(), hint), as_json=True).exit_code
        sys.exit(code or 0)


def _command(name: str | None) -> Any:
    """A command with its arguments, of the module of its name."""
    single = typer.Typer(add_completion=False, **_HOW)
    single.command(name, help=COMMANDS[name or ""])(
        getattr(importlib.import_module(f"hlsgen.cli.commands.{name}"), name or "")
    )
    return typer.main.get_command(single)


app = typer.Typer(
    cls=_Commands,
    help="Quantized ONNX models to fixed-point hardware that equals the model's integers, proven in simulation.",
    no_args_is_help=True,
    **_HOW,
)


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
        sys.exit(stop(error, as_json=False).exit_code)
    except Exception as error:
        if os.environ.get("HLSGEN_DEBUG") == "1":
            raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}."
        problem = fail("HG099", "hlsgen", text, "Please report it, with the output under HLSGEN_DEBUG=1.")
        sys.exit(stop(problem, "--json" in sys.argv).exit_code)
