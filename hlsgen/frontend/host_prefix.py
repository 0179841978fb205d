"""Assignment of the tensors before the first layer to the host or to hardware.

The host computes the floats of a branching input, on every path up to the first quantizer. Hardware computes declared
integers, and pools of dequantized codes that onnxruntime computes on the codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import onnx

from hlsgen.frontend.operator_rule import Role
from hlsgen.frontend.rules import is_hardware, known_rule

#: Operators that the host does not run, though they only compute element by element or move elements.
_HARDWARE_ONLY = ("Concat", "Pack")
#: Operators past which onnxruntime moves DequantizeLinear downstream and QuantizeLinear upstream.
_MOVES = ("Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_AVERAGES = ("AveragePool", "GlobalAveragePool")


def before_quantizers(
    nodes: Iterable[onnx.NodeProto], inputs: Iterable[str], constants: Collection[str], typed: Collection[str]
) -> set[str]:
    """Tensors from an input to its quantizers, for inputs whose paths all end in a quantizer.

    nodes   the nodes that the outputs depend on, in order
    typed   inputs that hardware receives as they are; "" for all
    """
    nodes, constant = list(nodes), set(constants)
    for node in nodes:
        if all(i in constant for i in node.input if i):
            constant.update(node.output)
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for name in dict.fromkeys(i for i in node.input if i and i not in constant):
            users.setdefault(name, []).append(node)
    host_tensors: set[str] = set()
    for source in inputs:
        if source not in typed and "" not in typed:
            host_tensors |= _until_quantizers(source, users, constant) or set()
    return host_tensors


def integers_until_hardware(
    nodes: Iterable[onnx.NodeProto], inputs: Iterable[str], typed: Mapping[str, bool]
) -> set[str]:
    """Tensors between the inputs that hardware receives as integers and the first quantizers and layers."""
    integers = {name for name in inputs if typed.get(name, typed.get("", False))}
    for node in nodes:
        if not integers.isdisjoint(node.input) and not is_hardware(node):
            integers.update(node.output)
    return integers


def pools_of_codes(nodes: Iterable[onnx.NodeProto], kinds: Mapping[str, int]) -> set[str]:
    """Tensors between DequantizeLinear of an 8-bit input and a QuantizeLinear, with only average pools and moves.

    onnxruntime runs such a group as a QLinear pool. `kinds`: the element types of the inputs, by name.
    """
    codes = {name for name, kind in kinds.items() if kind in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)}
    paths: dict[str, tuple[set[str], bool]] = {}
    pooled: set[str] = set()
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
            pooled |= paths[data][0]
    return pooled


def _until_quantizers(name: str, users: dict[str, list[onnx.NodeProto]], constant: Collection[str]) -> set[str] | None:
    """The tensors from tensor `name` to quantizers, itself included.

    Returns None if a path does not end in a quantizer, or has an operator that the host does not run.
    """
    tensors, queue = {name}, [name]
    for tensor in queue:
        if not users.get(tensor):
            return None
        for node in users[tensor]:
            rule = known_rule(node.domain, node.op_type)
            single = [i for i in node.input if i and i not in constant] == [tensor]
            if rule is None or not single or len(node.output) != 1 or node.input[0] != tensor:
                return None
            if rule.role is Role.QUANTIZER:
                continue
            if (rule.role is Role.LAYER or node.op_type in _HARDWARE_ONLY) and not rule.host_first:
                return None
            tensors.add(node.output[0])
            queue.append(node.output[0])
    return tensors
