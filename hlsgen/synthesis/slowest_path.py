"""The slowest path as the scripts for vendor tools write it: a line each for slack, delay, start and end."""

from __future__ import annotations

from collections.abc import Callable

from hlsgen.synthesis.nextpnr import Segment

#: First word of each line.
SLACK, DELAY, FROM, END = "slack", "delay", "from", "to"


def slowest(text: str, period: float, instance: Callable[[str], str]) -> tuple[float | None, tuple[Segment, ...]]:
    """The clock in MHz that slack and period allow, and the path's start and end; None and () if there is no path.

    period: of the target clock, in ns. instance: maps a pin's name to its instance. Raises ValueError.
    """
    value_by_word = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
    if not {SLACK, DELAY, FROM, END} <= set(value_by_word):
        return None, ()
    first, last = (instance(value_by_word[end].strip()) for end in (FROM, END))
    path = [Segment(first, round(float(value_by_word[DELAY]), 3), 0.0)] + (
        [Segment(last, 0.0, 0.0)] if last != first else []
    )
    return 1000 / (period - float(value_by_word[SLACK])), tuple(path)
