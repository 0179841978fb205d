"""Matrix products of other operators: Einsum of one or two operands, and onnxruntime's FusedMatMul."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend import ops_linear, ops_matrix_product
from hlsgen.frontend.constant_folding import Dynamic
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_standard import full
from hlsgen.ir import BatchMatMul, Reshape, Shape, Transpose
from hlsgen.ir.ops import Mul


@dataclass(frozen=True)
class _Product:
    """An Einsum that is a matrix product: labels of both operands and of the result, and the size of each label."""

    first: str
    second: str
    result: str
    sizes: dict[str, int]

    @property
    def batch(self) -> str:
        """Labels of both operands and the result."""
        return "".join(c for c in self.result if c in self.first and c in self.second)

    @property
    def summed(self) -> str:
        """Labels of both operands that the result lacks."""
        return "".join(c for c in self.first if c in self.second and c not in self.result)

    def only(self, included: str, excluded: str) -> str:
        """Labels of the result that are in `included` and not in `excluded`."""
        return "".join(c for c in self.result if c in included and c not in excluded)

    def count(self, labels: str) -> int:
        """Number of elements along these labels."""
        return math.prod(self.sizes[c] for c in labels)

    def shape(self, labels: str) -> Shape:
        """Sizes of these labels."""
        return tuple(self.sizes[c] for c in labels)

    def matrices(self, first: str, second: str) -> Shape:
        """Shape of a stack of matrices with these labels as rows and columns."""
        return (*self.shape(self.batch), self.count(first), self.count(second))


def einsum(node: NodeContext) -> Imported:
    """Einsum of one computed operand: a permutation, or data times constant weights.

    Raises HG013, HG023 and the codes of `ops_linear.matmul`.
    """
    labels, result = _labels(node)
    if len(labels) == 1:
        if sorted(labels[0]) != sorted(result):
            raise _refused(node, "Supported for one operand: a permutation of its axes.")
        perm = tuple(labels[0].index(c) for c in result)
        return Imported(([(Transpose(perm), tuple(node.shape[p] for p in perm))],))
    const = node.constant(1 - node.position)
    assert const is not None
    shapes = [node.shape, const.array.shape]
    data_labels, weight_labels = labels[node.position], labels[1 - node.position]
    product = _product(node, data_labels, weight_labels, result, shapes)
    if product.batch:
        raise _refused(node, "The weights must not have an axis that both the data and the result have.")
    row_labels, output_labels = product.only(data_labels, weight_labels), product.only(weight_labels, data_labels)
    order = [weight_labels.index(c) for c in output_labels + product.summed]
    outputs, columns = product.count(output_labels), product.count(product.summed)
    matrix = const.map(lambda part: part.transpose(order).reshape(outputs, columns).T)
    data_shape = (*product.shape(row_labels), columns)
    data_ops = _operand_ops(data_labels, row_labels + product.summed, product, data_shape)
    data = Dynamic(data_shape, node.dtype, node.computed[0].index)
    ops = ops_linear.matmul(replace(node, inputs=(data, matrix))).outputs[0]
    result_ops = _result_ops(row_labels + output_labels, result, product, (*data_shape[:-1], outputs))
    return Imported(([*data_ops, *ops, *result_ops],))


def einsum_of_two(node: NodeContext) -> Imported:
    """Einsum of two computed operands. Raises HG013, HG023, HG026."""
    labels, result = _labels(node)
    if len(labels) != 2:
        raise _refused(node, "Supported: one or two operands.")
    first, second = labels
    product = _product(node, first, second, result, [t.shape or () for t in node.computed])
    types = {t.dtype for t in node.computed}
    if len(types) > 1:
        raise fail("HG026", node.name, f"Einsum of types {', '.join(sorted(types))}.", "Cast them to one type.")
    batch, summed = product.batch, product.summed
    rows, columns = product.only(first, second), product.only(second, first)
    operand_ops = (
        _operand_ops(first, batch + rows + summed, product, product.matrices(rows, summed)),
        _operand_ops(second, batch + summed + columns, product, product.matrices(summed, columns)),
    )
    shape = product.matrices(rows, columns)
    result_ops = _result_ops(batch + rows + columns, result, product, shape)
    return Imported((result_ops,), operand_ops, (BatchMatMul(), shape))


def _labels(node: NodeContext) -> tuple[list[str], str]:
    """(labels of the operands, labels of the result) of the equation. Raises HG013."""
    text = str(node.attrs.get("equation", "")).replace(" ", "")
    inputs, arrow, result = text.partition("->")
    labels = inputs.split(",")
    if not arrow:
        joined = "".join(labels)
        result = "".join(c for c in sorted(set(joined)) if joined.count(c) == 1)
    letters = all(part.isalpha() and len(set(part)) == len(part) for part in labels)
    if (
        not letters
        or len(labels) != len(node.inputs)
        or len(set(result)) != len(result)
        or not set(result) <= set("".join(labels))
    ):
        raise _refused(node, "Supported: different letters for the axes of each operand, without '...'.")
    return labels, result


def _product(node: NodeContext, first: str, second: str, result: str, shapes: list[Shape]) -> _Product:
    """The matrix product of operands with these labels and shapes. Raises HG013, HG023."""
    sizes: dict[str, int] = {}
    for labels, shape in zip((first, second), shapes, strict=True):
        if len(labels) != len(shape):
            text = f"the equation has the axes {labels!r} for an operand of shape {list(shape)}."
            raise fail("HG023", node.name, text, "It needs one letter per axis.")
        for label, size in zip(labels, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                text = f"axis {label!r} has {sizes[label]} and {size} elements."
                raise fail("HG023", node.name, text, "Axes with the same letter must be equally long.")
    summed_alone = (set(first) ^ set(second)) - set(result)
    product = _Product(first, second, result, sizes)
    if summed_alone or not product.summed:
        raise _refused(node, "Supported: matrix products, sums over axes that both operands have.")
    return product


def _operand_ops(labels: str, order: str, product: _Product, shape: Shape) -> ShapedOps:
    """The Transpose of an operand from `labels` to `order` and the Reshape to `shape`, as far as necessary."""
    ops: ShapedOps = []
    if labels != order:
        ops.append((Transpose(tuple(labels.index(c) for c in order)), product.shape(order)))
    return ops if product.shape(order) == shape else [*ops, (Reshape(), shape)]


def _result_ops(labels: str, result: str, product: _Product, shape: Shape) -> ShapedOps:
    """The Reshape and Transpose of a product of shape `shape` with axes `labels` to the axes `result`, as necessary."""
    ops: ShapedOps = [] if shape == product.shape(labels) else [(Reshape(), product.shape(labels))]
    if labels == result:
        return ops
    return [*ops, (Transpose(tuple(labels.index(c) for c in result)), product.shape(result))]


def _refused(node: NodeContext, hint: str) -> HlsgenError:
    text = f"Einsum with equation {node.attrs.get('equation')!r} is not supported."
    return fail("HG013", node.name, text, hint)


def fused_matmul(node: NodeContext) -> Imported:
    """FusedMatMul, onnxruntime's MatMul with transposed operands and a factor, of data and weights.

    Raises HG013, HG027 and the codes of `ops_linear.matmul`.
    """
    (data_ops,) = _transposes(node)
    const = node.constant(1)
    if const is not None and node.attrs.get("transB", 0):
        const = const.map(lambda part: np.swapaxes(part, -1, -2))
    data = Dynamic(data_ops[-1][1] if data_ops else node.shape, node.dtype, node.computed[0].index)
    ops = ops_linear.matmul(replace(node, inputs=(data, const))).outputs[0]
    return Imported(([*data_ops, *ops, *_factor(node, ops[-1][1])],))


def fused_of_two(node: NodeContext) -> Imported:
    """FusedMatMul of two computed operands. Raises HG013, HG027 and the codes of `ops_matrix_product.matmul`."""
    transposes = _transposes(node)
    shapes = [ops[-1][1] if ops else t.shape for ops, t in zip(transposes, node.computed, strict=True)]
    operands = [replace(t, shape=shape) for t, shape in zip(node.computed, shapes, strict=True)]
    product = ops_matrix_product.matmul(replace(node, inputs=tuple(operands)))
    assert product.join is not None
    operand_ops = tuple([*first, *ops] for first, ops in zip(transposes, product.operand_ops, strict=True))
    (ops,) = product.outputs
    result = ops[-1][1] if ops else product.join[1]
    return replace(product, outputs=([*ops, *_factor(node, result)],), operand_ops=operand_ops)


def _transposes(node: NodeContext) -> list[ShapedOps]:
    """The Transpose of each computed operand, empty if it is not transposed. Raises HG013."""
    for key in ("transBatchA", "transBatchB"):
        if node.attrs.get(key, 0):
            raise fail("HG013", node.name, f"attribute {key} is {node.attrs[key]}.", "Supported: 0.")
    transposes: list[ShapedOps] = []
    for tensor, key in zip(node.inputs, ("transA", "transB"), strict=False):
        shape = tensor.shape if isinstance(tensor, Dynamic) else None
        rank = len(shape or ())
        if shape is not None and rank > 1 and node.attrs.get(key, 0):
            perm = (*range(rank - 2), rank - 1, rank - 2)
            transposes.append([(Transpose(perm), tuple(shape[p] for p in perm))])
        elif shape is not None:
            transposes.append([])
    return transposes


def _factor(node: NodeContext, shape: Shape) -> ShapedOps:
    """The product with the attribute alpha, empty for alpha 1. Raises HG027."""
    alpha = np.float32(node.attrs.get("alpha", 1.0))
    if not np.isfinite(alpha):
        raise fail("HG027", node.name, f"attribute alpha is {alpha}.", "It must be finite.")
    return [] if alpha == 1 else [(Mul(full(float(alpha), shape)), shape)]
