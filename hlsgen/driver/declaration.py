"""Options are declared once, as fields of a dataclass: type, default, flag, help, legal values.

Command line, manifest and checks read the declaration; none of them knows a single option by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hlsgen.diagnostics import Collector

#: Gives what is wrong with a value of the right type: a message and a hint for each problem.
Check = Callable[[Any], Iterator[tuple[str, str]]]


@dataclass(frozen=True)
class Spelling:
    """How an option is written on the command line, where that is not the type of its value.

    `read` makes the value of what was written. It raises HlsgenError if that cannot be read.
    """

    type: Any
    default: Any
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Declaration:
    """What a field says of an option besides type and default. `flag` None: not on the command line.

    `code` is that of the diagnostics about its values.
    """

    help: str
    flag: str | None
    metavar: str | None = None
    check: Check | None = None
    spelling: Spelling | None = None
    code: str = "HG040"


@dataclass(frozen=True)
class Declared:
    """A declared option: name and type of the field, and its default."""

    name: str
    type: Any
    default: Any
    declaration: Declaration


def option(default: Any, flag: str | None, help: str, **more: Any) -> Any:
    """A field of a dataclass that declares an option. A callable default makes a new value for each instance.

    more: fields of `Declaration`.
    """
    metadata = {"declaration": Declaration(help, flag, **more)}
    return (
        field(default_factory=default, metadata=metadata)
        if callable(default)
        else field(default=default, metadata=metadata)
    )


def declared(kind: Any) -> list[Declared]:
    """The options that a dataclass declares, in order."""
    types = get_type_hints(kind)
    return [
        Declared(
            f.name, types[f.name], f.default_factory() if f.default_factory is not MISSING else f.default,
            f.metadata["declaration"],
        )
        for f in fields(kind)
    ]  # fmt: skip


def check_types(values: Any) -> None:
    """Holds every value against the type of its field. Raises HG040 or HG041."""
    problems = Collector()
    for one in declared(type(values)):
        value, how = getattr(values, one.name), one.declaration
        if not conforms(value, one.type):
            problems.error(how.code, how.flag or one.name, f"{value!r} is not {in_words(one.type)}.")
    problems.finish()


def check_values(values: Any, problems: Collector) -> None:
    """Adds what is wrong with each value by itself to `problems`. The types are right."""
    for one in declared(type(values)):
        value, how = getattr(values, one.name), one.declaration
        if how.check is not None and value is not None:
            for message, hint in how.check(value):
                problems.error(how.code, how.flag or one.name, message, hint)


def conforms(value: object, wanted: Any) -> bool:
    """Whether a value is of a type: a plain one, a union of types, or list or dict of types. A whole number is a number as well."""
    parts = get_args(wanted)
    if get_origin(wanted) in (Union, UnionType):
        return any(conforms(value, part) for part in parts)
    if get_origin(wanted) is dict:
        return type(value) is dict and all(conforms(k, parts[0]) and conforms(v, parts[1]) for k, v in value.items())
    if get_origin(wanted) is list:
        return type(value) is list and all(conforms(item, parts[0]) for item in value)
    return type(value) is wanted or (wanted is float and type(value) is int)


def in_words(wanted: Any) -> str:
    """A type as people say it."""
    parts = get_args(wanted)
    if get_origin(wanted) in (Union, UnionType):
        return " or ".join(in_words(part) for part in parts if part is not type(None))
    if get_origin(wanted) is dict:
        return f"a map from {in_words(parts[0])} to {in_words(parts[1])}"
    if get_origin(wanted) is list:
        return f"a list of {in_words(parts[0])}"
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[wanted]


def one_of(*names: str) -> Check:
    """Legal are these names."""

    def check(value: str) -> Iterator[tuple[str, str]]:
        if value not in names:
            yield f"{value!r}.", f"Supported: {', '.join(names)}."

    return check


def at_least(least: int, most: int | None = None) -> Check:
    """Legal are the numbers from `least`, to `most` if that is given."""

    def check(value: int) -> Iterator[tuple[str, str]]:
        if value < least or (most is not None and value > most):
            yield f"{value}.", f"Supported: {least} " + ("and greater." if most is None else f"to {most}.")

    return check
