"""The front follows its definition: no point of it is beaten, and every other point is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlsgen import Options
from hlsgen.devices import device
from hlsgen.explore.front import marked, pareto
from hlsgen.explore.points import Place, Point, order

PLACES = (Place(), Place(device("ecp5-25k"), 60.0), Place(device("ice40-hx8k"), 50.0))
COUNTS = st.integers(0, 4)
POINTS = st.builds(
    lambda cycles, prefer, weights, counts: Point(
        Options(target_cycles=cycles, prefer=prefer, weights=weights), Place(), cycles, 9, *counts
    ),
    st.integers(1, 5),
    st.sampled_from(["lut", "dsp"]),
    st.sampled_from(["auto", "lutram", "bram"]),
    st.tuples(COUNTS, COUNTS, COUNTS, COUNTS),
)


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), max_size=14))
def test_against_the_definition(items: list[tuple[int, int, int]]) -> None:
    """Brute force: an item is beaten if another one is as low in all costs and lower in one."""
    best = {a for a in items if not any(b != a and all(y <= x for x, y in zip(a, b, strict=True)) for b in items)}
    front = pareto(list(enumerate(items)), lambda item: item[1])
    assert {cost for _, cost in front} == best
    assert [n for n, _ in front] == sorted(items.index(cost) for cost in best)


@pytest.mark.sweep
@settings(max_examples=200, deadline=None)
@given(st.lists(POINTS, max_size=10), st.randoms(), st.sampled_from(PLACES))
def test_marks(points: list[Point], random: object, place: Place) -> None:
    """Marked points fit and no fitting point beats them; all others are beaten or do not fit. The order is stable."""
    scale = 1 if place.device is None else 3000
    points = [
        replace(p, place=place, lut=p.lut * scale, ff=p.ff * scale, bram=p.bram * 5, dsp=p.dsp * 4) for p in points
    ]
    ordered = marked(points)
    shuffled = points[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [(order(p), p.front) for p in marked(shuffled)] == [(order(p), p.front) for p in ordered]
    assert sorted(map(order, ordered)) == [order(p) for p in ordered]

    def costs(p: Point) -> tuple[float, ...]:
        if place.device is None:
            return (p.interval, p.lut, p.bram, p.dsp)
        target = place.device
        return (
            p.interval,
            max(
                p.lut / target.lut,
                p.ff / target.ff,
                p.bram / target.bram,
                p.dsp / target.dsp if target.dsp else 1e9 * p.dsp,
            ),
        )

    fitting = [p for p in ordered if place.device is None or costs(p)[1] <= 0.8]
    for p in ordered:
        equal = [q for q in fitting if costs(q) == costs(p)]
        beaten = any(
            q != p and costs(q) != costs(p) and all(b <= a for a, b in zip(costs(p), costs(q), strict=True))
            for q in fitting
        )
        assert p.front == (p in fitting and not beaten and equal[0] is p)
