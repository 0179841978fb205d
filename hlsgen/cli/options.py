"""Arguments that commands share, and the flags of a build, made from the declaration of its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hlsgen.cli.array_files import read_array
from hlsgen.devices import CLOCK_MHZ, devices
from hlsgen.diagnostics import Collector, fail
from hlsgen.driver.calibration import input_type_of
from hlsgen.driver.declaration import Declared, check_values, declared, option
from hlsgen.driver.options import Options, check_options

ModelArg = Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX file.", show_default=False)]
DirArg = Annotated[Path, typer.Argument(metavar="DIR", help="Directory that `build` has written.", show_default=False)]
AllowChanged = Annotated[
    bool,
    typer.Option("--allow-changed", help="Simulate files that differ from the build. They are programs: trust them."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]


def _positive(value: float) -> Iterator[tuple[str, str]]:
    if not 0 < value <= 1e12:
        yield f"{value}.", "Supported: a number greater than 0."


@dataclass(frozen=True)
class Rate:
    """A rate at the clock. A build does not know it: it is told the cycles a frame."""

    fps: float | None = option(
        None, "--fps", "Frames a second at --clock-mhz, instead of --target-cycles.", check=_positive
    )


@dataclass(frozen=True)
class Sample:
    """Inputs of the model, for a type that holds them. A build does not know them: it is told the type."""

    calibrate: Path | None = option(
        None,
        "--calibrate",
        "A sample of the model's inputs, .npy (of several .npz): instead of --input, the smallest fixed-point types that hold it.",
        metavar="X",
    )


@dataclass(frozen=True)
class BuildFlags:
    """What was written on the command line for a build, by the names of the fields of Options and Rate."""

    values: Mapping[str, Any]

    @property
    def clock_mhz(self) -> float:
        written, named = self.values["clock_mhz"], devices().get(self.values["device"] or "")
        return float(written if written is not None else named.clock_mhz if named else CLOCK_MHZ)

    def options(self) -> Options:
        """What a build is told. Raises HG040 and HG041, every problem that is there without a model."""
        problems, found = Collector(), dict[str, Any]()
        for one in declared(Options):
            spelling = one.declaration.spelling
            with problems.catching():
                if one.declaration.flag is not None:
                    written = self.values[one.name]
                    found[one.name] = written if spelling is None else spelling.read(written)
        rate = Rate(self.values["fps"])
        check_values(rate, problems)
        if rate.fps is not None and found["target_cycles"] is not None:
            problems.error("HG040", "--fps", "given together with --target-cycles.", "Use one of them.")
        elif rate.fps is not None and not problems.errors:
            found["target_cycles"] = cycles = int(self.clock_mhz * 1e6 / rate.fps)
            if cycles < 1:
                few = f"{rate.fps:g} frames a second at {self.clock_mhz:g} MHz is less than a cycle a frame."
                problems.error("HG040", "--fps", few)
        if (sample := self.values["calibrate"]) is not None:
            with problems.catching():
                if found["input"] is not None:
                    raise fail("HG040", "--calibrate", "given together with --input.", "Use one of them.")
                arrays = read_array(sample)
                several = isinstance(arrays, dict)
                types = {name: input_type_of(x) for name, x in arrays.items()} if several else input_type_of(arrays)
                found["input"] = types
        options = Options(**found)
        if problems.errors:
            with problems.catching():
                check_options(options)
        problems.finish()
        return options


def takes_build_flags(command: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """Makes the parameter `flags: BuildFlags` of a command the flags of all options of a build but for those `without`,
    which are as by default."""
    flags = [one for one in _flags() if one.name not in without]
    names = [one.name for one in flags]
    others = {one.name: _default(one) for one in _flags() if one.name in without}
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.annotation is BuildFlags:
            place = parameter.name
            parameters += [_parameter(one) for one in flags]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def called(**arguments: Any) -> None:
        written = {name: arguments.pop(name) for name in names}
        command(**arguments, **{place: BuildFlags({**others, **written})})

    # typer reads the one or the other.
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__dict__["__signature__"] = inspect.Signature(parameters)
    return called


def _flags() -> Iterator[Declared]:
    """All that have a flag; the sample where the input's type is, the rates where the cycles a frame are."""
    for one in declared(Options):
        if one.declaration.flag is not None:
            yield one
        if one.name == "input":
            yield from declared(Sample)
        if one.name == "target_cycles":
            yield from declared(Rate)


def _parameter(one: Declared) -> inspect.Parameter:
    how, spelling = one.declaration, one.declaration.spelling
    kind, default = one.type if spelling is None else spelling.type, _default(one)
    shown = typer.Option(how.flag, metavar=how.metavar, help=how.help, show_default=default is not None)
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown]
    )


def _default(one: Declared) -> Any:
    """What stands for an option that was not written."""
    spelling = one.declaration.spelling
    return one.default if spelling is None else spelling.default
