"""Variables: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE, and states of recurrent operators.

A variable is an input of the Model (its value before the frame) and an output (its value after it). CALL_ONCE sets the
values before the first frame, which are no part of the Model's steps. A state of a recurrent operator is a tensor of
its own that no other operator computes; it starts with its zero point.
"""

from __future__ import annotations

from hlsgen.diagnostics import fail
from hlsgen.frontend.tflite.file import TfliteGraph, TfliteOperator
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.ir import Reshape, Shape

#: Numbers of the inputs that are states, by operator.
STATES = {"UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19), "SVDF": (4,)}


def variable_of(operator: TfliteOperator) -> str:
    """The name of the variable of a VAR_HANDLE."""
    container, name = operator.options["container"], operator.options["shared_name"]
    return f"{container}/{name}" if container else str(name)


def read_first(graph: TfliteGraph) -> dict[str, tuple[Shape, str]]:
    """(shape, type) by name of the variables that the graph reads before it assigns them."""
    handles: dict[int, str] = {}
    assigned: set[str] = set()
    read: dict[str, tuple[Shape, str]] = {}
    for operator in graph.operators:
        for index in _states(operator):
            if graph.tensors[index].is_variable:
                read.setdefault(state_name(graph, index), (graph.tensors[index].shape, graph.tensors[index].type))
        if operator.name == "VAR_HANDLE" and operator.outputs:
            handles[operator.outputs[0]] = variable_of(operator)
        name = handles.get(operator.inputs[0]) if operator.inputs else None
        if name is None:
            continue
        if operator.name == "ASSIGN_VARIABLE":
            assigned.add(name)
        elif operator.name == "READ_VARIABLE" and operator.outputs and name not in assigned:
            tensor = graph.tensors[operator.outputs[0]]
            read.setdefault(name, (tensor.shape, tensor.type))
    return read


def _states(operator: TfliteOperator) -> list[int]:
    """Numbers of the tensors that are states of a recurrent operator."""
    positions = [n for n in STATES.get(operator.name, ()) if n < len(operator.inputs)]
    return [operator.inputs[n] for n in positions if operator.inputs[n] >= 0]


def var_handle(node: OperatorNode) -> None:
    """VAR_HANDLE. Raises HG015."""
    node.result()
    node.variables.handles[node.operator.outputs[0]] = variable_of(node.operator)


def read_variable(node: OperatorNode) -> None:
    """READ_VARIABLE: the newest value, in the order of the file. Raises HG014, HG015, HG023."""
    name = _name(node)
    node.result()
    node.values[node.operator.outputs[0]] = node.variables.current[name]


def assign_variable(node: OperatorNode) -> None:
    """ASSIGN_VARIABLE. Raises HG014, HG015."""
    tensor = node.tensor(1)
    node.variables.assign(_name(node), node.value(1), tensor.shape, tensor.type)


def call_once(node: OperatorNode) -> None:
    """CALL_ONCE: it has no effect on a frame whose old values are given."""


def state_name(graph: TfliteGraph, index: int) -> str:
    """The name of the variable that a tensor is; its number makes it new if another variable has the same."""
    name = graph.tensors[index].name
    used = any(t.is_variable and t.name == name and n != index for n, t in enumerate(graph.tensors))
    used |= any(o.name == "VAR_HANDLE" and variable_of(o) == name for o in graph.operators)
    return f"{name} {index}" if used else name


def old_state(node: OperatorNode, position: int) -> int:
    """The Model's value of a state of a recurrent operator. Raises HG014, HG020."""
    if not node.tensor(position).is_variable:
        text = f"input {position} of {node.operator.name}, a state, is not a variable."
        raise fail("HG020", node.name, text, "Export the model again.")
    return node.variables.current[state_name(node.graph, node.operator.inputs[position])]


def assign_state(node: OperatorNode, position: int, value: int) -> None:
    """Give a state of a recurrent operator its new value, of any shape with as many elements. Raises HG004."""
    tensor = node.tensor(position)
    shaped = node.step(Reshape(), tensor.shape, value)
    name = state_name(node.graph, node.operator.inputs[position])
    node.variables.assign(name, shaped, tensor.shape, tensor.type)


def _name(node: OperatorNode) -> str:
    name = node.variables.handles.get(node.operator.inputs[0]) if node.operator.inputs else None
    if name is None:
        text = f"{node.operator.name} of a handle that no VAR_HANDLE of the graph gives."
        raise fail("HG015", node.name, text, "Export the model again.")
    return name
