"""Draws the dataflow beside the table of units, like the graph of a git log: one rail for each live stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

#: Pixels between rails, and largest width in pixels; if there are more rails, they move closer.
RAIL, MOST_PIXELS = 16, 144


@dataclass(frozen=True)
class Row:
    """A unit: name, upstream units with the bits of their streams, and true for `minor` if it only routes data."""

    name: str
    inputs: tuple[tuple[str, int], ...]
    minor: bool


@dataclass
class _Cell:
    """The streams in one row of the drawing: passing, incoming and outgoing ones, each with its rail and bits."""

    place: int
    passing: list[tuple[int, int]] = field(default_factory=list)
    coming: list[tuple[int, int]] = field(default_factory=list)
    going: list[tuple[int, int]] = field(default_factory=list)


def dataflow(rows: Sequence[Row]) -> dict[str, object]:
    """Returns `width`, pixels of the drawing, and `cells`: the SVG of each row and the position of its unit in pixels.

    Rows must be in topological order: each unit after all its upstream units.
    """
    cells = _placed(rows)
    count = 1 + max([cell.place for cell in cells] + [r for c in cells for r, _ in [*c.passing, *c.going]], default=0)
    step = min(RAIL, MOST_PIXELS / count)
    width = math.ceil(step * count)
    drawn = [{"svg": _svg(cell, step, width), "x": f"{_at(cell.place, step):g}"} for cell in cells]
    return {"width": width, "cells": drawn}


def _placed(rows: Sequence[Row]) -> list[_Cell]:
    """Places units and streams. A stream keeps its rail; a unit has the leftmost rail of its inputs."""
    fan_out: dict[str, int] = {}
    for row in rows:
        for sender, _ in row.inputs:
            fan_out[sender] = fan_out.get(sender, 0) + 1
    rails: list[tuple[str, int] | None] = []  # sender and bits of the stream on each rail

    def free() -> int:
        if None not in rails:
            rails.append(None)
        return rails.index(None)

    cells = []
    bits = {sender: bit_width for row in rows for sender, bit_width in row.inputs}
    for row in rows:
        ending_rails = []
        for sender, bit_width in row.inputs:
            at = next(
                (n for n, rail in enumerate(rails) if rail == (sender, bit_width) and n not in ending_rails), None
            )
            if at is not None:
                ending_rails.append(at)
        cell = _Cell(min(ending_rails) if ending_rails else free())
        cell.coming = [(n, (rails[n] or ("", 1))[1]) for n in ending_rails]
        cell.passing = [(n, rail[1]) for n, rail in enumerate(rails) if rail is not None and n not in ending_rails]
        for n in ending_rails:
            rails[n] = None
        if cell.place == len(rails):
            rails.append(None)
        for number in range(fan_out.get(row.name, 0)):
            at = cell.place if number == 0 else free()
            rails[at] = (row.name, bits[row.name])
            cell.going.append((at, bits[row.name]))
        cells.append(cell)
    return cells


def _at(rail: int, step: float) -> float:
    return round((rail + 0.5) * step, 2)


def _svg(cell: _Cell, step: float, width: int) -> Markup:
    """Lines from the top of the row to its bottom; the browser stretches them to the height of the row."""
    center = _at(cell.place, step)
    paths = [(f"M{_at(n, step):g} 0V100", bit_width) for n, bit_width in cell.passing]
    paths += [(_curve(_at(n, step), 0, center, 50), bit_width) for n, bit_width in cell.coming]
    paths += [(_curve(center, 50, _at(n, step), 100), bit_width) for n, bit_width in cell.going]
    lines = "".join(f'<path d="{path}" stroke-width="{thickness(bit_width):g}"/>' for path, bit_width in paths)
    text = f'<svg viewBox="0 0 {width} 100" width="{width}" preserveAspectRatio="none" aria-hidden="true">{lines}</svg>'
    return Markup(text)  # only numbers: no text from a file


def _curve(x: float, y: int, u: float, v: int) -> str:
    if x == u:
        return f"M{x:g} {y}V{v}"
    return f"M{x:g} {y}C{x:g} {(y + v) / 2:g} {u:g} {(y + v) / 2:g} {u:g} {v}"


def thickness(bits: int) -> float:
    """Line width in pixels of a stream of `bits` bits."""
    return round(1 + math.log2(max(bits, 1)) / 2, 1)
