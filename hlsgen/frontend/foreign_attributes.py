"""Attributes of other tools on standard nodes, such as bit widths, which no version of the operator has."""

from __future__ import annotations

from functools import cache

import onnx

from hlsgen.diagnostics import Diagnostic, printable
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.onnx_graph import all_nodes

#: Maximum number of attributes in the warning.
_MAX_SHOWN = 8


def drop_foreign_attributes(graph: onnx.GraphProto) -> Diagnostic | None:
    """Remove them from all nodes of a graph; one warning for all of them, or None if there are none.

    An attribute that the operator has in another opset stays: it may have a meaning, and is an error later.
    """
    operators_by_attribute: dict[str, set[str]] = {}
    first = ""
    for node in all_nodes(graph):
        defined = _attributes(node.op_type) if node.domain in ONNX else None
        foreign = [] if defined is None else [a for a in node.attribute if a.name not in defined]
        for attribute in foreign:
            first = first or node.name or node.op_type
            operators_by_attribute.setdefault(attribute.name, set()).add(node.op_type)
            node.attribute.remove(attribute)
    if not operators_by_attribute:
        return None
    texts = [f"{printable(key)} (of {', '.join(sorted(ops))})" for key, ops in operators_by_attribute.items()]
    suffix = f" and {len(texts) - _MAX_SHOWN} more" if len(texts) > _MAX_SHOWN else ""
    return Diagnostic(
        "HG090",
        printable(first),
        f"attributes that ONNX's operators do not have are ignored: {', '.join(texts[:_MAX_SHOWN])}{suffix}.",
        "If they are notes of another tool, nothing is lost. onnxruntime refuses files that have them.",
        "warning",
    )


@cache
def _attributes(op_type: str) -> frozenset[str] | None:
    """The names of an operator's attributes in all opsets, or None for an operator that onnx does not know."""
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op_type and s.domain == ""]
    return frozenset(key for schema in schemas for key in schema.attributes) if schemas else None
