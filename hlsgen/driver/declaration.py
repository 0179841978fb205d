"""Declares options once, as fields of a dataclass: type, default, flag, help, legal values.

Command line, manifest and checks read the declarations and know no option by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hlsgen.diagnostics import Collector

#: Yields a message and a hint for each problem of a value of the right type.
Check = Callable[[Any], Iterator[tuple[str, str]]]


@dataclass(frozen=True)
class Spelling:
    """The command-line form of an option whose value has another type.

    `read` converts the written form to the value. It raises HlsgenError if it cannot.
    """

    type: Any
    default: Any
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Declaration:
    """Properties of an option besides its type and default.

    flag: its name on the command line, or None. code: code of diagnostics about its values. choices: returns the legal
    values, for completion in a shell.
    """

    help: str
    flag: str | None
    metavar: str | None = None
    check: Check | None = None
    spelling: Spelling | None = None
    code: str = "HG040"
    choices: Callable[[], Iterable[str]] | None = None


@dataclass(frozen=True)
class Declared:
    """A declared option: name and type of the field, and its default."""

    name: str
    type: Any
    default: Any
    declaration: Declaration


def option(default: Any, flag: str | None, help: str, **declaration: Any) -> Any:
    """A field of a dataclass that declares an option. A callable default creates a new value for each instance.

    declaration: other fields of `Declaration`.
    """
    metadata = {"declaration": Declaration(help, flag, **declaration)}
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
            f.name,
            types[f.name],
            f.default_factory() if f.default_factory is not MISSING else f.default,
            f.metadata["declaration"],
        )
        for f in fields(kind)
    ]


def check_types(values: Any) -> None:
    """Checks the type of every value. Raises HG040 or HG041."""
    problems = Collector()
    for declared_option in declared(type(values)):
        value, declaration = getattr(values, declared_option.name), declared_option.declaration
        if not conforms(value, declared_option.type):
            problems.error(
                declaration.code,
                declaration.flag or declared_option.name,
                f"{value!r} is not {in_words(declared_option.type)}.",
            )
    problems.finish()


def check_values(values: Any, problems: Collector) -> None:
    """Adds the problems of each single value to `problems`. Types must be right."""
    for declared_option in declared(type(values)):
        value, declaration = getattr(values, declared_option.name), declared_option.declaration
        if declaration.check is not None and value is not None:
            for message, hint in declaration.check(value):
                problems.error(declaration.code, declaration.flag or declared_option.name, message, hint)


def conforms(value: object, expected: Any) -> bool:
    """True if a value has a type: a plain type, a union, or a list or dict of types. An int is also a float."""
    parts = get_args(expected)
    if get_origin(expected) in (Union, UnionType):
        return any(conforms(value, part) for part in parts)
    if get_origin(expected) is dict:
        return type(value) is dict and all(conforms(k, parts[0]) and conforms(v, parts[1]) for k, v in value.items())
    if get_origin(expected) is list:
        return type(value) is list and all(conforms(item, parts[0]) for item in value)
    return type(value) is expected or (expected is float and type(value) is int)


def in_words(expected: Any) -> str:
    """A type in words, for messages."""
    parts = get_args(expected)
    if get_origin(expected) in (Union, UnionType):
        return " or ".join(in_words(part) for part in parts if part is not type(None))
    if get_origin(expected) is dict:
        return f"a map from {in_words(parts[0])} to {in_words(parts[1])}"
    if get_origin(expected) is list:
        return f"a list of {in_words(parts[0])}"
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[expected]


def one_of(*names: str) -> Check:
    """A check that allows these names."""

    def check(value: str) -> Iterator[tuple[str, str]]:
        if value not in names:
            yield f"{value!r}.", f"Supported: {', '.join(names)}."

    return check


def at_least(lowest: int, highest: int | None = None) -> Check:
    """Legal are the numbers from `lowest` on, up to `highest` if that is given."""

    def check(value: int) -> Iterator[tuple[str, str]]:
        if value < lowest or (highest is not None and value > highest):
            yield f"{value}.", f"Supported: {lowest} " + ("and greater." if highest is None else f"to {highest}.")

    return check
