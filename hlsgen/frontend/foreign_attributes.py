"""Attributes of other tools on standard nodes: bit widths and the like, which no version of the operator has."""

from __future__ import annotations

from functools import cache

import onnx

from hlsgen.diagnostics import Diagnostic, printable
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.onnx_graph import all_nodes

#: Most attributes that the warning names.
_MAX_SHOWN = 8


def drop_foreign_attributes(graph: onnx.GraphProto) -> Diagnostic | None:
    """Removes them from all nodes of a graph; the warning for all of them, if there are any.

    An attribute that the operator has in another opset stays: it may mean something, and is an error later.
    """
    operators_by_attribute: dict[str, set[str]] = {}
    first = ""
    for node in all_nodes(graph):
        known = _attributes(node.op_type) if node.domain in ONNX else None
        foreign = [] if known is None else [a for a in node.attribute if a.name not in known]
        for attribute in foreign:
            first = first or node.name or node.op_type
            operators_by_attribute.setdefault(attribute.name, set()).add(node.op_type)
            node.attribute.remove(attribute)
    if not operators_by_attribute:
        return None
    texts = [f"{printable(key)} (of {', '.join(sorted(ops))})" for key, ops in operators_by_attribute.items()]
    more = f" and {len(texts) - _MAX_SHOWN} more" if len(texts) > _MAX_SHOWN else ""
    return Diagnostic(
        "HG090", printable(first),
        f"attributes that ONNX's operators do not have are ignored: {', '.join(texts[:_MAX_SHOWN])}{more}.",
        "If they are notes of another tool, nothing is lost. onnxruntime refuses files that have them.", "warning",
    )  # fmt: skip


@cache
def _attributes(op_type: str) -> frozenset[str] | None:
    """The names of all attributes that an operator has in any opset; None for one that onnx does not know."""
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op_type and s.domain == ""]
    return frozenset(key for schema in schemas for key in schema.attributes) if schemas else None
