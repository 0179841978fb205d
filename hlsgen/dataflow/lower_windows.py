"""Convolutions and pools become units: tap by tap, with all taps at once, with several windows at once."""

from __future__ import annotations

from hlsgen.dataflow.builder import NamedStream, Streams
from hlsgen.dataflow.folding import (
    Folding,
    Targets,
    at_once,
    divisors,
    is_depthwise,
    pixels_at_once,
    pixels_moved,
    work_of,
)
from hlsgen.dataflow.units import (
    ConvUnit,
    GroupedMatVec,
    MatVec,
    PoolUnit,
    ReduceTree,
    SlidingWindow,
    Stream,
    TiledPool,
    Unit,
    stream_of,
)
from hlsgen.ir import Convolution, Graph, Linear, Pooling
from hlsgen.ir.stream_order import StreamOrder, vectors
from hlsgen.numerics.fixed import Array
from hlsgen.verilog.weight_packing import folded, folded_depthwise, mode_of, padded, unfolded, unfolded_groups


class Images(Streams):
    """Layers on windows. `target`: cycles that a frame may take."""

    def __init__(self, graph: Graph, layout: StreamOrder, folding: Folding, targets: Targets) -> None:
        super().__init__(graph, layout)
        self.folding, self.targets = folding, targets
        works = [(work_of(x), x.name) for x in graph.layers if isinstance(x, Linear | Convolution)]
        least = targets.cycles or pixels_moved(graph)
        self.target = max([least, *(w.cycles(*folding[n]) for w, n in works)])

    def _convolution(self, i: int, layer: Convolution, name: str) -> NamedStream:
        pe, simd = self.folding[layer.name]
        height, width, channels = layer.source.shape[-3:]
        rows, columns = len(layer.weight) // layer.groups, layer.weight.shape[3]
        found = vectors(self.layout.of_input(self.graph, i), layer.source.shape)
        assert found is not None
        flow = self._take(i, 0, name)
        if work_of(layer).at_once(pe, simd):
            return self._unrolled(i, layer, name, flow, found[1])
        if is_depthwise(layer):
            mode = mode_of(layer, layer.weight)
            flow = self._converted(flow, pe, channels, f"{name}_width")
            unit = ConvUnit(
                folded_depthwise(layer.weight, pe, mode), layer.window, height, width, -(-channels // pe), 1, 1, pe, pe,
                mode, True, layer.pad, 0,
            )  # fmt: skip
            result = stream_of(layer.result.type, pe, layer.result.size, channels)
            return self._append(name, unit, [flow], result, layer.name, i)
        weight = layer.weight if layer.groups > 1 else layer.weight[:, :, :, found[1]]
        mode = mode_of(layer, weight)
        if mode == 1 and layer.pad and columns % simd:
            mode = 0
        flow = self._converted(flow, simd, columns, f"{name}_width", zeros=mode > 0)
        unit = ConvUnit(
            folded(weight, layer.groups, pe, simd, mode), layer.window, height, width, layer.groups,
            -(-columns // simd), -(-rows // pe), pe, simd, mode, False, layer.pad, 0,
        )  # fmt: skip
        result = stream_of(layer.result.type, pe, layer.result.size, rows)
        return self._append(name, unit, [flow], result, layer.name, i)

    def _unrolled(self, i: int, layer: Convolution, name: str, flow: NamedStream, order: Array) -> NamedStream:
        """All taps of a window at once, or of several windows; `order`: of the channels in a pixel."""
        (pe, simd), work = self.folding[layer.name], work_of(layer)
        channels, own, windows = layer.source.shape[-1], work.elements(pe, simd), work.windows(pe)
        mode, grouped = mode_of(layer, layer.weight), layer.groups > 1
        if mode == 1 and layer.pad and channels % own and not grouped:
            mode = 0
        flow = self._unfolded(name, layer, flow, own, windows, self._pixels(layer), zeros=mode > 0 and not grouped)
        if grouped:
            rows, columns = len(layer.weight) // layer.groups, layer.weight.shape[3]
            unit: Unit = GroupedMatVec(unfolded_groups(layer.weight, pe, mode), mode, rows, columns)
        else:
            places = layer.result.size // work.rows
            weight = padded(unfolded(layer.weight[:, :, :, order], own, mode), pe // windows, simd, mode)
            unit = MatVec(weight, mode, pe // windows, simd, places, windows, layer.window.taps)
        return self._append(name, unit, [flow], self._side_by_side(layer, pe, windows), layer.name, i)

    def _pixels(self, layer: Convolution) -> int:
        """Pixels of a row in a beat: those that the target needs."""
        pe, simd = self.folding[layer.name]
        work = work_of(layer)
        if not (work.at_once(pe, simd) and work.whole(pe, simd)):
            return 1
        return self._fitting(layer, work.side_by_side(work.windows(pe)))

    def _fitting(self, layer: Convolution | Pooling, pixels: list[int]) -> int:
        """The fewest with which an image comes in fast enough, or else the most."""
        height, width, _ = layer.source.shape[-3:]
        return next((p for p in pixels if height * -(-width // p) <= self.target), pixels[-1])

    @staticmethod
    def _side_by_side(layer: Convolution | Pooling, lanes: int, windows: int) -> Stream:
        """Results with so many windows of a row in a beat."""
        across, channels = layer.result.shape[-2:]
        group = channels * (windows if across % windows == 0 else across)
        return stream_of(layer.result.type, lanes, layer.result.size, group)

    def _unfolded(
        self, name: str, layer: Convolution | Pooling, flow: NamedStream, lanes: int, windows: int, pixels: int, *,
        zeros: bool = False,
    ) -> NamedStream:  # fmt: skip
        """Beats of all taps of a word of so many elements; or of several windows, whose channels come in one beat."""
        height, width, channels = layer.source.shape[-3:]
        group = channels * (pixels if width % pixels == 0 else width)
        flow = self._converted(flow, pixels * lanes, group, f"{name}_width", zeros=zeros)
        folds = -(-channels // lanes)
        unit = SlidingWindow(layer.window, height, width, folds, layer.pad, 0, 0, pixels, windows)
        down, across = layer.result.shape[-3:-1]
        beat = layer.window.taps * windows * lanes
        result = Stream(flow.stream.type, beat, down * -(-across // windows) * folds, beat * folds)
        return self._append(f"{name}_windows", unit, [flow], result)

    def _pooling(self, i: int, layer: Pooling, name: str) -> NamedStream:
        height, width, channels = layer.source.shape[-3:]
        flow = self._take(i, 0, name)
        simple = layer.window.side_by_side(height, width)
        places = height * width if simple else layer.result.size // channels * layer.window.taps
        lanes = [flow.stream.lanes, *divisors(channels)]
        fits = [x for x in lanes if places * -(-channels // x) <= self.target and x <= channels]
        if not fits and (counts := at_once(layer)):
            return self._pooled_at_once(i, layer, name, flow, lanes, counts)
        flow = self._converted(flow, fits[0] if fits else channels, channels, f"{name}_width")
        folds = flow.stream.group_beats
        if simple:
            unit: Unit = TiledPool(layer.kind, layer.window.kernel, height, width, folds)
        else:
            unit = PoolUnit(layer.kind, layer.window, height, width, folds, layer.pad, 0)
        result = stream_of(layer.result.type, flow.stream.lanes, layer.result.size, channels)
        return self._append(name, unit, [flow], result, layer.name, i)

    def _pooled_at_once(
        self, i: int, layer: Pooling, name: str, flow: NamedStream, lanes: list[int], counts: list[int]
    ) -> NamedStream:  # fmt: skip
        """All taps of a window at once; of several windows, if the target needs them."""
        (height, width, channels), (down, across, _) = layer.source.shape[-3:], layer.result.shape[-3:]
        places = max(down * across, height * width)
        fits = [x for x in lanes if places * -(-channels // x) <= self.target and x <= channels]
        lane, windows, pixels = fits[0] if fits else channels, 1, 1
        for windows in counts if not fits else ():
            pixels = self._fitting(layer, pixels_at_once(layer.window, height, width, windows))
            if max(down * -(-across // windows), height * -(-width // pixels)) <= self.target:
                break
        flow = self._unfolded(name, layer, flow, lane, windows, pixels)
        result = self._side_by_side(layer, lane * windows, windows)
        return self._append(name, ReduceTree(layer.kind, layer.window.taps), [flow], result, layer.name, i)
