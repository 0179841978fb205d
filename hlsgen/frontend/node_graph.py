"""An ONNX graph for rewriting: producers and consumers of every tensor, and constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hlsgen.frontend.onnx_graph import captured
from hlsgen.numerics.fixed import Array

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


class NodeGraph:
    """A mutable graph.

    nodes      nodes by id, in the file's order, new ones at the end
    producer   the computing node by tensor
    consumers  (node, number of its input) of each use, by tensor
    pinned     tensors used elsewhere than as an input of a node: graph outputs, and captures of graphs inside nodes
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.nodes: dict[int, onnx.NodeProto] = {}
        self._removed: list[onnx.NodeProto] = []  # kept alive, so that no new node gets the id of a removed one
        self.producer: dict[str, onnx.NodeProto] = {}
        self.consumers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        self.pinned = {output.name for output in graph.output}
        self.names = {node.name for node in graph.node} | {t for n in graph.node for t in (*n.input, *n.output)}
        self.names |= self.initializers.keys() | {source.name for source in graph.input}
        for node in graph.node:
            self.pinned.update(captured(node))
            self.add(node)

    def __contains__(self, node: onnx.NodeProto) -> bool:
        return id(node) in self.nodes

    def add(self, node: onnx.NodeProto) -> None:
        """Add a node at the end."""
        self.nodes[id(node)] = node
        for output in node.output:
            if output:
                self.producer[output] = node
        for number, name in enumerate(node.input):
            if name:
                self.consumers.setdefault(name, []).append((node, number))

    def remove(self, node: onnx.NodeProto) -> None:
        """Remove a node; its outputs have no producer then."""
        self._removed.append(self.nodes.pop(id(node)))
        for output in node.output:
            if self.producer.get(output) is node:
                del self.producer[output]
        for name in node.input:
            self.consumers[name] = [use for use in self.consumers.get(name, []) if use[0] is not node]

    def set_input(self, node: onnx.NodeProto, number: int, name: str) -> None:
        """Connect input `number` of a node to tensor `name`."""
        old = node.input[number]
        self.consumers[old] = [use for use in self.consumers[old] if use[0] is not node or use[1] != number]
        node.input[number] = name
        self.consumers.setdefault(name, []).append((node, number))

    def set_output(self, node: onnx.NodeProto, name: str) -> None:
        """Rename the first output of a node."""
        self.producer.pop(node.output[0], None)
        node.output[0] = name
        self.producer[name] = node

    def redirect(self, old: str, new: str) -> None:
        """Connect all consumers of tensor `old` to tensor `new`."""
        for node, number in list(self.consumers.get(old, [])):
            self.set_input(node, number, new)

    def fresh(self, name: str) -> str:
        """An unused name that begins with `name`; it counts as used from now on."""
        number, text = 0, name
        while text in self.names:
            number += 1
            text = f"{name}_{number}"
        self.names.add(text)
        return text

    def constant(self, name: str) -> Array | None:
        """The value of an initializer or of a Constant node with a tensor; else None."""
        tensor = self.initializers.get(name)
        node = self.producer.get(name)
        if tensor is None and node is not None and node.op_type == "Constant" and not node.domain:
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        try:
            return None if tensor is None else np.asarray(numpy_helper.to_array(tensor))
        except (TypeError, ValueError):  # read_initializers reports a broken tensor
            return None

    def add_constant(self, name: str, array: Array) -> str:
        """Add an initializer and return its name, which begins with `name`."""
        name = self.fresh(name)
        tensor = numpy_helper.from_array(array, name)
        self.graph.initializer.append(tensor)
        self.initializers[name] = self.graph.initializer[-1]
        return name

    def only_consumer(self, name: str) -> onnx.NodeProto | None:
        """The node that consumes the tensor, if that is its single use."""
        uses = self.consumers.get(name, [])
        return uses[0][0] if len(uses) == 1 and name not in self.pinned else None

    def depends_on_input(self, tensor: str) -> bool:
        """True if a tensor depends on an input of the graph."""
        names, visited = [tensor], set()
        while names:
            name = names.pop()
            producer = self.producer.get(name)
            if producer is None and name not in self.initializers:
                return True
            if producer is not None and name not in visited:
                visited.add(name)
                names += [i for i in producer.input if i]
        return False

    def in_order(self) -> list[onnx.NodeProto]:
        """The nodes in the order of computation, close to the file's order."""
        ordered: list[onnx.NodeProto] = []
        emitted: set[int] = set()
        for root in list(self.nodes.values()):
            stack = [root]
            while stack:
                node = stack[-1]
                producers = (self.producer.get(name) for name in (*node.input, *captured(node)))
                missing = [producer for producer in producers if producer is not None and id(producer) not in emitted]
                if id(node) in emitted or not missing:
                    stack.pop()
                    if id(node) not in emitted:
                        emitted.add(id(node))
                        ordered.append(node)
                else:
                    stack.extend(missing)
        return ordered

    def write(self) -> None:
        """Write the nodes back into the graph."""
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in self.in_order()]
        del self.graph.node[:]
        self.graph.node.extend(nodes)


def attribute(node: onnx.NodeProto, name: str, default: object) -> object:
    """The value of a node's attribute, or `default` if it is absent."""
    proto = next((a for a in node.attribute if a.name == name), None)
    return default if proto is None else helper.get_attribute_value(proto)


def named_like(like: onnx.NodeProto, op_type: str, inputs: Sequence[str], output: str) -> onnx.NodeProto:
    """A new node with the name of node `like`."""
    return helper.make_node(op_type, list(inputs), [output], name=like.name)
