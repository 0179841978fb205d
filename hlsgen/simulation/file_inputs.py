"""Numbers for the inputs of a file: near the codes of a build, and next to the boundaries of its quantizers."""

from __future__ import annotations

import numpy as np

from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import host_encoding, model_inputs, nearest_part
from hlsgen.ir import FloatKey, Graph, Model, Value
from hlsgen.ir.evaluate import decode
from hlsgen.ir.ops import Quantizer
from hlsgen.numerics.fixed import Array

#: Largest number at a float input without a quantizer.
_LARGEST = 2.0**15
#: Offsets of numbers from a code, in steps.
_BETWEEN = (-0.5, -0.25, 0.25, 0.5)


def numbers_for_file(model: Model, graph: Graph, codes: Array) -> Array:
    """The model's input (frames, *input_shape), packed if there are several inputs, near the numbers of `codes`."""
    code_numbers = model_inputs(model, graph, codes)
    if not graph.inputs:
        return _limited(between_codes(code_numbers, graph, 1))
    parts = []
    for number, array in enumerate(reference.input_arrays(model, code_numbers)):
        part = nearest_part(graph, number)
        parts.append(_limited(_between(array, part.encode, bool(part.steps), part.value, 1)))
    if not model.inputs:
        return parts[0]
    parts = [part.reshape(len(part), -1) for part in parts]
    return np.concatenate([part.astype(code_numbers.dtype) for part in parts], axis=1)


def any_numbers(model: Model) -> dict[str, Array]:
    """One frame of the inputs by name: numbers on which all operators of the file run."""
    rng, frame = np.random.default_rng(0), {}
    for source in model.all_inputs:
        dtype = np.dtype(source.dtype)
        x = rng.normal(0, 1, source.shape) if dtype.kind == "f" else rng.integers(0, 64, source.shape)
        frame[source.name] = np.asarray(x).astype(dtype)
    if model.second_input:
        frame[model.second_input] = frame[model.input_name]
    return frame


def between_codes(x: Array, graph: Graph, seed: int) -> Array:
    """Numbers for a quantizer on the host; every second frame is off its codes.

    A third of the elements of these frames lies a quarter or half a step from a code. A third lies on the floats next
    to a
    half, where a quotient and a product with the reciprocal round to different codes. A few are -0 and subnormal.
    """
    return _between(x, graph.encode, bool(graph.head), graph.input, seed)


def _between(x: Array, encode: Quantizer | None, head: bool, port: Value, seed: int) -> Array:
    """The same for one input with the codes of `port`; `head`: the host has steps before the quantizer."""
    if encode is None or isinstance(port.encoding, FloatKey) or x.dtype.kind != "f" or head:
        return x
    shape, lowest = port.shape, port.type.lo
    low, next_ = (decode(host_encoding(encode, port), np.full((1, *shape), code)) for code in (lowest, lowest + 1))
    step = np.broadcast_to(np.abs(next_ - low), (1, *shape)).reshape(-1)
    if step.size != x[0].size:
        return x
    rng = np.random.default_rng(seed)
    off_code = (x + rng.choice(_BETWEEN, x.shape) * step.reshape(x.shape[1:])).astype(x.dtype)
    next_to_half = np.nextafter(off_code, off_code + rng.choice([-1, 1], x.shape).astype(x.dtype))
    tiny = rng.choice(np.array([-0.0, 1e-45, -1e-45, 1e-38], x.dtype), x.shape)
    selector = rng.random(x.shape)
    off_code = np.where(selector < 0.5, next_to_half, np.where(selector < 0.97, off_code, tiny))
    odd_frame = (np.arange(len(x)) % 2 == 1).reshape(-1, *(1,) * (x.ndim - 1))
    return np.where(odd_frame, off_code, x).astype(x.dtype)


def _limited(x: Array) -> Array:
    """Floats within bounds: beyond them codes saturate by contract, but floats do not."""
    return np.clip(np.nan_to_num(x), -_LARGEST, _LARGEST) if x.dtype.kind == "f" else x
