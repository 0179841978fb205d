"""Lowers a Model to a Graph: host head, integer layers, host tail.

The passes of `pipeline` rewrite the Model first. Then its steps are walked in order. Elementwise work between two
integer tensors is collected (`PendingValue`) until a quantizer ends it, and becomes one `Map`: whatever it consists of,
it is a function of one integer for each element. Reshapes and transposes move in front of it. A linear layer becomes
exact integer sums (docs/numeric-contract.md). What joins two tensors becomes a `BinaryMap`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import Collector, HlsgenError, fail, stuck
from hlsgen.ir import (
    Affine,
    ArgMax,
    ArgMaxLayer,
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    Graph,
    HostOp,
    MatMul,
    MatMulInteger,
    Model,
    Normalize,
    Pack,
    Pad,
    Pool,
    QLinearSoftmax,
    Repeat,
    Reshape,
    Select,
    Slice,
    Softmax,
    Step,
    Transpose,
    Value,
)
from hlsgen.ir.op_facts import tells_zeros_apart
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Elementwise
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.input_mode import STAND_IN, InputMode, ask_for_type, default_mode
from hlsgen.passes.input_port import InputPort, check_mode, input_port
from hlsgen.passes.lower_linear import linear, linear_integer
from hlsgen.passes.lower_norm import normalized_rows
from hlsgen.passes.lower_product import product
from hlsgen.passes.lower_softmax import softmax
from hlsgen.passes.lower_windows import concatenation, convolution, padding, pooling, rearrangement
from hlsgen.passes.partition import LINEAR, Partition
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.pipeline import check_graph, run_pipeline
from hlsgen.passes.quantization import order_kept


def lower(model: Model, mode: InputMode | None, problems: Collector) -> Graph:
    """The integer graph. `mode` None chooses: declared type, else float32 for a graph that has no
    linear layer, else codes; a layer needs one of its input's (HG061). Raises HlsgenError."""
    model = run_pipeline(model)
    steps = model.steps
    if not any(isinstance(s.op, (*QUANTIZERS, *LINEAR)) for s in steps):
        raise fail(
            "HG036", model.name, "the model has no quantizer and no linear layer.",
            "There is nothing to build: is this a float model? Quantize it first (Brevitas, QKeras + QONNX).",
        )  # fmt: skip
    parts = Partition(steps)
    core = [steps[i] for i in parts.core]
    for step in [s for s in core if isinstance(s.op, (HostOp, ArgMax))]:
        problems.items.append(stuck(step.name, step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"))
    first = steps[parts.first].op if parts.first >= 0 else None
    typed = model if parts.input_type_holds(steps) else replace(model, input_type=None)
    known = mode or default_mode(typed, first, isinstance(first, LINEAR))
    mode = known or STAND_IN
    check_mode(model, mode, parts, problems)
    problems.finish()
    if known is None:
        ask_for_type(model, steps[parts.first], problems)
    port = input_port(model, mode, parts)
    apart = any(isinstance(s.op, (*FLOATS, *QUANTIZERS)) and tells_zeros_apart(s.op) for s in steps)  # type: ignore[arg-type]
    builder = GraphBuilder(problems, port.tensor.value, apart)
    tensors = _lower_core(builder, model, parts, port)
    problems.finish()
    graph = _with_tail(builder, model, parts, port, tensors)
    check_graph(graph, "lowering")
    return graph


def _lower_core(builder: GraphBuilder, model: Model, parts: Partition, port: InputPort) -> dict[int, PendingValue]:
    """What is known of every value of the model, layers being made on the way. Problems are collected."""
    tensors = {port.number: port.tensor}
    for i in port.core:
        step = model.steps[i]
        operands = [tensors[j] for j in step.inputs]
        try:
            tensors[i + 1] = _lower_step(builder, step, operands, shared=len(parts.users[i + 1]) > 1)
        except HlsgenError as error:
            with builder.problems.catching():
                raise error
            # Goes on as if the step gave 8-bit codes, to find what else is wrong.
            codes = Value(step.shape, IntType(-128, 127), Affine(np.float32(1), np.float32(0)))
            tensors[i + 1] = builder.assume(codes)
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
        case HostOp() | ArgMax() | Select():
            raise AssertionError("host operations end hardware")
        case _:
            return first.then(name, op)


def _with_tail(
    builder: GraphBuilder, model: Model, parts: Partition, port: InputPort, tensors: dict[int, PendingValue]
) -> Graph:
    """The graph, with what the host does behind its last layer."""
    rest = [model.steps[i] for i in parts.tail]
    end = builder.flushed(tensors[rest[0].inputs[0] if rest else len(model.steps)])
    if end.branches:
        end = builder.to_codes("the output", end)
    is_index = False
    at = next((i for i, s in enumerate(rest) if isinstance(s.op, ArgMax)), None)
    if at is not None:
        index = _arg_max(builder, end, rest[: at + 1])
        if index is not None:
            end, rest, is_index = index, rest[at + 1 :], True
    assert end.index == len(builder.values) - 1, "the output is the last value"
    output = end.value
    tail = [Step(name, op, output.shape, ()) for name, op in end.named_ops] + rest
    head = tuple(model.steps[i] for i in port.head)
    notes = tuple(str(w) for w in builder.problems.warnings)
    return Graph(
        model,
        head,
        port.encode,
        builder.values[0],
        tuple(builder.layers.values()),
        output,
        tuple(tail),
        is_index,
        notes,
    )


def _arg_max(builder: GraphBuilder, end: PendingValue, steps: list[Step]) -> PendingValue | None:
    """An ArgMax, the last of `steps`, in hardware if comparing codes is proven to compare the real values."""
    between = [s.op for s in steps[:-1]]
    if not all(isinstance(op, FLOATS) for op in between):
        return None
    ops: list[Elementwise] = [*end.ops, *(op for op in between if isinstance(op, FLOATS))]
    if not order_kept(end.value, ops):
        return None
    name, shape = steps[-1].name, steps[-1].shape
    result = Value(shape, IntType(0, end.value.shape[-1] - 1), Affine(np.float32(1), np.float32(0)))
    return builder.add(ArgMaxLayer(name, end.value, result, (end.index,)))
