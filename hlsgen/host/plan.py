"""What host code does of the head and the tail of a graph, and which steps it leaves to the user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np

from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir import ArgMax, BinaryKind, Encoding, Graph, GraphEnd, HostOp, Op, Reshape, Shape, Step, Transpose, Value
from hlsgen.ir.evaluate import decode
from hlsgen.ir.ops import (
    Activation,
    BinaryOf,
    Cast,
    Dequantize,
    Div,
    FixedAdd,
    Fma,
    IntegerActivation,
    IntegerRatio,
    Pair,
    Quantizer,
    Slope,
    Where,
)
from hlsgen.numerics import activations

#: Operations with more constants than this are left to the user.
MAX_CONSTANTS = 1 << 18
#: Types of numbers that host code computes with.
DTYPES = frozenset("float32 float64 bool int8 int16 int32 int64 uint8 uint16 uint32".split())


@dataclass(frozen=True)
class Tensor:
    """A tensor between steps: the shape of a frame, and the numpy dtype."""

    shape: Shape
    dtype: str


@dataclass(frozen=True, eq=False)
class Done:
    """A step that host code does, with the tensors that it takes and gives."""

    step: Step
    taken: Tensor
    given: Tensor


@dataclass(frozen=True, eq=False)
class Head:
    """From `start` to the codes of the input port.

    `left`: steps in front of `start`, and why host code does not have them. `encode`: the quantizer at the end, if there
    is one. `pairs`: two tensors of that type come in, as low and high byte of a code. None of it if not even the
    codes are made: then `makes_codes` is False.
    """

    left: tuple[tuple[str, str], ...]
    start: Tensor
    steps: tuple[Done, ...]
    encode: Quantizer | None
    pairs: bool
    makes_codes: bool


@dataclass(frozen=True, eq=False)
class Tail:
    """From the codes of the output port, decoded if `encoding` is not None, to `end`. `left`: steps behind it, and why.

    With `joined`, the codes are those of two parts, one behind the other, and `decoded` is what comes of both.
    """

    encoding: Encoding | None
    decoded: Tensor
    steps: tuple[Done, ...]
    end: Tensor
    left: tuple[tuple[str, str], ...]
    joined: Joined | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """Two parts, each behind a tail of its own, and what joins them."""

    name: str
    kind: BinaryKind
    sides: tuple[Tail, Tail]


@dataclass(frozen=True, eq=False)
class Output:
    """What host code makes of the codes from `offset` of the frame on, in that shape, and the name of the tensor."""

    tensor: str
    offset: int
    shape: Shape
    tail: Tail


def by_input(graph: Graph) -> tuple[Graph, ...]:
    """The graph as each of several parts of its port sees it: as if there were no other."""
    if not graph.inputs:
        return (graph,)
    return tuple(
        replace(
            graph, head=part.steps, encode=part.encode, input=part.value, inputs=(),
            model=replace(
                graph.model, input_name=one.name, input_shape=one.shape, input_dtype=one.dtype, input_type=one.type, inputs=()
            ),
        )
        for one, part in ((graph.model.sources[part.source], part) for part in graph.inputs)
    )  # fmt: skip


def plan_head(graph: Graph) -> Head:
    """What host code does in front of the port of the only input."""
    model = graph.model
    done = _typed(graph.head, Tensor(model.input_shape, model.input_dtype))
    reasons = [why_left(d) for d in done]
    first = max((n + 1 for n, reason in enumerate(reasons) if reason), default=0)
    last = done[-1].given if done else Tensor(model.input_shape, model.input_dtype)
    left = [(d.step.name, reason or "stands in front of one") for d, reason in zip(done[:first], reasons, strict=False)]
    start = done[first].taken if first < len(done) else last
    reason = _of_type(last.dtype) or (_of_op(graph.encode, last.dtype, "int64") if graph.encode is not None else "")
    if reason:
        left += [(d.step.name, "stands in front of one") for d in done[first:]]
        name = "input quantizer" if graph.encode is not None else model.input_name
        return Head((*left, (name, reason)), last, (), None, False, False)
    return Head(tuple(left), start, tuple(done[first:]), graph.encode, bool(model.second_input), True)


def plan_tail(graph: Graph) -> Tail:
    """What host code does behind the port of the only output."""
    model = graph.model
    return _tail(graph.output, graph.output_is_index, graph.tail, model.output_name, model.output_dtype)


def plan_outputs(graph: Graph) -> tuple[Output, ...]:
    """What host code makes of every output. Of two parts that it cannot join each."""
    if not graph.outputs:
        return (Output(graph.model.output_name, 0, graph.output.shape, plan_tail(graph)),)
    found, names = list[Output](), iter(graph.part_names)
    for end in graph.ends:
        own = [(next(names), part) for part in end.parts]
        dtype = end.output.dtype if end.joint is None else ""
        tails = [_tail(part.value, part.is_index, part.steps, name, dtype) for name, part in own]
        if end.joint is not None and not any(tail.left for tail in tails):
            size = sum(part.value.size for part in end.parts)
            found.append(Output(end.output.name, end.parts[0].offset, (size,), _joined(end, (tails[0], tails[1]))))
            continue
        if end.joint is not None:
            behind = tuple((name, "follows one") for name in (end.joint.name, *(s.name for s in end.joint.steps)))
            tails = [replace(tail, left=(*tail.left, *behind)) for tail in tails]
        found += [Output(n, part.offset, part.value.shape, tail) for (n, part), tail in zip(own, tails, strict=True)]
    return tuple(found)


def _joined(end: GraphEnd, sides: tuple[Tail, Tail]) -> Tail:
    assert end.joint is not None
    joined = Joined(end.joint.name, end.joint.kind, sides)
    return _behind(None, sides[0].end, end.joint.steps, end.output.name, end.output.dtype, joined)


def _tail(value: Value, is_index: bool, steps: tuple[Step, ...], name: str, output: str) -> Tail:
    """Behind codes; `output`: the dtype of the tensor of that name, "" of one that stays as it is."""
    shape = value.shape
    encoding = None if is_index else value.encoding
    dtype = "int64" if encoding is None else str(decode(encoding, np.zeros((1, *shape), np.int64)).dtype)
    if _of_type(dtype):
        left = [("output codes", f"their type: {_of_type(dtype)}"), *((s.name, "follows one") for s in steps)]
        return Tail(None, Tensor(shape, "int64"), (), Tensor(shape, "int64"), tuple(left))
    return _behind(encoding, Tensor(shape, dtype), steps, name, output)


def _behind(
    encoding: Encoding | None, decoded: Tensor, steps: tuple[Step, ...], name: str, dtype: str,
    joined: Joined | None = None,
) -> Tail:  # fmt: skip
    done = _typed(steps, decoded)
    stop = next((n for n, d in enumerate(done) if why_left(d)), len(done))
    behind = [(d.step.name, why_left(d) or "follows one") for d in done[stop:]]
    end = done[stop - 1].given if stop else decoded
    output = Tensor(end.shape, dtype or end.dtype)
    if not behind and output.dtype != end.dtype:
        reason = _of_op(Cast(output.dtype), end.dtype, output.dtype) or _of_type(output.dtype)
        if reason:
            behind.append((name, reason))
        else:
            end = output
    return Tail(encoding, decoded, tuple(done[:stop]), end, tuple(behind), joined)


def left_to_user(graph: Graph) -> dict[str, list[str]]:
    """The names of the steps that host code does not have, in front of the head and behind the tail."""
    heads, tails = map(plan_head, by_input(graph)), (output.tail for output in plan_outputs(graph))
    return {"head": _left(heads), "tail": _left(tails)}


def _left(parts: Iterable[Head | Tail]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name, _ in part.left))


def _typed(steps: tuple[Step, ...], tensor: Tensor) -> list[Done]:
    """Steps with the types of their tensors, by running them on zeros."""
    found, x = [], np.zeros((1, *tensor.shape), tensor.dtype)
    for step in steps:
        x = run_step(step, x)
        given = Tensor(x.shape[1:], str(x.dtype))
        found.append(Done(step, tensor, given))
        tensor = given
    return found


def why_left(done: Done) -> str:
    """Why host code does not have a step; empty if it does."""
    return _of_op(done.step.op, done.taken.dtype, done.given.dtype)


def _of_type(dtype: str) -> str:
    return "" if dtype in DTYPES else f"computes in {dtype}"


def _of_op(op: Op, taken: str, given: str) -> str:
    """Why host code does not have an operation on these types; empty if it does."""
    if isinstance(op, HostOp):
        return f"{op.op_type} has no definition to the last bit"
    if isinstance(op, Activation) and op.kind in activations.SMOOTH:
        return f"{op.kind} is rounded differently by every library"
    if isinstance(op, Pair | FixedAdd):
        return "adds or multiplies two quantized inputs"
    if isinstance(op, IntegerActivation | IntegerRatio):
        return "is an integer function that hardware computes"
    if isinstance(op, BinaryOf | Where):
        return next(filter(None, (_of_way(way, taken) for way in op.ways)), "") or _of_type(given)
    arrays = [value for value in (getattr(op, f.name) for f in fields(op)) if isinstance(value, np.ndarray)]
    if sum(array.size for array in arrays) > MAX_CONSTANTS:
        return f"has more than {MAX_CONSTANTS} constants"
    problem = next(filter(None, map(_of_type, [taken, given, *(str(a.dtype) for a in arrays)])), "")
    whole = np.dtype(taken).kind != "f"
    if problem or isinstance(op, Reshape | Transpose | ArgMax):
        return problem
    if isinstance(op, Cast) and not whole and np.dtype(given).kind != "f":
        return "converts numbers to integers"
    literal = isinstance(op, Activation) and op.kind not in activations.OF_INTEGERS
    if whole and (isinstance(op, Div | Fma | Slope) or literal):
        return f"{type(op).__name__} of integers"
    return "takes numbers that are no integers" if isinstance(op, Dequantize) and not whole else ""


def _of_way(ops: tuple[Op, ...], taken: str) -> str:
    """The same of operations one after the other."""
    x = np.zeros((1,) * 8, taken)
    for op in ops:
        y = run_step(Step("", op, (), ()), x)
        reason = _of_op(op, str(x.dtype), str(y.dtype))
        if reason:
            return reason
        x = y
    return ""
