"""What certificates share: they are read, and list the layers of the model with the types of their codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hlsgen.certify.checker import KINDS, hardware_layers
from hlsgen.certify.netlist_reader import broken
from hlsgen.ir import Graph, sources_of

#: Levels of a manifest and of a certificate.
_MOST_LEVELS = 32


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file, None if there is none: not one with two equal keys either."""
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text, object_pairs_hook=_unique)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _flat(found) else None


def _flat(value: Any) -> bool:
    """True if a JSON value has few levels, so that it can be compared and shown level by level."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [y for x in level if isinstance(x, dict | list) for y in (x.values() if isinstance(x, dict) else x)]
        if not level:
            return True
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two equal keys")
    return found


def check_entries(entries: list[dict[str, Any]], graph: Graph) -> None:
    """The entries are those of the layers and types of the model. Raises HG055."""
    layers = hardware_layers(graph)
    wanted = [(graph.layers[i].name, KINDS[type(graph.layers[i])]) for i in layers]
    said = [(entry["layer"], entry["kind"]) for entry in entries]
    if said != wanted:
        raise broken("certificate.json", f"lists the layers {said[:9]}, the model has {wanted[:9]}.")
    for i, entry in zip(layers, entries, strict=True):
        layer = graph.layers[i]
        for key, said_, types in (
            ("inputs", entry["inputs"], [source.type for source in sources_of(layer)]),
            ("output", [entry["output"]], [layer.result.type]),
        ):
            right = [{"bits": t.bits, "signed": t.signed, "lo": t.lo, "hi": t.hi} for t in types]
            if said_ != right:
                raise broken(layer.name, f"certificate.json: {key} is {said_}, in the model {right}.")
