"""Lowers a Model to a Graph: host preprocessing, integer layers, host postprocessing.

The passes of `pipeline` rewrite the Model first. Then its steps are processed in order. Elementwise work between two
integer tensors is collected (`PendingValue`) until a quantizer ends it. It becomes one `Map`, as any such chain
is a function of one integer for each element. Reshapes and transposes move before it. A linear layer becomes
exact integer sums (docs/numeric-contract.md). An operation on two tensors becomes a `BinaryMap`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import Collector, HlsgenError, fail, stuck
from hlsgen.ir.graph import names_of_parts
from hlsgen.ir.op_facts import distinguishes_zeros
from hlsgen.ir.ops import FLOATS, QUANTIZERS, BinaryKind, Cast, Dequantize
from hlsgen.numerics.fixed import IntType
from hlsgen.passes import multiple_ports
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
from hlsgen.passes.merge_equal_heads import merge_equal_heads
from hlsgen.passes.output_ends import output_end
from hlsgen.passes.partition import HARDWARE, LINEAR, Entry, Partition
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.pipeline import check_graph, run_pipeline
from hlsgen.passes.quantization import integer_quantizer
from hlsgen.passes.tflite_moves import with_core_of_moves


def lower(
    model: ir.Model, modes: InputMode | Mapping[str, InputMode] | None, problems: Collector, separate: bool = False
) -> ir.Graph:
    """Lower the model to its integer graph. Raises HlsgenError.

    `modes`: input modes by input name, "" for all others; or one mode for all. The default mode is the declared type,
    else float32 for a graph without linear layers, else codes. An input that a layer multiplies directly needs a mode
    (HG061). `separate`: each of several inputs and outputs has its own port.
    """
    if not model.steps:
        raise fail(
            "HG036", model.name, "the model computes nothing.", "Its output is its input: there is nothing to build."
        )
    model = run_pipeline(model)
    requested_modes: Mapping[str, InputMode | None] = modes if isinstance(modes, Mapping) else {"": modes}
    model = with_core_of_moves(with_quantized_outputs(model))
    _check_content(model, requested_modes)
    parts = Partition(model.steps)
    if divided_inputs(model, requested_modes, parts):
        model = merge_equal_heads(model)
        parts = Partition(model.steps)
        parts = Partition(model.steps, divided_inputs(model, requested_modes, parts))
    steps = model.steps
    core = [steps[i] for i in parts.core]
    for step in [s for s in core if isinstance(s.op, (ir.HostOp, ir.ArgMax))]:
        problems.items.append(stuck(step.name, step.op.op_type if isinstance(step.op, ir.HostOp) else "ArgMax"))
    _check_names(model, requested_modes, problems)
    input_modes, undecided = [], []
    for entry in parts.entries:
        source = model.all_inputs[entry.source]
        layer = parts.first_multiplication(entry, steps)
        mode = _mode(model, source, entry, requested_modes, layer >= 0)
        check_mode(model, source, mode or STAND_IN, entry, problems)
        input_modes.append(mode or STAND_IN)
        if mode is None:
            undecided.append((source, steps[layer]))
    problems.finish()
    for source, step in undecided:
        ask_for_type(source, step, problems)
    ports = [
        input_port(model, model.all_inputs[entry.source], mode, entry, parts)
        for mode, entry in zip(input_modes, parts.entries, strict=True)
    ]
    zeros_matter = any(isinstance(s.op, (*FLOATS, *QUANTIZERS)) and distinguishes_zeros(s.op) for s in steps)  # type: ignore[arg-type]
    zeros_matter |= any(isinstance(s.op, ir.Binary) and s.op.kind is BinaryKind.DIV for s in steps)
    names = [multiple_ports.part_name(model, entry) for entry in parts.entries]
    port_values = [port.tensor.value for port in ports]
    input_value = port_values[0]
    if separate:
        input_value = multiple_ports.concatenated_value(port_values)
    elif len(ports) > 1:
        input_value = multiple_ports.packed_value(model, ports, parts.entries)
    builder = GraphBuilder(problems, input_value if len(ports) > 1 else port_values[0], zeros_matter)
    port_suffixes = (
        multiple_ports.port_names(model.all_inputs[entry.source].name for entry in parts.entries) if separate else None
    )
    inputs = multiple_ports.split_inputs(builder, names, ports, port_suffixes)
    builder.first_computed = len(builder.values)
    tensors = _lower_core(builder, model, parts, ports, inputs)
    problems.finish()
    graph = _with_tails(builder, model, parts, tensors, separate)
    if len(ports) > 1:
        graph = replace(graph, inputs=multiple_ports.host_inputs(model, ports, parts.entries))
    else:
        graph = replace(graph, head=tuple(steps[i] for i in ports[0].head), encode=ports[0].encode)
    check_graph(graph, "lowering")
    return graph


def _check_content(model: ir.Model, requested_modes: Mapping[str, InputMode | None]) -> None:
    """Check that there is something to build. Raises HG036.

    A model needs a quantizer, a linear layer, or another layer of integers.
    """
    if any(isinstance(s.op, (*QUANTIZERS, *LINEAR)) for s in model.steps):
        return
    typed = any(mode is not None and mode.kind == "fixed" for mode in requested_modes.values())
    integers = typed or all(source.type is not None for source in model.all_inputs)
    if not integers or not any(isinstance(s.op, (*HARDWARE, Dequantize, Cast)) for s in model.steps):
        hint = "There is nothing to build: is this a float model? Quantize it first (Brevitas, QKeras + QONNX)."
        if integers:
            hint = "It only moves elements, or computes steps of the host: there is nothing to build."
        raise fail("HG036", model.name, "the model has no quantizer and no linear layer.", hint)


def with_quantized_outputs(model: ir.Model) -> ir.Model:
    """Add quantizers that change nothing after arithmetic on declared integers, which would otherwise be the host's."""
    if any(isinstance(s.op, HARDWARE) for s in model.steps) or None in (s.type for s in model.all_inputs):
        return model
    last_step, several_outputs = model.steps[-1], isinstance(model.steps[-1].op, ir.OutputParts)
    dtypes = [output.dtype for output in model.outputs] if several_outputs else [model.output_dtype]
    steps, values = list(model.steps[:-1] if several_outputs else model.steps), list[int]()
    for value, dtype in zip(last_step.inputs if several_outputs else [len(steps)], map(np.dtype, dtypes), strict=True):
        values.append(value)
        if dtype.kind in "iub" and dtype.itemsize <= 4 and _computes(model.steps, value):
            producer = model.steps[value - 1]
            steps.append(
                ir.Step(
                    f"{producer.name} (codes)", integer_quantizer(len(producer.shape), dtype), producer.shape, (value,)
                )
            )
            if dtype.kind == "b":
                steps.append(ir.Step(f"{producer.name} (boolean)", Cast("bool"), producer.shape, (len(steps),)))
            values[-1] = len(steps)
    return replace(model, steps=(*steps, *([replace(last_step, inputs=tuple(values))] if several_outputs else [])))


def _computes(steps: tuple[ir.Step, ...], value: int) -> bool:
    """True if a value, produced by steps of one operand each, is a computed number and not an input's."""
    while value and not isinstance(steps[value - 1].op, ir.InputPart):
        op = steps[value - 1].op
        if isinstance(op, FLOATS) and not isinstance(op, Cast | Dequantize):
            return True
        value = steps[value - 1].inputs[0]
    return False


def _check_names(model: ir.Model, requested_modes: Mapping[str, InputMode | None], problems: Collector) -> None:
    """Report modes for inputs that do not exist (HG040)."""
    names = [source.name for source in model.all_inputs]
    for name in requested_modes:
        if name and name not in names:
            problems.error("HG040", "--input", f"no input {name!r}.", f"Inputs: {', '.join(names)}.")


def _mode(
    model: ir.Model,
    source: ir.ModelInput,
    entry: Entry,
    requested_modes: Mapping[str, InputMode | None],
    multiplied: bool,
) -> InputMode | None:
    """The mode of an input, or None if nothing determines it. `multiplied`: a layer multiplies the input directly."""
    requested = requested_modes.get(source.name) or requested_modes.get("")
    if model.second_input and requested is not None and requested.kind == "codes":
        requested = None  # the integers of both inputs are already codes
    if entry.divided:
        return InputMode("codes")
    first = model.steps[entry.first].op if entry.first >= 0 else None
    return requested or default_mode(model, as_after_host(model, source, entry), first, multiplied)


def _lower_core(
    builder: GraphBuilder, model: ir.Model, parts: Partition, ports: Sequence[InputPort], inputs: Sequence[PendingValue]
) -> dict[int, PendingValue]:
    """Lower all core steps; return each value of the model as a pending value. Problems are collected."""
    tensors = {port.number: tensor for port, tensor in zip(ports, inputs, strict=True)}
    replaced = {i for port in ports for i in port.replaced}
    loops = Loops(model.steps)
    for i in sorted({*parts.core, *(i for port in ports for i in port.extra_layers)} - replaced):
        step = model.steps[i]
        operands = [tensors[j] for j in step.inputs]
        try:
            if isinstance(step.op, ir.Previous | ir.State):
                tensors[i + 1] = loops.lower(builder, step, operands)
            else:
                tensors[i + 1] = _lower_step(builder, step, operands, parts.is_shared(i + 1))
        except HlsgenError as error:
            with builder.problems.catching():
                raise error
            # Continue as if the step produced 8-bit codes, to find further problems.
            codes = ir.Value(step.shape, IntType(-128, 127), ir.Affine(np.float32(1), np.float32(0)))
            tensors[i + 1] = builder.assume(codes)
    if not builder.problems.errors:
        with builder.problems.catching():
            loops.close(builder)
    return tensors


def _lower_step(builder: GraphBuilder, step: ir.Step, operands: list[PendingValue], shared: bool) -> PendingValue:
    """The result of a step. If several steps use it, they share the function before it as well."""
    result = _apply(builder, step, operands)
    if not shared:
        return result
    if any(isinstance(op, QUANTIZERS) for op in result.ops):
        result = builder.flush(result)
    return replace(builder.bounded_sum(builder.on_grid(result)), shared=True)


def _apply(builder: GraphBuilder, step: ir.Step, operands: list[PendingValue]) -> PendingValue:
    op, name, shape, first = step.op, step.name, step.shape, operands[0]
    match op:
        case ir.Reshape() | ir.Transpose():
            return builder.relabelled(name, first, op, shape)
        case ir.MatMul():
            return linear(builder, name, op, builder.to_codes(name, first), shape)
        case ir.MatMulInteger():
            return linear_integer(builder, name, op, builder.to_codes(name, first), shape)
        case ir.BatchMatMul() | ir.BatchMatMulInteger():
            return product(builder, name, op, operands, shape)
        case ir.Conv() | ir.ConvInteger():
            return convolution(builder, name, op, builder.to_codes(name, first), shape)
        case ir.RowStep():
            return integer_rows(builder, name, op, builder.to_codes(name, first), shape)
        case ir.Normalize():
            return normalized_rows(builder, name, op, builder.to_codes(name, first), shape)
        case ir.Pool():
            return pooling(builder, name, op, first, shape)
        case ir.Pad():
            return padding(builder, name, op, first, shape)
        case ir.Repeat() | ir.Slice():
            return rearrangement(builder, name, op, first, shape)
        case ir.Concat():
            return concatenation(builder, name, op, operands, shape)
        case ir.Binary():
            return builder.combine(name, op, operands[0], operands[1])
        case ir.Pack():
            return builder.pack_bytes(name, operands[0], operands[1], shape)
        case ir.Softmax() | ir.QLinearSoftmax():
            return softmax(builder, name, op, first, shape)
        case ir.HostOp() | ir.ArgMax() | ir.Select() | ir.InputPart() | ir.OutputParts() | ir.Previous() | ir.State():
            raise AssertionError("not a step of the core, or lowered by Loops")
        case _:
            return first.then(name, op)


def _with_tails(
    builder: GraphBuilder, model: ir.Model, parts: Partition, tensors: dict[int, PendingValue], separate: bool
) -> ir.Graph:
    """The graph, with the host's steps after its last layers."""
    ends = [output_end(builder, model, end, tensors[end.value]) for end in parts.ends]
    notes = tuple(str(w) for w in builder.problems.warnings)
    output_parts = [part for end in ends for part in end.parts]
    layers = builder.layers
    if len(output_parts) > 1 or model.outputs:
        host_binaries = tuple(end.host_binary for end in ends)
        names = names_of_parts(model.all_outputs, host_binaries)
        outputs = [
            multiple_ports.host_output(builder, name, *part) for name, part in zip(names, output_parts, strict=True)
        ]
        numbers = [codes.index for codes, _, _ in output_parts]
        merge = multiple_ports.separate_outputs if separate else multiple_ports.merge_outputs
        output, placed = merge(builder, model.steps[-1].name, names, outputs, numbers)
        return ir.Graph(
            model,
            head=(),
            encode=None,
            input=builder.values[0],
            layers=tuple(layers.values()),
            output=output,
            tail=(),
            notes=notes,
            outputs=placed,
            host_binaries=host_binaries,
        )
    ((codes, tail, is_index),) = output_parts
    assert codes.index == len(builder.values) - 1, "the output is the last value"
    return ir.Graph(model, (), None, builder.values[0], tuple(layers.values()), codes.value, tail, is_index, notes)
