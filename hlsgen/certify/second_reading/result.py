"""The result of a second reading."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecondReading:
    """`problems`: (node, what differs). `once`: nodes that only the frontend has read."""

    problems: tuple[tuple[str, str], ...]
    once: tuple[str, ...]
