"""Frames with which host code tests itself: numbers of the model and bytes of the bus, computed by the interpreter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.host.hard_numbers import hard_numbers
from hlsgen.host.plan import Head, Output, Tail, by_input
from hlsgen.interpreter.graph import encoded
from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir import FloatKey, Graph, GraphInput
from hlsgen.ir.evaluate import decode, decoding, join
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.sample_vectors import port_words

MAX_ELEMENTS = 1 << 16
_SEED = 1
#: Put in front of the numbers of the first frame, for quantizers of the host.
_SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e30, 0.5, -0.5, 0.49999997, 1.5, -2.5)


@dataclass(frozen=True)
class Vectors:
    """`data`: frame after frame the head's numbers, bytes of the inputs, bytes of the outputs, the tail's numbers.

    Numbers are little-endian and in the types of the tensors. Those of all inputs, and of all outputs, stand one behind the
    other; without a head none.
    """

    frames: int
    data: bytes


def self_test_vectors(
    network: Network, heads: Sequence[Head], tails: Sequence[Output], inputs: Array, outputs: Array, seed: int | None
) -> Vectors:  # fmt: skip
    """heads, tails: of every input and output. inputs, outputs: codes (frames, *shape) at both ports. `seed`: of numbers
    that are hard to quantize; None: the same ones always.

    If host code does not make the codes of every input, there are no numbers for any.
    """
    graph = network.graph
    ends = [head.start.shape for head in heads] + [output.tail.end.shape for output in tails]
    largest = max(math.prod(shape) for shape in (*ends, graph.input.shape, graph.output.shape))
    frames = max(1, min(len(inputs), len(outputs), MAX_ELEMENTS // largest))
    inputs, outputs = inputs[:frames], outputs[:frames]
    numbers: list[Array] = []
    if all(head.makes_codes for head in heads):
        made = []
        for own, head, codes in zip(by_input(graph), heads, _parts(graph.inputs, inputs), strict=True):
            codes = np.clip(codes, own.input.type.lo, own.input.type.hi)
            found = _numbers(own, head, codes) if seed is None else _hard_numbers(own, head, codes, seed)
            numbers += found
            made.append(head_codes(own, head, *found))
        inputs = np.concatenate([c.reshape(frames, -1) for c in made], axis=1) if graph.inputs else made[0]
    parts = [
        *(_little(x) for x in numbers),
        *(port_words(port, inputs).reshape(frames, -1) for port in network.inputs),
        *(port_words(port, outputs).reshape(frames, -1) for port in network.outputs),
        *(_little(tail_numbers(output.tail, _codes(graph, output, outputs))) for output in tails),
    ]
    return Vectors(frames, b"".join(part[n].tobytes() for n in range(frames) for part in parts))


def _parts(parts: Sequence[GraphInput], codes: Array) -> list[Array]:
    """The codes of each of several tensors of a port; of a single one all."""
    if not parts:
        return [codes]
    return [codes[:, p.offset : p.offset + p.value.size].reshape(-1, *p.value.shape) for p in parts]


def _codes(graph: Graph, output: Output, codes: Array) -> Array:
    """The codes of one of several outputs; of a single one all."""
    if not graph.outputs:
        return codes
    return codes[:, output.offset : output.offset + math.prod(output.shape)].reshape(-1, *output.shape)


def head_codes(graph: Graph, head: Head, x: Array, *second: Array) -> Array:
    """Codes of the graph's input for numbers at the start of the head that it can hold."""
    if second:
        return (x.astype(np.int64) & 255) | ((second[0].astype(np.int64) & 255) << 8)
    return encoded(graph.model.input_name, [done.step for done in head.steps], head.encode, graph.input, x, False)


def tail_numbers(tail: Tail, codes: Array) -> Array:
    """What the tail gives for codes of the output."""
    if tail.joined is not None:
        left, right = tail.joined.sides
        x = join(tail.joined.kind, *(tail_numbers(side, own) for side, own in _sides(left, right, codes)))
    else:
        x = codes if tail.encoding is None else decode(tail.encoding, codes)
    for done in tail.steps:
        x = run_step(done.step, x)
    return x.astype(tail.end.dtype)


def _sides(left: Tail, right: Tail, codes: Array) -> list[tuple[Tail, Array]]:
    """Both parts of an output with their codes, which lie one behind the other."""
    shapes = left.decoded.shape, right.decoded.shape
    cut = math.prod(shapes[0])
    return [(left, codes[:, :cut].reshape(-1, *shapes[0])), (right, codes[:, cut:].reshape(-1, *shapes[1]))]


def _numbers(graph: Graph, head: Head, codes: Array) -> list[Array]:
    """Numbers at the start of the head: those that codes mean, and behind a quantizer such that lie around them."""
    rng, shape, dtype = np.random.default_rng(_SEED), (len(codes), *head.start.shape), np.dtype(head.start.dtype)
    if head.pairs or ((head.encode is not None or head.steps) and dtype.kind != "f"):
        lo, hi = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return [rng.integers(lo, hi, shape, np.int64, endpoint=True).astype(dtype) for _ in range(1 + head.pairs)]
    if head.encode is None and head.steps:
        return [rng.standard_normal(shape).astype(dtype)]
    if head.encode is None:
        return [decode(graph.input.encoding, codes).reshape(shape).astype(dtype)]
    with np.errstate(all="ignore"):
        means = decode(decoding(head.encode), codes).astype(np.float64).reshape(len(codes), -1)
        spread = np.ptp(means) / max(1, int(np.ptp(codes)))
        wide = np.resize(means, (len(codes), math.prod(head.start.shape)))
        x = (wide + (rng.random(wide.shape) * 3 - 1.5) * spread).astype(dtype)
        x[1::2] = (wide[1::2] + np.round(rng.random(wide[1::2].shape)) * spread / 2).astype(dtype)
        x.flat[: min(len(_SPECIAL), x.shape[1] // 2)] = _SPECIAL[: x.shape[1] // 2]
    return [x.reshape(shape)]


def _hard_numbers(graph: Graph, head: Head, codes: Array, seed: int) -> list[Array]:
    """Numbers at the start of the head as `hard_numbers` gives them; of integers and fixed-point ports as in every build."""
    floats = np.dtype(head.start.dtype).kind == "f" and not head.pairs
    if not floats or not (head.encode is not None or isinstance(graph.input.encoding, FloatKey)):
        return _numbers(graph, head, codes)
    steps = [done.step for done in head.steps]
    return [hard_numbers(steps, head.encode, graph.input, head.start.shape, head.start.dtype, len(codes), seed)]


def _little(x: Array) -> Array:
    return np.ascontiguousarray(x.astype(x.dtype.newbyteorder("<")))
