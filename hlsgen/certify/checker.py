"""Proves each layer of the model: its instances compute what the layer says, and the certificate says the same.

The checker walks through the instances in the order of the certificate. That order is good if every stream is sent
before it is taken, which the walk checks. What an instance sends follows from the contract of its module, its
parameters and the streams that it takes, and from nothing else. So if the output port gets the right elements,
each of them was computed by proven instances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlsgen.certify import weights
from hlsgen.certify.adder_modules import ADDERS, check_flips, stands_for
from hlsgen.certify.binary_functions import JoinModel, check_binary_map
from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.float_joins import check_takes_floats
from hlsgen.certify.loops import ComingBack
from hlsgen.certify.models import line_buffer, matrix_product, normalization, softmax, unrolled_windows
from hlsgen.certify.models.routing import ROUTING, fits, move, only, whole
from hlsgen.certify.models.rows import ROWS, check_rows, row_beats
from hlsgen.certify.netlist_reader import Cell, Memories, SizedConstant, broken
from hlsgen.certify.port_wiring import PortFrame
from hlsgen.certify.quantizers import QuantizerHardware, Summary, check_map, same, widths
from hlsgen.certify.stream_contents import ANYTHING, Elements, StreamContents, readable, vectors
from hlsgen.ir import (
    ArgMaxLayer,
    BinaryMap,
    Concatenation,
    Convolution,
    Delay,
    FloatBinary,
    FloatKey,
    Graph,
    IntegerRows,
    Layer,
    Linear,
    Map,
    MatrixProduct,
    NormRows,
    PackBytes,
    Pooling,
    Rearrange,
    SoftmaxRows,
    StreamedInput,
    StreamedOutputs,
    Value,
    View,
)
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.ir.value_ranges import value_range
from hlsgen.numerics.fixed import Array

#: What the certificate calls the layers.
KINDS: dict[type[Layer], str] = {
    Map: "quantizer",
    Linear: "linear",
    Convolution: "convolution",
    Pooling: "pool",
    Rearrange: "rearrangement",
    Concatenation: "concatenation",
    BinaryMap: "merge",
    FloatBinary: "float joint",
    PackBytes: "pair",
    ArgMaxLayer: "argmax",
    MatrixProduct: "product",
    NormRows: "normalization",
    IntegerRows: "integer rows",
    Delay: "state",
    SoftmaxRows: "softmax",
}
#: Modules of layers that are no function of single elements.
_MODULES: dict[type[Layer], tuple[str, ...]] = {
    Linear: ("hg_mvu", ADDERS),
    Convolution: ("hg_conv", "hg_dwconv", "hg_mvu", "hg_dwmvu", ADDERS),
    Pooling: ("hg_pool", "hg_reduce", "hg_pool_tree"),
    PackBytes: ("hg_join",),
    ArgMaxLayer: ("hg_argmax",),
    MatrixProduct: ("hg_dynmvu",),
    IntegerRows: ROWS,
    SoftmaxRows: ("hg_softmax",),
}
_ARGMAX = "LANES BEATS IN_W IN_SIGNED INDEX_W"

#: Proves the values of a layer. Where its elements are is proven before.
LayerProof = Callable[[], Summary]


class Checker:
    """Walks through the layers.

    streams  those that an instance has sent and none has taken yet
    taken    elements and bits of a beat of the (first) stream that each instance takes
    last     layer -> the instance that sends what it computes
    frames   what the input ports and the output ports carry; keep: whether they have tkeep
    written  modules that were written for one instance, read by a proof
    """

    def __init__(
        self,
        graph: Graph,
        layout: StreamOrder,
        network: Netlist,
        memories: Memories,
        entries: list[dict[str, Any]],
        top: str,
        frames: tuple[list[PortFrame], list[PortFrame]],
        keep: bool,
    ) -> None:
        self.top, self.frames, self.keep = top, frames, keep
        self.graph, self.layout, self.network, self.memories, self.entries = graph, layout, network, memories, entries
        self.elements, self.back = Elements(graph), ComingBack(graph)
        self.streams: dict[str, StreamContents] = {}
        self.taken: dict[str, tuple[int, int]] = {}
        self.last: dict[str, str] = {}
        self.written: set[str] = set()

    def start(self) -> None:
        """Proves that the input ports send all elements of the input in order. Raises HG055."""
        for what, port, frame in zip(self.graph.streamed_inputs, self.network.inputs, self.frames[0], strict=True):
            self._start(*what, *port, frame)

    def _start(self, number: int, _offset: int, value: Value, cell: Cell, wire: str, frame: PortFrame) -> None:
        """The same of one port, for a value of the graph."""
        bits = 32 if isinstance(value.encoding, FloatKey) else value.type.bits
        width, order = cell.number("WIDTH", 1), self.layout.orders[number]
        if width % bits:
            raise broken(cell.name, f"WIDTH is {width}, no multiple of the {bits} bits of {value.type}.")
        lanes = width // bits
        numbers = np.full(-(-len(order) // lanes) * lanes, ANYTHING)
        numbers[: len(order)] = self.elements.numbers[number][order]
        stream = StreamContents(numbers.reshape(-1, lanes), bits, value.type.lo, value.type.hi)
        self._frame(cell, stream, frame)
        self._send(cell, [wire], stream)

    def end(self) -> None:
        """Proves that the output ports get all elements of the output in order, without gaps. Raises HG055."""
        for what, port, frame in zip(self.graph.streamed_outputs, self.network.outputs, self.frames[1], strict=True):
            self._end(*what, *port, frame)
        self.back.end()

    def _end(self, number: int, _offset: int, value: Value, cell: Cell, wire: str, frame: PortFrame) -> None:
        """The same of one port, for a value of the graph."""
        stream = self._consume(cell, [wire])[0]
        readable(cell.name, stream, value.type, stream.bits, None)
        self.elements.expect(cell.name, stream, number, self.layout.orders[number])
        filled = stream.filled.ravel()
        if not filled[: filled.sum()].all() or (len(filled) - filled.sum()) >= stream.lanes:
            raise broken(cell.name, "there are empty lanes between the elements of the output.")
        self._frame(cell, stream, frame)

    @staticmethod
    def _frame(cell: Cell, stream: StreamContents, frame: PortFrame) -> None:
        """The port has the beats of the stream, each in its slot of the words."""
        wanted = {"WIDTH": stream.width, "TDATA_W": frame.width, "BEATS": stream.beats}
        if "SLOT" in cell.parameters:
            wanted["SLOT"] = frame.slot
        # Which port keeps ready apart is looked at where both ports are.
        if {name: value for name, value in cell.parameters.items() if name != "CUT"} != wanted:
            raise broken(cell.name, f"parameters are {_shown(cell)}, a frame of this core needs {wanted}.")

    def _send(self, cell: Cell, names: list[str], stream: StreamContents) -> None:
        for name in names:
            if self.network.widths[name] != stream.width:
                raise broken(
                    cell.name, f"it sends {stream.width} bits on stream {name} of {self.network.widths[name]} bits."
                )
            if not self.back.sent(name, stream, self.elements.numbers):
                self.streams[name] = stream

    def _consume(self, cell: Cell, names: list[str]) -> list[StreamContents]:
        missing = [name for name in names if name not in self.streams]
        if missing:
            raise broken(cell.name, f"certificate.json lists it before what sends {missing[0]}.")
        return [self.streams.pop(name) for name in names]

    def _assume(self, layer: Delay, numbers: Array, names: tuple[str, ...]) -> None:
        """What a unit of a state takes and nothing has sent yet comes back."""
        for name in names:
            if name not in self.streams:
                self.streams[name] = self.back.assume(name, layer, numbers, self.network.widths[name])

    # ----------------------------------------------------------------------- layers

    def layer(self, i: int, entry: dict[str, Any]) -> LayerProof:
        """Proves where the elements of a layer go, instance by instance. Raises HG055.

        Gives the proof of their values. It runs later: a problem in it does not stop the walk.
        """
        layer = self.graph.layers[i]
        cells = [self._known(layer, self.network.cells[x["instance"]]) for x in entry["instances"]]
        own = [cell for cell in cells if cell.module not in ROUTING | {"hg_unfold"}]
        allowed = _MODULES.get(type(layer))
        if allowed and not (len(own) == 1 and own[0].module in allowed):
            raise broken(layer.name, f"{[c.module for c in own]} is no {' or '.join(allowed)}.")
        if isinstance(layer, Rearrange | Concatenation | Delay) == bool(own):
            raise broken(layer.name, f"{[c.module for c in own]} do not compute what the layer does.")
        check_takes_floats(layer, own)
        if own:
            self.last[layer.name] = own[-1].name
        proof: LayerProof = lambda: Summary(layer.name, entry["kind"], modules(cells), layer.result.size, 0, 0)  # noqa: E731
        for cell in cells:
            if isinstance(layer, Delay):
                self._assume(layer, self.elements.numbers[i + 1], self.network.takes[cell.name])
            taken = self._consume(cell, list(self.network.takes[cell.name]))
            self.taken[cell.name] = taken[0].lanes, taken[0].width
            if cell.module == "hg_unfold":
                sent = unrolled_windows.unfold(cell, taken[0])
            elif cell.module in ROUTING:
                if cell.module == "hg_pad" and isinstance(layer.result.encoding, FloatKey):
                    raise broken(layer.name, "the border of a float32 tensor has no code.")
                sent = move(cell, taken, layer.result.type.signed)
            elif isinstance(layer, NormRows):
                sent = self._normalized(i, layer, cell, taken)
                proof = partial(self._prove_normalized, layer, own, entry)
            elif cell is not own[-1]:
                sent = self._partly(layer, cell, taken)
            elif isinstance(layer, Map | BinaryMap | FloatBinary):
                sent, proof = self._function(i, layer, tuple(own), self._partly(layer, cell, taken), entry)
            else:
                sent, proof = self._computed(i, layer, cell, taken, entry)
            self._send(cell, list(self.network.sends[cell.name]), sent)
        if not own:
            self.elements.expect(layer.name, sent, i + 1, self.layout.orders[i + 1])
        return proof

    def _known(self, layer: Layer, cell: Cell) -> Cell:
        """The instance; one of a module of adders or counters as what it stands for in this layer."""
        cells = self.network.cells
        if cell.module in (f"{cell.name}_adders", f"{cell.name}_counts") and isinstance(layer, Linear | Convolution):
            type_, bits, outputs = layer.source.type, layer.result.type.bits, len(layer.weight)
            pad = layer.pad if isinstance(layer, Convolution) and line_buffer.has_border(layer) else 0
            x = type_.bits, min(type_.lo, pad), max(type_.hi, pad)
            shape = outputs, layer.weight.size // outputs
            self.written.add(cell.module)
            cell = cells[cell.name] = stands_for(cell, f"{self.top}_", shape, x, bits, cells.values())
        check_flips(cell, cells.values())
        return cell

    def _normalized(self, i: int, layer: NormRows, cell: Cell, taken: list[StreamContents]) -> StreamContents:
        """The stream behind one of the three instances of a normalization."""
        order = self.layout.of_input(self.graph, i)
        if cell.module == normalization.MODULES[1]:
            return normalization.row_roots(cell, taken[0])
        if cell.module not in normalization.MODULES:
            raise broken(layer.name, f"{cell.name} ({cell.module}) is none of its units.")
        self.elements.expect(layer.name, taken[0], layer.inputs[0], order)
        if cell.module == normalization.MODULES[0]:
            return normalization.row_moments(cell, taken[0], layer, order)
        numbers = self.elements.numbers[i + 1]
        return normalization.row_elements(cell, taken[0], taken[1], layer, order, numbers)

    def _prove_normalized(self, layer: NormRows, own: list[Cell], entry: dict[str, Any]) -> Summary:
        if [cell.module for cell in own] != list(normalization.MODULES):
            raise broken(layer.name, f"{[cell.module for cell in own]} are not {', '.join(normalization.MODULES)}.")
        normalization.prove(layer, (own[0], own[1], own[2]))
        return Summary(layer.name, entry["kind"], modules(own), layer.result.size, 0, 0)

    def _partly(self, layer: Layer, cell: Cell, taken: list[StreamContents]) -> StreamContents:
        """The stream behind an instance that is one of several that realize a function together."""
        if cell.module == "hg_join":
            join = JoinModel(cell, (taken[0], taken[1]))
            if not isinstance(layer, BinaryMap):
                raise broken(layer.name, f"{cell.name} joins two streams, the layer has one.")
            a, b = taken
            return replace(a, bits=join.out_bits, units=(*a.units, *b.units, cell), operands=(a, b))
        if cell.module == "hg_f32_join":
            a, b = taken
            if not isinstance(layer, BinaryMap | FloatBinary):
                raise broken(layer.name, f"{cell.name} joins two streams, the layer has one.")
            for side in (a, b):
                fits(cell, side, cell.number("LANES", 1), 32)
            if a.beats != b.beats:
                raise broken(cell.name, f"it takes {a.beats} beats of one stream, {b.beats} of the other.")
            return replace(a, units=(*a.units, *b.units, cell), operands=(a, b))
        if len(taken) != 1:
            raise broken(layer.name, f"{cell.name} ({cell.module}) is none of its units.")
        lanes, before, after = widths(cell)
        fits(cell, taken[0], lanes, before)
        return replace(taken[0], bits=after, units=(*taken[0].units, cell))

    def _function(
        self,
        i: int,
        layer: Map | BinaryMap | FloatBinary,
        own: tuple[Cell, ...],
        stream: StreamContents,
        entry: dict[str, Any],
    ) -> tuple[StreamContents, LayerProof]:
        """The stream behind the last instance of a function, and the proof of the function."""
        name, type_ = layer.name, layer.result.type
        if stream.units != own:
            raise broken(
                name, f"{[c.name for c in own]} do not follow each other, {[c.name for c in stream.units]} do."
            )
        if stream.bits != type_.bits:
            raise broken(name, f"its codes have {stream.bits} bits, {type_} has another width.")
        sides = stream.operands or (stream,)
        if len(sides) != len(layer.inputs):
            raise broken(name, f"it takes {len(layer.inputs)} streams, {own[-1].name} gets {len(sides)}.")
        orders = [self.layout.of_input(self.graph, i, n) for n in range(len(sides))]
        for side, value, order in zip(sides, layer.inputs, orders, strict=True):
            self.elements.expect(name, replace(side, units=()), value, order)
        if (orders[0] != orders[-1]).any() or (sides[0].filled != sides[-1].filled).any():
            raise broken(name, "its operands do not arrive in the same order.")
        q = QuantizerHardware(layer, own, stream, orders[0], entry)
        intervals = [value_range(self.graph, value) for value in layer.inputs]

        def proof() -> Summary:
            if isinstance(layer, Map):
                before = replace(stream, bits=widths(own[0])[1])
                return check_map(replace(q, stream=before), layer, intervals[0], self.elements, self.memories)
            return check_binary_map(q, layer, (intervals[0], intervals[1]), self.elements, self.memories)

        return stream.computed(self.elements.numbers[i + 1][orders[0]], type_), proof

    def _computed(
        self, i: int, layer: Layer, cell: Cell, taken: list[StreamContents], entry: dict[str, Any]
    ) -> tuple[StreamContents, LayerProof]:
        """The stream behind an instance that is a whole layer, and the proof of the layer."""
        name, elements, value = layer.name, self.elements, i + 1
        orders = [self.layout.of_input(self.graph, i, n) for n in range(len(layer.inputs))]
        if len(taken) != len(orders):
            raise broken(name, f"{cell.name} takes {len(taken)} streams, the layer {len(orders)}.")
        stream, order = taken[0], orders[0]
        at_once = isinstance(layer, Convolution | Pooling) and cell.module in (
            "hg_mvu",
            "hg_dwmvu",
            "hg_pool_tree",
            ADDERS,
        )
        for taken_, source, order_ in zip(taken, layer.inputs, orders, strict=True):
            if not (at_once or isinstance(layer, MatrixProduct)):
                elements.expect(name, taken_, source, order_)
        match layer:
            case Linear() | Convolution():
                if isinstance(layer, Linear):
                    sent = weights.matrix(cell, stream, layer, order, elements, value)
                else:
                    sent = weights.convolution(cell, stream, layer, elements, value)
                elements.limit(value, layer.lo, layer.hi)  # Behind weights that are wrong, those of the model.
                return sent, lambda: self._sums(layer, cell, stream, order, entry)
            case MatrixProduct():
                sent = matrix_product.product(cell, taken, layer, self.layout.orders[value], elements, value)
                return sent, lambda: self._product(layer, cell, entry)
            case Pooling():
                find = unrolled_windows.pool if at_once else line_buffer.pool
                sent = find(cell, stream, layer, order, elements, value)
                return sent, lambda: self._pool(layer, cell, entry)
            case PackBytes():
                return self._pack_bytes(value, layer, cell, taken, orders)
            case IntegerRows():
                row_beats(layer, cell, stream, vectors(name, order, layer.source.shape[-1])[1])
                sent = stream.computed(elements.numbers[value][order], layer.result.type)
                return sent, lambda: self._rows(layer, cell, stream)
            case SoftmaxRows():
                sent = softmax.softmax(cell, stream, layer, order, elements, value)
                return sent, lambda: self._softmax(layer, cell, order)
            case _:
                assert isinstance(layer, ArgMaxLayer)
                return self._argmax(value, layer, cell, stream, order)

    def _sums(
        self, layer: Linear | Convolution, cell: Cell, stream: StreamContents, order: Array, entry: dict[str, Any]
    ) -> Summary:
        lo, hi = weights.check(cell, stream, layer, order, self.elements, self.memories)
        for what, found in (("lo", lo), ("hi", hi)):
            same(layer.name, f"certificate.json, {what} of the sums of row", entry[what], found.tolist())
        if isinstance(layer, Linear):
            said = [entry["rows"], entry["columns"]]
            same(layer.name, "certificate.json, rows and columns", said, list(layer.weight.shape))
        else:
            same(layer.name, "certificate.json, weights", entry["weights"], list(layer.weight.shape))
            weights.check_window(layer, entry)
            same(layer.name, "certificate.json, groups", [entry["groups"]], [layer.groups])
        return Summary(layer.name, entry["kind"], cell.module, len(lo), 0, 0)

    def _product(self, layer: MatrixProduct, cell: Cell, entry: dict[str, Any]) -> Summary:
        ends = matrix_product.check(cell, layer)
        wanted = {
            "columns": [layer.depth],
            "factors": layer.factors,
            "offsets": layer.offsets,
            "lo": ends[:1],
            "hi": ends[1:],
        }
        for key, value in wanted.items():
            said = entry[key] if isinstance(entry[key], list) else [entry[key]]
            same(layer.name, f"certificate.json, {key}", said, list(value))
        return Summary(layer.name, "product", cell.module, layer.result.shape[-1], 0, 0)

    def _pool(self, layer: Pooling, cell: Cell, entry: dict[str, Any]) -> Summary:
        weights.check_window(layer, entry)
        if entry["reduction"] != layer.kind.value:
            raise broken(layer.name, f"certificate.json: the reduction is {entry['reduction']!r}.")
        return Summary(layer.name, "pool", cell.module, layer.result.shape[-1], 0, 0)

    def _rows(self, layer: IntegerRows, cell: Cell, stream: StreamContents) -> Summary:
        type_ = layer.source.type
        readable(cell.name, stream, type_, cell.number("IN_W"), int(type_.signed))
        check_rows(layer, cell, type_.lo, type_.hi, self.memories)
        return Summary(layer.name, "integer rows", cell.module, 1, 0, 0)

    def _pack_bytes(
        self, value: int, layer: PackBytes, cell: Cell, taken: list[StreamContents], orders: list[Array]
    ) -> tuple[StreamContents, LayerProof]:
        join = JoinModel(cell, (taken[0], taken[1]))
        if join.mode != 2 or join.bits != (8, 8):
            raise broken(layer.name, f"{cell.name} does not put two codes of 8 bits side by side.")
        if (orders[0] != orders[1]).any() or (taken[0].filled != taken[1].filled).any():
            raise broken(layer.name, "its operands do not arrive in the same order.")
        sent = taken[0].computed(self.elements.numbers[value][orders[0]], layer.result.type)
        return sent, lambda: Summary(layer.name, "pair", cell.module, 1, 0, 0)

    def _softmax(self, layer: SoftmaxRows, cell: Cell, order: Array) -> Summary:
        softmax.check_mask(cell, layer, order, self.memories)
        softmax.check_tables(cell, layer, self.memories)
        return Summary(layer.name, "softmax", cell.module, layer.source.shape[-1], 0, 0)

    def _argmax(
        self, value: int, layer: ArgMaxLayer, cell: Cell, stream: StreamContents, order: Array
    ) -> tuple[StreamContents, LayerProof]:
        only(cell, _ARGMAX)
        count, type_ = layer.source.shape[-1], layer.source.type
        lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
        fits(cell, stream, lanes, cell.number("IN_W", 1))
        readable(cell.name, stream, type_, cell.number("IN_W"), cell.number("IN_SIGNED"))
        whole(cell, stream, beats, "a vector has")
        rows, columns = vectors(layer.name, order, count)
        if lanes * beats != count or not stream.filled.all() or (np.diff(columns) < 0).any():
            raise broken(
                layer.name, f"{cell.name} has {lanes} x {beats} elements in turn, a vector {count} from first to last."
            )
        if cell.number("INDEX_W", 1) != layer.result.type.bits:
            raise broken(
                layer.name, f"INDEX_W of {cell.name} is {cell.parameters['INDEX_W']}, not {layer.result.type}."
            )
        sent = StreamContents(
            self.elements.numbers[value][rows][:, None],
            layer.result.type.bits,
            layer.result.type.lo,
            layer.result.type.hi,
        )
        return sent, lambda: Summary(layer.name, "argmax", cell.module, 1, 0, 0)


def modules(cells: list[Cell]) -> str:
    """The names of the modules, for people."""
    return " + ".join(cell.module for cell in cells)


def _shown(cell: Cell) -> dict[str, int | str]:
    return {name: str(value) if isinstance(value, SizedConstant) else value for name, value in cell.parameters.items()}


def hardware_layers(graph: Graph) -> list[int]:
    """Indices of the layers that have hardware."""
    return [i for i, layer in enumerate(graph.layers) if not isinstance(layer, View | StreamedInput | StreamedOutputs)]
