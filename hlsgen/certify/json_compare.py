"""Compares JSON values exactly, with places where only the type is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NotProven:
    """In place of a value that nothing here can derive. `form`: whether a value is of the right form.

    `assumption`: the name under which the certificate lists it.
    """

    assumption: str
    form: Callable[[Any], bool]


@dataclass(frozen=True)
class OneOf:
    """One of several values."""

    values: tuple[Any, ...]


def differences(found: Any, wanted: Any, where: str = "") -> Iterator[str]:
    """What differs, with its place, as "input.range[0] is 3, the model and the files give 4"."""
    if isinstance(wanted, NotProven):
        if not wanted.form(found):
            yield f"{where} is {_short(found)}, which is of another form than a build writes"
    elif isinstance(wanted, OneOf):
        if not any(_equal(found, value) for value in wanted.values):
            yield f"{where} is {_short(found)}, the model and the files give {' or '.join(map(_short, wanted.values))}"
    elif isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            place = f"{where}.{key}" if where else key
            if key not in found:
                yield f"{place} is missing"
            elif key not in wanted:
                yield f"{place} is no entry of a manifest"
            else:
                yield from differences(found[key], wanted[key], place)
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{where} has {len(found)} entries, the model and the files give {len(wanted)}"
        for n, (one, other) in enumerate(zip(found, wanted, strict=False)):
            yield from differences(one, other, f"{where}[{n}]")
    elif not _equal(found, wanted):
        yield f"{where} is {_short(found)}, the model and the files give {_short(wanted)}"


def _equal(found: Any, wanted: Any) -> bool:
    """Of one type as well: 1, 1.0 and true differ; so do 0.0 and -0.0."""
    return type(found) is type(wanted) and repr(found) == repr(wanted)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
