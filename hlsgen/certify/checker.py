"""Proves each layer of the model: its instances compute the layer, and the certificate states the same.

The checker walks through the instances in the order of the certificate. This order is valid if every stream is sent
before it is consumed, which the walk checks. The output of an instance follows only from the contract of its module,
its parameters and its input streams. If the output port gets the right elements, proven instances computed each of
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlsgen import ir
from hlsgen.certify import weights
from hlsgen.certify.adder_modules import ADDERS, as_library_unit, check_flips
from hlsgen.certify.binary_functions import WAYS, JoinModel, check_binary_map
from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.float_joins import check_float_inputs
from hlsgen.certify.frame_states import MEMORY, START, FrameStates
from hlsgen.certify.loops import FeedbackStreams
from hlsgen.certify.models import line_buffer, matrix_product, normalization, softmax, unrolled_windows
from hlsgen.certify.models.lut_network import MODULE as NEURONS
from hlsgen.certify.models.routing import ROUTING, check_beat, check_parameters, groups_in_frame, move
from hlsgen.certify.models.rows import ROWS, check_rows, row_beats
from hlsgen.certify.netlist_reader import Cell, Memories, SizedConstant, broken
from hlsgen.certify.neurons import codes_stream, matrix_before, prove_neurons
from hlsgen.certify.port_wiring import PLAIN_ENDS, PortFrame
from hlsgen.certify.program_bounds import bounds_of
from hlsgen.certify.program_modules import PROGRAM, check_beat_of_program, check_program
from hlsgen.certify.program_statements import read_program
from hlsgen.certify.quantizers import QuantizerHardware, Summary, check_equal, check_map, widths
from hlsgen.certify.reachable_codes import limit_codes, reachable_sums
from hlsgen.certify.stream_contents import ANYTHING, Elements, StreamContents, check_codes, vector_order
from hlsgen.ir.equal_programs import unproven_output
from hlsgen.ir.programs import MAX_BITS, MAX_SUMMANDS, Program, excess, most_summands
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.ir.value_ranges import value_range
from hlsgen.numerics.fixed import Array

#: The kind of each layer in the certificate.
KINDS: dict[type[ir.Layer], str] = {
    ir.Map: "quantizer",
    ir.Linear: "linear",
    ir.Convolution: "convolution",
    ir.Pooling: "pool",
    ir.Rearrange: "rearrangement",
    ir.Concatenation: "concatenation",
    ir.BinaryMap: "merge",
    ir.FloatBinary: "float joint",
    ir.PackBytes: "pair",
    ir.ArgMaxLayer: "argmax",
    ir.MatrixProduct: "product",
    ir.NormRows: "normalization",
    ir.IntegerRows: "integer rows",
    ir.Delay: "state",
    ir.SoftmaxRows: "softmax",
}
#: Modules of layers that are not functions of single elements.
_MODULES: dict[type[ir.Layer], tuple[str, ...]] = {
    ir.Linear: ("hg_mvu", "hg_mvu_words", ADDERS),
    ir.Convolution: ("hg_conv", "hg_dwconv", "hg_mvu", "hg_mvu_words", "hg_dwmvu", ADDERS),
    ir.Pooling: ("hg_pool", "hg_reduce", "hg_pool_tree"),
    ir.PackBytes: ("hg_join_pair",),
    ir.ArgMaxLayer: ("hg_argmax",),
    ir.MatrixProduct: ("hg_dynmvu",),
    ir.IntegerRows: (*ROWS, PROGRAM),
    ir.SoftmaxRows: ("hg_softmax",),
}
_ARGMAX = "LANES BEATS IN_W IN_SIGNED INDEX_W"

#: Proves the values of a layer. The places of its elements are proven before.
LayerProof = Callable[[], Summary]


class Checker:
    """Walks through the layers.

    streams            streams that an instance has sent and none has consumed yet
    input_beats        elements and bits of a beat of the (first) input stream of each instance
    last_instance      layer -> the instance that sends its result
    frames             contents of the input ports and the output ports; keep: True if they have tkeep
    generated_modules  modules that are generated for one instance and were read by a proof
    """

    def __init__(
        self,
        graph: ir.Graph,
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
        self.elements, self.feedback = Elements(graph), FeedbackStreams(graph)
        self.streams: dict[str, StreamContents] = {}
        self.input_beats: dict[str, tuple[int, int]] = {}
        self.last_instance: dict[str, str] = {}
        self.generated_modules: set[str] = set()
        self.states = FrameStates(graph, layout, self.elements, memories)
        self.waiting: list[Cell] = []

    def start(self) -> None:
        """Prove that the input ports send all elements of the input in order. Raises HG055."""
        values = self.graph.streamed_inputs
        values = values[: len(values) - len(self.graph.states)]
        for value_of_port, port, frame in zip(values, self.network.inputs, self.frames[0], strict=True):
            self._start(*value_of_port, *port, frame)

    def start_states(self, instances: list[str]) -> None:
        """Prove the memories of states between frames, and the instances around them. Raises HG055."""
        self.waiting = [self.network.cells[name] for name in instances]
        self._states()

    def _states(self) -> None:
        """Prove the waiting instances whose streams have been sent."""
        progress = True
        while progress:
            progress = False
            for cell in list(self.waiting):
                names = list(self.network.streams_in[cell.name])
                # The second stream of a memory comes from the frame before.
                taken_names = names[:1] if cell.module == MEMORY else names
                if any(name not in self.streams for name in taken_names):
                    continue
                self.waiting.remove(cell)
                progress = True
                inputs = self._consume(cell, taken_names)
                self.input_beats[cell.name] = inputs[0].lanes, inputs[0].width
                if cell.module == MEMORY:
                    output = self.states.next_state(cell, inputs[0], names[1])
                elif cell.module == START:
                    output = self.states.start(cell, inputs[0], self.frames[0][0].words)
                elif cell.module in ROUTING:
                    output = move(cell, inputs, signed=True)
                else:
                    raise broken(cell.name, f"{cell.module} is not an instance of a state.")
                self._send(cell, list(self.network.streams_out[cell.name]), output)

    def _start(self, number: int, _offset: int, value: ir.Value, cell: Cell, wire: str, frame: PortFrame) -> None:
        """Do this for one port and a value of the graph."""
        bits = 32 if isinstance(value.encoding, ir.FloatKey) else value.type.bits
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
        """Prove that the output ports get all elements of the output in order, without gaps. Raises HG055."""
        self._states()
        if self.waiting:
            raise broken(self.waiting[0].name, "it gets a stream that nothing sends.")
        for cell, name in self.states.end():
            self.states.check_returned(cell, self._consume(cell, [name])[0])
        values = self.graph.streamed_outputs
        values = values[: len(values) - len(self.graph.states)]
        for value_of_port, port, frame in zip(values, self.network.outputs, self.frames[1], strict=True):
            self._end(*value_of_port, *port, frame)
        self.feedback.end()

    def _end(self, number: int, _offset: int, value: ir.Value, cell: Cell, wire: str, frame: PortFrame) -> None:
        """Do this for one port and a value of the graph."""
        stream = self._consume(cell, [wire])[0]
        check_codes(cell.name, stream, value.type, stream.bits, None)
        self.elements.expect(cell.name, stream, number, self.layout.orders[number])
        filled = stream.filled.ravel()
        if not filled[: filled.sum()].all() or (len(filled) - filled.sum()) >= stream.lanes:
            raise broken(cell.name, "there are empty lanes between the elements of the output.")
        self._frame(cell, stream, frame)

    @staticmethod
    def _frame(cell: Cell, stream: StreamContents, frame: PortFrame) -> None:
        """Check that the port has the beats of the stream, each in its slot of the words."""
        words = {"TDATA_W": frame.width, "BEATS": stream.beats}
        if cell.module in PLAIN_ENDS:
            words = {}
            if stream.beats != 1:
                raise broken(cell.name, f"a frame has {stream.beats} beats, but there is no handshake.")
        expected = {"WIDTH": stream.width, **words}
        if "SLOT" in cell.parameters:
            expected["SLOT"] = frame.slot
        # CUT depends on both ends of the core: see `port_wiring`.
        if {name: value for name, value in cell.parameters.items() if name != "CUT"} != expected:
            raise broken(cell.name, f"parameters are {_shown(cell)}, a frame of this core needs {expected}.")

    def _send(self, cell: Cell, names: list[str], stream: StreamContents) -> None:
        for name in names:
            if self.network.widths[name] != stream.width:
                raise broken(
                    cell.name, f"it sends {stream.width} bits on stream {name} of {self.network.widths[name]} bits."
                )
            if not self.feedback.check_sent(name, stream, self.elements.numbers):
                self.streams[name] = stream

    def _consume(self, cell: Cell, names: list[str]) -> list[StreamContents]:
        missing = [name for name in names if name not in self.streams]
        if missing:
            raise broken(cell.name, f"certificate.json lists it before the instance that sends {missing[0]}.")
        return [self.streams.pop(name) for name in names]

    def _assume(self, layer: ir.Delay, numbers: Array, names: tuple[str, ...]) -> None:
        """Assume the contents of the feedback streams that a unit of a state consumes before they are sent."""
        for name in names:
            if name not in self.streams:
                self.streams[name] = self.feedback.assume(name, layer, numbers, self.network.widths[name])

    # ----------------------------------------------------------------------- layers

    def layer(self, i: int, entry: dict[str, Any]) -> LayerProof:
        """Prove the places of a layer's elements, instance by instance. Raises HG055.

        Returns the proof of their values. It runs later, so a problem in it does not stop the walk.
        """
        layer = self.graph.layers[i]
        if isinstance(layer, ir.Linear) and not entry["instances"]:
            return self._matrix_in_tables(i, layer, entry)
        cells = [self._resolved_cell(layer, self.network.cells[x["instance"]]) for x in entry["instances"]]
        computing_cells = [cell for cell in cells if cell.module not in ROUTING | {"hg_unfold"}]
        allowed = _MODULES.get(type(layer))
        if allowed and not (len(computing_cells) == 1 and computing_cells[0].module in allowed):
            raise broken(layer.name, f"{[c.module for c in computing_cells]} is not {' or '.join(allowed)}.")
        if isinstance(layer, ir.Rearrange | ir.Concatenation | ir.Delay) == bool(computing_cells):
            raise broken(layer.name, f"{[c.module for c in computing_cells]} do not compute the layer.")
        check_float_inputs(layer, computing_cells)
        if computing_cells:
            self.last_instance[layer.name] = computing_cells[-1].name
        proof: LayerProof = lambda: Summary(layer.name, entry["kind"], modules(cells), layer.result.size, 0, 0)  # noqa: E731
        for cell in cells:
            if isinstance(layer, ir.Delay):
                self._assume(layer, self.elements.numbers[i + 1], self.network.streams_in[cell.name])
            inputs = self._consume(cell, list(self.network.streams_in[cell.name]))
            self.input_beats[cell.name] = inputs[0].lanes, inputs[0].width
            if cell.module == "hg_unfold":
                output = unrolled_windows.unfold(cell, inputs[0])
            elif cell.module in ROUTING:
                if cell.module == "hg_pad" and isinstance(layer.result.encoding, ir.FloatKey):
                    raise broken(layer.name, "the border of a float32 tensor has no code.")
                output = move(cell, inputs, layer.result.type.signed)
            elif isinstance(layer, ir.NormRows):
                output = self._normalized(i, layer, cell, inputs)
                proof = partial(self._prove_normalized, layer, computing_cells, entry)
            elif isinstance(layer, ir.Map) and cell.module == NEURONS and len(computing_cells) == 1:
                output, proof = self._neurons(i, layer, cell, inputs, entry)
            elif cell is not computing_cells[-1]:
                output = self._through_unit(layer, cell, inputs)
            elif isinstance(layer, ir.Map | ir.BinaryMap | ir.FloatBinary):
                output, proof = self._function(
                    i, layer, tuple(computing_cells), self._through_unit(layer, cell, inputs), entry
                )
            else:
                output, proof = self._computed(i, layer, cell, inputs, entry)
            self._send(cell, list(self.network.streams_out[cell.name]), output)
        if not computing_cells:
            self.elements.expect(layer.name, output, i + 1, self.layout.orders[i + 1])
        return proof

    def _resolved_cell(self, layer: ir.Layer, cell: Cell) -> Cell:
        """The instance; an instance of a generated module as the library module that it replaces."""
        cells = self.network.cells
        if cell.module in (f"{cell.name}_adders", f"{cell.name}_counts") and isinstance(
            layer, ir.Linear | ir.Convolution
        ):
            type_, bits, outputs = layer.source.type, layer.result.type.bits, len(layer.weight)
            pad = layer.pad if isinstance(layer, ir.Convolution) and line_buffer.has_border(layer) else 0
            x = type_.bits, min(type_.lo, pad), max(type_.hi, pad)
            shape = outputs, layer.weight.size // outputs
            self.generated_modules.add(cell.module)
            cell = cells[cell.name] = as_library_unit(cell, f"{self.top}_", shape, x, bits, cells.values())
        if cell.module == f"{cell.name}_{PROGRAM}" and isinstance(layer, ir.IntegerRows):
            self.generated_modules.add(cell.module)
            cell = cells[cell.name] = replace(cell, module=PROGRAM)
        check_flips(cell, cells.values())
        return cell

    def _matrix_in_tables(self, i: int, layer: ir.Linear, entry: dict[str, Any]) -> LayerProof:
        """A matrix without an instance. The tables of its quantizer compute it; nothing else can consume its sums."""
        self.elements.limit(i + 1, *reachable_sums(layer, self.elements))

        def proof() -> Summary:
            self._check_listed_sums(layer, entry, layer.lo, layer.hi)
            return Summary(layer.name, entry["kind"], NEURONS, len(layer.weight), 0, 0)

        return proof

    def _neurons(
        self, i: int, layer: ir.Map, cell: Cell, inputs: list[StreamContents], entry: dict[str, Any]
    ) -> tuple[StreamContents, LayerProof]:
        """The stream after a matrix and its quantizer in tables, and the proof of both."""
        matrix = matrix_before(layer.name, layer, self.elements)
        (stream,) = inputs
        self.elements.expect(
            layer.name, stream, matrix.inputs[0], self.layout.of_input(self.graph, layer.inputs[0] - 1)
        )
        order = self.layout.of_input(self.graph, i)
        output = codes_stream(cell, stream, layer, matrix, self.elements.numbers[i + 1][order])
        q = QuantizerHardware(layer, (cell,), output, order, entry)
        interval = q.stated_intervals()
        limit_codes(layer, self.elements, i + 1)
        return output, lambda: prove_neurons(q, layer, matrix, stream, interval, self.elements)

    def _normalized(self, i: int, layer: ir.NormRows, cell: Cell, inputs: list[StreamContents]) -> StreamContents:
        """The stream after one of the three instances of a normalization."""
        order = self.layout.of_input(self.graph, i)
        if cell.module == normalization.MODULES[1]:
            return normalization.row_roots(cell, inputs[0])
        if cell.module not in normalization.MODULES:
            raise broken(layer.name, f"{cell.name} ({cell.module}) is not one of its units.")
        self.elements.expect(layer.name, inputs[0], layer.inputs[0], order)
        if cell.module == normalization.MODULES[0]:
            return normalization.row_moments(cell, inputs[0], layer, order)
        numbers = self.elements.numbers[i + 1]
        return normalization.row_elements(cell, inputs[0], inputs[1], layer, order, numbers)

    def _prove_normalized(self, layer: ir.NormRows, units: list[Cell], entry: dict[str, Any]) -> Summary:
        if [cell.module for cell in units] != list(normalization.MODULES):
            raise broken(layer.name, f"{[cell.module for cell in units]} are not {', '.join(normalization.MODULES)}.")
        normalization.prove(layer, (units[0], units[1], units[2]))
        return Summary(layer.name, entry["kind"], modules(units), layer.result.size, 0, 0)

    def _through_unit(self, layer: ir.Layer, cell: Cell, inputs: list[StreamContents]) -> StreamContents:
        """The stream after an instance that computes only a part of a function."""
        if cell.module in WAYS:
            join = JoinModel(cell, (inputs[0], inputs[1]))
            if not isinstance(layer, ir.BinaryMap):
                raise broken(layer.name, f"{cell.name} joins two streams, the layer has one.")
            a, b = inputs
            return replace(a, bits=join.out_bits, units=(*a.units, *b.units, cell), operands=(a, b))
        if cell.module == "hg_f32_join":
            a, b = inputs
            if not isinstance(layer, ir.BinaryMap | ir.FloatBinary):
                raise broken(layer.name, f"{cell.name} joins two streams, the layer has one.")
            for side in (a, b):
                check_beat(cell, side, cell.number("LANES", 1), 32)
            if a.beats != b.beats:
                raise broken(cell.name, f"its input streams have {a.beats} and {b.beats} beats.")
            return replace(a, units=(*a.units, *b.units, cell), operands=(a, b))
        if len(inputs) != 1:
            raise broken(layer.name, f"{cell.name} ({cell.module}) is not one of its units.")
        lanes, in_bits, out_bits = widths(cell)
        check_beat(cell, inputs[0], lanes, in_bits)
        return replace(inputs[0], bits=out_bits, units=(*inputs[0].units, cell))

    def _function(
        self,
        i: int,
        layer: ir.Map | ir.BinaryMap | ir.FloatBinary,
        units: tuple[Cell, ...],
        stream: StreamContents,
        entry: dict[str, Any],
    ) -> tuple[StreamContents, LayerProof]:
        """The stream after the last instance of a function, and the proof of the function."""
        name, type_ = layer.name, layer.result.type
        if stream.units != units:
            raise broken(name, f"{[c.name for c in units]} are not a chain, but {[c.name for c in stream.units]} are.")
        if stream.bits != type_.bits:
            raise broken(name, f"its codes have {stream.bits} bits, {type_} has another width.")
        sides = stream.operands or (stream,)
        if len(sides) != len(layer.inputs):
            raise broken(name, f"it has {len(layer.inputs)} inputs, {units[-1].name} has {len(sides)}.")
        orders = [self.layout.of_input(self.graph, i, n) for n in range(len(sides))]
        for side, value, order in zip(sides, layer.inputs, orders, strict=True):
            self.elements.expect(name, replace(side, units=()), value, order)
        if (orders[0] != orders[-1]).any() or (sides[0].filled != sides[-1].filled).any():
            raise broken(name, "its operands do not arrive in the same order.")
        q = QuantizerHardware(layer, units, stream, orders[0], entry)
        intervals = [value_range(self.graph, value) for value in layer.inputs]
        if isinstance(layer, ir.Map) and stream.beats == 1:
            # Elements with lanes of their own have intervals of their own, which the certificate states.
            intervals = [q.stated_intervals()]
            limit_codes(layer, self.elements, i + 1)

        def proof() -> Summary:
            if isinstance(layer, ir.Map):
                unit_input = replace(stream, bits=widths(units[0])[1])
                return check_map(replace(q, stream=unit_input), layer, intervals[0], self.elements, self.memories)
            return check_binary_map(q, layer, (intervals[0], intervals[1]), self.elements, self.memories)

        return stream.computed(self.elements.numbers[i + 1][orders[0]], type_), proof

    def _computed(
        self, i: int, layer: ir.Layer, cell: Cell, inputs: list[StreamContents], entry: dict[str, Any]
    ) -> tuple[StreamContents, LayerProof]:
        """The stream after an instance that is an entire layer, and the proof of the layer."""
        name, elements, value = layer.name, self.elements, i + 1
        orders = [self.layout.of_input(self.graph, i, n) for n in range(len(layer.inputs))]
        if len(inputs) != len(orders):
            raise broken(name, f"{cell.name} has {len(inputs)} inputs, the layer {len(orders)}.")
        stream, order = inputs[0], orders[0]
        has_entire_windows = isinstance(layer, ir.Convolution | ir.Pooling) and cell.module in (
            "hg_mvu",
            "hg_mvu_words",
            "hg_dwmvu",
            "hg_pool_tree",
            ADDERS,
        )
        for input_, source, order_ in zip(inputs, layer.inputs, orders, strict=True):
            if not (has_entire_windows or isinstance(layer, ir.MatrixProduct)):
                elements.expect(name, input_, source, order_)
        match layer:
            case ir.Linear() | ir.Convolution():
                if isinstance(layer, ir.Linear):
                    output = weights.matrix(cell, stream, layer, order, elements, value)
                else:
                    output = weights.convolution(cell, stream, layer, elements, value)
                # The model's range, even if the weights are wrong.
                elements.limit(value, *reachable_sums(layer, elements))
                return output, lambda: self._sums(layer, cell, stream, order, entry)
            case ir.MatrixProduct():
                output = matrix_product.product(cell, inputs, layer, self.layout.orders[value], elements, value)
                return output, lambda: self._product(layer, cell, entry)
            case ir.Pooling():
                find = unrolled_windows.pool if has_entire_windows else line_buffer.pool
                output = find(cell, stream, layer, order, elements, value)
                return output, lambda: self._pool(layer, cell, entry)
            case ir.PackBytes():
                return self._pack_bytes(value, layer, cell, inputs, orders)
            case ir.IntegerRows(function=Program() as program):
                return self._program(value, layer, program, cell, stream, order)
            case ir.IntegerRows():
                row_beats(layer, cell, stream, vector_order(name, order, layer.source.shape[-1])[1])
                output = stream.computed(elements.numbers[value][order], layer.result.type)
                return output, lambda: self._rows(layer, cell, stream)
            case ir.SoftmaxRows():
                output = softmax.softmax(cell, stream, layer, order, elements, value)
                return output, lambda: self._softmax(layer, cell, order)
            case _:
                assert isinstance(layer, ir.ArgMaxLayer)
                return self._argmax(value, layer, cell, stream, order)

    def _sums(
        self, layer: ir.Linear | ir.Convolution, cell: Cell, stream: StreamContents, order: Array, entry: dict[str, Any]
    ) -> Summary:
        lo, hi = weights.check(cell, stream, layer, order, self.elements, self.memories)
        self._check_listed_sums(layer, entry, lo, hi)
        return Summary(layer.name, entry["kind"], cell.module, len(lo), 0, 0)

    @staticmethod
    def _check_listed_sums(layer: ir.Linear | ir.Convolution, entry: dict[str, Any], lo: Array, hi: Array) -> None:
        """Check the bounds and sizes of a matrix in the certificate. Raises HG055."""
        for end, bounds in (("lo", lo), ("hi", hi)):
            check_equal(layer.name, f"certificate.json, {end} of the sums of row", entry[end], bounds.tolist())
        if isinstance(layer, ir.Linear):
            listed_shape = [entry["rows"], entry["columns"]]
            check_equal(layer.name, "certificate.json, rows and columns", listed_shape, list(layer.weight.shape))
        else:
            check_equal(layer.name, "certificate.json, weights", entry["weights"], list(layer.weight.shape))
            weights.check_listed_window(layer, entry)
            check_equal(layer.name, "certificate.json, groups", [entry["groups"]], [layer.groups])

    def _product(self, layer: ir.MatrixProduct, cell: Cell, entry: dict[str, Any]) -> Summary:
        ends = matrix_product.check(cell, layer)
        expected = {
            "columns": [layer.depth],
            "factors": layer.factors,
            "offsets": layer.offsets,
            "lo": ends[:1],
            "hi": ends[1:],
        }
        for key, value in expected.items():
            listed_values = entry[key] if isinstance(entry[key], list) else [entry[key]]
            check_equal(layer.name, f"certificate.json, {key}", listed_values, list(value))
        return Summary(layer.name, "product", cell.module, layer.result.shape[-1], 0, 0)

    def _pool(self, layer: ir.Pooling, cell: Cell, entry: dict[str, Any]) -> Summary:
        weights.check_listed_window(layer, entry)
        if entry["reduction"] != layer.kind.value:
            raise broken(layer.name, f"certificate.json: the reduction is {entry['reduction']!r}.")
        return Summary(layer.name, "pool", cell.module, layer.result.shape[-1], 0, 0)

    def _rows(self, layer: ir.IntegerRows, cell: Cell, stream: StreamContents) -> Summary:
        type_ = layer.source.type
        check_codes(cell.name, stream, type_, cell.number("IN_W"), int(type_.signed))
        check_rows(layer, cell, type_.lo, type_.hi, self.memories)
        return Summary(layer.name, "integer rows", cell.module, 1, 0, 0)

    def _program(
        self, value: int, layer: ir.IntegerRows, program: Program, cell: Cell, stream: StreamContents, order: Array
    ) -> tuple[StreamContents, LayerProof]:
        """The stream after a module that runs a program, and its proof."""
        if cell.module != PROGRAM or cell.parameters:
            raise broken(layer.name, f"{cell.name} is {cell.module}, not the module of this layer's program.")
        rows, columns = vector_order(layer.name, order, layer.source.shape[-1])
        check_beat_of_program(layer, cell, stream, columns.tolist())
        type_ = layer.result.type
        numbers = self.elements.numbers[value].reshape(-1, layer.result.shape[-1])[rows]

        statement = next((entry.get("program") for entry in self.entries if entry["layer"] == layer.name), None)

        def proof() -> Summary:
            hardware = program
            if statement is not None:
                hardware = read_program(layer.name, statement, layer.source.shape[-1])
                self._check_equal(layer.name, program, hardware)
            check_program(layer, hardware, cell, f"{self.top}_", self.memories.folder)
            return Summary(layer.name, "integer rows", cell.module, len(hardware.operations), 0, 0)

        return StreamContents(numbers, type_.bits, type_.lo, type_.hi), proof

    def _check_equal(self, name: str, model: Program, hardware: Program) -> None:
        """Check that the program of a module has the outputs of the model's program. Raises HG055."""
        if len(model.outputs) != len(hardware.outputs):
            raise broken(name, f"certificate.json: its program has {len(hardware.outputs)} outputs.")
        if most_summands(hardware) > MAX_SUMMANDS:
            raise broken(name, f"certificate.json: the sums of its program have more than {MAX_SUMMANDS} summands.")
        too_wide = excess(hardware, bounds_of(hardware))
        if too_wide is not None:
            text = f"operation {too_wide[0]} of its program has {too_wide[1]} bits, more than {MAX_BITS}."
            raise broken(name, f"certificate.json: {text}")
        number = unproven_output(model, hardware, bounds_of)
        if number is not None:
            raise broken(name, f"certificate.json: output {number} of its program is not proven equal to the model's.")

    def _pack_bytes(
        self, value: int, layer: ir.PackBytes, cell: Cell, inputs: list[StreamContents], orders: list[Array]
    ) -> tuple[StreamContents, LayerProof]:
        join = JoinModel(cell, (inputs[0], inputs[1]))
        if join.way != "packed" or join.bits != (8, 8):
            raise broken(layer.name, f"{cell.name} does not concatenate two codes of 8 bits.")
        if (orders[0] != orders[1]).any() or (inputs[0].filled != inputs[1].filled).any():
            raise broken(layer.name, "its operands do not arrive in the same order.")
        output = inputs[0].computed(self.elements.numbers[value][orders[0]], layer.result.type)
        return output, lambda: Summary(layer.name, "pair", cell.module, 1, 0, 0)

    def _softmax(self, layer: ir.SoftmaxRows, cell: Cell, order: Array) -> Summary:
        softmax.check_mask(cell, layer, order, self.memories)
        softmax.check_tables(cell, layer, self.memories)
        return Summary(layer.name, "softmax", cell.module, layer.source.shape[-1], 0, 0)

    def _argmax(
        self, value: int, layer: ir.ArgMaxLayer, cell: Cell, stream: StreamContents, order: Array
    ) -> tuple[StreamContents, LayerProof]:
        check_parameters(cell, _ARGMAX)
        count, type_ = layer.source.shape[-1], layer.source.type
        lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
        check_beat(cell, stream, lanes, cell.number("IN_W", 1))
        check_codes(cell.name, stream, type_, cell.number("IN_W"), cell.number("IN_SIGNED"))
        groups_in_frame(cell, stream, beats, "a vector has")
        rows, columns = vector_order(layer.name, order, count)
        if lanes * beats != count or not stream.filled.all() or (np.diff(columns) < 0).any():
            raise broken(
                layer.name,
                f"{cell.name} has {lanes} x {beats} elements in order, a vector has {count} from first to last.",
            )
        if cell.number("INDEX_W", 1) != layer.result.type.bits:
            raise broken(
                layer.name, f"INDEX_W of {cell.name} is {cell.parameters['INDEX_W']}, not {layer.result.type}."
            )
        output = StreamContents(
            self.elements.numbers[value][rows][:, None],
            layer.result.type.bits,
            layer.result.type.lo,
            layer.result.type.hi,
        )
        return output, lambda: Summary(layer.name, "argmax", cell.module, 1, 0, 0)


def modules(cells: list[Cell]) -> str:
    """The names of the modules, for messages."""
    return " + ".join(cell.module for cell in cells)


def _shown(cell: Cell) -> dict[str, int | str]:
    return {name: str(value) if isinstance(value, SizedConstant) else value for name, value in cell.parameters.items()}


def hardware_layers(graph: ir.Graph) -> list[int]:
    """Indices of the layers that have hardware."""
    return [
        i
        for i, layer in enumerate(graph.layers)
        if not isinstance(layer, ir.View | ir.StreamedInput | ir.StreamedOutputs)
    ]
