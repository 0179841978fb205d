"""Values of variables before the first frame: CALL_ONCE runs a graph that assigns constants."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.tflite.file import TfliteFile, TfliteGraph, TfliteTensor
from hlsgen.frontend.tflite.ops_state import state_name, variable_of
from hlsgen.ir import Shape
from hlsgen.numerics.fixed import Array


def initial_value(file: TfliteFile, name: str, shape: Shape, dtype: str) -> Array:
    """The value of a variable before the first frame, of this shape and dtype.

    A variable that CALL_ONCE does not assign has its zero point. Raises HG020, HG023, HG024.
    """
    tensor = _assigned_once(file).get(name)
    if tensor is None:
        zero, is_integer = _zero_point(file.graphs[0], name), np.dtype(dtype).kind in "iu"
        if is_integer and not np.iinfo(dtype).min <= zero <= np.iinfo(dtype).max:
            text = f"variable {name!r} of type {dtype} has zero point {zero}."
            raise fail("HG024", "variables", text, "Export the model again.")
        return np.full(shape, zero, dtype)
    if tensor.data is None:
        text = f"the initial value of variable {name!r} is not a constant."
        raise fail("HG020", "CALL_ONCE", text, "It must be stored in the file.")
    if tensor.data.size != int(np.prod(shape)) or tensor.type != dtype:
        text = f"the initial value of variable {name!r} is {tensor.type} of shape {list(tensor.shape)}; it is read as "
        raise fail("HG023", "CALL_ONCE", f"{text}{dtype} of shape {list(shape)}.", "Export the model again.")
    return tensor.data.reshape(shape)


def _assigned_once(file: TfliteFile) -> dict[str, TfliteTensor]:
    """The tensors that CALL_ONCE assigns, by name of the variable."""
    tensors: dict[str, TfliteTensor] = {}
    for call in file.graphs[0].operators:
        if call.name != "CALL_ONCE":
            continue
        graph = file.graphs[call.options["init_subgraph_index"]]
        handles: dict[int, str] = {}
        for operator in graph.operators:
            if operator.name == "VAR_HANDLE" and operator.outputs:
                handles[operator.outputs[0]] = variable_of(operator)
            elif operator.name == "ASSIGN_VARIABLE" and len(operator.inputs) == 2:
                tensors[handles.get(operator.inputs[0], "")] = graph.tensors[operator.inputs[1]]
    return tensors


def _zero_point(graph: TfliteGraph, name: str) -> int:
    """The zero point of the tensor with which the graph reads a variable, or of the variable; else 0."""
    handles: set[int] = set()
    for operator in graph.operators:
        if operator.name == "VAR_HANDLE" and operator.outputs and variable_of(operator) == name:
            handles.add(operator.outputs[0])
        if operator.name == "READ_VARIABLE" and handles.intersection(operator.inputs) and operator.outputs:
            return _zero_of(graph.tensors[operator.outputs[0]])
    states = (t for n, t in enumerate(graph.tensors) if t.is_variable and state_name(graph, n) == name)
    return next(map(_zero_of, states), 0)


def _zero_of(tensor: TfliteTensor) -> int:
    quantization = tensor.quantization
    return int(quantization.zero_point[0]) if quantization is not None and len(quantization.zero_point) else 0
