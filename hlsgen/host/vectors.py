"""Test vectors of host code: numbers of the model and bytes of the bus, computed by the interpreter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.host.hard_numbers import hard_numbers
from hlsgen.host.plan import Head, Output, Tail, by_input
from hlsgen.interpreter.frame_states import as_sequence, starts_of, without_states
from hlsgen.interpreter.graph import encode_array, run_output
from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir import Fixed, FloatKey, Graph, GraphInput
from hlsgen.ir.evaluate import apply_binary, decode, decoding
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.sample_vectors import port_words

MAX_ELEMENTS = 1 << 16
_SEED = 1
#: First numbers of the first frame, if host code quantizes.
_SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e30, 0.5, -0.5, 0.49999997, 1.5, -2.5)


@dataclass(frozen=True)
class Vectors:
    """Frames for the self-test.

    data: for each frame the head's numbers, bytes of the inputs, bytes of the outputs, the tail's numbers. Numbers are
    little-endian in the dtype of their tensor. Numbers of all inputs are concatenated, and numbers of all outputs.
    There
    are no head's numbers without a head.
    """

    frames: int
    data: bytes


def self_test_vectors(
    network: Network,
    heads: Sequence[Head],
    tails: Sequence[Output],
    inputs: Array,
    outputs: Array | None,
    seed: int | None = None,
) -> Vectors:
    """Test vectors for the host code of a network.

    heads, tails: one for each input and output. inputs, outputs: codes (frames, *shape) at both ports. If `outputs` is
    None, they are the outputs of the model for the inputs of the vectors, as one sequence. `seed`: of numbers that are
    hard to quantize, or None for the fixed numbers of every build. If host code does not make the codes of all inputs,
    the vectors have no numbers for any input.
    """
    graph = network.graph.host_graph
    ends = [head.start.shape for head in heads] + [output.tail.end.shape for output in tails]
    largest = max(math.prod(shape) for shape in (*ends, graph.input.shape, graph.output.shape))
    frames = max(1, min(len(inputs), len(inputs if outputs is None else outputs), MAX_ELEMENTS // largest))
    inputs = inputs[:frames]
    numbers: list[Array] = []
    if all(head.makes_codes for head in heads):
        part_codes = []
        for part_graph, head, codes in zip(by_input(graph), heads, _parts(graph.inputs, inputs), strict=True):
            codes = np.clip(codes, part_graph.input.type.lo, part_graph.input.type.hi)
            if seed is None:
                part_numbers = _numbers(part_graph, head, codes)
            else:
                part_numbers = _hard_numbers(part_graph, head, codes, seed)
            numbers += part_numbers
            part_codes.append(head_codes(part_graph, head, *part_numbers))
        inputs = part_codes[0]
        if graph.inputs:
            inputs = np.concatenate([codes.reshape(frames, -1) for codes in part_codes], axis=1)
    if outputs is None:
        sequence = as_sequence(network.graph, inputs, starts_of(None, frames))
        outputs = without_states(run_output(network.graph, sequence), graph.output.shape)
    outputs = outputs[:frames]
    parts = [
        *(_little_endian(x) for x in numbers),
        *(port_words(port, inputs).reshape(frames, -1) for port in network.inputs),
        *(port_words(port, outputs).reshape(frames, -1) for port in network.outputs),
        *(_little_endian(tail_numbers(output.tail, _codes(graph, output, outputs))) for output in tails),
    ]
    return Vectors(frames, b"".join(part[n].tobytes() for n in range(frames) for part in parts))


def _parts(parts: Sequence[GraphInput], codes: Array) -> list[Array]:
    """The codes of each part of a port; all codes if the port has only one part."""
    if not parts:
        return [codes]
    return [codes[:, p.offset : p.offset + p.value.size].reshape(-1, *p.value.shape) for p in parts]


def _codes(graph: Graph, output: Output, codes: Array) -> Array:
    """The codes of an output; all codes if there is only one output."""
    if not graph.outputs:
        return codes
    return codes[:, output.offset : output.offset + math.prod(output.shape)].reshape(-1, *output.shape)


def head_codes(graph: Graph, head: Head, x: Array, *second: Array) -> Array:
    """Codes of the graph's input for numbers at the start of the head. The codes must be able to represent them."""
    if head.source is not None:
        x = head.source.numbers(x)
    if second:
        return (x.astype(np.int64) & 255) | ((second[0].astype(np.int64) & 255) << 8)
    return encode_array(
        graph.model.input_name, [host_step.step for host_step in head.steps], head.encode, graph.input, x, False
    )


def tail_numbers(tail: Tail, codes: Array) -> Array:
    """The numbers that the tail computes from codes of the output."""
    if tail.joined is not None:
        sides = _sides(*tail.joined.sides, codes)
        x = apply_binary(tail.joined.kind, *(tail_numbers(side, side_codes) for side, side_codes in sides))
    else:
        x = codes if tail.encoding is None else decode(tail.encoding, codes)
    for host_step in tail.steps:
        x = run_step(host_step.step, x)
    return x.astype(tail.end.dtype)


def _sides(left_tail: Tail, right_tail: Tail, codes: Array) -> list[tuple[Tail, Array]]:
    """Both parts of a joined output with their codes, which are concatenated."""
    shapes = left_tail.decoded.shape, right_tail.decoded.shape
    left_size = math.prod(shapes[0])
    return [
        (left_tail, codes[:, :left_size].reshape(-1, *shapes[0])),
        (right_tail, codes[:, left_size:].reshape(-1, *shapes[1])),
    ]


def _numbers(graph: Graph, head: Head, codes: Array) -> list[Array]:
    """Numbers at the start of the head that the codes represent. For a quantizer, numbers around these."""
    rng, shape, dtype = np.random.default_rng(_SEED), (len(codes), *head.start.shape), np.dtype(head.start.dtype)
    if head.pairs or head.source or ((head.encode is not None or head.steps) and dtype.kind != "f"):
        lo, hi = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return [rng.integers(lo, hi, shape, np.int64, endpoint=True).astype(dtype) for _ in range(1 + head.pairs)]
    if head.encode is None and head.steps:
        return [rng.standard_normal(shape).astype(dtype)]
    if head.encode is None:
        numbers: Array = decode(graph.input.encoding, codes).reshape(shape).astype(dtype)
        if isinstance(graph.input.encoding, Fixed):
            ends = np.ldexp([float(codes.min()), float(codes.max())], -graph.input.encoding.fraction)
            beyond_codes = (numbers.astype(np.float64) < ends[0]) | (
                numbers.astype(np.float64) > ends[1]
            )  # rounded to the dtype
            numbers = np.where(beyond_codes, np.nextafter(numbers, dtype.type(0)), numbers)
        return [numbers]
    with np.errstate(all="ignore"):
        code_values = decode(decoding(head.encode), codes).astype(np.float64).reshape(len(codes), -1)
        spread = np.ptp(code_values) / max(1, int(np.ptp(codes)))
        repeated = np.resize(code_values, (len(codes), math.prod(head.start.shape)))
        x = (repeated + (rng.random(repeated.shape) * 3 - 1.5) * spread).astype(dtype)
        x[1::2] = (repeated[1::2] + np.round(rng.random(repeated[1::2].shape)) * spread / 2).astype(dtype)
        x.flat[: min(len(_SPECIAL), x.shape[1] // 2)] = _SPECIAL[: x.shape[1] // 2]
    return [x.reshape(shape)]


def _hard_numbers(graph: Graph, head: Head, codes: Array, seed: int) -> list[Array]:
    """Numbers of `hard_numbers` at the start of the head; the numbers of every build for integer and fixed-point
    ports."""
    floats = np.dtype(head.start.dtype).kind == "f" and not head.pairs
    if not floats or not (head.encode is not None or isinstance(graph.input.encoding, FloatKey)):
        return _numbers(graph, head, codes)
    steps = [host_step.step for host_step in head.steps]
    return [hard_numbers(steps, head.encode, graph.input, head.start.shape, head.start.dtype, len(codes), seed)]


def _little_endian(x: Array) -> Array:
    return np.ascontiguousarray(x.astype(x.dtype.newbyteorder("<")))
