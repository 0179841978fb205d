"""The meaning of a graph: the integer interpreter that all hardware is compared with.

Arrays have the frames in front: (frames, *shape). Codes are int64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.diagnostics import fail
from hlsgen.interpreter import loops
from hlsgen.interpreter.host_steps import rearranged, run_step
from hlsgen.interpreter.softmax_rows import softmax_rows
from hlsgen.interpreter.windows import convolved, padded, pooled
from hlsgen.ir import (
    ArgMaxLayer,
    BinaryMap,
    Concatenation,
    Convolution,
    Delay,
    Encoding,
    Fixed,
    FloatBinary,
    FloatKey,
    Graph,
    GraphOutput,
    HostBinary,
    IntegerEncoding,
    IntegerRows,
    Layer,
    Linear,
    Map,
    MatrixProduct,
    Model,
    ModelInput,
    NormKind,
    NormRows,
    OutputAssembly,
    PackBytes,
    Pad,
    Pooling,
    Rearrange,
    Repeat,
    Slice,
    SoftmaxRows,
    Step,
    StreamedInput,
    StreamedOutputs,
    Value,
    View,
)
from hlsgen.ir.evaluate import apply, apply_binary, constant_shapes, decode, float_to_key, quantize
from hlsgen.ir.ops import Elementwise, Quantizer
from hlsgen.ir.row_functions import row_values
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.normalization import normalized

#: Elements that a function is evaluated on at a time, about: few enough for the caches of a processor.
_CHUNK = 1 << 17
#: Elements of a tensor, of several frames, that are computed at a time if only the output is wanted.
_FRAMES = 1 << 21


def packed(graph: Graph, arrays: Mapping[str, Array]) -> Array:
    """All inputs of a model in one array, (frames, *input_shape): of a `Pair` its pairs. Raises HG054."""
    model = graph.model
    sources = model.all_inputs
    if model.second_input:
        sources = (*sources, replace(sources[0], name=model.second_input))
    names = [source.name for source in sources]
    if unknown := [name for name in arrays if name not in names]:
        what = "is no input" if len(unknown) == 1 else "are no inputs"
        text = f"{what} of the model, or one that no output depends on."
        raise fail("HG054", ", ".join(unknown), text, f"The model takes {' and '.join(names)}.")
    if missing := [name for name in names if name not in arrays]:
        raise fail("HG054", ", ".join(missing), "no array for this input.", f"The model takes {' and '.join(names)}.")
    frames = [frames_of_input(source, arrays[source.name]) for source in sources]
    if len({len(f) for f in frames}) > 1:
        counts = " and ".join(str(len(f)) for f in frames)
        raise fail("HG054", ", ".join(s.name for s in sources), f"{counts} samples.")
    if model.inputs:
        return np.concatenate([f.reshape(len(f), -1).astype(np.float64) for f in frames], axis=1)
    if not model.second_input:
        return frames[0]
    first, second = (part.astype(np.int64) for part in frames)
    return (first & 0xFF) | ((second & 0xFF) << 8)


def parts_of(inputs: Sequence[ModelInput], x: Array) -> list[Array]:
    """Each of several inputs, in its dtype (frames, *shape), of the array that `packed` gives."""
    found, offset = [], 0
    for one in inputs:
        found.append(x[:, offset : offset + one.size].astype(one.dtype).reshape(-1, *one.shape))
        offset += one.size
    return found


def each_input(model: Model, x: Array) -> list[Array]:
    """Each input, in its dtype (frames, *shape), also of a single one."""
    return parts_of(model.inputs, x) if model.inputs else [x]


def frames_of(graph: Graph, x: Array) -> Array:
    """Checks the model's only input and gives it in the model's dtype, (frames, *input_shape); see `frames_of_input`."""
    return frames_of_input(graph.model.all_inputs[0], x)


def frames_of_input(source: ModelInput, x: Array) -> Array:
    """Checks an input of the model and gives it in the model's dtype, (frames, *shape).

    Accepts the input's own shape, and any number of samples where its batch is 1. Raises HG054.
    """
    shape = source.shape
    inner = shape[1:] if source.batched else shape
    x = np.asarray(x)
    if x.dtype.name in (
        "int2",
        "int4",
        "uint2",
        "uint4",
    ):  # types of the package ml_dtypes, of which numpy knows nothing
        x = x.astype(f"{x.dtype.name[:-1]}8")
    if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
        raise fail("HG054", source.name, f"array of type {x.dtype}; numbers are needed.")
    if x.shape == shape:
        return _typed(source, x).reshape(1, *shape)
    if (source.batched or x.ndim == len(inner) + 1) and x.ndim and x.shape[1:] == inner and len(x) > 0:
        return _typed(source, x).reshape(-1, *shape)
    batch = "N" if source.batched else ""
    wanted = ", ".join([*([batch] if batch else []), *map(str, inner)])
    text = f"array of shape {list(x.shape)}; the model takes [{wanted}]."
    hint = ""
    if source.batched and x.shape == inner:
        hint = f"One sample has the shape {[1, *inner]}: x[numpy.newaxis]."
    elif x.ndim and x.size and x.size % math.prod(inner) == 0 and x.shape[0] == x.size // math.prod(inner):
        hint = f"It has as many elements as {len(x)} samples: x.reshape({', '.join(map(str, [-1, *inner]))})."
    raise fail("HG054", source.name, text, hint)


def _typed(source: ModelInput, x: Array) -> Array:
    dtype = np.dtype(source.dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    info = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        wrong = (x != np.round(x)) | (x < info.min) | (x > info.max)
    if wrong.any():
        raise fail("HG054", source.name, f"value {x[wrong].ravel()[0]} is not of type {dtype}.")
    return x.astype(dtype)


def encode_input(graph: Graph, x: Array, rounded: bool = False) -> Array:
    """The host's head: model input (frames, *shape) -> codes for the hardware's input port; several as `packed` gives them.

    rounded: values between two codes of a fixed-point input become the nearest code, the even one of two as near.
    Raises HG054 for values that the input cannot hold.
    """
    if not graph.inputs:
        return encoded(graph.model.input_name, graph.head, graph.encode, graph.input, x, rounded)
    sources, given = graph.model.all_inputs, each_input(graph.model, x)
    codes = [
        encoded(
            sources[part.source].name, part.steps, part.encode, part.value, given[part.source], rounded
        ).reshape(len(x), -1)
        for part in graph.inputs
    ]  # fmt: skip
    return np.concatenate(codes, axis=1)


def encoded(name: str, steps: Sequence[Step], encode: Quantizer | None, port: Value, x: Array, rounded: bool) -> Array:
    """The codes of one input behind steps of the host, for an input port of codes like `port`. Raises HG054."""
    for step in steps:
        x = run_step(step, x)
    if encode is not None:
        return quantize(encode, x)
    match port.encoding:
        case FloatKey():
            return float_to_key(x)
        case Fixed(fraction):
            scaled = np.ldexp(x.astype(np.float64), fraction)
            if rounded:
                scaled = np.rint(scaled)
            type_ = port.type
            wrong = (scaled != np.round(scaled)) | (scaled < type_.lo) | (scaled > type_.hi)
            if wrong.any():
                raise fail(
                    "HG054", name,
                    f"value {x[wrong].ravel()[0]} is not in the input's fixed-point type "
                    f"({type_}, {fraction} fraction bits).",
                    "Let `hlsgen run --round-input` round the array, or build with another --input.",
                )  # fmt: skip
            return scaled.astype(np.int64)
        case IntegerEncoding():
            codes = x.astype(np.int64)
            if (codes < port.type.lo).any() or (codes > port.type.hi).any():
                raise fail("HG054", name, f"a value is outside of {port.type}.")
            return np.asarray(codes)
        case _:
            raise AssertionError(port.encoding)


def run_layer(layer: Layer, sources: Sequence[Array]) -> Array:
    """Codes (frames, *shape) of each source -> codes (frames, *result.shape)."""
    codes = sources[0]
    match layer:
        case Map():
            return _chunked(lambda x: _map(layer, x), [layer.source.encoding, *layer.ops, layer.quantizer], codes)
        case BinaryMap():
            items = [*(s.encoding for s in layer.sources), *layer.branches[0], *layer.branches[1], *layer.ops]
            return _chunked(lambda x, y: _merge(layer, x, y), [*items, layer.quantizer], *sources)
        case FloatBinary():
            items = [*(s.encoding for s in layer.sources), *layer.branches[0], *layer.branches[1]]
            return _chunked(lambda x, y: _float_joint(layer, x, y), items, *sources)
        case Linear():
            if layer.binary:
                # Agreements of two bits a and b: 1 - a - b + 2ab.
                both = _matmul(codes, layer.weight)
                columns = layer.weight.shape[1]
                ones = codes.sum(axis=-1, keepdims=True)
                return np.asarray(columns - ones - layer.weight.sum(axis=1) + 2 * both)
            return _matmul(codes, layer.weight)
        case MatrixProduct():
            pairs = zip(sources, layer.factors, layer.offsets, strict=True)
            return np.asarray(np.matmul(*(codes * factor + offset for codes, factor, offset in pairs)))
        case Convolution():
            return np.concatenate([convolved(layer, codes[i : i + 1]) for i in range(len(codes))])
        case Pooling():
            return pooled(layer, codes)
        case Rearrange():
            return _moved(layer, codes)
        case Concatenation():
            return np.concatenate(sources, axis=layer.axis + 1)
        case Delay():
            raise AssertionError("what a state was depends on more than its source")
        case PackBytes():
            return (sources[0] & 0xFF) | ((sources[1] & 0xFF) << 8)
        case StreamedInput(offset=offset, result=result):
            return codes[:, offset : offset + result.size].reshape(-1, *result.shape)
        case StreamedOutputs():
            return np.concatenate([source.reshape(len(source), -1) for source in sources], axis=1)
        case View():
            return rearranged(layer.op, codes, layer.result.shape)
        case ArgMaxLayer():
            best = np.argmax(codes, axis=-1)
            return np.asarray(best.reshape(len(codes), *layer.result.shape))
        case SoftmaxRows():
            return softmax_rows(layer, codes)
        case IntegerRows():
            return row_values(layer.function, codes)
        case NormRows():
            rows = codes * layer.factor + layer.offset
            return float_to_key(normalized(rows, layer.kind is NormKind.LAYER, layer.addend))
        case _:
            assert_never(layer)


def _chunked(function: Callable[..., Array], items: Sequence[Elementwise | Encoding], *codes: Array) -> Array:
    """An elementwise function, some elements at a time; `items`: the operations whose constants it uses."""
    shape = codes[0].shape
    own = [x for item in items for x in constant_shapes(item)]
    axis = max((a for a in range(1, len(shape)) if _same_along(own, a - len(shape))), key=shape.__getitem__, default=0)
    frames = max(1, _CHUNK * len(codes[0]) // max(1, codes[0].size))
    places = max(1, _CHUNK * shape[axis] * len(codes[0]) // max(1, codes[0].size)) if axis else 1
    result: Array = np.empty(shape, np.int64)
    for frame in range(0, len(result), frames):
        for start in range(0, shape[axis], places) if axis else (0,):
            middle = [slice(None)] * (axis - 1) + [slice(start, start + places)] if axis else []
            part = (slice(frame, frame + frames), *middle)
            result[part] = function(*(c[part] for c in codes))
    return result


def _same_along(shapes: list[tuple[int, ...]], axis: int) -> bool:
    """Whether constants of these shapes are the same along an axis, which counts from the last one, -1."""
    return all(len(shape) < -axis or shape[axis] == 1 for shape in shapes)


def _map(layer: Map, codes: Array) -> Array:
    x = decode(layer.source.encoding, codes)
    for op in layer.ops:
        x = apply(op, x)
    return quantize(layer.quantizer, x)


def _float_joint(layer: FloatBinary, *codes: Array) -> Array:
    """Keys; -0.0 has that of 0.0."""
    sides = []
    for source, ops, own in zip(layer.sources, layer.branches, codes, strict=True):
        x = decode(source.encoding, own)
        for op in ops:
            x = apply(op, x)
        sides.append(x)
    return float_to_key(np.asarray(apply_binary(layer.kind, *sides) + np.float32(0)))


def _merge(layer: BinaryMap, *codes: Array) -> Array:
    ends = []
    for source, ops, x in zip(layer.sources, layer.branches, codes, strict=True):
        x = decode(source.encoding, x)
        for op in ops:
            x = apply(op, x)
        ends.append(x)
    x = apply_binary(layer.kind, *ends)
    for op in layer.ops:
        x = apply(op, x)
    return quantize(layer.quantizer, x)


def _moved(layer: Rearrange, codes: Array) -> Array:
    match layer.op:
        case Repeat(rows, columns):
            return codes.repeat(rows, axis=-3).repeat(columns, axis=-2)
        case Slice(ranges):
            cuts = (slice(None), *(slice(*r) for r in ranges))
            return codes[cuts]
        case Pad(pads):
            return padded(codes, pads, layer.pad)
        case _:
            assert_never(layer.op)


def _matmul(codes: Array, weight: Array) -> Array:
    # float64 is exact below 2^53 and much faster than integers.
    limit = float(np.abs(codes).max(initial=0)) * float(np.abs(weight).max(initial=0)) * weight.shape[1]
    if limit < 2.0**53:
        return np.asarray(codes.astype(np.float64) @ weight.T.astype(np.float64)).astype(np.int64)
    return np.asarray(codes @ weight.T)


def run_layers(graph: Graph, codes: Array) -> list[Array]:
    """The codes behind every layer, in order."""
    values, states = [codes], loops.states(graph, codes, run_layer)
    for number, layer in enumerate(graph.layers, 1):
        known = states.get(number)
        values.append(run_layer(layer, [values[i] for i in layer.inputs]) if known is None else known)
    return values[1:]


def run_output(graph: Graph, codes: Array) -> Array:
    """The codes of the output: some frames at a time, and each value kept no longer than a layer needs it."""
    last = {value: number for number, layer in enumerate(graph.layers) for value in layer.inputs}
    frames = max(1, _FRAMES // max(value.size for value in (graph.input, *(layer.result for layer in graph.layers))))
    outputs = []
    for start in range(0, len(codes), frames):
        values = {0: codes[start : start + frames]}
        states = loops.states(graph, values[0], run_layer)
        for number, layer in enumerate(graph.layers):
            known = states.get(number + 1)
            result = run_layer(layer, [values[i] for i in layer.inputs]) if known is None else known
            values = {i: value for i, value in values.items() if last.get(i, -1) > number}
            values[number + 1] = result
        outputs.append(values[len(graph.layers)])
    return np.concatenate(outputs)


def decode_output(graph: Graph, codes: Array) -> Array:
    """The host's tail: output codes (frames, *shape) -> the model's output, frames joined.

    Of several outputs all together, (frames, elements) of float64; `named_outputs` divides them.
    """
    if graph.model.outputs:
        parts = [_end(end, parts) for end, parts in _divided(graph, codes)]
        return np.concatenate([x.reshape(len(x), -1).astype(np.float64) for x in parts], axis=1)
    if graph.outputs:
        ((end, parts),) = _divided(graph, codes)
        x = _end(end, parts)
    else:
        x = _decoded(graph.output, graph.output_is_index, graph.tail, codes)
    return _joined_frames(graph, x.astype(graph.model.output_dtype))


def named_outputs(graph: Graph, codes: Array) -> dict[str, Array]:
    """Codes of several outputs -> each of them by its name, in its dtype, frames joined."""
    found = {end.output: _end(end, parts) for end, parts in _divided(graph, codes)}
    return {one.name: _joined_frames(graph, x.astype(one.dtype)) for one, x in found.items()}


def named_codes(graph: Graph, codes: Array) -> dict[str, Array]:
    """Codes of several outputs, or parts of outputs, by the name of each, (frames, *shape)."""
    return dict(zip(graph.part_names, _parts_of(graph.outputs, codes), strict=True))


def _divided(graph: Graph, codes: Array) -> list[tuple[OutputAssembly, list[Array]]]:
    """Every output of the model, and the codes of its parts."""
    return [(end, _parts_of(end.parts, codes)) for end in graph.output_assemblies]


def _parts_of(parts: Sequence[GraphOutput], codes: Array) -> list[Array]:
    return [codes[:, p.offset : p.offset + p.value.size].reshape(-1, *p.value.shape) for p in parts]


def _end(end: OutputAssembly, codes: Sequence[Array]) -> Array:
    """What the host makes of the codes of an output's parts."""
    sides = [_decoded(p.value, p.is_index, p.steps, own) for p, own in zip(end.parts, codes, strict=True)]
    return sides[0] if end.host_binary is None else joined(end.host_binary, *sides)


def joined(joint: HostBinary, left: Array, right: Array) -> Array:
    """Two tensors (frames, *shape) joined by the host, behind the steps that follow."""
    x = apply_binary(joint.kind, left, right)
    for step in joint.steps:
        x = run_step(step, x)
    return x


def _decoded(value: Value, is_index: bool, steps: Sequence[Step], codes: Array) -> Array:
    x = codes if is_index else decode(value.encoding, codes)
    for step in steps:
        x = run_step(step, x)
    return x


def _joined_frames(graph: Graph, x: Array) -> Array:
    if graph.model.batched and x.ndim > 1 and x.shape[1] == 1:
        return x.reshape(-1, *x.shape[2:])
    return x[0] if len(x) == 1 else x


def evaluate(graph: Graph, x: Array) -> Array:
    """Model input -> model output through the integer graph."""
    codes = encode_input(graph, frames_of(graph, x))
    return decode_output(graph, run_output(graph, codes))
