"""Code shared by both certificates: reading them, and checking their layers and the types of the codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hlsgen.certify.checker import KINDS, hardware_layers
from hlsgen.certify.netlist_reader import broken
from hlsgen.ir import Graph, sources_of

#: Maximum nesting of a manifest and of a certificate.
_MAX_LEVELS = 32


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file, or None if there is none or if it has two equal keys."""
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text, object_pairs_hook=_unique)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_shallow(value) else None


def _is_shallow(value: Any) -> bool:
    """True if a JSON value has few levels, so that it can be compared and printed level by level."""
    level = [value]
    for _ in range(_MAX_LEVELS):
        level = [y for x in level if isinstance(x, dict | list) for y in (x.values() if isinstance(x, dict) else x)]
        if not level:
            return True
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_key = dict(pairs)
    if len(by_key) != len(pairs):
        raise ValueError("two equal keys")
    return by_key


def check_entries(entries: list[dict[str, Any]], graph: Graph) -> None:
    """Check that the entries list the layers and types of the model. Raises HG055."""
    layers = hardware_layers(graph)
    expected = [(graph.layers[i].name, KINDS[type(graph.layers[i])]) for i in layers]
    listed_layers = [(entry["layer"], entry["kind"]) for entry in entries]
    if listed_layers != expected:
        raise broken("certificate.json", f"lists the layers {listed_layers[:9]}, the model has {expected[:9]}.")
    for i, entry in zip(layers, entries, strict=True):
        layer = graph.layers[i]
        for key, listed_types, types in (
            ("inputs", entry["inputs"], [source.type for source in sources_of(layer)]),
            ("output", [entry["output"]], [layer.result.type]),
        ):
            expected_types = [{"bits": t.bits, "signed": t.signed, "lo": t.lo, "hi": t.hi} for t in types]
            if listed_types != expected_types:
                raise broken(layer.name, f"certificate.json: {key} is {listed_types}, in the model {expected_types}.")
