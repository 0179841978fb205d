"""The drawings of docs/streaming.md: `python docs/images/draw.py` writes them next to this file.

The intervals in branch.svg belong to the example network, from the cycle-exact model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import hlsgen
from hlsgen.cycle_model.fifo_shrinking import with_depths
from hlsgen.cycle_model.simulate import measure
from hlsgen.dataflow.units import Fifo
from hlsgen.verilog.unit_table import latency

HERE = Path(__file__).resolve().parent
MODEL = HERE.parents[1] / "examples" / "digits_cnn" / "digits_cnn.onnx"
CYCLES = 576
BLUE, ORANGE, GREEN, GREY, PALE = "#4c78a8", "#f58518", "#54a24b", "#9aa0a6", "#eef1f5"


class Svg:
    """A drawing that grows."""

    def __init__(self, width: int, height: int) -> None:
        self.size = width, height
        self.parts: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, fill: str, stroke: str = "#333", width: float = 1) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="{width:g}"/>'
        )

    def text(self, x: float, y: float, text: str, anchor: str = "start", size: int = 13, fill: str = "#222") -> None:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{escaped}</text>'
        )

    def line(
        self, points: list[tuple[float, float]], colour: str = "#333", width: float = 1.5, arrow: bool = False
    ) -> None:
        listed = " ".join(f"{x:g},{y:g}" for x, y in points)
        end = ' marker-end="url(#a)"' if arrow else ""
        self.parts.append(f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="{width:g}"{end}/>')

    def unit(self, x: float, y: float, w: float, text: str, fill: str = PALE) -> None:
        """A labelled block, 34 high."""
        self.box(x, y, w, 34, fill)
        self.text(x + w / 2, y + 22, text, "middle")

    def save(self, name: str, folder: Path) -> None:
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif"><defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>'
        )
        body = "\n".join([head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *self.parts, "</svg>", ""])
        (folder / name).write_text(body)


def window(folder: Path) -> None:
    """Which pixels the buffer of a 3 x 3 window holds, and where."""
    svg, cell, size = Svg(760, 330), 30, 8
    x_left, top, centre = 20, 40, (4, 4)
    first, newest = (centre[0] - 1) * size + centre[1] - 1, (centre[0] + 1) * size + centre[1] + 1
    svg.text(x_left, 24, "8 x 8 pixels, 3 x 3 window, padding 1")
    for y in range(size):
        for x in range(size):
            n = y * size + x
            fill = "#fff" if n > newest else PALE if n < first else "#c9dcf0"
            svg.box(x_left + x * cell, top + y * cell, cell, cell, fill, "#bbb")
            svg.text(
                x_left + x * cell + cell / 2, top + y * cell + 20, str(n), "middle", 11, GREY if n < first else "#222"
            )
    svg.box(x_left + (centre[1] - 1) * cell, top + (centre[0] - 1) * cell, 3 * cell, 3 * cell, "none", ORANGE, 3)
    x, y = 300, 60
    for fill, text in (
        (PALE, "freed: no later window needs them"),
        ("#c9dcf0", f"kept: {first} to {newest}, (KH - 1) * width + KW = {newest - first + 1} pixels"),
        ("#fff", "still to come"),
    ):
        svg.box(x, y, 18, 18, fill, "#bbb")
        svg.text(x + 26, y + 14, text)
        y += 28
    svg.box(x, y, 18, 18, "none", ORANGE, 3)
    svg.text(x + 26, y + 14, f"the window that is sent; it began when pixel {newest} was stored")
    depth, width_step, y = 20, 21, 230
    svg.text(x, y - 24, f"memory of {depth} words: pixel n lies in word n mod {depth}")
    for word in range(depth):
        stored = next((n for n in range(first, newest + 1) if n % depth == word), None)
        svg.box(x + word * width_step, y, width_step, 28, "#fff" if stored is None else "#c9dcf0", "#999")
        text = str(newest + 1) if stored is None else str(stored)
        svg.text(
            x + word * width_step + width_step / 2, y + 19, text, "middle", 11, ORANGE if stored is None else "#222"
        )
    free = (newest + 1) % depth
    svg.line([(x + (free + 0.5) * width_step, y + 62), (x + (free + 0.5) * width_step, y + 32)], arrow=True)
    svg.text(x + (free + 0.5) * width_step, y + 78, f"pixel {newest + 1} is written while the window is sent", "middle")
    svg.save("window.svg", folder)


def folding(folder: Path) -> None:
    """A layer of 4 outputs, 9 taps and 4 channels with PE = 2 and SIMD = 2."""
    svg = Svg(760, 300)
    rows, taps, channels, pe, simd, cell = 4, 9, 4, 2, 2, 18
    x_left, top = 40, 70
    svg.text(x_left, 24, "weights of a 3 x 3 convolution: 4 outputs, 9 taps of 4 channels, PE = 2, SIMD = 2")
    for tap in range(taps):
        svg.text(x_left + (tap + 0.5) * channels * cell, top - 10, f"tap {tap}", "middle", 11, GREY)
    for row in range(rows):
        svg.text(x_left - 8, top + (row + 0.7) * cell, str(row), "end", 11, GREY)
    for fold in range(rows // pe):
        for column in range(taps * channels // simd):
            cycle = fold * taps * channels // simd + column
            fill = "#c9dcf0" if (column // 2) % 2 else PALE
            fill = "#fbd7ad" if cycle == 20 else fill
            x, y = x_left + column * simd * cell, top + fold * pe * cell
            svg.box(x, y, simd * cell, pe * cell, fill, "#999")
            svg.text(x + simd * cell / 2, y + pe * cell / 2 + 4, str(cycle), "middle", 11)
    y = top + rows * cell + 30
    svg.text(x_left, y, "number: cycle of the window in which the tile is multiplied (and word of the weight memory)")
    y += 40
    svg.unit(x_left, y, 150, "window: 2 channels")
    svg.unit(x_left + 200, y, 130, "2 x 2 products", "#fbd7ad")
    svg.unit(x_left + 380, y, 90, "2 sums")
    svg.unit(x_left + 520, y, 130, "2 outputs a beat")
    for x in (150, 330, 470):
        svg.line([(x_left + x, y + 17), (x_left + x + 48, y + 17)], arrow=True)
    svg.text(
        x_left, y + 64, "ceil(4 / 2) * 9 * ceil(4 / 2) = 36 cycles a window; a beat of sums after cycles 17 and 35"
    )
    svg.save("folding.svg", folder)


def unfold(folder: Path) -> None:
    """The places of the pixels of a 3 x 3 window in the memories of hg_unfold, and their way to the taps."""
    svg, cell, size, kernel = Svg(760, 365), 28, 8, 3
    x_left, top, high, (y0, x0) = 20, 70, 6, (2, 2)
    first = y0 * size + x0
    newest = first + kernel * size - 1
    taps = [(y0 + n // kernel) * size + x0 + n % kernel for n in range(kernel * kernel)]
    shades = ("#c9dcf0", "#d5ebd3", "#f6dfc3")

    def fill(n: int) -> str:
        return shades[n % size % kernel] if first <= n <= newest else "#fff" if n > newest else PALE

    svg.text(x_left, 24, "8 columns, 3 x 3 window, 3 rows stored: pixel (y, x) lies in slot y mod 3, bank x mod 3")
    for n in range(high * size):
        x, y = x_left + n % size * cell, top + n // size * cell
        svg.box(x, y, cell, cell, fill(n), "#bbb")
        svg.text(x + cell / 2, y + 19, str(n), "middle", 11, GREY if n < first else "#222")
    svg.box(x_left + x0 * cell, top + y0 * cell, kernel * cell, kernel * cell, "none", ORANGE, 3)
    width_step, tall, x1 = 32, 22, 320
    for bank in range(kernel):
        svg.text(x1 + bank * 62 + width_step / 2, top - 10, f"bank {bank}", "middle", 12, GREY)
    for slot in range(kernel):
        svg.text(x1 - 12, top + slot * 84 + 38, f"slot {slot}", "end", 12, GREY)
        for column in range(size):
            n = next(n for n in range(first, newest + 1) if n // size % kernel == slot and n % size == column)
            x, y = x1 + column % kernel * 62, top + slot * 84 + column // kernel * tall
            read = n in taps
            svg.box(x, y, width_step, tall, fill(n), ORANGE if read else "#999", 3 if read else 1)
            svg.text(x + width_step / 2, y + 16, str(n), "middle", 11)
    svg.text(x1 + 78, top + 274, "9 memories, a word of each is read", "middle", 12)
    svg.unit(540, top + 105, 70, "turn")
    svg.line([(490, top + 122), (538, top + 122)], arrow=True)
    svg.line([(610, top + 122), (640, top + 122)], arrow=True)
    svg.text(575, top + 160, f"rows by {y0 % kernel}", "middle", 12)
    svg.text(575, top + 176, f"columns by {x0 % kernel}", "middle", 12)
    for n, tap in enumerate(taps):
        x, y = 646 + n % kernel * width_step, top + 89 + n // kernel * tall
        svg.box(x, y, width_step, tall, fill(tap), ORANGE)
        svg.text(x + width_step / 2, y + 16, str(tap), "middle", 11)
    svg.text(694, top + 176, "a beat", "middle", 12)
    svg.text(x_left, top + 192, f"the next pixel, {newest + 1}, takes the place")
    svg.text(x_left, top + 210, f"of pixel {first} when this window is sent")
    svg.save("unfold.svg", folder)


def abreast(folder: Path) -> None:
    """Two windows of 3 x 3, from words of two pixels."""
    svg, cell, size, kernel, rows = Svg(760, 250), 28, 8, 3, 5
    x_left, top, (y0, x0) = 20, 60, (1, 1)
    svg.text(x_left, 24, "8 columns, words of 2 pixels, windows of 3 x 3 with padding 1: n = 2, p = 2")
    for n in range(rows * size):
        x, y = x_left + n % size * cell, top + n // size * cell
        inside = y0 <= n // size < y0 + kernel and x0 // 2 * 2 <= n % size < x0 // 2 * 2 + 6
        svg.box(x, y, cell, cell, "#f6dfc3" if inside else PALE, "#ccc")
        svg.text(x + cell / 2, y + 19, str(n), "middle", 11)
    for n in range(rows * size // 2):
        svg.box(x_left + n % (size // 2) * 2 * cell, top + n // (size // 2) * cell, 2 * cell, cell, "none", "#888", 1.5)
    x1, pixel = 400, 24
    svg.text(x1 - 100, top + 72, "a beat:", "start", 12)
    for name, colour, shift in (("window 0", BLUE, 0), ("window 1", GREEN, 1)):
        x, y = x_left + (x0 + shift) * cell + 2, top + y0 * cell + 2 + 3 * shift
        svg.box(x, y, kernel * cell - 4, kernel * cell - 4 - 6 * shift, "none", colour, 3)
        place = x1 + shift * 190
        svg.text(place + 1.5 * pixel, top - 8, name, "middle", 12, colour)
        for n in range(kernel * kernel):
            at = (y0 + n // kernel) * size + x0 + shift + n % kernel
            svg.box(place + n % kernel * pixel, top + n // kernel * pixel, pixel, pixel, "#fff", colour)
            svg.text(place + n % kernel * pixel + pixel / 2, top + n // kernel * pixel + 17, str(at), "middle", 11)
        svg.line([(place + 1.5 * pixel, top + 3 * pixel), (place + 1.5 * pixel, top + 98)], arrow=True)
        svg.unit(place - 20, top + 100, 112, "PE x SIMD")
        svg.line([(place + 1.5 * pixel, top + 134), (place + 1.5 * pixel, top + 158)], arrow=True)
        svg.text(
            place + 1.5 * pixel, top + 174, f"pixel {(y0 + 1) * size + x0 + 1 + shift} of the result", "middle", 12
        )
    svg.unit(x1 + 100, top + 100, 62, "weights", "#fff")
    svg.line([(x1 + 100, top + 117), (x1 + 93, top + 117)], arrow=True)
    svg.line([(x1 + 162, top + 117), (x1 + 169, top + 117)], arrow=True)
    svg.save("abreast.svg", folder)


def branch(folder: Path) -> None:
    """The residual branch of the example, and the interval at several depths of its FIFO."""
    build = hlsgen.check(MODEL, hlsgen.Options(target_cycles=CYCLES))
    nodes, timing = build.network.nodes, build.timing
    (name,) = timing.critical
    chosen = next(s.unit.depth for s in nodes if s.name == name and isinstance(s.unit, Fifo))
    svg = Svg(760, 430)
    svg.text(20, 24, "examples/digits_cnn: the residual branch")
    for x, y, w, text, colour in (
        (20, 70, 70, "pool", PALE),
        (130, 70, 50, "fork", PALE),
        (220, 40, 110, "depthwise", PALE),
        (350, 40, 80, "quantize", PALE),
        (450, 40, 90, "pointwise", PALE),
        (560, 40, 80, "quantize", PALE),
        (350, 100, 120, f"FIFO, {chosen} beats", "#fbd7ad"),
        (680, 70, 60, "join", PALE),
    ):
        svg.unit(x, y, w, text, colour)
    for points in (
        [(90, 87), (130, 87)],
        [(180, 80), (200, 80), (200, 57), (220, 57)],
        [(330, 57), (350, 57)],
        [(430, 57), (450, 57)],
        [(540, 57), (560, 57)],
        [(640, 57), (660, 57), (660, 80), (680, 80)],
        [(180, 94), (200, 94), (200, 117), (350, 117)],
        [(470, 117), (660, 117), (660, 94), (680, 94)],
    ):
        svg.line([(float(x), float(y)) for x, y in points], arrow=True)
    x_left, bottom, width_step, tall = 70, 400, 16.0, 180 / 1200
    svg.text(x_left, 176, "cycles from frame to frame, by the depth of the FIFO")
    y_least = bottom - timing.interval * tall
    depths = range(chosen - 30, chosen + 9)
    stopped = 0
    for n, depth in enumerate(depths):
        x = x_left + n * width_step
        try:
            cycles = measure(with_depths(nodes, {name: depth}), latency)[1]
        except ValueError:
            stopped += 1
            continue
        svg.box(x, bottom - cycles * tall, width_step - 3, cycles * tall, ORANGE if depth == chosen else BLUE, "none")
        if depth == chosen - 1:
            svg.text(x + width_step / 2 - 1, bottom - cycles * tall - 5, str(cycles), "middle", 9)
    svg.box(x_left, y_least, stopped * width_step - 3, bottom - y_least, PALE, "none")
    svg.text(x_left + stopped * width_step / 2, bottom - 40, "no frame comes through", "middle", 12, GREY)
    svg.line([(x_left, 190), (x_left, bottom), (x_left + len(depths) * width_step, bottom)])
    for n, depth in enumerate(depths):
        if depth % 5 == 0:
            svg.text(x_left + n * width_step + width_step / 2, bottom + 18, str(depth), "middle", 11)
    for cycles in (0, timing.interval, 1000):
        svg.text(x_left - 6, bottom - cycles * tall + 4, str(cycles), "end", 11)
    svg.line([(x_left, y_least), (x_left + len(depths) * width_step, y_least)], GREY, 0.8)
    svg.save("branch.svg", folder)


def main() -> None:
    """All drawings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder")
    folder = parser.parse_args().out
    window(folder)
    folding(folder)
    unfold(folder)
    abreast(folder)
    branch(folder)


if __name__ == "__main__":
    main()
