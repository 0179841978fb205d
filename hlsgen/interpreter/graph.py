"""The integer interpreter of a graph: the reference for all hardware.

Arrays have a leading axis of frames: (frames, *shape). Codes are int64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen import ir
from hlsgen.diagnostics import fail
from hlsgen.interpreter import loops
from hlsgen.interpreter.host_steps import rearranged, run_step
from hlsgen.interpreter.softmax_rows import softmax_rows
from hlsgen.interpreter.windows import convolved, padded, pooled
from hlsgen.ir.evaluate import apply, apply_binary, constant_shapes, decode, float_to_key, quantize
from hlsgen.ir.input_codes import bounds_of_codes
from hlsgen.ir.ops import Elementwise, Quantizer
from hlsgen.ir.row_functions import row_values
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.normalization import normalized

#: Approximate number of elements on which a function is evaluated at a time, to fit into a processor's caches.
_CHUNK = 1 << 17
#: Number of elements of a tensor, over all frames, computed at a time if only the output is needed.
_FRAMES = 1 << 21


def pack_inputs(graph: ir.Graph, arrays: Mapping[str, Array]) -> Array:
    """All inputs of a model in one array, (frames, *input_shape); a model that begins with a `Pair` gets its pairs.

    Raises HG054.
    """
    model = graph.model
    sources = model.all_inputs
    if model.second_input:
        sources = (*sources, replace(sources[0], name=model.second_input))
    names = [source.name for source in sources]
    if unknown := [name for name in arrays if name not in names]:
        predicate = "is no input" if len(unknown) == 1 else "are no inputs"
        text = f"{predicate} of the model, or one that no output depends on."
        raise fail("HG054", ", ".join(unknown), text, f"The model's inputs are {' and '.join(names)}.")
    if missing := [name for name in names if name not in arrays]:
        raise fail(
            "HG054", ", ".join(missing), "no array for this input.", f"The model's inputs are {' and '.join(names)}."
        )
    frames = [frames_of_input(source, arrays[source.name]) for source in sources]
    if len({len(f) for f in frames}) > 1:
        counts = " and ".join(str(len(f)) for f in frames)
        raise fail("HG054", ", ".join(s.name for s in sources), f"{counts} samples.")
    if model.inputs:
        return np.concatenate([f.reshape(len(f), -1).astype(np.float64) for f in frames], axis=1)
    if not model.second_input:
        return frames[0]
    low_bytes, high_bytes = (array.astype(np.int64) for array in frames)
    return (low_bytes & 0xFF) | ((high_bytes & 0xFF) << 8)


def split_inputs(inputs: Sequence[ir.ModelInput], x: Array) -> list[Array]:
    """Each of several inputs, in its dtype (frames, *shape), from the array that `pack_inputs` returns."""
    arrays, offset = [], 0
    for source in inputs:
        arrays.append(x[:, offset : offset + source.size].astype(source.dtype).reshape(-1, *source.shape))
        offset += source.size
    return arrays


def input_arrays(model: ir.Model, x: Array) -> list[Array]:
    """Each input, in its dtype (frames, *shape), also for a single input."""
    return split_inputs(model.inputs, x) if model.inputs else [x]


def frames_of(graph: ir.Graph, x: Array) -> Array:
    """Check the model's only input; return it in the model's dtype, (frames, *input_shape). See `frames_of_input`."""
    return frames_of_input(graph.model.all_inputs[0], x)


def frames_of_input(source: ir.ModelInput, x: Array) -> Array:
    """Check an input of the model; return it in the model's dtype, (frames, *shape).

    Accepts the input's own shape, and any number of samples if its batch is 1. Raises HG054.
    """
    shape = source.shape
    sample_shape = shape[1:] if source.batched else shape
    x = np.asarray(x)
    if x.dtype.name in ("int2", "int4", "uint2", "uint4"):
        # These types belong to the package ml_dtypes; numpy does not know them.
        x = x.astype(f"{x.dtype.name[:-1]}8")
    if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
        raise fail("HG054", source.name, f"array of type {x.dtype}; numbers are needed.")
    if x.shape == shape:
        return _to_dtype(source, x).reshape(1, *shape)
    if (source.batched or x.ndim == len(sample_shape) + 1) and x.ndim and x.shape[1:] == sample_shape and len(x) > 0:
        return _to_dtype(source, x).reshape(-1, *shape)
    batch = "N" if source.batched else ""
    expected = ", ".join([*([batch] if batch else []), *map(str, sample_shape)])
    text = f"array of shape {list(x.shape)}; the model takes [{expected}]."
    hint = ""
    if source.batched and x.shape == sample_shape:
        hint = f"One sample has the shape {[1, *sample_shape]}: x[numpy.newaxis]."
    elif (
        x.ndim and x.size and x.size % math.prod(sample_shape) == 0 and x.shape[0] == x.size // math.prod(sample_shape)
    ):
        hint = f"It has as many elements as {len(x)} samples: x.reshape({', '.join(map(str, [-1, *sample_shape]))})."
    raise fail("HG054", source.name, text, hint)


def _to_dtype(source: ir.ModelInput, x: Array) -> Array:
    """The array in the input's dtype. Raises HG054 if an integer input has other values."""
    dtype = np.dtype(source.dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    info = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        invalid = (x != np.round(x)) | (x < info.min) | (x > info.max)
    if invalid.any():
        raise fail("HG054", source.name, f"value {x[invalid].ravel()[0]} is not of type {dtype}.")
    return x.astype(dtype)


def encode_input(graph: ir.Graph, x: Array, rounded: bool = False) -> Array:
    """The host's head: model input (frames, *shape) -> codes for the hardware's input port.

    Several inputs are packed as in `pack_inputs`. `rounded`: values between two codes of a fixed-point input become the
    nearest code, ties to even. Raises HG054 for values that the input cannot hold.
    """
    if not graph.inputs:
        return encode_array(graph.model.input_name, graph.head, graph.encode, graph.input, x, rounded)
    sources, arrays = graph.model.all_inputs, input_arrays(graph.model, x)
    codes = []
    for part in graph.inputs:
        name, array = sources[part.source].name, arrays[part.source]
        part_codes = encode_array(name, part.steps, part.encode, part.value, array, rounded)
        codes.append(part_codes.reshape(len(x), -1))
    return np.concatenate(codes, axis=1)


def encode_array(
    name: str, steps: Sequence[ir.Step], encode: Quantizer | None, port: ir.Value, x: Array, rounded: bool
) -> Array:
    """The codes of one input after the host's steps, for an input port like `port`. Raises HG054."""
    for step in steps:
        x = run_step(step, x)
    if encode is not None:
        codes, bounds = quantize(encode, x), bounds_of_codes(steps, encode)
        return codes if bounds is None else np.clip(codes, *bounds)  # NaN gives the lowest code of its element
    match port.encoding:
        case ir.FloatKey():
            return float_to_key(x)
        case ir.Fixed(fraction):
            scaled = np.ldexp(x.astype(np.float64), fraction)
            if rounded:
                scaled = np.rint(scaled)
            type_ = port.type
            invalid = (scaled != np.round(scaled)) | (scaled < type_.lo) | (scaled > type_.hi)
            if invalid.any():
                raise fail(
                    "HG054",
                    name,
                    f"value {x[invalid].ravel()[0]} is not in the input's fixed-point type "
                    f"({type_}, {fraction} fraction bits).",
                    "Let `hlsgen run --round-input` round the array, or build with another --input.",
                )
            return scaled.astype(np.int64)
        case ir.IntegerEncoding():
            codes = x.astype(np.int64)
            if (codes < port.type.lo).any() or (codes > port.type.hi).any():
                raise fail("HG054", name, f"a value is outside of {port.type}.")
            return np.asarray(codes)
        case _:
            raise AssertionError(port.encoding)


def run_layer(layer: ir.Layer, sources: Sequence[Array]) -> Array:
    """Compute a layer: codes (frames, *shape) of each source -> codes (frames, *result.shape)."""
    codes = sources[0]
    match layer:
        case ir.Map():
            return _chunked(lambda x: _map(layer, x), [layer.source.encoding, *layer.ops, layer.quantizer], codes)
        case ir.BinaryMap():
            operations = [*(s.encoding for s in layer.sources), *layer.branches[0], *layer.branches[1], *layer.ops]
            return _chunked(lambda x, y: _binary_map(layer, x, y), [*operations, layer.quantizer], *sources)
        case ir.FloatBinary():
            operations = [*(s.encoding for s in layer.sources), *layer.branches[0], *layer.branches[1]]
            return _chunked(lambda x, y: _float_binary(layer, x, y), operations, *sources)
        case ir.Linear():
            if layer.binary:
                # Two bits a and b are equal if 1 - a - b + 2ab is 1.
                products = _matmul(codes, layer.weight)
                columns = layer.weight.shape[1]
                ones = codes.sum(axis=-1, keepdims=True)
                return np.asarray(columns - ones - layer.weight.sum(axis=1) + 2 * products)
            return _matmul(codes, layer.weight)
        case ir.MatrixProduct():
            pairs = zip(sources, layer.factors, layer.offsets, strict=True)
            return np.asarray(np.matmul(*(codes * factor + offset for codes, factor, offset in pairs)))
        case ir.Convolution():
            return np.concatenate([convolved(layer, codes[i : i + 1]) for i in range(len(codes))])
        case ir.Pooling():
            return pooled(layer, codes)
        case ir.Rearrange():
            return _rearrange(layer, codes)
        case ir.Concatenation():
            return np.concatenate(sources, axis=layer.axis + 1)
        case ir.Delay():
            raise AssertionError("a state depends on more than its source: see loops.states")
        case ir.PackBytes():
            return (sources[0] & 0xFF) | ((sources[1] & 0xFF) << 8)
        case ir.StreamedInput(offset=offset, result=result):
            return codes[:, offset : offset + result.size].reshape(-1, *result.shape)
        case ir.StreamedOutputs():
            return np.concatenate([source.reshape(len(source), -1) for source in sources], axis=1)
        case ir.View():
            return rearranged(layer.op, codes, layer.result.shape)
        case ir.ArgMaxLayer():
            indices = np.argmax(codes, axis=-1)
            return np.asarray(indices.reshape(len(codes), *layer.result.shape))
        case ir.SoftmaxRows():
            return softmax_rows(layer, codes)
        case ir.IntegerRows():
            return row_values(layer.function, codes)
        case ir.NormRows():
            rows = codes * layer.factor + layer.offset
            return float_to_key(normalized(rows, layer.kind is ir.NormKind.LAYER, layer.addend))
        case _:
            assert_never(layer)


def _chunked(function: Callable[..., Array], operations: Sequence[Elementwise | ir.Encoding], *codes: Array) -> Array:
    """Apply an elementwise function to some elements at a time, along an axis without varying constants.

    `operations`: the operations whose constants the function uses.
    """
    shape = codes[0].shape
    shapes = [x for item in operations for x in constant_shapes(item)]
    axis = max(
        (a for a in range(1, len(shape)) if _same_along(shapes, a - len(shape))), key=shape.__getitem__, default=0
    )
    frames = max(1, _CHUNK * len(codes[0]) // max(1, codes[0].size))
    positions = max(1, _CHUNK * shape[axis] * len(codes[0]) // max(1, codes[0].size)) if axis else 1
    result: Array = np.empty(shape, np.int64)
    for frame in range(0, len(result), frames):
        for start in range(0, shape[axis], positions) if axis else (0,):
            leading = [slice(None)] * (axis - 1) + [slice(start, start + positions)] if axis else []
            part = (slice(frame, frame + frames), *leading)
            result[part] = function(*(c[part] for c in codes))
    return result


def _same_along(shapes: list[tuple[int, ...]], axis: int) -> bool:
    """True if constants of these shapes are the same along an axis, numbered from the last one, -1."""
    return all(len(shape) < -axis or shape[axis] == 1 for shape in shapes)


def _map(layer: ir.Map, codes: Array) -> Array:
    x = decode(layer.source.encoding, codes)
    for op in layer.ops:
        x = apply(op, x)
    return quantize(layer.quantizer, x)


def _float_binary(layer: ir.FloatBinary, *codes: Array) -> Array:
    """Keys of the float32 results; -0.0 gets the key of 0.0."""
    operands = []
    for source, ops, operand_codes in zip(layer.sources, layer.branches, codes, strict=True):
        x = decode(source.encoding, operand_codes)
        for op in ops:
            x = apply(op, x)
        operands.append(x)
    return float_to_key(np.asarray(apply_binary(layer.kind, *operands) + np.float32(0)))


def _binary_map(layer: ir.BinaryMap, *codes: Array) -> Array:
    operands = []
    for source, ops, x in zip(layer.sources, layer.branches, codes, strict=True):
        x = decode(source.encoding, x)
        for op in ops:
            x = apply(op, x)
        operands.append(x)
    x = apply_binary(layer.kind, *operands)
    for op in layer.ops:
        x = apply(op, x)
    return quantize(layer.quantizer, x)


def _rearrange(layer: ir.Rearrange, codes: Array) -> Array:
    match layer.op:
        case ir.Repeat(rows, columns):
            return codes.repeat(rows, axis=-3).repeat(columns, axis=-2)
        case ir.Slice(ranges):
            cuts = (slice(None), *(slice(*r) for r in ranges))
            return codes[cuts]
        case ir.Pad(pads):
            return padded(codes, pads, layer.pad)
        case _:
            assert_never(layer.op)


def _matmul(codes: Array, weight: Array) -> Array:
    # float64 is exact below 2^53 and much faster than integer arithmetic.
    limit = float(np.abs(codes).max(initial=0)) * float(np.abs(weight).max(initial=0)) * weight.shape[1]
    if limit < 2.0**53:
        return np.asarray(codes.astype(np.float64) @ weight.T.astype(np.float64)).astype(np.int64)
    return np.asarray(codes @ weight.T)


def run_layers(graph: ir.Graph, codes: Array) -> list[Array]:
    """The codes of every layer, in order."""
    values, states = [codes], loops.states(graph, codes, run_layer)
    for number, layer in enumerate(graph.layers, 1):
        state = states.get(number)
        values.append(run_layer(layer, [values[i] for i in layer.inputs]) if state is None else state)
    return values[1:]


def run_output(graph: ir.Graph, codes: Array) -> Array:
    """The codes of the output, computed for some frames at a time; values are dropped after their last use."""
    last_use = {value: number for number, layer in enumerate(graph.layers) for value in layer.inputs}
    frames = max(1, _FRAMES // max(value.size for value in (graph.input, *(layer.result for layer in graph.layers))))
    outputs = []
    for start in range(0, len(codes), frames):
        values = {0: codes[start : start + frames]}
        states = loops.states(graph, values[0], run_layer)
        for number, layer in enumerate(graph.layers):
            state = states.get(number + 1)
            result = run_layer(layer, [values[i] for i in layer.inputs]) if state is None else state
            values = {i: value for i, value in values.items() if last_use.get(i, -1) > number}
            values[number + 1] = result
        outputs.append(values[len(graph.layers)])
    return np.concatenate(outputs)


def decode_output(graph: ir.Graph, codes: Array) -> Array:
    """The host's tail: output codes (frames, *shape) -> the model's output, frames merged.

    Several outputs are concatenated, (frames, elements) of float64; `named_outputs` separates them.
    """
    if graph.model.outputs:
        parts = [_assemble_output(assembly, parts) for assembly, parts in _split_outputs(graph, codes)]
        return np.concatenate([x.reshape(len(x), -1).astype(np.float64) for x in parts], axis=1)
    if graph.outputs:
        ((assembly, parts),) = _split_outputs(graph, codes)
        x = _assemble_output(assembly, parts)
    else:
        x = _decode_part(graph.output, graph.output_is_index, graph.tail, codes)
    return _merge_frames(graph, x.astype(graph.model.output_dtype))


def named_outputs(graph: ir.Graph, codes: Array) -> dict[str, Array]:
    """Codes of several outputs -> each output by its name, in its dtype, frames merged."""
    outputs = {assembly.output: _assemble_output(assembly, parts) for assembly, parts in _split_outputs(graph, codes)}
    return {output.name: _merge_frames(graph, x.astype(output.dtype)) for output, x in outputs.items()}


def named_codes(graph: ir.Graph, codes: Array) -> dict[str, Array]:
    """Codes of several outputs, or parts of outputs, by the name of each, (frames, *shape)."""
    return dict(zip(graph.part_names, _split_parts(graph.outputs, codes), strict=True))


def _split_outputs(graph: ir.Graph, codes: Array) -> list[tuple[ir.OutputAssembly, list[Array]]]:
    """Every output of the model, and the codes of its parts."""
    return [(assembly, _split_parts(assembly.parts, codes)) for assembly in graph.output_assemblies]


def _split_parts(parts: Sequence[ir.GraphOutput], codes: Array) -> list[Array]:
    return [codes[:, p.offset : p.offset + p.value.size].reshape(-1, *p.value.shape) for p in parts]


def _assemble_output(assembly: ir.OutputAssembly, codes: Sequence[Array]) -> Array:
    """The model output that the host computes from the codes of its parts."""
    parts = [
        _decode_part(p.value, p.is_index, p.steps, part_codes)
        for p, part_codes in zip(assembly.parts, codes, strict=True)
    ]
    return parts[0] if assembly.host_binary is None else combine_on_host(assembly.host_binary, *parts)


def combine_on_host(host_binary: ir.HostBinary, first: Array, second: Array) -> Array:
    """Combine two tensors (frames, *shape) on the host, and apply the steps that follow."""
    x = apply_binary(host_binary.kind, first, second)
    for step in host_binary.steps:
        x = run_step(step, x)
    return x


def _decode_part(value: ir.Value, is_index: bool, steps: Sequence[ir.Step], codes: Array) -> Array:
    x = codes if is_index else decode(value.encoding, codes)
    for step in steps:
        x = run_step(step, x)
    return x


def _merge_frames(graph: ir.Graph, x: Array) -> Array:
    """Merge the axis of frames with the batch axis."""
    if graph.model.batched and x.ndim > 1 and x.shape[1] == 1:
        return x.reshape(-1, *x.shape[2:])
    return x[0] if len(x) == 1 else x


def evaluate(graph: ir.Graph, x: Array) -> Array:
    """Model input -> model output through the integer graph."""
    codes = encode_input(graph, frames_of(graph, x))
    return decode_output(graph, run_output(graph, codes))
