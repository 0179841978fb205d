"""The work of a layer that multiplies, and how it can be divided into rows and columns."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from hlsgen.ir import Convolution, Graph, Linear, Map, MatrixProduct, View
from hlsgen.ir.window import Window

#: (PE, SIMD) of each layer that multiplies.
Folding = dict[str, tuple[int, int]]


@lru_cache(maxsize=1 << 12)
def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


@lru_cache(maxsize=1 << 12)
def shares(n: int) -> list[int]:
    """For each number of rounds, the smallest share of n a round."""
    return sorted({-(-n // rounds) for rounds in range(1, n + 1)})


@dataclass(frozen=True)
class Workload:
    """A layer that multiplies.

    `places` windows or vectors a frame have `groups` independent groups of `rows` sums over `taps` x `columns`
    elements. PE divides the rows, SIMD the columns. Depthwise: the channels are the rows, and there is one column.
    `arrivals`: input vectors of `columns` elements. `ends`: no other layer consumes its sums. `bits`: a quantizer maps
    each sum to one bit. A PE of n * `rows` processes n whole windows (of a row) or vectors at once.
    """

    layer: Linear | MatrixProduct | Convolution
    places: int
    groups: int
    rows: int
    taps: int
    columns: int
    arrivals: int
    ends: bool = False
    bits: bool = False

    @property
    def macs(self) -> int:
        return self.places * self.groups * self.rows * self.taps * self.columns

    @property
    def depthwise(self) -> bool:
        return isinstance(self.layer, Convolution) and is_depthwise(self.layer)

    @property
    def unrolls(self) -> bool:
        """True if all taps of a window, or all groups, can be processed at once.

        SIMD of one group is then taps * 1 ... taps * columns. If there are several groups, SIMD is all columns, and PE
        is rows * 1 ... rows * groups.
        """
        layer = self.layer
        return isinstance(layer, Convolution) and self.taps * self.groups > 1

    @property
    def outputs(self) -> int:
        """Sums of a window."""
        return self.groups * self.rows

    def at_once(self, pe: int, simd: int) -> bool:
        """True if all taps of a window are processed at once, of one group or more; or several windows."""
        return simd > self.columns or pe > self.rows

    def columns_at_once(self, simd: int) -> int:
        """Columns of a tap in a cycle. SIMD above the columns: all taps at once."""
        return simd // self.taps if simd > self.columns else simd

    def elements(self, pe: int, simd: int) -> int:
        """Elements of a pixel that arrive in a beat."""
        if self.depthwise:
            return min(pe, self.rows)
        if self.groups > 1 and self.at_once(pe, simd):
            return min(pe // self.rows, self.groups) * self.columns
        return self.columns_at_once(simd)

    def arriving(self, pe: int, simd: int) -> int:
        """Group of the input stream: the number of elements after which a new beat begins."""
        if isinstance(self.layer, Convolution) and (self.depthwise or self.at_once(pe, simd)):
            return self.layer.source.shape[-1]
        return self.columns

    def windows(self, pe: int) -> int:
        """Windows or vectors at once."""
        return max(1, pe // self.outputs)

    def does_window_a_cycle(self, pe: int, simd: int) -> bool:
        """True if every window is processed in a cycle or less."""
        return pe >= self.outputs and simd == self.taps * self.columns and (self.unrolls or self.groups == 1)

    def single(self, pe: int, simd: int) -> bool:
        """True if every cycle processes one window with all weights."""
        return pe == self.outputs and self.does_window_a_cycle(pe, simd)

    def side_by_side(self, windows: int) -> list[int]:
        """Numbers of pixels a beat that are possible with `windows` windows of a row at once."""
        assert isinstance(self.layer, Convolution)
        height, width, _ = self.layer.source.shape[-3:]
        return pixels_at_once(self.layer.window, height, width, windows)

    def legal(self, pe: int, simd: int) -> bool:
        """True if the layer can be folded to this PE and SIMD."""
        if isinstance(self.layer, MatrixProduct):
            return pe > 0 and simd > 0 and self.rows % pe == 0 and self.columns % simd == 0
        max_simd = self.taps * self.columns
        if pe > self.outputs:
            return pe % self.outputs == 0 and simd == max_simd and self.windows(pe) in self.window_counts
        if pe < 1 or simd < 1:
            return False
        if not self.at_once(pe, simd):
            return True
        if self.groups > 1:
            return self.unrolls and simd == max_simd and pe % self.rows == 0
        return pe <= self.rows and self.unrolls and simd <= max_simd and simd % self.taps == 0

    @property
    def window_counts(self) -> list[int]:
        """Numbers of windows, above 1, that can be processed at once."""
        layer = self.layer
        if isinstance(layer, Linear):
            return divisors(self.places)[1:]
        if isinstance(layer, MatrixProduct):
            return []
        height, width, _ = layer.source.shape[-3:]
        return several_windows(layer.window, height, width)

    def foldings(self) -> list[tuple[int, int]]:
        """(PE, SIMD) pairs of one window at a time, without empty rows or columns."""
        pairs = [(pe, simd) for pe in divisors(self.rows) for simd in divisors(self.columns)]
        if self.unrolls and self.groups > 1:
            pairs += [(groups * self.rows, self.taps * self.columns) for groups in divisors(self.groups)]
        elif self.unrolls:
            all_taps = [self.taps * d for d in divisors(self.columns) if self.taps * d > self.columns]
            pairs += [(pe, simd) for pe in divisors(self.rows) for simd in all_taps]
        return pairs

    def uneven(self, target: int) -> list[tuple[int, int]]:
        """(PE, SIMD) pairs where one does not divide the rows or the columns: weights of 0 fill the last round.

        For each PE: the smallest SIMD that processes a frame in `target` cycles, among columns of a tap and of all
        taps.
        """
        pairs = []
        for pe in shares(self.rows):
            for simds in self._uneven_columns():
                n = bisect_left(simds, -target, key=lambda simd: -self.cycles(pe, simd))
                if n < len(simds) and (self.rows % pe or self.columns % self.columns_at_once(simds[n])):
                    pairs.append((pe, simds[n]))
        return pairs

    def all_uneven(self) -> list[tuple[int, int]]:
        """All (PE, SIMD) pairs that `uneven` can return for some target."""
        return [(pe, simd) for pe in shares(self.rows) for simds in self._uneven_columns() for simd in simds]

    def _uneven_columns(self) -> list[list[int]]:
        """Lists of SIMD, ascending: columns of a tap and, if these can be processed at once, of all taps."""
        if isinstance(self.layer, MatrixProduct):
            return []
        padded = isinstance(self.layer, Convolution) and self.layer.pad != 0
        columns = divisors(self.columns) if padded else shares(self.columns)
        kinds = [columns]
        if self.unrolls and self.groups == 1:
            kinds.append([self.taps * n for n in columns if self.taps * n > self.columns])
        return kinds

    def empty(self, pe: int, simd: int) -> int:
        """Weights of 0 that fill the last rounds."""
        if pe > self.rows:
            return 0
        columns = self.columns_at_once(simd)
        padded = -(-self.rows // pe) * pe * -(-self.columns // columns) * columns
        return self.groups * self.taps * (padded - self.rows * self.columns)

    def cycles(self, pe: int, simd: int) -> int:
        """Cycles a frame: the larger of the cycles for sums and of the input words.

        A window with strides may have more input words than it uses.
        """
        at_once, layer = self.at_once(pe, simd), self.layer
        if isinstance(layer, Convolution) and at_once and self.does_window_a_cycle(pe, simd):
            (height, width, _), windows = layer.source.shape[-3:], self.windows(pe)
            down, across, _ = layer.result.shape[-3:]
            pixels = windows * layer.window.strides[1] if windows > 1 else max(self.side_by_side(1))
            return max(down * -(-across // windows), height * -(-width // pixels))
        if pe > self.outputs:
            return self.places // self.windows(pe)
        if self.groups > 1 and at_once:
            return max(self.places, self.arrivals // self.groups) * -(-self.groups // (pe // self.rows))
        row_folds, folds = -(-self.rows // pe), -(-self.columns // self.columns_at_once(simd))
        sums = self.places * self.groups * row_folds * folds * (1 if at_once else self.taps)
        return max(sums, self.arrivals * (row_folds if self.depthwise else folds))


def pixels_at_once(window: Window, height: int, width: int, windows: int) -> list[int]:
    """Numbers of pixels a beat that are possible with `windows` windows of a row at once."""
    even = even_rows(window, height, width)
    return [p for p in divisors(windows * window.strides[1]) if even(p)]


def several_windows(window: Window, height: int, width: int) -> list[int]:
    """Numbers of windows of a row that can be processed at once, with their stride in pixels a beat."""
    even, step, across = even_rows(window, height, width), window.strides[1], window.size(height, width)[1]
    return [n for n in range(2, across + 1) if even(n * step)]


def even_rows(window: Window, height: int, width: int) -> Callable[[int], bool]:
    """Tells if rows can arrive in beats of a number of pixels, each row in its own beats.

    The pixels of the last beat after the end of a row are arbitrary, so no tap may read them.
    """
    columns = window.size(height, width)[1]
    beyond = (columns - 1) * window.strides[1] + window.reach[1] - window.pads[1] > width
    return lambda pixels: pixels <= width and (width % pixels == 0 or not beyond)


def is_depthwise(layer: Convolution) -> bool:
    """True for one input and one output channel a group."""
    return layer.groups > 1 and layer.weight.shape[3] == 1 and len(layer.weight) == layer.groups


def work_of(layer: Linear | MatrixProduct | Convolution) -> Workload:
    """The work of a layer that multiplies."""
    if isinstance(layer, MatrixProduct):
        vectors = math.prod(layer.result.shape[:-1])
        return Workload(layer, vectors, 1, layer.result.shape[-1], 1, layer.depth, vectors)
    if isinstance(layer, Linear):
        rows, columns = layer.weight.shape
        vectors = math.prod(layer.source.shape[:-1])
        return Workload(layer, vectors, 1, rows, 1, columns, vectors)
    rows, height, width, columns = layer.weight.shape
    places, pixels = math.prod(layer.result.shape[:-1]), math.prod(layer.source.shape[:-1])
    if is_depthwise(layer):
        return Workload(layer, places, 1, rows, height * width, 1, pixels)
    return Workload(layer, places, layer.groups, rows // layer.groups, height * width, columns, pixels * layer.groups)


def works_of(graph: Graph) -> dict[str, Workload]:
    """The work of all layers that multiply, by name."""
    consumed = {value for layer in graph.layers for value in layer.inputs}
    # For values that quantizers consume, possibly through views: True if all these quantizers have two codes.
    quantized: dict[int, bool] = {}
    for i, layer in reversed(list(enumerate(graph.layers))):
        two = isinstance(layer, Map) and layer.result.type.bits == 1
        two = two or (isinstance(layer, View) and quantized.get(i + 1, False))
        for value in layer.inputs:
            quantized[value] = quantized.get(value, True) and two
    return {
        x.name: replace(work_of(x), ends=i + 1 not in consumed, bits=quantized.get(i + 1, False))
        for i, x in enumerate(graph.layers)
        if isinstance(x, Linear | MatrixProduct | Convolution)
    }
