"""Compares the host's quantizers with the file's: an executor runs the nodes from an input to its first quantizers.

Numbers lie next to ties and at the ends of float32, where errors in quotients, roundings and NaN are easily missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from hlsgen.frontend.constant_folding import label
from hlsgen.frontend.load import read_model
from hlsgen.frontend.onnx_graph import name_all
from hlsgen.frontend.runtimes import ALIR, TFLITE
from hlsgen.host.hard_numbers import hard_numbers
from hlsgen.interpreter.graph import encode_array
from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir import Graph, GraphInput, HostOp, Model, ModelInput
from hlsgen.ir.evaluate import decode, decoding
from hlsgen.ir.ops import QUANTIZERS, QuantizeLinear, Quantizer
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.host_rounding import exact_result, has_open_order
from hlsgen.simulation.oracles import Unable, constant_of, installed, run_node

#: Operators that end a path from an input.
_QUANTIZERS = frozenset(
    ["QuantizeLinear", "Quant", "IntQuant", "BipolarQuant", "MultiThreshold", "Trunc", "FloatQuant"]
)
_FRAMES, _ELEMENTS = 16, 1 << 14


@dataclass(frozen=True)
class HeadCheck:
    """Result of the comparison.

    executor: the executor that ran the quantizers, "" if none did. compared: number of codes. different: differing
    codes. text: the first of them in words.
    """

    executor: str = ""
    compared: int = 0
    different: int = 0
    text: str = ""


@dataclass(frozen=True)
class _Path:
    """Nodes from an input to a quantizer, in order."""

    nodes: tuple[onnx.NodeProto, ...]


def check_head(model: Model, graph: Graph, path: Path, seed: int, oracle: str) -> HeadCheck:
    """Compares the codes of hard numbers in the interpreter and in the file's runtime."""
    runtime = model.runtime if oracle == "auto" else oracle
    executor = "onnxruntime" if runtime.startswith("onnxruntime") else runtime
    if oracle == "none" or model.runtime in (*TFLITE, ALIR) or not installed(executor):
        return HeadCheck()
    proto = read_model(path)
    name_all(proto.graph)
    opsets = {o.domain: o.version for o in proto.opset_import}
    constants = {t.name: constant_of(t) for t in proto.graph.initializer}
    compared = different = 0
    text = ""
    for source, part, path_nodes in _parts(model, graph, proto.graph, constants):
        x = _numbers(part, source, seed)
        try:
            quantizer_input, expected, is_open = _run(_Executor(executor, constants, opsets), part, path_nodes, x)
        except Unable:
            continue
        assert part.encode is not None
        computed = encode_array(source.name, part.steps, part.encode, part.value, x, False)
        differs, values = _compare(part.encode, part.value.type.lo, part.value.type.hi, computed, expected, executor)
        if differs is None:
            continue
        differs &= ~is_open.reshape(differs.shape)
        if executor == "onnx" and isinstance(part.encode, QuantizeLinear):
            differs &= _is_defined(part.encode, quantizer_input).reshape(differs.shape)
        compared += int((~is_open).sum())
        if differs.any() and not text:
            place = tuple(int(i) for i in np.argwhere(differs)[0])
            hard_number = x[place] if x.shape == differs.shape else x[place[0]].ravel()[0]
            name = label(path_nodes.nodes[-1])
            text = (
                f"{name}: for {source.name} = {hard_number!s} {executor} gives {values[place]!s}, hlsgen another code."
            )
        different += int(differs.sum())
    return HeadCheck(executor if compared else "", compared, different, text)


def _parts(
    model: Model, graph: Graph, file_graph: onnx.GraphProto, constants: dict[str, Array]
) -> Iterator[tuple[ModelInput, GraphInput, _Path]]:
    """Each part of the port that the host quantizes, with the file's nodes that produce it."""
    parts = graph.inputs or (GraphInput(graph.head, graph.encode, 0, graph.input),)
    sources = graph.model.all_inputs
    for number, source in enumerate(sources):
        source_parts = [part for part in parts if part.source == number]
        source_paths = _paths(file_graph, source.name, constants)
        if len(source_parts) != len(source_paths):
            continue
        for part, path_nodes in zip(source_parts, source_paths, strict=True):
            if part.encode is not None and _is_host_part(model, part, part.encode, path_nodes):
                yield source, part, path_nodes


def _paths(graph: onnx.GraphProto, name: str, constants: dict[str, Array]) -> list[_Path]:
    """Paths from a tensor to its first quantizers, in the order of the quantizers.

    Empty if a path joins another or ends without a quantizer.
    """
    path_by_place, open_paths = dict[int, _Path](), [(name, tuple[onnx.NodeProto, ...]())]
    while open_paths:
        tensor, nodes = open_paths.pop()
        users = [(place, node) for place, node in enumerate(graph.node) if tensor in node.input]
        if not users:
            return []
        for place, node in users:
            other_inputs = [i for i in node.input[1:] if i]
            if node.input[0] != tensor or not all(i in constants for i in other_inputs):
                return []
            if node.op_type in _QUANTIZERS:
                path_by_place[place] = _Path((*nodes, node))
            else:
                open_paths.append((node.output[0], (*nodes, node)))
    return [path_nodes for _, path_nodes in sorted(path_by_place.items())]


def _is_host_part(model: Model, part: GraphInput, encode: Quantizer, path_nodes: _Path) -> bool:
    """True if these nodes are the host's steps and quantizer, and none is in hardware."""
    name = label(path_nodes.nodes[-1])
    steps = [s for s in model.steps if s.name == name and type(s.op) is type(encode)]
    equal_steps = [s for s in steps if isinstance(s.op, QUANTIZERS) and _same_scale(s.op, encode)]
    names_before = {label(node) for node in path_nodes.nodes[:-1] if node.op_type not in ("Identity", "Dropout")}
    return bool(equal_steps) and {step.name for step in part.steps} == names_before


def _same_scale(a: Quantizer, b: Quantizer) -> bool:
    """True if two quantizers differ at most in the range of their codes."""
    for name in ("scale", "zero_point", "mode", "divisor", "thresholds"):
        first, second = getattr(a, name, None), getattr(b, name, None)
        if (first is None) != (second is None) or not np.array_equal(np.ravel(first), np.ravel(second)):  # type: ignore[arg-type]
            return False
    return True


def _numbers(part: GraphInput, source: ModelInput, seed: int) -> Array:
    """Frames of an input that are hard for its quantizer; random frames of integers.

    Every second frame has ordinary numbers if an operator of the host computes with several elements: one NaN would
    hide all of them.
    """
    rng = np.random.default_rng(seed)
    frames = max(1, min(_FRAMES, _ELEMENTS // max(part.value.size, source.size)))
    if np.dtype(source.dtype).kind in "iu":
        info = np.iinfo(source.dtype)
        return rng.integers(info.min, info.max, (frames, *source.shape), endpoint=True).astype(source.dtype)
    numbers = hard_numbers(part.steps, part.encode, part.value, source.shape, source.dtype, frames, seed)
    if any(isinstance(step.op, HostOp) for step in part.steps):
        numbers[::2] = rng.normal(0, 1, numbers[::2].shape)
    return numbers


@dataclass(frozen=True)
class _Executor:
    """Runs single nodes of a file with the given constants."""

    name: str
    constants: dict[str, Array]
    opsets: dict[str, int]

    def inputs(self, node: onnx.NodeProto, x: Array) -> list[Array]:
        return [x, *(self.constants[i] for i in node.input[1:] if i)]

    def frames(self, node: onnx.NodeProto, x: Array) -> Array:
        """The node's result for each frame. Raises Unable."""
        with np.errstate(all="ignore"):
            return np.stack([run_node(self.name, node, self.inputs(node, frame), self.opsets)[0] for frame in x])


def _run(executor: _Executor, part: GraphInput, path_nodes: _Path, x: Array) -> tuple[Array, Array, Array]:
    """The input and the result of the file's quantizer, for all frames, and a mask of results that are open.

    The definitions of some operators leave the order of float32 sums open. The nodes after such a node get the
    interpreter's result, if it is as near to the exact value as any order gives. The codes of a frame without exact
    values (overflows, NaN) are open. Raises Unable.
    """
    computed = expected = x
    is_open = np.zeros(len(x), np.bool_)
    *head_nodes, quantizer = path_nodes.nodes
    for node in head_nodes:
        expected, node_input = executor.frames(node, expected), computed
        for step in part.steps:
            if step.name == label(node):
                computed = run_step(step, computed)
        if computed.shape == expected.shape:
            for n in range(len(x)):
                if not np.array_equal(computed[n], expected[n], equal_nan=True):
                    is_near = _near_exact(executor, node, node_input[n], computed[n])
                    is_open[n] |= is_near is None
                    expected[n] = expected[n] if is_near is None else np.where(is_near, computed[n], expected[n])
    results = executor.frames(quantizer, expected)
    return expected, results, np.broadcast_to(is_open.reshape(-1, *[1] * (results.ndim - 1)), results.shape)


def _near_exact(executor: _Executor, node: onnx.NodeProto, x: Array, computed: Array) -> Array | None:
    """Mask of a frame's results that are at most as far from the exact ones as float32 operations in any order give.

    Returns None if the exact results of an operator with an open order are not known.
    """
    with np.errstate(all="ignore"):
        try:
            exact, reach = exact_result(node, executor.inputs(node, x), executor.opsets)
        except Unable:
            return None if has_open_order(node) else np.zeros(computed.shape, np.bool_)
        return np.asarray(
            np.abs(computed.astype(np.float64) - exact.reshape(computed.shape)) <= reach.reshape(computed.shape)
        )


def _is_defined(encode: QuantizeLinear, x: Array) -> Array:
    """Mask of the numbers for which onnx.reference computes QuantizeLinear as it is defined.

    It casts the rounded quotient to int32 before it saturates. The results of numpy's cast of other numbers depend on
    the processor.
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(x / encode.scale) < 2.0**31)


def _compare(
    encode: Quantizer, lo: int, hi: int, computed: Array, expected: Array, executor: str
) -> tuple[Array | None, Array]:
    """A mask of differing codes, or None if there is nothing to compare, and the executor's values.

    Values beyond the codes' range saturate: here, bounds after the quantizer are a part of it. onnxruntime has a code
    for NaN; other executors have none.
    """
    expected = expected.reshape(computed.shape) if expected.size == computed.size else expected
    if expected.shape != computed.shape:
        return None, expected
    if isinstance(encode, QuantizeLinear):
        if expected.dtype.kind not in "iu":
            return None, expected
        return np.clip(expected.astype(np.int64), lo, hi) != computed, expected
    meaning = decoding(encode)
    low, high = (decode(meaning, np.full_like(computed, code)) for code in (lo, hi))
    clipped = np.clip(expected, np.minimum(low, high), np.maximum(low, high))
    return (clipped != decode(meaning, computed)) & ~np.isnan(expected), expected
