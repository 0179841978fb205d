"""Calls of functions that a model defines itself become the nodes of these functions, by onnx's own inliner."""

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
    """The model without functions of its own, as far as they can be inlined.

    A function of the name of an operator that is imported counts as that operator. Raises HG004 if more nodes or bytes than
    these come out, HG010 for one that has no single meaning, and HG015 if functions call each other in a circle.
    """
    for function in model.functions:
        if function.domain in ONNX and onnx.defs.has(function.name):
            text = "it has the name of a standard operator, and executors differ in which of both they run."
            raise fail("HG010", f"function {function.name}", text, "Give it another name or domain.")
    kept = [f for f in model.functions if not _is_operator(f)]
    if len(kept) < len(model.functions):
        del model.functions[:]
        model.functions.extend(kept)
    if not kept:
        return model
    _check_size(model, path, max_nodes, max_bytes)
    for function in model.functions:
        _to_opset_of(model, function)
    _give_defaults(model)
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:  # whatever the inliner makes of a wrong model
        text = f"its functions cannot be inlined: {' '.join(str(error).split())[:200]}."
        raise fail("HG010", str(path), text, "Inline them in the export.") from None


def _to_opset_of(model: onnx.ModelProto, function: onnx.FunctionProto) -> None:
    """Gives a function the standard opset of the model. Raises HG010 if one of its operators means something else there."""
    version = next((o.version for o in model.opset_import if o.domain in ONNX), None)
    for opset in function.opset_import:
        if opset.domain not in ONNX or version is None or opset.version == version:
            continue
        for node in (inner for top in function.node for inner in (top, *inner_nodes(top))):
            if node.domain in ONNX and _since(node.op_type, opset.version) != _since(node.op_type, version):
                text = f"it has {node.op_type} of opset {opset.version}, the model is of opset {version}."
                raise fail("HG010", f"function {function.name}", text, "Export the model with one opset.")
        opset.version = version


def _give_defaults(model: onnx.ModelProto) -> None:
    """Writes default attributes of functions into the calls that lack them: onnx's inliner leaves them out."""
    defaults = {(f.domain, f.name, f.overload): f.attribute_proto for f in model.functions}
    for body in (model.graph.node, *(f.node for f in model.functions)):
        for node in (inner for top in body for inner in (top, *inner_nodes(top))):
            known = {attribute.name for attribute in node.attribute}
            node.attribute.extend(a for a in defaults.get(_key(node), []) if a.name not in known)


def _since(op_type: str, version: int) -> int:
    """The opset that has brought the meaning of an operator at a version; 0 for what onnx does not know."""
    try:
        return int(onnx.defs.get_schema(op_type, version).since_version)
    except onnx.defs.SchemaError:
        return 0


def _is_operator(function: onnx.FunctionProto) -> bool:
    node = onnx.helper.make_node(function.name, [], [], domain=function.domain)
    return known_rule(function.domain, function.name) is not None or is_expanded(node)


def _check_size(model: onnx.ModelProto, path: Path, max_nodes: int, max_bytes: int) -> None:
    """Raises HG004 or HG015 before anything is expanded."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    nodes: dict[_Key, int] = {}
    sizes: dict[_Key, int] = {}
    for key in _callees_first(functions, path):
        body = functions[key].node
        nodes[key] = _total(body, nodes, lambda _: 1)
        sizes[key] = _total(body, sizes, lambda node: node.ByteSize())
    if _total(model.graph.node, nodes, lambda _: 1) > max_nodes:
        raise fail("HG004", str(path), f"more than {max_nodes} nodes when its functions are inlined.")
    if model.ByteSize() + _total(model.graph.node, sizes, lambda _: 0) > max_bytes:
        raise fail("HG004", str(path), f"more than {max_bytes} bytes when its functions are inlined.")


def _total(body: Iterable[onnx.NodeProto], known: dict[_Key, int], weigh: Callable[[onnx.NodeProto], int]) -> int:
    """The sum over all nodes of a body: what is known of a function for its calls, and the node's own weight."""
    return sum(known.get(_key(node), 0) + weigh(node) for top in body for node in (top, *inner_nodes(top)))


def _callees_first(functions: dict[_Key, onnx.FunctionProto], path: Path) -> list[_Key]:
    """The functions, each after all that it calls. Raises HG015 for a circle."""
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
                raise _circle(path, callee)
            else:
                active.add(callee)
                open_calls.append((callee, iter(_called(functions[callee], functions))))
    return list(ordered)


def _called(function: onnx.FunctionProto, functions: dict[_Key, onnx.FunctionProto]) -> list[_Key]:
    nodes = (inner for node in function.node for inner in (node, *inner_nodes(node)))
    return list(dict.fromkeys(key for key in map(_key, nodes) if key in functions))


def _key(node: onnx.NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload


def _circle(path: Path, key: _Key) -> HlsgenError:
    return fail("HG015", str(path), f"its function {key[1]} calls itself.", "Export the model again.")
