"""Violations of the rules, and how they are collected."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

#: Longest value that a violation shows.
_MAX_TEXT = 80


@dataclass(frozen=True)
class Violation:
    """One broken rule: in which step or layer, which field, what it is, what it must be."""

    where: str
    field: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: {self.field} is {self.found}; expected {self.expected}."


@dataclass(frozen=True)
class Place:
    """A step or layer under examination. All places of one form share the list `violations`."""

    where: str
    violations: list[Violation] = field(default_factory=list)

    def at(self, where: str) -> Place:
        """Another place that collects into the same list."""
        return Place(where, self.violations)

    def require(self, holds: bool | np.bool_, field: str, found: object, expected: object) -> bool:
        """Notes a violation unless the rule holds; gives whether it does."""
        if not holds:
            self.violations.append(Violation(self.where, field, _text(found), _text(expected)))
        return bool(holds)


def _text(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
