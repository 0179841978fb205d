"""The Pareto front: the points that no other one beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from hlsgen.explore.points import Point, order

T = TypeVar("T")


def pareto(items: Sequence[T], costs: Callable[[T], Sequence[float]]) -> list[T]:
    """The items of which no other one has costs that are all as low, in their order; of items of equal costs the first."""
    # Whoever is beaten is beaten by one that comes before it in this order, and is on the front itself.
    kept: list[tuple[tuple[float, ...], int]] = []
    for cost, n in sorted((tuple(costs(item)), n) for n, item in enumerate(items)):
        if not any(all(a <= b for a, b in zip(other, cost, strict=True)) for other, _ in kept):
            kept.append((cost, n))
    return [items[n] for n in sorted(n for _, n in kept)]


def costs_of(point: Point) -> tuple[float, ...]:
    """What a point is compared by: its interval and each resource; on a device the largest share instead of these."""
    if point.share is None:
        return (point.interval, point.lut, point.bram, point.dsp)
    return (point.interval, point.share)


def marked(points: Sequence[Point]) -> list[Point]:
    """All points in the order in which they are told, those of the front marked. What does not fit is not on it."""
    ordered = sorted(points, key=order)
    best = {id(point) for point in pareto([p for p in ordered if p.fits], costs_of)}
    return [replace(point, front=id(point) in best) for point in ordered]
