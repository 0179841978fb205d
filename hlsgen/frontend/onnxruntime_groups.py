"""The groups of nodes that onnxruntime computes as one integer operator, as such operators.

A group is an operator, the DequantizeLinear of each of its inputs, and the QuantizeLinear of its result, with a Relu or
Clip between that changes nothing. Which operators form groups, of which types, says `GROUPS`. On x86-64 onnxruntime first
turns each int8 QuantizeLinear whose only use is a DequantizeLinear into uint8, and then fuses few groups of int8; on ARM
it fuses them as they are. Source: qdq_selectors.cc and qdq_s8_to_u8.cc of onnxruntime 1.31.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.domains import MICROSOFT
from hlsgen.frontend.node_graph import DEQUANTIZE, QUANTIZE, NodeGraph, attribute
from hlsgen.frontend.onnx_graph import captured, graphs_of
from hlsgen.frontend.onnxruntime_graph import Optimized
from hlsgen.frontend.runtimes import GROUPING
from hlsgen.numerics.fixed import Array

_EIGHT = ("int8", "uint8")
#: Inputs that nodes must have before they are rewritten.
_INPUTS = {
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "Conv", "ConvTranspose", "MatMul", "Gemm", "Add", "Mul"), 2),
    **dict.fromkeys(
        ("AveragePool", "GlobalAveragePool", "Softmax", "Relu", "Clip", "Identity", "MaxPool", "Reshape"), 1
    ),
    **dict.fromkeys(("Transpose", "Squeeze", "Unsqueeze", "Slice"), 1),
}


@dataclass(frozen=True)
class Kinds:
    """Types of the codes of a group: of each input, and of the result, "" if nothing quantizes it; on ARM or not."""

    inputs: tuple[str, ...]
    result: str
    arm: bool


@dataclass(frozen=True)
class Group:
    """An operator that is fused.

    becomes   the integer operator, in `domain`
    fits      whether it is, for these types
    floats    the operator that it becomes where nothing quantizes its result, "" if it is not fused then
    order     the inputs of the new node: (number of the input, 0 for codes, 1 for scale, 2 for zero point), those of the
              result have number -1
    exact     whether codes that are all 128 more give codes that are 128 more; of others the types are onnxruntime's
    """

    becomes: str
    domain: str
    fits: Callable[[Kinds], bool]
    order: tuple[tuple[int, int], ...]
    floats: str = ""
    floats_order: tuple[tuple[int, int], ...] = ()
    exact: bool = True


def _alike(kinds: Kinds) -> bool:
    """All of one type of 8 bits."""
    return {*kinds.inputs, kinds.result} in ({"int8"}, {"uint8"})


def _layer(kinds: Kinds, int8: bool) -> bool:
    """Data and result of one type, weights of 8 bits, a bias of int32; `int8`: whether data of int8 are fused."""
    data, weight = kinds.inputs[:2]
    signed = data != "int8" or (int8 and weight == "int8")
    bias = all(kind == "int32" for kind in kinds.inputs[2:])
    return data in _EIGHT and weight in _EIGHT and kinds.result in ("", data) and signed and bias


def _layer_int8_on_arm(kinds: Kinds) -> bool:
    return _layer(kinds, kinds.arm)


def _layer_any(kinds: Kinds) -> bool:
    return _layer(kinds, True)


_ONE = ((0, 0), (0, 1), (0, 2), (-1, 1), (-1, 2))
_TWO = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (-1, 1), (-1, 2))
_SUM = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0))

#: By operator of ONNX: what onnxruntime makes of it between quantizers, where integers depend on it. Concat, Where, Split,
#: Sigmoid, LeakyRelu and operators that move elements have the same integers fused and alone.
GROUPS = {
    "Conv": Group("QLinearConv", "", _layer_int8_on_arm, (*_TWO, (2, 0))),
    "MatMul": Group(
        "QLinearMatMul", "", _layer_int8_on_arm, _TWO,
        "MatMulIntegerToFloat", ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)),
    ),
    "Gemm": Group("QGemm", MICROSOFT, _layer_any, (*_SUM, (-1, 1), (-1, 2)), "QGemm", _SUM),
    "Add": Group("QLinearAdd", MICROSOFT, _alike, _TWO, exact=False),
    "Mul": Group("QLinearMul", MICROSOFT, _alike, _TWO, exact=False),
    "AveragePool": Group("QLinearAveragePool", MICROSOFT, _alike, _ONE, exact=False),
    "GlobalAveragePool": Group("QLinearGlobalAveragePool", MICROSOFT, _alike, _ONE),
    "Softmax": Group("QLinearSoftmax", MICROSOFT, _alike, _ONE, exact=False),
}  # fmt: skip


def fuse_groups(graph: onnx.GraphProto, opset: int, runtime: str) -> dict[str, str]:
    """Rewrites a graph, and those within its nodes, in place, if the runtime has groups; returns the names of the quantizers
    that are part of fused nodes, by node."""
    names: dict[str, str] = {}
    if runtime not in GROUPING:
        return names
    for node in graph.node:
        for inner in graphs_of(node):
            names |= fuse_groups(inner, opset, runtime)
    if not any(node.op_type == DEQUANTIZE for node in graph.node) or not _in_order(graph):
        return names
    if not all(_is_complete(node) for node in graph.node):  # reported where the node is read
        return names
    fused = _Fused(NodeGraph(graph), opset, runtime == "onnxruntime-arm")
    return names | fused.quantizers


def _is_complete(node: onnx.NodeProto) -> bool:
    """Whether a node has the inputs and the output that its operator needs."""
    needed = _INPUTS.get(node.op_type, 0) if not node.domain or node.domain == MICROSOFT else 0
    return (
        len(node.input) >= needed
        and all(node.input[:needed])
        and (not needed or bool(node.output[:1] and node.output[0]))
    )


def _in_order(graph: onnx.GraphProto) -> bool:
    """Whether every node comes after those that it needs, and no tensor is computed twice."""
    known = {one.name for one in (*graph.input, *graph.initializer)}
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        outputs = [name for name in node.output if name]
        if any(name in later and name not in known for name in (*node.input, *captured(node))):
            return False
        if known.intersection(outputs) or len(set(outputs)) < len(outputs):
            return False
        known.update(outputs)
    return True


@dataclass(frozen=True)
class _Members:
    """A group: its operator, the DequantizeLinear of each input, Relu and Clip after it, and its QuantizeLinear."""

    node: onnx.NodeProto
    dequantizers: tuple[onnx.NodeProto, ...]
    between: tuple[onnx.NodeProto, ...]
    quantizer: onnx.NodeProto | None


class _Fused:
    """One graph. `quantizers`: by name of a fused node, that of the QuantizeLinear that is part of it."""

    def __init__(self, graph: NodeGraph, opset: int, arm: bool) -> None:
        self.graph, self.opset, self.arm = graph, opset, arm
        self.types = {one.name: one.type.tensor_type.elem_type for one in graph.graph.input}
        self.optimized = Optimized(graph, opset)
        self.quantizers: dict[str, str] = {}
        self.unsigned = set() if arm else {id(n) for pair in self._signed_pairs() for n in pair}
        members = [self._members(node) for node in graph.in_order() if not node.domain and node.op_type in GROUPS]
        fused = [one for one in members if one is not None]
        for one in fused:
            if not GROUPS[one.node.op_type].exact:
                self._make_unsigned([*one.dequantizers, *([] if one.quantizer is None else [one.quantizer])])
        self._make_siblings_unsigned()
        for one in fused:
            self._replace(one)
        self.optimized.undo_unused()
        graph.write()

    def _signed_pairs(self) -> list[tuple[onnx.NodeProto, onnx.NodeProto]]:
        """QuantizeLinear and DequantizeLinear of int8, each the other's only partner, with one zero point."""
        pairs = []
        for node in self.graph.in_order():
            if node.op_type != QUANTIZE:
                continue
            user = self.graph.only_consumer(node.output[0])
            if user is None or user.op_type != DEQUANTIZE:
                continue
            zeros = [
                self.graph.constant(n.input[2]) if len(n.input) == 3 and n.input[2] else None for n in (node, user)
            ]
            if all(zero is not None and zero.size == 1 and zero.dtype == np.int8 for zero in zeros):
                first, second = (int(zero.item()) for zero in zeros if zero is not None)
                if first == second:
                    pairs.append((node, user))
        return pairs

    def _kind(self, node: onnx.NodeProto) -> str:
        """The type of a quantizer's codes in onnxruntime, "" if it is not known."""
        if id(node) in self.unsigned:
            return "uint8"
        kind = self.optimized.kind_of_codes(node)
        if kind is None and node.op_type == DEQUANTIZE and node.input[0] in self.types:
            return str(np.dtype(helper.tensor_dtype_to_np_dtype(self.types[node.input[0]])).name)
        return "" if kind is None else str(kind.name)

    def _members(self, node: onnx.NodeProto) -> _Members | None:
        """The nodes of the group around an operator; None if it is not fused."""
        graph, group = self.graph, GROUPS[node.op_type]
        inputs = [name for name in node.input if name]
        sources = [graph.producer.get(name) for name in inputs]
        if any(source is None or source.op_type != DEQUANTIZE for source in sources):
            return None
        dequantizers = [source for source in sources if source is not None]
        if node.output[0] in graph.held and not group.floats:
            return None
        between, quantizer = self._result(node)
        if between and quantizer is None:
            return None
        users = graph.consumers.get(node.output[0], [])
        if quantizer is None and (not group.floats or any(user.op_type == QUANTIZE for user, _ in users)):
            return None
        kinds = tuple(self._kind(one) for one in dequantizers)
        result = "" if quantizer is None else self._kind(quantizer)
        if id(node) in self.optimized.flat and not self.arm:
            kinds = tuple("uint8" if n == 0 and kind == "int8" else kind for n, kind in enumerate(kinds))
            result = "uint8" if result == "int8" else result
        if not group.fits(Kinds(kinds, result, self.arm)) or not self._is_computable(node, dequantizers, quantizer):
            return None
        return _Members(node, tuple(dequantizers), tuple(between), quantizer)

    def _result(self, node: onnx.NodeProto) -> tuple[list[onnx.NodeProto], onnx.NodeProto | None]:
        """(Relu and Clip after the node, the QuantizeLinear that takes its result or theirs alone, if there is one)."""
        graph = self.graph
        after = graph.only_consumer(node.output[0])
        if after is None or after.op_type == QUANTIZE:
            return [], after
        between: list[onnx.NodeProto] = []
        while after is not None and after.op_type in ("Relu", "Clip") and id(node) not in self.optimized.flat:
            between.append(after)
            after = graph.only_consumer(after.output[0])
        if not between or len(graph.consumers.get(between[0].output[0], [])) != 1 or between[0].output[0] in graph.held:
            return [], None
        if after is None or after.op_type != QUANTIZE:
            return between, None
        return between, after if all(self._is_redundant(one, after) for one in between) else None

    def _is_redundant(self, node: onnx.NodeProto, quantizer: onnx.NodeProto) -> bool:
        """Whether a Relu or Clip leaves every code of the quantizer as it is."""
        parameters, kind = self.optimized.parameters(quantizer), self.optimized.kind_of_codes(quantizer)
        if parameters is None or kind is None or kind.kind not in "iu" or parameters[0].ndim or parameters[1].ndim:
            return False
        scale, zero, info = float(parameters[0]), int(parameters[1]), np.iinfo(str(kind))
        if node.op_type == "Relu":
            return zero == int(info.min)
        if not scale > 0:
            return False
        bounds = self._bounds(node)
        if bounds is None:
            return False
        low, high = bounds
        ends = ((int(info.min) - zero) * scale, (int(info.max) - zero) * scale)
        epsilon = float(np.finfo(np.float32).eps)
        near = low - ends[0] <= epsilon and ends[1] - high <= epsilon
        return near or (np.rint(low / scale) + zero <= info.min and np.rint(high / scale) + zero >= info.max)

    def _bounds(self, node: onnx.NodeProto) -> tuple[float, float] | None:
        """The constant bounds of a Clip."""
        bounds = []
        for number, (name, default) in enumerate((("min", -np.inf), ("max", np.inf)), 1):
            if self.opset < 11:
                bounds.append(float(str(attribute(node, name, default))))
            elif len(node.input) <= number or not node.input[number]:
                bounds.append(float(default))
            else:
                value = self.graph.constant(node.input[number])
                if value is None or value.size != 1:
                    return None
                bounds.append(float(value.item()))
        return bounds[0], bounds[1]

    def _is_computable(
        self, node: onnx.NodeProto, dequantizers: list[onnx.NodeProto], quantizer: onnx.NodeProto | None
    ) -> bool:
        """Whether the parameters are those that onnxruntime's integer operator takes."""
        scales = [
            self.graph.constant(one.input[1]) for one in (*dequantizers, *([] if quantizer is None else [quantizer]))
        ]
        if any(scale is None or scale.dtype != np.float32 for scale in scales):
            return False
        sizes = [1 if scale is None else scale.size for scale in scales]
        if node.op_type == "Gemm" and len(dequantizers) == 3 and attribute(node, "beta", 1.0) != 1.0:
            return False
        if node.op_type in ("Conv", "MatMul", "Gemm") and len(sizes) > 1:
            weight = dequantizers[1]
            sizes[1] = 1 if sizes[1] == 1 or self._per_output(node, weight) else sizes[1]
            if len(dequantizers) == 3:
                sizes[2] = 1
                if node.op_type == "Conv" and not self._has_unit_of_sum(scales):
                    return False
            if self.graph.varies(weight.input[0]):
                if node.op_type == "Gemm" or (node.op_type == "MatMul" and quantizer is None):
                    return False
            elif node.op_type != "Conv" and len(self.optimized.shape(weight.input[0]) or (1, 1)) != 2:
                return False
        return max(sizes) == 1

    def _has_unit_of_sum(self, scales: list[Array | None]) -> bool:
        """Whether the scale of a Conv's bias is that of the sum, to one per cent; onnxruntime takes its codes then."""
        data, weights, bias = scales[:3]
        if data is None or weights is None or bias is None or bias.size not in (1, weights.size):
            return False
        unit = data.reshape(-1)[:1].astype(np.float64) * weights.reshape(-1)
        return bool((np.abs(bias.reshape(-1) - unit) <= 0.01 * np.abs(unit)).all())

    def _per_output(self, node: onnx.NodeProto, weight: onnx.NodeProto) -> bool:
        """Whether scales of weights run along the outputs of the layer."""
        shape = self.optimized.shape(weight.input[0])
        if not shape or attribute(weight, "block_size", 0):
            return False
        axis = attribute(weight, "axis", 1)
        assert isinstance(axis, int)
        if node.op_type == "Conv" or (node.op_type == "Gemm" and attribute(node, "transB", 0)):
            return axis % len(shape) == 0
        return len(shape) == 2 and axis % len(shape) == 1

    def _make_unsigned(self, nodes: list[onnx.NodeProto]) -> None:
        """Gives codes of int8 that are uint8 in onnxruntime that type: their operator does not round them alike."""
        for node in nodes:
            if id(node) not in self.unsigned:
                continue
            if node.op_type == DEQUANTIZE:
                partner: onnx.NodeProto | None = self.graph.producer.get(node.input[0])
            else:
                partner = self.graph.only_consumer(node.output[0])
            for one in (node, *([partner] if partner is not None else [])):
                zero = self.graph.constant(one.input[2]) if len(one.input) == 3 else None
                if zero is not None and zero.dtype == np.int8:
                    shifted = (zero.astype(np.int16) + 128).astype(np.uint8)
                    self.graph.set_input(one, 2, self.graph.add_constant(f"{one.name}_zero", shifted))

    def _make_siblings_unsigned(self) -> None:
        """Quantizers that were equal stay equal: one quantizer in hardware serves all of them."""
        quantizers = [node for node in self.graph.in_order() if node.op_type == QUANTIZE and id(node) in self.unsigned]
        keys = {id(node): self._meaning(node) for node in quantizers}
        changed = {keys[id(node)] for node in quantizers if self.optimized.kind_of_codes(node) == np.uint8}
        self._make_unsigned([node for node in quantizers if keys[id(node)] in changed])

    def _meaning(self, node: onnx.NodeProto) -> tuple[str, float, int]:
        """What a QuantizeLinear quantizes, and how: its scale, and its zero point as int8."""
        scale, zero = self.optimized.parameters(node) or (np.zeros(1), np.zeros(1, np.int8))
        return node.input[0], float(scale.item()), int(zero.item()) - 128 * (zero.dtype == np.uint8)

    def _replace(self, members: _Members) -> None:
        """One node for all of a group."""
        graph, group = self.graph, GROUPS[members.node.op_type]
        node, dequantizers, quantizer = members.node, members.dequantizers, members.quantizer
        order = group.order if quantizer is not None else group.floats_order
        op_type, domain = (group.becomes, group.domain) if quantizer is not None else (group.floats, MICROSOFT)
        inputs = [self._parameter(dequantizers, quantizer, number, part) for number, part in order]
        while inputs and not inputs[-1]:
            inputs.pop()
        output = node.output[0] if quantizer is None else quantizer.output[0]
        new = helper.make_node(op_type, inputs, [output], name=node.name, domain=domain)
        new.attribute.extend(a for a in node.attribute if a.name != "beta")
        if node.op_type == "Softmax":
            since = 13 if self.opset >= 13 else 11 if self.opset >= 11 else 1
            new.attribute.append(helper.make_attribute("opset", since))
        if quantizer is not None:
            self.quantizers[node.name] = self.optimized.names.get(id(quantizer), quantizer.name)
        for old in (*dequantizers, node, *members.between, quantizer):
            if old is not None and old in graph:
                graph.remove(old)
        graph.add(new)

    def _parameter(
        self, dequantizers: Sequence[onnx.NodeProto], quantizer: onnx.NodeProto | None, number: int, part: int
    ) -> str:
        """A name among the inputs of the fused node; "" where there is none."""
        if number >= len(dequantizers):
            return ""
        node = quantizer if number < 0 else dequantizers[number]
        assert node is not None
        if part < 2 or (len(node.input) > 2 and node.input[2]):
            return str(node.input[part])
        kind = self._kind(node) or "uint8"
        return self.graph.add_constant(f"{node.name}_zero", np.zeros((), kind))
