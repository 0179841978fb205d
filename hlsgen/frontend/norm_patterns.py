"""Normalizations that exporters decompose into nodes, fused again. Nodes are matched by their function, not by names.

Matched: d = x (rms) or x - ReduceMean(x) (layer), divided by the root of v = ReduceMean(d squared) + epsilon, as

    square    Pow(d, 2), Mul(d, d)
    root      Sqrt(v), Pow(v, 0.5)
    division  Div(d, root), Mul(d, Reciprocal(root)), Mul(d, Div(1, root)), Mul(d, Pow(v, -0.5))

Both means are over the same axes. Casts to float32, Identity and Dropout may be anywhere between. The dividing node
becomes a `Normalize` of the domain `DOMAIN`. The other nodes remain; the importer drops those without other uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hlsgen.frontend.constant_folding import attributes
from hlsgen.frontend.domains import ONNX
from hlsgen.numerics.fixed import Array

DOMAIN = "hlsgen_pattern"
OPERATOR = "Normalize"
_MAX_AXES = 8


@dataclass(frozen=True)
class _Mean:
    """A ReduceMean that keeps its axes; `source`: its operand."""

    source: str
    axes: tuple[int, ...]


class _Nodes:
    """The nodes of a graph by their first output, and the constants of the graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._producers = {node.output[0]: node for node in graph.node if len(node.output) > 0}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        first: dict[object, str] = {}
        #: Tensors that equal an earlier one: exporters decode the same codes once for each consumer.
        self._equal = {
            node.output[0]: first.setdefault(
                (*node.input, *(a.SerializeToString() for a in node.attribute)), node.output[0]
            )
            for node in graph.node
            if node.op_type == "DequantizeLinear" and len(node.output) == 1
        }

    def producer(self, tensor: str, op_type: str) -> onnx.NodeProto | None:
        """The node that computes a tensor, if it has this standard operator."""
        node = self._producers.get(self.origin(tensor))
        return node if node is not None and node.op_type == op_type and node.domain in ONNX else None

    def origin(self, tensor: str) -> str:
        """The tensor before all nodes that do not change its values."""
        while (node := self._producers.get(tensor)) is not None and node.domain in ONNX and len(node.input) > 0:
            to_float32 = node.op_type == "Cast" and attributes(node).get("to") == TensorProto.FLOAT
            if node.op_type not in ("Identity", "Dropout") and not to_float32:
                break
            tensor = node.input[0]
        return self._equal.get(tensor, tensor)

    def equal(self, a: str, b: str) -> bool:
        """True if two tensors have the same origin."""
        return self.origin(a) == self.origin(b)

    def constant(self, tensor: str) -> Array | None:
        """The values of a readable constant of at most eight elements; else None."""
        tensor = self.origin(tensor)
        proto, node = self._constants.get(tensor), self._producers.get(tensor)
        try:
            if proto is None and node is not None and node.op_type == "Constant":
                value = helper.get_attribute_value(node.attribute[0])
                proto = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.array(value))
            if proto is None or len(proto.dims) > 1 or int(np.prod(proto.dims)) > _MAX_AXES:
                return None
            array: Array = numpy_helper.to_array(proto)
            return array
        except Exception:  # the importer reports the error
            return None

    def number(self, tensor: str) -> float | None:
        """The value of a constant of one element; else None."""
        array = self.constant(tensor)
        return float(array.ravel()[0]) if array is not None and array.size == 1 and array.dtype.kind in "fiu" else None

    def base(self, tensor: str, exponent: float) -> str | None:
        """The base of a Pow with this constant exponent; else None."""
        node = self.producer(tensor, "Pow")
        return node.input[0] if node is not None and self.number(node.input[1]) == exponent else None

    def mean(self, tensor: str) -> _Mean | None:
        """The ReduceMean that computes a tensor, if it keeps its axes and they are constant; else None."""
        node = self.producer(tensor, "ReduceMean")
        if node is None:
            return None
        attrs = attributes(node)
        if not attrs.get("keepdims", 1):
            return None
        axes = attrs.get("axes")
        if len(node.input) > 1:
            axes_input = self.constant(node.input[1])
            axes = None if axes_input is None else axes_input.ravel().tolist()
        return _Mean(node.input[0], tuple(int(a) for a in axes)) if axes else None


def fuse_normalizations(graph: onnx.GraphProto) -> None:
    """Replace, in place, the last node of every such pattern."""
    for at, normalization in normalizations(graph).items():
        graph.node[at].CopyFrom(normalization)


def normalizations(graph: onnx.GraphProto) -> dict[int, onnx.NodeProto]:
    """The normalization of each such pattern, by the index of its last node."""
    if not any(node.op_type == "ReduceMean" for node in graph.node):
        return {}
    nodes = _Nodes(graph)
    replacements = ((at, _normalize(nodes, node)) for at, node in enumerate(graph.node))
    return {at: replacement for at, replacement in replacements if replacement is not None}


def _normalize(nodes: _Nodes, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """The Normalize that ends in this node, or the LayerNormalization for an RMSNormalization of centred rows."""
    if node.op_type in ("RMSNormalization", "SimplifiedLayerNormalization"):
        return _of_centered_rows(nodes, node)
    for element, variance in _divisions(nodes, node):
        total = nodes.producer(variance, "Add")
        if total is None or len(total.input) != 2:
            continue
        for square, epsilon in (total.input, reversed(total.input)):
            small, mean = nodes.number(epsilon), nodes.mean(square)
            if small is None or mean is None or not _is_square(nodes, mean.source, element):
                continue
            source, kind = _centered(nodes, element, mean.axes)
            normalize = helper.make_node(OPERATOR, [source], node.output[:1], node.name, domain=DOMAIN, kind=kind)
            normalize.attribute.append(helper.make_attribute("axes", mean.axes))
            normalize.attribute.append(helper.make_attribute("epsilon", small))
            return normalize
    return None


def _of_centered_rows(nodes: _Nodes, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """The LayerNormalization of a decomposed one whose second half onnxruntime has fused to an RMSNormalization."""
    axis = attributes(node).get("axis", -1)
    source, kind = _centered(nodes, node.input[0], (axis,))
    if kind != "layer" or len(node.output) != 1:
        return None
    epsilon = attributes(node).get("epsilon", 1e-5)
    return helper.make_node(
        "LayerNormalization", [source, *node.input[1:]], node.output, node.name, axis=axis, epsilon=epsilon
    )


def _divisions(nodes: _Nodes, node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    """(d, v) for a node that computes d / sqrt(v)."""
    if node.domain not in ONNX or len(node.input) != 2:
        return
    a, b = node.input
    if node.op_type == "Div":
        if (variance := _root(nodes, b)) is not None:
            yield a, variance
        return
    if node.op_type != "Mul":
        return
    for element, factor in ((a, b), (b, a)):
        inverse = nodes.producer(factor, "Reciprocal")
        quotient = nodes.producer(factor, "Div")
        root = inverse.input[0] if inverse is not None else None
        if quotient is not None and nodes.number(quotient.input[0]) == 1:
            root = quotient.input[1]
        variance = _root(nodes, root) if root is not None else nodes.base(factor, -0.5)
        if variance is not None:
            yield element, variance


def _root(nodes: _Nodes, tensor: str) -> str | None:
    """v for a tensor sqrt(v)."""
    node = nodes.producer(tensor, "Sqrt")
    return node.input[0] if node is not None else nodes.base(tensor, 0.5)


def _is_square(nodes: _Nodes, tensor: str, element: str) -> bool:
    """True for the square of `element`, or of a difference with the same operands."""
    product, base = nodes.producer(tensor, "Mul"), nodes.base(tensor, 2)
    if product is not None and nodes.equal(*product.input):
        base = product.input[0]
    if base is None:
        return False
    if nodes.equal(base, element):
        return True
    base_sub, element_sub = nodes.producer(base, "Sub"), nodes.producer(element, "Sub")
    if base_sub is None or element_sub is None:
        return False
    return all(nodes.equal(a, b) for a, b in zip(base_sub.input, element_sub.input, strict=True))


def _centered(nodes: _Nodes, element: str, axes: tuple[int, ...]) -> tuple[str, str]:
    """(x, kind): `element` is x minus its mean (layer), or x itself (rms)."""
    node = nodes.producer(element, "Sub")
    mean = nodes.mean(node.input[1]) if node is not None else None
    if node is not None and mean is not None and mean.axes == axes and nodes.equal(mean.source, node.input[0]):
        return node.input[0], "layer"
    return element, "rms"
