"""Rules of host steps before the first layer and after the last, and of the parts of divided ports."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.ir.encoding import Fixed, FloatKey, IntegerEncoding
from hlsgen.ir.graph import ArgMaxLayer, Graph, OutputAssembly, Value
from hlsgen.ir.model import ModelInput, Shape, Step
from hlsgen.ir.ops import Quantizer
from hlsgen.ir.verify.model import verify_step
from hlsgen.ir.verify.quantized import dtype_of, verify_quantized, verify_type
from hlsgen.ir.verify.violations import Place
from hlsgen.numerics.fixed import IntType


def verify_host(place: Place, graph: Graph) -> None:
    """Check that steps of head and tail follow each other, and that parts are adjacent."""
    model = graph.model
    if graph.inputs:
        sources = [part.source for part in graph.inputs]
        complete = sources == sorted(sources) and set(sources) == set(range(len(model.all_inputs)))
        complete &= len(sources) > 1 and not graph.head and graph.encode is None
        expected = f"parts of all {len(model.all_inputs)} inputs in order, and no other head"
        place.require(complete, "inputs", sources, expected)
        values = [part.value for part in graph.inputs]
        _verify_offsets(place.at("input"), [part.offset for part in graph.inputs], values, graph.input)
        for number, part in enumerate(graph.inputs if complete else (), 1):
            model_input = model.all_inputs[part.source]
            _verify_head(place.at(f"input {number}"), part.steps, part.encode, model_input, part.value)
    else:
        _verify_head(place, graph.head, graph.encode, model.all_inputs[0], graph.input)
    last = graph.layers[-1] if graph.layers else None
    if graph.outputs:
        values = [part.value for part in graph.outputs]
        _verify_offsets(place.at("output"), [part.offset for part in graph.outputs], values, graph.output)
        host_binaries = graph.host_binaries
        counts = len(values), len(host_binaries)
        expected_counts = (
            len(host_binaries) + sum(binary is not None for binary in host_binaries),
            len(model.all_outputs),
        )
        complete = place.require(counts == expected_counts, "parts, host_binaries", counts, expected_counts)
        for number, assembly in enumerate(graph.output_assemblies if complete else (), 1):
            _verify_assembly(place.at(f"output {number}"), assembly)
        return
    index = isinstance(last, ArgMaxLayer)
    place.require(graph.output_is_index == index, "output_is_index", graph.output_is_index, index)
    start = "int64" if index else dtype_of(graph.output.encoding)
    shape, _ = _verify_steps(place, "tail", graph.tail, graph.output.shape, start)
    place.require(shape == model.steps[-1].shape, "shape after the tail", shape, model.steps[-1].shape)


def _verify_assembly(place: Place, assembly: OutputAssembly) -> None:
    """Check the steps after each part of an output, the node that combines two parts, and the steps after it."""
    results = []
    for part in assembly.parts:
        start = "int64" if part.is_index else dtype_of(part.value.encoding)
        results.append(_verify_steps(place, "tail", part.steps, part.value.shape, start))
    shape, dtype = results[0]
    if assembly.host_binary is not None:
        expected = [(shape, assembly.host_binary.dtype)] * 2
        place.require(results == expected, "operands of the host binary", results, expected)
        shape, _ = _verify_steps(place, "after the host binary", assembly.host_binary.steps, shape, dtype)
    place.require(shape == assembly.output.shape, "shape after the tail", shape, assembly.output.shape)


def _verify_offsets(place: Place, offsets: list[int], values: list[Value], port: Value) -> None:
    """Check that parts are adjacent in a port, and that the port's type holds all their codes."""
    expected = [sum(value.size for value in values[:n]) for n in range(len(values))]
    place.require(offsets == expected, "offsets", offsets, expected)
    place.require(port.shape == (sum(v.size for v in values),), "shape", port.shape, "the elements of all parts")
    port_type = IntType(min(v.type.lo for v in values), max(v.type.hi for v in values))
    verify_type(place, port.type, port_type)


def _verify_head(
    place: Place, steps: Sequence[Step], encode: Quantizer | None, source: ModelInput, port: Value
) -> None:
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
