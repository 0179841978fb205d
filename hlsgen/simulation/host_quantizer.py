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
from hlsgen.ir import Graph, GraphInput, Model, ModelInput
from hlsgen.ir.evaluate import decode, decoding
from hlsgen.ir.ops import QUANTIZERS, QuantizeLinear, Quantizer
from hlsgen.numerics.fixed import Array
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
    codes.
    text: the first of them in words.
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
            theirs = np.stack([_run(executor, path_nodes, frame, constants, opsets) for frame in x])
        except Unable:
            continue
        assert part.encode is not None
        ours = encode_array(source.name, part.steps, part.encode, part.value, x, False)
        differs, values = _compare(part.encode, part.value.type.lo, part.value.type.hi, ours, theirs, executor)
        if differs is None:
            continue
        compared += differs.size
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
    """Frames of an input that are hard for its quantizer; random frames of integers."""
    rng = np.random.default_rng(seed)
    frames = max(1, min(_FRAMES, _ELEMENTS // max(part.value.size, source.size)))
    if np.dtype(source.dtype).kind in "iu":
        info = np.iinfo(source.dtype)
        return rng.integers(info.min, info.max, (frames, *source.shape), endpoint=True).astype(source.dtype)
    return hard_numbers(part.steps, part.encode, part.value, source.shape, source.dtype, frames, seed)


def _run(executor: str, path_nodes: _Path, x: Array, constants: dict[str, Array], opsets: dict[str, int]) -> Array:
    """The quantizer's result for one frame. Raises Unable."""
    with np.errstate(all="ignore"):
        for node in path_nodes.nodes:
            (x, *_) = run_node(executor, node, [x, *(constants[i] for i in node.input[1:] if i)], opsets)
    return x


def _compare(
    encode: Quantizer, lo: int, hi: int, ours: Array, theirs: Array, executor: str
) -> tuple[Array | None, Array]:
    """A mask of differing codes, or None if there is nothing to compare, and the executor's values.

    Values beyond the codes' range saturate: here, bounds after the quantizer are a part of it. onnxruntime has a code
    for
    NaN; other executors have none.
    """
    theirs = theirs.reshape(ours.shape) if theirs.size == ours.size else theirs
    if theirs.shape != ours.shape:
        return None, theirs
    if isinstance(encode, QuantizeLinear):
        if theirs.dtype.kind not in "iu":
            return None, theirs
        return np.clip(theirs.astype(np.int64), lo, hi) != ours, theirs
    meaning = decoding(encode)
    low, high = (decode(meaning, np.full_like(ours, code)) for code in (lo, hi))
    clipped = np.clip(theirs, np.minimum(low, high), np.maximum(low, high))
    return (clipped != decode(meaning, ours)) & ~np.isnan(theirs), theirs
