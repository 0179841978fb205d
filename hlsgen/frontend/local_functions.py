"""Inlining of the functions that a model defines itself, by onnx's own inliner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import onnx
import onnx.inliner

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.control_flow import is_expanded
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.onnx_graph import inner_nodes
from hlsgen.frontend.rules import known_rule

#: (domain, name, overload) of a function.
_Key = tuple[str, str, str]


def inlined(model: onnx.ModelProto, path: Path, max_nodes: int, max_bytes: int) -> onnx.ModelProto:
    """The model with the calls of its functions inlined.

    A function with the name of a supported operator counts as that operator. Raises HG004 for more nodes or bytes
    than the bounds, HG010 for an ambiguous function, and HG015 for recursion.
    """
    for function in model.functions:
        if function.domain in ONNX and onnx.defs.has(function.name):
            text = "it has the name of a standard operator, and executors differ in which of the two they run."
            raise fail("HG010", f"function {function.name}", text, "Give it another name or domain.")
    functions = [f for f in model.functions if not _is_operator(f)]
    if len(functions) < len(model.functions):
        del model.functions[:]
        model.functions.extend(functions)
    if not functions:
        return model
    _check_size(model, path, max_nodes, max_bytes)
    for function in model.functions:
        _to_opset_of(model, function)
    _give_defaults(model)
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:  # the inliner raises different types for a wrong model
        text = f"its functions cannot be inlined: {' '.join(str(error).split())[:200]}."
        raise fail("HG010", str(path), text, "Inline them when exporting the model.") from None


def _to_opset_of(model: onnx.ModelProto, function: onnx.FunctionProto) -> None:
    """Give a function the standard opset of the model. Raises HG010 if an operator of it has another meaning there."""
    version = next((o.version for o in model.opset_import if o.domain in ONNX), None)
    for opset in function.opset_import:
        if opset.domain not in ONNX or version is None or opset.version == version:
            continue
        for node in (inner for top in function.node for inner in (top, *inner_nodes(top))):
            if node.domain in ONNX and _since(node.op_type, opset.version) != _since(node.op_type, version):
                text = f"it uses {node.op_type} of opset {opset.version}, the model has opset {version}."
                raise fail("HG010", f"function {function.name}", text, "Export the model with one opset.")
        opset.version = version


def _give_defaults(model: onnx.ModelProto) -> None:
    """Add default attributes of functions to the calls that lack them, as onnx's inliner ignores the defaults."""
    defaults = {(f.domain, f.name, f.overload): f.attribute_proto for f in model.functions}
    for body in (model.graph.node, *(f.node for f in model.functions)):
        for node in (inner for top in body for inner in (top, *inner_nodes(top))):
            present = {attribute.name for attribute in node.attribute}
            node.attribute.extend(a for a in defaults.get(_key(node), []) if a.name not in present)


def _since(op_type: str, version: int) -> int:
    """The opset that introduced the operator's meaning at `version`; 0 for operators that onnx does not know."""
    try:
        return int(onnx.defs.get_schema(op_type, version).since_version)
    except onnx.defs.SchemaError:
        return 0


def _is_operator(function: onnx.FunctionProto) -> bool:
    node = onnx.helper.make_node(function.name, [], [], domain=function.domain)
    return known_rule(function.domain, function.name) is not None or is_expanded(node)


def _check_size(model: onnx.ModelProto, path: Path, max_nodes: int, max_bytes: int) -> None:
    """Check the inlined size before anything is inlined. Raises HG004 or HG015."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    nodes: dict[_Key, int] = {}
    sizes: dict[_Key, int] = {}
    for key in _callees_first(functions, path):
        body = functions[key].node
        nodes[key] = _total(body, nodes, lambda _: 1)
        sizes[key] = _total(body, sizes, lambda node: node.ByteSize())
    if _total(model.graph.node, nodes, lambda _: 1) > max_nodes:
        text = f"the model has more than {max_nodes} nodes after its functions are inlined."
        raise fail("HG004", str(path), text, "Simplify the model: larger ones are not supported.")
    if model.ByteSize() + _total(model.graph.node, sizes, lambda _: 0) > max_bytes:
        text = f"the model has more than {max_bytes} bytes after its functions are inlined."
        raise fail("HG004", str(path), text, "Simplify the model: larger ones are not supported.")


def _total(body: Iterable[onnx.NodeProto], totals: dict[_Key, int], weigh: Callable[[onnx.NodeProto], int]) -> int:
    """The sum over all nodes of a body: the node's own weight, and the total of the function for a call."""
    return sum(totals.get(_key(node), 0) + weigh(node) for top in body for node in (top, *inner_nodes(top)))


def _callees_first(functions: dict[_Key, onnx.FunctionProto], path: Path) -> list[_Key]:
    """The functions, each after all that it calls. Raises HG015 for recursion."""
    ordered: dict[_Key, None] = {}
    for start in functions:
        open_calls = [(start, iter(_called(functions[start], functions)))]
        active = {start}
        while open_calls and start not in ordered:
            key, calls = open_calls[-1]
            callee = next((c for c in calls if c not in ordered), None)
            if callee is None:
                ordered[key] = None
                active.discard(key)
                open_calls.pop()
            elif callee in active:
                raise _recursion(path, callee)
            else:
                active.add(callee)
                open_calls.append((callee, iter(_called(functions[callee], functions))))
    return list(ordered)


def _called(function: onnx.FunctionProto, functions: dict[_Key, onnx.FunctionProto]) -> list[_Key]:
    nodes = (inner for node in function.node for inner in (node, *inner_nodes(node)))
    return list(dict.fromkeys(key for key in map(_key, nodes) if key in functions))


def _key(node: onnx.NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload


def _recursion(path: Path, key: _Key) -> HlsgenError:
    text = f"the model's function {key[1]} calls itself."
    return fail("HG015", str(path), text, "Functions must not be recursive: export the model again.")
