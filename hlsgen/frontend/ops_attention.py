"""Attention of ONNX and MultiHeadAttention of onnxruntime as products, a factor, a mask and a Softmax.

    scores = scale * (Q K^T) + mask        shares = Softmax(scores)        Y = shares V

Heads that share keys and values are stacked as more rows of one matrix for the product.
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
#: onnxruntime's value for masked scores, by default.
_FILTER = -10000.0
_MASK = "It must be a constant: hardware stores which elements are masked."


def attention(node: Expansion) -> Iterator[Part]:
    """Attention of opset 23 and newer. Raises HG010, HG012, HG013, HG020, HG023, HG026."""
    proto, name, attrs = node.proto, node.name, attributes(node.proto)
    inputs = [*proto.input, *[""] * (7 - len(proto.input))]
    problems = Collector()
    for tensor, input_name in zip(inputs[4:6], ("past_key", "past_value"), strict=True):
        if tensor:
            hint = "Supported: Q, K, V, and as constants attn_mask, nonpad_kv_seqlen."
            problems.error("HG010", name, f"Attention with input {input_name} is not supported.", hint)
    if len(proto.output) > 3 and proto.output[3]:
        text = "the output qk_matmul_output of Attention is used."
        problems.error("HG010", name, text, "Supported: Y, present_key, present_value.")
    if float(attrs.get("softcap", 0.0)) != 0:
        text = f"Attention with softcap {attrs['softcap']:g} is not supported."
        hint = "Supported: softcap 0. Export the operator as its parts, with quantizers between."
        problems.error("HG010", name, text, hint)
    if attrs.get("softmax_precision", TensorProto.FLOAT) != TensorProto.FLOAT:
        kind = TensorProto.DataType.Name(attrs["softmax_precision"])
        text = f"Attention with softmax_precision {kind} is not supported."
        problems.error("HG010", name, text, "Supported: FLOAT.")
    problems.finish()
    heads = _Heads.of(node, inputs[:3], attrs.get("q_num_heads"), attrs.get("kv_num_heads"))
    mask = _mask(node, inputs[3], heads)
    if attrs.get("is_causal", 0):
        mask = _masked(np.triu(np.ones((heads.queries, heads.keys), np.bool_), 1), mask)
    if inputs[6]:
        mask = _masked(np.arange(heads.keys) >= _length(node, inputs[6]), mask)
    parts = _Nodes(name)
    q, k, v = (parts.split(tensor, heads.flat, count) for tensor, count in zip(inputs[:3], heads.counts, strict=True))
    for tensor, output in zip((k, v), [*proto.output, "", ""][1:3], strict=False):
        if output:
            parts.nodes.append(helper.make_node("Identity", [tensor], [output], name=f"{name}/{output}"))
    yield parts.part(heads, (q, k, v), attrs.get("scale", 0.0), mask, proto.output[0])


def multi_head_attention(node: Expansion) -> Iterator[Part]:
    """MultiHeadAttention of onnxruntime, with three tensors, or one of queries, keys and values side by side.

    Raises HG010, HG012, HG013, HG020, HG023, HG026.
    """
    proto, name, attrs = node.proto, node.name, attributes(node.proto)
    inputs = [*proto.input, *[""] * (10 - len(proto.input))]
    problems = Collector()
    names = ("bias", "key_padding_mask", "attention_bias", "past_key", "past_value", "past_sequence_length")
    for tensor, input_name in zip(inputs[3:9], names, strict=True):
        if tensor and input_name != "attention_bias":
            text = f"MultiHeadAttention with input {input_name} is not supported."
            problems.error("HG010", name, text, "Supported: query, key, value and a constant attention_bias.")
    if any(proto.output[1:]):
        problems.error("HG010", name, "further outputs of MultiHeadAttention are used.", "Supported: the first one.")
    problems.finish()
    parts, count = _Nodes(name), attrs.get("num_heads", 0)
    q, k, v = inputs[:3]
    if not k and not v:
        q, k, v = parts.unpacked(node, q, count)
        heads = _Heads.packed(node, inputs[0], count)
    else:
        heads = _Heads.of(node, [q, k, v], count, count)
        q, k, v = (parts.split(tensor, True, count) for tensor in (q, k, v))
    mask = _mask(node, inputs[5], heads)
    if attrs.get("unidirectional", 0):
        later = np.triu(np.ones((heads.queries, heads.keys), np.bool_), 1)
        lowest = np.float32(attrs.get("mask_filter_value", _FILTER))
        mask = np.where(later, lowest, np.float32(0)) if mask is None else mask + np.where(later, lowest, np.float32(0))
    yield parts.part(heads, (q, k, v), attrs.get("scale", 0.0), mask, proto.output[0])


@dataclass(frozen=True)
class _Heads:
    """The dimensions of an attention.

    counts   numbers of heads of Q, K and V
    queries  rows of Q
    keys     rows of K and V
    size     elements of a query or key in a head
    values   elements of a value in a head
    flat     tensors have three axes, with the heads side by side in the last one
    """

    counts: tuple[int, int, int]
    queries: int
    keys: int
    size: int
    values: int
    flat: bool

    @staticmethod
    def of(node: Expansion, tensors: list[str], query_heads: int | None, key_heads: int | None) -> _Heads:
        """The dimensions of Q, K, V. Raises HG012, HG013, HG014, HG023, HG026."""
        name = node.name
        if not all(tensors):
            text = f"{node.proto.op_type} has no query, key or value."
            raise fail("HG014", name, text, "All three inputs are needed.")
        for tensor in tensors:
            _check_float(node, tensor)
        shapes = [node.shape(tensor) for tensor in tensors]
        text = f"Q, K and V of shapes {', '.join(str(list(shape)) for shape in shapes)}"
        if {len(shape) for shape in shapes} not in ({3}, {4}) or not all(all(shape) for shape in shapes):
            raise fail("HG023", name, f"{text}.", "All must have three axes, or all four, and none may be empty.")
        flat = len(shapes[0]) == 3
        if flat and not (query_heads and key_heads and query_heads > 0 and key_heads > 0):
            text = "the attributes with the numbers of heads are missing or not positive."
            raise fail("HG013", name, text, "Tensors of three axes need them.")
        counts = (query_heads or 0, key_heads or 0, key_heads or 0) if flat else tuple(shape[1] for shape in shapes)
        if not flat and [n for n, c in zip((query_heads, key_heads), counts, strict=False) if n not in (None, 0, c)]:
            text = f"the attributes give {query_heads} and {key_heads} heads for {text}."
            raise fail("HG013", name, text, "Attributes and shapes must agree: axis 1 is the heads.")
        if flat and any(shape[2] % count for shape, count in zip(shapes, counts, strict=True)):
            text = f"{text}, for {query_heads} and {key_heads} heads."
            raise fail("HG023", name, text, "The last axis must be a multiple of the number of heads.")
        sizes = [shape[-1] // (count if flat else 1) for shape, count in zip(shapes, counts, strict=True)]
        rows = [shape[-2] for shape in shapes]
        if counts[1] != counts[2] or counts[0] % counts[1] or sizes[0] != sizes[1] or rows[1] != rows[2]:
            raise fail(
                "HG023",
                name,
                f"{text}, of {', '.join(map(str, counts))} heads.",
                "Keys and values need equal rows and heads, a key the length of a query; "
                "the heads of Q must be a multiple of those.",
            )
        if any(shape[0] != 1 for shape in shapes):
            raise fail("HG023", name, f"{text}: the batch is not 1.", "Supported: batch 1, the first axis.")
        return _Heads((counts[0], counts[1], counts[2]), rows[0], rows[1], sizes[0], sizes[2], flat)

    @staticmethod
    def packed(node: Expansion, tensor: str, count: int) -> _Heads:
        """The dimensions of one tensor (1, rows, heads, 3, elements)."""
        shape = node.shape(tensor)
        return _Heads((count, count, count), shape[1], shape[1], shape[4], shape[4], True)


def _check_float(node: Expansion, tensor: str) -> None:
    operand = node.tensors.get(tensor)
    dtype = operand.dtype if isinstance(operand, Dynamic) else str(operand.array.dtype) if operand else "float32"
    if dtype != "float32":
        raise fail(
            "HG026", node.name, f"{node.proto.op_type} of {dtype} data.", "Cast them to float32 (operator Cast)."
        )


def _mask(node: Expansion, tensor: str, heads: _Heads) -> Array | None:
    """The mask that is added to the scores, or None. Raises HG020, HG023, HG026."""
    if not tensor:
        return None
    constant = node.constant(tensor)
    if constant is None:
        raise fail("HG020", node.name, "the mask is computed from the model's input.", _MASK)
    mask = constant.array
    if mask.dtype == np.bool_:
        mask = np.where(mask, np.float32(0), np.float32("-inf"))
    if mask.dtype != np.float32:
        raise fail("HG026", node.name, f"the mask is of type {mask.dtype}.", "Supported: booleans, float32.")
    if mask.ndim and 1 < mask.shape[-1] < heads.keys:
        added = [(0, 0)] * (mask.ndim - 1) + [(0, heads.keys - mask.shape[-1])]
        mask = np.pad(mask, added, constant_values=-np.inf)
    shape = (1, heads.counts[0], heads.queries, heads.keys)
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        raise _unfitting(node, constant, shape) from None
    return np.asarray(mask)


def _masked(excluded: Array, mask: Array | None) -> Array:
    """The mask with minus infinity for `excluded` elements."""
    return np.where(excluded, np.float32("-inf"), np.float32(0) if mask is None else mask)


def _length(node: Expansion, tensor: str) -> int:
    """The constant number of keys that are not padding. Raises HG013, HG020."""
    constant = node.constant(tensor)
    if constant is None:
        raise fail("HG020", node.name, "nonpad_kv_seqlen is computed from the model's input.", _MASK)
    if constant.array.size != 1:
        text = f"nonpad_kv_seqlen has the shape {list(constant.array.shape)}."
        raise fail("HG013", node.name, text, "Supported: one number, for batch 1.")
    return int(constant.array.reshape(()))


def _unfitting(node: Expansion, mask: Const, shape: Shape) -> HlsgenError:
    text = f"the mask has the shape {list(mask.array.shape)}, the scores have {list(shape)}."
    return fail("HG023", node.name, text, "It must broadcast to them.")


@dataclass
class _Nodes:
    """The nodes and constants that replace the node `owner`, whose name is the prefix of theirs."""

    owner: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Const] = field(default_factory=dict)

    def add(self, op: str, inputs: list[str], name: str, **attrs: Any) -> str:
        """Add a node; returns the name of its output."""
        full_name = f"{self.owner}/{name}"
        self.nodes.append(helper.make_node(op, inputs, [full_name], name=full_name, **attrs))
        return full_name

    def constant(self, array: Array, name: str) -> str:
        """Add a constant; returns its full name."""
        full_name = f"{self.owner}/{name}"
        self.constants[full_name] = Const(array)
        return full_name

    def shaped(self, tensor: str, shape: Shape, name: str) -> str:
        """Add a Reshape; returns the name of its output."""
        return self.add("Reshape", [tensor, self.constant(np.array(shape, np.int64), f"{name} shape")], name)

    def split(self, tensor: str, flat: bool, count: int) -> str:
        """The tensor as (1, heads, rows, elements); `flat`: it has the heads side by side."""
        if not flat:
            return tensor
        by_head = self.shaped(tensor, (1, 0, count, -1), f"heads of {tensor}")
        return self.add("Transpose", [by_head], f"split {tensor}", perm=[0, 2, 1, 3])

    def unpacked(self, node: Expansion, tensor: str, count: int) -> tuple[str, str, str]:
        """Q, K and V of a packed tensor (1, rows, heads, 3, elements). Raises HG023, HG026."""
        _check_float(node, tensor)
        shape = node.shape(tensor)
        if len(shape) != 5 or shape[2:4] != (count, 3) or shape[0] != 1:
            text = f"the query of shape {list(shape)}, without key and value, does not fit {count} heads."
            raise fail("HG023", node.name, text, "Packed Q, K and V have the shape [1, rows, heads, 3, elements].")
        tensors = []
        for n, letter in enumerate("qkv"):
            at = self.constant(np.array(n, np.int64), f"{letter} index")
            part = self.add("Gather", [tensor, at], f"{letter} part", axis=3)
            tensors.append(self.add("Transpose", [part], letter, perm=[0, 2, 1, 3]))
        return tensors[0], tensors[1], tensors[2]

    def part(
        self, heads: _Heads, operands: tuple[str, str, str], scale: float, mask: Array | None, output: str
    ) -> Part:
        """Add the two products and the nodes between them; `scale` 0: 1 / sqrt(elements of a key)."""
        q, k, v = operands
        query_heads, key_heads, _ = heads.counts
        is_grouped = query_heads != key_heads
        rows = query_heads // key_heads * heads.queries
        factor = np.asarray(scale or 1 / np.sqrt(heads.size), np.float32)
        if is_grouped:
            q = self.shaped(q, (1, key_heads, rows, heads.size), "grouped")
        transposed = self.add("Transpose", [k], "turned", perm=[0, 1, 3, 2])
        scores = self.add("MatMul", [q, transposed], "scores")
        scores = self.add("Mul", [scores, self.constant(factor, "factor")], "scaled")
        mask_by_head = is_grouped and mask is not None and mask.ndim > 1
        if mask is not None:
            if mask_by_head:
                scores = self.shaped(scores, (1, query_heads, heads.queries, heads.keys), "of heads")
            scores = self.add("Add", [scores, self.constant(mask, "mask")], "masked")
        shares = self.add("Softmax", [scores], "shares", axis=-1)
        if mask_by_head:
            shares = self.shaped(shares, (1, key_heads, rows, heads.keys), "of groups")
        result = self.add("MatMul", [shares, v], "values")
        if is_grouped:
            result = self.shaped(result, (1, query_heads, heads.queries, heads.values), "heads")
        if heads.flat:
            result = self.add("Transpose", [result], "joined", perm=[0, 2, 1, 3])
            result = self.shaped(result, (1, heads.queries, query_heads * heads.values), "together")
        self.nodes.append(helper.make_node("Identity", [result], [output], name=f"{self.owner}/{output}"))
        return Part(self.nodes, self.constants, [result])
