"""Operators that change the shape only: Reshape, Squeeze, Unsqueeze, Flatten, Transpose; Shape, Identity, Dropout."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, check_growth, evaluate
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.ir import Reshape, Shape, Transpose
from hlsgen.numerics.fixed import Array


def reshape(node: NodeContext) -> Imported:
    """Reshape, Squeeze, Unsqueeze. Raises HG013, HG020, HG023."""
    dummy: Array = np.broadcast_to(np.float32(0), node.shape)
    arrays = [dummy, *(c.array for c in node.constants[1:] if c is not None)]
    if len(arrays) < len([i for i in node.proto.input if i]):
        text = f"the shape or the axes of {node.op_type} are not constant."
        raise fail("HG020", node.name, text, "Export the model with fixed shapes.")
    return Imported((reshape_ops(node.name, evaluate(node.proto, arrays, node.opset)[0].shape),))


def reshape_ops(name: str, shape: Shape) -> ShapedOps:
    """A Reshape. Raises HG023 for a shape without axes."""
    if not shape:
        raise fail("HG023", name, "the result has no axes.", "Keep one axis: hardware emits vectors.")
    return [(Reshape(), shape)]


def flatten(node: NodeContext) -> Imported:
    """Flatten. Raises HG013, HG023."""
    return reshape(node)


def transpose(node: NodeContext) -> Imported:
    """Transpose. Raises HG013."""
    shape = node.shape
    perm = tuple(node.attrs.get("perm") or reversed(range(len(shape))))
    if sorted(perm) != list(range(len(shape))):
        text = f"attribute perm is {list(perm)} for data of {len(shape)} axes."
        raise fail("HG013", node.name, text, f"It must be a permutation of 0 to {len(shape) - 1}.")
    return Imported(([(Transpose(perm), tuple(shape[p] for p in perm))],))


def shape_of(node: NodeContext) -> Imported:
    """Shape, which is a constant. Raises HG013."""
    data: Array = np.broadcast_to(np.float32(0), node.shape)
    check_growth(node.proto, [data])
    return Imported(constant=Const(evaluate(node.proto, [data], node.opset)[0]))


def identity(node: NodeContext) -> Imported:
    """Identity, without an operation."""
    return elementwise(node)


def dropout(node: NodeContext) -> Imported:
    """Dropout in evaluation mode, without an operation. Raises HG010, HG013."""
    training = node.constant(2)
    if training is not None and training.array.any():
        text = "input training_mode of Dropout is true."
        raise fail("HG013", node.name, text, "Export the model in evaluation mode.")
    if node.used == [1]:
        raise fail("HG010", node.name, "the mask output of Dropout is used.", "Export the model in evaluation mode.")
    return elementwise(node)
