"""Writes the files of host/: codecs for the bus and the model's numbers, in Python and C, and vectors for a
self-test."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.network import CorePort, Network
from hlsgen.dataflow.units import Stream
from hlsgen.host.blocks import c_functions, python_functions
from hlsgen.host.c_code import Function, head_functions, tail_functions
from hlsgen.host.c_values import STORED, Constants, code_dtype, permuted
from hlsgen.host.plan import Head, Tail, by_input, plan_head, plan_outputs
from hlsgen.host.py_code import Arrays, head_lines, tail_lines
from hlsgen.host.text import plain
from hlsgen.host.vectors import self_test_vectors
from hlsgen.interpreter.frame_states import without_states
from hlsgen.ir import Graph, Shape
from hlsgen.ir.stream_order import axes_of
from hlsgen.library import licensed, render
from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True, eq=False)
class HostPort:
    """A port as the templates see it.

    - label: suffix of its names; "" for a single port.
    - offset: position of its first element in the frame of all codes.
    - order: its element at each place of the stream.
    - index: C expression for the frame's element at `place` of the stream. ordered: Python expression for all of them.
    """

    name: str
    label: str
    offset: int
    stream: Stream
    layout: BusLayout
    shape: Shape
    order: Array
    index: str = ""
    ordered: str = "None"

    @property
    def signed(self) -> bool:
        return self.stream.type.signed

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def axes(self) -> list[int] | None:
        """The axes in the order in which the stream runs through them, the outermost first, or None for another
        order."""
        return axes_of(self.order, self.shape)

    @property
    def in_order(self) -> bool:
        """True if the stream has the elements in row-major order."""
        return bool((self.order == np.arange(len(self.order))).all())

    def with_indices(self, constants: Constants, arrays: Arrays) -> HostPort:
        """The port with `index` and `ordered`."""
        place, ordered = "place", "None"
        if not self.in_order and self.axes is not None:
            place = permuted(self.shape, tuple(self.axes), place)
            ordered = f"np.arange({self.elements}).reshape({self.shape}).transpose({tuple(self.axes)}).ravel()"
        elif not self.in_order:
            place, ordered = f"{constants.array(self.order, 'uint32')}[{place}]", arrays(self.order)
        return replace(self, index=f"{self.offset} + {place}" if self.offset else place, ordered=ordered)


@dataclass(frozen=True, eq=False)
class Frame:
    """All codes of the inputs, or of the outputs, and the ports that carry them."""

    shape: Shape
    type: IntType
    ports: list[HostPort]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def has_labels(self) -> bool:
        """True if the ports have names of their own."""
        return any(port.label for port in self.ports)

    @property
    def c_type(self) -> str:
        """The C type of a code."""
        return STORED[code_dtype(self.type)]


@dataclass(frozen=True, eq=False)
class End:
    """An input or output as the templates see it.

    - tensor: its name. label: suffix of the names of its functions; "" for a single input or output.
    - plan: steps that host code runs.
    - offset: position of its first code in the frame.
    - functions: in C. lines: statements in Python.
    """

    tensor: str
    label: str
    plan: Head | Tail
    offset: int
    shape: Shape
    functions: list[Function]
    lines: Sequence[str]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def host_files(
    network: Network, name: str, title: str, inputs: Array, outputs: Array, seed: int | None = None
) -> dict[str, bytes]:
    """The files of host/, by relative path.

    inputs, outputs: codes of some frames at both ports, for the self-test. seed: of numbers that are hard to quantize.
    If
    it is None, the self-test has the fixed numbers of every build.
    """
    graph = network.graph.host_graph
    inputs, outputs = without_states(inputs, graph.input.shape), without_states(outputs, graph.output.shape)
    constants, arrays = Constants(name), Arrays()
    output = _frame(graph.output.shape, network.outputs)
    heads, tails = _heads(graph, name, constants, arrays), _tails(graph, name, constants, arrays, output)
    frames = {"input": _frame(graph.input.shape, network.inputs), "output": output}
    frames_by_direction = {
        direction: replace(frame, ports=[port.with_indices(constants, arrays) for port in frame.ports])
        for direction, frame in frames.items()
    }
    head_plans, output_plans = [plan_head(part) for part in by_input(graph)], plan_outputs(graph)
    vectors = self_test_vectors(network, head_plans, output_plans, inputs, outputs, seed)
    template_values = {
        "name": name,
        "title": plain(title),
        "model": graph.model,
        "plain": plain,
        "stored": STORED,
        "frames": vectors.frames,
        "product": math.prod,
        "heads": heads,
        "tails": tails,
        "makes_codes": bool(heads),
        "head": head_plans[0],
        "tail": output_plans[0].tail,
        "many_in": bool(graph.inputs),
        "many_out": len(output_plans) > 1 or bool(graph.model.outputs),
        "user_steps_before": [step for head in head_plans for step in head.user_steps],
        "user_steps_after": [step for output in output_plans for step in output.tail.user_steps],
        **frames_by_direction,
    }
    c_values = _c_values(heads, tails, constants, frames_by_direction["output"])
    python_values = _python_values(heads, tails, arrays)
    texts = {
        f"{name}.h": render("host/host.h.j2", **template_values),
        f"{name}.c": render("host/host.c.j2", **template_values, **c_values),
        f"{name}_selftest.c": render("host/selftest.c.j2", **template_values),
        f"{name}.py": render("host/host.py.j2", **template_values, **python_values),
    }
    files = {f"host/{file}": text.encode() for file, text in licensed(texts).items()}
    return {**files, f"host/{name}_vectors.bin": vectors.data}


def _frame(shape: Shape, ports: Sequence[CorePort]) -> Frame:
    """The frame of all ports of one direction."""
    types = [port.stream.type for port in ports]
    code_type = IntType(min(type_.lo for type_ in types), max(type_.hi for type_ in types))
    host_ports = [HostPort(p.name, p.label, p.offset, p.stream, p.layout, p.value.shape, p.order) for p in ports]
    return Frame(shape, code_type, host_ports)


def _heads(graph: Graph, name: str, constants: Constants, arrays: Arrays) -> list[End]:
    """All parts of the input; none if the user makes the codes of one of them."""
    ends, offset = [], 0
    part_graphs = by_input(graph)
    plans = [plan_head(part) for part in part_graphs]
    tensors = _head_tensors(part_graphs, plans)
    labels = _labels(tensors)
    if not all(plan.makes_codes for plan in plans):
        return []
    for part, plan, tensor, label in zip(part_graphs, plans, tensors, labels, strict=True):
        value, prefix = part.input, f"{name}_head_of{label}" if label else f"{name}_head"
        functions = head_functions(plan, prefix, constants, value.encoding, value.type, value.shape)
        lines = head_lines(plan, arrays, value.encoding, value.type)
        ends.append(End(tensor, label, plan, offset, value.shape, functions, lines))
        offset += value.size
    return ends


def _tails(graph: Graph, name: str, constants: Constants, arrays: Arrays, frame: Frame) -> list[End]:
    """All outputs; `frame`: the frame of their codes."""
    ends, outputs = [], plan_outputs(graph)
    labels = _labels([output.tensor for output in outputs])
    for output, label in zip(outputs, labels, strict=True):
        prefix = f"{name}_tail_of{label}" if label else f"{name}_tail"
        functions = tail_functions(output.tail, prefix, constants, frame.type)
        lines = tail_lines(output.tail, arrays)
        ends.append(End(output.tensor, label, output.tail, output.offset, output.shape, functions, lines))
    return ends


def function_labels(graph: Graph) -> tuple[list[str], list[str]]:
    """Suffixes of the names of C functions: of each head, and of each tail. "" if there is only one."""
    part_graphs = by_input(graph)
    heads = _labels(_head_tensors(part_graphs, [plan_head(part) for part in part_graphs]))
    return heads, _labels([output.tensor for output in plan_outputs(graph)])


def _head_tensors(part_graphs: Sequence[Graph], plans: list[Head]) -> list[str]:
    """A name for the tensor that each head reads."""
    return _part_names([part.model.input_name for part in part_graphs], plans)


def _part_names(inputs: list[str], plans: list[Head]) -> list[str]:
    """A name for the tensor that each head reads: the name of its input.

    An input with several quantizers has several heads: their names also have the last step that is left to the user,
    or a number.
    """
    names: list[str] = []
    for number, (input_name, plan) in enumerate(zip(inputs, plans, strict=True)):
        if inputs.count(input_name) > 1 and plan.user_steps:
            name = f"{input_name} behind {plan.user_steps[-1][0]}"
        else:
            name = input_name
        names.append(f"{name} ({number + 1})" if name in names else name)
    return names


def _labels(tensors: list[str]) -> list[str]:
    """Suffixes of the names of C functions, one for each tensor; "" for a single tensor."""
    if len(tensors) < 2:
        return [""]
    labels: list[str] = []
    for tensor in tensors:
        label = "_" + (re.sub(r"\W", "_", tensor, flags=re.ASCII) or "x")
        label = f"_{label}" if label.startswith("_of") else label
        while label in labels:
            label += "_"
        labels.append(label)
    return labels


def _c_values(heads: list[End], tails: list[End], constants: Constants, output: Frame) -> dict[str, object]:
    """Values for the C template alone."""
    functions = [function for end in (*heads, *tails) for function in end.functions]
    text = "\n".join(line for function in functions for line in function.lines)
    text += "hg_signed(" if any(port.signed for port in output.ports) else ""
    return {"functions": functions, "constants": constants.lines, "helpers": c_functions(text)}


def _python_values(heads: list[End], tails: list[End], arrays: Arrays) -> dict[str, object]:
    """Values for the Python template alone."""
    text = "\n".join(line for end in (*heads, *tails) for line in end.lines)
    return {"constants": arrays.lines, "helpers": python_functions(text)}
