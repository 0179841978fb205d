"""Attention of ONNX, and MultiHeadAttention of onnxruntime: the products, the factor, the mask and the Softmax that they are.

    scores = scale * (Q K^T) + mask        shares = Softmax(scores)        Y = shares V

Heads that share keys and values stand one below the other: for the product they are more rows of one matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.frontend.constant_folding import Const, Dynamic, attributes
from hlsgen.frontend.expansion import Expansion, Part
from hlsgen.ir import Shape
from hlsgen.numerics.fixed import Array

ATTENTION, MULTI_HEAD = "Attention", "MultiHeadAttention"
#: What onnxruntime writes for minus infinity.
_FILTER = -10000.0
_MASK = "It must be a constant: hardware has a memory of which elements count."


def attention(node: Expansion) -> Iterator[Part]:
    """Attention of opset 23 and newer. Raises HG010, HG012, HG013, HG020, HG023, HG026."""
    proto, name, attrs = node.proto, node.name, attributes(node.proto)
    given = [*proto.input, *[""] * (7 - len(proto.input))]
    problems = Collector()
    for tensor, what in zip(given[4:6], ("past_key", "past_value"), strict=True):
        if tensor:
            text = "Supported: Q, K, V, and as constants attn_mask, nonpad_kv_seqlen."
            problems.error("HG010", name, f"Attention with {what}.", text)
    if len(proto.output) > 3 and proto.output[3]:
        text = "the output qk_matmul_output of Attention is used."
        problems.error("HG010", name, text, "Supported: Y, present_key, present_value.")
    if float(attrs.get("softcap", 0.0)) != 0:
        text = f"Attention with softcap {attrs['softcap']:g}."
        problems.error("HG010", name, text, "Supported: none. Take the operator apart, with quantizers between.")
    if attrs.get("softmax_precision", TensorProto.FLOAT) != TensorProto.FLOAT:
        kind = TensorProto.DataType.Name(attrs["softmax_precision"])
        problems.error("HG010", name, f"Attention with softmax_precision {kind}.", "Supported: FLOAT.")
    problems.finish()
    heads = _Heads.of(node, given[:3], attrs.get("q_num_heads"), attrs.get("kv_num_heads"))
    mask = _mask(node, given[3], heads)
    if attrs.get("is_causal", 0):
        mask = _without(np.triu(np.ones((heads.queries, heads.keys), np.bool_), 1), mask)
    if given[6]:
        mask = _without(np.arange(heads.keys) >= _length(node, given[6]), mask)
    made = _Nodes(name)
    q, k, v = (
        made.split(tensor, heads.flat, count) for tensor, count in zip(given[:3], heads.counts, strict=True)
    )  # fmt: skip
    for held, output in zip((k, v), [*proto.output, "", ""][1:3], strict=False):
        if output:
            made.nodes.append(helper.make_node("Identity", [held], [output], name=f"{name}/{output}"))
    yield made.part(heads, (q, k, v), attrs.get("scale", 0.0), mask, proto.output[0])


def multi_head_attention(node: Expansion) -> Iterator[Part]:
    """MultiHeadAttention of onnxruntime: three tensors, or one of queries, keys and values side by side.

    Raises HG010, HG012, HG013, HG020, HG023, HG026.
    """
    proto, name, attrs = node.proto, node.name, attributes(node.proto)
    given = [*proto.input, *[""] * (10 - len(proto.input))]
    problems = Collector()
    names = ("bias", "key_padding_mask", "attention_bias", "past_key", "past_value", "past_sequence_length")
    for tensor, what in zip(given[3:9], names, strict=True):
        if tensor and what != "attention_bias":
            text = f"MultiHeadAttention with {what}."
            problems.error("HG010", name, text, "Supported: query, key, value and a constant attention_bias.")
    if any(proto.output[1:]):
        problems.error("HG010", name, "further outputs of MultiHeadAttention are used.", "Supported: the first.")
    problems.finish()
    made, count = _Nodes(name), attrs.get("num_heads", 0)
    q, k, v = given[:3]
    if not k and not v:
        q, k, v = made.unpacked(node, q, count)
        heads = _Heads.packed(node, given[0], count)
    else:
        heads = _Heads.of(node, [q, k, v], count, count)
        q, k, v = (made.split(tensor, True, count) for tensor in (q, k, v))
    mask = _mask(node, given[5], heads)
    if attrs.get("unidirectional", 0):
        later = np.triu(np.ones((heads.queries, heads.keys), np.bool_), 1)
        lowest = np.float32(attrs.get("mask_filter_value", _FILTER))
        mask = np.where(later, lowest, np.float32(0)) if mask is None else mask + np.where(later, lowest, np.float32(0))
    yield made.part(heads, (q, k, v), attrs.get("scale", 0.0), mask, proto.output[0])


@dataclass(frozen=True)
class _Heads:
    """Numbers of heads of queries, keys and values; of queries and keys; elements of a head; `flat`: heads side by side."""

    counts: tuple[int, int, int]
    queries: int
    keys: int
    size: int
    values: int
    flat: bool

    @staticmethod
    def of(node: Expansion, tensors: list[str], own: int | None, shared: int | None) -> _Heads:
        """Raises HG012, HG013, HG014, HG023, HG026."""
        name = node.name
        if not all(tensors):
            raise fail("HG014", name, f"{node.proto.op_type} without key or value.")
        for tensor in tensors:
            _check_float(node, tensor)
        shapes = [node.shape(tensor) for tensor in tensors]
        text = f"Q, K and V of shapes {', '.join(str(list(shape)) for shape in shapes)}"
        if {len(shape) for shape in shapes} not in ({3}, {4}) or not all(all(shape) for shape in shapes):
            raise fail("HG023", name, f"{text}.", "All have three axes, or all have four.")
        flat = len(shapes[0]) == 3
        if flat and not (own and shared and own > 0 and shared > 0):
            raise fail("HG013", name, "the numbers of heads are missing.", "Tensors of three axes need them.")
        counts = (own or 0, shared or 0, shared or 0) if flat else tuple(shape[1] for shape in shapes)
        if not flat and [n for n, c in zip((own, shared), counts, strict=False) if n not in (None, 0, c)]:
            raise fail("HG013", name, f"{own} and {shared} heads, for {text}.", "Both must agree.")
        if flat and any(shape[2] % count for shape, count in zip(shapes, counts, strict=True)):
            raise fail("HG023", name, f"{text}, for {own} and {shared} heads.", "Heads must be equally large.")
        sizes = [shape[-1] // (count if flat else 1) for shape, count in zip(shapes, counts, strict=True)]
        rows = [shape[-2] for shape in shapes]
        if counts[1] != counts[2] or counts[0] % counts[1] or sizes[0] != sizes[1] or rows[1] != rows[2]:
            raise fail(
                "HG023", name, f"{text}, of {', '.join(map(str, counts))} heads.",
                "Keys and values are equally many, of equally many heads, and a key is as long as a query.",
            )  # fmt: skip
        if any(shape[0] != 1 for shape in shapes):
            raise fail("HG023", name, f"{text}.", "The batch is 1.")
        return _Heads((counts[0], counts[1], counts[2]), rows[0], rows[1], sizes[0], sizes[2], flat)

    @staticmethod
    def packed(node: Expansion, tensor: str, count: int) -> _Heads:
        shape = node.shape(tensor)
        return _Heads((count, count, count), shape[1], shape[1], shape[4], shape[4], True)


def _check_float(node: Expansion, tensor: str) -> None:
    found = node.tensors.get(tensor)
    dtype = found.dtype if isinstance(found, Dynamic) else str(found.array.dtype) if found else "float32"
    if dtype != "float32":
        raise fail(
            "HG026", node.name, f"{node.proto.op_type} of {dtype} data.", "Cast them to float32 (operator Cast)."
        )


def _mask(node: Expansion, tensor: str, heads: _Heads) -> Array | None:
    """What is added to the scores. Raises HG020, HG023, HG026."""
    if not tensor:
        return None
    found = node.constant(tensor)
    if found is None:
        raise fail("HG020", node.name, "the mask is computed from the model's input.", _MASK)
    mask = found.array
    if mask.dtype == np.bool_:
        mask = np.where(mask, np.float32(0), np.float32("-inf"))
    if mask.dtype != np.float32:
        raise fail("HG026", node.name, f"a mask of {mask.dtype}.", "Supported: booleans, float32.")
    if mask.ndim and 1 < mask.shape[-1] < heads.keys:
        added = [(0, 0)] * (mask.ndim - 1) + [(0, heads.keys - mask.shape[-1])]
        mask = np.pad(mask, added, constant_values=-np.inf)
    shape = (1, heads.counts[0], heads.queries, heads.keys)
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        raise _unfitting(node, found, shape) from None
    return np.asarray(mask)


def _without(left_out: Array, mask: Array | None) -> Array:
    """The mask with these elements taken out."""
    return np.where(left_out, np.float32("-inf"), np.float32(0) if mask is None else mask)


def _length(node: Expansion, tensor: str) -> int:
    """How many keys there are. Raises HG013, HG020."""
    found = node.constant(tensor)
    if found is None:
        raise fail("HG020", node.name, "nonpad_kv_seqlen is computed from the model's input.", _MASK)
    if found.array.size != 1:
        raise fail("HG013", node.name, f"nonpad_kv_seqlen of shape {list(found.array.shape)}.", "The batch is 1.")
    return int(found.array.reshape(()))


def _unfitting(node: Expansion, mask: Const, shape: Shape) -> HlsgenError:
    text = f"a mask of shape {list(mask.array.shape)} for scores of shape {list(shape)}."
    return fail("HG023", node.name, text, "It must broadcast to them.")


@dataclass
class _Nodes:
    """The nodes that one becomes; `owner`: in front of their names."""

    owner: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Const] = field(default_factory=dict)

    def add(self, op: str, inputs: list[str], name: str, **attrs: Any) -> str:
        made = f"{self.owner}/{name}"
        self.nodes.append(helper.make_node(op, inputs, [made], name=made, **attrs))
        return made

    def constant(self, value: Array, name: str) -> str:
        made = f"{self.owner}/{name}"
        self.constants[made] = Const(value)
        return made

    def shaped(self, tensor: str, shape: Shape, name: str) -> str:
        return self.add("Reshape", [tensor, self.constant(np.array(shape, np.int64), f"{name} shape")], name)

    def split(self, tensor: str, flat: bool, count: int) -> str:
        """(1, heads, rows, elements) of a tensor that has the heads side by side, if `flat`."""
        if not flat:
            return tensor
        apart = self.shaped(tensor, (1, 0, count, -1), f"heads of {tensor}")
        return self.add("Transpose", [apart], f"split {tensor}", perm=[0, 2, 1, 3])

    def unpacked(self, node: Expansion, tensor: str, count: int) -> tuple[str, str, str]:
        """Three of a tensor (1, rows, heads, 3, elements). Raises HG023."""
        _check_float(node, tensor)
        shape = node.shape(tensor)
        if len(shape) != 5 or shape[2:4] != (count, 3) or shape[0] != 1:
            raise fail(
                "HG023", node.name, f"a query of shape {list(shape)} without key and value, {count} heads.",
                "Packed ones have the shape [1, rows, heads, 3, elements].",
            )  # fmt: skip
        found = []
        for n, what in enumerate("qkv"):
            at = self.constant(np.array(n, np.int64), f"{what} index")
            part = self.add("Gather", [tensor, at], f"{what} part", axis=3)
            found.append(self.add("Transpose", [part], what, perm=[0, 2, 1, 3]))
        return found[0], found[1], found[2]

    def part(
        self, heads: _Heads, operands: tuple[str, str, str], scale: float, mask: Array | None, output: str
    ) -> Part:  # fmt: skip
        """The products, and what is between; `scale` 0: that of the head's size."""
        q, k, v = operands
        own, shared, _ = heads.counts
        rows = own // shared * heads.queries
        factor = np.asarray(scale or 1 / np.sqrt(heads.size), np.float32)
        if own != shared:
            q = self.shaped(q, (1, shared, rows, heads.size), "grouped")
        turned = self.add("Transpose", [k], "turned", perm=[0, 1, 3, 2])
        scores = self.add("MatMul", [q, turned], "scores")
        scores = self.add("Mul", [scores, self.constant(factor, "factor")], "scaled")
        apart = own != shared and mask is not None and mask.ndim > 1
        if mask is not None:
            if apart:
                scores = self.shaped(scores, (1, own, heads.queries, heads.keys), "of heads")
            scores = self.add("Add", [scores, self.constant(mask, "mask")], "masked")
        shares = self.add("Softmax", [scores], "shares", axis=-1)
        if apart:
            shares = self.shaped(shares, (1, shared, rows, heads.keys), "of groups")
        result = self.add("MatMul", [shares, v], "values")
        if own != shared:
            result = self.shaped(result, (1, own, heads.queries, heads.values), "heads")
        if heads.flat:
            result = self.add("Transpose", [result], "joined", perm=[0, 2, 1, 3])
            result = self.shaped(result, (1, heads.queries, own * heads.values), "together")
        self.nodes.append(helper.make_node("Identity", [result], [output], name=f"{self.owner}/{output}"))
        return Part(self.nodes, self.constants, [result])
