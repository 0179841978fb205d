"""Operators that give elements other names: Reshape and its kin, Transpose; and those that pass everything on."""

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
        raise fail("HG020", node.name, "the shape is not a constant.", "Fix the model's shapes.")
    return Imported((reshaped(node.name, evaluate(node.proto, arrays, node.opset)[0].shape),))


def reshaped(name: str, shape: Shape) -> ShapedOps:
    """A Reshape. Raises HG023 for a shape without axes."""
    if not shape:
        raise fail("HG023", name, "a tensor without axes.", "Keep one axis: hardware sends vectors.")
    return [(Reshape(), shape)]


def flatten(node: NodeContext) -> Imported:
    """Raises HG013, HG023."""
    return reshape(node)


def transpose(node: NodeContext) -> Imported:
    """Raises HG013."""
    shape = node.shape
    perm = tuple(node.attrs.get("perm") or reversed(range(len(shape))))
    if sorted(perm) != list(range(len(shape))):
        raise fail("HG013", node.name, f"perm {list(perm)} for rank {len(shape)}.")
    return Imported(([(Transpose(perm), tuple(shape[p] for p in perm))],))


def shape_of(node: NodeContext) -> Imported:
    """Shape: a constant. Raises HG013."""
    data: Array = np.broadcast_to(np.float32(0), node.shape)
    check_growth(node.proto, [data])
    return Imported(constant=Const(evaluate(node.proto, [data], node.opset)[0]))


def identity(node: NodeContext) -> Imported:
    return elementwise(node)


def dropout(node: NodeContext) -> Imported:
    """Raises HG010, HG013."""
    training = node.constant(2)
    if training is not None and training.array.any():
        raise fail("HG013", node.name, "training_mode is true.", "Export the model in evaluation mode.")
    if node.used == [1]:
        raise fail("HG010", node.name, "the mask output of Dropout is used.", "Export the model in evaluation mode.")
    return elementwise(node)
