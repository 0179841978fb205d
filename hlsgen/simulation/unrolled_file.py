"""Replaces loops of a file by the nodes of all their steps, so that tensors within loops can be compared.

This does not use the compiler: a loop is run with random numbers in the executor, and each executed node is recorded.
If the executor has the loop as an operator, both must give the same results. Names of nodes begin with the loop's name
and the step's number, as in the Model.
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
#: Most nodes of an unrolled file.
_NODES = 50_000


def is_loop(node: onnx.NodeProto) -> bool:
    """True for an operator with bodies."""
    return node.op_type in _LOOPS and node.domain in ONNX


def unroll(graph: onnx.GraphProto, executor: str, inputs: Mapping[str, Array], opsets: Mapping[str, int]) -> None:
    """Replaces all loops by their steps; `inputs`: any numbers. Raises Unable."""
    if not any(is_loop(node) for node in all_nodes(graph)):
        return
    constants = {t.name: constant_of(t) for t in graph.initializer}
    walk = _Walk(executor, opsets, {**constants, **inputs})
    for node in graph.node:
        walk.run(node)
    del graph.node[:]
    graph.node.extend(walk.nodes)
    graph.initializer.extend(walk.tensors)


@dataclass
class _Walk:
    """Executed nodes in order, the values of all tensors, and constants that the steps share."""

    executor: str
    opsets: Mapping[str, int]
    values: dict[str, Array]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[onnx.TensorProto] = field(default_factory=list)

    def run(self, node: onnx.NodeProto) -> None:
        """Runs a node, and all steps of a loop. Raises Unable."""
        if is_loop(node):
            {"Scan": self._scan, "Loop": self._loop, "If": self._if}[node.op_type](node, _attributes(node))
            self._compare_with_executor(node)
            return
        if len(self.nodes) >= _NODES:
            raise Unable(f"its loops have more than {_NODES} nodes in all steps")
        results = run_node(self.executor, node, self._arrays(node), self.opsets)
        self.values.update(zip([o for o in node.output if o], results, strict=False))
        self.nodes.append(node)

    def _arrays(self, node: onnx.NodeProto) -> list[Array]:
        """The inputs of a node, without the missing ones. Raises Unable."""
        missing = [i for i in node.input if i and i not in self.values]
        if missing:
            raise Unable(f"{node.op_type}: its input {missing[0]} is not known")
        return [self.values[i] for i in node.input if i]

    def _compare_with_executor(self, loop: onnx.NodeProto) -> None:
        """Raises Unable if the executor has the loop as an operator with other results."""
        if self.executor == "qonnx" or captured(loop) or not all(loop.input):
            return
        try:
            results = run_node(self.executor, loop, self._arrays(loop), self.opsets)
        except Unable:
            return
        for name, value in zip([o for o in loop.output if o], results, strict=False):
            if not np.array_equal(value, self.values[name], equal_nan=value.dtype.kind == "f"):
                raise Unable(f"{loop.op_type}: {name} differs from the result of its steps run one by one")

    # ------------------------------------------------------------------- the operators

    def _scan(self, node: onnx.NodeProto, attrs: dict[str, Any]) -> None:
        """Runs all steps of a Scan."""
        count, body = attrs["num_scan_inputs"], attrs["body"]
        states, sources = list(node.input[:-count]), list(node.input[-count:])
        stacked = len(body.output) - len(states)
        axes, reversed_ = attrs.get("scan_input_axes") or [0] * count, attrs.get("scan_input_directions") or [0] * count
        steps = self.values[sources[0]].shape[axes[0]]
        if any(self.values[s].shape[a] != steps for s, a in zip(sources, axes, strict=True)):
            raise Unable(f"{node.op_type}: the scanned inputs have different lengths")
        rows: list[list[str]] = [[] for _ in range(stacked)]
        for step in range(steps):
            step_name, parts = f"{node.name}[{step}]", []
            for n, (source, axis) in enumerate(zip(sources, axes, strict=True)):
                index = self._constant(
                    f"{step_name}/at {n}", np.array(steps - 1 - step if reversed_[n] else step, np.int64)
                )
                parts.append(self._add("Gather", [source, index], f"{step_name}/part {n}", axis=axis))
            results = self._copy(body, node.name, step_name, [*states, *parts])
            states = results[: len(states)]
            for row, result in zip(rows, results[len(states) :], strict=True):
                row.append(result)
        axes, reversed_ = (
            attrs.get("scan_output_axes") or [0] * stacked,
            attrs.get("scan_output_directions") or [0] * stacked,
        )
        rows = [row[::-1] if is_reversed else row for row, is_reversed in zip(rows, reversed_, strict=True)]
        self._ends(node, states, rows, axes)

    def _loop(self, node: onnx.NodeProto, attrs: dict[str, Any]) -> None:
        """Runs all steps of a Loop."""
        body, (trips, condition_name), states = attrs["body"], node.input[:2], list(node.input[2:])
        max_steps = int(self.values[trips].reshape(())) if trips else None
        continues = bool(self.values[condition_name].reshape(())) if condition_name else True
        rows: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(states))]
        step = 0
        while continues and (max_steps is None or step < max_steps):
            step_name = f"{node.name}[{step}]"
            number = self._constant(f"{step_name}/step", np.array(step, np.int64))
            truth = self._constant(f"{step_name}/true", np.array(True))
            condition, *results = self._copy(body, node.name, step_name, [number, truth, *states])
            continues, step = bool(self.values[condition].reshape(())), step + 1
            states = results[: len(states)]
            for row, result in zip(rows, results[len(states) :], strict=True):
                row.append(result)
        self._ends(node, states, rows, [0] * len(rows))

    def _if(self, node: onnx.NodeProto, attrs: dict[str, Any]) -> None:
        """Runs the branch of an If that its condition selects."""
        branch = "then_branch" if bool(self.values[node.input[0]].reshape(())) else "else_branch"
        self._ends(node, self._copy(attrs[branch], node.name, node.name, []), [], [])

    # ------------------------------------------------------------------- nodes of a step

    def _copy(self, body: onnx.GraphProto, owner: str, prefix: str, arguments: Sequence[str]) -> list[str]:
        """Runs a body on these tensors; returns the names of its outputs."""
        names = dict(zip((i.name for i in body.input), arguments, strict=True))
        for tensor in body.initializer:
            names[tensor.name] = f"{owner}/{tensor.name}"
            if names[tensor.name] not in self.values:
                self._constant(names[tensor.name], constant_of(tensor))
        for inner in body.node:
            copy = _renamed(inner, names)
            copy.name = f"{prefix}/{label(inner)}"
            names |= {o: f"{prefix}/{o}" for o in inner.output if o}
            copy.output[:] = [names[o] if o else "" for o in inner.output]
            self.run(copy)
        return [names.get(o.name, o.name) for o in body.output]

    def _ends(self, node: onnx.NodeProto, states: Sequence[str], rows: list[list[str]], axes: Sequence[int]) -> None:
        """Adds the outputs of a loop: the last states, then the results of all steps along a new axis."""
        outputs = [*node.output, *[""] * (len(states) + len(rows) - len(node.output))]
        for state, output in zip(states, outputs, strict=False):
            if output:
                self._add("Identity", [state], output)
        for row, axis, output in zip(rows, axes, outputs[len(states) :], strict=True):
            if not output:
                continue
            reshaped = []
            for n, part in enumerate(row):
                shape = np.array(np.expand_dims(self.values[part], axis).shape, np.int64)
                reshaped.append(
                    self._add("Reshape", [part, self._constant(f"{output}/shape {n}", shape)], f"{output}/{n}")
                )
            self._add("Concat", reshaped, output, axis=axis)

    def _constant(self, name: str, value: Array) -> str:
        """Adds a constant; returns its name."""
        self.tensors.append(numpy_helper.from_array(value, name))
        self.values[name] = value
        return name

    def _add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Runs a new node; returns the name of its output."""
        self.run(helper.make_node(op, inputs, [output], name=f"{output} ({op})", **attributes))
        return output


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of a node, by name."""
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with renamed inputs; in its bodies, with renamed tensors from outside."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(i, i) for i in node.input]
    for graph in graphs_of(copy):
        body_tensors = {i.name for i in (*graph.input, *graph.initializer)} | {o for n in graph.node for o in n.output}
        outside = {old: new for old, new in names.items() if old not in body_tensors}
        nodes = [_renamed(inner, outside) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for end in graph.output:
            end.name = outside.get(end.name, end.name)
    return copy
