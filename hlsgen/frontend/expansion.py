"""Replacement of one node by many: the interface of the expanding functions, and their common helpers."""

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
    """The next nodes of an expansion, their constants by name, and the tensors that later parts use."""

    nodes: list[onnx.NodeProto]
    constants: dict[str, Const]
    results: list[str] = field(default_factory=list)


@dataclass
class Expansion:
    """The node to be expanded, and the importer's tensors by name, which grow while its parts are imported.

    `once`: keep one body if all steps can share it (`shared_loop_body`).
    """

    proto: onnx.NodeProto
    name: str
    tensors: Mapping[str, Tensor]
    opset: int
    once: bool = False

    def constant(self, name: str) -> Const | None:
        """The tensor of that name if it is a constant."""
        tensor = self.tensors.get(name)
        return tensor if isinstance(tensor, Const) else None

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the tensor of that name. Raises HG012."""
        tensor = self.tensors.get(name)
        shape = tensor.array.shape if isinstance(tensor, Const) else tensor.shape if tensor else None
        if shape is None:
            hint = "Correct the errors of the nodes before it; they determine the shape."
            raise fail("HG012", self.name, f"the shape of tensor {name!r} is not known.", hint)
        return tuple(shape)


def renamed(names: list[str], outputs: list[str], prefix: str) -> list[onnx.NodeProto]:
    """Identity nodes from tensors `names` to the used ones of `outputs`."""
    return [
        helper.make_node("Identity", [name], [output], name=f"{prefix}/{output}")
        for name, output in zip(names, outputs, strict=True)
        if output
    ]


def stack_of(
    node: Expansion, parts: list[str], output: str, axis: int, name: str
) -> tuple[list[onnx.NodeProto], dict[str, Const]]:
    """(nodes, constants) that stack tensors along a new axis; `name`: of the last node."""
    nodes, widened, axes = [], [], f"{name}/axes"
    for n, part in enumerate(parts):
        widened.append(f"{name}/{n}")
        if node.opset < 13:
            nodes.append(helper.make_node("Unsqueeze", [part], [widened[-1]], name=f"{name}/{n}", axes=[axis]))
        else:
            nodes.append(helper.make_node("Unsqueeze", [part, axes], [widened[-1]], name=f"{name}/{n}"))
    nodes.append(helper.make_node("Concat", widened, [output], name=name, axis=axis))
    return nodes, {axes: Const(np.array([axis], np.int64))}


def axis_of(node: Expansion, axis: int, tensor: str, added_axes: int) -> int:
    """`axis` of a tensor, or of a stack with `added_axes` more axes, as a number that is not negative. Raises HG013."""
    rank = len(node.shape(tensor)) + added_axes
    if not -rank <= axis < rank:
        raise fail("HG013", node.name, f"axis {axis} of a tensor of {rank} axes.", f"Use {-rank} to {rank - 1}.")
    return axis % rank
