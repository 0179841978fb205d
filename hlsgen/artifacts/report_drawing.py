"""Draws the dataflow beside the table of units, like the graph of a git log: one rail for each live stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

#: Pixels between rails, and largest width in pixels; if there are more rails, they move closer.
RAIL, MOST_PIXELS = 16, 144
#: Attribute of the lines of a loop.
LOOP = ' class="loop"'


@dataclass(frozen=True)
class Row:
    """A unit: name, upstream units with the bits of their streams, and true for `minor` if it only routes data.

    An upstream unit may come later: the stream is then a loop, from frame to frame or from step to step.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    minor: bool


@dataclass(frozen=True)
class _Line:
    """A stream: its sender, bits, and true for `loop` if it leads upwards, from its sender to an earlier unit."""

    sender: str
    bits: int
    loop: bool = False


@dataclass
class _Cell:
    """The streams in one row of the drawing, each with its rail: passing, from the row above, to the row below."""

    place: int
    passing: list[tuple[int, _Line]] = field(default_factory=list)
    above: list[tuple[int, _Line]] = field(default_factory=list)
    below: list[tuple[int, _Line]] = field(default_factory=list)


def dataflow(rows: Sequence[Row]) -> dict[str, object]:
    """Returns `width`, pixels of the drawing, and `cells`: the SVG of each row and the position of its unit in pixels.

    Rows must be in topological order: each unit after all its upstream units, but for loops.
    """
    cells = _placed(rows)
    count = 1 + max([cell.place for cell in cells] + [r for c in cells for r, _ in [*c.passing, *c.below]], default=0)
    step = min(RAIL, MOST_PIXELS / count)
    width = math.ceil(step * count)
    drawn = [{"svg": _svg(cell, step, width), "x": f"{_at(cell.place, step):g}"} for cell in cells]
    return {"width": width, "cells": drawn}


def _placed(rows: Sequence[Row]) -> list[_Cell]:
    """Places units and streams. A stream keeps its rail; a unit has the leftmost rail of its inputs."""
    position = {row.name: n for n, row in enumerate(rows)}
    streams_from: dict[str, list[_Line]] = {}  # by the upper unit
    loops_to: dict[str, list[_Line]] = {}  # loops, by the upper unit
    for n, row in enumerate(rows):
        for sender, bits in row.inputs:
            if position.get(sender, -1) < n:
                streams_from.setdefault(sender, []).append(_Line(sender, bits))
            else:
                loops_to.setdefault(row.name, []).append(_Line(sender, bits, True))
    rails: list[_Line | None] = []

    def free() -> int:
        if None not in rails:
            rails.append(None)
        return rails.index(None)

    cells = []
    for row in rows:
        ending_rails: list[int] = []
        for sender, bits in row.inputs:
            at = next((n for n, r in enumerate(rails) if r == _Line(sender, bits) and n not in ending_rails), None)
            if at is not None:
                ending_rails.append(at)
        cell = _Cell(min(ending_rails) if ending_rails else free())
        ending_rails += [n for n, line in enumerate(rails) if line and line.loop and line.sender == row.name]
        lines = [(n, line) for n, line in enumerate(rails) if line is not None]
        cell.above = [(n, line) for n, line in lines if n in ending_rails]
        cell.passing = [(n, line) for n, line in lines if n not in ending_rails]
        for n in ending_rails:
            rails[n] = None
        if cell.place == len(rails):
            rails.append(None)
        for number, line in enumerate([*streams_from.get(row.name, []), *loops_to.get(row.name, [])]):
            at = cell.place if number == 0 else free()
            rails[at] = line
            cell.below.append((at, line))
        cells.append(cell)
    return cells


def _at(rail: int, step: float) -> float:
    return round((rail + 0.5) * step, 2)


def _svg(cell: _Cell, step: float, width: int) -> Markup:
    """Lines from the top of the row to its bottom; the browser stretches them to the height of the row."""
    center = _at(cell.place, step)
    paths = [(f"M{_at(n, step):g} 0V100", line) for n, line in cell.passing]
    paths += [(_curve(_at(n, step), 0, center, 50), line) for n, line in cell.above]
    paths += [(_curve(center, 50, _at(n, step), 100), line) for n, line in cell.below]
    lines = "".join(
        f'<path d="{path}" stroke-width="{thickness(line.bits):g}"{LOOP if line.loop else ""}/>' for path, line in paths
    )
    text = f'<svg viewBox="0 0 {width} 100" width="{width}" preserveAspectRatio="none" aria-hidden="true">{lines}</svg>'
    return Markup(text)  # only numbers: no text from a file


def _curve(x: float, y: int, u: float, v: int) -> str:
    if x == u:
        return f"M{x:g} {y}V{v}"
    return f"M{x:g} {y}C{x:g} {(y + v) / 2:g} {u:g} {(y + v) / 2:g} {u:g} {v}"


def thickness(bits: int) -> float:
    """Line width in pixels of a stream of `bits` bits."""
    return round(1 + math.log2(max(bits, 1)) / 2, 1)
