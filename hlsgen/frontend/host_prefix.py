"""Which tensors before the first layer are the host's, and which hardware has.

The host has floats of an input that branches, on every way up to the first quantizer. Hardware has integers that are
declared, and pools of dequantized codes that onnxruntime computes on the codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import onnx

from hlsgen.frontend.operator_rule import Role
from hlsgen.frontend.rules import is_hardware, known_rule

#: Operators without the host's rule whose results are computed element by element, or only renamed.
_NOT_THE_HOSTS = ("Concat", "Pack")
#: Operators that onnxruntime moves DequantizeLinear behind, and QuantizeLinear in front of.
_MOVES = ("Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_AVERAGES = ("AveragePool", "GlobalAveragePool")


def before_quantizers(
    nodes: Iterable[onnx.NodeProto], inputs: Iterable[str], constants: Collection[str], typed: Collection[str]
) -> set[str]:
    """Tensors from an input to the quantizers behind it, of inputs of which every way ends in one.

    `nodes`: on which the outputs depend, in order. `typed`: inputs that go to hardware as they are; "" for all.
    """
    nodes, known = list(nodes), set(constants)
    for node in nodes:
        if all(i in known for i in node.input if i):
            known.update(node.output)
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for name in dict.fromkeys(i for i in node.input if i and i not in known):
            users.setdefault(name, []).append(node)
    found: set[str] = set()
    for one in inputs:
        if one not in typed and "" not in typed:
            found |= _until_quantizers(one, users, known) or set()
    return found


def integers_until_hardware(
    nodes: Iterable[onnx.NodeProto], inputs: Iterable[str], typed: Mapping[str, bool]
) -> set[str]:  # fmt: skip
    """Tensors from the inputs that go to hardware as integers to quantizers and layers."""
    found = {name for name in inputs if typed.get(name, typed.get("", False))}
    for node in nodes:
        if not found.isdisjoint(node.input) and not is_hardware(node):
            found.update(node.output)
    return found


def pools_of_codes(nodes: Iterable[onnx.NodeProto], kinds: Mapping[str, int]) -> set[str]:
    """Tensors from DequantizeLinear of an input of 8-bit codes to a QuantizeLinear, if only average pools and moves are between.

    onnxruntime runs such a group as a QLinear pool. `kinds`: the element types of the inputs, by name.
    """
    codes = {name for name, kind in kinds.items() if kind in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)}
    paths: dict[str, tuple[set[str], bool]] = {}
    found: set[str] = set()
    for node in nodes:
        data, result = node.input[0] if node.input else "", node.output[0] if node.output else ""
        if data in codes and node.op_type in _MOVES:
            codes.add(result)
        elif data in codes and node.op_type == "DequantizeLinear":
            paths[result] = {result}, False
        elif data in paths and node.op_type in (*_MOVES, *_AVERAGES):
            tensors, averaged = paths[data]
            paths[result] = tensors | {result}, averaged or node.op_type in _AVERAGES
        elif data in paths and node.op_type == "QuantizeLinear" and paths[data][1]:
            found |= paths[data][0]
    return found


def _until_quantizers(name: str, users: dict[str, list[onnx.NodeProto]], known: Collection[str]) -> set[str] | None:
    """The tensors from one to quantizers; None if a way does not end in one, or not with what the host does."""
    found, ways = {name}, [name]
    for tensor in ways:
        if not users.get(tensor):
            return None
        for node in users[tensor]:
            rule = known_rule(node.domain, node.op_type)
            single = [i for i in node.input if i and i not in known] == [tensor]
            if rule is None or not single or len(node.output) != 1 or node.input[0] != tensor:
                return None
            if rule.role is Role.QUANTIZER:
                continue
            if (rule.role is Role.LAYER or node.op_type in _NOT_THE_HOSTS) and not rule.host_first:
                return None
            found.add(node.output[0])
            ways.append(node.output[0])
    return found
