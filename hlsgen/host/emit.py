"""The files of host/: the bus and the model's own numbers in Python and C, and vectors with which both test themselves."""

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
from hlsgen.ir import Graph, Shape
from hlsgen.ir.stream_order import axes_of
from hlsgen.library import render
from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True, eq=False)
class Port:
    """A port as templates see it. `label` ends its name; `offset`: of its first element in the frame of all codes.

    `order`: its element at each place of the stream. `index`: that of the frame there, in C; `ordered`: all, in Python.
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
        """The axes that the stream runs through, the outermost first; None if it runs in no such order."""
        return axes_of(self.order, self.shape)

    @property
    def straight(self) -> bool:
        """Whether the stream has the elements in their own order."""
        return bool((self.order == np.arange(len(self.order))).all())

    def indexed(self, constants: Constants, arrays: Arrays) -> Port:
        """With `index` and `ordered`."""
        place, ordered = "place", "None"
        if not self.straight and self.axes is not None:
            place = permuted(self.shape, tuple(self.axes), place)
            ordered = f"np.arange({self.elements}).reshape({self.shape}).transpose({tuple(self.axes)}).ravel()"
        elif not self.straight:
            place, ordered = f"{constants.array(self.order, 'uint32')}[{place}]", arrays(self.order)
        return replace(self, index=f"{self.offset} + {place}" if self.offset else place, ordered=ordered)


@dataclass(frozen=True, eq=False)
class Frame:
    """All codes of the inputs, or of the outputs, and the ports that carry them."""

    shape: Shape
    type: IntType
    ports: list[Port]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def several(self) -> bool:
        """Whether the ports have names of their own."""
        return any(port.label for port in self.ports)

    @property
    def stored(self) -> str:
        """The C type of a code."""
        return STORED[code_dtype(self.type)]


@dataclass(frozen=True, eq=False)
class End:
    """An input or output as templates see it: its tensor, what host code does of it, and where its codes lie in the frame.

    `label` ends the names of its functions; "" of an only one. `functions` in C, `lines` in Python.
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
    """Relative path -> content. `inputs`, `outputs`: codes of some frames at both ports, for the self-test; `seed`: of hard
    numbers in it, None for those of every build."""
    graph = network.graph
    constants, arrays = Constants(name), Arrays()
    output = _frame(graph.output.shape, network.outputs)
    heads, tails = _heads(graph, name, constants, arrays), _tails(graph, name, constants, arrays, output)
    both = {"input": _frame(graph.input.shape, network.inputs), "output": output}
    ports = {
        which: replace(frame, ports=[port.indexed(constants, arrays) for port in frame.ports])
        for which, frame in both.items()
    }
    before, behind = [plan_head(own) for own in by_input(graph)], plan_outputs(graph)
    vectors = self_test_vectors(network, before, behind, inputs, outputs, seed)
    shared = {
        "name": name, "title": plain(title), "model": graph.model, "plain": plain, "stored": STORED,
        "frames": vectors.frames, "product": math.prod, "heads": heads, "tails": tails, "makes_codes": bool(heads),
        "head": before[0], "tail": behind[0].tail, "many_in": bool(graph.inputs),
        "many_out": len(behind) > 1 or bool(graph.model.outputs),
        "left_in": [left for plan in before for left in plan.left],
        "left_out": [left for output in behind for left in output.tail.left], **ports,
    }  # fmt: skip
    c, python = _c_values(heads, tails, constants, ports["output"]), _python_values(heads, tails, arrays)
    texts = {
        f"{name}.h": render("host/host.h.j2", **shared),
        f"{name}.c": render("host/host.c.j2", **shared, **c),
        f"{name}_selftest.c": render("host/selftest.c.j2", **shared),
        f"{name}.py": render("host/host.py.j2", **shared, **python),
    }
    files = {f"host/{file}": text.encode() for file, text in texts.items()}
    return {**files, f"host/{name}_vectors.bin": vectors.data}


def _frame(shape: Shape, ports: Sequence[CorePort]) -> Frame:
    """Of all ports of one direction."""
    types = [port.stream.type for port in ports]
    held = IntType(min(type_.lo for type_ in types), max(type_.hi for type_ in types))
    found = [Port(p.name, p.label, p.offset, p.stream, p.layout, p.value.shape, p.order) for p in ports]
    return Frame(shape, held, found)


def _heads(graph: Graph, name: str, constants: Constants, arrays: Arrays) -> list[End]:
    """Every part of the input; none if the codes of one are made by the user."""
    found, offset = [], 0
    views = by_input(graph)
    plans = [plan_head(own) for own in views]
    tensors = _part_names([own.model.input_name for own in views], plans)
    labels = _labels(tensors)
    if not all(plan.makes_codes for plan in plans):
        return []
    for own, plan, tensor, label in zip(views, plans, tensors, labels, strict=True):
        value, prefix = own.input, f"{name}_head_of{label}" if label else f"{name}_head"
        functions = head_functions(plan, prefix, constants, value.encoding, value.type, value.shape)
        lines = head_lines(plan, arrays, value.encoding, value.type)
        found.append(End(tensor, label, plan, offset, value.shape, functions, lines))
        offset += value.size
    return found


def _tails(graph: Graph, name: str, constants: Constants, arrays: Arrays, frame: Frame) -> list[End]:
    """Every output."""
    found, outputs = [], plan_outputs(graph)
    labels = _labels([own.tensor for own in outputs])
    for own, label in zip(outputs, labels, strict=True):
        prefix = f"{name}_tail_of{label}" if label else f"{name}_tail"
        functions = tail_functions(own.tail, prefix, constants, frame.type)
        lines = tail_lines(own.tail, arrays)
        found.append(End(own.tensor, label, own.tail, own.offset, own.shape, functions, lines))
    return found


def _part_names(inputs: list[str], plans: list[Head]) -> list[str]:
    """A name for the tensor that each head takes: that of its input, and of the last step that is left to the user.

    An input of several quantizers has as many.
    """
    found: list[str] = []
    for number, (name, plan) in enumerate(zip(inputs, plans, strict=True)):
        several = inputs.count(name) > 1 and plan.left
        found.append(f"{name} behind {plan.left[-1][0]}" if several else name)
        same = found[:-1].count(found[-1])
        if same:
            found[-1] = f"{found[-1]} ({number + 1})"
    return found


def _labels(tensors: list[str]) -> list[str]:
    """Endings of the names of functions in C, of one tensor none."""
    if len(tensors) < 2:
        return [""]
    found: list[str] = []
    for tensor in tensors:
        label = "_" + (re.sub(r"\W", "_", tensor, flags=re.ASCII) or "x")
        label = f"_{label}" if label.startswith("_of") else label
        while label in found:
            label += "_"
        found.append(label)
    return found


def _c_values(heads: list[End], tails: list[End], constants: Constants, output: Frame) -> dict[str, object]:
    functions = [function for end in (*heads, *tails) for function in end.functions]
    text = "\n".join(line for function in functions for line in function.lines)
    text += "hg_signed(" if any(port.signed for port in output.ports) else ""
    return {"functions": functions, "constants": constants.lines, "helpers": c_functions(text)}


def _python_values(heads: list[End], tails: list[End], arrays: Arrays) -> dict[str, object]:
    text = "\n".join(line for end in (*heads, *tails) for line in end.lines)
    return {"constants": arrays.lines, "helpers": python_functions(text)}
