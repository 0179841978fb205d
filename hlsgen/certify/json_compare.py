"""Compares JSON values exactly. Some values may be marked as known only by their type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NotProven:
    """In place of a value that the checker cannot derive. `form`: True for values of the right form.

    `assumption`: the name under which the certificate lists it.
    """

    assumption: str
    form: Callable[[Any], bool]


@dataclass(frozen=True)
class OneOf:
    """One of several values."""

    values: tuple[Any, ...]


def differences(actual: Any, expected: Any, path: str = "") -> Iterator[str]:
    """Describe each difference with its place, for example "input.range[0] is 3, the model and the files give 4"."""
    if isinstance(expected, NotProven):
        if not expected.form(actual):
            yield f"{path} is {_short(actual)}, which has a form that no build writes"
    elif isinstance(expected, OneOf):
        if not any(_equal(actual, value) for value in expected.values):
            yield (
                f"{path} is {_short(actual)}, the model and the files give {' or '.join(map(_short, expected.values))}"
            )
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            entry_path = f"{path}.{key}" if path else key
            if key not in actual:
                yield f"{entry_path} is missing"
            elif key not in expected:
                yield f"{entry_path} is not an entry of a manifest"
            else:
                yield from differences(actual[key], expected[key], entry_path)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path} has {len(actual)} entries, the model and the files give {len(expected)}"
        for n, (actual_entry, expected_entry) in enumerate(zip(actual, expected, strict=False)):
            yield from differences(actual_entry, expected_entry, f"{path}[{n}]")
    elif not _equal(actual, expected):
        yield f"{path} is {_short(actual)}, the model and the files give {_short(expected)}"


def _equal(actual: Any, expected: Any) -> bool:
    """True if value and type are equal: 1, 1.0 and true differ, as do 0.0 and -0.0."""
    return type(actual) is type(expected) and repr(actual) == repr(expected)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
