"""Normalizations that exporters take apart, put together again: found by what the nodes compute, not by their names.

Matched: d = x (rms) or x - ReduceMean(x) (layer), divided by the root of v = ReduceMean(d squared) + epsilon, as

    square    Pow(d, 2), Mul(d, d)
    root      Sqrt(v), Pow(v, 0.5)
    division  Div(d, root), Mul(d, Reciprocal(root)), Mul(d, Div(1, root)), Mul(d, Pow(v, -0.5))

Both means are over the same axes. Casts to float32, Identity and Dropout may stand anywhere between. The node that
divides becomes a `Normalize` of the domain `DOMAIN`. Nodes in front of it that nothing else uses are then left out, as
all on which the output does not depend.
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
_MOST_AXES = 8


@dataclass(frozen=True)
class _Mean:
    """A ReduceMean that keeps its axes, and what it is the mean of."""

    source: str
    axes: tuple[int, ...]


class _Nodes:
    """The nodes of a graph by the tensor that they give, and the constants of the graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._makers = {node.output[0]: node for node in graph.node if len(node.output) > 0}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        first: dict[object, str] = {}
        #: Tensors that equal an earlier one: exporters decode the same codes once for each node that takes them.
        self._equal = {
            node.output[0]: first.setdefault(
                (*node.input, *(a.SerializeToString() for a in node.attribute)), node.output[0]
            )
            for node in graph.node
            if node.op_type == "DequantizeLinear" and len(node.output) == 1
        }

    def maker(self, tensor: str, op_type: str) -> onnx.NodeProto | None:
        """The node that gives a tensor, if it is one of this standard operator."""
        node = self._makers.get(self.plain(tensor))
        return node if node is not None and node.op_type == op_type and node.domain in ONNX else None

    def plain(self, tensor: str) -> str:
        """The tensor in front of all that does not change it."""
        while (node := self._makers.get(tensor)) is not None and node.domain in ONNX and len(node.input) > 0:
            to_float32 = node.op_type == "Cast" and attributes(node).get("to") == TensorProto.FLOAT
            if node.op_type not in ("Identity", "Dropout") and not to_float32:
                break
            tensor = node.input[0]
        return self._equal.get(tensor, tensor)

    def same(self, a: str, b: str) -> bool:
        return self.plain(a) == self.plain(b)

    def constant(self, tensor: str) -> Array | None:
        """The numbers of a constant, if they can be read and are few."""
        tensor = self.plain(tensor)
        held, node = self._constants.get(tensor), self._makers.get(tensor)
        try:
            if held is None and node is not None and node.op_type == "Constant":
                given = helper.get_attribute_value(node.attribute[0])
                held = given if isinstance(given, onnx.TensorProto) else numpy_helper.from_array(np.array(given))
            if held is None or len(held.dims) > 1 or int(np.prod(held.dims)) > _MOST_AXES:
                return None
            array: Array = numpy_helper.to_array(held)
            return array
        except Exception:  # the importer says what is wrong with it
            return None

    def number(self, tensor: str) -> float | None:
        """The value of a constant of one element."""
        array = self.constant(tensor)
        return float(array.ravel()[0]) if array is not None and array.size == 1 and array.dtype.kind in "fiu" else None

    def base(self, tensor: str, exponent: float) -> str | None:
        """What is raised to that constant power."""
        node = self.maker(tensor, "Pow")
        return node.input[0] if node is not None and self.number(node.input[1]) == exponent else None

    def mean(self, tensor: str) -> _Mean | None:
        node = self.maker(tensor, "ReduceMean")
        if node is None:
            return None
        known = attributes(node)
        if not known.get("keepdims", 1):
            return None
        axes = known.get("axes")
        if len(node.input) > 1:
            given = self.constant(node.input[1])
            axes = None if given is None else given.ravel().tolist()
        return _Mean(node.input[0], tuple(int(a) for a in axes)) if axes else None


def put_together(graph: onnx.GraphProto) -> None:
    """Replaces, in place, every node that ends such a pattern."""
    for at, made in found(graph).items():
        graph.node[at].CopyFrom(made)


def found(graph: onnx.GraphProto) -> dict[int, onnx.NodeProto]:
    """The Normalize that stands for each such pattern, by the number of the node that ends it."""
    if not any(node.op_type == "ReduceMean" for node in graph.node):
        return {}
    nodes = _Nodes(graph)
    made = ((at, _normalize(nodes, node)) for at, node in enumerate(graph.node))
    return {at: normalize for at, normalize in made if normalize is not None}


def _normalize(nodes: _Nodes, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """The Normalize that this node is the end of, or the LayerNormalization that it is of centred rows."""
    if node.op_type in ("RMSNormalization", "SimplifiedLayerNormalization"):
        return _of_centered_rows(nodes, node)
    for element, variance in _divisions(nodes, node):
        total = nodes.maker(variance, "Add")
        if total is None or len(total.input) != 2:
            continue
        for square, epsilon in (total.input, reversed(total.input)):
            small, mean = nodes.number(epsilon), nodes.mean(square)
            if small is None or mean is None or not _is_square(nodes, mean.source, element):
                continue
            source, kind = _centered(nodes, element, mean.axes)
            return helper.make_node(
                OPERATOR, [source], node.output[:1], node.name, domain=DOMAIN, kind=kind, axes=mean.axes, epsilon=small
            )  # fmt: skip
    return None


def _of_centered_rows(nodes: _Nodes, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """onnxruntime takes the second half of a decomposed LayerNormalization for a normalization of its own."""
    axis = attributes(node).get("axis", -1)
    source, kind = _centered(nodes, node.input[0], (axis,))
    if kind != "layer" or len(node.output) != 1:
        return None
    epsilon = attributes(node).get("epsilon", 1e-5)
    return helper.make_node(
        "LayerNormalization", [source, *node.input[1:]], node.output, node.name, axis=axis, epsilon=epsilon
    )  # fmt: skip


def _divisions(nodes: _Nodes, node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    """(d, v) where the node is d / sqrt(v)."""
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
        inverse = nodes.maker(factor, "Reciprocal")
        quotient = nodes.maker(factor, "Div")
        root = inverse.input[0] if inverse is not None else None
        if quotient is not None and nodes.number(quotient.input[0]) == 1:
            root = quotient.input[1]
        variance = _root(nodes, root) if root is not None else nodes.base(factor, -0.5)
        if variance is not None:
            yield element, variance


def _root(nodes: _Nodes, tensor: str) -> str | None:
    """v where the tensor is sqrt(v)."""
    node = nodes.maker(tensor, "Sqrt")
    return node.input[0] if node is not None else nodes.base(tensor, 0.5)


def _is_square(nodes: _Nodes, tensor: str, element: str) -> bool:
    """Whether it is that of the element, or of one that is computed in the same way."""
    product, base = nodes.maker(tensor, "Mul"), nodes.base(tensor, 2)
    if product is not None and nodes.same(*product.input):
        base = product.input[0]
    if base is None:
        return False
    if nodes.same(base, element):
        return True
    both = nodes.maker(base, "Sub"), nodes.maker(element, "Sub")
    return None not in both and all(nodes.same(a, b) for a, b in zip(both[0].input, both[1].input, strict=True))  # type: ignore[union-attr]


def _centered(nodes: _Nodes, element: str, axes: tuple[int, ...]) -> tuple[str, str]:
    """(x, kind): the element is x less its mean, or x itself."""
    node = nodes.maker(element, "Sub")
    mean = nodes.mean(node.input[1]) if node is not None else None
    if node is not None and mean is not None and mean.axes == axes and nodes.same(mean.source, node.input[0]):
        return node.input[0], "layer"
    return element, "rms"
