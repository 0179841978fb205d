"""Fusion of the groups of nodes that onnxruntime computes as one integer operator.

A group is an operator, the DequantizeLinear of each of its inputs, and the QuantizeLinear of its result, with a Relu or
Clip between that changes nothing. `GROUPS` lists the operators and their types. On x86-64 onnxruntime first turns each
int8 QuantizeLinear whose only use is a DequantizeLinear into uint8, and then fuses few groups of int8. On ARM it fuses
groups without this change. Source: qdq_selectors.cc and qdq_s8_to_u8.cc of onnxruntime 1.31.
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
#: Required inputs by operator; graphs with other nodes are not rewritten.
_INPUTS = {
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "Conv", "ConvTranspose", "MatMul", "Gemm", "Add", "Mul"), 2),
    **dict.fromkeys(
        ("AveragePool", "GlobalAveragePool", "Softmax", "Relu", "Clip", "Identity", "MaxPool", "Reshape"), 1
    ),
    **dict.fromkeys(("Transpose", "Squeeze", "Unsqueeze", "Slice"), 1),
}


@dataclass(frozen=True)
class Kinds:
    """Types of the codes of a group.

    inputs  type of each input
    result  type of the result, "" if it is not quantized
    arm     true if the runtime is onnxruntime on ARM
    """

    inputs: tuple[str, ...]
    result: str
    arm: bool


@dataclass(frozen=True)
class Group:
    """The fusion of an operator.

    fused         the integer operator, in `domain`
    fits          true for types that are fused
    order         inputs of the fused node: (number of the input, or -1 for the result; 0 codes, 1 scale, 2 zero point)
    floats        the fused operator for a result that is not quantized, "" if there is none
    floats_order  inputs of that operator
    exact         input codes increased by 128 give result codes increased by 128; if not, the types must be
                  onnxruntime's
    """

    fused: str
    domain: str
    fits: Callable[[Kinds], bool]
    order: tuple[tuple[int, int], ...]
    floats: str = ""
    floats_order: tuple[tuple[int, int], ...] = ()
    exact: bool = True


def _alike(kinds: Kinds) -> bool:
    """True if all codes have the same type of 8 bits."""
    return {*kinds.inputs, kinds.result} in ({"int8"}, {"uint8"})


def _layer(kinds: Kinds, int8: bool) -> bool:
    """True for data and result of one type, weights of 8 bits, a bias of int32; `int8`: data of int8 are fused."""
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

#: The fusion by operator of ONNX, for operators whose integers depend on it. Concat, Where, Split, Sigmoid, LeakyRelu
#: and operators that only move elements have the same integers fused and unfused.
GROUPS = {
    "Conv": Group("QLinearConv", "", _layer_int8_on_arm, (*_TWO, (2, 0))),
    "MatMul": Group(
        "QLinearMatMul",
        "",
        _layer_int8_on_arm,
        _TWO,
        "MatMulIntegerToFloat",
        ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)),
    ),
    "Gemm": Group("QGemm", MICROSOFT, _layer_any, (*_SUM, (-1, 1), (-1, 2)), "QGemm", _SUM),
    "Add": Group("QLinearAdd", MICROSOFT, _alike, _TWO, exact=False),
    "Mul": Group("QLinearMul", MICROSOFT, _alike, _TWO, exact=False),
    "AveragePool": Group("QLinearAveragePool", MICROSOFT, _alike, _ONE, exact=False),
    "GlobalAveragePool": Group("QLinearGlobalAveragePool", MICROSOFT, _alike, _ONE),
    "Softmax": Group("QLinearSoftmax", MICROSOFT, _alike, _ONE, exact=False),
}


def fuse_groups(graph: onnx.GraphProto, opset: int, runtime: str) -> dict[str, str]:
    """Rewrite a graph and its nested graphs in place, if the runtime has groups.

    Returns the name of the quantizer in a fused node by the node's name.
    """
    names: dict[str, str] = {}
    if runtime not in GROUPING:
        return names
    for node in graph.node:
        for inner in graphs_of(node):
            names |= fuse_groups(inner, opset, runtime)
    if not any(node.op_type == DEQUANTIZE for node in graph.node) or not _in_order(graph):
        return names
    if not all(is_complete(node) for node in graph.node):  # the importer reports such a node
        return names
    node_graph = NodeGraph(graph)
    _drop_true_declarations(node_graph)
    fused = _Fused(node_graph, opset, runtime == "onnxruntime-arm")
    return names | fused.quantizers


def _drop_true_declarations(graph: NodeGraph) -> None:
    """Remove the declarations of inner int8 codes that agree with their zero point: a runtime may make them uint8."""
    signed: set[str] = set()
    for node in graph.nodes.values():
        zero = graph.constant(node.input[2]) if node.op_type == QUANTIZE and len(node.input) == 3 else None
        if zero is not None and zero.dtype == np.int8:
            signed.update(node.output)
    declarations = [
        info
        for info in graph.graph.value_info
        if info.name not in signed or info.type.tensor_type.elem_type != onnx.TensorProto.INT8
    ]
    del graph.graph.value_info[:]
    graph.graph.value_info.extend(declarations)


def is_complete(node: onnx.NodeProto) -> bool:
    """True if a node has the inputs and the output that its operator needs."""
    needed = _INPUTS.get(node.op_type, 0) if not node.domain or node.domain == MICROSOFT else 0
    return (
        len(node.input) >= needed
        and all(node.input[:needed])
        and (not needed or bool(node.output[:1] and node.output[0]))
    )


def _in_order(graph: onnx.GraphProto) -> bool:
    """True if every node comes after the producers of its inputs, and no tensor is computed twice."""
    available = {info.name for info in (*graph.input, *graph.initializer)}
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        outputs = [name for name in node.output if name]
        if any(name in later and name not in available for name in (*node.input, *captured(node))):
            return False
        if available.intersection(outputs) or len(set(outputs)) < len(outputs):
            return False
        available.update(outputs)
    return True


@dataclass(frozen=True)
class _Members:
    """The nodes of a group: operator, DequantizeLinear of each input, Relu and Clip after it, QuantizeLinear."""

    node: onnx.NodeProto
    dequantizers: tuple[onnx.NodeProto, ...]
    clips: tuple[onnx.NodeProto, ...]
    quantizer: onnx.NodeProto | None


class _Fused:
    """The fusion of one graph. `quantizers`: name of the QuantizeLinear by name of the fused node that contains it."""

    def __init__(self, graph: NodeGraph, opset: int, arm: bool) -> None:
        self.graph, self.opset, self.arm = graph, opset, arm
        self.types = {source.name: source.type.tensor_type.elem_type for source in graph.graph.input}
        self.optimized = Optimized(graph, opset)
        self.quantizers: dict[str, str] = {}
        self.unsigned = set() if arm else {id(n) for pair in self._signed_pairs() for n in pair}
        candidates = [self._members(node) for node in graph.in_order() if not node.domain and node.op_type in GROUPS]
        groups = [members for members in candidates if members is not None]
        for members in groups:
            if not GROUPS[members.node.op_type].exact:
                result = [] if members.quantizer is None else [members.quantizer]
                self._make_unsigned([*members.dequantizers, *result])
        self._make_siblings_unsigned()
        for members in groups:
            self._replace(members)
        self.optimized.undo_unused()
        graph.write()

    def _signed_pairs(self) -> list[tuple[onnx.NodeProto, onnx.NodeProto]]:
        """Pairs of QuantizeLinear and DequantizeLinear of int8 without other uses, with equal zero points."""
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
        """The type of a quantizer's codes in onnxruntime, "" if it is unknown."""
        if id(node) in self.unsigned:
            return "uint8"
        kind = self.optimized.kind_of_codes(node)
        if kind is None and node.op_type == DEQUANTIZE and node.input[0] in self.types:
            return str(np.dtype(helper.tensor_dtype_to_np_dtype(self.types[node.input[0]])).name)
        return "" if kind is None else str(kind.name)

    def _members(self, node: onnx.NodeProto) -> _Members | None:
        """The nodes of the group around an operator, or None if it is not fused."""
        graph, group = self.graph, GROUPS[node.op_type]
        inputs = [name for name in node.input if name]
        sources = [graph.producer.get(name) for name in inputs]
        if any(source is None or source.op_type != DEQUANTIZE for source in sources):
            return None
        dequantizers = [source for source in sources if source is not None]
        if node.output[0] in graph.pinned and not group.floats:
            return None
        clips, quantizer = self._result(node)
        if clips and quantizer is None:
            return None
        users = graph.consumers.get(node.output[0], [])
        if quantizer is None and (not group.floats or any(user.op_type == QUANTIZE for user, _ in users)):
            return None
        kinds = tuple(self._kind(dequantizer) for dequantizer in dequantizers)
        result = "" if quantizer is None else self._kind(quantizer)
        if id(node) in self.optimized.flat and not self.arm:
            kinds = tuple("uint8" if n == 0 and kind == "int8" else kind for n, kind in enumerate(kinds))
            result = "uint8" if result == "int8" else result
        if not group.fits(Kinds(kinds, result, self.arm)) or not self._is_computable(node, dequantizers, quantizer):
            return None
        return _Members(node, tuple(dequantizers), tuple(clips), quantizer)

    def _result(self, node: onnx.NodeProto) -> tuple[list[onnx.NodeProto], onnx.NodeProto | None]:
        """(Relu and Clip after the node, the QuantizeLinear that is the single consumer after them, or None)."""
        graph = self.graph
        after = graph.only_consumer(node.output[0])
        if after is None or after.op_type == QUANTIZE:
            return [], after
        clips: list[onnx.NodeProto] = []
        while after is not None and after.op_type in ("Relu", "Clip") and id(node) not in self.optimized.flat:
            clips.append(after)
            after = graph.only_consumer(after.output[0])
        if not clips or len(graph.consumers.get(clips[0].output[0], [])) != 1 or clips[0].output[0] in graph.pinned:
            return [], None
        if after is None or after.op_type != QUANTIZE:
            return clips, None
        return clips, after if all(self._is_redundant(clip, after) for clip in clips) else None

    def _is_redundant(self, node: onnx.NodeProto, quantizer: onnx.NodeProto) -> bool:
        """True if a Relu or Clip changes no code of the quantizer after it."""
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
        within_epsilon = low - ends[0] <= epsilon and ends[1] - high <= epsilon
        return within_epsilon or (np.rint(low / scale) + zero <= info.min and np.rint(high / scale) + zero >= info.max)

    def _bounds(self, node: onnx.NodeProto) -> tuple[float, float] | None:
        """The constant bounds of a Clip, or None if one is computed."""
        bounds = []
        for number, (name, default) in enumerate((("min", -np.inf), ("max", np.inf)), 1):
            if self.opset < 11:
                bounds.append(float(str(attribute(node, name, default))))
            elif len(node.input) <= number or not node.input[number]:
                bounds.append(float(default))
            else:
                bound = self.graph.constant(node.input[number])
                if bound is None or bound.size != 1:
                    return None
                bounds.append(float(bound.item()))
        return bounds[0], bounds[1]

    def _is_computable(
        self, node: onnx.NodeProto, dequantizers: list[onnx.NodeProto], quantizer: onnx.NodeProto | None
    ) -> bool:
        """True for parameters that onnxruntime's integer operator supports."""
        quantizers = (*dequantizers, *([] if quantizer is None else [quantizer]))
        scales = [self.graph.constant(node.input[1]) for node in quantizers]
        if any(scale is None or scale.dtype != np.float32 for scale in scales):
            return False
        sizes = [1 if scale is None else scale.size for scale in scales]
        factors = [attribute(node, name, 1.0) for name in ("alpha", "beta")]  # QGemm scales its bias by alpha
        if node.op_type == "Gemm" and len(dequantizers) == 3 and factors != [1.0, 1.0]:
            return False
        if node.op_type in ("Conv", "MatMul", "Gemm") and len(sizes) > 1:
            weight = dequantizers[1]
            sizes[1] = 1 if sizes[1] == 1 or self.optimized.has_scales_per_output(node, weight) else sizes[1]
            if len(dequantizers) == 3:
                sizes[2] = 1
                if node.op_type == "Conv" and not self._has_unit_of_sum(scales):
                    return False
            if self.graph.depends_on_input(weight.input[0]):
                if node.op_type == "Gemm":
                    return False
            elif node.op_type == "Gemm" and len(self.optimized.shape(weight.input[0]) or (1, 1)) != 2:
                return False
        return max(sizes) == 1

    def _has_unit_of_sum(self, scales: list[Array | None]) -> bool:
        """True if the scale of a Conv's bias equals the sum's within one per cent; then onnxruntime adds its codes."""
        data, weights, bias = scales[:3]
        if data is None or weights is None or bias is None or bias.size not in (1, weights.size):
            return False
        unit = data.reshape(-1)[:1].astype(np.float64) * weights.reshape(-1)
        return bool((np.abs(bias.reshape(-1) - unit) <= 0.01 * np.abs(unit)).all())

    def _make_unsigned(self, nodes: list[onnx.NodeProto]) -> None:
        """Change codes from int8 to uint8 if onnxruntime does: their operator rounds the two types differently."""
        for node in nodes:
            if id(node) not in self.unsigned:
                continue
            if node.op_type == DEQUANTIZE:
                partner: onnx.NodeProto | None = self.graph.producer.get(node.input[0])
            else:
                partner = self.graph.only_consumer(node.output[0])
            for quantizer in (node, *([partner] if partner is not None else [])):
                zero = self.graph.constant(quantizer.input[2]) if len(quantizer.input) == 3 else None
                if zero is not None and zero.dtype == np.int8:
                    shifted = (zero.astype(np.int16) + 128).astype(np.uint8)
                    self.graph.set_input(quantizer, 2, self.graph.add_constant(f"{quantizer.name}_zero", shifted))

    def _make_siblings_unsigned(self) -> None:
        """Change quantizers that were equal to a changed one as well, so that hardware still shares one quantizer."""
        quantizers = [node for node in self.graph.in_order() if node.op_type == QUANTIZE and id(node) in self.unsigned]
        keys = {id(node): self._meaning(node) for node in quantizers}
        changed = {keys[id(node)] for node in quantizers if self.optimized.kind_of_codes(node) == np.uint8}
        self._make_unsigned([node for node in quantizers if keys[id(node)] in changed])

    def _meaning(self, node: onnx.NodeProto) -> tuple[str, float, int]:
        """The tensor of a QuantizeLinear, its scale, and its zero point as int8."""
        scale, zero = self.optimized.parameters(node) or (np.zeros(1), np.zeros(1, np.int8))
        return node.input[0], float(scale.item()), int(zero.item()) - 128 * (zero.dtype == np.uint8)

    def _replace(self, members: _Members) -> None:
        """Replace the nodes of a group by one node."""
        graph, group = self.graph, GROUPS[members.node.op_type]
        node, dequantizers, quantizer = members.node, members.dequantizers, members.quantizer
        order = group.order if quantizer is not None else group.floats_order
        op_type, domain = (group.fused, group.domain) if quantizer is not None else (group.floats, MICROSOFT)
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
        for old in (*dequantizers, node, *members.clips, quantizer):
            if old is not None and old in graph:
                graph.remove(old)
        graph.add(new)

    def _parameter(
        self, dequantizers: Sequence[onnx.NodeProto], quantizer: onnx.NodeProto | None, number: int, part: int
    ) -> str:
        """The name of an input of the fused node, "" if it is absent (see `Group.order`)."""
        if number >= len(dequantizers):
            return ""
        node = quantizer if number < 0 else dequantizers[number]
        assert node is not None
        if part < 2 or (len(node.input) > 2 and node.input[2]):
            return str(node.input[part])
        kind = self._kind(node) or "uint8"
        return self.graph.add_constant(f"{node.name}_zero", np.zeros((), kind))
