"""Activation operators of ONNX: functions of single elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.ir.ops import Activation, BinaryKind, BinaryOf, Mul, Slope


def activation(**parameters: float) -> Callable[[NodeContext], Imported]:
    """The importing function of an activation; `parameters`: its attributes, at most two, with their defaults."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG027."""
        values = [float(np.float32(node.attrs.get(key, default))) for key, default in parameters.items()]
        if not np.isfinite(values).all():
            text = f"attributes {', '.join(parameters)} of {node.op_type} are {values}."
            raise fail("HG027", node.name, text, "They must be finite.")
        return elementwise(node, Activation(node.op_type, *values))

    return convert


def celu(node: NodeContext) -> Imported:
    """Celu. Raises HG013, HG027."""
    imported = activation(alpha=1.0)(node)
    alpha = float(np.float32(node.attrs.get("alpha", 1.0)))
    if alpha <= 0:
        raise fail("HG013", node.name, f"attribute alpha of Celu is {alpha}.", "It must be greater than 0.")
    return imported


def gelu(node: NodeContext) -> Imported:
    """Gelu, exact or by tanh. Raises HG013."""
    approximation = node.attrs.get("approximate", "none")
    if approximation not in ("none", "tanh"):
        raise fail("HG013", node.name, f"attribute approximate is {approximation!r}.", "Supported: none, tanh.")
    return elementwise(node, Activation("Gelu" if approximation == "none" else "GeluTanh"))


def swish(node: NodeContext) -> Imported:
    """x * Sigmoid(alpha * x), operation by operation as ONNX defines it. Raises HG027."""
    alpha = np.float32(node.attrs.get("alpha", 1.0))
    if not np.isfinite(alpha):
        raise fail("HG027", node.name, f"attribute alpha of Swish is {alpha}.", "It must be finite.")
    scaled = [] if alpha == 1 else [Mul(full(float(alpha), node.shape, node.dtype))]
    return elementwise(node, BinaryOf(BinaryKind.MUL, ((), (*scaled, Activation("Sigmoid")))))


def power(node: NodeContext) -> Imported:
    """Pow with one constant exponent. Raises HG020, HG023, HG027."""
    return elementwise(node, Activation("Pow", _number(node, "the exponent")))


def prelu(node: NodeContext) -> Imported:
    """PRelu with one slope, or one per channel. Raises HG020, HG023, HG026, HG027."""
    slope = node.constant(1)
    if slope is not None and slope.array.size > 1:
        return elementwise(node, Slope(operand(node.name, node.shape, slope, "the slope", node.dtype)))
    return elementwise(node, Activation("LeakyRelu", _number(node, "the slope")))


def _number(node: NodeContext, subject: str) -> float:
    """Input 1, one finite number; `subject` names it in messages. Raises HG020, HG023, HG027."""
    const = node.constant(1)
    if const is None:
        raise fail("HG020", node.name, f"{subject} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiu" or const.array.size != 1:
        text = f"{subject} has the type {const.array.dtype} and the shape {list(const.array.shape)}."
        raise fail("HG023", node.name, text, "Supported: one number.")
    number = float(const.array.reshape(()))
    if not np.isfinite(number):
        raise fail("HG027", node.name, f"{subject} is {number}.", "It must be finite.")
    return number
