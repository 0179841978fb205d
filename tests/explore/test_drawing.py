"""The drawing is valid, every point is in its place, and no text of a name becomes a tag."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from hlsgen import Options
from hlsgen.devices import device
from hlsgen.explore.drawing import Axis, picture, short
from hlsgen.explore.front import marked
from hlsgen.explore.points import Place, Point

SVG = "{http://www.w3.org/2000/svg}"
BOARD = Place(device("ecp5-25k"), 60.0)


def points(place: Place) -> list[Point]:
    unmarked = [
        Point(Options(target_cycles=n, prefer=prefer, weights=weights), place, n, 99, lut, lut // 9, bram, dsp)
        for n in (8, 64, 512)
        for prefer, weights, lut, bram, dsp in (
            ("lut", "auto", 80000 // n, 0, 0),
            ("dsp", "bram", 40000 // n, 5, 3000 // n),
            ("lut", "lutram", 90000 // n, 0, 0),
        )
    ]
    return marked(unmarked)


@pytest.mark.parametrize("place", [Place(), BOARD])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_the_drawing_is_valid_svg(place: Place, count: int) -> None:
    title = 'a<b>&"\x1b[31m' + "x" * 99
    root = ElementTree.fromstring(picture(points(place)[:count], title))
    assert root.tag == f"{SVG}svg"
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for circle in root.iter(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert texts[0].startswith('a<b>&"\\x1b[31mxxx')
    assert "estimated" in texts[0]


def test_every_point_is_in_its_place() -> None:
    """If there is no device: three panels, a dot per point in each; larger to the right, faster at the top."""
    drawn_points = points(Place())
    circles = [c.attrib for c in ElementTree.fromstring(picture(drawn_points, "net")).iter(f"{SVG}circle")]
    assert len(circles) == 3 * len(drawn_points)
    lut = sorted((round(float(c["cx"])), round(float(c["cy"]))) for c in circles[: len(drawn_points)])
    low, high = math.log(40000 // 512), math.log(90000 // 8)
    across = sorted(round(64 + 196 * (math.log(p.lut) - low) / (high - low)) for p in drawn_points)
    assert [x for x, _ in lut] == across
    assert {y for _, y in lut} == {58, 308, round(308 - 250 * math.log(512 / 64) / math.log(512 / 8))}


def test_on_a_device() -> None:
    """The limit is at 80 %; points of the front are labelled with their options; larger points are not drawn."""
    all_points = points(BOARD)
    root = ElementTree.fromstring(picture(all_points, "net"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "80 %" in texts
    front = [p for p in all_points if p.front]
    assert front
    for p in front:
        assert p.share is not None
        preferences = ", dsp, bram" if p.options.prefer == "dsp" else ""
        assert f"{p.interval} cycles{preferences}: {100 * p.share:.0f} % of {p.place.kinds[p.scarcest]}" in texts
    shown = [p for p in all_points if (p.share or 0) <= 1.5]
    assert len(list(root.iter(f"{SVG}circle"))) == len(shown) < len(all_points)


def test_measurements_are_connected_to_their_estimates() -> None:
    measured = {"lut": 200, "ff": 1, "bram": 6, "dsp": 7, "fmax_mhz": 30.0}
    measured_points = [replace(p, measured=measured if p.front else None) for p in points(BOARD)]
    without = ElementTree.fromstring(picture([replace(p, measured=None) for p in measured_points], "net"))
    with_measurements = ElementTree.fromstring(picture(measured_points, "net"))
    shown = [p for p in measured_points if p.front and p.interval < 512]
    count = len(list(with_measurements.iter(f"{SVG}circle"))) - len(list(without.iter(f"{SVG}circle")))
    assert count >= len(shown) > 0
    assert "red: measured" in (with_measurements.findall(f"{SVG}text")[1].text or "")


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0"),
        (0.25, "0.25"),
        (64, "64"),
        (999.6, "1k"),
        (1950, "1.95k"),
        (25e6, "25M"),
        (80934, "80.9k"),
        (3e9, "3G"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_axes() -> None:
    axis = Axis(10, 1000, 0, 200)
    assert [round(axis(value), 9) for value in (10, 100, 1000)] == [0, 100, 200]
    assert axis.ticks[:2] == [10, 1000]
    assert all(abs(axis(a) - axis(b)) > 34 for n, a in enumerate(axis.ticks) for b in axis.ticks[:n])
    assert round(Axis(0, 3, 0, 10, zero=True)(1), 9) == 5
    assert Axis(7, 7, 0, 10)(7) == 5


@pytest.mark.parametrize("place", [Place(), BOARD])
def test_estimated_cycles_are_dotted(place: Place) -> None:
    all_points = points(place)
    all_points[-1] = replace(all_points[-1], exact=False)
    drawn = picture(all_points, "net")
    assert drawn.count('stroke-dasharray="1.5') == (1 if place.device else 3)
    assert "cycles are estimates" in drawn
    assert "dotted" not in picture(all_points[:-1], "net")
