"""Loops of a file as plain nodes, step by step: so it can be cut behind each quantizer of their bodies.

Nothing here is the compiler's: a loop is walked with random numbers, in the executor, and every step that it takes is
written down. Where the executor has the loop as an operator, both must give the same. Nodes get the name of the loop and
the number of the step in front, as they have in the Model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hlsgen.frontend.constant_folding import label
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.onnx_graph import all_nodes, captured, graphs_of
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.oracles import Unable, constant_of, run_node

_LOOPS = frozenset(["Scan", "Loop", "If"])
#: Most nodes that a file becomes.
_NODES = 50_000


def is_loop(node: onnx.NodeProto) -> bool:
    """Whether it is an operator with bodies."""
    return node.op_type in _LOOPS and node.domain in ONNX


def unroll(graph: onnx.GraphProto, executor: str, inputs: Mapping[str, Array], opsets: Mapping[str, int]) -> None:
    """Puts the steps of all loops in their place; `inputs`: any numbers. Raises Unable."""
    if not any(is_loop(node) for node in all_nodes(graph)):
        return
    constants = {t.name: constant_of(t) for t in graph.initializer}
    walk = _Walk(executor, opsets, {**constants, **inputs})
    for node in graph.node:
        walk.take(node)
    del graph.node[:]
    graph.node.extend(walk.nodes)
    graph.initializer.extend(walk.tensors)


@dataclass
class _Walk:
    """Nodes that were run, in order, the values of all tensors, and constants that the steps share."""

    executor: str
    opsets: Mapping[str, int]
    values: dict[str, Array]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[onnx.TensorProto] = field(default_factory=list)

    def take(self, node: onnx.NodeProto) -> None:
        if is_loop(node):
            {"Scan": self._scan, "Loop": self._loop, "If": self._if}[node.op_type](node, _attributes(node))
            self._hold(node)
            return
        if len(self.nodes) >= _NODES:
            raise Unable(f"its loops have more than {_NODES} nodes in all steps")
        found = run_node(self.executor, node, self._arrays(node), self.opsets)
        self.values.update(zip([o for o in node.output if o], found, strict=False))
        self.nodes.append(node)

    def _arrays(self, node: onnx.NodeProto) -> list[Array]:
        missing = [i for i in node.input if i and i not in self.values]
        if missing:
            raise Unable(f"{node.op_type}: the tensor {missing[0]} in front of it is not known")
        return [self.values[i] for i in node.input if i]

    def _hold(self, loop: onnx.NodeProto) -> None:
        """Raises Unable if the executor has the loop itself, and it gives something else."""
        if self.executor == "qonnx" or captured(loop) or not all(loop.input):
            return
        try:
            found = run_node(self.executor, loop, self._arrays(loop), self.opsets)
        except Unable:
            return
        for name, value in zip([o for o in loop.output if o], found, strict=False):
            if not np.array_equal(value, self.values[name], equal_nan=value.dtype.kind == "f"):
                raise Unable(f"{loop.op_type}: {name} is not what its steps give one by one")

    # ------------------------------------------------------------------- the operators

    def _scan(self, node: onnx.NodeProto, attrs: dict[str, Any]) -> None:
        count, body = attrs["num_scan_inputs"], attrs["body"]
        states, sources = list(node.input[:-count]), list(node.input[-count:])
        stacked = len(body.output) - len(states)
        axes, back = attrs.get("scan_input_axes") or [0] * count, attrs.get("scan_input_directions") or [0] * count
        steps = self.values[sources[0]].shape[axes[0]]
        if any(self.values[s].shape[a] != steps for s, a in zip(sources, axes, strict=True)):
            raise Unable(f"{node.op_type}: what is scanned has different numbers of elements")
        rows: list[list[str]] = [[] for _ in range(stacked)]
        for step in range(steps):
            where, parts = f"{node.name}[{step}]", []
            for n, (source, axis) in enumerate(zip(sources, axes, strict=True)):
                at = self._constant(f"{where}/at {n}", np.array(steps - 1 - step if back[n] else step, np.int64))
                parts.append(self._add("Gather", [source, at], f"{where}/part {n}", axis=axis))
            results = self._copy(body, node.name, where, [*states, *parts])
            states = results[: len(states)]
            for row, result in zip(rows, results[len(states) :], strict=True):
                row.append(result)
        axes, back = (
            attrs.get("scan_output_axes") or [0] * stacked,
            attrs.get("scan_output_directions") or [0] * stacked,
        )
        rows = [row[::-1] if turned else row for row, turned in zip(rows, back, strict=True)]
        self._ends(node, states, rows, axes)

    def _loop(self, node: onnx.NodeProto, attrs: dict[str, Any]) -> None:
        body, (trips, going), states = attrs["body"], node.input[:2], list(node.input[2:])
        most = int(self.values[trips].reshape(())) if trips else None
        on = bool(self.values[going].reshape(())) if going else True
        rows: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(states))]
        step = 0
        while on and (most is None or step < most):
            where = f"{node.name}[{step}]"
            number = self._constant(f"{where}/step", np.array(step, np.int64))
            truth = self._constant(f"{where}/true", np.array(True))
            condition, *results = self._copy(body, node.name, where, [number, truth, *states])
            on, step = bool(self.values[condition].reshape(())), step + 1
            states = results[: len(states)]
            for row, result in zip(rows, results[len(states) :], strict=True):
                row.append(result)
        self._ends(node, states, rows, [0] * len(rows))

    def _if(self, node: onnx.NodeProto, attrs: dict[str, Any]) -> None:
        branch = "then_branch" if bool(self.values[node.input[0]].reshape(())) else "else_branch"
        self._ends(node, self._copy(attrs[branch], node.name, node.name, []), [], [])

    # ------------------------------------------------------------------- nodes of a step

    def _copy(self, body: onnx.GraphProto, owner: str, where: str, given: Sequence[str]) -> list[str]:
        """Runs a body on these tensors; the names of its outputs."""
        names = dict(zip((i.name for i in body.input), given, strict=True))
        for tensor in body.initializer:
            names[tensor.name] = f"{owner}/{tensor.name}"
            if names[tensor.name] not in self.values:
                self._constant(names[tensor.name], constant_of(tensor))
        for inner in body.node:
            copy = _renamed(inner, names)
            copy.name = f"{where}/{label(inner)}"
            names |= {o: f"{where}/{o}" for o in inner.output if o}
            copy.output[:] = [names[o] if o else "" for o in inner.output]
            self.take(copy)
        return [names.get(o.name, o.name) for o in body.output]

    def _ends(self, node: onnx.NodeProto, states: Sequence[str], rows: list[list[str]], axes: Sequence[int]) -> None:
        """The outputs of a loop: last states, then results of all steps along a new axis."""
        outputs = [*node.output, *[""] * (len(states) + len(rows) - len(node.output))]
        for state, output in zip(states, outputs, strict=False):
            if output:
                self._add("Identity", [state], output)
        for row, axis, output in zip(rows, axes, outputs[len(states) :], strict=True):
            if not output:
                continue
            wide = []
            for n, part in enumerate(row):
                shape = np.array(np.expand_dims(self.values[part], axis).shape, np.int64)
                wide.append(self._add("Reshape", [part, self._constant(f"{output}/shape {n}", shape)], f"{output}/{n}"))
            self._add("Concat", wide, output, axis=axis)

    def _constant(self, name: str, value: Array) -> str:
        self.tensors.append(numpy_helper.from_array(value, name))
        self.values[name] = value
        return name

    def _add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.take(helper.make_node(op, inputs, [output], name=f"{output} ({op})", **attributes))
        return output


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with other names of what it takes; in its own graphs of what these take from outside."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(i, i) for i in node.input]
    for graph in graphs_of(copy):
        own = {i.name for i in (*graph.input, *graph.initializer)} | {o for n in graph.node for o in n.output}
        outside = {old: new for old, new in names.items() if old not in own}
        nodes = [_renamed(inner, outside) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for end in graph.output:
            end.name = outside.get(end.name, end.name)
    return copy
