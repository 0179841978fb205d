"""What the host does of an input that branches: floats, on every way up to the first quantizer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import onnx

from hlsgen.frontend.operator_rule import Role
from hlsgen.frontend.rules import is_hardware, known_rule

#: Operators without the host's rule whose results are computed element by element, or only renamed.
_NOT_THE_HOSTS = ("Concat", "Pack")


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
