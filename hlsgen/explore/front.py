"""The Pareto front: the points that no other point beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from hlsgen.explore.points import Point, order

T = TypeVar("T")


def pareto(items: Sequence[T], costs: Callable[[T], Sequence[float]]) -> list[T]:
    """The items that no other item matches or beats in all costs, in their order; of items of equal costs the first."""
    # A beaten item is beaten by an item of the front that comes earlier in this order.
    front: list[tuple[tuple[float, ...], int]] = []
    for cost, n in sorted((tuple(costs(item)), n) for n, item in enumerate(items)):
        if not any(all(a <= b for a, b in zip(front_cost, cost, strict=True)) for front_cost, _ in front):
            front.append((cost, n))
    return [items[n] for n in sorted(n for _, n in front)]


def costs_of(point: Point) -> tuple[float, ...]:
    """The costs by which a point is compared: interval and each resource, or interval and largest share of a device."""
    if point.share is None:
        return (point.interval, point.lut, point.bram, point.dsp)
    return (point.interval, point.share)


def marked(points: Sequence[Point]) -> list[Point]:
    """All points in the order of `order`, with the points of the front marked. A point that does not fit is not
    on it."""
    ordered = sorted(points, key=order)
    best = {id(point) for point in pareto([p for p in ordered if p.fits], costs_of)}
    return [replace(point, front=id(point) in best) for point in ordered]
