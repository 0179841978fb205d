"""Splits float pre- and postprocessing into steps that generated host code runs and steps left to the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import Collector
from hlsgen.host.order_keys import OrderKeys, order_keys
from hlsgen.host.source import SourceHead
from hlsgen.interpreter.host_steps import run_step
from hlsgen.interpreter.host_tflite import host_softmax
from hlsgen.ir import ops
from hlsgen.ir.evaluate import decode
from hlsgen.ir.input_codes import bounds_of_codes
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics import activations

#: A step with more constants than this is left to the user.
MAX_CONSTANTS = 1 << 18
#: Dtypes that host code computes with.
DTYPES = frozenset("float32 float64 bool int8 int16 int32 int64 uint8 uint16 uint32".split())
#: Reasons for steps that host code could run.
_BEFORE_USER_STEP, _AFTER_USER_STEP = "a later step is left to you", "an earlier step is left to you"


@dataclass(frozen=True)
class Tensor:
    """A tensor between steps: shape of a frame, and numpy dtype."""

    shape: ir.Shape
    dtype: str


@dataclass(frozen=True, eq=False)
class HostStep:
    """A step that host code runs, with its input and output tensor."""

    step: ir.Step
    input: Tensor
    output: Tensor


@dataclass(frozen=True, eq=False)
class Head:
    """Host preprocessing: the steps from `start` to the codes of the input port.

    - user_steps: (step, reason) of the steps before `start`, which the user runs.
    - encode: the quantizer at the end, if there is one.
    - pairs: the input is two tensors of this type, the low and the high byte of a code.
    - makes_codes: False if host code cannot make the codes; then it has no steps.
    - source: the codes are a function of integers, and `start` is their tensor.
    """

    user_steps: tuple[tuple[str, str], ...]
    start: Tensor
    steps: tuple[HostStep, ...]
    encode: ops.Quantizer | None
    pairs: bool
    makes_codes: bool
    source: SourceHead | None = None

    @property
    def bounds(self) -> ValueRange | None:
        """The codes that Min and Max before the quantizer leave. NaN gives the lowest one of its element."""
        return bounds_of_codes([step.step for step in self.steps], self.encode)


@dataclass(frozen=True, eq=False)
class Tail:
    """Host postprocessing: the steps from the codes of the output port to `end`.

    - encoding: decodes the codes, or None if they are already the numbers.
    - user_steps: (step, reason) of the steps after `end`, which the user runs.
    - joined: the codes are two concatenated parts, and `decoded` is the result of joining them.
    - keys: integers that the first ArgMax compares in place of the numbers.
    """

    encoding: ir.Encoding | None
    decoded: Tensor
    steps: tuple[HostStep, ...]
    end: Tensor
    user_steps: tuple[tuple[str, str], ...]
    joined: Joined | None = None
    keys: OrderKeys | None = None

    @property
    def encoding_of_numbers(self) -> ir.Encoding | None:
        """The encoding by which host code decodes codes, or None if it computes with codes alone."""
        return None if self.keys else self.encoding

    @property
    def computed_steps(self) -> tuple[HostStep, ...]:
        """The steps that host code runs; only moves of elements before an ArgMax that compares keys."""
        if self.keys is None:
            return self.steps
        first = _first_arg_max(self.steps)
        moves = (step for step in self.steps[:first] if isinstance(step.step.op, ir.Reshape | ir.Transpose))
        return (*moves, *self.steps[first:])


@dataclass(frozen=True, eq=False)
class Joined:
    """A binary operation on the results of two tails."""

    name: str
    kind: ir.BinaryKind
    sides: tuple[Tail, Tail]


@dataclass(frozen=True, eq=False)
class Output:
    """An output tensor, and the tail that computes it from the codes at `offset` of the frame, which have this
    shape."""

    tensor: str
    offset: int
    shape: ir.Shape
    tail: Tail


def by_input(graph: ir.Graph) -> tuple[ir.Graph, ...]:
    """One graph for each part of the input port, with this part as its only input."""
    if not graph.inputs:
        return (graph,)
    return tuple(_with_input(graph, part) for part in graph.inputs)


def _with_input(graph: ir.Graph, part: ir.GraphInput) -> ir.Graph:
    """The graph with this part of the port as its only input."""
    source = graph.model.all_inputs[part.source]
    model = replace(
        graph.model,
        input_name=source.name,
        input_shape=source.shape,
        input_dtype=source.dtype,
        input_type=source.type,
        inputs=(),
    )
    return replace(graph, head=part.steps, encode=part.encode, input=part.value, inputs=(), model=model)


def plan_head(graph: ir.Graph) -> Head:
    """Plans the preprocessing of a graph with one input."""
    model = graph.model
    input_tensor = Tensor(model.input_shape, model.input_dtype)
    steps = _typed(graph.head, input_tensor)
    reasons = [why_left_to_user(step) for step in steps]
    first = max((n + 1 for n, reason in enumerate(reasons) if reason), default=0)
    last = steps[-1].output if steps else input_tensor
    user_steps = [
        (step.step.name, reason or _BEFORE_USER_STEP) for step, reason in zip(steps[:first], reasons, strict=False)
    ]
    start = steps[first].input if first < len(steps) else last
    reason = _type_problem(last.dtype)
    if not reason and graph.encode is not None:
        reason = _op_problem(graph.encode, last.dtype, "int64")
    if reason:
        user_steps += [(step.step.name, _BEFORE_USER_STEP) for step in steps[first:]]
        name = "input quantizer" if graph.encode is not None else model.input_name
        return Head((*user_steps, (name, reason)), last, (), None, False, False)
    source = None if user_steps else _source_of(graph)
    if source is not None:
        start = Tensor(start.shape, source.source.dtype)
    return Head(tuple(user_steps), start, tuple(steps[first:]), graph.encode, bool(model.second_input), True, source)


def _source_of(graph: ir.Graph) -> SourceHead | None:
    """The head of a graph with one input whose numbers the host has as integers."""
    model = graph.model
    source = next((source for source in model.sources if source.name == model.input_name), None)
    if source is None or model.second_input:
        return None
    return SourceHead(source, graph.head, graph.encode, graph.input, model.input_shape, model.input_dtype)


def check_sources(graph: ir.Graph) -> None:
    """Raises HG040 for each integer source of which the codes of its input are no function in host code."""
    problems = Collector()
    graphs = by_input(graph.host_graph)
    inputs = list(dict.fromkeys(part.model.input_name for part in graphs))
    for source in graph.model.sources:
        flag = f"--source {source.name}"
        if source.name not in inputs:
            problems.error("HG040", flag, "is no input of the model.", f"Its inputs are {', '.join(inputs)}.")
        for head in (plan_head(part) for part in graphs if part.model.input_name == source.name):
            if head.source is None:
                text = next((f"{name}: {reason}" for name, reason in head.user_steps), "the input is two tensors")
                problems.error("HG040", flag, f"host code has no head for it: {text}.", "Leave the option out.")
                continue
            with problems.catching():
                _ = head.source.function
    problems.finish()


def plan_tail(graph: ir.Graph) -> Tail:
    """Plans the postprocessing of a graph with one output."""
    model = graph.model
    return _tail(graph.output, graph.output_is_index, graph.tail, model.output_name, model.output_dtype)


def plan_outputs(graph: ir.Graph) -> tuple[Output, ...]:
    """Plans the postprocessing of each output. If host code cannot join two parts, each part is an output."""
    if not graph.outputs:
        return (Output(graph.model.output_name, 0, graph.output.shape, plan_tail(graph)),)
    outputs, names = list[Output](), iter(graph.part_names)
    for end in graph.output_assemblies:
        named_parts = [(next(names), part) for part in end.parts]
        dtype = end.output.dtype if end.host_binary is None else ""
        tails = [_tail(part.value, part.is_index, part.steps, name, dtype) for name, part in named_parts]
        if end.host_binary is not None and not any(tail.user_steps for tail in tails):
            size = sum(part.value.size for part in end.parts)
            outputs.append(Output(end.output.name, end.parts[0].offset, (size,), _joined(end, (tails[0], tails[1]))))
            continue
        if end.host_binary is not None:
            joint_steps = (end.host_binary.name, *(step.name for step in end.host_binary.steps))
            user_steps = tuple((name, _AFTER_USER_STEP) for name in joint_steps)
            tails = [replace(tail, user_steps=(*tail.user_steps, *user_steps)) for tail in tails]
        outputs += [
            Output(name, part.offset, part.value.shape, tail)
            for (name, part), tail in zip(named_parts, tails, strict=True)
        ]
    return tuple(outputs)


def _joined(end: ir.OutputAssembly, sides: tuple[Tail, Tail]) -> Tail:
    """The tail of an output that joins two parts."""
    assert end.host_binary is not None
    joined = Joined(end.host_binary.name, end.host_binary.kind, sides)
    return _tail_from(None, sides[0].end, end.host_binary.steps, end.output.name, end.output.dtype, joined)


def _tail(value: ir.Value, is_index: bool, steps: tuple[ir.Step, ...], name: str, output_dtype: str) -> Tail:
    """The tail from the codes of a value to the tensor `name`; `output_dtype` "": the dtype stays as it is."""
    shape = value.shape
    encoding = None if is_index else value.encoding
    dtype = "int64" if encoding is None else str(decode(encoding, np.zeros((1, *shape), np.int64)).dtype)
    if _type_problem(dtype):
        codes = Tensor(shape, "int64")
        user_steps = [("output codes", f"their type: {_type_problem(dtype)}")]
        user_steps += [(step.name, _AFTER_USER_STEP) for step in steps]
        return Tail(None, codes, (), codes, tuple(user_steps))
    tail = _tail_from(encoding, Tensor(shape, dtype), steps, name, output_dtype)
    first = _first_arg_max(tail.steps)
    if encoding is None or first == len(tail.steps):
        return tail
    return replace(tail, keys=order_keys(encoding, value.type, [step.step for step in tail.steps[:first]], shape))


def _first_arg_max(steps: Sequence[HostStep]) -> int:
    """The place of the first ArgMax; the number of steps without one."""
    return next((n for n, step in enumerate(steps) if isinstance(step.step.op, ir.ArgMax)), len(steps))


def _tail_from(
    encoding: ir.Encoding | None,
    decoded: Tensor,
    steps: tuple[ir.Step, ...],
    name: str,
    output_dtype: str,
    joined: Joined | None = None,
) -> Tail:
    """The tail from a decoded tensor to the tensor `name`; `output_dtype` "": the dtype stays as it is."""
    typed = _typed(steps, decoded)
    stop = next((n for n, step in enumerate(typed) if why_left_to_user(step)), len(typed))
    user_steps = [(step.step.name, why_left_to_user(step) or _AFTER_USER_STEP) for step in typed[stop:]]
    end = typed[stop - 1].output if stop else decoded
    output = Tensor(end.shape, output_dtype or end.dtype)
    if not user_steps and output.dtype != end.dtype:
        reason = _op_problem(ops.Cast(output.dtype), end.dtype, output.dtype) or _type_problem(output.dtype)
        if reason:
            user_steps.append((name, reason))
        else:
            end = output
    return Tail(encoding, decoded, tuple(typed[:stop]), end, tuple(user_steps), joined)


def left_to_user(graph: ir.Graph) -> dict[str, list[str]]:
    """Names of the steps that the user runs, by "head" and "tail"."""
    heads, tails = map(plan_head, by_input(graph)), (output.tail for output in plan_outputs(graph))
    return {"head": _user_step_names(heads), "tail": _user_step_names(tails)}


def _user_step_names(parts: Iterable[Head | Tail]) -> list[str]:
    """Names of the steps left to the user, without repetitions."""
    return list(dict.fromkeys(name for part in parts for name, _ in part.user_steps))


def _typed(steps: tuple[ir.Step, ...], tensor: Tensor) -> list[HostStep]:
    """Steps with the types of their tensors, found by running them on zeros."""
    typed, x = [], np.zeros((1, *tensor.shape), tensor.dtype)
    for step in steps:
        x = run_step(step, x)
        output = Tensor(x.shape[1:], str(x.dtype))
        typed.append(HostStep(step, tensor, output))
        tensor = output
    return typed


def why_left_to_user(host_step: HostStep) -> str:
    """The reason why host code cannot run a step; empty if it can."""
    return _op_problem(host_step.step.op, host_step.input.dtype, host_step.output.dtype)


def _type_problem(dtype: str) -> str:
    """The reason why host code cannot compute with a dtype; empty if it can."""
    return "" if dtype in DTYPES else f"computes in {dtype}"


def _op_problem(op: ir.Op, input_dtype: str, output_dtype: str) -> str:
    """The reason why host code cannot run an operation on these dtypes; empty if it can."""
    if isinstance(op, ir.HostOp):
        return "" if host_softmax(op) is not None else f"{op.op_type} has no bit-exact definition"
    if isinstance(op, ops.Activation) and op.kind in activations.SMOOTH:
        return f"libraries round {op.kind} differently"
    if isinstance(op, ops.Pair | ops.FixedAdd):
        return "adds or multiplies two quantized inputs"
    if isinstance(op, ops.IntegerActivation | ops.IntegerRatio):
        return "is an integer function that hardware computes"
    if isinstance(op, ops.BinaryOf | ops.Where):
        problems = (_chain_problem(branch, input_dtype) for branch in op.ways)
        return next(filter(None, problems), "") or _type_problem(output_dtype)
    arrays = [constant for constant in (getattr(op, f.name) for f in fields(op)) if isinstance(constant, np.ndarray)]
    if sum(array.size for array in arrays) > MAX_CONSTANTS:
        return f"has more than {MAX_CONSTANTS} constants"
    dtypes = [input_dtype, output_dtype, *(str(array.dtype) for array in arrays)]
    problem = next(filter(None, map(_type_problem, dtypes)), "")
    of_integers = np.dtype(input_dtype).kind != "f"
    if problem or isinstance(op, ir.Reshape | ir.Transpose | ir.ArgMax):
        return problem
    if isinstance(op, ops.Cast) and not of_integers and np.dtype(output_dtype).kind != "f":
        return "converts floats to integers"
    needs_floats = isinstance(op, ops.Activation) and op.kind not in activations.OF_INTEGERS
    if of_integers and (isinstance(op, ops.Div | ops.Fma | ops.Slope) or needs_floats):
        return f"{type(op).__name__} of integers"
    return "dequantizes floats that are not integers" if isinstance(op, ops.Dequantize) and not of_integers else ""


def _chain_problem(operations: tuple[ir.Op, ...], input_dtype: str) -> str:
    """The reason why host code cannot run one of these successive operations; empty if it can run all."""
    x = np.zeros((1,) * 8, input_dtype)
    for op in operations:
        y = run_step(ir.Step("", op, (), ()), x)
        reason = _op_problem(op, str(x.dtype), str(y.dtype))
        if reason:
            return reason
        x = y
    return ""
