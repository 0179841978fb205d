"""Matrix products with other names: Einsum of one or two operands, and onnxruntime's FusedMatMul."""

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
    """Labels of an Einsum that is a matrix product: of both operands, the result, and what each label is for."""

    left: str
    right: str
    result: str
    sizes: dict[str, int]

    @property
    def batch(self) -> str:
        return "".join(c for c in self.result if c in self.left and c in self.right)

    @property
    def summed(self) -> str:
        return "".join(c for c in self.left if c in self.right and c not in self.result)

    def only(self, own: str, other: str) -> str:
        return "".join(c for c in self.result if c in own and c not in other)

    def count(self, labels: str) -> int:
        return math.prod(self.sizes[c] for c in labels)

    def shape(self, labels: str) -> Shape:
        return tuple(self.sizes[c] for c in labels)

    def matrices(self, first: str, second: str) -> Shape:
        return (*self.shape(self.batch), self.count(first), self.count(second))


def einsum(node: NodeContext) -> Imported:
    """Of one computed operand: a permutation, or data times constant weights. Raises HG013, HG023 and as `matmul`."""
    labels, result = _labels(node)
    if len(labels) == 1:
        if sorted(labels[0]) != sorted(result):
            raise _refused(node, "Supported of one operand: a permutation of its axes.")
        perm = tuple(labels[0].index(c) for c in result)
        return Imported(([(Transpose(perm), tuple(node.shape[p] for p in perm))],))
    const = node.constant(1 - node.position)
    assert const is not None
    shapes = [node.shape, const.array.shape]
    own, other = labels[node.position], labels[1 - node.position]
    form = _form(node, own, other, result, shapes)
    if form.batch:
        raise _refused(node, "Weights must not have axes that the data and the result have both.")
    kept, made = form.only(own, other), form.only(other, own)
    order, rows, columns = [other.index(c) for c in made + form.summed], form.count(made), form.count(form.summed)
    matrix = const.map(lambda part: part.transpose(order).reshape(rows, columns).T)
    flat = (*form.shape(kept), columns)
    way = _arranged(own, kept + form.summed, form, flat)
    data = Dynamic(flat, node.dtype, node.computed[0].index)
    ops = ops_linear.matmul(replace(node, inputs=(data, matrix))).outputs[0]
    return Imported(([*way, *ops, *_placed(kept + made, result, form, (*flat[:-1], rows))],))


def einsum_of_two(node: NodeContext) -> Imported:
    """Of two computed operands. Raises HG013, HG023, HG026."""
    labels, result = _labels(node)
    if len(labels) != 2:
        raise _refused(node, "Supported: one or two operands.")
    left, right = labels
    form = _form(node, left, right, result, [t.shape or () for t in node.computed])
    types = {t.dtype for t in node.computed}
    if len(types) > 1:
        raise fail("HG026", node.name, f"Einsum of types {', '.join(sorted(types))}.", "Cast them to one type.")
    rows, columns = form.only(left, right), form.only(right, left)
    before = (
        _arranged(left, form.batch + rows + form.summed, form, form.matrices(rows, form.summed)),
        _arranged(right, form.batch + form.summed + columns, form, form.matrices(form.summed, columns)),
    )
    whole = form.matrices(rows, columns)
    return Imported((_placed(form.batch + rows + columns, result, form, whole),), before, (BatchMatMul(), whole))


def _labels(node: NodeContext) -> tuple[list[str], str]:
    """Of the operands, and of the result. Raises HG013."""
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


def _form(node: NodeContext, left: str, right: str, result: str, shapes: list[Shape]) -> _Product:
    """Raises HG013, HG023."""
    sizes: dict[str, int] = {}
    for labels, shape in zip((left, right), shapes, strict=True):
        if len(labels) != len(shape):
            raise fail("HG023", node.name, f"axes {labels!r} of data of shape {list(shape)}.")
        for label, size in zip(labels, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise fail("HG023", node.name, f"axis {label!r} has {sizes[label]} and {size} elements.")
    alone = (set(left) ^ set(right)) - set(result)
    form = _Product(left, right, result, sizes)
    if alone or not form.summed:
        raise _refused(node, "Supported: matrix products, sums over axes that both operands have.")
    return form


def _arranged(labels: str, wanted: str, form: _Product, shape: Shape) -> ShapedOps:
    """A Transpose and a Reshape of an operand, as far as they are needed."""
    ops: ShapedOps = []
    if labels != wanted:
        ops.append((Transpose(tuple(labels.index(c) for c in wanted)), form.shape(wanted)))
    return ops if form.shape(wanted) == shape else [*ops, (Reshape(), shape)]


def _placed(made: str, result: str, form: _Product, whole: Shape) -> ShapedOps:
    """What brings a product of shape `whole`, of axes `made`, to the axes that are asked for."""
    ops: ShapedOps = [] if whole == form.shape(made) else [(Reshape(), form.shape(made))]
    return ops if made == result else [*ops, (Transpose(tuple(made.index(c) for c in result)), form.shape(result))]


def _refused(node: NodeContext, hint: str) -> HlsgenError:
    return fail("HG013", node.name, f"Einsum with equation {node.attrs.get('equation')!r}.", hint)


def fused_matmul(node: NodeContext) -> Imported:
    """onnxruntime's MatMul with transposed operands and a factor: data times weights. Raises HG013 and as `matmul`."""
    turned = _turned(node)
    (way,) = turned
    const = node.constant(1)
    if const is not None and node.attrs.get("transB", 0):
        const = const.map(lambda part: np.swapaxes(part, -1, -2))
    data = Dynamic(way[-1][1] if way else node.shape, node.dtype, node.computed[0].index)
    ops = ops_linear.matmul(replace(node, inputs=(data, const))).outputs[0]
    return Imported(([*way, *ops, *_scaled(node, ops[-1][1])],))


def fused_of_two(node: NodeContext) -> Imported:
    """The same of two computed operands. Raises HG013 and as `matmul`."""
    turned = _turned(node)
    shapes = [way[-1][1] if way else t.shape for way, t in zip(turned, node.computed, strict=True)]
    operands = [replace(t, shape=shape) for t, shape in zip(node.computed, shapes, strict=True)]
    found = ops_matrix_product.matmul(replace(node, inputs=tuple(operands)))
    assert found.join is not None
    before = tuple([*way, *ops] for way, ops in zip(turned, found.before, strict=True))
    (ops,) = found.outputs
    result = ops[-1][1] if ops else found.join[1]
    return replace(found, outputs=([*ops, *_scaled(node, result)],), before=before)


def _turned(node: NodeContext) -> list[ShapedOps]:
    """The Transposes of the computed operands. Raises HG013."""
    for key in ("transBatchA", "transBatchB"):
        if node.attrs.get(key, 0):
            raise fail("HG013", node.name, f"{key} is 1.", "Only 0 is supported.")
    found: list[ShapedOps] = []
    for tensor, key in zip(node.inputs, ("transA", "transB"), strict=False):
        shape = tensor.shape if isinstance(tensor, Dynamic) else None
        rank = len(shape or ())
        if shape is not None and rank > 1 and node.attrs.get(key, 0):
            perm = (*range(rank - 2), rank - 1, rank - 2)
            found.append([(Transpose(perm), tuple(shape[p] for p in perm))])
        elif shape is not None:
            found.append([])
    return found


def _scaled(node: NodeContext, shape: Shape) -> ShapedOps:
    """The factor behind a product. Raises HG027."""
    alpha = np.float32(node.attrs.get("alpha", 1.0))
    if not np.isfinite(alpha):
        raise fail("HG027", node.name, f"alpha {alpha}.")
    return [] if alpha == 1 else [(Mul(full(float(alpha), shape)), shape)]
