"""The drawing of the dataflow beside the table of units: rails, one for each stream that is under way, as of a git log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

#: Pixels between rails, and of all of them together; more rails than fit come closer.
RAIL, MOST = 16, 144


@dataclass(frozen=True)
class Row:
    """A unit: its name, the units that send its streams, with the bits of each stream, and whether it is plumbing."""

    name: str
    inputs: tuple[tuple[str, int], ...]
    minor: bool


@dataclass
class _Cell:
    """What a row of the drawing shows: streams that pass by, that come in and that go out, each with its bits."""

    place: int
    passing: list[tuple[int, int]] = field(default_factory=list)
    coming: list[tuple[int, int]] = field(default_factory=list)
    going: list[tuple[int, int]] = field(default_factory=list)


def dataflow(rows: Sequence[Row]) -> dict[str, object]:
    """`width`: pixels of the drawing; `cells`: of every row the SVG and where its unit is, in pixels.

    Rows stand in the order of the data: a unit behind all that send to it.
    """
    cells = _placed(rows)
    count = 1 + max([cell.place for cell in cells] + [r for c in cells for r, _ in [*c.passing, *c.going]], default=0)
    step = min(RAIL, MOST / count)
    width = math.ceil(step * count)
    drawn = [{"svg": _svg(cell, step, width), "x": f"{_at(cell.place, step):g}"} for cell in cells]
    return {"width": width, "cells": drawn}


def _placed(rows: Sequence[Row]) -> list[_Cell]:
    """Where everything is. A stream keeps its rail; a unit stands on the leftmost rail of what it takes."""
    takers: dict[str, int] = {}
    for row in rows:
        for sender, _ in row.inputs:
            takers[sender] = takers.get(sender, 0) + 1
    rails: list[tuple[str, int] | None] = []  # sender and bits of the stream on each rail

    def free() -> int:
        if None not in rails:
            rails.append(None)
        return rails.index(None)

    found = []
    bits = {sender: wide for row in rows for sender, wide in row.inputs}
    for row in rows:
        taken = []
        for sender, wide in row.inputs:
            at = next((n for n, rail in enumerate(rails) if rail == (sender, wide) and n not in taken), None)
            if at is not None:
                taken.append(at)
        cell = _Cell(min(taken) if taken else free())
        cell.coming = [(n, (rails[n] or ("", 1))[1]) for n in taken]
        cell.passing = [(n, rail[1]) for n, rail in enumerate(rails) if rail is not None and n not in taken]
        for n in taken:
            rails[n] = None
        if cell.place == len(rails):
            rails.append(None)
        for number in range(takers.get(row.name, 0)):
            at = cell.place if number == 0 else free()
            rails[at] = (row.name, bits[row.name])
            cell.going.append((at, bits[row.name]))
        found.append(cell)
    return found


def _at(rail: int, step: float) -> float:
    return round((rail + 0.5) * step, 2)


def _svg(cell: _Cell, step: float, width: int) -> Markup:
    """Lines from the top of the row to its bottom. The height is stretched to that of the row."""
    here = _at(cell.place, step)
    paths = [(f"M{_at(n, step):g} 0V100", wide) for n, wide in cell.passing]
    paths += [(_curve(_at(n, step), 0, here, 50), wide) for n, wide in cell.coming]
    paths += [(_curve(here, 50, _at(n, step), 100), wide) for n, wide in cell.going]
    lines = "".join(f'<path d="{path}" stroke-width="{thickness(wide):g}"/>' for path, wide in paths)
    text = f'<svg viewBox="0 0 {width} 100" width="{width}" preserveAspectRatio="none" aria-hidden="true">{lines}</svg>'
    return Markup(text)  # numbers alone: nothing of it comes from a file


def _curve(x: float, y: int, u: float, v: int) -> str:
    if x == u:
        return f"M{x:g} {y}V{v}"
    return f"M{x:g} {y}C{x:g} {(y + v) / 2:g} {u:g} {(y + v) / 2:g} {u:g} {v}"


def thickness(bits: int) -> float:
    """Pixels of the line of a stream of so many bits."""
    return round(1 + math.log2(max(bits, 1)) / 2, 1)
