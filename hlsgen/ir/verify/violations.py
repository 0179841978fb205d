"""Violations of the rules, and their collection."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

#: Length to which a violation abbreviates a value.
_MAX_TEXT = 80


@dataclass(frozen=True)
class Violation:
    """One broken rule: the step or layer, the field, its actual and its expected value."""

    location: str
    field: str
    actual: str
    expected: str

    def __str__(self) -> str:
        return f"{self.location}: {self.field} is {self.actual}; expected {self.expected}."


@dataclass(frozen=True)
class Place:
    """A step or layer under examination. All places of one form share the list `violations`."""

    location: str
    violations: list[Violation] = field(default_factory=list)

    def at(self, location: str) -> Place:
        """Another place that collects into the same list."""
        return Place(location, self.violations)

    def require(self, holds: bool | np.bool_, field: str, actual: object, expected: object) -> bool:
        """Record a violation unless the rule holds; return `holds`."""
        if not holds:
            self.violations.append(Violation(self.location, field, _text(actual), _text(expected)))
        return bool(holds)


def _text(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
