"""An ONNX graph that is rewritten node by node: producers and consumers of every tensor, and its constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hlsgen.frontend.onnx_graph import captured
from hlsgen.numerics.fixed import Array

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


class NodeGraph:
    """Nodes in the order of computation, with what is known of their tensors.

    nodes      those of the graph by id, in the file's order; new ones at the end
    producer   by tensor: the node that computes it
    consumers  by tensor: (node, number of its input) of each use
    held       tensors that something else than a node's input takes: graph outputs, and what graphs inside nodes capture
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.initializers = {one.name: one for one in graph.initializer}
        self.nodes: dict[int, onnx.NodeProto] = {}
        self._removed: list[onnx.NodeProto] = []  # kept, so that no new node gets the id of one
        self.producer: dict[str, onnx.NodeProto] = {}
        self.consumers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        self.held = {one.name for one in graph.output}
        self.names = {node.name for node in graph.node} | {t for n in graph.node for t in (*n.input, *n.output)}
        self.names |= self.initializers.keys() | {one.name for one in graph.input}
        for node in graph.node:
            self.held.update(captured(node))
            self.add(node)

    def __contains__(self, node: onnx.NodeProto) -> bool:
        return id(node) in self.nodes

    def add(self, node: onnx.NodeProto) -> None:
        self.nodes[id(node)] = node
        for output in node.output:
            if output:
                self.producer[output] = node
        for number, name in enumerate(node.input):
            if name:
                self.consumers.setdefault(name, []).append((node, number))

    def remove(self, node: onnx.NodeProto) -> None:
        self._removed.append(self.nodes.pop(id(node)))
        for output in node.output:
            if self.producer.get(output) is node:
                del self.producer[output]
        for name in node.input:
            self.consumers[name] = [use for use in self.consumers.get(name, []) if use[0] is not node]

    def set_input(self, node: onnx.NodeProto, number: int, name: str) -> None:
        old = node.input[number]
        self.consumers[old] = [use for use in self.consumers[old] if use[0] is not node or use[1] != number]
        node.input[number] = name
        self.consumers.setdefault(name, []).append((node, number))

    def set_output(self, node: onnx.NodeProto, name: str) -> None:
        self.producer.pop(node.output[0], None)
        node.output[0] = name
        self.producer[name] = node

    def redirect(self, old: str, new: str) -> None:
        """All nodes that take one tensor take another."""
        for node, number in list(self.consumers.get(old, [])):
            self.set_input(node, number, new)

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        number, text = 0, name
        while text in self.names:
            number += 1
            text = f"{name}_{number}"
        self.names.add(text)
        return text

    def constant(self, name: str) -> Array | None:
        """The value of an initializer, or of a Constant node, whose value is a tensor."""
        tensor = self.initializers.get(name)
        node = self.producer.get(name)
        if tensor is None and node is not None and node.op_type == "Constant" and not node.domain:
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        try:
            return None if tensor is None else np.asarray(numpy_helper.to_array(tensor))
        except (TypeError, ValueError):  # a broken tensor, which is reported where it is read
            return None

    def add_constant(self, name: str, value: Array) -> str:
        name = self.fresh(name)
        tensor = numpy_helper.from_array(value, name)
        self.graph.initializer.append(tensor)
        self.initializers[name] = self.graph.initializer[-1]
        return name

    def only_consumer(self, name: str) -> onnx.NodeProto | None:
        """The node that takes the tensor, if nothing else does."""
        uses = self.consumers.get(name, [])
        return uses[0][0] if len(uses) == 1 and name not in self.held else None

    def varies(self, tensor: str) -> bool:
        """Whether a tensor depends on an input of the graph."""
        names, seen = [tensor], set()
        while names:
            name = names.pop()
            maker = self.producer.get(name)
            if maker is None and name not in self.initializers:
                return True
            if maker is not None and name not in seen:
                seen.add(name)
                names += [i for i in maker.input if i]
        return False

    def in_order(self) -> list[onnx.NodeProto]:
        """The nodes in the order of computation, as near to that of the file as it goes."""
        ordered: list[onnx.NodeProto] = []
        done: set[int] = set()
        for root in list(self.nodes.values()):
            stack = [root]
            while stack:
                node = stack[-1]
                makers = (self.producer.get(name) for name in (*node.input, *captured(node)))
                missing = [maker for maker in makers if maker is not None and id(maker) not in done]
                if id(node) in done or not missing:
                    stack.pop()
                    if id(node) not in done:
                        done.add(id(node))
                        ordered.append(node)
                else:
                    stack.extend(missing)
        return ordered

    def write(self) -> None:
        """Puts the nodes back into the graph."""
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in self.in_order()]
        del self.graph.node[:]
        self.graph.node.extend(nodes)


def attribute(node: onnx.NodeProto, name: str, default: object) -> object:
    """The value of a node's attribute."""
    found = next((a for a in node.attribute if a.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


def made(op_type: str, inputs: Sequence[str], output: str, like: onnx.NodeProto, domain: str = "") -> onnx.NodeProto:
    """A node with the name of another one."""
    return helper.make_node(op_type, list(inputs), [output], name=like.name, domain=domain)
