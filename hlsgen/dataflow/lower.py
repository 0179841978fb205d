"""Lowers layers to units, one function per layer: quantizers, matrices, two-operand nodes, and the ports."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen import ir, rescale
from hlsgen.dataflow import neurons
from hlsgen.dataflow.adders import append_matrix, matrix_node
from hlsgen.dataflow.builder import NamedStream, NetworkBuilder, fold_table
from hlsgen.dataflow.ends import outside
from hlsgen.dataflow.layer_names import is_start_of
from hlsgen.dataflow.lower_loops import close, delay
from hlsgen.dataflow.lower_moves import concatenate, rearrange
from hlsgen.dataflow.lower_norm import normalization
from hlsgen.dataflow.lower_product import product
from hlsgen.dataflow.lower_states import close_states, open_states
from hlsgen.dataflow.lower_windows import convolution, pixels_in_a_beat, pooling
from hlsgen.dataflow.regrouping import dense_lanes
from hlsgen.dataflow.smaller_program import smaller_program
from hlsgen.dataflow.softmax_unit import TABLE
from hlsgen.dataflow.units import (
    FLOAT_WORD,
    ArgMaxUnit,
    FloatKeyUnit,
    FloatUnit,
    JoinStreams,
    MatVec,
    NeuronUnit,
    Node,
    Port,
    Product,
    ProgramUnit,
    RescaleUnit,
    RowsUnit,
    SoftmaxUnit,
    Stream,
    Unit,
    stream_of,
)
from hlsgen.dataflow.weighted_units import product_of
from hlsgen.dataflow.workload import divisors, work_of
from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.ir.graph import MASK_REMOVED
from hlsgen.ir.programs import Program
from hlsgen.ir.stream_order import vector_layout
from hlsgen.ir.value_ranges import value_range
from hlsgen.numerics.exponential_factors import factors
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary import float_join, search
from hlsgen.rescale.realize.float_ops import FloatCompare, ToCode

#: Number of lanes that the names of threshold files can distinguish.
MAX_LANES = 9999


def start(b: NetworkBuilder) -> None:
    """Appends the input ports and the memories of states between frames.

    Nets of a port start with inner_ if another port is named like one of them.
    """
    layers, inputs, count = b.graph.layers, b.graph.streamed_inputs, len(b.graph.states)
    port_names = {f"s_axis_{x.port}" for x in layers if isinstance(x, ir.StreamedInput)}
    for number, _, value in inputs[: len(inputs) - count]:
        layer = layers[number - 1] if number else None
        port = layer.port if isinstance(layer, ir.StreamedInput) else ""
        lanes, group = _input_lanes(b, number, value)
        stream = stream_of(value.type, lanes, value.size, group)
        if isinstance(value.encoding, ir.FloatKey):
            stream = replace(stream, type=FLOAT_WORD)
        name = f"s_axis_{port}" if port else "s_axis"
        wire = f"inner_{name}" if is_start_of(name, port_names - {name}) else name
        source = outside(port)
        b.nodes.append(Node(name, Port(), (source,), (stream,), (wire,), stream, position=number - 1))
        b.deliver(number, NamedStream(wire, stream))
    if count:
        open_states(b, b.nodes[0], [_input_lanes(b, number, value) for number, _, value in inputs[-count:]])


def _first_consumer(graph: ir.Graph, value: int) -> ir.Layer | None:
    """The first layer that consumes an input, not counting functions of single elements and views."""
    aliases = {value}
    for i, layer in enumerate(graph.layers):
        if aliases.isdisjoint(layer.inputs):
            continue
        if not isinstance(layer, ir.Map | ir.View):
            return None if isinstance(layer, ir.StreamedOutputs) else layer
        aliases.add(i + 1)
    return None


def _input_lanes(b: NetworkBuilder, number: int, value: ir.Value) -> tuple[int, int]:
    """(lanes, group) of an input, as its first consumer requires."""
    size, first = value.size, _first_consumer(b.graph, number)
    match first:
        case ir.Linear():
            pe, simd = b.folding[first.name]
            columns, windows = first.weight.shape[1], work_of(first).windows(pe)
            return windows * dense_lanes(columns, simd, windows * b.target * columns // size), size
        case ir.MatrixProduct():
            return max(d for d in divisors(first.depth) if d <= b.folding[first.name][1]), size
        case ir.Convolution():
            pe, simd = b.folding[first.name]
            work = work_of(first)
            split = first.groups > 1 and not work.depthwise and not work.at_once(pe, simd)
            channels = first.weight.shape[3] if split else first.source.shape[-1]
            pixels = pixels_in_a_beat(b, first)
            return pixels * dense_lanes(channels, work.elements(pe, simd), pixels * b.target * channels // size), size
        case _:
            pass
    min_lanes = -(-size // b.target) if b.folding else 1
    lanes = b.targets.lanes or (-(-size // b.targets.cycles) if b.targets.cycles else min_lanes)
    if not 1 <= lanes <= MAX_LANES:
        raise fail("HG040", "--lanes", f"{lanes} lanes.", "Supported: 1 to 9999.")
    if first is None:
        return min(lanes, size), size
    channels = (
        first.result.shape[-1] if isinstance(first, ir.BinaryMap | ir.FloatBinary | ir.PackBytes) else _channels(first)
    )
    full_lanes = max(d for d in divisors(channels) if d <= lanes)
    if b.targets.lanes is None and size // full_lanes > b.target:
        full_lanes = next((d for d in divisors(size) if size // d <= b.target and d <= MAX_LANES), full_lanes)
    return full_lanes, size


def _channels(layer: object) -> int:
    """Elements along the innermost axis of the layer's input."""
    source = layer.sources[0] if isinstance(layer, ir.Concatenation) else getattr(layer, "source", None)
    assert source is not None
    return int(source.shape[-1])


def finish(b: NetworkBuilder) -> list[Node]:
    """All nodes, after appending the output ports if they are missing."""
    if b.is_finished:
        return b.nodes
    b.is_finished = True
    last = len(b.graph.layers) - 1
    outputs = b.graph.layers[last] if b.graph.layers else None
    if isinstance(outputs, ir.StreamedOutputs):
        ports = outputs.ports[: len(outputs.ports) - len(b.graph.states)]
        names = [f"m_axis_{port}" if port else "m_axis" for port in ports]
        flows = [b.input_stream(last, n, name) for n, name in enumerate(names)]
    else:
        names, flows = ["m_axis"], [b.output_stream()]
    close_states(b)
    flows = [_without_gaps(b, flow, f"{name}_width") for name, flow in zip(names, flows, strict=True)]
    for name, flow in zip(names, flows, strict=True):
        b.append(name, Port(), [flow], flow.stream)
    return b.nodes


def _without_gaps(b: NetworkBuilder, flow: NamedStream, name: str) -> NamedStream:
    """The stream without empty lanes between elements."""
    lanes, group = flow.stream.lanes, flow.stream.group
    if group % lanes and flow.stream.groups > 1:
        dense = max(d for d in divisors(group) if d <= lanes)
        if flow.elements // dense > b.target:
            dense, group = lanes, flow.elements
        return b.converted(flow, dense, group, name)
    return flow


def lower_layer(b: NetworkBuilder, i: int) -> None:
    """Appends the nodes of layer i."""
    layer = b.graph.layers[i]
    name = b.layer_names.get(i, "")
    match layer:
        case ir.View() | ir.StreamedInput() | ir.StreamedOutputs():
            return
        case ir.Map():
            flow = _map(b, i, layer, name)
        case ir.Linear():
            flow = _linear(b, i, layer, name)
        case ir.MatrixProduct():
            flow = product(b, i, layer, name)
        case ir.Convolution():
            flow = convolution(b, i, layer, name)
        case ir.Pooling():
            flow = pooling(b, i, layer, name)
        case ir.Rearrange():
            flow = rearrange(b, i, layer, name)
        case ir.Delay():
            flow = delay(b, i, layer, name)
        case ir.Concatenation():
            flow = concatenate(b, i, layer, name)
        case ir.BinaryMap():
            flow = _binary_map(b, i, layer, name)
        case ir.FloatBinary():
            flow = _float_joint(b, i, layer, name)
        case ir.PackBytes():
            flow = _packing(b, i, layer, name)
        case ir.ArgMaxLayer():
            flow = _argmax(b, i, layer, name)
        case ir.SoftmaxRows():
            flow = _softmax(b, i, layer, name)
        case ir.IntegerRows():
            flow = _integer_rows(b, i, layer, name)
        case ir.NormRows():
            flow = normalization(b, i, layer, name)
        case _:
            assert_never(layer)
    b.deliver(i + 1, flow)
    close(b, i + 1)


def _argmax(b: NetworkBuilder, i: int, layer: ir.ArgMaxLayer, name: str) -> NamedStream:
    count = layer.source.shape[-1]
    flow = b.input_stream(i, 0, name)
    flow = b.dense(flow, flow.stream.lanes, count, f"{name}_width")
    beats = count // flow.stream.lanes
    result = stream_of(layer.result.type, 1, layer.result.size, 1)
    return b.append(name, ArgMaxUnit(beats), [flow], result, layer.name, i)


def _integer_rows(b: NetworkBuilder, i: int, layer: ir.IntegerRows, name: str) -> NamedStream:
    count = layer.source.shape[-1]
    flow = b.input_stream(i, 0, name)
    function = layer.function
    if isinstance(function, Program):
        flow = b.converted(flow, count, count, f"{name}_width")
        result = stream_of(layer.result.type, layer.result.shape[-1], layer.result.size, layer.result.shape[-1])
        program = b.once(("program", i), lambda: smaller_program(function))
        return b.append(name, ProgramUnit(program), [flow], result, layer.name, i)
    flow = b.dense(flow, flow.stream.lanes, count, f"{name}_width")
    unit = RowsUnit(function, count // flow.stream.lanes, layer.source.type, count)
    return b.append(name, unit, [flow], replace(flow.stream, type=layer.result.type), layer.name, i)


def _softmax(b: NetworkBuilder, i: int, layer: ir.SoftmaxRows, name: str) -> NamedStream:
    """As many lanes as the target needs; one if the sum is taken in order."""
    count, size, source = layer.source.shape[-1], layer.source.size, layer.source.type
    flow = b.input_stream(i, 0, name)
    if layer.in_order:
        lanes = 1
    elif b.folding:
        lanes = next(d for d in divisors(count) if size // d <= b.target or d == count)
    else:
        lanes = max(d for d in divisors(count) if d <= flow.stream.lanes)
    flow = b.converted(flow, lanes, count, f"{name}_width")
    mask = None if layer.mask is None else _period(layer.mask.reshape(-1)[b.layout.orders[i + 1]], count)
    masks_out = mask is not None and bool((mask == MASK_REMOVED).any())
    closed = masks_out or len(layer.powers) <= source.hi - source.lo
    parts = None
    if layer.step is not None and len(layer.powers) + closed > TABLE:
        parts = factors(layer.step, layer.powers, source.hi - source.lo, TABLE, zero=masks_out)
        assert parts is not None, "more powers than products of two words can be"
    unit = SoftmaxUnit(layer.powers, layer.numerators, layer.in_order, closed, lanes, count // lanes, parts, mask)
    return b.append(name, unit, [flow], replace(flow.stream, type=FLOAT_WORD), layer.name, i)


def _period(mask: Array, count: int) -> Array:
    """The shortest sequence of whole vectors whose repetition gives the mask of a stream."""
    rows = mask.reshape(-1, count)
    return next(rows[:n].reshape(-1) for n in divisors(len(rows)) if (rows.reshape(-1, n, count) == rows[:n]).all())


def _map(b: NetworkBuilder, i: int, layer: ir.Map, name: str) -> NamedStream:
    flow = b.input_stream(i, 0, name)
    if i in b.neurons:
        b.choices[layer.name], result = b.neurons[i]
        tables = b.choices[layer.name].realization
        assert isinstance(tables, rescale.NeuronTable)
        return b.append(name, NeuronUnit(tables), [flow], result, layer.name, i)
    f = _function_of(b, i, layer)
    choice, table = _realization(b, i, f, flow.stream, b.targets.preference(layer.name, b.prices))
    b.choices[layer.name] = choice
    if isinstance(choice.realization, rescale.FloatUnits):
        return _float_units(b, i, layer, name, choice.realization, table, flow)
    if f.is_float:
        keys = replace(flow.stream, type=layer.source.type)
        flow = b.append(f"{name}_key", FloatKeyUnit(), [flow], keys, layer.name)
    return _rescale(b, i, layer.name, name, choice, table, flow, layer.result.type)


def _function_of(b: NetworkBuilder, i: int, layer: ir.Map) -> rescale.StepFunction:
    """The function of layer i on the codes that its elements can have."""
    interval = b.code_range(layer.inputs[0]) or (None, None)
    return b.once(("function", i, b.narrows), lambda: rescale.specialize(layer, b.layout.orders[i + 1], *interval))


def _realization(
    b: NetworkBuilder, i: int, f: rescale.StepFunction, stream: Stream, preference: rescale.Preference
) -> tuple[rescale.Choice, Array]:
    """The hardware of a function, and (folds, lanes): the channel parameters of each lane in each beat.

    Beats differ by the contents of memories, so channels with the same constants share one set of parameters. A lane
    with the same parameters in all beats keeps the interval of its own channel, which is cheaper.
    """
    table = fold_table(f.index, stream)
    if len(table) > 1 and (shared := rescale.merge_equal_sets(f)).sets < f.sets:
        # A realization may exist on the interval of each channel, and not on the interval around all of them.
        with suppress(HlsgenError):
            merged_table = fold_table(shared.index, stream)
            choice = b.choice_once(
                i, merged_table, preference, lambda: rescale.choose_realization(shared, merged_table, preference)
            )
            return choice, merged_table
    return b.choice_once(i, table, preference, lambda: rescale.choose_realization(f, table, preference)), table


def _rescale(
    b: NetworkBuilder,
    i: int,
    layer: str,
    name: str,
    choice: rescale.Choice,
    table: Array,
    flow: NamedStream,
    type_: IntType,
) -> NamedStream:
    """The stream after the units of a realization of integers."""
    realization = choice.realization
    assert not isinstance(realization, rescale.FloatUnits | rescale.NeuronTable)
    result = replace(flow.stream, type=type_)
    if isinstance(realization, rescale.Shared):
        index = replace(flow.stream, type=realization.index)
        flow = b.append(f"{name}_set", RescaleUnit(realization.offset, table), [flow], index, layer)
        realization, table = realization.function, np.zeros((1, table.shape[1]), np.int64)
    if isinstance(realization, rescale.Indexed):
        index = replace(flow.stream, type=realization.index)
        flow = b.append(f"{name}_search", RescaleUnit(realization.search, table), [flow], index, layer)
        realization = realization.codes
    return b.append(name, RescaleUnit(realization, table), [flow], result, layer, i)


def _float_units(
    b: NetworkBuilder,
    i: int,
    layer: ir.Map | ir.BinaryMap,
    name: str,
    realization: rescale.FloatUnits,
    table: Array,
    flow: NamedStream,
) -> NamedStream:
    """The stream after the units of float32 operations."""
    plain = flow.stream
    word, end = replace(plain, type=FLOAT_WORD), replace(plain, type=layer.result.type)
    for n, unit in enumerate(realization.units):
        last = n == len(realization.units) - 1
        to, position = (end, i) if last else (word, -1)
        match unit:
            case FloatCompare(thresholds):
                flow = b.append(f"{name}_op{n}_key", FloatKeyUnit(), [flow], word, layer.name)
                count = IntType(thresholds.base, thresholds.base + len(thresholds.table))
                to = to if last else replace(plain, type=count)
                step: Unit = RescaleUnit(thresholds, table)
            case ToCode(output=output):
                to = to if last else replace(plain, type=output)
                step = FloatUnit(unit, table)
            case _:
                step = FloatUnit(unit, table)
        flow = b.append(name if last else f"{name}_op{n}", step, [flow], to, layer.name, position)
    return flow


def _linear(b: NetworkBuilder, i: int, layer: ir.Linear, name: str) -> NamedStream:
    pe, simd = b.folding[layer.name]
    rows, columns = layer.weight.shape
    vector_orders = vector_layout(b.layout.of_input(b.graph, i), layer.source.shape)
    assert vector_orders is not None
    windows, product = work_of(layer).windows(pe), product_of(layer)
    flow = b.input_stream(i, 0, name)
    zeros = product is not Product.INTEGER
    flow = b.converted(flow, windows * simd, windows * columns, f"{name}_width", zeros=zeros)
    unit = MatVec(
        weight=layer.weight.reshape(rows, 1, columns),
        order=vector_orders[1],
        product=product,
        pe=pe // windows,
        simd=simd,
        vectors=layer.source.size // columns,
        windows=windows,
    )
    result = stream_of(layer.result.type, pe, layer.result.size, windows * rows)
    j = neurons.quantizer_of(b, i, unit)
    if j is not None and _in_tables(b, i, j, matrix_node(b, name, unit, flow, result, i)):
        return flow
    return append_matrix(b, name, unit, flow, result, i)


def _in_tables(b: NetworkBuilder, i: int, j: int, matrix: Node) -> bool:
    """True if matrix i and quantizer j become lookup tables; then the quantizer gets the input of the matrix."""
    layer = b.graph.layers[j]
    assert isinstance(layer, ir.Map)
    f = _function_of(b, j, layer)
    preference = b.targets.preference(layer.name, b.prices)
    choice = neurons.choose(b, i, j, matrix, f, lambda: _realization(b, j, f, matrix.result, preference)[0])
    if choice is not None:
        b.neurons[j] = choice, replace(matrix.result, type=layer.result.type)
    return choice is not None


def _operands(b: NetworkBuilder, i: int, name: str) -> list[NamedStream]:
    """Both inputs with the same lanes and groups, each buffered."""
    first, second = (b.input_stream(i, n, name) for n in (0, 1))
    if first.stream.lanes > second.stream.lanes and second.stream.group % second.stream.lanes == 0:
        first = b.converted(first, second.stream.lanes, second.stream.group, f"{name}_width0")
    second = b.converted(second, first.stream.lanes, first.stream.group, f"{name}_width1")
    return [b.buffered(flow, f"{name}_wait{n}") for n, flow in enumerate((first, second))]


def _packing(b: NetworkBuilder, i: int, layer: ir.PackBytes, name: str) -> NamedStream:
    flows = _operands(b, i, name)
    result = replace(flows[0].stream, type=layer.result.type)
    return b.append(name, JoinStreams(None, packed=True), flows, result, layer.name, i)


def _binary_map(b: NetworkBuilder, i: int, layer: ir.BinaryMap, name: str) -> NamedStream:
    flows = _operands(b, i, name)
    first, second = (value_range(b.graph, j) for j in layer.inputs)
    join = b.once(("join", i), lambda: search.find(layer, b.layout.orders[i + 1], (first, second)))
    if isinstance(join, str):
        return _float_binary_map(b, i, layer, name, flows, join)
    table = fold_table(join.index, flows[0].stream)
    preference = b.targets.preference(layer.name, b.prices)
    choice = b.choice_once(i, table, preference, lambda: rescale.choose_join(join, table, preference))
    b.choices[layer.name] = choice
    plan = choice.plan
    assert isinstance(plan, rescale.JoinPlan)
    for n, lookup in enumerate(plan.tables):
        if lookup is not None:
            result = replace(flows[n].stream, type=plan.operands[n])
            flows[n] = b.append(f"{name}_table{n}", RescaleUnit(lookup, table), [flows[n]], result, layer.name)
    joined = replace(flows[0].stream, type=plan.type)
    unit = JoinStreams(plan.factors, plan.zeros, plan.packed)
    flow = b.append(f"{name}_join", unit, flows, joined, layer.name)
    return _rescale(b, i, layer.name, name, choice, table, flow, layer.result.type)


def _float_joint(b: NetworkBuilder, i: int, layer: ir.FloatBinary, name: str) -> NamedStream:
    """Both operands as float32, joined."""
    first, second = (value_range(b.graph, j) for j in layer.inputs)
    f = ir.binary_function.specialize(
        ir.binary_function.with_placeholder_quantizer(layer), b.layout.orders[i + 1], (first, second)
    )
    operands = float_join.operands(f)
    if isinstance(operands, str):
        raise fail(
            "HG037",
            layer.name,
            f"no hardware was found for this function of two tensors, in float32: {operands}.",
            "Quantize both tensors before they are joined.",
        )
    flows = _operands(b, i, name)
    return _float_join(b, layer, name, name, flows, operands, fold_table(f.index, flows[0].stream), i)


def _float_join(
    b: NetworkBuilder,
    layer: ir.BinaryMap | ir.FloatBinary,
    name: str,
    stem: str,
    flows: list[NamedStream],
    operands: tuple[rescale.FloatUnits, rescale.FloatUnits],
    table: Array,
    position: int,
) -> NamedStream:
    """The stream after the units of both operands and the unit that joins them."""
    word = replace(flows[0].stream, type=FLOAT_WORD)
    for side, units in enumerate(operands):
        for n, unit in enumerate(units.units):
            node_name = f"{stem}_{'ab'[side]}{n}"
            flows[side] = b.append(node_name, FloatUnit(unit, table), [flows[side]], word, layer.name)
    return b.append(name, JoinStreams(floats=layer.kind), flows, word, layer.name, position)


def _float_binary_map(
    b: NetworkBuilder, i: int, layer: ir.BinaryMap, name: str, flows: list[NamedStream], why: str
) -> NamedStream:
    """Both operands and their join in float32. `why`: the reason why the codes cannot be joined as integers."""
    first, second = (value_range(b.graph, j) for j in layer.inputs)
    f = ir.binary_function.specialize(layer, b.layout.orders[i + 1], (first, second))
    plan = b.once(("float join", i), lambda: float_join.find(f))
    if isinstance(plan, str):
        raise fail(
            "HG037",
            layer.name,
            f"no hardware was found for this function of two tensors. {why}; in float32: {plan}.",
            "Quantize both tensors to fewer bits before they are joined.",
        )
    table = fold_table(f.index, flows[0].stream)
    preference = b.targets.preference(layer.name, b.prices)
    tried = (rescale.Trial("integers", why),)
    choice = b.choice_once(i, table, preference, lambda: rescale.choose_float_join(plan, table, preference, tried))
    b.choices[layer.name] = choice
    flow = _float_join(b, layer, f"{name}_join", name, flows, plan.operands, table, -1)
    if isinstance(choice.realization, rescale.FloatUnits):
        return _float_units(b, i, layer, name, choice.realization, table, flow)
    keys = replace(flow.stream, type=plan.function.input_type)
    flow = b.append(f"{name}_key", FloatKeyUnit(), [flow], keys, layer.name)
    return _rescale(b, i, layer.name, name, choice, table, flow, layer.result.type)
