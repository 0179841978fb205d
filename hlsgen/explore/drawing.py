"""Draws the points as SVG: rate against each resource, or against the share of a device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

from hlsgen.diagnostics import printable
from hlsgen.driver.fit import SHARE
from hlsgen.explore.points import COMPARED, Place, Point
from hlsgen.explore.records import MADE

INK, FAINT, GREY, RED = "#222", "#c8c8c8", "#777", "#b8402f"
LEFT, TOP, HEIGHT = 64, 58, 250
#: Width and distance of the panels of resources; width of the panel of a device.
PANEL, GAP, WIDE = 196, 44, 640
#: Space for the text at the first point.
LABEL = 176
#: Larger shares of a device are not drawn.
MOST_SHARE = 1.5


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `start` to `end` for values from low to high; with `zero`, of 1 + value."""

    low: float
    high: float
    start: float
    end: float
    zero: bool = False

    def __call__(self, value: float) -> float:
        a, b, x = (math.log1p(v) if self.zero else math.log(v) for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * ((x - a) / (b - a) if b > a else 0.5)

    @property
    def ticks(self) -> list[float]:
        """Both ends of the values and, if there is room, powers of ten and 2 and 5 times these."""
        ticks = [self.low, self.high] if self.high > self.low else [self.low]
        for factor in (1, 2, 5):
            for value in (factor * 10.0**n for n in range(-6, 15)):
                if self.low < value < self.high and all(abs(self(value) - self(tick)) > 34 for tick in ticks):
                    ticks.append(value)
        return ticks


def picture(points: Sequence[Point], title: str) -> str:
    """The SVG. Points of the front are dark; on a device they are connected, and labelled with their options."""
    place = points[0].place
    fit = (
        f"{sum(p.fits for p in points)} of {len(points)} points take at most {100 * SHARE:.0f} %"
        if place.device
        else ""
    )
    black = f"black: the {sum(p.front for p in points)} points that no other point beats"
    rings = "open: with DSP blocks" if any(p.options.prefer == "dsp" for p in points) else ""
    red = "red: measured" if any(p.measured for p in points) else ""
    dotted = "" if all(p.exact for p in points) else "dotted: upper limits, cycles are estimates"
    on_device = f" on {place.device.name}" if place.device else ""
    head = f"{title[:60]}{on_device}: frames a second at {place.clock_mhz:g} MHz, estimated"
    width, parts = (WIDE, _device(points, place)) if place.device else (3 * PANEL + 2 * GAP, _resources(points, place))
    body = [
        _text(LEFT - 50, 20, head, size=14),
        _text(LEFT - 50, 38, "; ".join(filter(None, (fit, black, rings, red, dotted))), colour=GREY),
        *parts,
    ]
    size = (LEFT + width + 24, TOP + HEIGHT + 52)
    return "\n".join(
        [
            MADE,
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" '
            f'height="{size[1]}" font-family="sans-serif">',
            f'<rect width="{size[0]}" height="{size[1]}" fill="#fff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _resources(points: Sequence[Point], place: Place) -> Iterator[str]:
    """Three panels of one height, one for each resource."""
    rates = _rates(points)
    yield from _up(rates)
    for n, kind in enumerate(COMPARED):
        panel_left = LEFT + n * (PANEL + GAP)
        values = [float(getattr(point, kind)) for point in points]
        axis = Axis(min(values), max(values), panel_left, panel_left + PANEL, zero=min(values) < 1)
        yield from _across(axis, place.kinds[kind])
        yield from _dots(points, rates, {id(p): axis(getattr(p, kind)) for p in points})
        for point in points:
            if point.front and point.measured and axis.low <= point.measured[kind] <= axis.high:
                yield from _measured(
                    point, point.measured, axis(getattr(point, kind)), axis(point.measured[kind]), rates
                )


def _device(points: Sequence[Point], place: Place) -> Iterator[str]:
    """One panel: the largest share of the device, with the limit, and labels at the points of the front."""
    assert place.device is not None
    shown = [p for p in points if (p.share or 0) <= MOST_SHARE] or list(points)
    percent = {id(p): max(100 * (p.share or 0), 0.01) for p in shown}
    rates = _rates(shown)
    axis = Axis(min(percent.values()), max(100 * SHARE, *percent.values()), LEFT + LABEL, LEFT + WIDE)
    yield from _up(rates)
    yield from _across(axis, f"% of {place.device.name}, of the kind with the largest share")
    limit = axis(100 * SHARE)
    yield _line([(limit, TOP), (limit, TOP + HEIGHT)], FAINT, 1, "3 3")
    yield _text(limit, TOP - 6, f"{100 * SHARE:.0f} %", "middle", GREY)
    front = sorted((p for p in shown if p.front), key=lambda p: -p.interval)
    places = [(axis(percent[id(p)]), rates(p.frames_per_second)) for p in front]
    steps = places[:1] + [spot for (_, y), (u, v) in pairwise(places) for spot in ((u, y), (u, v))]
    yield _line(steps, GREY, 1)
    yield from _dots(shown, rates, {id(p): axis(percent[id(p)]) for p in shown})
    lowest = math.inf
    for point, (x, y) in zip(front, places, strict=True):
        if lowest - y > 11:
            yield _text(x - 6, y - 4, _label(point), "end", size=10)
            lowest = y
        if point.measured:
            share = 100 * max(place.shares(point.measured).values())
            if axis.low <= share <= axis.high:
                yield from _measured(point, point.measured, x, axis(share), rates)


def _label(point: Point) -> str:
    """The options of a point, in few words."""
    options = point.options
    rate = f"{options.lanes} lanes" if options.lanes else f"{options.target_cycles} cycles"
    preferences = [value for value in (options.prefer, options.weights) if value not in ("lut", "auto")]
    return f"{', '.join([rate, *preferences])}: {100 * (point.share or 0):.0f} % of {point.place.kinds[point.scarcest]}"


def _measured(
    point: Point, measurement: Mapping[str, float], x: float, measured_x: float, rates: Axis
) -> Iterator[str]:
    """A line from the estimate of a point to the measured size, and to the measured rate if it was placed."""
    clock = measurement.get("fmax_mhz")
    y, measured_y = (
        rates(point.frames_per_second),
        rates(clock * 1e6 / point.interval if clock else point.frames_per_second),
    )
    yield _line([(x, y), (measured_x, measured_y)], RED, 0.8)
    yield f'<circle cx="{measured_x:.1f}" cy="{measured_y:.1f}" r="3" fill="{RED}"/>'


def _rates(points: Sequence[Point]) -> Axis:
    """The vertical axis of the rates."""
    rates = [p.frames_per_second for p in points]
    return Axis(min(rates), max(rates), TOP + HEIGHT, TOP)


def _dots(points: Sequence[Point], rates: Axis, across: Mapping[int, float]) -> Iterator[str]:
    """All points, with the front on top."""
    for point in sorted(points, key=lambda p: p.front):
        x, y, colour = across[id(point)], rates(point.frames_per_second), INK if point.front else FAINT
        fill = "#fff" if point.options.prefer == "dsp" or not point.exact else colour
        size, dots = 3 if point.front else 2.5, "" if point.exact else ' stroke-dasharray="1.5 1.5"'
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{fill}" stroke="{colour}"{dots}/>'


def _up(axis: Axis) -> Iterator[str]:
    """Draws the axis of rates: a line as long as the range of values, with its ends."""
    x = LEFT - 12
    yield _line([(x, axis.start), (x, axis.end)], GREY, 0.8)
    for value in axis.ticks:
        yield _line([(x - 4, axis(value)), (x, axis(value))], GREY, 0.8)
        yield _text(x - 7, axis(value) + 4, short(value), "end", GREY)


def _across(axis: Axis, name: str) -> Iterator[str]:
    """Draws an axis of resources below its panel."""
    y = TOP + HEIGHT + 12
    yield _line([(axis.start, y), (axis.end, y)], GREY, 0.8)
    for value in axis.ticks:
        yield _line([(axis(value), y), (axis(value), y + 4)], GREY, 0.8)
        yield _text(axis(value), y + 16, short(value), "middle", GREY)
    yield _text((axis.start + axis.end) / 2, y + 34, name, "middle", INK)


def _line(places: Sequence[tuple[float, float]], colour: str, width: float, dashes: str = "") -> str:
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashed}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = INK, size: int = 11) -> str:
    plain = escape(printable(text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{plain}</text>'


def short(value: float) -> str:
    """Three significant digits: 0.25, 64, 1.95k, 25M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{float(f'{value / size:.3g}'):g}{letter}"
    return f"{float(f'{value:.3g}'):g}"
