"""Lowers a Model to a Graph: host head, integer layers, host tail.

The passes of `pipeline` rewrite the Model first. Then its steps are walked in order. Elementwise work between two
integer tensors is collected (`PendingValue`) until a quantizer ends it, and becomes one `Map`: whatever it consists of,
it is a function of one integer for each element. Reshapes and transposes move in front of it. A linear layer becomes
exact integer sums (docs/numeric-contract.md). What joins two tensors becomes a `BinaryMap`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import Collector, HlsgenError, fail, stuck
from hlsgen.ir import (
    Affine,
    ArgMax,
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    Graph,
    HostOp,
    InputPart,
    MatMul,
    MatMulInteger,
    Model,
    ModelInput,
    Normalize,
    OutputParts,
    Pack,
    Pad,
    Pool,
    Previous,
    QLinearSoftmax,
    Repeat,
    Reshape,
    RowStep,
    Select,
    Slice,
    Softmax,
    State,
    Step,
    Transpose,
    Value,
)
from hlsgen.ir.graph import names_of_parts
from hlsgen.ir.op_facts import distinguishes_zeros
from hlsgen.ir.ops import FLOATS, QUANTIZERS, BinaryKind, Cast, Dequantize
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.input_mode import STAND_IN, InputMode, ask_for_type, default_mode
from hlsgen.passes.input_port import InputPort, as_after_host, check_mode, divided_inputs, input_port
from hlsgen.passes.lower_linear import linear, linear_integer
from hlsgen.passes.lower_loops import Loops
from hlsgen.passes.lower_norm import normalized_rows
from hlsgen.passes.lower_product import product
from hlsgen.passes.lower_rows import integer_rows
from hlsgen.passes.lower_softmax import softmax
from hlsgen.passes.lower_windows import concatenation, convolution, padding, pooling, rearrangement
from hlsgen.passes.merge_equal_heads import in_front
from hlsgen.passes.output_ends import output_end
from hlsgen.passes.partition import HARDWARE, LINEAR, Entry, Partition
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.pipeline import check_graph, run_pipeline
from hlsgen.passes.quantization import whole_quantizer
from hlsgen.passes.several_ports import (
    flat,
    given_apart,
    host_inputs,
    host_output,
    packed_value,
    part_name,
    port_names,
    put_together,
    taken_apart,
)


def lower(
    model: Model, modes: InputMode | Mapping[str, InputMode] | None, problems: Collector, separate: bool = False
) -> Graph:  # fmt: skip
    """The integer graph. `modes` by the names of inputs, "" for all others; or one for all. `separate`: each of several
    inputs and outputs has a port of its own.

    Without one: declared type, else float32 for a graph that has no linear layer, else codes; a layer needs one of its
    input's (HG061). Raises HlsgenError."""
    if not model.steps:
        raise fail(
            "HG036", model.name, "the model computes nothing.", "Its output is its input: there is nothing to build."
        )
    model = run_pipeline(model)
    wishes: Mapping[str, InputMode | None] = modes if isinstance(modes, Mapping) else {"": modes}
    model = with_layer(model)
    _check_content(model, wishes)
    parts = Partition(model.steps)
    if divided_inputs(model, wishes, parts):
        model = in_front(model)
        parts = Partition(model.steps)
        parts = Partition(model.steps, divided_inputs(model, wishes, parts))
    steps = model.steps
    core = [steps[i] for i in parts.core]
    for step in [s for s in core if isinstance(s.op, (HostOp, ArgMax))]:
        problems.items.append(stuck(step.name, step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"))
    _check_names(model, wishes, problems)
    found, unknown = [], []
    for entry in parts.entries:
        source = model.all_inputs[entry.source]
        layer = parts.multiplying(entry, steps)
        known = _mode(model, source, entry, wishes, layer >= 0)
        check_mode(model, source, known or STAND_IN, entry, problems)
        found.append(known or STAND_IN)
        if known is None:
            unknown.append((source, steps[layer]))
    problems.finish()
    for source, step in unknown:
        ask_for_type(source, step, problems)
    ports = [
        input_port(model, model.all_inputs[entry.source], mode, entry, parts)
        for mode, entry in zip(found, parts.entries, strict=True)
    ]
    apart = any(isinstance(s.op, (*FLOATS, *QUANTIZERS)) and distinguishes_zeros(s.op) for s in steps)  # type: ignore[arg-type]
    apart |= any(isinstance(s.op, Binary) and s.op.kind is BinaryKind.DIV for s in steps)
    names = [part_name(model, entry) for entry in parts.entries]
    given = [port.tensor.value for port in ports]
    several = flat(given) if separate else packed_value(model, ports, parts.entries) if len(ports) > 1 else given[0]
    builder = GraphBuilder(problems, several if len(ports) > 1 else given[0], apart)
    ends = port_names(model.all_inputs[entry.source].name for entry in parts.entries) if separate else None
    inputs = taken_apart(builder, names, ports, ends)
    builder.first_computed = len(builder.values)
    tensors = _lower_core(builder, model, parts, ports, inputs)
    problems.finish()
    graph = _with_tails(builder, model, parts, tensors, separate)
    if len(ports) > 1:
        graph = replace(graph, inputs=host_inputs(model, ports, parts.entries))
    else:
        graph = replace(graph, head=tuple(steps[i] for i in ports[0].head), encode=ports[0].encode)
    check_graph(graph, "lowering")
    return graph


def _check_content(model: Model, wishes: Mapping[str, InputMode | None]) -> None:
    """Whether there is anything to build: a quantizer or a linear layer, or another layer of integers. Raises HG036."""
    if any(isinstance(s.op, (*QUANTIZERS, *LINEAR)) for s in model.steps):
        return
    typed = any(mode is not None and mode.kind == "fixed" for mode in wishes.values())
    integers = typed or all(source.type is not None for source in model.all_inputs)
    if not integers or not any(isinstance(s.op, (*HARDWARE, Dequantize, Cast)) for s in model.steps):
        hint = "There is nothing to build: is this a float model? Quantize it first (Brevitas, QKeras + QONNX)."
        if integers:
            hint = "It only gives elements other places, or computes what is the host's: there is nothing to build."
        raise fail("HG036", model.name, "the model has no quantizer and no linear layer.", hint)


def with_layer(model: Model) -> Model:
    """With quantizers that change nothing behind arithmetic of declared integers, which would be the host's else."""
    if any(isinstance(s.op, HARDWARE) for s in model.steps) or None in (s.type for s in model.all_inputs):
        return model
    last, several = model.steps[-1], isinstance(model.steps[-1].op, OutputParts)
    dtypes = [end.dtype for end in model.outputs] if several else [model.output_dtype]
    steps, ends = list(model.steps[:-1] if several else model.steps), list[int]()
    for value, dtype in zip(last.inputs if several else [len(steps)], map(np.dtype, dtypes), strict=True):
        ends.append(value)
        if dtype.kind in "iub" and dtype.itemsize <= 4 and _computes(model.steps, value):
            end = model.steps[value - 1]
            steps.append(Step(f"{end.name} (codes)", whole_quantizer(len(end.shape), dtype), end.shape, (value,)))
            if dtype.kind == "b":
                steps.append(Step(f"{end.name} (boolean)", Cast("bool"), end.shape, (len(steps),)))
            ends[-1] = len(steps)
    return replace(model, steps=(*steps, *([replace(last, inputs=tuple(ends))] if several else [])))


def _computes(steps: tuple[Step, ...], value: int) -> bool:
    """Whether a value, which steps of one operand each have made, is another number than that of an input."""
    while value and not isinstance(steps[value - 1].op, InputPart):
        op = steps[value - 1].op
        if isinstance(op, FLOATS) and not isinstance(op, Cast | Dequantize):
            return True
        value = steps[value - 1].inputs[0]
    return False


def _check_names(model: Model, wishes: Mapping[str, InputMode | None], problems: Collector) -> None:
    """Whether the inputs that modes are given for are there (HG040)."""
    names = [source.name for source in model.all_inputs]
    for name in wishes:
        if name and name not in names:
            problems.error("HG040", "--input", f"no input {name!r}.", f"Inputs: {', '.join(names)}.")


def _mode(
    model: Model, source: ModelInput, entry: Entry, wishes: Mapping[str, InputMode | None], multiplied: bool
) -> InputMode | None:  # fmt: skip
    """The mode of an input, `multiplied` by a layer as it is or not; None if nothing says it."""
    wish = wishes.get(source.name) or wishes.get("")
    if model.second_input and wish is not None and wish.kind == "codes":
        wish = None  # the integers of both are codes as they are
    if entry.divided:
        return InputMode("codes")
    first = model.steps[entry.first].op if entry.first >= 0 else None
    return wish or default_mode(model, as_after_host(model, source, entry), first, multiplied)


def _lower_core(
    builder: GraphBuilder, model: Model, parts: Partition, ports: Sequence[InputPort], inputs: Sequence[PendingValue]
) -> dict[int, PendingValue]:
    """What is known of every value of the model, layers being made on the way. Problems are collected."""
    tensors = {port.number: tensor for port, tensor in zip(ports, inputs, strict=True)}
    taken = {i for port in ports for i in port.taken}
    loops = Loops(model.steps)
    for i in sorted({*parts.core, *(i for port in ports for i in port.added)} - taken):
        step = model.steps[i]
        operands = [tensors[j] for j in step.inputs]
        try:
            if isinstance(step.op, Previous | State):
                tensors[i + 1] = loops.lowered(builder, step, operands)
            else:
                tensors[i + 1] = _lower_step(builder, step, operands, shared=len(parts.users[i + 1]) > 1)
        except HlsgenError as error:
            with builder.problems.catching():
                raise error
            # Goes on as if the step gave 8-bit codes, to find what else is wrong.
            codes = Value(step.shape, IntType(-128, 127), Affine(np.float32(1), np.float32(0)))
            tensors[i + 1] = builder.assume(codes)
    if not builder.problems.errors:
        with builder.problems.catching():
            loops.close(builder)
    return tensors


def _lower_step(builder: GraphBuilder, step: Step, operands: list[PendingValue], shared: bool) -> PendingValue:
    """The result of a step. If several steps share it, they share the function in front of it as well."""
    found = _apply(builder, step, operands)
    if not shared:
        return found
    if any(isinstance(op, QUANTIZERS) for op in found.ops):
        found = builder.flushed(found)
    return replace(builder.bounded_sum(builder.on_grid(found)), shared=True)


def _apply(builder: GraphBuilder, step: Step, operands: list[PendingValue]) -> PendingValue:
    op, name, shape, first = step.op, step.name, step.shape, operands[0]
    match op:
        case Reshape() | Transpose():
            return builder.relabelled(name, first, op, shape)
        case MatMul():
            return linear(builder, name, op, builder.to_codes(name, first), shape)
        case MatMulInteger():
            return linear_integer(builder, name, op, builder.to_codes(name, first), shape)
        case BatchMatMul() | BatchMatMulInteger():
            return product(builder, name, op, operands, shape)
        case Conv() | ConvInteger():
            return convolution(builder, name, op, builder.to_codes(name, first), shape)
        case RowStep():
            return integer_rows(builder, name, op, builder.to_codes(name, first), shape)
        case Normalize():
            return normalized_rows(builder, name, op, builder.to_codes(name, first), shape)
        case Pool():
            return pooling(builder, name, op, first, shape)
        case Pad():
            return padding(builder, name, op, first, shape)
        case Repeat() | Slice():
            return rearrangement(builder, name, op, first, shape)
        case Concat():
            return concatenation(builder, name, op, operands, shape)
        case Binary():
            return builder.joined(name, op, operands[0], operands[1])
        case Pack():
            return builder.packed(name, operands[0], operands[1], shape)
        case Softmax() | QLinearSoftmax():
            return softmax(builder, name, op, first, shape)
        case HostOp() | ArgMax() | Select() | InputPart() | OutputParts() | Previous() | State():
            raise AssertionError("host operations end hardware, states have their own")
        case _:
            return first.then(name, op)


def _with_tails(
    builder: GraphBuilder, model: Model, parts: Partition, tensors: dict[int, PendingValue], separate: bool
) -> Graph:  # fmt: skip
    """The graph, with what the host does behind its last layers."""
    ends = [output_end(builder, model, end, tensors[end.value]) for end in parts.ends]
    notes = tuple(str(w) for w in builder.problems.warnings)
    found = [part for end in ends for part in end.parts]
    if len(found) > 1 or model.outputs:
        joints = tuple(end.joint for end in ends)
        names = names_of_parts(model.all_outputs, joints)
        outputs = [host_output(builder, name, *part) for name, part in zip(names, found, strict=True)]
        numbers = [codes.index for codes, _, _ in found]
        if separate:
            output, placed = given_apart(builder, model.steps[-1].name, names, outputs, numbers)
        else:
            output, placed = put_together(builder, model.steps[-1].name, outputs, numbers)
        layers = tuple(builder.layers.values())
        return Graph(model, (), None, builder.values[0], layers, output, (), False, notes, (), placed, joints)
    ((end, tail, is_index),) = found
    assert end.index == len(builder.values) - 1, "the output is the last value"
    layers = tuple(builder.layers.values())
    return Graph(model, (), None, builder.values[0], layers, end.value, tail, is_index, notes)
