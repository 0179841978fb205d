"""Holds a Graph against the Model that it was made of: the same integers for the same input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import resumed
from hlsgen.interpreter.tensor import Tensor, of_codes, plain
from hlsgen.ir import (
    Affine,
    BinaryMap,
    Convolution,
    Encoding,
    FloatKey,
    Graph,
    GraphInput,
    IntegerEncoding,
    Layer,
    Linear,
    Map,
    Model,
    Pooling,
    Reshape,
    Shape,
    Step,
    Transpose,
    Value,
    View,
)
from hlsgen.ir.evaluate import decode, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, QuantizeLinear, Quantizer
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class Difference:
    """The first element that differs: of the layer of that name, or of the model's output.

    `channel`: its place on the last axis. `index`: on all axes of one frame. `count` of `elements` differ there.
    """

    layer: str
    frame: int
    channel: int
    index: tuple[int, ...]
    model: str
    graph: str
    count: int
    elements: int

    def where(self) -> str:
        """In words, without the name."""
        return (
            f"channel {self.channel} (element {list(self.index)}), frame {self.frame}: the model gives "
            f"{self.model}, the hardware's integers {self.graph}; {self.count} of {self.elements} differ"
        )


@dataclass(frozen=True)
class Comparison:
    """What was compared: frames, layers whose codes were held against a step, and the first difference."""

    frames: int
    layers: int
    difference: Difference | None

    @property
    def ok(self) -> bool:
        return self.difference is None


def compare(model: Model, graph: Graph, codes: Array) -> Comparison:
    """Runs both on codes (frames, *shape) of the graph's input port.

    `model` is what the file says, before any pass. The outputs are compared, and the values behind every layer that
    quantizes or sums, where a step of the model gives the same tensor.
    """
    at, tensor, codes = _start(model, graph, codes)
    values = resumed(model, at, tensor)
    results = [codes, *reference.run_layers(graph, codes)]
    first, layers = None, 0
    for number, layer in enumerate(graph.layers):
        found = _layer_difference(model, graph, values, results, number, layer)
        layers += found is not _UNKNOWN
        if first is None and isinstance(found, Difference):
            first = found
    wanted = values[-1].value.astype(model.output_dtype)
    got = np.reshape(reference.decode_output(graph, results[-1]), wanted.shape)
    return Comparison(len(codes), layers, first or _difference("the output", wanted, got))


def _start(model: Model, graph: Graph, codes: Array) -> tuple[int, Tensor, Array]:
    """The value of the model that the input codes are, as a tensor, and the codes.

    The codes are those of the first quantizer, or the numbers that the port carries. Where a pass has put another step
    in front, the model starts with its own input, and the codes are what the host makes of that.
    """
    if graph.inputs:
        tensor = _parts(model, graph, codes)
        return 0, tensor, reference.encode_input(graph, tensor.value)
    at = _behind_host(model, graph)
    if at is not None and graph.encode is None:
        dtype = model.input_dtype if not at and model.input_dtype.startswith("float") else None
        tensor = of_codes(graph.input.encoding, codes, dtype)
        return at, plain(tensor.value) if isinstance(graph.input.encoding, FloatKey) else tensor, codes
    if at is not None and at < len(model.steps) and model.steps[at].inputs == (at,):
        op = model.steps[at].op
        if isinstance(op, QUANTIZERS) and type(op) is type(graph.encode) and model.steps[at].shape == graph.input.shape:
            return at + 1, of_codes(decoding(op), codes), codes
    x = model_inputs(model, graph, codes)
    return 0, plain(x), reference.encode_input(graph, x)


def _parts(model: Model, graph: Graph, codes: Array) -> Tensor:
    """All inputs of a model with several, or with one of several parts, as tensors about where the codes lie."""
    x = model_inputs(model, graph, codes)
    if not model.inputs:
        return plain(x)
    tensors = []
    for number, own in enumerate(reference.parts_of(model.inputs, x)):
        tensor, part = plain(own), nearest_part(graph, number)
        if part.encode is None and not part.steps and not isinstance(part.value.encoding, FloatKey):
            # What the port carries is exact: sums of it are as well.
            dtype = own.dtype.name if own.dtype.kind == "f" else None
            held = np.clip(
                codes[:, part.offset : part.offset + part.value.size], part.value.type.lo, part.value.type.hi
            )
            tensor = of_codes(part.value.encoding, held.reshape(own.shape), dtype)
        tensors.append(tensor)
    return replace(plain(x), parts=tuple(tensors))


def _behind_host(model: Model, graph: Graph) -> int | None:
    """The value behind the host's head, if the model starts with it."""
    for number, step in enumerate(graph.head):
        own = model.steps[number]
        if type(own.op) is not type(step.op) or own.shape != step.shape or own.inputs != (number,):
            return None
    users = [step.inputs for step in model.steps]
    alone = all(sum(i in inputs for inputs in users) == 1 for i in range(len(graph.head)))
    return len(graph.head) if alone else None


def model_inputs(model: Model, graph: Graph, codes: Array) -> Array:
    """Numbers for the model's input, as many frames as codes, about where these lie; of several as `packed` has them."""
    if graph.inputs:
        parts = []
        for number, one in enumerate(model.all_inputs):
            part = nearest_part(graph, number)
            own = codes[:, part.offset : part.offset + part.value.size].reshape(-1, *part.value.shape)
            own = np.clip(own, part.value.type.lo, part.value.type.hi)
            parts.append(_numbers(one.shape, one.dtype, before_codes(part.encode, part.value), own))
        if not model.inputs:
            return parts[0]
        parts = [part.reshape(len(codes), -1) for part in parts]
        return np.concatenate([part.astype(np.float64) for part in parts], axis=1)
    return _numbers(model.input_shape, model.input_dtype, before_codes(graph.encode, graph.input), codes)


def before_codes(encode: Quantizer | None, port: Value) -> Encoding:
    """What the codes of a port stand for in front of the host's quantizer, which may give integers."""
    if isinstance(encode, QuantizeLinear) and isinstance(port.encoding, IntegerEncoding):
        return Affine(encode.scale.astype(np.float32), encode.zero_point.astype(np.float32))
    return port.encoding


def nearest_part(graph: Graph, source: int) -> GraphInput:
    """The part of an input with the fewest steps of the host in front."""
    return min((part for part in graph.inputs if part.source == source), key=lambda part: len(part.steps))


def _numbers(shape: Shape, dtype_name: str, encoding: Encoding, codes: Array) -> Array:
    real = np.nan_to_num(decode(encoding, codes)).astype(np.float64).reshape(len(codes), -1)
    x = np.stack([np.resize(frame, shape) for frame in real])
    dtype = np.dtype(dtype_name)
    if dtype.kind in "iu":
        return np.clip(np.round(x), np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    return x.astype(dtype)


#: Tensors of more axes, that of the frames included, are held in one order only.
_AXES = 5
#: No step of the model gives a tensor of the layer's shape.
_UNKNOWN = object()


def _layer_difference(
    model: Model, graph: Graph, values: list[Tensor], results: list[Array], number: int, layer: Layer
) -> object:
    """Where a layer differs from all steps that its values may stand for; None if it equals one."""
    if not isinstance(layer, Map | BinaryMap | Linear | Convolution):
        return _UNKNOWN
    sums = isinstance(layer, Linear | Convolution)
    # What a pass adds without a quantizer of the file (partial sums, codes of a common grid) has meanings of its own.
    steps = [i for i, step in enumerate(model.steps) if sums or isinstance(step.op, QUANTIZERS)]
    names = [i + 1 for i in steps if model.steps[i].name == layer.name and values[i + 1].value.size]
    wanted = [own for value in names for own in _meanings(model.steps, values, value, [values[value].value])]
    found: Difference | None = None
    known = False
    for value in (number + 1, *_poolings(graph, number + 1)):
        result = graph.layers[value - 1].result
        real = decode(result.encoding, results[value])
        for own in wanted:
            if own.shape == real.shape:
                difference = _difference(layer.name, own, real)
                if difference is None or _is_transposed(own, real):
                    return None
                found, known = found or difference, True
    return found if known else _UNKNOWN


def _is_transposed(own: Array, real: Array) -> bool:
    """Whether both are one tensor with its axes in another order, which cubes of pixels and channels hide."""
    orders = permutations(range(1, own.ndim)) if own.ndim <= _AXES else ()
    return any(
        own.transpose(0, *order).shape == real.shape and bool((own.transpose(0, *order) == real).all())
        for order in orders
    )


def _meanings(steps: tuple[Step, ...], values: list[Tensor], at: int, known: list[Array]) -> Iterator[Array]:
    """What a layer of the name of a step can stand for: its result, that of bounds and float operations behind it,
    and each of these with its elements renamed, as passes move reshapes and transposes to the front."""
    yield from known
    for number, step in enumerate(steps, 1):
        if step.inputs == (at,) and isinstance(step.op, FLOATS):
            yield from _meanings(steps, values, number, [*known, values[number].value])
        elif step.inputs == (at,) and isinstance(step.op, Reshape | Transpose):
            perm = step.op.perm if isinstance(step.op, Transpose) else ()
            moved = [a.transpose(0, *(p + 1 for p in perm)) if perm else a.reshape(-1, *step.shape) for a in known]
            yield from _meanings(steps, values, number, moved)


def _poolings(graph: Graph, value: int) -> Iterator[int]:
    """Values of maximum pools behind a layer: a quantizer may have changed places with them."""
    for number, layer in enumerate(graph.layers, 1):
        maximum = isinstance(layer, Pooling) and layer.kind is Reduction.MAX
        if layer.inputs == (value,) and (maximum or isinstance(layer, View)):
            yield number
            yield from _poolings(graph, number)


def _difference(name: str, wanted: Array, got: Array) -> Difference | None:
    wrong = (wanted != got) & ~((wanted != wanted) & (got != got))
    if not wrong.any():
        return None
    frame, *index = (int(i) for i in np.argwhere(wrong)[0])
    at = (frame, *index)
    channel = index[-1] if index else 0
    return Difference(
        name, frame, channel, tuple(index), str(wanted[at].item()), str(got[at].item()), int(wrong.sum()), wrong.size
    )
