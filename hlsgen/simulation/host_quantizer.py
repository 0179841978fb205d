"""The host's quantizers against the file's own: the nodes from an input to its first quantizers, run by an executor.

Numbers lie beside ties and at the ends of float32, where quotients, roundings and NaN can go wrong unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from hlsgen.driver.compile import Build
from hlsgen.frontend.constant_folding import label
from hlsgen.frontend.load import read_model
from hlsgen.frontend.onnx_graph import name_all
from hlsgen.host.hard_numbers import hard_numbers
from hlsgen.interpreter.graph import encoded
from hlsgen.ir import GraphInput, Model, ModelInput
from hlsgen.ir.evaluate import decode, decoding
from hlsgen.ir.ops import QUANTIZERS, QuantizeLinear, Quantizer
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.oracles import Unable, constant_of, installed, run_node

#: Operators that end the way of an input.
_QUANTIZERS = frozenset(
    ["QuantizeLinear", "Quant", "IntQuant", "BipolarQuant", "MultiThreshold", "Trunc", "FloatQuant"]
)
_FRAMES, _ELEMENTS = 16, 1 << 14


@dataclass(frozen=True)
class HeadCheck:
    """`executor`: what ran the quantizers, "" if nothing did. `compared`: codes; `different`: of those; `text`: the first."""

    executor: str = ""
    compared: int = 0
    different: int = 0
    text: str = ""


@dataclass(frozen=True)
class _Path:
    """Nodes from an input to a quantizer, in order."""

    nodes: tuple[onnx.NodeProto, ...]


def check_head(build: Build, path: Path, seed: int, oracle: str) -> HeadCheck:
    """Codes of hard numbers by the interpreter, and by the executor of the file's runtime."""
    runtime = build.model.runtime if oracle == "auto" else oracle
    executor = "onnxruntime" if runtime.startswith("onnxruntime") else runtime
    if oracle == "none" or not installed(executor):
        return HeadCheck()
    proto = read_model(path)
    name_all(proto.graph)
    opsets = {o.domain: o.version for o in proto.opset_import}
    constants = {t.name: constant_of(t) for t in proto.graph.initializer}
    compared = different = 0
    text = ""
    for source, part, way in _parts(build, proto.graph, constants):
        x = _numbers(part, source, seed)
        try:
            theirs = np.stack([_run(executor, way, frame, constants, opsets) for frame in x])
        except Unable:
            continue
        assert part.encode is not None
        ours = encoded(source.name, part.steps, part.encode, part.value, x, False)
        wrong, values = _compare(part.encode, part.value.type.lo, part.value.type.hi, ours, theirs, executor)
        if wrong is None:
            continue
        compared += wrong.size
        if wrong.any() and not text:
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            number = x[place] if x.shape == wrong.shape else x[place[0]].ravel()[0]
            text = f"{label(way.nodes[-1])}: of {source.name} = {number!s} {executor} makes {values[place]!s}, hlsgen another code."
        different += int(wrong.sum())
    return HeadCheck(executor if compared else "", compared, different, text)


def _parts(
    build: Build, graph: onnx.GraphProto, constants: dict[str, Array]
) -> Iterator[tuple[ModelInput, GraphInput, _Path]]:
    """Every part of the port that the host quantizes, and the nodes of the file that make it."""
    parts = build.graph.inputs or (GraphInput(build.graph.head, build.graph.encode, 0, build.graph.input),)
    sources = build.graph.model.all_inputs
    for number, source in enumerate(sources):
        own = [part for part in parts if part.source == number]
        ways = _ways(graph, source.name, constants)
        if len(own) != len(ways):
            continue
        for part, way in zip(own, ways, strict=True):
            if part.encode is not None and _is_of(build.model, part, part.encode, way):
                yield source, part, way


def _ways(graph: onnx.GraphProto, name: str, constants: dict[str, Array]) -> list[_Path]:
    """From a tensor to its first quantizers, in the order of these; none if a way joins another or ends without one."""
    found, ways = dict[int, _Path](), [(name, tuple[onnx.NodeProto, ...]())]
    while ways:
        tensor, nodes = ways.pop()
        users = [(place, node) for place, node in enumerate(graph.node) if tensor in node.input]
        if not users:
            return []
        for place, node in users:
            others = [i for i in node.input[1:] if i]
            if node.input[0] != tensor or not all(i in constants for i in others):
                return []
            if node.op_type in _QUANTIZERS:
                found[place] = _Path((*nodes, node))
            else:
                ways.append((node.output[0], (*nodes, node)))
    return [way for _, way in sorted(found.items())]


def _is_of(model: Model, part: GraphInput, encode: Quantizer, way: _Path) -> bool:
    """Whether the host's steps and quantizer are those of the nodes, none of which hardware has."""
    name = label(way.nodes[-1])
    steps = [s for s in model.steps if s.name == name and type(s.op) is type(encode)]
    same = [s for s in steps if isinstance(s.op, QUANTIZERS) and _same_scale(s.op, encode)]
    before = {label(node) for node in way.nodes[:-1] if node.op_type not in ("Identity", "Dropout")}
    return bool(same) and {step.name for step in part.steps} == before


def _same_scale(a: Quantizer, b: Quantizer) -> bool:
    """Whether two quantizers differ in the range of their codes at most."""
    for name in ("scale", "zero_point", "mode", "divisor", "thresholds"):
        one, other = getattr(a, name, None), getattr(b, name, None)
        if (one is None) != (other is None) or not np.array_equal(np.ravel(one), np.ravel(other)):  # type: ignore[arg-type]
            return False
    return True


def _numbers(part: GraphInput, source: ModelInput, seed: int) -> Array:
    """Frames of an input that are hard for its quantizer; of integers random ones."""
    rng = np.random.default_rng(seed)
    frames = max(1, min(_FRAMES, _ELEMENTS // max(part.value.size, source.size)))
    if np.dtype(source.dtype).kind in "iu":
        info = np.iinfo(source.dtype)
        return rng.integers(info.min, info.max, (frames, *source.shape), endpoint=True).astype(source.dtype)
    return hard_numbers(part.steps, part.encode, part.value, source.shape, source.dtype, frames, seed)


def _run(executor: str, way: _Path, x: Array, constants: dict[str, Array], opsets: dict[str, int]) -> Array:
    """The quantizer's result for one frame. Raises Unable."""
    with np.errstate(all="ignore"):
        for node in way.nodes:
            (x, *_) = run_node(executor, node, [x, *(constants[i] for i in node.input[1:] if i)], opsets)
    return x


def _compare(
    encode: Quantizer, lo: int, hi: int, ours: Array, theirs: Array, executor: str
) -> tuple[Array | None, Array]:
    """Which codes differ, None if there is nothing to compare, and the executor's values.

    What is beyond the codes' range saturates: bounds that follow the quantizer are part of it here. onnxruntime gives NaN
    a code; the others have none for it.
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
    limited = np.clip(theirs, np.minimum(low, high), np.maximum(low, high))
    return (limited != decode(meaning, ours)) & ~np.isnan(theirs), theirs
