"""Frames as one sequence: each frame finds the variables of the file as the frame before has left them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hlsgen.interpreter.graph import decode_output, encode_array, frames_of_input, named_outputs, run_output
from hlsgen.ir import Graph, GraphInput, ModelVariable
from hlsgen.numerics.fixed import Array


def in_sequence(graph: Graph, codes: Array) -> Array:
    """The codes (frames, *shape) of the input, with the codes of variables replaced.

    The first frame has the initial values. A later one has the values that the graph computes for the frame before.
    """
    places = _places(graph)
    if not places:
        return codes
    flat: Array = codes.reshape(len(codes), -1).copy()
    values = {variable.name: variable.initial for variable, _ in places}
    for row in flat:
        for variable, part in places:
            x = values[variable.name].reshape(1, *variable.initial.shape).astype(variable.initial.dtype)
            encoded = encode_array(variable.name, part.steps, part.encode, part.value, x, rounded=False)
            row[part.offset : part.offset + part.value.size] = encoded.reshape(-1)
        outputs = run_output(graph, row.reshape(1, *graph.input.shape))
        has_names, name = bool(graph.model.outputs), graph.model.output_name
        computed = named_outputs(graph, outputs) if has_names else {name: decode_output(graph, outputs)}
        values |= {key: value for key, value in computed.items() if key in values}
    return np.asarray(flat.reshape(codes.shape))


def _places(graph: Graph) -> list[tuple[ModelVariable, GraphInput]]:
    """Pairs of a state variable and the streamed input that carries its value."""
    model = graph.model
    by_name = {variable.name: variable for variable in model.variables}
    only_part = GraphInput(graph.head, graph.encode, 0, graph.input)
    parts = [(model.all_inputs[part.source].name, part) for part in graph.inputs or (only_part,)]
    return [(by_name[name], part) for name, part in parts if name in by_name]


def with_variables(graph: Graph, x: Array | Mapping[str, Array]) -> tuple[dict[str, Array], bool]:
    """(arrays by input, True) with the initial value of each variable for all frames, if `x` has no variable's value.

    (`x` by input, False) for other builds. An array is the only input beside the variables. Raises HG054.
    """
    model = graph.model
    names = {variable.name for variable in model.variables}
    file_inputs = [source for source in model.all_inputs if source.name not in names]
    if not isinstance(x, Mapping):
        x = {file_inputs[0].name if len(file_inputs) == 1 and names else model.input_name: x}
    arrays, frames = dict(x), 0
    for source in file_inputs:
        if source.name in arrays:
            frames = frames or len(frames_of_input(source, arrays[source.name]))
    if not frames or not names.isdisjoint(arrays):
        return arrays, False
    initial = {variable.name: variable.initial for variable in model.variables}
    for source in model.all_inputs:
        if source.name in names:
            repeated = np.broadcast_to(initial[source.name], (frames, *source.shape))
            arrays[source.name] = repeated.reshape(frames, *source.shape[source.batched :])
    return arrays, bool(names)
