"""Networks of nodes, at random; all elements are bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlsgen.adder_graph import find
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.dataflow import units
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.rescale.realize.shift import Shift
from hlsgen.verilog.unit_table import latency

#: All elements; sums wrap.
BYTE = IntType(0, 255)
#: With all registers that there are.
SHIFT = Shift(0, 0, Rounding(0), np.ones((1, 1), np.int64), 0, 255, every=1)

#: Kinds of units in random networks.
KINDS = {
    "straight": ("shift", "fifo", "width", "flat", "matrix", "winner"),
    "routes": ("shift", "fifo", "width", "matrix", "gather", "take", "pad", "branches"),
    "rows": ("shift", "fifo", "width", "rows", "gather", "branches"),
    "joined": ("joined", "shift", "fifo", "width", "flat", "winner"),
    "windows": ("conv", "depthwise", "pool", "shift", "fifo", "width", "flat", "same", "branches", "matrix", "pad"),
}


def matrix(rows: int, columns: int, pe: int, simd: int, vectors: int) -> units.MatVec:
    """A matrix of ones."""
    weight = np.ones((rows, 1, columns), np.int64)
    return units.MatVec(weight, np.arange(columns), units.Product.INTEGER, pe=pe, simd=simd, vectors=vectors)


def convolution(
    window: Window,
    height: int,
    width: int,
    *,
    groups: int = 1,
    folds: int = 1,
    repeat: int,
    pe: int,
    simd: int,
    depthwise: bool = False,
    depth: int = 0,
) -> units.ConvUnit:
    """Weights that are ones."""
    columns = 1 if depthwise else folds * simd
    return units.ConvUnit(
        weight=np.ones((groups * repeat * pe, window.taps, columns), np.int64),
        order=np.arange(columns),
        product=units.Product.INTEGER,
        window=window,
        height=height,
        width=width,
        groups=groups,
        folds=folds,
        repeat=repeat,
        pe=pe,
        simd=simd,
        depthwise=depthwise,
        pad=0,
        depth=depth,
    )


@dataclass
class Image:
    """A stream of images of height x width pixels of so many channels."""

    name: str
    height: int
    width: int
    channels: int
    lanes: int

    @property
    def stream(self) -> units.Stream:
        return units.stream_of(BYTE, self.lanes, self.height * self.width * self.channels, self.channels)


@dataclass
class Net:
    """Stages as they are added."""

    nodes: list[units.Node] = field(default_factory=list)

    def add(self, unit: units.Unit, sources: Sequence[Image], result: Image, count: int = 1) -> list[Image]:
        """The streams that leave the new node."""
        name = f"u{len(self.nodes)}"
        names = tuple(f"{name}_{n}" for n in range(count)) if count > 1 else (name,)
        streams = tuple(image.stream for image in sources)
        inputs = tuple(image.name for image in sources)
        self.nodes.append(units.Node(name, unit, inputs, streams, names, result.stream))
        return [Image(n, result.height, result.width, result.channels, result.lanes) for n in names]

    def start(self, image: Image) -> Image:
        self.nodes.append(units.Node("s_axis", units.Port(), (), (image.stream,), ("s_axis",), image.stream))
        return Image("s_axis", image.height, image.width, image.channels, image.lanes)

    def finish(self, image: Image) -> list[units.Node]:
        self.nodes.append(units.Node("m_axis", units.Port(), (image.name,), (image.stream,), (), image.stream))
        return self.nodes


class Random:
    """Networks of random units; some block."""

    def __init__(self, seed: int, kinds: Sequence[str]) -> None:
        self.rng, self.net, self.kinds = random.Random(seed), Net(), tuple(kinds)

    def network(self, length: int) -> list[units.Node]:
        rng = self.rng
        channels = rng.randint(1, 6)
        image = self.net.start(Image("", rng.randint(1, 5), rng.randint(1, 5), channels, rng.randint(1, channels)))
        for _ in range(length):
            image = self.step(image, self.kinds)
        return self.net.finish(image)

    def step(self, x: Image, kinds: Sequence[str]) -> Image:
        kind = self.rng.choice(kinds)
        made: Image = getattr(self, kind)(x)
        return made

    def shift(self, x: Image) -> Image:
        return self.net.add(units.RescaleUnit(SHIFT, np.zeros((1, x.lanes), np.int64)), [x], x)[0]

    def joined(self, x: Image) -> Image:
        """Adders of one to three cycles, and a quantizer with which they stand still."""
        products = matrix(x.lanes, x.lanes, x.lanes, x.lanes, x.height * x.width)
        terms = self.rng.choice([2, 5, 12])
        graph = find(np.ones((1, terms), np.int64), [(0, 1)] * terms)
        unit = units.AdderMatVec(products, graph, 1, joined=True)
        x = self.net.add(unit, [x], x)[0]
        codes = units.RescaleUnit(SHIFT, np.zeros((1, x.lanes), np.int64), joined_latency=latency(unit))
        return self.net.add(codes, [x], x)[0]

    def fifo(self, x: Image) -> Image:
        return self.net.add(units.Fifo(self.rng.choice([1, 2, 2, 3, 5, 9, 30])), [x], x)[0]

    def width(self, x: Image) -> Image:
        return self.to_lanes(x, self.rng.randint(1, x.channels))

    def to_lanes(self, x: Image, lanes: int) -> Image:
        return self.net.add(units.WidthConverter(), [x], Image("", x.height, x.width, x.channels, lanes))[0]

    def flat(self, x: Image) -> Image:
        """All pixels in one group, without pad lanes, if that is possible."""
        size = x.height * x.width * x.channels
        lanes = self.rng.choice([n for n in range(1, min(size, 9) + 1) if size % n == 0])
        return self.net.add(units.WidthConverter(), [x], Image("", 1, 1, size, lanes))[0]

    def matrix(self, x: Image) -> Image:
        simd = self.divisor(x.channels)
        x = x if x.lanes == simd else self.to_lanes(x, simd)
        rows = self.rng.randint(1, 6)
        pe = self.divisor(rows)
        unit = matrix(rows, x.channels, pe, simd, x.height * x.width)
        return self.net.add(unit, [x], Image("", x.height, x.width, rows, pe))[0]

    def divisor(self, n: int) -> int:
        return self.rng.choice([d for d in range(1, n + 1) if n % d == 0])

    def winner(self, x: Image) -> Image:
        lanes = self.divisor(x.channels)
        x = x if x.lanes == lanes else self.to_lanes(x, lanes)
        return self.net.add(units.ArgMaxUnit(x.channels // lanes), [x], Image("", x.height, x.width, 1, 1))[0]

    def window(self, x: Image) -> Window:
        """Any window that fits, also padding beyond its size."""
        rng = self.rng
        while True:
            pairs = [(rng.randint(1, 3), rng.randint(1, 3)) for _ in range(3)]
            kernel, strides, dilations = pairs
            pads = (rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2))
            window = Window(kernel, strides, (rng.choice([1, dilations[0]]), rng.choice([1, dilations[1]])), pads)
            if min(window.size(x.height, x.width)) > 0:
                return window

    def conv(self, x: Image) -> Image:
        simd = self.divisor(x.channels)
        x = x if x.lanes == simd else self.to_lanes(x, simd)
        words = x.channels // simd
        groups = self.divisor(words)
        window, repeat, pe = self.window(x), self.rng.randint(1, 3), self.rng.randint(1, 2)
        folds = words // groups
        unit = convolution(window, x.height, x.width, groups=groups, folds=folds, repeat=repeat, pe=pe, simd=simd)
        return self.windowed(unit, x, Image("", 0, 0, groups * repeat * pe, pe))

    def depthwise(self, x: Image) -> Image:
        lanes = self.divisor(x.channels)
        x = x if x.lanes == lanes else self.to_lanes(x, lanes)
        groups = x.channels // lanes
        window, repeat = self.window(x), self.rng.randint(1, 2)
        unit = convolution(
            window, x.height, x.width, groups=groups, repeat=repeat, pe=lanes, simd=lanes, depthwise=True
        )
        return self.windowed(unit, x, Image("", 0, 0, groups * repeat * lanes, lanes))

    def pool(self, x: Image) -> Image:
        window, kind, folds = self.window(x), self.rng.choice(list(Reduction)), x.stream.group_beats
        unit = units.PoolUnit(kind, window, x.height, x.width, folds, pad=0, depth=0)
        return self.windowed(unit, x, Image("", 0, 0, x.channels, x.lanes))

    def windowed(self, unit: units.ConvUnit | units.PoolUnit, x: Image, to: Image) -> Image:
        """With a buffer that is large enough, or larger."""
        to.height, to.width = unit.window.size(x.height, x.width)
        depth = min_depth(unit) + self.rng.choice([0, 0, 1, 3, 20])
        return self.net.add(replace(unit, depth=depth), [x], to)[0]

    def gather(self, x: Image) -> Image:
        """Repeats rows and columns, or swaps both."""
        folds = x.stream.group_beats
        row = x.width * folds
        if self.rng.random() < 0.5:
            unit = units.Reorder(x.height * row, ((x.width, folds), (x.height, row), (folds, 1)))
            return self.net.add(unit, [x], Image("", x.width, x.height, x.channels, x.lanes))[0]
        down, across = self.rng.randint(1, 2), self.rng.randint(1, 2)
        unit = units.Reorder(row, ((down, 0), (x.width, folds), (across, 0), (folds, 1)))
        return self.net.add(unit, [x], Image("", x.height * down, x.width * across, x.channels, x.lanes))[0]

    def rows(self, x: Image) -> Image:
        """Units that send a row some cycles after it is complete."""
        count, ones = x.channels, np.ones(x.channels, np.int64)
        norm = IntegerNorm(True, ones, 0 * ones, 0, IntType(-128, 127), False)
        function = self.rng.choice([BelowLargest(), norm])
        return self.net.add(units.RowsUnit(function, x.stream.group_beats, BYTE, count), [x], x)[0]

    def take(self, x: Image) -> Image:
        folds = x.stream.group_beats
        ranges = []
        for size in (x.height, x.width, folds):
            start = self.rng.randrange(size)
            ranges.append((start, self.rng.randint(start + 1, size), self.rng.randint(1, 2)))
        kept = [len(range(*r)) for r in ranges]
        unit = units.Crop((x.height, x.width, folds), *ranges)
        channels = x.channels if kept[2] == folds else kept[2] * x.lanes
        return self.net.add(unit, [x], Image("", kept[0], kept[1], channels, x.lanes))[0]

    def pad(self, x: Image) -> Image:
        top, left, bottom, right = (self.rng.randint(0, 2) for _ in range(4))
        unit = units.PadBorder(x.height, x.width, x.stream.group_beats, (top, left, bottom, right), 0)
        return self.net.add(unit, [x], Image("", x.height + top + bottom, x.width + left + right, x.channels, x.lanes))[
            0
        ]

    def branches(self, x: Image) -> Image:
        """A fork, branches that keep the shape, and how they come together again."""
        kept = [kind for kind in ("shift", "fifo", "fifo", "same") if kind in self.kinds]
        count = self.rng.choice([2, 2, 3])
        sides = self.net.add(units.Fork(count), [x], x, count)
        for n in range(count):
            for _ in range(self.rng.randint(0, 3)):
                sides[n] = self.step(sides[n], kept)
            sides[n] = sides[n] if sides[n].lanes == x.lanes else self.to_lanes(sides[n], x.lanes)
        first, *rest = sides
        for other in rest:
            if first.stream == other.stream and self.rng.random() < 0.5:
                first = self.net.add(units.JoinStreams((1, 1)), [first, other], first)[0]
            else:
                first = self.concat(first, other)
        return first

    def concat(self, x: Image, y: Image) -> Image:
        """Channels behind each other if the pixels are the same, else frames; lanes all count."""
        pixels = x.height * x.width
        if pixels == y.height * y.width:
            beats, height, width = (x.stream.group_beats, y.stream.group_beats), x.height, x.width
        else:
            beats, height, width = (x.stream.beats, y.stream.beats), 1, 1
        return self.net.add(units.ConcatBeats(beats), [x, y], Image("", height, width, sum(beats) * x.lanes, x.lanes))[
            0
        ]

    def same(self, x: Image) -> Image:
        """A convolution that keeps the shape."""
        simd = self.divisor(x.channels)
        x = x if x.lanes == simd else self.to_lanes(x, simd)
        window, folds, pe = Window((3, 3), pads=(1, 1, 1, 1)), x.channels // simd, self.divisor(x.channels)
        unit = convolution(window, x.height, x.width, folds=folds, repeat=x.channels // pe, pe=pe, simd=simd)
        return self.windowed(unit, x, Image("", 0, 0, x.channels, pe))


def large(layers: int, height: int, width: int) -> list[units.Node]:
    """Windows of 3 x 3 on the same pixels, one behind the other, with a branch around each."""
    net = Net()
    x = net.start(Image("", height, width, 1, 1))
    for _ in range(layers):
        around, x = net.add(units.Fork(2), [x], x, 2)
        around = net.add(units.Fifo(2 * width), [around], around)[0]
        unit = units.SlidingWindow(Window((3, 3), pads=(1, 1, 1, 1)), height, width, 1, 0, 3, width)
        x = net.add(unit, [x], Image("", height, width, 9, 9))[0]
        x = net.add(units.ReduceTree(Reduction.MAX, 9), [x], Image("", height, width, 1, 1))[0]
        x = net.add(units.JoinStreams((1, 1)), [around, x], x)[0]
    return net.finish(x)


def with_early_ports(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes with ready cut at the input port in place of the output port."""
    return [
        replace(node, unit=units.Port(cuts_ready=True)) if isinstance(node.unit, units.Port) else node for node in nodes
    ]
