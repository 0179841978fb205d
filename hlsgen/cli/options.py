"""Arguments that several commands share, and the flags of `build`, made from the declaration of its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hlsgen.cli.array_files import read_array
from hlsgen.diagnostics import Collector, fail
from hlsgen.driver.calibration import input_type_of
from hlsgen.driver.declaration import Declared, declared, option
from hlsgen.driver.options import Options, check_options

ModelArg = Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX, TFLite or ALIR file.", show_default=False)]
DirArg = Annotated[Path, typer.Argument(metavar="DIR", help="Build directory, written by `build`.", show_default=False)]
AllowChanged = Annotated[
    bool,
    typer.Option(
        "--allow-changed",
        help="Simulate files that differ from the build. They are programs: do this only if you trust their author.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]


@dataclass(frozen=True)
class Rate:
    """A rate at a clock. `Options` converts it to cycles a frame."""

    fps: float | None = option(None, "--fps", "Frames a second at --clock-mhz, instead of --target-cycles.")


@dataclass(frozen=True)
class Sample:
    """Inputs of the model. The command line converts them to an input type, the option of a build."""

    calibrate: Path | None = option(
        None,
        "--calibrate",
        "A sample of the model's inputs, .npy (.npz for several inputs). Instead of --input, chooses the smallest "
        "fixed-point types that hold all its values.",
        metavar="X",
    )


@dataclass(frozen=True)
class BuildFlags:
    """Flags of a build as written on the command line, by the names of the fields of Options, Rate and Sample."""

    values: Mapping[str, Any]

    def options(self) -> Options:
        """The options of the build. Raises HG040 and HG041: all problems that can be found without a model."""
        problems, values = Collector(), dict[str, Any]()
        for option_field in declared(Options):
            spelling = option_field.declaration.spelling
            with problems.catching():
                if option_field.declaration.flag is not None:
                    written = self.values[option_field.name]
                    values[option_field.name] = written if spelling is None else spelling.read(written)
        if (sample := self.values["calibrate"]) is not None:
            with problems.catching():
                if values["input"] is not None:
                    raise fail("HG040", "--calibrate", "given together with --input.", "Give one of them.")
                arrays = read_array(sample)
                named = isinstance(arrays, dict)
                types = {name: input_type_of(x) for name, x in arrays.items()} if named else input_type_of(arrays)
                values["input"] = types
        options = Options(**values)
        with problems.catching():
            options = Options(**values, fps=self.values["fps"])
        if problems.errors:
            with problems.catching():
                check_options(options)
        problems.finish()
        return options


def takes_build_flags(command: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """Replaces the parameter `flags: BuildFlags` of a command by one flag for each option of a build.

    Options in `without` get no flag and keep their defaults.
    """
    flags = [flag for flag in _flags() if flag.name not in without]
    names = [flag.name for flag in flags]
    defaults = {flag.name: _default(flag) for flag in _flags() if flag.name in without}
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.annotation is BuildFlags:
            place = parameter.name
            parameters += [_parameter(flag) for flag in flags]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def called(**arguments: Any) -> None:
        written = {name: arguments.pop(name) for name in names}
        command(**arguments, **{place: BuildFlags({**defaults, **written})})

    # Some versions of typer read the annotations, others the signature.
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__dict__["__signature__"] = inspect.Signature(parameters)
    return called


def _flags() -> Iterator[Declared]:
    """All options with a flag, the sample after the input type, and the rate after the cycles a frame."""
    for option_field in declared(Options):
        if option_field.declaration.flag is not None:
            yield option_field
        if option_field.name == "input":
            yield from declared(Sample)
        if option_field.name == "target_cycles":
            yield from declared(Rate)


#: Options of a build by the heading that `--help` lists them under.
GROUPS: dict[str, tuple[str, ...]] = {
    "Model and numbers": ("input", "source", "calibrate", "runtime", "outputs", "add", "softmax", "realize"),
    "Speed and size": (
        *("target_cycles", "latency_cycles", "fps", "device", "clock_mhz", "max_lut", "max_dsp", "max_bram"),
        *("folding", "lanes", "prefer", "weights", "recurrence", "merge_layers"),
    ),
    "Ports": ("bus_width", "ports", "tkeep", "control", "loadable", "clock_name", "reset_name", "reset_active_low"),
    "State between frames": ("state", "state_start"),
    "Files": ("target", "top"),
}


def _parameter(option_field: Declared) -> inspect.Parameter:
    declaration, spelling = option_field.declaration, option_field.declaration.spelling
    choices = declaration.choices

    def complete(incomplete: str) -> list[str]:
        return [value for value in (choices() if choices else ()) if value.startswith(incomplete)]

    annotation, default = option_field.type if spelling is None else spelling.type, _default(option_field)
    shown = typer.Option(
        declaration.flag,
        metavar=declaration.metavar,
        help=declaration.help,
        show_default=default is not None,
        rich_help_panel=next(title for title, names in GROUPS.items() if option_field.name in names),
        autocompletion=complete if choices else None,
    )
    return inspect.Parameter(
        option_field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, shown]
    )


def _default(option_field: Declared) -> Any:
    """The value of an option that is not on the command line."""
    spelling = option_field.declaration.spelling
    return option_field.default if spelling is None else spelling.default
