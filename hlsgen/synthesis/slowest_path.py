"""The slowest path as the scripts for vendors' tools write it: a line for each of slack, delay, begin and end."""

from __future__ import annotations

from collections.abc import Callable

from hlsgen.synthesis.nextpnr import Segment

#: The words that lines begin with.
SLACK, DELAY, FROM, END = "slack", "delay", "from", "to"


def slowest(text: str, period: float, instance: Callable[[str], str]) -> tuple[float | None, tuple[Segment, ...]]:
    """The clock in MHz that slack and period leave, and begin and end of the path by instances. None: there is no path.

    instance: that of a pin, by its name. Raises ValueError.
    """
    said = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
    if not {SLACK, DELAY, FROM, END} <= set(said):
        return None, ()
    first, last = (instance(said[end].strip()) for end in (FROM, END))
    path = [Segment(first, round(float(said[DELAY]), 3), 0.0)] + ([Segment(last, 0.0, 0.0)] if last != first else [])
    return 1000 / (period - float(said[SLACK])), tuple(path)
