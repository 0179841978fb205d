"""Compares a Graph with its Model: the same integers for the same input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from hlsgen import ir
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import interpret_from
from hlsgen.interpreter.tensor import Tensor, tensor_of_codes, tensor_of_numbers
from hlsgen.ir.evaluate import decode, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, QuantizeLinear, Quantizer
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class Difference:
    """The first element that differs, in the layer of that name or in the model's output.

    `channel`: its index on the last axis. `index`: on all axes of one frame. `count` of `elements` differ there.
    """

    layer: str
    frame: int
    channel: int
    index: tuple[int, ...]
    model: str
    graph: str
    count: int
    elements: int

    def describe(self) -> str:
        """The difference in words, without the layer's name."""
        return (
            f"channel {self.channel} (element {list(self.index)}), frame {self.frame}: the model gives "
            f"{self.model}, the hardware's integers {self.graph}; {self.count} of {self.elements} differ"
        )


@dataclass(frozen=True)
class Comparison:
    """The number of compared frames and of layers that were compared with a step, and the first difference."""

    frames: int
    layers: int
    difference: Difference | None

    @property
    def ok(self) -> bool:
        return self.difference is None


def compare(model: ir.Model, graph: ir.Graph, codes: Array) -> Comparison:
    """Run both on codes (frames, *shape) of the graph's input port and compare them.

    `model` is the file's model, before any pass. The outputs are compared, and the values of every layer that
    quantizes or sums, if a step of the model computes the same tensor.
    """
    start_value, tensor, codes = _start_value(model, graph, codes)
    values = interpret_from(model, start_value, tensor)
    results = [codes, *reference.run_layers(graph, codes)]
    first_difference, layers = None, 0
    for number, layer in enumerate(graph.layers):
        difference = _layer_difference(model, graph, values, results, number, layer)
        layers += difference is not _UNKNOWN
        if first_difference is None and isinstance(difference, Difference):
            first_difference = difference
    expected = values[-1].value.astype(model.output_dtype)
    output = np.reshape(reference.decode_output(graph, results[-1]), expected.shape)
    return Comparison(len(codes), layers, first_difference or _difference("the output", expected, output))


def _start_value(model: ir.Model, graph: ir.Graph, codes: Array) -> tuple[int, Tensor, Array]:
    """(value number, tensor, codes): the value of the model that the input codes represent, as a tensor, and the codes.

    The codes come from the first quantizer, or are the numbers that the port carries. If a pass has moved another step
    before these, the model starts with its own input, and the host computes the codes from that.
    """
    if graph.inputs:
        tensor = _input_tensors(model, graph, codes)
        return 0, tensor, reference.encode_input(graph, tensor.value)
    value_number = _value_after_head(model, graph)
    if value_number is not None and graph.encode is None:
        dtype = model.input_dtype if not value_number and model.input_dtype.startswith("float") else None
        tensor = tensor_of_codes(graph.input.encoding, codes, dtype)
        return (
            value_number,
            tensor_of_numbers(tensor.value) if isinstance(graph.input.encoding, ir.FloatKey) else tensor,
            codes,
        )
    if (
        value_number is not None
        and value_number < len(model.steps)
        and model.steps[value_number].inputs == (value_number,)
    ):
        op = model.steps[value_number].op
        if (
            isinstance(op, QUANTIZERS)
            and type(op) is type(graph.encode)
            and model.steps[value_number].shape == graph.input.shape
        ):
            return value_number + 1, tensor_of_codes(decoding(op), codes), codes
    x = model_inputs(model, graph, codes)
    return 0, tensor_of_numbers(x), reference.encode_input(graph, x)


def _input_tensors(model: ir.Model, graph: ir.Graph, codes: Array) -> Tensor:
    """All inputs of a model with several inputs or several parts, as tensors of values near the given codes."""
    x = model_inputs(model, graph, codes)
    if not model.inputs:
        return tensor_of_numbers(x)
    tensors = []
    for number, array in enumerate(reference.split_inputs(model.inputs, x)):
        tensor, part = tensor_of_numbers(array), nearest_part(graph, number)
        if part.encode is None and not part.steps and not isinstance(part.value.encoding, ir.FloatKey):
            # The port's numbers are exact, and so are sums of them.
            dtype = array.dtype.name if array.dtype.kind == "f" else None
            part_codes = np.clip(
                codes[:, part.offset : part.offset + part.value.size], part.value.type.lo, part.value.type.hi
            )
            tensor = tensor_of_codes(part.value.encoding, part_codes.reshape(array.shape), dtype)
        tensors.append(tensor)
    return replace(tensor_of_numbers(x), parts=tuple(tensors))


def _value_after_head(model: ir.Model, graph: ir.Graph) -> int | None:
    """The value after the host's head, if the model starts with the same steps; else None."""
    for number, step in enumerate(graph.head):
        model_step = model.steps[number]
        if type(model_step.op) is not type(step.op) or model_step.shape != step.shape or model_step.inputs != (number,):
            return None
    users = [step.inputs for step in model.steps]
    single_users = all(sum(i in inputs for inputs in users) == 1 for i in range(len(graph.head)))
    return len(graph.head) if single_users else None


def model_inputs(model: ir.Model, graph: ir.Graph, codes: Array) -> Array:
    """Numbers for the model's input, as many frames as `codes`, that encode to values near these codes.

    Several inputs are packed as in `pack_inputs`.
    """
    if graph.inputs:
        parts = []
        for number, source in enumerate(model.all_inputs):
            part = nearest_part(graph, number)
            part_codes = codes[:, part.offset : part.offset + part.value.size].reshape(-1, *part.value.shape)
            part_codes = np.clip(part_codes, part.value.type.lo, part.value.type.hi)
            parts.append(_numbers(source.shape, source.dtype, host_encoding(part.encode, part.value), part_codes))
        if not model.inputs:
            return parts[0]
        parts = [part.reshape(len(codes), -1) for part in parts]
        return np.concatenate([part.astype(np.float64) for part in parts], axis=1)
    return _numbers(model.input_shape, model.input_dtype, host_encoding(graph.encode, graph.input), codes)


def host_encoding(encode: Quantizer | None, port: ir.Value) -> ir.Encoding:
    """The encoding of a port's codes before the host's quantizer, which may give integers."""
    if isinstance(encode, QuantizeLinear) and isinstance(port.encoding, ir.IntegerEncoding):
        return ir.Affine(encode.scale.astype(np.float32), encode.zero_point.astype(np.float32))
    return port.encoding


def nearest_part(graph: ir.Graph, source: int) -> ir.GraphInput:
    """The part of an input with the fewest host steps before it."""
    return min((part for part in graph.inputs if part.source == source), key=lambda part: len(part.steps))


def _numbers(shape: ir.Shape, dtype_name: str, encoding: ir.Encoding, codes: Array) -> Array:
    real = np.nan_to_num(decode(encoding, codes)).astype(np.float64).reshape(len(codes), -1)
    x = np.stack([np.resize(frame, shape) for frame in real])
    dtype = np.dtype(dtype_name)
    if dtype.kind in "iu":
        return np.clip(np.round(x), np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    return x.astype(dtype)


#: Tensors of more axes, including the axis of frames, are compared in one order only.
_AXES = 5
#: No step of the model computes a tensor of the layer's shape.
_UNKNOWN = object()


def _layer_difference(
    model: ir.Model, graph: ir.Graph, values: list[Tensor], results: list[Array], number: int, layer: ir.Layer
) -> object:
    """The difference of a layer from all steps that may correspond to it, or None if it equals one."""
    if not isinstance(layer, ir.Map | ir.BinaryMap | ir.Linear | ir.Convolution):
        return _UNKNOWN
    sums = isinstance(layer, ir.Linear | ir.Convolution)
    # Layers that a pass adds without a quantizer of the file (partial sums, codes of a common grid) have other values.
    steps = [i for i, step in enumerate(model.steps) if sums or isinstance(step.op, QUANTIZERS)]
    candidates = [i + 1 for i in steps if model.steps[i].name == layer.name and values[i + 1].value.size]
    equivalents = [
        expected for value in candidates for expected in _equivalents(model.steps, values, value, [values[value].value])
    ]
    difference: Difference | None = None
    is_comparable = False
    for value in (number + 1, *_maximum_pools(graph, number + 1)):
        real = decode(graph.layers[value - 1].result.encoding, results[value])
        remaining = _remaining(graph, value)
        for expected in equivalents:
            if expected.shape[1:] == tuple(map(len, remaining)):
                candidate_difference = _difference(layer.name, _part(expected, remaining), real)
                if candidate_difference is None or _is_transposed(expected, real, remaining):
                    return None
                difference, is_comparable = difference or candidate_difference, True
    return difference if is_comparable else _UNKNOWN


def _remaining(graph: ir.Graph, value: int) -> list[Array]:
    """For each axis of a value of the model's graph, whether this graph has the position, bool."""
    shape = graph.layers[value - 1].result.shape
    removed = graph.removed[value] if graph.removed else ((),) * len(shape)
    return [
        ~np.isin(np.arange(size + len(positions)), positions) for size, positions in zip(shape, removed, strict=True)
    ]


def _part(array: Array, remaining: list[Array]) -> Array:
    """The elements of all frames at these positions."""
    index: tuple[slice | Array, ...] = (slice(None), *np.ix_(*remaining))
    return np.asarray(array[index])


def _is_transposed(expected: Array, real: Array, remaining: list[Array]) -> bool:
    """True if both are one tensor with its axes in another order, which a comparison of shapes alone cannot exclude.

    `remaining`: as in `_remaining`.
    """
    orders = permutations(range(1, expected.ndim)) if expected.ndim <= _AXES else ()
    moved = (expected.transpose(0, *order) for order in orders)
    return any(
        tensor.shape[1:] == tuple(map(len, remaining)) and bool((_part(tensor, remaining) == real).all())
        for tensor in moved
    )


def _equivalents(steps: tuple[ir.Step, ...], values: list[Tensor], at: int, arrays: list[Array]) -> Iterator[Array]:
    """The values that a layer with the name of a step can have.

    These are the step's result, the results of bounds and float operations after it, and each of these with
    renumbered elements, since passes move reshapes and transposes forward. `arrays`: the values of step `at`.
    """
    yield from arrays
    for number, step in enumerate(steps, 1):
        if step.inputs == (at,) and isinstance(step.op, FLOATS):
            yield from _equivalents(steps, values, number, [*arrays, values[number].value])
        elif step.inputs == (at,) and isinstance(step.op, ir.Reshape | ir.Transpose):
            perm = step.op.perm if isinstance(step.op, ir.Transpose) else ()
            renumbered = [
                a.transpose(0, *(p + 1 for p in perm)) if perm else a.reshape(-1, *step.shape) for a in arrays
            ]
            yield from _equivalents(steps, values, number, renumbered)


def _maximum_pools(graph: ir.Graph, value: int) -> Iterator[int]:
    """Values of maximum pools after a layer: a quantizer may have changed places with them."""
    for number, layer in enumerate(graph.layers, 1):
        maximum = isinstance(layer, ir.Pooling) and layer.kind is Reduction.MAX
        if layer.inputs == (value,) and (maximum or isinstance(layer, ir.View)):
            yield number
            yield from _maximum_pools(graph, number)


def _difference(name: str, expected: Array, actual: Array) -> Difference | None:
    wrong = (expected != actual) & ~((expected != expected) & (actual != actual))
    if not wrong.any():
        return None
    frame, *index = (int(i) for i in np.argwhere(wrong)[0])
    position = (frame, *index)
    channel = index[-1] if index else 0
    return Difference(
        name,
        frame,
        channel,
        tuple(index),
        str(expected[position].item()),
        str(actual[position].item()),
        int(wrong.sum()),
        wrong.size,
    )
