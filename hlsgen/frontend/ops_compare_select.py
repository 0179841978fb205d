"""Comparisons with constants, logic, Where: exporters write piecewise activations with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.constant_folding import Const, ConstInputs
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.ops_standard import operand
from hlsgen.ir import Shape
from hlsgen.ir.ops import Add, Compare, Constant, Max, Min, Relation, Where
from hlsgen.numerics.fixed import Array


def compared(data_first: Relation, data_second: Relation) -> Callable[[NodeContext], Imported]:
    """The importing function of a comparison: relation of the data to the constant, for the data as either operand."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG020, HG023, HG026, HG027."""
        if node.dtype == "bool" and node.op_type != "Equal":
            raise _wrong_type(node)
        relation = data_first if node.position == 0 else data_second
        return elementwise(node, Compare(relation, _constant_operand(node, np.dtype(node.dtype))))

    return convert


def logical_and(node: NodeContext) -> Imported:
    """And with a constant. Raises HG023, HG026."""
    _check_boolean(node)
    return elementwise(node, Min(_constant_operand(node, np.bool_)))


def logical_or(node: NodeContext) -> Imported:
    """Or with a constant. Raises HG023, HG026."""
    _check_boolean(node)
    return elementwise(node, Max(_constant_operand(node, np.bool_)))


def exclusive_or(node: NodeContext) -> Imported:
    """Xor with a constant. Raises HG023, HG026."""
    _check_boolean(node)
    equal = Compare(Relation.EQUAL, _constant_operand(node, np.bool_))
    return elementwise(node, equal, Compare(Relation.EQUAL, np.zeros((1,) * len(node.shape), np.bool_)))


def logical_not(node: NodeContext) -> Imported:
    """Not. Raises HG026."""
    _check_boolean(node)
    return elementwise(node, Compare(Relation.EQUAL, np.zeros((1,) * len(node.shape), np.bool_)))


def selection(node: NodeContext) -> Imported:
    """The operator Where with one tensor and constants. Raises HG020, HG023, HG026, HG027."""
    return elementwise(node, choice(node.name, node.shape, node.constants, node.dtype))


def thresholded_relu(node: NodeContext) -> Imported:
    """ThresholdedRelu: x above alpha, else 0. Raises HG027."""
    above = Compare(Relation.GREATER, _attribute(node, "alpha", 1.0))
    return elementwise(node, Where(((above,), (), (_zero(node),))))


def shrink(node: NodeContext) -> Imported:
    """Shrink: x + bias below -lambd, x - bias above lambd, else 0. Raises HG027."""
    limit, bias = _attribute(node, "lambd", 0.5), _attribute(node, "bias", 0.0)
    above = Where(((Compare(Relation.GREATER, limit),), (Add(-bias),), (_zero(node),)))
    return elementwise(node, Where(((Compare(Relation.LESS, -limit),), (Add(bias),), (above,))))


def trilu(node: NodeContext) -> Imported:
    """Trilu: the upper or the lower triangle of each matrix, 0 elsewhere. Raises HG013."""
    if len(node.shape) < 2 or (len(node.proto.input) > 1 and node.proto.input[1] and node.constant(1) is None):
        text = f"Trilu of data of shape {list(node.shape)}, or with a computed k."
        raise fail("HG013", node.name, text, "The data needs two axes or more, and k must be a constant.")
    k = node.constant(1)
    (diagonal,) = [0] if k is None else k.array.ravel().tolist()[:1]
    ones = np.ones(node.shape[-2:], np.bool_)
    triangle = np.triu(ones, diagonal) if node.attrs.get("upper", 1) else np.tril(ones, diagonal)
    triangle = triangle.reshape((1,) * (len(node.shape) - 2) + triangle.shape)
    return elementwise(node, Where(((Constant(triangle),), (), (_zero(node),))))


def _constant_operand(node: NodeContext, dtype: Any) -> Array:
    return flat(node.name, node.shape, node.constant(1 - node.position), dtype)


def _check_boolean(node: NodeContext) -> None:
    if node.dtype != "bool":
        raise _wrong_type(node)


def _wrong_type(node: NodeContext) -> HlsgenError:
    text = f"{node.op_type} of {node.dtype} data."
    return fail("HG026", node.name, text, "Supported: numbers for comparisons, booleans for And, Or, Xor, Not.")


def _attribute(node: NodeContext, key: str, default: float) -> Array:
    """A finite number in the dtype of the data."""
    with np.errstate(over="ignore"):
        array = np.full((1,) * len(node.shape), node.attrs.get(key, default), node.dtype)
    if not np.isfinite(array).all():
        text = f"attribute {key} of {node.op_type} is {node.attrs.get(key)}."
        raise fail("HG027", node.name, text, f"It must be finite in {node.dtype}.")
    return array


def _zero(node: NodeContext) -> Constant:
    return Constant(np.zeros((1,) * len(node.shape), node.dtype))


def choice(name: str, shape: Shape, inputs: ConstInputs, dtype: str) -> Where:
    """The operator Where with one tensor and constants; `inputs`: condition, X, Y, with None for the tensor."""
    numbers = [c.array.dtype for c in inputs[1:3] if c is not None]
    kinds = [np.dtype(np.bool_), *(numbers[:1] if dtype == "bool" and inputs[0] is None else [np.dtype(dtype)]) * 2]
    operand_ops = [
        (Constant(flat(name, shape, const, kind)),) if const is not None else ()
        for const, kind in zip(inputs, kinds, strict=True)
    ]
    return Where(tuple(operand_ops))


def flat(name: str, shape: Shape, const: Const | None, dtype: Any) -> Array:
    """A constant operand of this dtype with the rank of the data, which broadcasts to its shape. Raises HG023."""
    if np.dtype(dtype) != np.bool_:
        return operand(name, shape, const, "the constant", np.dtype(dtype).name, lowest=True)
    assert const is not None
    array = const.array
    try:
        fits = array.dtype == np.bool_ and np.broadcast_shapes(shape, array.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        text = f"a constant of type {array.dtype} and shape {list(array.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, "It must be boolean and broadcast to the data's shape.")
    return array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
