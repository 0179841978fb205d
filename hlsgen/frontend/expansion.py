"""A node that stands for many: what those get that put them in its place, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, Tensor


@dataclass(frozen=True)
class Part:
    """Nodes that follow, the constants that they take, by name, and the tensors that later parts take."""

    nodes: list[onnx.NodeProto]
    constants: dict[str, Const]
    results: list[str] = field(default_factory=list)


@dataclass
class Expansion:
    """What the importer knows of the node. `tensors` grows while the parts are imported.

    `once`: a body that all steps can share stays one (`loop_once`).
    """

    proto: onnx.NodeProto
    name: str
    tensors: Mapping[str, Tensor]
    opset: int
    once: bool = False

    def constant(self, tensor: str) -> Const | None:
        found = self.tensors.get(tensor)
        return found if isinstance(found, Const) else None

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Raises HG012."""
        found = self.tensors.get(tensor)
        shape = found.array.shape if isinstance(found, Const) else found.shape if found else None
        if shape is None:
            raise fail("HG012", self.name, f"the shape of {tensor!r} is not known.")
        return tuple(shape)


def renamed(names: list[str], outputs: list[str], where: str) -> list[onnx.NodeProto]:
    """The node's outputs by their names."""
    return [
        helper.make_node("Identity", [name], [output], name=f"{where}/{output}")
        for name, output in zip(names, outputs, strict=True)
        if output
    ]


def stack_of(
    node: Expansion, parts: list[str], output: str, axis: int, where: str
) -> tuple[list[onnx.NodeProto], dict[str, Const]]:
    """Tensors one behind the other along a new axis."""
    nodes, widened, axes = [], [], f"{where}/axes"
    for n, part in enumerate(parts):
        widened.append(f"{where}/{n}")
        if node.opset < 13:
            nodes.append(helper.make_node("Unsqueeze", [part], [widened[-1]], name=f"{where}/{n}", axes=[axis]))
        else:
            nodes.append(helper.make_node("Unsqueeze", [part, axes], [widened[-1]], name=f"{where}/{n}"))
    nodes.append(helper.make_node("Concat", widened, [output], name=where, axis=axis))
    return nodes, {axes: Const(np.array([axis], np.int64))}


def axis_of(node: Expansion, axis: int, tensor: str, more: int) -> int:
    """An axis of a tensor, or of it with `more` axes; counted from the first."""
    rank = len(node.shape(tensor)) + more
    if not -rank <= axis < rank:
        raise fail("HG013", node.name, f"axis {axis} of a tensor of {rank} axes.")
    return axis % rank
