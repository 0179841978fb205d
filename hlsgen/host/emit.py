"""The files of host/: the bus and the model's own numbers in Python and C, and vectors with which both test themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import Stream
from hlsgen.host.blocks import c_functions, python_functions
from hlsgen.host.c_code import head_functions, tail_functions
from hlsgen.host.c_values import STORED, Constants, code_dtype, permuted
from hlsgen.host.plan import Head, Tail, plan_head, plan_tail
from hlsgen.host.py_code import Arrays, head_lines, tail_lines
from hlsgen.host.text import plain
from hlsgen.host.vectors import self_test_vectors
from hlsgen.ir import Shape
from hlsgen.ir.stream_order import axes_of
from hlsgen.library import render
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class Port:
    """A port as templates see it. `order`: element of the frame at each place of the stream."""

    stream: Stream
    layout: BusLayout
    shape: Shape
    order: Array
    signed: bool

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

    @property
    def stored(self) -> str:
        """The C type of a code."""
        return STORED[code_dtype(self.stream.type)]

    def index(self, place: str, constants: Constants) -> str:
        """The element at a place of the stream, in C."""
        if self.straight:
            return place
        if self.axes is not None:
            return permuted(self.shape, tuple(self.axes), place)
        return f"{constants.array(self.order, 'uint32')}[{place}]"


def host_files(network: Network, name: str, title: str, inputs: Array, outputs: Array) -> dict[str, bytes]:
    """Relative path -> content. `inputs`, `outputs`: codes of some frames at both ports, for the self-test."""
    graph = network.graph
    head, tail = plan_head(graph), plan_tail(graph)
    ports = {
        "input": Port(
            network.input, network.layouts[0], graph.input.shape, network.orders[0], network.input.type.signed
        ),
        "output": Port(
            network.output, network.layouts[1], graph.output.shape, network.orders[-1], network.output.type.signed
        ),
    }
    vectors = self_test_vectors(network, head, tail, inputs, outputs)
    shared = {
        "name": name, "title": plain(title), "head": head, "tail": tail, "model": graph.model, "plain": plain,
        "ports": ports, "stored": STORED, "frames": vectors.frames, "product": math.prod, **ports,
    }  # fmt: skip
    c, python = _c_values(network, head, tail, name, ports), _python_values(network, head, tail, ports)
    texts = {
        f"{name}.h": render("host/host.h.j2", **shared),
        f"{name}.c": render("host/host.c.j2", **shared, **c),
        f"{name}_selftest.c": render("host/selftest.c.j2", **shared),
        f"{name}.py": render("host/host.py.j2", **shared, **python),
    }
    files = {f"host/{file}": text.encode() for file, text in texts.items()}
    return {**files, f"host/{name}_vectors.bin": vectors.data}


def _c_values(network: Network, head: Head, tail: Tail, name: str, ports: dict[str, Port]) -> dict[str, object]:
    graph, constants = network.graph, Constants(name)
    functions = {
        "head_functions": [],
        "tail_functions": tail_functions(tail, name, constants, ports["output"].stream.type),
    }
    if head.makes_codes:
        value = graph.input
        functions["head_functions"] = head_functions(head, name, constants, value.encoding, value.type, value.shape)
    indices = {f"{which}_index": port.index("place", constants) for which, port in ports.items()}
    text = "\n".join(line for part in functions.values() for f in part for line in f.lines)
    text += "hg_signed(" if ports["output"].signed else ""
    return {**functions, **indices, "constants": constants.lines, "helpers": c_functions(text)}


def _python_values(network: Network, head: Head, tail: Tail, ports: dict[str, Port]) -> dict[str, object]:
    graph, arrays = network.graph, Arrays()
    lines: dict[str, Sequence[str]] = {"head_lines": [], "tail_lines": tail_lines(tail, arrays)}
    if head.makes_codes:
        lines["head_lines"] = head_lines(head, arrays, graph.input.encoding, graph.input.type)
    orders = {
        f"{which}_order": "None" if port.straight
        else f"np.arange({port.elements}).reshape({port.shape}).transpose({tuple(port.axes)}).ravel()" if port.axes is not None
        else arrays(port.order)
        for which, port in ports.items()
    }  # fmt: skip
    text = "\n".join(line for part in lines.values() for line in part)
    return {**lines, **orders, "constants": arrays.lines, "helpers": python_functions(text)}
