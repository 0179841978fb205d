"""Rules of what the host does: steps in front of the first layer and behind the last, and the places of several tensors."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.ir.encoding import Fixed, FloatKey, IntegerEncoding
from hlsgen.ir.graph import ArgMaxLayer, Graph, GraphEnd, Value
from hlsgen.ir.model import ModelInput, Shape, Step
from hlsgen.ir.ops import Quantizer
from hlsgen.ir.verify.model import verify_step
from hlsgen.ir.verify.quantized import dtype_of, verify_quantized, verify_type
from hlsgen.ir.verify.violations import Place
from hlsgen.numerics.fixed import IntType


def verify_host(place: Place, graph: Graph) -> None:
    """Steps of head and tail follow each other; parts lie one behind the other."""
    model = graph.model
    if graph.inputs:
        taken = [part.source for part in graph.inputs]
        whole = taken == sorted(taken) and set(taken) == set(range(len(model.sources)))
        whole &= len(taken) > 1 and not graph.head and graph.encode is None
        place.require(whole, "inputs", taken, f"parts of all {len(model.sources)} inputs in order, and no other head")
        values = [part.value for part in graph.inputs]
        _verify_places(place.at("input"), [part.offset for part in graph.inputs], values, graph.input)
        for number, part in enumerate(graph.inputs if whole else (), 1):
            _verify_head(
                place.at(f"input {number}"), part.steps, part.encode, model.sources[part.source], part.value
            )  # fmt: skip
    else:
        _verify_head(place, graph.head, graph.encode, model.sources[0], graph.input)
    last = graph.layers[-1] if graph.layers else None
    if graph.outputs:
        values = [part.value for part in graph.outputs]
        _verify_places(place.at("output"), [part.offset for part in graph.outputs], values, graph.output)
        wanted = len(graph.joints) + sum(joint is not None for joint in graph.joints), len(model.targets)
        whole = place.require(
            (len(values), len(graph.joints)) == wanted, "parts, joints", (len(values), len(graph.joints)), wanted
        )
        for number, end in enumerate(graph.ends if whole else (), 1):
            _verify_end(place.at(f"output {number}"), end)
        return
    index = isinstance(last, ArgMaxLayer)
    place.require(graph.output_is_index == index, "output_is_index", graph.output_is_index, index)
    start = "int64" if index else dtype_of(graph.output.encoding)
    shape, _ = _verify_steps(place, "tail", graph.tail, graph.output.shape, start)
    place.require(shape == model.steps[-1].shape, "shape behind the tail", shape, model.steps[-1].shape)


def _verify_end(place: Place, end: GraphEnd) -> None:
    """The steps behind each part of an output, what joins two parts, and the steps behind that."""
    found = []
    for part in end.parts:
        start = "int64" if part.is_index else dtype_of(part.value.encoding)
        found.append(_verify_steps(place, "tail", part.steps, part.value.shape, start))
    shape, dtype = found[0]
    if end.joint is not None:
        wanted = [(shape, end.joint.dtype)] * 2
        place.require(found == wanted, "sides of the joint", found, wanted)
        shape, _ = _verify_steps(place, "behind the joint", end.joint.steps, shape, dtype)
    place.require(shape == end.output.shape, "shape behind the tail", shape, end.output.shape)


def _verify_places(place: Place, offsets: list[int], values: list[Value], port: Value) -> None:
    """Parts lie one behind the other in a port, which holds the codes of all."""
    wanted = [sum(value.size for value in values[:n]) for n in range(len(values))]
    place.require(offsets == wanted, "offsets", offsets, wanted)
    place.require(port.shape == (sum(v.size for v in values),), "shape", port.shape, "the elements of all parts")
    held = IntType(min(v.type.lo for v in values), max(v.type.hi for v in values))
    verify_type(place, port.type, held)


def _verify_head(
    place: Place, steps: Sequence[Step], encode: Quantizer | None, source: ModelInput, port: Value
) -> None:  # fmt: skip
    shape, dtype = _verify_steps(place, "head", steps, source.shape, source.dtype)
    at = place.at("input")
    at.require(port.shape == shape, "shape", port.shape, shape)
    if encode is not None:
        verify_quantized(at, encode, dtype, port)
    else:
        legal = isinstance(port.encoding, Fixed | FloatKey | IntegerEncoding)
        at.require(legal, "encoding", port.encoding, "fixed point, float keys or integers")


def _verify_steps(
    place: Place, part: str, steps: Sequence[Step], shape: Shape, dtype: str | None
) -> tuple[Shape, str | None]:
    for number, step in enumerate(steps, 1):
        shape, dtype = verify_step(place.at(f"{part} step {number} {step.name!r}"), step, [(shape, dtype)])
    return shape, dtype
